//! The error codes that carriers close with (`docs/protocol.md`, section 8).

use noq::VarInt;

pub(crate) const NO_ERROR: u32 = 0x00;
pub(crate) const VERSION: u32 = 0x02;
pub(crate) const BAD_TOKEN: u32 = 0x03;
pub(crate) const BUSY: u32 = 0x04;
pub(crate) const UNKNOWN_SESSION: u32 = 0x05;
pub(crate) const BAD_PROOF: u32 = 0x06;
pub(crate) const HANDSHAKE_TIMEOUT: u32 = 0x07;
pub(crate) const BAD_MESSAGE: u32 = 0x08;
pub(crate) const BAD_RECORD: u32 = 0x09;
pub(crate) const LIFETIME: u32 = 0x0a;
pub(crate) const SHUTDOWN: u32 = 0x0b;
pub(crate) const NO_PATH: u32 = 0x0c;

/// Codes of the session's own protocol errors.
const SESSION: std::ops::RangeInclusive<u64> = 0x10..=0x15;

/// Added to the application's code.
const APPLICATION: u64 = 1 << 32;

/// What a carrier's close means for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Only the carrier is gone.
    Carrier,
    /// The peer's application closed the session.
    Application(u32),
    /// The peer does not have the session any more, or ends it by its own rules.
    Ended,
    /// The peer accuses this end of breaking the protocol.
    Accusation,
}

/// The QUIC code for an application's code.
pub(crate) fn application(code: u32) -> VarInt {
    // 2^32 + u32 is far below 2^62.
    VarInt::from_u64(APPLICATION + u64::from(code)).unwrap_or(VarInt::MAX)
}

/// Reads a QUIC code.
pub(crate) fn meaning(code: u64) -> Meaning {
    if let Some(code) = code.checked_sub(APPLICATION) {
        return Meaning::Application(u32::try_from(code).unwrap_or(u32::MAX));
    }
    let is = |ours: u32| code == u64::from(ours);
    if is(LIFETIME) || is(SHUTDOWN) || is(NO_PATH) || is(UNKNOWN_SESSION) {
        Meaning::Ended
    } else if is(BAD_RECORD) || SESSION.contains(&code) {
        Meaning::Accusation
    } else {
        Meaning::Carrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_application_come_back() {
        for code in [0, 7, u32::MAX] {
            assert_eq!(meaning(application(code).into_inner()), Meaning::Application(code));
        }
        assert_eq!(meaning(u64::from(NO_ERROR)), Meaning::Carrier);
        assert_eq!(meaning(u64::from(BUSY)), Meaning::Carrier);
        for code in [u64::from(BAD_RECORD), 0x10, 0x13, 0x15] {
            assert_eq!(meaning(code), Meaning::Accusation, "{code:#x}");
        }
        assert_eq!(meaning(0x16), Meaning::Carrier);
        for code in [LIFETIME, SHUTDOWN, NO_PATH, UNKNOWN_SESSION] {
            assert_eq!(meaning(u64::from(code)), Meaning::Ended, "{code:#x}");
        }
    }
}
