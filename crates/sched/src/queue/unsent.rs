//! The unsent data of a connection, with the position that has a given amount of unsent data before it.
//!
//! STMS sends on a slow path the data behind a gap of unsent data (s3.1), so the question "where are `n` unsent
//! bytes skipped?" comes with every packet of a slow path. Walking the list would cost more the longer the gap.
//!
//! The last stretch of unsent data, the *tail*, is kept apart: nearly all questions and all in-order traffic concern it,
//! at O(1). What lies below the tail are the holes between data that slow paths took: a Fenwick tree counts their bytes in
//! blocks of [`BLOCK`] sequence numbers, so that a position there costs O(log(gap)). The tree is a ring as long as
//! the holes reach, however much data is admitted.

use manypath_core::{DataRange, DataSeq, RangeSet};

/// Sequence numbers a block spans: about eleven full packets, so that few ranges lie within one block.
const BLOCK: u64 = 1 << 14;

/// The set of unsent sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsent {
    /// All of it.
    ranges: RangeSet,
    /// The last stretch, not counted by the tree; possibly empty. Nothing unsent lies above it.
    tail: DataRange,
    /// Fenwick tree, first element unused: unsent bytes below the tail by `block % slots`; the number of slots is zero or
    /// a power of two. Sums wrap, as differences of sums do.
    tree: Vec<u64>,
}

impl Unsent {
    pub(super) const fn new() -> Self {
        Self { ranges: RangeSet::new(), tail: DataRange::between(DataSeq::ZERO, DataSeq::ZERO), tree: Vec::new() }
    }

    /// The ranges themselves.
    pub(super) const fn ranges(&self) -> &RangeSet {
        &self.ranges
    }

    /// Adds `range`, which lies above everything ever added.
    pub(super) fn push(&mut self, range: DataRange) {
        self.ranges.insert(range);
        if self.tail.is_empty() {
            self.tail = range;
        } else if self.tail.end == range.start {
            self.tail.end = range.end;
        } else {
            let hole = core::mem::replace(&mut self.tail, range);
            self.count(hole);
        }
    }

    /// Takes `range` out; returns how much of it was unsent.
    pub(super) fn remove(&mut self, range: DataRange) -> u64 {
        let below = range.intersect(&DataRange::between(DataSeq::ZERO, self.tail.start));
        let mut seq = below.start;
        while seq < below.end
            && let Some(held) = self.ranges.at_or_after(seq)
        {
            let piece = held.intersect(&below);
            if !piece.is_empty() {
                self.add(piece, u64::wrapping_neg);
            }
            seq = held.end;
        }
        let piece = range.intersect(&self.tail);
        let removed = self.ranges.remove(range);
        if piece.is_empty() {
        } else if piece.start == self.tail.start {
            self.tail.start = piece.end;
        } else {
            let hole = DataRange::between(self.tail.start, piece.start);
            if piece.end == self.tail.end {
                self.tail = hole;
            } else {
                self.tail.start = piece.end;
                self.count(hole);
            }
        }
        removed
    }

    /// The unsent sequence number that has `skip` unsent ones below it.
    pub(super) fn at(&self, skip: u64) -> Option<DataSeq> {
        let below = self.ranges.total() - if self.tail.is_empty() { 0 } else { self.tail.len() };
        if skip >= below {
            let seq = self.tail.start + (skip - below);
            return (seq < self.tail.end).then_some(seq);
        }
        let lowest = self.ranges.first()?.start.0 / BLOCK;
        let slots = self.slots();
        // In the order of the ring, which begins at the slot of the lowest block and wraps.
        let target = self.sum_before(lowest % slots) + skip;
        let (slot, mut rest) = self.find(if target < below { target } else { target - below });
        let block = lowest + (slot + slots - lowest % slots) % slots;
        let mut seq = DataSeq((block * BLOCK).max(self.ranges.first()?.start.0));
        loop {
            let held = self.ranges.at_or_after(seq)?;
            let start = held.start.max(seq);
            if rest < held.end - start {
                return Some(start + rest);
            }
            rest -= held.end - start;
            seq = held.end;
        }
    }

    fn slots(&self) -> u64 {
        self.tree.len().saturating_sub(1) as u64
    }

