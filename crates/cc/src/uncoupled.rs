//! A single-path algorithm on every subflow, each on its own.

use manypath_core::{SubflowId, Time, View};

use crate::controller::{CongestionControl, Limits, PathController, Probe, SubflowInit};
use crate::event::Event;
use crate::timers::Timers;

/// Lifts a [`PathController`] to a [`CongestionControl`] whose subflows know nothing of each other.
///
/// `n` such subflows on one bottleneck take about `n` times a single flow's share: the reason why coupling exists.
pub struct Uncoupled<C> {
    /// Indexed by subflow id.
    paths: Vec<Option<C>>,
    /// Makes the controller of a new subflow; the id is there to seed its randomness.
    make: Box<dyn Fn(Time, SubflowId, SubflowInit) -> C + Send>,
    timers: Timers,
}

impl<C: PathController> Uncoupled<C> {
    /// A controller that makes each subflow's own with `make`.
    pub fn new(make: impl Fn(Time, SubflowId, SubflowInit) -> C + Send + 'static) -> Self {
        Self { paths: Vec::new(), make: Box::new(make), timers: Timers::default() }
    }

    fn path(&self, id: SubflowId) -> Option<&C> {
        self.paths.get(id.index())?.as_ref()
    }
}

impl<C: core::fmt::Debug> core::fmt::Debug for Uncoupled<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Uncoupled").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl<C: PathController> CongestionControl for Uncoupled<C> {
    fn add_subflow(&mut self, now: Time, id: SubflowId, init: SubflowInit) {
        if self.paths.len() <= id.index() {
            self.paths.resize_with(id.index() + 1, || None);
        }
        self.paths[id.index()] = Some((self.make)(now, id, init));
        self.timers.set(id, None);
    }

    fn remove_subflow(&mut self, _now: Time, id: SubflowId) {
        if let Some(path) = self.paths.get_mut(id.index()) {
            *path = None;
            self.timers.set(id, None);
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        if let (Some(Some(path)), Some(own)) = (self.paths.get_mut(id.index()), view.get(id)) {
            path.on_event(now, event, own);
            self.timers.set(id, path.next_timer());
        }
    }

    fn answers_marks(&self) -> bool {
        C::ANSWERS_MARKS
    }

    fn limits(&self, id: SubflowId) -> Limits {
        self.path(id).map_or(Limits::NONE, PathController::limits)
    }

    fn next_timer(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        for (path, own) in self.paths.iter_mut().zip(&view.subflows) {
            if let Some(path) = path
                && self.timers.get(own.id).is_some_and(|at| at <= now)
            {
                path.on_timer(now, own);
                self.timers.set(own.id, path.next_timer());
            }
        }
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let Some(path) = self.path(id) {
            path.inspect(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Bytes, PacketNumber, SubflowView};

    use super::*;

    #[test]
    fn who_has_left_asks_for_no_time() {
        let mut vivace = crate::create(&"vivace".parse().unwrap(), 1).unwrap();
        let view = View { subflows: vec![SubflowView::new(SubflowId(0), Bytes::new(1000))] };
        let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
        vivace.add_subflow(Time::ZERO, SubflowId(0), init);
        let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
        vivace.on_event(Time::ZERO, SubflowId(0), &sent, &view);
        assert!(vivace.next_timer().is_some());
        vivace.remove_subflow(Time::ZERO, SubflowId(0));
        assert_eq!(vivace.next_timer(), None);
    }
}
