//! Redundant: every subflow carries everything.
//!
//! Each subflow goes through the data in order at its own pace: it sends a copy of the lowest segment that it has not
//! carried and the receiver has not acknowledged, or new data where it has caught up. So the first copy to arrive
//! counts, and a slow subflow skips what arrived meanwhile. The goodput is that of the fastest path, the delay the
//! least of all. What a subflow loses it carries again, whether or not a copy is under way elsewhere: that may wait in
//! the queue of a path many times slower. Data whose every copy was lost goes first.
//!
//! Of several subflows with something to carry, the one with the lowest smoothed RTT goes first. It waits only while
//! every usable subflow lacks room or has carried all there is.

use manypath_core::{DataRange, DataSeq, SubflowId, SubflowView, Time, View};

use crate::minrtt::{fastest_for_head, send_head};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Redundant {
    /// By subflow: it has nothing to carry below this sequence number.
    next: Vec<DataSeq>,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Redundant {
    /// A scheduler that has given nothing to anyone.
    pub const fn new() -> Self {
        Self { next: Vec::new(), reason: reason::NOTHING_YET }
    }

    /// What the subflow carries next; `None` if it has carried all there is.
    fn next_of(&mut self, subflow: &SubflowView, queue: &Queue) -> Option<Choice> {
        // `pick` made room for every subflow of the view.
        let next = &mut self.next[subflow.id.index()];
        *next = (*next).max(queue.left_edge());
        let unsent = queue.unsent_ranges().next().map_or(queue.admitted(), |range| range.start);
        // What is skipped here is acknowledged or carried: it is not looked at again unless it is lost.
        let uncarried = queue.segments_from(*next).find(|held| !held.acked && !held.was_carried_by(subflow.id));
        match uncarried {
            Some(segment) if segment.range.start < unsent => {
                *next = (*next).max(segment.range.start);
                let range = queue.copy_of(segment, subflow.mss);
                Some(Choice::Duplicate { subflow: subflow.id, range, penalise: None })
            }
            _ => {
                *next = (*next).max(unsent);
                let range = queue.unsent_from(unsent, subflow.mss)?;
                Some(Choice::Send { subflow: subflow.id, range })
            }
        }
    }
}

impl Default for Redundant {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler for Redundant {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        if self.next.len() < view.subflows.len() {
            self.next.resize(view.subflows.len(), DataSeq::ZERO);
        }
        if !queue.lost().is_zero() {
            self.reason = "lost data first";
            let choice = send_head(queue, fastest_for_head(view, queue, |_| true));
            if choice == Choice::Wait {
                self.reason = reason::of_wait(queue);
            }
            return choice;
        }
        let mut best: Option<(&SubflowView, Choice)> = None;
        for subflow in view.usable().filter(|subflow| subflow.has_room()) {
            if best.as_ref().is_some_and(|(held, _)| held.srtt <= subflow.srtt) {
                continue;
            }
            if let Some(choice) = self.next_of(subflow, queue) {
                best = Some((subflow, choice));
            }
        }
        let choice = best.map_or(Choice::Wait, |(_, choice)| choice);
        self.reason = match choice {
            Choice::Send { .. } => "new data",
            Choice::Duplicate { .. } => "data not yet carried by this subflow",
            _ if !queue.has_pending() && !queue.is_empty() => "every subflow with room has carried all",
            _ => reason::of_wait(queue),
        };
        choice
    }

    fn on_lost(&mut self, id: SubflowId, range: DataRange) {
        if let Some(next) = self.next.get_mut(id.index()) {
            *next = (*next).min(range.start);
        }
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        if let Some(next) = self.next.get_mut(id.index()) {
            *next = DataSeq::ZERO;
        }
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

    fn copy(id: u32, segment: u64) -> Choice {
        Choice::Duplicate { subflow: SubflowId(id), range: segments(segment, segment + 1), penalise: None }
    }

    /// Picks and carries out.
    fn step(scheduler: &mut Redundant, view: &View, queue: &mut Queue) -> Choice {
        let choice = scheduler.pick(Time::ZERO, view, queue);
        if let Choice::Send { subflow, range } | Choice::Duplicate { subflow, range, .. } = choice {
            queue.on_assigned(Time::ZERO, range, subflow);
        }
        choice
    }

    #[test]
    fn every_subflow_carries_everything() {
        let (mut scheduler, mut queue) = (Redundant::new(), queue(2, 2));
        let paths = view([subflow(0, 100, 10, 0), subflow(1, 20, 10, 0)]);
        let steps: Vec<_> = (0..5).map(|_| step(&mut scheduler, &paths, &mut queue)).collect();
        assert_eq!(steps, [send(1, 0), send(1, 1), copy(0, 0), copy(0, 1), Choice::Wait]);
        assert_eq!(scheduler.reason(), "every subflow with room has carried all");
    }

    #[test]
    fn a_slow_subflow_skips_what_arrived() {
        let (mut scheduler, mut queue) = (Redundant::new(), queue(6, 6));
        let slow_is_full = view([subflow(0, 100, 10, 10), subflow(1, 20, 10, 0)]);
        for segment in 0..5 {
            assert_eq!(step(&mut scheduler, &slow_is_full, &mut queue), send(1, segment));
        }
        queue.advance_left_edge(DataSeq(2_000));
        queue.on_selective_ack(segments(3, 4));
        let fast_is_full = view([subflow(0, 100, 10, 0), subflow(1, 20, 10, 10)]);
        let steps: Vec<_> = (0..4).map(|_| step(&mut scheduler, &fast_is_full, &mut queue)).collect();
        // Caught up, the slow subflow carries new data, and then the fast one copies it.
        assert_eq!(steps, [copy(0, 2), copy(0, 4), send(0, 5), Choice::Wait]);
        assert_eq!(step(&mut scheduler, &slow_is_full, &mut queue), copy(1, 5));
    }

    #[test]
    fn a_subflow_carries_again_what_it_lost_though_another_still_does() {
        let (mut scheduler, mut queue) = (Redundant::new(), queue(3, 3));
        let paths = view([subflow(0, 100, 10, 0), subflow(1, 20, 10, 0)]);
        for _ in 0..6 {
            step(&mut scheduler, &paths, &mut queue);
        }
        assert_eq!(step(&mut scheduler, &paths, &mut queue), Choice::Wait);
        queue.on_copy_ended(segments(1, 2), SubflowId(1), false);
        scheduler.on_lost(SubflowId(1), segments(1, 2));
        assert!(queue.lost().is_zero(), "the other has it under way");
        assert_eq!(step(&mut scheduler, &paths, &mut queue), copy(1, 1));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), Choice::Wait);
    }

    #[test]
    fn data_lost_everywhere_goes_first() {
        let (mut scheduler, mut queue) = (Redundant::new(), queue(3, 3));
        let paths = view([subflow(0, 100, 10, 0), subflow(1, 20, 10, 0)]);
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 0));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 1));
        queue.on_copy_ended(segments(0, 1), SubflowId(1), false);
        scheduler.on_lost(SubflowId(1), segments(0, 1));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 0));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 2));
    }

    #[test]
    fn the_next_owner_of_an_id_begins_at_the_left_edge() {
        let (mut scheduler, mut queue) = (Redundant::new(), queue(2, 2));
        let paths = view([subflow(0, 100, 10, 10), subflow(1, 20, 10, 0)]);
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 0));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), send(1, 1));
        // Its data is under way on the other subflow, as the queue has it, when the path goes.
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(0));
        queue.on_assigned(Time::ZERO, segments(1, 2), SubflowId(0));
        queue.forget_carrier(SubflowId(1));
        scheduler.remove_subflow(SubflowId(1));
        assert_eq!(step(&mut scheduler, &paths, &mut queue), copy(1, 0));
    }
}
