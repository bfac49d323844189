//! Acknowledgements as carriers exchange them, with the session's attached.

use manypath_core::{DataRange, DataSeq};
use manypath_session::Record;
use manypath_session::record::{Ack, MAX_ACK_RANGES};

use crate::packet::Slab;

/// The most ranges of packet numbers that an acknowledgement lists; QUIC's fit into a datagram as well.
pub(crate) const MAX_NUMBER_RANGES: usize = 16;

/// Packet numbers that have arrived, as an acknowledgement lists them: the highest range first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    ranges: [(u64, u64); MAX_NUMBER_RANGES],
    len: usize,
}

impl Numbers {
    pub(crate) const NONE: Self = Self { ranges: [(0, 0); MAX_NUMBER_RANGES], len: 0 };

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a range, first and one past the last; what does not fit is left out.
    pub(crate) fn push(&mut self, range: (u64, u64)) {
        if let Some(slot) = self.ranges.get_mut(self.len) {
            *slot = range;
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges[..self.len]
    }
}

/// A carrier's acknowledgement with the session's attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarrierAck {
    /// Packet numbers that have arrived.
    pub(crate) numbers: Numbers,
    /// QUIC: how long the highest number waited for this acknowledgement, nanoseconds. TCP: the time stamp that it echoes
    /// (RFC 7323 s3.2), microseconds modulo 2^32.
    pub(crate) timing: u64,
    /// Packets that arrived with a congestion mark so far.
    pub(crate) marked: u64,
    /// The session's: a [`Record::Ack`], kept as the session takes it, since copies of so large a record cost.
    pub(crate) data: Record,
}

impl CarrierAck {
    /// An acknowledgement of nothing.
    pub(crate) fn blank() -> Self {
        Self { numbers: Numbers::NONE, timing: 0, marked: 0, data: Record::Ack(Ack::default()) }
    }
}

/// An acknowledgement without its ranges of data, and with one range of packet numbers, as nearly all have it. Packed like
/// [`crate::packet::DataPacket`].
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
struct Head {
    /// One past the highest packet number, and how many it is the last of.
    end: u64,
    count: u32,
    timing: u32,
    /// The session's left edge, and how far its window reaches from there.
    left: DataSeq,
    window: u32,
    marked: u16,
}

impl Head {
    /// The same in short, where that can be said, and the ranges of data.
    fn of(ack: &CarrierAck) -> Option<(Self, &[DataRange])> {
        let Record::Ack(data) = &ack.data else { return None };
        let &[(first, end)] = ack.numbers.as_slice() else { return None };
        let head = Self {
            end,
            count: short(end - first)?,
            timing: short(ack.timing)?,
            left: data.left,
            window: short(data.window_end - data.left)?,
            marked: u16::try_from(ack.marked).ok()?,
        };
        Some((head, data.ranges.as_slice()))
    }

    /// Writes it out in full, with its ranges of data.
    #[inline]
    fn write(&self, ranges: impl IntoIterator<Item = Above>, ack: &mut CarrierAck) {
        ack.numbers.clear();
        ack.numbers.push((self.end - u64::from(self.count), self.end));
        ack.timing = u64::from(self.timing);
        ack.marked = u64::from(self.marked);
        if let Record::Ack(data) = &mut ack.data {
            data.left = self.left;
            data.window_end = self.left + u64::from(self.window);
            data.ranges.clear();
            data.ranges.extend(ranges.into_iter().map(|range| range.above(self.left)));
        }
    }
}

/// A range of data: how far above the left edge it begins, and its length.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
struct Above {
    gap: u32,
    len: u32,
}

impl Above {
    /// No range.
    const NONE: Self = Self { gap: 0, len: 0 };

    fn of(range: DataRange, left: DataSeq) -> Option<Self> {
        Some(Self { gap: short(range.start - left)?, len: short(range.len())? })
    }

    fn above(self, left: DataSeq) -> DataRange {
        DataRange::new(left + u64::from(self.gap), u64::from(self.len))
    }
}

fn short(value: u64) -> Option<u32> {
    u32::try_from(value).ok()
}

/// An acknowledgement small enough to travel in the packet: one range of packet numbers, at most one range of data above
/// the left edge.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
pub(crate) struct ShortAck {
    head: Head,
    /// Without length if there is none.
    range: Above,
}

