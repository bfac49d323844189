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
/// Made for sets that are few ranges long and change at their ends: a lookup is a binary search, an insertion at either
/// end costs nothing more. Once grown to the connection's working size it does not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<DataRange>,
    total: u64,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: VecDeque::new(), total: 0 }
    }

    /// How many ranges the set is made of.
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// How many sequence numbers the set holds.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Whether the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<DataRange> {
        self.ranges.front().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<DataRange> {
        self.ranges.back().copied()
    }

    /// The ranges in ascending order, and from the back in descending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = DataRange> + ExactSizeIterator + '_ {
        self.ranges.iter().copied()
    }

    /// The range that holds `seq`, if any.
    pub fn range_at(&self, seq: DataSeq) -> Option<DataRange> {
        let index = self.first_ending_after(seq);
        self.ranges.get(index).copied().filter(|range| range.start <= seq)
    }

    /// The first range that ends after `seq`: the one that holds it, or the next one above.
    pub fn at_or_after(&self, seq: DataSeq) -> Option<DataRange> {
        self.ranges.get(self.first_ending_after(seq)).copied()
    }

    /// Whether the set holds `seq`.
    pub fn contains(&self, seq: DataSeq) -> bool {
        self.range_at(seq).is_some()
    }

    /// Whether the set holds all of `range`.
    pub fn covers(&self, range: DataRange) -> bool {
        range.is_empty() || self.range_at(range.start).is_some_and(|held| held.end >= range.end)
    }

    /// Adds a range; returns how many sequence numbers were new.
    pub fn insert(&mut self, range: DataRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        if let Some(last) = self.ranges.back_mut()
            && last.end == range.start
        {
            last.end = range.end;
            self.total += range.len();
            return range.len();
        }
        // New ends need no search either.
        if self.ranges.back().is_none_or(|last| last.end < range.start) {
            self.ranges.push_back(range);
            self.total += range.len();
            return range.len();
        }
        if self.ranges.front().is_some_and(|first| range.end < first.start) {
            self.ranges.push_front(range);
            self.total += range.len();
            return range.len();
        }
        // The ranges that overlap or touch: from the first that ends at or after our start to the last that starts at or
        // before our end.
        let from = self.ranges.partition_point(|held| held.end < range.start);
        let to = self.ranges.partition_point(|held| held.start <= range.end);
        if from == to {
            self.ranges.insert(from, range);
            self.total += range.len();
            return range.len();
        }
        let mut merged = range;
        let mut held_before = 0;
        for held in self.ranges.range(from..to) {
            merged.start = merged.start.min(held.start);
            merged.end = merged.end.max(held.end);
            held_before += held.len();
        }
        self.ranges[from] = merged;
        if to > from + 1 {
            self.ranges.drain(from + 1..to);
        }
        let added = merged.len() - held_before;
        self.total += added;
        added
    }

    /// Takes a range out; returns how many sequence numbers were in the set.
    pub fn remove(&mut self, range: DataRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        if let Some(last) = self.ranges.back_mut()
            && last.start == range.start
            && last.end > range.end
        {
            last.start = range.end;
            self.total -= range.len();
            return range.len();
        }
        let from = self.first_ending_after(range.start);
        let to = self.ranges.partition_point(|held| held.start < range.end);
        if from >= to {
            return 0;
        }
        let first = self.ranges[from];
        let last = self.ranges[to - 1];
        let held: u64 = self.ranges.range(from..to).map(DataRange::len).sum();
        let before = DataRange::between(first.start, range.start);
        let after = DataRange::between(range.end, last.end);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => drop(self.ranges.drain(from..to)),
            (false, true) => {
                self.ranges[from] = before;
                drop(self.ranges.drain(from + 1..to));
            }
            (true, false) => {
                self.ranges[to - 1] = after;
                drop(self.ranges.drain(from..to - 1));
            }
            (false, false) if to - from == 1 => {
                self.ranges[from] = before;
                self.ranges.insert(to, after);
            }
            (false, false) => {
                self.ranges[from] = before;
                self.ranges[to - 1] = after;
                drop(self.ranges.drain(from + 1..to - 1));
            }
        }
        let kept = if before.is_empty() { 0 } else { before.len() } + if after.is_empty() { 0 } else { after.len() };
        self.total -= held - kept;
        held - kept
    }

    /// Takes out everything below `seq`; returns how many sequence numbers that was.
    pub fn remove_below(&mut self, seq: DataSeq) -> u64 {
        let mut removed = 0;
        while let Some(first) = self.ranges.front_mut() {
            if first.end <= seq {
                removed += first.len();
                self.ranges.pop_front();
            } else {
                if first.start < seq {
                    removed += seq - first.start;
                    first.start = seq;
                }
                break;
            }
        }
        self.total -= removed;
        removed
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.total = 0;
    }

    fn first_ending_after(&self, seq: DataSeq) -> usize {
        match (self.ranges.front(), self.ranges.back()) {
            (Some(first), _) if first.end > seq => 0,
            (_, Some(last)) if last.end <= seq => self.ranges.len(),
            _ => self.ranges.partition_point(|held| held.end <= seq),
        }
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
            for (kind, start, len) in operations {
                let touched = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
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
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
