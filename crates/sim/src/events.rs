//! What happens next: events ordered by (time, sequence number).
//!
//! Packets do not stand in this queue one by one. A link delivers in order, so its packets wait in a ring of their own
//! ([`crate::network`]), and only the first of each ring is compared with anything else. Links are known beforehand and each
//! has at most one such event: a tournament ([`Arrivals`]) orders them. Timers and the rest, which are rare, wait in [`Others`].
//! docs/decisions/event-queue.md has the measurements.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    /// This one of the subflows joins.
    Join(u32),
    /// Time series take their values.
    Sample,
    /// Summaries begin.
    WarmedUp,
}

impl Target {
    /// Whether it concerns more than one end.
    pub(crate) const fn concerns_many(self) -> bool {
        matches!(self, Self::Join(_) | Self::Sample | Self::WarmedUp)
    }
}

/// Bits of a key for the index of a target. Scenarios bound links, ends, subflows and sources far below 2^24.
const INDEX_BITS: u32 = 24;
/// Bits of a key for what kind of target it is.
const KIND_BITS: u32 = 3;
/// Bits of a key for the sequence number. It begins anew after 10^11 events, which is a day's work; of two events at the
/// very same nanosecond the later may then come first, in every run of the scenario.
pub(crate) const NUMBER_BITS: u32 = 64 - INDEX_BITS - KIND_BITS;

/// An event: when it happens, below that a number that grows with every event, so that events of one time happen in the
/// order in which they were scheduled, and below that its target. One number, because the queue does little but compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// After everything.
    const NEVER: Self = Self(u128::MAX);

    /// A key with its number, modulo 2^37.
    #[inline]
    pub(crate) fn new(at: Time, number: u64, target: Target) -> Self {
        let (kind, index) = match target {
            Target::Link(index) => (0, index),
            Target::Timer(index) => (1, index),
            Target::Application(index) => (2, index),
            Target::Source(index) => (3, index),
            Target::Sample => (4, 0),
            Target::WarmedUp => (5, 0),
            Target::Join(index) => (6, index),
        };
        debug_assert!(index >> INDEX_BITS == 0, "{target:?}");
        let number = number % (1 << NUMBER_BITS);
        let low = (number << KIND_BITS | kind) << INDEX_BITS | u64::from(index);
        Self(u128::from(at.as_nanos()) << 64 | u128::from(low))
    }

    /// The time.
    #[allow(clippy::cast_possible_truncation)] // the upper half of 128 bits
    pub(crate) const fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    /// The number, modulo 2^37.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower half of 128 bits
    pub(crate) const fn number(self) -> u64 {
        self.0 as u64 >> (INDEX_BITS + KIND_BITS)
    }

    /// The target.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    pub(crate) const fn target(self) -> Target {
        let index = self.0 as u32 % (1 << INDEX_BITS);
        match (self.0 >> INDEX_BITS) as u32 % (1 << KIND_BITS) {
            0 => Target::Link(index),
            1 => Target::Timer(index),
            2 => Target::Application(index),
            3 => Target::Source(index),
            4 => Target::Sample,
            5 => Target::WarmedUp,
            _ => Target::Join(index),
        }
    }
}

/// The next arrival of every link: a binary tree in which each node holds the earlier of its two children.
#[derive(Debug)]
struct Arrivals {
    /// The root at 1, the children of `n` at `2 n` and `2 n + 1`; the second half are the links.
    nodes: Vec<Key>,
}

impl Arrivals {
    fn new(links: usize) -> Self {
        Self { nodes: vec![Key::NEVER; links.next_power_of_two().max(1) * 2] }
    }

    #[inline]
    fn first(&self) -> Key {
        self.nodes[1]
    }

    #[inline]
    fn set(&mut self, link: u32, key: Key) {
        let mut node = self.nodes.len() / 2 + link as usize;
        self.nodes[node] = key;
        let mut winner = key;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = winner;
        }
    }
}

/// All events but arrivals. Timers that are set for keep-alive, many seconds ahead, stay when they are overtaken: thousands
/// for each connection. They come in the order in which they were set, so they wait in a ring that only its ends are read of,
/// and the heap, which is read all over, stays small.
#[derive(Debug)]
struct Others {
    /// Each of them after the one before it.
    ascending: VecDeque<Key>,
    rest: BinaryHeap<Reverse<Key>>,
    /// The first of them all.
    first: Key,
}

