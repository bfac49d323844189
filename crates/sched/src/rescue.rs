//! Copies of what a silent subflow holds, and, while there is nothing else to send, of what a much slower one carries.
//!
//! A path that has gone away is given up after a quarter of a second. One that has been silent for its retransmission timeout
//! (`silence.rs`) may be back sooner, and may not: meanwhile the fastest of the others carries copies of what it holds, before
//! anything new, since all that is new waits for it.
//!
//! At the end of a transfer, or while the receive window or the sender's memory is full, the application waits for what a slow
//! subflow carries: a link of 1 Mbit/s may hold the last packets of a download for seconds. An idle subflow carries a copy of
//! what takes more than four of its own round trips, and 10 ms (it has waited for so long, or the holder's round trips last so
//! long), lowest first, each segment once.
//!
//! It is Raiciu et al.'s opportunistic retransmission (NSDI 2012, mechanism 1; [`crate::opportunistic`]) for more than the
//! oldest segment and for the end of a transfer, without the penalty: a controller that sends by rate has no window to halve.

use manypath_core::{Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::fastest;
use crate::opportunistic::{KERNEL_RATIO, is_held_up};
use crate::queue::{Queue, Segment};
use crate::scheduler::Choice;
use crate::silence::{LATE, Silence};

/// Segments that one decision looks at: more than the subflow that is idle has under way itself, for most.
const SCAN: usize = 1024;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Rescue {
    /// Since when nothing has been pending.
    since: Option<Time>,
    /// When what waits now has waited for long enough.
    due: Option<Time>,
    /// By subflow.
    silences: Vec<Silence>,
}

impl Rescue {
    /// Nothing waits.
    pub(crate) const NONE: Self = Self { since: None, due: None, silences: Vec::new() };

    /// When to ask again though nothing has happened: what the last call of [`choose`](Self::choose) left to wait is due for a
    /// copy then.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// See [`crate::scheduler::Scheduler::remove_subflow`].
    pub(crate) fn remove_subflow(&mut self, id: SubflowId) {
        if let Some(silence) = self.silences.get_mut(id.index()) {
            *silence = Silence::NONE;
        }
    }

    /// Something is pending. Repairs alone do not say that the writer has more.
    pub(crate) fn on_pending(&mut self, queue: &Queue) {
        if !queue.unsent().is_zero() {
            self.since = None;
        }
    }

    /// What comes before anything else: a copy of the lowest segment that a silent subflow holds, on the fastest of the
    /// others that is available and has room.
    pub(crate) fn copy_of_silent(
        &mut self,
        now: Time,
        view: &View,
        queue: &Queue,
        available: impl Fn(&SubflowView) -> bool,
    ) -> Option<Choice> {
        self.due = None;
        view.open().nth(1)?;
        self.silences.resize(view.subflows.len(), Silence::NONE);
        let mut any = false;
        for subflow in view.open() {
            let silence = &mut self.silences[subflow.id.index()];
            silence.add(now, subflow);
            match silence.begins(subflow) {
                Some(begins) if begins < now => any = true,
                Some(begins) => self.ask_at(later(begins)),
                None => {}
            }
        }
        if !any {
            return None;
        }
        let is_silent = |subflow: &SubflowView| self.silences[subflow.id.index()].lasts(now, subflow).is_some();
        let ready = |subflow: &&SubflowView| {
            subflow.srtt.is_some() && subflow.has_room() && !is_silent(subflow) && available(subflow)
        };
        let other = fastest(view.usable().filter(ready))?;
        let segment = queue.segments().take(SCAN).find(|held| {
            !held.acked && !held.was_carried_by(other.id) && view.get(held.last_subflow).is_some_and(is_silent)
        })?;
        Some(Choice::Duplicate { subflow: other.id, range: queue.copy_of(segment, other.mss), penalise: None })
    }

    /// What to do where nothing is pending, because the window is full or since a round trip: the fastest subflow that is
    /// available and has room copies the lowest segment that is worth it.
    pub(crate) fn choose(
        &mut self,
        now: Time,
        view: &View,
        queue: &Queue,
        available: impl Fn(&SubflowView) -> bool,
    ) -> Choice {
        if view.open().nth(1).is_none() {
            return Choice::Wait;
        }
        let known = |subflow: &&SubflowView| subflow.srtt.is_some() && subflow.has_room() && available(subflow);
        let idle = fastest(view.usable().filter(known));
        let Some((idle, srtt)) = idle.and_then(|idle| Some((idle, idle.srtt?))) else { return Choice::Wait };
        // A writer that is slower than the paths has nothing pending now and then.
        let dry = *self.since.get_or_insert(now) + srtt;
        if now < dry && !is_held_up(queue) {
            self.ask_at(dry);
            return Choice::Wait;
        }
        let long = srtt.mul_f64(KERNEL_RATIO).max(LATE);
        let round_trip = |segment: &Segment| view.get(segment.last_subflow).and_then(|holder| holder.srtt);
        for segment in queue.segments().take(SCAN).filter(|held| !held.acked && !held.was_carried_by(idle.id)) {
            let due = segment.sent_at + long;
            if due < now || round_trip(segment).is_some_and(|srtt| long < srtt) {
                let range = queue.copy_of(segment, idle.mss);
                return Choice::Duplicate { subflow: idle.id, range, penalise: None };
            }
            self.ask_at(later(due));
        }
        Choice::Wait
    }

    /// Asks again at `time`, if not sooner.
    fn ask_at(&mut self, time: Time) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }
}

