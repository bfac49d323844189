//! Opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012, mechanisms 1 and 2; Linux MPTCP
//! `mptcp_rcv_buf_optimization`), shared by the schedulers that the kernel built with it.
//!
//! When the connection's window or the sender's memory is full and a subflow has room, the oldest segment that is not
//! acknowledged holds everything up. A slower subflow that carries it is penalised: its controller halves its window. And
//! if it is slow enough, the idle subflow carries a copy of the segment.

use manypath_core::{SubflowId, SubflowView, Time, View};

use crate::minrtt::fastest;
use crate::queue::{Queue, Segment};
use crate::scheduler::Choice;

/// What a slower subflow's window must exceed, in its segments, for the ratio of round-trip times to decide; a smaller
/// window always justifies a copy (kernel: 4).
const SMALL_WINDOW: u64 = 4;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Opportunistic {
    /// A copy is sent if this many times the idle subflow's RTT is less than the holder's (kernel: 4; the paper: 1).
    ratio: f64,
    /// By subflow: when it last had another one penalised.
    penalised_at: Vec<Option<Time>>,
}

/// The kernel's ratio of round-trip times.
pub(crate) const KERNEL_RATIO: f64 = 4.0;

/// Whether what can be sent is held up by what is not acknowledged: the receive window is full (trigger A), or
/// everything admitted was sent, since the window would forbid the rest, and the application waits for room in the
/// sender's memory (trigger B).
pub(crate) fn is_held_up(queue: &Queue) -> bool {
    !queue.has_pending() && (queue.is_window_blocked() || queue.writer_waits())
}

impl Opportunistic {
    pub(crate) const fn new(ratio: f64) -> Self {
        Self { ratio, penalised_at: Vec::new() }
    }

    /// A subflow was removed.
    pub(crate) fn remove_subflow(&mut self, id: SubflowId) {
        if let Some(last) = self.penalised_at.get_mut(id.index()) {
            *last = None;
        }
    }

    /// What to do about the segment that holds everything up; `None` if nothing is held up, or no subflow has room.
    pub(crate) fn choose(&mut self, now: Time, view: &View, queue: &Queue) -> Option<Choice> {
        if !is_held_up(queue) {
            return None;
        }
        let idle = fastest(view.usable().filter(|subflow| subflow.has_room()))?;
        let oldest = queue.oldest_unacked()?;
        let penalise = self.penalty(now, view, idle, oldest);
        Some(match penalise {
            _ if self.justifies_copy(view, idle, oldest) => {
                Choice::Duplicate { subflow: idle.id, range: queue.copy_of(oldest, idle.mss), penalise }
            }
            Some(subflow) => Choice::Penalise { subflow },
            None => Choice::Wait,
        })
    }

    /// The first other subflow that carried the segment, if it is slower and not in recovery, at most once per RTT of the idle
    /// one. Later versions of the kernel go on to the others.
    fn penalty(&mut self, now: Time, view: &View, idle: &SubflowView, oldest: &Segment) -> Option<SubflowId> {
        if self.penalised_at.len() < view.subflows.len() {
            self.penalised_at.resize(view.subflows.len(), None);
        }
        // The view holds the idle subflow, so its index is below the length.
        let last = &mut self.penalised_at[idle.id.index()];
        let srtt = idle.srtt?;
        // A round trip may be none at all on paths that take no time.
        if last.is_some_and(|last| last == now || now.since(last) < srtt) {
            return None;
        }
        let slower = |holder: &&SubflowView| holder.srtt.is_some_and(|held| srtt < held) && !holder.in_recovery;
        let holder = holders(view, idle, oldest).next().filter(slower)?;
        *last = Some(now);
        Some(holder.id)
    }

    /// The kernel's rule: the idle subflow did not carry the segment, and going through those that did, the first with a
    /// small window decides for a copy, the first that is not `ratio` times slower against it.
    fn justifies_copy(&self, view: &View, idle: &SubflowView, oldest: &Segment) -> bool {
        if oldest.was_carried_by(idle.id) {
            return false;
        }
        let Some(srtt) = idle.srtt else { return false };
        let mut justified = false;
        for holder in holders(view, idle, oldest) {
            if holder.cwnd <= holder.mss * SMALL_WINDOW {
                return true;
            }
            if holder.srtt.is_none_or(|held| srtt.mul_f64(self.ratio) >= held) {
                return false;
            }
            justified = true;
        }
        justified
    }
}

