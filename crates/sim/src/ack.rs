//! Acknowledgements as carriers exchange them, with the session's attached.

use manypath_core::{DataRange, DataSeq};
use manypath_session::Record;
use manypath_session::record::Ack;

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

    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges[..self.len]
    }
}

/// A carrier's acknowledgement with the session's attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarrierAck {
    /// Packet numbers that have arrived.
    pub(crate) numbers: Numbers,
    /// How long the highest number waited for this acknowledgement, nanoseconds.
    pub(crate) delay_nanos: u64,
    /// Packets that arrived with a congestion mark so far.
    pub(crate) marked: u64,
    /// The session's: a [`Record::Ack`], kept as the session takes it, since copies of so large a record cost.
    pub(crate) data: Record,
}

impl CarrierAck {
    /// An acknowledgement of nothing.
    pub(crate) fn blank() -> Self {
        Self { numbers: Numbers::NONE, delay_nanos: 0, marked: 0, data: Record::Ack(Ack::default()) }
    }
}

/// An acknowledgement small enough to travel in the packet: one range of packet numbers, at most one range of data above
/// the left edge. Nearly all are of this kind. Packed like [`crate::packet::DataPacket`].
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
pub(crate) struct ShortAck {
    /// One past the highest packet number, and how many it is the last of.
    end: u64,
    count: u32,
    delay_nanos: u32,
    /// The session's left edge, and how far its window reaches from there.
    left: DataSeq,
    window: u32,
    /// How far above the left edge the range of data begins, and its length; zero without one.
    gap: u32,
    len: u32,
    marked: u16,
}

impl ShortAck {
    /// The same in short, where that can be said.
    pub(crate) fn of(ack: &CarrierAck) -> Option<Self> {
        let Record::Ack(data) = &ack.data else { return None };
        let &[(first, end)] = ack.numbers.as_slice() else { return None };
        let (gap, len) = match data.ranges.as_slice() {
            [] => (0, 0),
            [range] => (range.start - data.left, range.len()),
            _ => return None,
        };
        let short = |value: u64| u32::try_from(value).ok();
        Some(Self {
            end,
            count: short(end - first)?,
            delay_nanos: short(ack.delay_nanos)?,
            left: data.left,
            window: short(data.window_end - data.left)?,
            gap: short(gap)?,
            len: short(len)?,
            marked: u16::try_from(ack.marked).ok()?,
        })
    }

    /// Writes it out in full.
    pub(crate) fn write(&self, ack: &mut CarrierAck) {
        ack.numbers.clear();
        ack.numbers.push((self.end - u64::from(self.count), self.end));
        ack.delay_nanos = u64::from(self.delay_nanos);
        ack.marked = u64::from(self.marked);
        if let Record::Ack(data) = &mut ack.data {
            data.left = self.left;
            data.window_end = self.left + u64::from(self.window);
            data.ranges.clear();
            if self.len > 0 {
                data.ranges.push(DataRange::new(self.left + u64::from(self.gap), u64::from(self.len)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(numbers: &[(u64, u64)], ranges: &[(u64, u64)]) -> CarrierAck {
        let mut ack = CarrierAck::blank();
        numbers.iter().for_each(|range| ack.numbers.push(*range));
        (ack.delay_nanos, ack.marked) = (5_000_000, 3);
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
            assert_eq!((written.delay_nanos, written.marked), (ack.delay_nanos, ack.marked));
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