/// The first moment after this one.
fn later(time: Time) -> Time {
    time + Duration::from_nanos(1)
}

#[cfg(test)]
mod tests {
    use manypath_core::Bytes;

    use super::*;
    use crate::testing::{queue, segments, subflow, view};

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);

    /// Nothing has been pending for long.
    fn dry() -> Rescue {
        Rescue { since: Some(Time::ZERO), ..Rescue::NONE }
    }

    /// What a scheduler does that has nothing to send, and when it asks again.
    fn pick(
        rescue: &mut Rescue,
        now: Time,
        paths: &View,
        queue: &Queue,
        available: impl Fn(&SubflowView) -> bool,
    ) -> (Choice, Option<Time>) {
        let copy = rescue.copy_of_silent(now, paths, queue, &available);
        let choice = copy.unwrap_or_else(|| rescue.choose(now, paths, queue, available));
        (choice, rescue.due())
    }

    #[test]
    fn every_segment_of_a_much_slower_subflow_is_copied_once_and_lowest_first() {
        let mut queue = queue(10, 4);
        for (segment, subflow) in [(0, FAST), (1, SLOW), (2, FAST), (3, SLOW)] {
            queue.on_assigned(Time::ZERO, segments(segment, segment + 1), subflow);
        }
        let paths = view([subflow(0, 20, 10, 2), subflow(1, 81, 10, 2)]);
        let (mut rescue, now) = (dry(), Time::from_millis(20));
        for segment in [1, 3] {
            let range = segments(segment, segment + 1);
            let copy = Choice::Duplicate { subflow: FAST, range, penalise: None };
            assert_eq!(pick(&mut rescue, now, &paths, &queue, |_| true).0, copy);
            assert_eq!(pick(&mut rescue, now, &paths, &queue, |subflow| subflow.id == SLOW).0, Choice::Wait);
            queue.on_assigned(Time::ZERO, range, FAST);
        }
        // It asks again once the fast one has owed an answer for too long.
        let silent = Time::from_millis(50) + Duration::from_nanos(1);
        assert_eq!(pick(&mut rescue, now, &paths, &queue, |_| true), (Choice::Wait, Some(silent)));
    }

    #[test]
    fn what_a_subflow_of_four_round_trips_carries_is_left_to_it_for_as_long() {
        let mut queue = queue(10, 1);
        queue.on_assigned(Time::ZERO, segments(0, 1), SLOW);
        let mut paths = view([subflow(0, 20, 10, 0), subflow(1, 80, 10, 1)]);
        let at = |paths: &View, time| pick(&mut dry(), time, paths, &queue, |_| true);
        let due = Time::from_millis(80) + Duration::from_nanos(1);
        let copy = Choice::Duplicate { subflow: FAST, range: segments(0, 1), penalise: None };
        for srtt in [paths.subflows[1].srtt, None] {
            // Also while nobody knows how long a round trip takes there.
            paths.subflows[1].srtt = srtt;
            assert_eq!(at(&paths, Time::from_millis(80)), (Choice::Wait, Some(due)));
            let silent = srtt.map(|srtt| due + srtt + LATE + Duration::from_nanos(1));
            assert_eq!(at(&paths, due), (copy, silent));
        }
        paths.subflows[0].srtt = Some(Duration::from_micros(100));
        assert_eq!(at(&paths, Time::from_millis(10)).0, Choice::Wait);
        assert_eq!(at(&paths, Time::from_millis(11)).0, copy);
        paths.subflows[0].srtt = None;
        assert_eq!(at(&paths, due), (Choice::Wait, None));
    }

    #[test]
    fn what_a_silent_subflow_holds_is_copied_once_and_lowest_first() {
        let mut queue = queue(3, 10);
        for (segment, subflow) in [(0, SLOW), (1, FAST), (2, FAST)] {
            queue.on_assigned(Time::ZERO, segments(segment, segment + 1), subflow);
        }
        let mut paths = view([subflow(0, 20, 10, 2), subflow(1, 60, 10, 1)]);
        let mut rescue = Rescue::NONE;
        let mut at =
            |ms: u64, paths: &View, queue: &Queue| pick(&mut rescue, Time::from_millis(ms), paths, queue, |_| true);
        assert_eq!(at(0, &paths, &queue), (Choice::Wait, Some(Time::from_millis(20))), "a pause of a round trip");
        // A round trip and what may delay the answer.
        let silent = Time::from_millis(30) + Duration::from_nanos(1);
        assert_eq!(at(30, &paths, &queue), (Choice::Wait, Some(silent)));
        for segment in [1, 2] {
            let range = segments(segment, segment + 1);
            let copy = Choice::Duplicate { subflow: SLOW, range, penalise: None };
            assert_eq!(at(31, &paths, &queue).0, copy);
            queue.on_assigned(Time::from_millis(31), range, SLOW);
        }
        assert_eq!(at(31, &paths, &queue).0, Choice::Wait);
        // Both are silent: nobody is left to carry copies.
        assert_eq!(at(71, &paths, &queue).0, Choice::Wait);
        paths.subflows[0].delivered = Bytes::new(1);
        let copy = Choice::Duplicate { subflow: FAST, range: segments(0, 1), penalise: None };
        assert_eq!(at(72, &paths, &queue).0, copy, "the fast one is heard");
    }

    #[test]
    fn a_writer_that_pauses_for_less_than_a_round_trip_causes_no_copies() {
        let fresh = queue(1, 10);
        let mut queue = queue(1, 10);
        queue.on_assigned(Time::ZERO, segments(0, 1), SLOW);
        let paths = view([subflow(0, 20, 10, 0), subflow(1, 300, 10, 1)]);
        let mut rescue = Rescue::NONE;
        let at = |ms: u64, rescue: &mut Rescue| pick(rescue, Time::from_millis(ms), &paths, &queue, |_| true);
        assert_eq!(at(100, &mut rescue), (Choice::Wait, Some(Time::from_millis(120))));
        rescue.on_pending(&fresh);
        assert_eq!(at(110, &mut rescue), (Choice::Wait, Some(Time::from_millis(130))));
        assert_eq!(at(129, &mut rescue).0, Choice::Wait);
        assert!(matches!(at(130, &mut rescue).0, Choice::Duplicate { .. }));
    }
}
