//! As much of IP as a link looks at: is it a packet, and its ECN bits.

use manypath_link::Ecn;

/// The IP version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// Octets of an IPv4 header without options (RFC 791 s3.1), and of an IPv6 header (RFC 8200 s3).
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// The version, if the octets begin with a whole header of it.
fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 if packet.len() >= V4_HEADER => Some(Version::V4),
        6 if packet.len() >= V6_HEADER => Some(Version::V6),
        _ => None,
    }
}

/// The ECN bits of an IP packet (RFC 3168 s5); `None` if it is none.
pub(crate) fn ecn(packet: &[u8]) -> Option<Ecn> {
    let bits = match version(packet)? {
        Version::V4 => packet[1] & 3,
        Version::V6 => packet[1] >> 4 & 3,
    };
    Some(Ecn::from_bits(bits))
}

/// Sets the ECN bits of an IP packet to CE, and its header checksum accordingly. What is no IP packet stays as it is.
pub(crate) fn mark_ce(packet: &mut [u8]) {
    match version(packet) {
        Some(Version::V4) => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let updated = updated_checksum(checksum, before, after);
            packet[10..12].copy_from_slice(&updated.to_be_bytes());
        }
        Some(Version::V6) => packet[1] |= 0x30,
        None => {}
    }
}

/// The internet checksum after one 16-bit word has changed (RFC 1624 eqn. 3).
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let add = |a: u16, b: u16| {
        let (sum, carry) = a.overflowing_add(b);
        sum + u16::from(carry)
    };
    !add(add(!checksum, !before), after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The checksum of an IPv4 header as the sender computes it (RFC 1071), with the checksum field as zero.
    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks_exact(2).enumerate().filter(|(index, _)| *index != 5);
        let mut sum: u32 = words.map(|(_, word)| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    proptest! {
        #[test]
        fn a_marked_ipv4_packet_has_a_right_checksum(mut packet in proptest::collection::vec(any::<u8>(), 20..80)) {
            packet[0] = 0x45;
            let sum = checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            mark_ce(&mut packet);
            prop_assert_eq!(ecn(&packet), Some(Ecn::Ce));
            prop_assert_eq!(u16::from_be_bytes([packet[10], packet[11]]), checksum(&packet[..20]));
        }

        #[test]
        fn marking_touches_nothing_but_ecn_and_checksum(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut marked = packet.clone();
            mark_ce(&mut marked);
            for (index, (before, after)) in packet.iter().zip(&marked).enumerate() {
                prop_assert!(before == after || index == 1 || (index == 10 || index == 11));
            }
            prop_assert_eq!(ecn(&packet).is_some(), ecn(&marked) == Some(Ecn::Ce));
        }
    }

    #[test]
    fn the_bits_of_both_versions_are_read() {
        let mut v4 = [0; 20];
        v4[..2].copy_from_slice(&[0x45, 0b1011_1010]);
        assert_eq!(ecn(&v4), Some(Ecn::Ect0));
        let mut v6 = [0; 40];
        v6[..2].copy_from_slice(&[0x6f, 0b1101_1111]);
        assert_eq!(ecn(&v6), Some(Ecn::Ect1));
        mark_ce(&mut v6);
        assert_eq!(v6[..2], [0x6f, 0b1111_1111]);
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_no_packet() {
        assert_eq!(ecn(&[]), None);
        assert_eq!(ecn(&[0x45; 19]), None);
        assert_eq!(ecn(&[0x60; 39]), None);
        assert_eq!(ecn(&[0x50; 40]), None);
    }
}
