//! Deliberate faults, for the tests that show that the adversary finds them. Compiled into tests only.

use manypath_core::DataSeq;

use crate::acks::Arrival;

/// A part of the session that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Nothing is missing.
    None,
    /// Lost data is not sent again.
    NoRetransmission,
    /// The sender's idea of the window is ignored by the receiver, and the sender sends beyond it.
    NoWindowCheck,
    /// Records that arrived before are taken again.
    NoDeduplication,
}

impl Mutation {
    /// Where the window ends.
    pub(crate) fn window_end(self, advertised: DataSeq) -> DataSeq {
        if self == Self::NoWindowCheck { DataSeq(u64::MAX) } else { advertised }
    }

    /// What an arrival counts as.
    pub(crate) fn arrival(self, arrival: Arrival) -> Arrival {
        match arrival {
            Arrival::Duplicate if self == Self::NoDeduplication => Arrival::New,
            other => other,
        }
    }
}
