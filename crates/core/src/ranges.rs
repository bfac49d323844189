//! Half-open ranges of data sequence numbers, and sorted sets of them.

use std::collections::VecDeque;

use crate::ids::DataSeq;

/// The sequence numbers from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataRange {
    /// First sequence number of the range.
    pub start: DataSeq,
    /// First sequence number after the range.
    pub end: DataSeq,
}

impl DataRange {
    /// The `len` sequence numbers from `start`.
    pub fn new(start: DataSeq, len: u64) -> Self {
        Self { start, end: start + len }
    }

    /// The sequence numbers from `start` to before `end`.
    pub const fn between(start: DataSeq, end: DataSeq) -> Self {
        Self { start, end }
    }

    /// How many sequence numbers the range holds.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the range holds nothing.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether `seq` lies in the range.
    pub fn contains(&self, seq: DataSeq) -> bool {
        self.start <= seq && seq < self.end
    }

    /// What both ranges hold; possibly empty.
    pub fn intersect(&self, other: &Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }
}

/// A set of sequence numbers as sorted, disjoint, non-touching ranges.
///
/// Made for sets that are few ranges long and change at their ends: a lookup is a binary search, a change of the lowest or
/// the highest range costs nothing more. Once grown to the connection's working size it does not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// The lowest range, which most sets have alone: kept here, it is read without a look into the ring. Empty when the set
    /// is, and then its default.
    first: DataRange,
    /// The ranges above it.
    rest: VecDeque<DataRange>,
    total: u64,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { first: DataRange::between(DataSeq::ZERO, DataSeq::ZERO), rest: VecDeque::new(), total: 0 }
    }

    /// How many ranges the set is made of.
    pub fn range_count(&self) -> usize {
        usize::from(!self.is_empty()) + self.rest.len()
    }

    /// How many sequence numbers the set holds.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Whether the set holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<DataRange> {
        (!self.is_empty()).then_some(self.first)
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<DataRange> {
        if self.rest.is_empty() { self.first() } else { self.rest.back().copied() }
    }

    /// The ranges in ascending order, and from the back in descending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = DataRange> + '_ {
        self.first().into_iter().chain(self.rest.iter().copied())
    }

    /// The range that holds `seq`, if any.
    pub fn range_at(&self, seq: DataSeq) -> Option<DataRange> {
        self.at_or_after(seq).filter(|range| range.start <= seq)
    }

    /// The first range that ends after `seq`: the one that holds it, or the next one above.
    #[inline]
    pub fn at_or_after(&self, seq: DataSeq) -> Option<DataRange> {
        self.at_or_after_near(seq, &mut 0)
    }

    /// The same for who asks for one sequence number after the other in ascending order: `near` is where the next is looked
    /// for first, whatever it holds, so that nothing is searched for. It begins as zero.
    #[inline]
    pub fn at_or_after_near(&self, seq: DataSeq, near: &mut usize) -> Option<DataRange> {
        if seq < self.first.end {
            *near = 0;
            return Some(self.first);
        }
        let last = self.rest.back().filter(|last| last.end > seq)?;
        if last.start <= seq {
            return Some(*last);
        }
        let ends_after = |index: usize| self.rest.get(index).is_some_and(|held| held.end > seq);
        if !ends_after(*near) || *near > 0 && ends_after(*near - 1) {
            *near = self.rest.partition_point(|held| held.end <= seq);
        }
        let found = self.rest.get(*near);
        *near += 1;
        found.copied()
    }

    /// Whether the set holds `seq`.
    pub fn contains(&self, seq: DataSeq) -> bool {
        self.range_at(seq).is_some()
    }

    /// Whether the set holds all of `range`.
    pub fn covers(&self, range: DataRange) -> bool {
        range.is_empty() || self.range_at(range.start).is_some_and(|held| held.end >= range.end)
    }

    /// Whether `range` overlaps a range of the set or lies next to one, so that adding it makes no range more.
    pub fn touches(&self, range: DataRange) -> bool {
        self.at_or_after(DataSeq(range.start.0.saturating_sub(1))).is_some_and(|held| held.start <= range.end)
    }

    /// Adds a range; returns how many sequence numbers were new.
    #[inline]
    pub fn insert(&mut self, range: DataRange) -> u64 {
        let added = if range.is_empty() {
            0
        } else if self.is_empty() {
            self.first = range;
            range.len()
        } else if range.start <= self.first.end {
            self.insert_low(range)
        } else {
            self.insert_high(range)
        };
        self.total += added;
        added
    }

    /// Adds a range that touches the first one or lies below it.
    fn insert_low(&mut self, range: DataRange) -> u64 {
        if range.end < self.first.start {
            self.rest.push_front(self.first);
            self.first = range;
            return range.len();
        }
        let mut held = self.first.len();
        self.first = DataRange::between(self.first.start.min(range.start), self.first.end.max(range.end));
        while let Some(next) = self.rest.front()
            && next.start <= self.first.end
        {
            held += next.len();
            self.first.end = self.first.end.max(next.end);
            self.rest.pop_front();
        }
        self.first.len() - held
    }

    /// Adds a range that lies above the first one.
    fn insert_high(&mut self, range: DataRange) -> u64 {
        // New ends need no search.
        match self.rest.back_mut() {
            Some(last) if last.end == range.start => {
                last.end = range.end;
                return range.len();
            }
            Some(last) if last.end >= range.start => {}
            _ => {
                self.rest.push_back(range);
                return range.len();
            }
        }
        // The ranges that overlap or touch: from the first that ends at or after our start to the last that starts at or
        // before our end.
        let from = self.rest.partition_point(|held| held.end < range.start);
        let to = self.rest.partition_point(|held| held.start <= range.end);
        if from == to {
            self.rest.insert(from, range);
            return range.len();
        }
        let mut merged = range;
        let mut held_before = 0;
        for held in self.rest.range(from..to) {
            merged.start = merged.start.min(held.start);
            merged.end = merged.end.max(held.end);
            held_before += held.len();
        }
        self.rest[from] = merged;
        if to > from + 1 {
            self.rest.drain(from + 1..to);
        }
        merged.len() - held_before
    }

    /// Takes a range out; returns how many sequence numbers were in the set.
    #[inline]
    pub fn remove(&mut self, range: DataRange) -> u64 {
        if range.is_empty() || self.is_empty() {
            return 0;
        }
        let removed = if self.first.start == range.start && self.first.end > range.end {
            self.first.start = range.end;
            range.len()
        } else {
            self.remove_low(range) + self.remove_high(range)
        };
        self.total -= removed;
        if self.first.is_empty() {
            self.first = self.rest.pop_front().unwrap_or_default();
        }
        removed
    }

    /// Takes a range out of the first one, which may be left empty.
    fn remove_low(&mut self, range: DataRange) -> u64 {
        let hit = self.first.intersect(&range);
        if hit.is_empty() {
            return 0;
        }
        let before = DataRange::between(self.first.start, hit.start);
        let after = DataRange::between(hit.end, self.first.end);
        if before.is_empty() {
            self.first = after;
        } else {
            self.first = before;
            if !after.is_empty() {
                self.rest.push_front(after);
            }
        }
        hit.len()
    }

    /// Takes a range out of those above the first one.
    fn remove_high(&mut self, range: DataRange) -> u64 {
        if self.rest.front().is_none_or(|lowest| range.end <= lowest.start) {
            return 0;
        }
        let from = self.rest.partition_point(|held| held.end <= range.start);
        let to = self.rest.partition_point(|held| held.start < range.end);
        if from >= to {
            return 0;
        }
        let first = self.rest[from];
        let last = self.rest[to - 1];
        let held: u64 = self.rest.range(from..to).map(DataRange::len).sum();
        let before = DataRange::between(first.start, range.start);
        let after = DataRange::between(range.end, last.end);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => drop(self.rest.drain(from..to)),
            (false, true) => {
                self.rest[from] = before;
                drop(self.rest.drain(from + 1..to));
            }
            (true, false) => {
                self.rest[to - 1] = after;
                drop(self.rest.drain(from..to - 1));
            }
            (false, false) if to - from == 1 => {
                self.rest[from] = before;
                self.rest.insert(to, after);
            }
            (false, false) => {
                self.rest[from] = before;
                self.rest[to - 1] = after;
                drop(self.rest.drain(from + 1..to - 1));
            }
        }
        let kept = if before.is_empty() { 0 } else { before.len() } + if after.is_empty() { 0 } else { after.len() };
        held - kept
    }

    /// Takes out everything below `seq`; returns how many sequence numbers that was.
    pub fn remove_below(&mut self, seq: DataSeq) -> u64 {
        let mut removed = 0;
        while !self.first.is_empty() && self.first.end <= seq {
            removed += self.first.len();
            self.first = self.rest.pop_front().unwrap_or_default();
        }
        if !self.first.is_empty() && self.first.start < seq {
            removed += seq - self.first.start;
            self.first.start = seq;
        }
        self.total -= removed;
        removed
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.first = DataRange::default();
        self.rest.clear();
        self.total = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u64, end: u64) -> DataRange {
        DataRange::between(DataSeq(start), DataSeq(end))
    }

    #[test]
    fn touching_ranges_merge() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(range(0, 10)), 10);
        assert_eq!(set.insert(range(20, 30)), 10);
        assert_eq!(set.insert(range(10, 20)), 10);
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(0, 30)]);
        assert_eq!(set.insert(range(5, 25)), 0);
    }

    #[test]
    fn removal_splits() {
        let mut set = RangeSet::new();
        set.insert(range(0, 30));
        assert_eq!(set.remove(range(10, 20)), 10);
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(0, 10), range(20, 30)]);
        assert_eq!(set.remove_below(DataSeq(25)), 15);
        assert_eq!(set.first(), Some(range(25, 30)));
        assert_eq!(set.total(), 5);
    }

    proptest! {
        /// The set behaves as an array of booleans does.
        #[test]
        fn equals_a_bitmap(operations in prop::collection::vec((0_u8..3, 0_u64..100, 0_u64..40), 1..60)) {
            let mut set = RangeSet::new();
            let mut bits = [false; 200];
            let mut near = 0;
            for (kind, start, len) in operations {
                let touched = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
                let around = bits[touched.start.saturating_sub(1)..=touched.end].contains(&true);
                prop_assert_eq!(set.touches(range(start, start + len)), around);
                prop_assert_eq!(set.covers(range(start, start + len)), !bits[touched.clone()].contains(&false));
                match kind {
                    0 => {
                        let added = bits[touched.clone()].iter().filter(|bit| !**bit).count() as u64;
                        prop_assert_eq!(set.insert(range(start, start + len)), added);
                        bits[touched].fill(true);
                    }
                    1 => {
                        let removed = bits[touched.clone()].iter().filter(|bit| **bit).count() as u64;
                        prop_assert_eq!(set.remove(range(start, start + len)), removed);
                        bits[touched].fill(false);
                    }
                    _ => {
                        set.remove_below(DataSeq(start));
                        bits[..touched.start].fill(false);
                    }
                }
                prop_assert_eq!(set.total(), bits.iter().filter(|bit| **bit).count() as u64);
                for (seq, bit) in bits.iter().enumerate() {
                    prop_assert_eq!(set.contains(DataSeq(seq as u64)), *bit);
                }
                let ranges: Vec<_> = set.iter().collect();
                prop_assert_eq!((set.first(), set.last()), (ranges.first().copied(), ranges.last().copied()));
                prop_assert_eq!(set.range_count(), ranges.len());
                for seq in (start..start + 2 * len).map(DataSeq) {
                    let expected = ranges.iter().find(|held| held.end > seq).copied();
                    prop_assert_eq!((set.at_or_after(seq), set.at_or_after_near(seq, &mut near)), (expected, expected));
                }
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            set.clear();
            prop_assert_eq!(set, RangeSet::new());
        }
    }
}
