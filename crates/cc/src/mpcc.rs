//! MPCC, multipath performance-oriented congestion control (Gilad, Rozen-Schiff, Godfrey, Raiciu, Schapira, CoNEXT 2020).
//!
//! Each subflow climbs its own utility, in which reward and penalties are scaled by the connection's total rate: a fast
//! connection is more sensitive to loss than a slow one, and gives way on shared links. Subflows are coupled by the rates
//! that they publish and by probes and steps that are shares of the total. The climbing itself is in [`crate::ascent`].
//!
//! Units: Mbit/s. The paper names none, though the loss rate a connection tolerates depends on it; Mbit/s is Vivace's.

use manypath_core::{Duration, Parameter, Params, SpecError, SubflowId, Time, View};

use crate::ascent::{Amplifier, Ascent, Config, Leave, OnTimeout, Publish, SlowStart, Utility};
use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::monitor;
use crate::seeds::Seeds;

/// Weight of the RTT gradient in `mpcc-loss` (MPCC s7.1).
pub const LOSS_LATENCY_WEIGHT: &str = "0";
/// Weight of the RTT gradient in `mpcc-latency` (MPCC s7.1).
pub const LATENCY_LATENCY_WEIGHT: &str = "1";

/// The parameters of a variant of MPCC, whose weight of the RTT gradient is `latency_weight` by default.
pub const fn parameters(latency_weight: &'static str) -> [Parameter; 18] {
    const fn row(name: &'static str, default: &'static str, range: &'static str, meaning: &'static str) -> Parameter {
        Parameter { name, default, range, meaning }
    }
    [
        row("loss-weight", "11.35", "a number in 3..1000", "weight of the loss rate (MPCC s7.1 beta; its release: 11)"),
        row("latency-weight", latency_weight, "a number in 0..1e6", "weight of the RTT gradient (MPCC s7.1 gamma)"),
        row(
            "units",
            "mbit",
            "mbit or bytes",
            "unit of rates in the utility: Mbit/s as Vivace, or bytes/s as MPCC's release",
        ),
        row("mi", "1.5", "a number in 0.5..10", "length of a monitor interval in RTTs (MPCC s5.2; its release: 1.5)"),
        row("mi-packets", "5", "an integer in 1..1000", "least packets of a monitor interval (MPCC's release: 1)"),
        row("min-slope", "0.01", "a number in 0..1", "smaller RTT gradients count as zero (Vivace s4.1)"),
        row("omega", "0.05", "a number in 0.001..0.5", "probing distance as a share of the total rate (MPCC s5.2)"),
        row("theta", "1", "a number in 0.001..1000", "step in Mbit/s per unit of gradient (Vivace s4.3)"),
        row("min-step", "0.5", "a number in 0..100", "smallest step in Mbit/s (MPCC's release)"),
        row("bound", "0.05", "a number in 0.001..1", "largest step as a share of the total rate (MPCC s5.2)"),
        row("bound-step", "0.05", "a number in 0..1", "widening of the bound each time it is hit (MPCC's release)"),
        row("swing", "2", "an integer in 0..100", "size of the swing buffer (MPCC's release)"),
        row("initial", "4", "Mbit/s in 0.2..1e5", "rate of a new subflow (MPCC's release)"),
        row("min-rate", "0.2", "Mbit/s in 0.01..100", "smallest rate (MPCC's release)"),
        row(
            "slow-start",
            "paper",
            "paper or release",
            "end at the first decrease of utility (MPCC s5.2), or tolerate 15% loss and two repeats",
        ),
        row("leave", "better", "better or last", "rate kept when moving ends: Vivace's, or MPCC's release"),
        row("publish", "mi", "mi or decision", "publish at every interval (MPCC s5.2), or after probing (its release)"),
        row("timeout", "halve", "halve or keep", "rate after a timeout: Vivace's release, or MPCC's"),
    ]
}

