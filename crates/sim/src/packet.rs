//! Packets as they travel: small and copied; what is large and rare waits in a [`Slab`].

use manypath_core::{DataSeq, FlowId};
use manypath_link::Ecn;
use manypath_session::Record;
use manypath_session::record::{Data, SendTime};

use crate::ack::{CarrierAck, Few, FewAck, LongAck, ShortAck};

/// The destination of traffic that nobody receives.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// What the network reads of it.
    pub(crate) head: Head,
    /// What it carries.
    pub(crate) body: Body,
}

/// What the network reads of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The end it goes to, or [`NOBODY`].
    pub(crate) to: u32,
    /// Where the next link of its route stands in the network's table.
    pub(crate) next: u32,
    /// The subflow.
    pub(crate) subflow: u16,
    /// Size on the wire.
    pub(crate) size: u32,
    /// Its ECN codepoint.
    pub(crate) ecn: Ecn,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A data record under a packet number.
    Data(DataPacket),
    /// An acknowledgement of the usual kind.
    Ack(ShortAck),
    /// An acknowledgement of a few ranges.
    FewAck(FewAck),
    /// Any other acknowledgement, by its place in the slab.
    LongAck(u32),
    /// A control record, by its place in the slab.
    Control(u32),
    /// A carrier's probe: asks for an acknowledgement.
    Probe(Number),
    /// Background traffic.
    Nothing,
}

/// A carrier's packet number.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
pub(crate) struct Number {
    /// The number.
    pub(crate) number: u64,
    /// The sender knows the fate of everything this far below the number, and need not be told it.
    pub(crate) unresolved: u32,
}

impl Number {
    /// The lowest number whose fate the sender does not know.
    pub(crate) fn floor(self) -> u64 {
        self.number - u64::from(self.unresolved)
    }
}

/// A DATA record without what the model does not need. Packed, because every packet in flight is one ([`crate::flight`]).
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
pub(crate) struct DataPacket {
    pub(crate) number: Number,
    seq: DataSeq,
    offset: u64,
    flow: FlowId,
    sent: SendTime,
    len: u16,
    flags: u8,
}

/// The flags of a [`DataPacket`].
mod flag {
    pub(super) const FIN: u8 = 1;
    pub(super) const COPY: u8 = 2;
}

impl DataPacket {
    pub(crate) fn new(number: Number, data: &Data) -> Self {
        let Data { flow, seq, offset, len, fin, copy, sent, deadline: _ } = *data;
        // A datagram is smaller than 64 KiB.
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        let flags = if fin { flag::FIN } else { 0 } | if copy { flag::COPY } else { 0 };
        Self { number, seq, offset, flow, sent, len, flags }
    }

    /// How much payload it has.
    pub(crate) fn len(&self) -> u32 {
        u32::from(self.len)
    }

    /// Where its payload belongs.
    pub(crate) fn place(&self) -> (FlowId, u64) {
        (self.flow, self.offset)
    }

    /// When it left.
    pub(crate) fn sent(&self) -> SendTime {
        self.sent
    }

    /// The record as the session takes it.
    pub(crate) fn data(&self) -> Data {
        let Self { seq, offset, flow, sent, flags, .. } = *self;
        let (fin, copy) = (flags & flag::FIN != 0, flags & flag::COPY != 0);
        Data { flow, seq, offset, len: self.len(), fin, copy, sent, deadline: None }
    }
}

/// Values that wait to be taken, under small numbers that are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Clone> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// A place that nobody uses; what it holds is left from its last use. `fresh` makes new ones.
    pub(crate) fn take(&mut self, fresh: &T) -> (u32, &mut T) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.values.push(fresh.clone());
            // Every value belongs to a packet on a link, or to one of a window that will be; links hold at most 2^20 packets each.
            u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
        });
        (slot, &mut self.values[slot as usize])
    }

    /// What is held in a place that was taken.
    pub(crate) fn get(&self, slot: u32) -> &T {
        &self.values[slot as usize]
    }

    /// Gives a place back.
    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

/// Everything that packets refer to.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) few: Slab<Few>,
    pub(crate) acks: Slab<LongAck>,
    pub(crate) controls: Slab<Record>,
}

impl Contents {
    pub(crate) const fn new() -> Self {
        Self { few: Slab::new(), acks: Slab::new(), controls: Slab::new() }
    }

    /// Writes a packet's body with an acknowledgement.
    #[inline]
    pub(crate) fn write_ack(&mut self, ack: &CarrierAck, body: &mut Body) {
        if let Some(short) = ShortAck::of(ack) {
            *body = Body::Ack(short);
        } else if let Some(few) = FewAck::of(ack, &mut self.few) {
            *body = Body::FewAck(few);
        } else {
            let (slot, held) = self.acks.take(&LongAck::BLANK);
            held.set(ack);
            *body = Body::LongAck(slot);
        }
    }

    /// Gives back what a packet refers to, when it is gone.
    pub(crate) fn release(&mut self, body: &Body) {
        match body {
            Body::FewAck(ack) => self.few.release(ack.slot),
            Body::LongAck(slot) => self.acks.release(*slot),
            Body::Control(slot) => self.controls.release(*slot),
            Body::Data(_) | Body::Ack(_) | Body::Probe(_) | Body::Nothing => {}
        }
    }
}
