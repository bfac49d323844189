//! The scheduler for pacing-based congestion control of MPCC (s6).
//!
//! A paced controller's window is wide, so that the lowest-RTT rule alone would give everything to one subflow. Here a
//! subflow is unavailable while at least a share (10%) of what it sends in a round trip at its pacing rate is queued on
//! it and not sent. Among the available ones with room the lowest smoothed RTT sends; what was lost again prefers a
//! subflow that was not the last to carry it. Subflows without a pacing rate are governed by their window alone: then
//! this is `minrtt`.
//!
//! It waits while every usable subflow lacks room or has enough queued. What is queued is sent as time passes, which asks
//! again. A subflow with nothing queued is always available, so that a low rate never starves one.

use manypath_core::{Bytes, SubflowId, SubflowView, Time, View};

use crate::minrtt::{fastest_for_head, send_head};
use crate::queue::Queue;
use crate::reason;
use crate::rescue::Rescue;
use crate::scheduler::{Choice, Scheduler};

/// Why it waits while a subflow has room.
pub(crate) const ENOUGH_QUEUED: &str = "enough queued on every subflow with room";

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The share of pacing rate times smoothed RTT from which on a subflow has enough queued, in 0..=1. MPCC s6: 0.1.
    pub share: f64,
    /// Whether others carry copies of what a silent subflow holds, and a subflow with nothing to send of what a much slower one does
    /// (`rescue.rs`). MPCC: no.
    pub rescue: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { share: 0.1, rescue: false }
    }
}

impl Config {
    /// MPCC s6: the subflow has less than the share of a round trip's packets queued. Before the first RTT sample a
    /// round trip holds nothing: one segment at a time.
    pub(crate) fn is_available(&self, subflow: &SubflowView) -> bool {
        let Some(rate) = subflow.pacing else { return true };
        let round_trip = subflow.srtt.map_or(Bytes::ZERO, |srtt| rate * srtt);
        subflow.queued.is_zero() || subflow.queued.as_f64() < self.share * round_trip.as_f64()
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct RateBased {
    config: Config,
    rescue: Rescue,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl RateBased {
    /// A scheduler with these parameters.
    pub const fn new(config: Config) -> Self {
        Self { config, rescue: Rescue::NONE, reason: reason::NOTHING_YET }
    }
}

impl Scheduler for RateBased {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        let config = self.config;
        let available = |subflow: &SubflowView| config.is_available(subflow);
        if config.rescue
            && let Some(copy) = self.rescue.copy_of_silent(now, view, queue, available)
        {
            self.reason = reason::SILENT;
            return copy;
        }
        let choice = if queue.has_pending() {
            self.rescue.on_pending(queue);
            send_head(queue, fastest_for_head(view, queue, available))
        } else if config.rescue {
            self.rescue.choose(now, view, queue, available)
        } else {
            Choice::Wait
        };
        self.reason = match choice {
            Choice::Duplicate { .. } => reason::RESCUE,
            Choice::Wait if queue.has_pending() && view.usable().any(SubflowView::has_room) => ENOUGH_QUEUED,
            Choice::Wait => reason::of_wait(queue),
            _ => "lowest RTT with room and little queued",
        };
        choice
    }

    fn asks_at(&self) -> Option<Time> {
        self.rescue.due()
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.rescue.remove_subflow(id);
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, send, subflow, view};
    use manypath_core::Rate;

    /// 8.24 Mbit/s and 50 ms: a round trip holds 51,500 bytes, 50 segments of 1030; 10% are 5 segments.
    fn paced(id: u32, queued: u64) -> SubflowView {
        let mut subflow = subflow(id, 50, 1_000, 0);
        subflow.pacing = Some(Rate::from_bps(8_240_000.0));
        subflow.queued = Bytes::new(queued);
        subflow
    }

    fn pick(share: f64, view: &View) -> (Choice, &'static str) {
        let mut scheduler = RateBased::new(Config { share, ..Config::default() });
        let choice = scheduler.pick(Time::ZERO, view, &queue(10, 10));
        (choice, scheduler.reason())
    }

    #[test]
    fn a_subflow_with_a_tenth_of_a_round_trip_queued_is_unavailable() {
        let slower = subflow(1, 200, 10, 0);
        assert_eq!(pick(0.1, &view([paced(0, 5_149), slower.clone()])).0, send(0, 0));
        assert_eq!(pick(0.1, &view([paced(0, 5_150), slower])).0, send(1, 0));
        assert_eq!(pick(0.1, &view([paced(0, 5_150)])), (Choice::Wait, "enough queued on every subflow with room"));
    }

    #[test]
    fn the_share_is_a_parameter() {
        assert_eq!(pick(0.2, &view([paced(0, 10_299)])).0, send(0, 0));
        assert_eq!(pick(0.2, &view([paced(0, 10_300)])).0, Choice::Wait);
    }

    #[test]
    fn a_low_rate_sends_one_segment_at_a_time() {
        let mut slow = paced(0, 0);
        slow.pacing = Some(Rate::from_bps(1_000.0));
        assert_eq!(pick(0.1, &view([slow.clone()])).0, send(0, 0));
        slow.queued = slow.mss;
        assert_eq!(pick(0.1, &view([slow.clone()])).0, Choice::Wait);
        slow.queued = Bytes::ZERO;
        slow.srtt = None;
        assert_eq!(pick(0.0, &view([slow])).0, send(0, 0));
    }

    #[test]
    fn the_window_is_a_bound_too_and_alone_without_pacing() {
        let mut full = paced(0, 0);
        full.in_flight = full.cwnd;
        assert_eq!(pick(0.1, &view([full])), (Choice::Wait, "no subflow with room"));
        let mut clocked = paced(0, 900_000);
        clocked.pacing = None;
        assert_eq!(pick(0.1, &view([clocked])).0, send(0, 0));
    }
}