/// Reads the parameters of a registry row.
///
/// # Errors
/// If a value is out of range.
pub fn config(params: &Params<'_>) -> Result<Config, SpecError> {
    Ok(Config {
        monitor: monitor::Config {
            length: params.number("mi", 0.5, 10.0)?,
            min_packets: params.integer("mi-packets", 1, 1000)?,
            min_slope: params.number("min-slope", 0.0, 1.0)?,
            ..monitor::Config::default()
        },
        utility: Utility {
            a: 0.9, // MPCC s7.1
            b: params.number("loss-weight", 3.0, 1000.0)?,
            g: params.number("latency-weight", 0.0, 1e6)?,
            scale: params.choice("units", &[("mbit", 1.0), ("bytes", 125_000.0)])?,
        },
        omega: params.number("omega", 0.001, 0.5)?,
        theta: params.number("theta", 0.001, 1000.0)?,
        min_step: params.number("min-step", 0.0, 100.0)?,
        bound: params.number("bound", 0.001, 1.0)?,
        bound_step: params.number("bound-step", 0.0, 1.0)?,
        amplifier: Amplifier::Release,
        swing: u32::try_from(params.integer("swing", 0, 100)?).map_err(|_| params.bad_value("swing"))?,
        initial_rate: params.number("initial", 0.2, 1e5)?,
        min_rate: params.number("min-rate", 0.01, 100.0)?,
        initial_rtt: Duration::from_millis(100),
        slow_start: params.choice("slow-start", &[("paper", SlowStart::Paper), ("release", SlowStart::Release)])?,
        leave: params.choice("leave", &[("better", Leave::Better), ("last", Leave::Last)])?,
        publish: params.choice("publish", &[("mi", Publish::Interval), ("decision", Publish::Decision)])?,
        timeout: params.choice("timeout", &[("halve", OnTimeout::Halve), ("keep", OnTimeout::Keep)])?,
    })
}

/// MPCC for a connection.
#[derive(Debug)]
pub struct Mpcc {
    config: Config,
    seeds: Seeds,
    /// Indexed by subflow id.
    subflows: Vec<Option<Ascent>>,
    /// Sum of all published rates, Mbit/s.
    total: f64,
}

impl Mpcc {
    /// A controller without subflows.
    pub const fn new(config: Config, seeds: Seeds) -> Self {
        Self { config, seeds, subflows: Vec::new(), total: 0.0 }
    }

    /// Sums anew rather than adding differences, so that rounding errors do not build up.
    fn sum(&mut self) {
        self.total = self.subflows.iter().flatten().map(Ascent::published).sum();
    }

    /// Runs `act` on a subflow with the sum of the others' published rates.
    fn with(&mut self, id: SubflowId, act: impl FnOnce(&mut Ascent, f64)) {
        let Some(Some(own)) = self.subflows.get_mut(id.index()) else { return };
        let before = own.published();
        act(own, (self.total - before).max(0.0));
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
        self.sum();
    }

    fn remove_subflow(&mut self, _now: Time, id: SubflowId) {
        if let Some(slot) = self.subflows.get_mut(id.index()) {
            *slot = None;
            self.sum();
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        if let Some(own) = view.get(id) {
            self.with(id, |ascent, others| ascent.on_event(now, event, own, others));
        }
    }

    fn limits(&self, id: SubflowId) -> Limits {
        self.subflows.get(id.index()).and_then(Option::as_ref).map_or(Limits::NONE, Ascent::limits)
    }

    fn next_timer(&self) -> Option<Time> {
        self.subflows.iter().flatten().filter_map(Ascent::next_timer).min()
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        for subflow in &view.subflows {
            self.with(subflow.id, |ascent, others| {
                if ascent.next_timer().is_some_and(|at| at <= now) {
                    ascent.on_timer(now, others);
                }
            });
        }
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let Some(Some(own)) = self.subflows.get(id.index()) {
            own.inspect(out);
        }
    }
}
