//! Lowest RTT first with opportunistic retransmission and penalisation: the default of the out-of-tree Linux MPTCP, and
//! what STMS s5 calls "Default".
//!
//! [`minrtt`](crate::minrtt) decides while anything can be sent. When the receive window, or the sender's memory, is full of
//! data that waits for its oldest segment, the subflow with room and the lowest RTT has the slower holder of that
//! segment penalised (once per its own RTT) and carries a copy of it, if the holder is more than four times slower or has
//! a window of at most four segments. Over datagrams a subflow holds the segment no longer once it has lost it: what is lost
//! goes wherever there is room, and may come back to it as a copy. The kernel's subflows are TCP's, which send again
//! themselves, and so do those of the simulator with `transport = "tcp"`. It waits while no usable subflow has room, or
//! none of this applies.
//!
//! Of the kernel's versions this is the one that penalises the first holder only (0a7e92d). The factor of four is the
//! kernel's refinement: Raiciu et al. copy whenever the window is full, which `ratio=1` does.

use manypath_core::{SubflowId, Time, View};

use crate::minrtt::{fastest_for_head, send_head};
use crate::opportunistic::{KERNEL_RATIO, Opportunistic};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How many times longer than the idle subflow's the holder's RTT must be for a copy; at least 1. Kernel: 4.
    pub ratio: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { ratio: KERNEL_RATIO }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct MinRttPr {
    opportunistic: Opportunistic,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl MinRttPr {
    /// A scheduler with these parameters.
    pub const fn new(config: Config) -> Self {
        Self { opportunistic: Opportunistic::new(config.ratio), reason: reason::NOTHING_YET }
    }
}

impl Scheduler for MinRttPr {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if queue.has_pending() {
            let choice = send_head(queue, fastest_for_head(view, queue, |_| true));
            self.reason = if choice == Choice::Wait { reason::of_wait(queue) } else { "lowest RTT with room" };
            return choice;
        }
        let choice = self.opportunistic.choose(now, view, queue).unwrap_or(Choice::Wait);
        self.reason = reason::of_rescue(choice, queue);
        choice
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.opportunistic.remove_subflow(id);
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, segments, send, subflow, view};
    use manypath_core::SubflowId;

    #[test]
    fn it_is_minrtt_until_the_window_is_full() {
        let mut scheduler = MinRttPr::new(Config::default());
        let paths = view([subflow(0, 20, 10, 0), subflow(1, 200, 10, 0)]);
        let mut queue = queue(10, 2);
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), send(0, 0));
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(1));
        queue.on_assigned(Time::ZERO, segments(1, 2), SubflowId(0));
        let rescue = Choice::Duplicate { subflow: SubflowId(0), range: segments(0, 1), penalise: Some(SubflowId(1)) };
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), rescue);
        assert_eq!(scheduler.reason(), "window held up: copy of the oldest segment");
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(0));
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), Choice::Wait);
        assert_eq!(scheduler.reason(), "receive window full");
    }
}