impl ShortAck {
    /// The same in short, where that can be said.
    pub(crate) fn of(ack: &CarrierAck) -> Option<Self> {
        let (head, ranges) = Head::of(ack)?;
        let range = match ranges {
            [] => Above::NONE,
            [range] => Above::of(*range, head.left)?,
            _ => return None,
        };
        Some(Self { head, range })
    }

    /// Writes it out in full.
    #[inline]
    pub(crate) fn write(&self, ack: &mut CarrierAck) {
        let Self { head, range } = *self;
        head.write((range.len > 0).then_some(range), ack);
    }
}

/// The most ranges of data that a [`Few`] holds.
const FEW: usize = 8;

/// A few ranges of data, in one line of the cache: what acknowledgements list where paths differ in their delay and nothing is
/// lost. With many connections they are a third of all, and what they say lies in memory that no cache holds.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Few([Above; FEW]);

impl Few {
    /// Nothing.
    pub(crate) const BLANK: Self = Self([Above::NONE; FEW]);
}

/// An acknowledgement of one range of packet numbers and a few ranges of data, which wait elsewhere.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
pub(crate) struct FewAck {
    head: Head,
    len: u8,
    /// The place of its ranges.
    pub(crate) slot: u32,
}

impl FewAck {
    /// The same with its ranges in `held`, which stands at `slot`, where that can be said.
    pub(crate) fn of(ack: &CarrierAck, few: &mut Slab<Few>) -> Option<Self> {
        let (head, ranges) = Head::of(ack)?;
        let last = ranges.iter().map(|range| range.end).max().filter(|_| ranges.len() <= FEW)?;
        short(last - head.left)?;
        let (slot, Few(held)) = few.take(&Few::BLANK);
        for (held, range) in held.iter_mut().zip(ranges) {
            *held = Above::of(*range, head.left).unwrap_or(Above::NONE);
        }
        // At most eight.
        Some(Self { head, len: u8::try_from(ranges.len()).unwrap_or(0), slot })
    }

    /// Writes it out in full.
    pub(crate) fn write(&self, few: &Slab<Few>, ack: &mut CarrierAck) {
        let Self { head, len, slot } = *self;
        let Few(ranges) = few.get(slot);
        head.write(ranges.iter().take(usize::from(len)).copied(), ack);
    }
}

/// An acknowledgement of any length, as it waits on its way. Only what is in use of it is written and read: where paths are
/// out of step and much is lost many are of this kind, and no cache holds all that is in flight.
#[derive(Clone, Debug)]
#[repr(C)] // What says how much is in use stands before it, in the same line of the cache.
pub(crate) struct LongAck {
    timing: u64,
    marked: u64,
    left: DataSeq,
    window_end: DataSeq,
    /// How many of the ranges are of packet numbers, and how many of data behind them.
    numbers: usize,
    data: usize,
    ranges: [DataRange; MAX_NUMBER_RANGES + MAX_ACK_RANGES],
}

impl LongAck {
    /// An acknowledgement of nothing.
    pub(crate) const BLANK: Self = Self {
        timing: 0,
        marked: 0,
        left: DataSeq::ZERO,
        window_end: DataSeq::ZERO,
        numbers: 0,
        data: 0,
        ranges: [DataRange::between(DataSeq::ZERO, DataSeq::ZERO); MAX_NUMBER_RANGES + MAX_ACK_RANGES],
    };

    /// Takes what an acknowledgement says.
    pub(crate) fn set(&mut self, ack: &CarrierAck) {
        let Record::Ack(data) = &ack.data else { return };
        (self.timing, self.marked) = (ack.timing, ack.marked);
        (self.left, self.window_end) = (data.left, data.window_end);
        let (numbers, ranges) = (ack.numbers.as_slice(), data.ranges.as_slice());
        (self.numbers, self.data) = (numbers.len(), ranges.len());
        let (held, rest) = self.ranges.split_at_mut(numbers.len());
        for (held, (first, end)) in held.iter_mut().zip(numbers) {
            *held = DataRange::between(DataSeq(*first), DataSeq(*end));
        }
        rest[..ranges.len()].copy_from_slice(ranges);
    }

