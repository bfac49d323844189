//! The two ECN bits of the IP header (RFC 3168 s5).

/// The ECN codepoint of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// `00`: the transport does not understand ECN.
    #[default]
    NotEct,
    /// `01`: ECN-capable; L4S traffic by RFC 9331.
    Ect1,
    /// `10`: ECN-capable.
    Ect0,
    /// `11`: congestion experienced.
    Ce,
}

impl Ecn {
    /// The codepoint in the low two bits of an IPv4 TOS or IPv6 traffic class byte; the other bits are ignored.
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// The two bits, in the low end of the byte.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// Whether a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_round_trip_and_ignore_the_dscp() {
        for bits in 0..=3 {
            assert_eq!(Ecn::from_bits(bits | 0b1011_1000).bits(), bits);
        }
        assert!(Ecn::Ce.is_capable() && Ecn::Ect0.is_capable() && Ecn::Ect1.is_capable());
        assert!(!Ecn::NotEct.is_capable());
    }
}
