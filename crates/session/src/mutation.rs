//! Deliberate faults, for the tests that show that the adversary finds them. Compiled into tests only.

use manypath_core::DataRange;

use crate::acks::Arrival;

/// A part of the session that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Nothing is missing.
    None,
    /// Lost data is not sent again.
    NoRetransmission,
    /// The sender takes no notice of the windows.
    NoWindowCheck,
    /// Neither does the receiver, whose memory then grows without bound.
    NoWindowCheckAtBothEnds,
    /// Records that arrived before are taken and counted again.
    NoDeduplication,
}

impl Mutation {
    /// The first position the sender may not use, when `limit` is what the receiver said.
    pub(crate) fn send_limit(self, limit: u64) -> u64 {
        match self {
            Self::NoWindowCheck | Self::NoWindowCheckAtBothEnds => u64::MAX,
            _ => limit,
        }
    }

    /// The first position the receiver does not take, when `limit` is what it said.
    pub(crate) fn receive_limit(self, limit: u64) -> u64 {
        if self == Self::NoWindowCheckAtBothEnds { u64::MAX } else { limit }
    }

    /// How many sequence numbers of a range count as new, when `new` of them are.
    pub(crate) fn newly_arrived(self, range: DataRange, new: u64) -> u64 {
        if self == Self::NoDeduplication { range.len() } else { new }
    }

    /// What an arrival counts as.
    pub(crate) fn arrival(self, arrival: Arrival) -> Arrival {
        match arrival {
            Arrival::Duplicate if self == Self::NoDeduplication => Arrival::New,
            other => other,
        }
    }
}