/// The other open subflows that carried the segment, in the order of ids.
fn holders<'a>(
    view: &'a View,
    idle: &'a SubflowView,
    oldest: &'a Segment,
) -> impl Iterator<Item = &'a SubflowView> + 'a {
    view.open().filter(|subflow| subflow.id != idle.id && oldest.was_carried_by(subflow.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, segments, subflow, view};
    use manypath_core::Duration;

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);

    /// The slow subflow holds the window's first segment, the fast one carried the rest and is idle.
    fn held_up() -> Queue {
        let mut queue = queue(10, 3);
        queue.on_assigned(Time::ZERO, segments(0, 1), SLOW);
        queue.on_assigned(Time::ZERO, segments(1, 2), FAST);
        queue.on_assigned(Time::ZERO, segments(2, 3), FAST);
        queue
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn copy(penalise: Option<SubflowId>) -> Option<Choice> {
        Some(Choice::Duplicate { subflow: FAST, range: segments(0, 1), penalise })
    }

    #[test]
    fn a_held_up_window_is_freed_by_a_copy_and_the_holder_penalised() {
        let mut pr = Opportunistic::new(KERNEL_RATIO);
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1)]);
        let mut queue = held_up();
        assert_eq!(pr.choose(at(0), &paths, &queue), copy(Some(SLOW)));
        // Carried out: nothing more to be done about this segment.
        queue.on_assigned(at(0), segments(0, 1), FAST);
        assert_eq!(pr.choose(at(0), &paths, &queue), Some(Choice::Wait));
        // A round trip of the idle subflow later the holder pays again.
        assert_eq!(pr.choose(at(19), &paths, &queue), Some(Choice::Wait));
        assert_eq!(pr.choose(at(20), &paths, &queue), Some(Choice::Penalise { subflow: SLOW }));
    }

    #[test]
    fn a_holder_is_penalised_once_where_round_trips_take_no_time() {
        let mut pr = Opportunistic::new(KERNEL_RATIO);
        let paths = view([subflow(0, 0, 10, 2), subflow(1, 20, 10, 1)]);
        let mut queue = held_up();
        queue.on_assigned(at(0), segments(0, 1), FAST);
        assert_eq!(pr.choose(at(1), &paths, &queue), Some(Choice::Penalise { subflow: SLOW }));
        assert_eq!(pr.choose(at(1), &paths, &queue), Some(Choice::Wait));
    }

    #[test]
    fn nothing_is_held_up_while_something_can_be_sent() {
        let mut pr = Opportunistic::new(KERNEL_RATIO);
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1)]);
        let mut open = held_up();
        open.on_copy_ended(segments(2, 3), FAST, false);
        assert_eq!(pr.choose(at(0), &paths, &open), None, "lost data can be sent");
        // All sent and room in memory: the application has nothing to say.
        let mut idle = queue(1, 3);
        idle.on_assigned(Time::ZERO, segments(0, 1), SLOW);
        assert_eq!(pr.choose(at(0), &paths, &idle), None);
        // All sent and the memory full: the application would have (trigger B).
        idle.set_writer_waits(true);
        assert_eq!(pr.choose(at(0), &paths, &idle), copy(Some(SLOW)));
    }

    #[test]
    fn a_holder_less_than_four_times_slower_is_penalised_only() {
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 80, 10, 1)]);
        let mut kernel = Opportunistic::new(KERNEL_RATIO);
        assert_eq!(kernel.choose(at(0), &paths, &held_up()), Some(Choice::Penalise { subflow: SLOW }));
        let mut paper = Opportunistic::new(1.0);
        assert_eq!(paper.choose(at(0), &paths, &held_up()), copy(Some(SLOW)));
        let mut slower = paths;
        slower.subflows[1].srtt = Some(Duration::from_millis(81));
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &slower, &held_up()), copy(Some(SLOW)));
    }

    #[test]
    fn a_holder_with_a_small_window_justifies_a_copy() {
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 30, 4, 1)]);
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &held_up()), copy(Some(SLOW)));
    }

    #[test]
    fn the_first_holder_that_decides_counts() {
        // The kernel goes through the holders: 4 * 20 < 200 speaks for a copy, 4 * 20 >= 60 decides against it.
        let mut paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1), subflow(2, 60, 10, 1)]);
        let mut queue = held_up();
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(2));
        let penalise = Some(Choice::Penalise { subflow: SLOW });
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &queue), penalise);
        // A small window of the first decides for it, before the second is asked.
        paths.subflows[1].cwnd = paths.subflows[1].mss * SMALL_WINDOW;
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &queue), copy(Some(SLOW)));
    }

    #[test]
    fn faster_and_recovering_holders_are_not_penalised() {
        let mut paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1)]);
        paths.subflows[1].in_recovery = true;
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &held_up()), copy(None));
        // The holder is the faster one, and full.
        let paths = view([subflow(0, 300, 10, 2), subflow(1, 200, 1, 1)]);
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &held_up()), copy(None), "a small window");
        let paths = view([subflow(0, 300, 10, 2), subflow(1, 200, 9, 9)]);
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &held_up()), Some(Choice::Wait));
    }

    #[test]
    fn the_first_other_holder_is_penalised_or_nobody() {
        let mut paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1), subflow(2, 300, 10, 1)]);
        let mut queue = held_up();
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(2));
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &queue), copy(Some(SLOW)));
        paths.subflows[1].in_recovery = true;
        assert_eq!(Opportunistic::new(KERNEL_RATIO).choose(at(0), &paths, &queue), copy(None));
    }

    #[test]
    fn the_next_owner_of_an_id_may_penalise_at_once() {
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 200, 10, 1)]);
        for name in ["minrtt-pr", "blest", "ecf"] {
            let mut scheduler = crate::create(&name.parse().unwrap()).unwrap();
            assert_eq!(scheduler.pick(at(0), &paths, &held_up()), copy(Some(SLOW)).unwrap(), "{name}");
            assert_eq!(scheduler.pick(at(1), &paths, &held_up()), copy(None).unwrap(), "{name}");
            scheduler.remove_subflow(FAST);
            assert_eq!(scheduler.pick(at(1), &paths, &held_up()), copy(Some(SLOW)).unwrap(), "{name}");
        }
    }
}
