//! Packets in flight as links hold them: 64 bytes each, the line of a cache. With many connections there are hundreds of
//! thousands, each of them written and read once, from memory that no cache holds.

use manypath_core::Time;
use manypath_link::Ecn;

use crate::events::{Key, NUMBER_BITS, Target};
use crate::packet::{Body, Head, Packet};

/// Bits for the size of a packet: the scenario bounds those with data below 2^16, and the longest acknowledgement adds less
/// than a thousand bytes to the overhead of one.
const SIZE_BITS: u32 = 17;
/// Bits for the subflow; there are at most 64.
const SUBFLOW_BITS: u32 = 8;
/// Bits for the ECN codepoint.
const ECN_BITS: u32 = 2;

/// A packet that will come out of a link.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct InFlight {
    /// When.
    at: Time,
    /// From the highest bits to the lowest: the number of the event, which orders packets of one time, the size, the subflow
    /// and the codepoint.
    head: u64,
    to: u32,
    next: u32,
    body: Body,
}

const _: () = assert!(NUMBER_BITS + SIZE_BITS + SUBFLOW_BITS + ECN_BITS == 64 && size_of::<InFlight>() == 64);

impl InFlight {
    /// A packet with the key of its arrival.
    #[inline]
    pub(crate) fn new(key: Key, head: Head, body: Body) -> Self {
        let Head { to, next, subflow, size, ecn } = head;
        debug_assert!(size >> SIZE_BITS == 0 && subflow >> SUBFLOW_BITS == 0, "{head:?}");
        let head = (key.number() << SIZE_BITS | u64::from(size)) << SUBFLOW_BITS | u64::from(subflow);
        Self { at: key.at(), head: head << ECN_BITS | u64::from(ecn.bits()), to, next, body }
    }

    /// When it arrives.
    #[inline]
    pub(crate) const fn at(&self) -> Time {
        self.at
    }

    /// The key of its arrival from link `index`.
    #[inline]
    pub(crate) fn key(&self, index: u32) -> Key {
        Key::new(self.at, self.head >> (64 - NUMBER_BITS), Target::Link(index))
    }

    /// The packet.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    pub(crate) fn packet(&self) -> Packet {
        let ecn = Ecn::from_bits(self.head as u8);
        let head = self.head >> ECN_BITS;
        let subflow = (head % (1 << SUBFLOW_BITS)) as u16;
        let size = (head >> SUBFLOW_BITS) as u32 % (1 << SIZE_BITS);
        Packet { head: Head { to: self.to, next: self.next, subflow, size, ecn }, body: self.body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_out_as_it_went_in() {
        let (at, number) = (Time::from_nanos(u64::MAX - 1), (1 << NUMBER_BITS) - 1);
        let key = Key::new(at, number, Target::Link(9));
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            for (size, subflow) in [(0, 63), ((1 << SIZE_BITS) - 1, 0), (1_500, 1)] {
                let body = Body::LongAck(u32::MAX);
                let packet = Packet { head: Head { to: u32::MAX, next: 7, subflow, size, ecn }, body };
                let held = InFlight::new(key, packet.head, body);
                assert_eq!(held.key(9), key);
                assert_eq!(format!("{:?}", held.packet()), format!("{packet:?}"));
            }
        }
    }

    #[test]
    fn the_earlier_comes_first_and_then_the_one_scheduled_first() {
        let head = |size| Head { to: 0, next: 0, subflow: 0, size, ecn: Ecn::NotEct };
        let held =
            |at, number, size| InFlight::new(Key::new(at, number, Target::Link(0)), head(size), Body::Nothing).key(0);
        let (early, late) = (Time::from_millis(1), Time::from_millis(2));
        assert!(held(early, 8, 9_000) < held(late, 3, 40));
        assert!(held(late, 3, 9_000) < held(late, 4, 40));
    }
}