impl Others {
    const fn new() -> Self {
        Self { ascending: VecDeque::new(), rest: BinaryHeap::new(), first: Key::NEVER }
    }

    fn push(&mut self, key: Key) {
        if self.ascending.back().is_none_or(|last| *last < key) {
            self.ascending.push_back(key);
        } else {
            self.rest.push(Reverse(key));
        }
        self.first = self.first.min(key);
    }

    fn pop(&mut self) {
        if self.ascending.pop_front_if(|key| *key == self.first).is_none() {
            self.rest.pop();
        }
        let rest = self.rest.peek().map_or(Key::NEVER, |Reverse(key)| *key);
        self.first = self.ascending.front().map_or(rest, |key| rest.min(*key));
    }
}

/// The events to come.
#[derive(Debug)]
pub(crate) struct Events {
    arrivals: Arrivals,
    others: Others,
    next_number: u64,
}

impl Events {
    pub(crate) fn new(links: usize) -> Self {
        Self { arrivals: Arrivals::new(links), others: Others::new(), next_number: 0 }
    }

    /// A key for something that happens at `at`, after everything scheduled before for the same time.
    #[inline]
    pub(crate) fn key(&mut self, at: Time, target: Target) -> Key {
        let number = self.next_number;
        self.next_number += 1;
        Key::new(at, number, target)
    }

    /// Schedules anything but arrivals.
    pub(crate) fn schedule(&mut self, at: Time, target: Target) {
        let key = self.key(at, target);
        self.others.push(key);
    }

    /// Says what the next arrival of a link is now; `None`: nothing is under way there.
    #[inline]
    pub(crate) fn set_arrival(&mut self, link: u32, first: Option<Key>) {
        self.arrivals.set(link, first.unwrap_or(Key::NEVER));
    }

    /// What happens next, if it does not happen after `until`.
    #[inline]
    pub(crate) fn next(&self, until: Time) -> Option<Key> {
        let first = self.arrivals.first().min(self.others.first);
        (first.at() <= until && first != Key::NEVER).then_some(first)
    }

    /// Takes out the event that [`next`](Self::next) gave, which was no arrival.
    pub(crate) fn take(&mut self) {
        self.others.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut events = Events::new(3);
        let late = Time::from_millis(2);
        events.schedule(late, Target::Timer(7));
        let arrival = events.key(late, Target::Link(2));
        events.set_arrival(2, Some(arrival));
        events.schedule(late, Target::Source(8));
        events.schedule(Time::from_millis(1), Target::Sample);
        let mut seen = Vec::new();
        while let Some(key) = events.next(Time::MAX) {
            match key.target() {
                Target::Link(link) => events.set_arrival(link, None),
                _ => events.take(),
            }
            seen.push((key.at(), key.target()));
        }
        let expected = [Target::Timer(7), Target::Link(2), Target::Source(8)].map(|target| (late, target));
        assert_eq!(seen[0], (Time::from_millis(1), Target::Sample));
        assert_eq!(seen[1..], expected);
    }

    #[test]
    fn the_earliest_link_comes_first_whatever_changes() {
        let (mut events, mut expected) = (Events::new(13), vec![Key::NEVER; 13]);
        let mut state: u64 = 1;
        for _ in 0..2_000 {
            // Numbers that look random (Knuth's multiplier).
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let link = u32::try_from(state >> 33).unwrap() % 13;
            let key = events.key(Time::from_nanos(state >> 50), Target::Link(link));
            let first = (!state.is_multiple_of(3)).then_some(key);
            events.set_arrival(link, first);
            expected[link as usize] = first.unwrap_or(Key::NEVER);
            let earliest = *expected.iter().min().unwrap();
            assert_eq!(events.next(Time::MAX), (earliest != Key::NEVER).then_some(earliest));
            assert_eq!(events.next(Time::ZERO), None.or((earliest.at() == Time::ZERO).then_some(earliest)));
        }
    }

    #[test]
    fn keys_keep_their_targets() {
        let last = (1 << INDEX_BITS) - 1;
        for target in
            [Target::Link(0), Target::Timer(5), Target::Application(last), Target::Source(last), Target::Join(9)]
        {
            let key = Key::new(Time::from_nanos(u64::MAX - 1), (1 << NUMBER_BITS) + 77, target);
            assert_eq!((key.at(), key.number(), key.target()), (Time::from_nanos(u64::MAX - 1), 77, target));
        }
    }
}
