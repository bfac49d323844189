//! Round robin: one segment on each usable subflow in turn.
//!
//! The simplest rule that uses every path, and a baseline to compare others with. A subflow without room is skipped and not
//! made up for later. It waits only while no usable subflow has room.

use manypath_core::{SubflowId, Time, View};

use crate::minrtt::send_head;
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    /// The subflow that sent last.
    last: Option<SubflowId>,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl RoundRobin {
    /// A scheduler whose first turn is the lowest id's.
    pub const fn new() -> Self {
        Self { last: None, reason: reason::NOTHING_YET }
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        let open = || view.usable().filter(|subflow| subflow.has_room());
        // The view is in the order of ids: the next higher one, or the lowest again.
        let next = open().find(|subflow| Some(subflow.id) > self.last).or_else(|| open().next());
        let choice = send_head(queue, next);
        if let Choice::Send { subflow, .. } = choice {
            self.last = Some(subflow);
            self.reason = "next in turn";
        } else {
            self.reason = reason::of_wait(queue);
        }
        choice
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, segments, send, subflow, view};

    /// The subflows that send `count` segments one after the other.
    fn turns(view: &View, count: u64) -> Vec<u32> {
        let mut queue = queue(count, count);
        let mut scheduler = RoundRobin::new();
        let mut turn = |segment| match scheduler.pick(Time::ZERO, view, &queue) {
            Choice::Send { subflow, range } => {
                assert_eq!(range, segments(segment, segment + 1));
                queue.on_assigned(Time::ZERO, range, subflow);
                subflow.0
            }
            other => panic!("{other:?}"),
        };
        (0..count).map(&mut turn).collect()
    }

    #[test]
    fn subflows_take_turns_whatever_their_rtt() {
        let view = view([subflow(0, 10, 9, 0), subflow(1, 100, 9, 0), subflow(2, 50, 9, 0)]);
        assert_eq!(turns(&view, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_full_subflow_is_skipped() {
        let view = view([subflow(0, 10, 9, 0), subflow(1, 100, 9, 9), subflow(2, 50, 9, 0)]);
        assert_eq!(turns(&view, 5), [0, 2, 0, 2, 0]);
    }

    #[test]
    fn it_waits_without_room_or_data() {
        let mut scheduler = RoundRobin::new();
        let full = view([subflow(0, 10, 9, 9)]);
        assert_eq!(scheduler.pick(Time::ZERO, &full, &queue(1, 1)), Choice::Wait);
        assert_eq!(scheduler.reason(), "no subflow with room");
        let open = view([subflow(0, 10, 9, 0)]);
        assert_eq!(scheduler.pick(Time::ZERO, &open, &queue(0, 1)), Choice::Wait);
        assert_eq!(scheduler.reason(), "nothing to send");
        assert_eq!(scheduler.pick(Time::ZERO, &open, &queue(1, 1)), send(0, 0));
    }
}
