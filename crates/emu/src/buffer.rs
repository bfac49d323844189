//! Buffers of packets on the links: what they cost, and which are used again.

use manypath_core::Bytes;

/// What a held packet costs besides its buffer: its entry in the heap and its allocation.
const BOOKKEEPING: usize = 128;
/// Buffers of at most this size are used again; larger ones are rare and given back.
const REUSED: usize = 4096;

/// Whether a buffer of this capacity is kept for another packet.
pub(crate) const fn is_reused(capacity: usize) -> bool {
    capacity <= REUSED
}

/// Whether a buffer of this capacity is taken for a packet of this length. One that is much larger is not: small packets would fill the
/// memory that is meant for large ones.
pub(crate) const fn fits(capacity: usize, length: usize) -> bool {
    capacity <= 2 * length
}

/// The octets of a packet, in a spare buffer if that fits.
pub(crate) fn filled(spare: Option<Vec<u8>>, octets: &[u8]) -> Vec<u8> {
    let mut buffer = spare.filter(|spare| fits(spare.capacity(), octets.len())).unwrap_or_default();
    buffer.clear();
    // Exactly, since a buffer that doubles would be more than was reckoned with.
    buffer.reserve_exact(octets.len());
    buffer.extend_from_slice(octets);
    buffer
}

/// The memory that a packet in a buffer of this capacity is held in.
pub(crate) const fn memory(capacity: usize) -> Bytes {
    Bytes::new((capacity + BOOKKEEPING) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_packet_takes_no_large_buffer() {
        assert!(filled(Some(Vec::with_capacity(1500)), &[7; 750]).capacity() >= 1500);
        assert_eq!(filled(Some(Vec::with_capacity(1500)), &[7; 40]).capacity(), 40);
        assert_eq!(filled(Some(vec![1; 40]), &[7; 60]), [7; 60]);
        assert_eq!(filled(None, &[]), [0; 0]);
        assert!(is_reused(REUSED) && !is_reused(REUSED + 1));
    }
}