    /// Counts a range that has just come to lie below the tail; `ranges` holds it already.
    fn count(&mut self, hole: DataRange) {
        let lowest = self.ranges.first().map_or(hole.start, |first| first.start.min(hole.start)).0 / BLOCK;
        let reach = (hole.end.0 - 1) / BLOCK - lowest + 1;
        if reach <= self.slots() {
            self.add(hole, |len| len);
            return;
        }
        // Room for twice the reach, so that growth is rare; then everything below the tail is counted anew.
        let slots = usize::try_from(reach.saturating_mul(2).next_power_of_two()).unwrap_or(usize::MAX);
        self.tree.clear();
        self.tree.resize(slots.saturating_add(1), 0);
        let mut seq = DataSeq::ZERO;
        while let Some(held) = self.ranges.at_or_after(seq)
            && held.end <= hole.end
        {
            self.add(held, |len| len);
            seq = held.end;
        }
    }

    /// Adds `change` of the length of every part of `range` to its block.
    fn add(&mut self, range: DataRange, change: impl Fn(u64) -> u64) {
        let slots = self.slots();
        let mut start = range.start.0;
        while start < range.end.0 {
            let block = start / BLOCK;
            let end = range.end.0.min((block + 1) * BLOCK);
            let mut node = block % slots + 1;
            while node <= slots {
                // `node` is at most the number of slots, which is below the tree's length.
                #[allow(clippy::cast_possible_truncation)]
                let held = &mut self.tree[node as usize];
                *held = held.wrapping_add(change(end - start));
                node += node & node.wrapping_neg();
            }
            start = end;
        }
    }

    /// The sum of the slots before `slot`.
    fn sum_before(&self, slot: u64) -> u64 {
        let mut sum: u64 = 0;
        let mut node = slot;
        while node > 0 {
            // `node` is at most the number of slots, which is below the tree's length.
            #[allow(clippy::cast_possible_truncation)]
            let held = self.tree[node as usize];
            sum = sum.wrapping_add(held);
            node &= node - 1;
        }
        sum
    }

    /// The slot in which the running sum first exceeds `target`, and how far into it.
    fn find(&self, target: u64) -> (u64, u64) {
        let mut slot = 0;
        let mut rest = target;
        let mut step = self.slots();
        while step > 0 {
            // `slot + step` is at most the number of slots, which is below the tree's length.
            #[allow(clippy::cast_possible_truncation)]
            let node = self.tree.get((slot + step) as usize);
            if let Some(sum) = node
                && *sum <= rest
            {
                slot += step;
                rest -= sum;
            }
            step /= 2;
        }
        (slot, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Positions are those that counting the set from its front finds, in every mixture of sending in order, sending
        /// behind a gap, and admitting; blocks are crossed and the ring wraps and grows.
        #[test]
        fn positions_equal_a_walk_from_the_front(
            operations in prop::collection::vec((0_u8..4, 0_u64..200_000, 1_u64..60_000), 1..120),
        ) {
            let mut unsent = Unsent::new();
            let mut admitted = DataSeq::ZERO;
            for (kind, at, len) in operations {
                match kind {
                    0 => {
                        unsent.push(DataRange::new(admitted, len));
                        admitted += len;
                    }
                    1 => {
                        if let Some(first) = unsent.ranges().first() {
                            unsent.remove(DataRange::new(first.start, len.min(first.len())));
                        }
                    }
                    _ => {
                        if let Some(start) = unsent.at(at) {
                            let held = unsent.ranges().range_at(start).unwrap();
                            unsent.remove(DataRange::between(start, held.end.min(start + len / 20 + 1)));
                        }
                    }
                }
                let mut before = 0;
                for range in unsent.ranges().iter() {
                    for inside in [0, range.len() / 2, range.len() - 1] {
                        prop_assert_eq!(unsent.at(before + inside), Some(range.start + inside));
                    }
                    before += range.len();
                }
                prop_assert_eq!(unsent.at(before), None);
            }
        }
    }

    #[test]
    fn a_huge_admission_costs_no_memory() {
        let mut unsent = Unsent::new();
        unsent.push(DataRange::new(DataSeq::ZERO, 1 << 50));
        assert_eq!(unsent.at(1 << 40), Some(DataSeq(1 << 40)));
        unsent.remove(DataRange::new(DataSeq(100_000), 1_000));
        assert_eq!(unsent.at(99_999), Some(DataSeq(99_999)));
        assert_eq!(unsent.at(100_000), Some(DataSeq(101_000)));
        assert!(unsent.tree.len() < 64);
    }
}