    /// Writes it out in full.
    pub(crate) fn write(&self, ack: &mut CarrierAck) {
        let (numbers, rest) = self.ranges.split_at(self.numbers);
        ack.numbers.clear();
        numbers.iter().for_each(|range| ack.numbers.push((range.start.0, range.end.0)));
        (ack.timing, ack.marked) = (self.timing, self.marked);
        if let Record::Ack(data) = &mut ack.data {
            (data.left, data.window_end) = (self.left, self.window_end);
            data.ranges.clear();
            data.ranges.extend(rest.iter().take(self.data).copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(numbers: &[(u64, u64)], ranges: &[(u64, u64)]) -> CarrierAck {
        let mut ack = CarrierAck::blank();
        numbers.iter().for_each(|range| ack.numbers.push(*range));
        (ack.timing, ack.marked) = (5_000_000, 3);
        let mut data = Ack { left: DataSeq(1_000), window_end: DataSeq(17_000_000), ..Ack::default() };
        for (start, len) in ranges {
            data.ranges.push(DataRange::new(DataSeq(*start), *len));
        }
        ack.data = Record::Ack(data);
        ack
    }

    #[test]
    fn short_acknowledgements_say_the_same() {
        for ranges in [&[] as &[(u64, u64)], &[(2_000, 1_414)]] {
            let ack = full(&[(7, 12_345)], ranges);
            let mut written = full(&[(1, 2), (4, 5)], &[(7_000, 8), (9_000, 8)]);
            ShortAck::of(&ack).unwrap().write(&mut written);
            assert_eq!(written.numbers.as_slice(), ack.numbers.as_slice());
            assert_eq!((written.timing, written.marked), (ack.timing, ack.marked));
            assert_eq!(written.data, ack.data);
        }
    }

    #[test]
    fn acknowledgements_of_a_few_ranges_say_the_same() {
        let mut few = Slab::new();
        for count in [1, 2, FEW as u64] {
            let ranges: Vec<_> = (0..count).rev().map(|at| (2_000 + at * 100, 50 + at)).collect();
            let ack = full(&[(7, 12_345)], &ranges);
            let mut written = full(&[(1, 2), (4, 5)], &[(7_000, 8), (9_000, 8)]);
            let short = FewAck::of(&ack, &mut few).unwrap();
            short.write(&few, &mut written);
            few.release(short.slot);
            assert_eq!(written.numbers.as_slice(), ack.numbers.as_slice());
            assert_eq!((written.timing, written.marked), (ack.timing, ack.marked));
            assert_eq!(written.data, ack.data);
        }
        let many: Vec<_> = (0..=FEW as u64).map(|at| (2_000 + at * 100, 50)).collect();
        assert!(FewAck::of(&full(&[(7, 12)], &many), &mut few).is_none());
        assert!(FewAck::of(&full(&[(7, 12)], &[(2_000, 8), (1 << 40, 8)]), &mut few).is_none());
    }

    #[test]
    fn long_acknowledgements_say_the_same() {
        let many: Vec<_> = (0..MAX_ACK_RANGES as u64).map(|at| (2_000 + at * 100, 50 + at)).collect();
        let numbers: Vec<_> = (0..MAX_NUMBER_RANGES as u64).map(|at| (500 - at * 10, 507 - at * 10)).collect();
        let mut held = LongAck::BLANK;
        for (numbers, ranges) in
            [(numbers.as_slice(), many.as_slice()), (&numbers[..1], &many[..2]), (&numbers[..3], &[])]
        {
            let ack = full(numbers, ranges);
            let mut written = full(&[(1, 2), (4, 5)], &[(7_000, 8), (9_000, 8)]);
            held.set(&ack);
            held.write(&mut written);
            assert_eq!(written.numbers.as_slice(), ack.numbers.as_slice());
            assert_eq!((written.timing, written.marked), (ack.timing, ack.marked));
            assert_eq!(written.data, ack.data);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_shortened() {
        assert!(ShortAck::of(&full(&[(7, 12), (1, 3)], &[])).is_none());
        assert!(ShortAck::of(&full(&[(7, 12)], &[(2_000, 8), (3_000, 8)])).is_none());
        assert!(ShortAck::of(&full(&[(0, 1 << 33)], &[])).is_none());
        assert!(ShortAck::of(&full(&[(7, 12)], &[(1 << 40, 8)])).is_none());
    }
}
