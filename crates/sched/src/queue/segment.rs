//! What the send queue is made of: stretches of one content, and segments that were sent.

use manypath_core::{DataRange, FlowId, SubflowId, Time};

/// What a stretch of the data sequence space stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes of a flow, from this offset on. If `fin` is set the last sequence number of the stretch is not a byte but
    /// the end of the flow.
    Data {
        /// The flow.
        flow: FlowId,
        /// Offset in the flow of the stretch's first byte.
        offset: u64,
        /// Whether the stretch ends with the end of the flow.
        fin: bool,
    },
    /// The sender abandons a flow; takes one sequence number.
    Reset {
        /// The flow.
        flow: FlowId,
        /// The application's reason.
        code: u32,
    },
    /// Abandoned data: the sequence numbers are used up, their bytes are not sent.
    Skip,
}

impl Content {
    /// The bytes of payload that `len` sequence numbers of this content carry.
    pub fn payload_len(&self, len: u64) -> u64 {
        match self {
            Self::Data { fin, .. } => len - u64::from(*fin),
            Self::Reset { .. } | Self::Skip => 0,
        }
    }

    /// The content `skip` sequence numbers further on.
    pub(super) fn advanced(self, skip: u64) -> Self {
        match self {
            Self::Data { flow, offset, fin } => Self::Data { flow, offset: offset + skip, fin },
            other => other,
        }
    }
}

/// A stretch of one content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) range: DataRange,
    pub(super) content: Content,
}

/// Data that was sent at least once and is not yet below the left edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its sequence numbers.
    pub range: DataRange,
    /// The subflow that carried it last.
    pub last_subflow: SubflowId,
    /// When it was last given to a subflow.
    pub sent_at: Time,
    /// Bit `id % 64` is set for every subflow that carried it and did not lose it.
    pub(super) carriers: u64,
    /// Copies given to subflows and neither acknowledged nor given up there.
    pub(super) copies: u16,
    /// Whether it was sent more than once.
    pub retransmitted: bool,
    /// Whether the receiver has it (a selective data acknowledgement).
    pub acked: bool,
}

impl Segment {
    /// Data that is given to a subflow for the first time.
    #[inline]
    pub(super) fn new(now: Time, range: DataRange, subflow: SubflowId) -> Self {
        Self {
            range,
            last_subflow: subflow,
            sent_at: now,
            carriers: carrier_bit(subflow),
            copies: 1,
            retransmitted: false,
            acked: false,
        }
    }

    /// Whether this subflow carried it and has neither lost it nor had it taken back.
    pub fn was_carried_by(&self, subflow: SubflowId) -> bool {
        self.carriers & carrier_bit(subflow) != 0
    }

    /// Whether a copy may still arrive.
    pub fn is_in_flight(&self) -> bool {
        self.copies > 0
    }

    /// Whether neither the receiver nor any subflow has it.
    pub(super) fn is_nowhere(&self) -> bool {
        !self.acked && !self.is_in_flight()
    }
}

/// The bit of a subflow in the set of carriers.
pub(super) fn carrier_bit(subflow: SubflowId) -> u64 {
    1 << (subflow.0 % 64)
}
