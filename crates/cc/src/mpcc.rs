//! MPCC, multipath performance-oriented congestion control (Gilad, Rozen-Schiff, Godfrey, Raiciu, Schapira, CoNEXT 2020).
//!
//! Each subflow climbs its own utility, in which reward and penalties are scaled by the connection's total rate: a fast
//! connection is more sensitive to loss than a slow one, and gives way on shared links. Subflows are coupled by the rates
//! that they publish and by probes and steps that are shares of the total. The climbing itself is in [`crate::ascent`].
//!
//! Units: Mbit/s. The paper names none, though the loss rate a connection tolerates depends on it; Mbit/s is Vivace's.

use manypath_core::{SubflowId, Time, View};

use crate::ascent::{Ascent, Config, Defaults, Others};
use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::seeds::Seeds;
use crate::timers::Timers;

/// Defaults of `mpcc-loss` (MPCC s7.1: gamma = 0; steps and bounds as its release).
pub const LOSS: Defaults =
    Defaults { latency_weight: "0", steps: "release", bound_step: "0.05", min_step: "0.5", swing: "2" };
/// Defaults of `mpcc-latency` (MPCC s7.1: gamma = 1).
pub const LATENCY: Defaults = Defaults { latency_weight: "1", ..LOSS };

/// MPCC for a connection.
#[derive(Debug)]
pub struct Mpcc {
    config: Config,
    seeds: Seeds,
    /// Indexed by subflow id.
    subflows: Vec<Option<Ascent>>,
    /// Sum of all published rates, Mbit/s.
    total: f64,
    /// How many subflows publish one.
    sending: u32,
    timers: Timers,
}

impl Mpcc {
    /// A controller without subflows.
    pub fn new(config: Config, seeds: Seeds) -> Self {
        Self { config, seeds, subflows: Vec::new(), total: 0.0, sending: 0, timers: Timers::default() }
    }

    /// Sums anew rather than adding differences, so that rounding errors do not build up.
    fn sum(&mut self) {
        let published = || self.subflows.iter().flatten().map(Ascent::published).filter(|rate| *rate > 0.0);
        self.sending = u32::try_from(published().count()).unwrap_or(u32::MAX);
        self.total = published().sum();
    }

    /// Runs `act` on a subflow with what the others have published.
    fn with(&mut self, id: SubflowId, act: impl FnOnce(&mut Ascent, Others)) {
        let Some(Some(own)) = self.subflows.get_mut(id.index()) else { return };
        let before = own.published();
        let count = self.sending - u32::from(before > 0.0);
        act(own, Others { rate: (self.total - before).max(0.0), count });
        self.timers.set(id, own.next_timer());
        if own.published().to_bits() != before.to_bits() {
            self.sum();
        }
    }
}

impl CongestionControl for Mpcc {
    fn add_subflow(&mut self, _now: Time, id: SubflowId, init: SubflowInit) {
        if self.subflows.len() <= id.index() {
            self.subflows.resize_with(id.index() + 1, || None);
        }
        self.subflows[id.index()] = Some(Ascent::new(self.config, self.seeds.generator(id), init));
        self.timers.set(id, None);
        self.sum();
    }

    fn remove_subflow(&mut self, _now: Time, id: SubflowId) {
        if let Some(slot) = self.subflows.get_mut(id.index()) {
            *slot = None;
            self.timers.set(id, None);
            self.sum();
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        // The rate of a backup that has carried the connection would count for good, and probes are a share of the total.
        for subflow in view.subflows.iter().filter(|subflow| subflow.id != id && subflow.is_idle(now)) {
            self.with(subflow.id, |ascent, _| {
                if ascent.is_running() {
                    ascent.pause();
                }
            });
        }
        if let Some(own) = view.get(id) {
            self.with(id, |ascent, others| ascent.on_event(now, event, own, others));
        }
    }

    fn limits(&self, id: SubflowId) -> Limits {
        self.subflows.get(id.index()).and_then(Option::as_ref).map_or(Limits::NONE, Ascent::limits)
    }

    fn next_timer(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        for subflow in &view.subflows {
            if self.timers.get(subflow.id).is_some_and(|at| at <= now) {
                self.with(subflow.id, |ascent, others| ascent.on_timer(now, others));
            }
        }
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let Some(Some(own)) = self.subflows.get(id.index()) {
            own.inspect(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Bytes, PacketNumber, Params, SubflowView};

    use super::*;

    #[test]
    fn who_rests_or_has_left_sends_nothing() {
        let (spec, rows) = ("mpcc-loss".parse().unwrap(), crate::ascent::parameters(LOSS));
        let config = crate::ascent::config(&Params::new(&spec, &rows).unwrap()).unwrap();
        let mut mpcc = Mpcc::new(config, Seeds::new(1));
        let subflow =
            |id| SubflowView { last_sent: Some(Time::ZERO), ..SubflowView::new(SubflowId(id), Bytes::new(1000)) };
        let view = View { subflows: (0..3).map(subflow).collect() };
        let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
        for id in 0..3 {
            let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
            mpcc.add_subflow(Time::ZERO, SubflowId(id), init);
            mpcc.on_event(Time::ZERO, SubflowId(id), &sent, &view);
        }
        // 4 Mbit/s each.
        assert_eq!((mpcc.total.to_bits(), mpcc.sending), (12.0_f64.to_bits(), 3));
        mpcc.with(SubflowId(0), |_, others| assert_eq!(others, Others { rate: 8.0, count: 2 }));
        mpcc.remove_subflow(Time::ZERO, SubflowId(2));
        assert_eq!((mpcc.total.to_bits(), mpcc.sending), (8.0_f64.to_bits(), 2));
        mpcc.on_event(Time::from_millis(2_000), SubflowId(0), &Event::Restored, &view);
        assert_eq!((mpcc.total.to_bits(), mpcc.sending), (4.0_f64.to_bits(), 1));
        mpcc.with(SubflowId(1), |_, others| assert_eq!(others, Others { rate: 4.0, count: 1 }));
    }
}
