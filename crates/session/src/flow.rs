//! The state of one flow: a bidirectional ordered byte stream. Offsets only; the bytes are the engine's.

use std::ops::Range;

use manypath_core::{DataRange, DataSeq, RangeSet, SubflowId, Time};

use crate::error::ProtocolError;

/// The sending half.
#[derive(Clone, Debug)]
pub(crate) struct SendHalf {
    /// Bytes written and admitted.
    pub(crate) written: u64,
    /// Offsets below are acknowledged.
    pub(crate) released: u64,
    /// First offset that the peer does not allow.
    pub(crate) limit: u64,
    /// The end was written, or the flow reset.
    pub(crate) ended: bool,
    /// The flow was reset.
    pub(crate) reset: bool,
    /// The end, or the reset, is acknowledged.
    pub(crate) done: bool,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub(crate) struct RecvHalf {
    /// What has arrived, as offsets; everything below `consumed` has.
    received: RangeSet,
    /// Bytes given to the application or dropped.
    pub(crate) consumed: u64,
    /// First offset that the peer may not send, as last advertised.
    pub(crate) limit: u64,
    /// The flow's length, once its end has arrived.
    pub(crate) length: Option<u64>,
    /// The application or the peer gave the flow up: what arrives is dropped.
    pub(crate) abandoned: bool,
    /// Nothing more can arrive: the end was consumed, or the peer's reset came.
    pub(crate) done: bool,
}

/// Both halves, and what is owed to the peer about them.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) send: SendHalf,
    pub(crate) recv: RecvHalf,
    /// A FLOW_WINDOW is owed.
    pub(crate) window_due: bool,
    /// The application stopped the receiving half: why, and from when on the peer may be told again.
    pub(crate) stopped: Option<(u32, Time)>,
    /// A STOP is owed.
    pub(crate) stop_due: bool,
    /// By which path the peer asked for what is owed.
    pub(crate) asked_by: Option<SubflowId>,
    /// The application wrote more than was admitted and waits.
    pub(crate) wants_to_write: bool,
    /// `Readable` was reported and nothing consumed since.
    pub(crate) readable_reported: bool,
}

impl Flow {
    pub(crate) fn new(send_limit: u64, receive_window: u64) -> Self {
        Self {
            send: SendHalf { written: 0, released: 0, limit: send_limit, ended: false, reset: false, done: false },
            recv: RecvHalf {
                received: RangeSet::new(),
                consumed: 0,
                limit: receive_window,
                length: None,
                abandoned: false,
                done: false,
            },
            window_due: false,
            stopped: None,
            stop_due: false,
            asked_by: None,
            wants_to_write: false,
            readable_reported: false,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.send.done && self.recv.done
    }
}

impl RecvHalf {
    /// Checks a record against the window, which ends at `limit`, and the flow's length, without taking it.
    pub(crate) fn check(&self, offset: u64, len: u64, fin: bool, limit: u64) -> Result<(), ProtocolError> {
        let end = offset.saturating_add(len);
        if end > limit {
            return Err(ProtocolError::FlowWindowExceeded);
        }
        let highest = self.highest();
        let wrong_length = match self.length {
            Some(length) => end > length || (fin && end != length),
            None => fin && end < highest,
        };
        if wrong_length { Err(ProtocolError::FinalSize) } else { Ok(()) }
    }

    /// Takes a checked record. Returns how many bytes are new, and whether more can be read in order than before.
    pub(crate) fn insert(&mut self, offset: u64, len: u64, fin: bool) -> (u64, bool) {
        let before = self.contiguous_end();
        let added = self.received.insert(DataRange::new(DataSeq(offset), len));
        if fin {
            self.length = Some(offset + len);
        }
        (added, self.contiguous_end() > before || self.is_finished())
    }

    /// Nobody reads any more. Returns how many bytes are dropped; from now on `consumed` counts what arrives.
    pub(crate) fn abandon(&mut self) -> u64 {
        let dropped = self.buffered();
        self.consumed += dropped;
        self.abandoned = true;
        dropped
    }

    /// The offsets that can be read in order.
    pub(crate) fn readable(&self) -> Range<u64> {
        self.consumed..self.contiguous_end()
    }

    /// Whether everything up to the end has been read.
    pub(crate) fn is_finished(&self) -> bool {
        self.length == Some(self.consumed)
    }

    /// First offset above all that has arrived.
    pub(crate) fn highest(&self) -> u64 {
        self.received.last().map_or(self.consumed, |range| range.end.0)
    }

    /// From the first byte that was not consumed to the last that has arrived: as far as a reader must be able to reach.
    pub(crate) fn span(&self) -> u64 {
        if self.abandoned { 0 } else { self.highest() - self.consumed }
    }

    /// Bytes that arrived and were not consumed.
    pub(crate) fn buffered(&self) -> u64 {
        self.received.total() - self.consumed.min(self.received.total())
    }

    fn contiguous_end(&self) -> u64 {
        self.received.first().filter(|range| range.start == DataSeq::ZERO).map_or(0, |range| range.end.0)
    }

    /// Whether taking a record would make more than so many ranges of what was received.
    pub(crate) fn scatters(&self, offset: u64, len: u64, most: usize) -> bool {
        let range = DataRange::new(DataSeq(offset), len);
        self.received.range_count() >= most && offset > self.contiguous_end() && !self.received.touches(range)
    }
}
