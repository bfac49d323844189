//! Paths that carry a stream ([`Carriage::Streams`](crate::Carriage)): their carrier delivers in order, so what is lost
//! leaves again on the path it was lost on, and the carrier says what its recovery does.
//!
//! Windows, pacing and what is in flight stay with the session. Lost data waits in the path's own queue, which is served
//! before anything new, and counts as queued on the path, so that schedulers see no room that it needs.

use manypath_cc::Event;
use manypath_core::{Bytes, DataRange, Duration, FlowId, PacketNumber, SubflowId, SubflowState, Time};
use manypath_sched::Content;

use crate::delay::micros;
use crate::outgoing::{Outgoing, record};
use crate::record::{Record, SendTime};
use crate::session::Session;

impl Session {
    /// The carrier begins an episode of recovery, with the loss of `packet`, which it reports next: the controller is told,
    /// and the first packet that is sent again may leave at once, whatever the window says.
    pub fn on_recovery(&mut self, now: Time, id: SubflowId, packet: PacketNumber) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let sent_at = path.sent_at(packet).unwrap_or(now);
        path.recovering = true;
        path.fast_retransmit = true;
        let view = &mut self.view.subflows[id.index()];
        let begins = path.begins_episode(now, sent_at, view);
        view.in_recovery = true;
        // What was marked and lost in one round trip is one sign of congestion (RFC 3168 s6.1.2).
        if begins || !core::mem::take(&mut path.marked) {
            self.notify(now, id, &Event::Congestion { sent_at });
        }
    }

    /// The carrier's episode of recovery is over, and with it the leave to send one packet again beyond the window.
    pub fn on_recovered(&mut self, id: SubflowId) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        path.recovering = false;
        path.fast_retransmit = false;
        self.view.subflows[id.index()].in_recovery = false;
    }

    /// The carrier's retransmission timer ran out, `repeated` for the same data: everything in flight is lost and leaves again,
    /// one packet until the path is heard. With `reinject` the subflow is given nothing new until it is heard again, and its data is
    /// offered to the others.
    pub fn on_retransmission_timeout(&mut self, now: Time, id: SubflowId, repeated: bool, reinject: bool) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let (told, silent) = path.on_retransmission_timeout(&mut self.view.subflows[id.index()]);
        while let Some((packet, sent)) = self.path(id).and_then(|path| path.oldest()) {
            let sent_at = sent.sent_at;
            self.lose_on_stream(now, id, packet, sent_at);
        }
        let others = self.view.subflows.iter().any(|view| view.id != id && view.state == SubflowState::Active);
        if reinject && others {
            self.take_back_unsent(id);
            self.view.subflows[id.index()].state = SubflowState::Failed;
            self.queue.reinject(&self.view);
        }
        self.stir(Time::ZERO);
        if !silent {
            self.notify(now, id, &Event::Timeout { repeated: repeated || told });
        }
    }

    /// The carrier has measured a round trip where the acknowledgement of a packet tells none, since its data had left twice.
    pub fn on_round_trip(&mut self, now: Time, id: SubflowId, rtt: Duration) {
        if let Some(Some(path)) = self.paths.get_mut(id.index()) {
            path.measure(now, rtt, &mut self.view.subflows[id.index()]);
        }
    }

    /// The carrier says that data arrived whose last packet it had reported lost, before it was sent again.
    pub fn on_acked_late(&mut self, now: Time, id: SubflowId, first: PacketNumber) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let Ok(place) = path.resend.binary_search_by_key(&first, |again| again.first) else { return };
        let Some(again) = path.resend.remove(place) else { return };
        self.waiting -= 1;
        path.on_alive(now);
        let view = &mut self.view.subflows[id.index()];
        view.queued -= again.bytes;
        view.delivered += again.bytes;
        self.queue.on_copy_ended(again.range, id, true);
        self.restore(now, id);
    }

    /// A data packet has arrived that left at `sent`, whether or not it is in order on its path; its record follows by
    /// [`on_record`](Self::on_record) once it is. `ce`: with a congestion mark.
    pub fn on_arrival(&mut self, now: Time, id: SubflowId, sent: SendTime, ce: bool) {
        self.measure_delay(now, id, sent, ce);
    }

    /// Takes a lost packet out of flight and has its data leave again on the same path.
    pub(crate) fn lose_on_stream(&mut self, now: Time, id: SubflowId, packet: PacketNumber, sent_at: Time) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let view = &mut self.view.subflows[id.index()];
        let Some(sent) = path.on_lost(packet, view) else { return };
        path.queue_again(packet, &sent, view);
        self.waiting += 1;
        self.stir(Time::ZERO);
        self.notify(now, id, &Event::Lost { packet, bytes: sent.bytes, sent_at });
    }

    /// The carrier sends the data of a packet once more without knowing that it is lost (RFC 8985 s7): the record that leaves.
    /// What is in flight stays the same, and the packet's acknowledgement measures no round trip, since nobody knows which of
    /// the two it is for. `None`: unknown, or resolved.
    pub fn repeat(&mut self, now: Time, id: SubflowId, packet: PacketNumber) -> Option<Record> {
        let path = self.paths.get_mut(id.index())?.as_mut()?;
        let range = path.on_repeated(packet)?;
        let content = self.content_again(range)?;
        self.totals.retransmitted += Bytes::new(content.payload_len(range.len()));
        Some(record(range, content, true, SendTime(micros(now))))
    }

    /// Sends the first lost data of a path again.
    pub(crate) fn resend(&mut self, now: Time, index: usize) -> Option<Outgoing> {
        let path = self.paths[index].as_mut()?;
        let again = path.resend.pop_front()?;
        self.waiting -= 1;
        path.fast_retransmit = false;
        self.view.subflows[index].queued -= again.bytes;
        let content = self.content_again(again.range)?;
        self.launch(now, index, again.range, content, true, Some(again.first))
    }

    /// What a range stands for that leaves again on its path. The stream needs it even where the receiver's session has it by
    /// another path.
    fn content_again(&mut self, range: DataRange) -> Option<Content> {
        self.queue.on_resent(range);
        match self.queue.content_at(range) {
            Some(content) => Some(content),
            None if range.end > self.queue.left_edge() => self.content_around(range),
            // Nobody looks at the flow and the offset of what has arrived.
            None => Some(Content::Data { flow: FlowId::default(), offset: 0, fin: false }),
        }
    }

    /// What a range stands for whose beginning lies below the left edge, where nothing is remembered any more.
    fn content_around(&self, range: DataRange) -> Option<Content> {
        let left = self.queue.left_edge();
        match self.queue.content_at(DataRange::between(left, range.end))? {
            Content::Data { flow, offset, fin } => {
                // What was sent in one packet is one stretch of its flow.
                Some(Content::Data { flow, offset: offset - (left - range.start).min(offset), fin })
            }
            other => Some(other),
        }
    }
}

#[cfg(test)]
mod tests;
