//! What happens next: events ordered by (time, sequence number).
//!
//! Packets do not stand in this queue one by one. A link delivers in order, so its packets wait in a ring of their own
//! ([`crate::network`]), and only the first of each ring stands here; the queue is as long as there are links and timers, not
//! packets. docs/decisions/event-queue.md has the measurements.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use manypath_core::Time;

/// Who is to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first packet of this link's ring arrives.
    Link(u32),
    /// A timer of this end may have come.
    Timer(u32),
    /// This connection's application acts.
    Application(u32),
    /// This source sends.
    Source(u32),
    /// Time series take their values.
    Sample,
    /// Summaries begin.
    WarmedUp,
}

/// When an event happens: the time, and below it a number that grows with every event, so that events of one time happen
/// in the order in which they were scheduled. One number, because the queue does little else but compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// The time.
    #[allow(clippy::cast_possible_truncation)] // the upper half of 128 bits
    pub(crate) const fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

/// An event; the later one is the lesser, since the queue gives the greatest first.
#[derive(Clone, Copy, Debug)]
struct Event {
    key: Key,
    target: Target,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// The events to come.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Event>,
    next_seq: u64,
}

impl Events {
    /// A key for something that happens at `at`, after everything scheduled before for the same time.
    pub(crate) fn key(&mut self, at: Time) -> Key {
        let seq = self.next_seq;
        self.next_seq += 1;
        Key(u128::from(at.as_nanos()) << 64 | u128::from(seq))
    }

    /// Schedules under a key that [`key`](Self::key) gave.
    pub(crate) fn push(&mut self, key: Key, target: Target) {
        self.heap.push(Event { key, target });
    }

    /// Schedules at a time.
    pub(crate) fn schedule(&mut self, at: Time, target: Target) {
        let key = self.key(at);
        self.push(key, target);
    }

    /// What happens next, if it does not happen after `until`.
    #[inline]
    pub(crate) fn next(&self, until: Time) -> Option<(Key, Target)> {
        let first = self.heap.peek()?;
        (first.key.at() <= until).then_some((first.key, first.target))
    }

    /// Takes the first event out, or moves it to `again`.
    #[inline]
    pub(crate) fn finish(&mut self, again: Option<Key>) {
        let Some(mut first) = self.heap.peek_mut() else { return };
        match again {
            Some(key) => first.key = key,
            None => {
                PeekMut::pop(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut events = Events::default();
        let late = Time::from_millis(2);
        events.schedule(late, Target::Timer(7));
        events.schedule(late, Target::Link(0));
        events.schedule(Time::from_millis(1), Target::Sample);
        let mut seen = Vec::new();
        while let Some((_, target)) = events.next(Time::MAX) {
            events.finish(None);
            seen.push(target);
        }
        assert_eq!(seen, [Target::Sample, Target::Timer(7), Target::Link(0)]);
    }

    #[test]
    fn a_moved_event_finds_its_place() {
        let mut events = Events::default();
        events.schedule(Time::from_millis(1), Target::Link(0));
        events.schedule(Time::from_millis(2), Target::Link(1));
        let later = events.key(Time::from_millis(3));
        events.finish(Some(later));
        let (key, target) = events.next(Time::MAX).unwrap();
        assert_eq!((key.at(), target), (Time::from_millis(2), Target::Link(1)));
        assert_eq!(events.next(Time::from_millis(1)), None);
    }
}
