//! The receiving half of [TCP's carrier](super).

use std::collections::VecDeque;

use manypath_core::{DataRange, DataSeq, Duration, RangeSet, Time};
use manypath_session::record::SendTime;

use super::MAX_BLOCKS;
use crate::ack::CarrierAck;
use crate::packet::DataPacket;

/// The receiving half: puts segments in order, and acknowledges.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The first number that has not been taken in order (spec: RCV.NXT).
    next: u64,
    /// What has arrived and was not taken, from `next` on.
    held: VecDeque<Option<DataPacket>>,
    /// The payload of it.
    held_bytes: u64,
    /// The numbers of it.
    arrived: RangeSet,
    /// One number of each block of the SACK option, the block that changed last first (RFC 2018 s4).
    recent: [u64; MAX_BLOCKS],
    /// The most payload that waits behind a gap.
    memory: u64,
    every: u32,
    max_delay: Duration,
    unacked: u32,
    /// The window that the last acknowledgement offered, where the window decides when the next one leaves.
    offered: u64,
    /// What the last acknowledgement said of `next` (RFC 7323 s4.3: Last.ACK.sent), and the time stamp that the next one
    /// echoes (TS.Recent).
    acked: u64,
    stamp: SendTime,
    /// When an acknowledgement must leave.
    due: Time,
    marked: u64,
    /// Payload that arrived although it was there.
    again: u64,
}

impl Receiver {
    pub(crate) fn new(every: u32, max_delay: Duration, memory: u64) -> Self {
        Self {
            next: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            arrived: RangeSet::new(),
            recent: [0; MAX_BLOCKS],
            memory,
            every,
            max_delay,
            unacked: 0,
            offered: u64::MAX,
            acked: 0,
            stamp: SendTime(0),
            due: Time::MAX,
            marked: 0,
            again: 0,
        }
    }

    /// Whether there is memory for a segment; there always is for the next in order. Where nothing is copied all fits: the
    /// connection's window sees to that. But the window moves on past data that another subflow delivered and that waits here
    /// behind a gap. What is too much is dropped as if it had not arrived, as in Linux (`tcp_data_queue_ofo`), whose senders
    /// seldom let it come to that: on a subflow, too, they keep to the window, from its first byte unacknowledged on
    /// (`tcp_snd_wnd_test`).
    pub(crate) fn has_memory_for(&self, packet: &DataPacket) -> bool {
        packet.number.number <= self.next || self.held_bytes + u64::from(packet.len()) <= self.memory
    }

    /// A segment has arrived; says whether an acknowledgement must leave at once, after everything in order was taken,
    /// however few segments have arrived since the last one.
    pub(crate) fn on_packet(&mut self, now: Time, packet: &DataPacket, ce: bool) -> bool {
        self.marked += u64::from(ce);
        self.unacked += 1;
        let number = packet.number.number;
        if number <= self.acked {
            // RFC 7323 s4.3: of what an acknowledgement covers, the first; of what is out of order, none.
            self.stamp = packet.sent();
        }
        let Some(ahead) = number.checked_sub(self.next).and_then(|ahead| usize::try_from(ahead).ok()) else {
            self.again += u64::from(packet.len());
            return true;
        };
        let gap = ahead > 0 || !self.held.is_empty();
        if self.held.len() <= ahead {
            self.held.resize(ahead + 1, None);
        }
        if self.held[ahead].replace(*packet).is_some() {
            self.again += u64::from(packet.len());
            return true;
        }
        self.held_bytes += u64::from(packet.len());
        if ahead > 0 {
            self.note_block(number);
        }
        // RFC 5681 s4.2: at once for what is out of order or fills a gap, else every second segment or after a while.
        self.due = self.due.min(now + self.max_delay);
        gap || ce
    }

    /// Whether as many segments have arrived as an acknowledgement covers.
    pub(crate) fn is_complete(&self) -> bool {
        self.unacked >= self.every
    }

    /// Whether this window is no smaller than the last one offered.
    pub(crate) fn bears(&self, window: u64) -> bool {
        window >= self.offered
    }

    /// The window that the next acknowledgement offers.
    pub(crate) fn set_offered(&mut self, window: u64) {
        self.offered = window;
    }

    fn note_block(&mut self, number: u64) {
        self.arrived.insert(DataRange::new(DataSeq(number), 1));
        let block = self.arrived.range_at(DataSeq(number)).unwrap_or_default();
        let place = self.recent.iter().position(|held| block.contains(DataSeq(*held))).unwrap_or(MAX_BLOCKS - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = number;
    }

    /// The next segment in order, if it has arrived.
    pub(crate) fn take(&mut self) -> Option<DataPacket> {
        let packet = (*self.held.front()?)?;
        self.held.pop_front();
        self.held_bytes -= u64::from(packet.len());
        self.next += 1;
        if !self.arrived.is_empty() {
            self.arrived.remove_below(DataSeq(self.next));
        }
        Some(packet)
    }

    /// Payload that has arrived and waits for its turn.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Payload that arrived on the subflow more than once.
    pub(crate) fn received_again(&self) -> u64 {
        self.again
    }

    /// Writes an acknowledgement, which leaves now.
    pub(crate) fn write_ack(&mut self, ack: &mut CarrierAck) {
        self.unacked = 0;
        self.due = Time::MAX;
        ack.numbers.clear();
        ack.numbers.push((0, self.next));
        ack.timing = self.stamp.0.into();
        self.acked = self.next;
        ack.marked = self.marked;
        if self.arrived.is_empty() {
            return;
        }
        let blocks = self.recent.iter().filter_map(|number| self.arrived.range_at(DataSeq(*number)));
        blocks.for_each(|block| ack.numbers.push((block.start.0, block.end.0)));
    }

    /// When an acknowledgement must leave; [`Time::MAX`]: never.
    pub(crate) fn due(&self) -> Time {
        self.due
    }
}
