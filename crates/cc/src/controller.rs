//! The traits of congestion controllers.

use core::fmt::Debug;

use manypath_core::{Bytes, Rate, SubflowId, SubflowView, Time, View};

use crate::event::Event;

/// What is known of a subflow when it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowInit {
    /// The largest packet, in the bytes that windows count.
    pub mss: Bytes,
    /// The window before anything is known, for window-based controllers (RFC 6928: ten packets).
    pub initial_window: Bytes,
    /// The slow-start threshold of window-based controllers before the first loss; `None`: none (RFC 5681 s3.1: arbitrarily
    /// high).
    pub ssthresh: Option<Bytes>,
}

impl SubflowInit {
    /// A subflow without a threshold for its first slow start.
    pub const fn new(mss: Bytes, initial_window: Bytes) -> Self {
        Self { mss, initial_window, ssthresh: None }
    }

    /// The threshold in bytes; infinite if there is none.
    pub(crate) fn threshold(&self) -> f64 {
        self.ssthresh.map_or(f64::INFINITY, Bytes::as_f64)
    }
}

/// How fast a subflow may send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Congestion window: at most this much is in flight.
    pub cwnd: Bytes,
    /// Pacing rate; `None`: packets leave when the window lets them, as acknowledgements come or spread over a round trip (the
    /// session's choice).
    pub pacing: Option<Rate>,
    /// Slow-start threshold, for schedulers and traces; `None` for controllers without one.
    pub ssthresh: Option<Bytes>,
}

/// Receives the named values of a controller, for traces; never for control.
pub trait Probe {
    /// One value, in the unit its name ends with (`_bytes`, `_bps`, `_s`, none for pure numbers).
    fn value(&mut self, name: &'static str, value: f64);
}

/// A congestion controller for all subflows of a connection.
///
/// The session calls [`on_event`](Self::on_event) for facts of a subflow and then reads that subflow's limits again; after
/// [`add_subflow`](Self::add_subflow), [`remove_subflow`](Self::remove_subflow) and [`on_timer`](Self::on_timer) it reads
/// everyone's. An event may therefore change what a controller *knows* of other subflows, and the limits of its own.
///
/// Controllers do not fail: whatever the order of events, limits stay finite and positive.
pub trait CongestionControl: Debug + Send {
    /// A subflow joins. Its id is free: it was never used, or its last owner was removed.
    fn add_subflow(&mut self, now: Time, id: SubflowId, init: SubflowInit);

    /// A subflow is gone, with all it had in flight.
    fn remove_subflow(&mut self, now: Time, id: SubflowId);

    /// Something happened on a subflow. `view` is already up to date with the event, except where the event says not.
    /// Events of unknown subflows are ignored.
    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View);

    /// Whether [`Event::Sent`] changes anything. A controller that says no is spared these events, which are every second
    /// one.
    fn hears_departures(&self) -> bool {
        true
    }

    /// Whether [`Event::Ecn`] slows its subflow down as a loss would (RFC 3168 s5). Only then may packets say that they are
    /// ECN-capable: queues mark those where they drop others. The same for as long as the controller lives.
    fn answers_marks(&self) -> bool {
        false
    }

    /// How fast a subflow may send. Pure and cheap. For an unknown subflow: a window of zero.
    fn limits(&self, id: SubflowId) -> Limits;

    /// When [`on_timer`](Self::on_timer) wants to be called at the latest; monitor intervals end by time too.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time, _view: &View) {}

    /// Reports a subflow's internal values.
    fn inspect(&self, _id: SubflowId, _out: &mut dyn Probe) {}
}

/// A single-path congestion controller: one object per subflow, unaware of the others.
pub trait PathController: Debug + Send {
    /// As [`CongestionControl::answers_marks`].
    const ANSWERS_MARKS: bool = false;

    /// Something happened. `view` is the subflow's own.
    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView);

    /// How fast the subflow may send.
    fn limits(&self) -> Limits;

    /// As [`CongestionControl::next_timer`].
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// As [`CongestionControl::on_timer`].
    fn on_timer(&mut self, _now: Time, _view: &SubflowView) {}

    /// As [`CongestionControl::inspect`].
    fn inspect(&self, _out: &mut dyn Probe) {}
}

impl Limits {
    /// The limits of a subflow that does not exist.
    pub const NONE: Self = Self { cwnd: Bytes::ZERO, pacing: None, ssthresh: None };
}
