//! What became of our packets, as the carrier says.

use manypath_cc::Event;
use manypath_core::{DataRange, Duration, PacketNumber, SubflowId, SubflowState, Time};

use crate::config::Carriage;
use crate::path::Sent;
use crate::session::{Session, SessionEvent};

impl Session {
    /// The carrier says that a data packet was acknowledged.
    pub fn on_acked(&mut self, now: Time, id: SubflowId, packet: PacketNumber) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let rto = path.rto();
        let Some((sent, acked)) = path.on_acked(now, packet, &mut self.view.subflows[id.index()]) else { return };
        let waiting = !path.resend.is_empty();
        if path.rto() < rto && !waiting {
            let deadline = path.next_deadline(false, self.config.keep_alive);
            self.stir(deadline);
        } else if waiting {
            // There may be room now for what leaves again.
            self.stir(Time::ZERO);
        }
        if sent.range.end > self.queue.left_edge() {
            self.queue.on_copy_ended(sent.range, id, true);
            if self.config.carriage == Carriage::Datagrams && self.queue.awaits(sent.range) {
                let deadline = now + self.delivery_patience();
                if let Some(path) = self.path_mut(id) {
                    path.undelivered.push_back((deadline, sent.range));
                }
                self.stir(deadline);
            }
        }
        self.notify(now, id, &Event::Acked(acked));
        self.restore(now, id);
    }

    /// The carrier says that a data packet was lost.
    pub fn on_lost(&mut self, now: Time, id: SubflowId, packet: PacketNumber) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let Some(sent_at) = path.sent_at(packet) else { return };
        if self.config.carriage == Carriage::Streams {
            self.lose_on_stream(now, id, packet, sent_at);
            return;
        }
        self.lose(now, id, packet, sent_at);
        if let Some(Some(path)) = self.paths.get_mut(id.index()) {
            path.on_word_of_loss();
        }
    }

    /// A data packet is lost, as the carrier says or as a silence tells.
    pub(crate) fn lose(&mut self, now: Time, id: SubflowId, packet: PacketNumber, sent_at: Time) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let view = &mut self.view.subflows[id.index()];
        if path.begins_episode(now, sent_at, view) {
            self.notify(now, id, &Event::Congestion { sent_at });
        }
        if let Some(sent) = self.resolve_lost(id, packet) {
            self.notify(now, id, &Event::Lost { packet, bytes: sent.bytes, sent_at });
            self.take_back_excess(id);
        }
    }

    /// The carrier says that the peer saw a congestion mark on a packet of about this number.
    pub fn on_ecn(&mut self, now: Time, id: SubflowId, packet: PacketNumber) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let sent_at = path.marked_sent_at(packet).unwrap_or(now);
        if path.begins_episode(now, sent_at, &mut self.view.subflows[id.index()]) {
            path.marked = true;
            self.notify(now, id, &Event::Ecn { sent_at });
        }
    }

    /// Takes a lost packet off its path and queues its data again where no copy is left.
    pub(crate) fn resolve_lost(&mut self, id: SubflowId, packet: PacketNumber) -> Option<Sent> {
        let path = self.paths.get_mut(id.index())?.as_mut()?;
        let sent = path.on_lost(packet, &mut self.view.subflows[id.index()])?;
        #[cfg(test)]
        if self.mutation == crate::mutation::Mutation::NoRetransmission {
            return Some(sent);
        }
        self.give_up(sent.range, id);
        Some(sent)
    }

    /// A path has lost its copy of a range, or had it taken back.
    pub(crate) fn give_up(&mut self, range: DataRange, id: SubflowId) {
        self.queue.on_copy_ended(range, id, false);
        self.scheduler.on_lost(id, range);
    }

    /// A failed path is heard again.
    pub(crate) fn restore(&mut self, now: Time, id: SubflowId) {
        let view = &mut self.view.subflows[id.index()];
        if view.state == SubflowState::Failed {
            view.state = SubflowState::Active;
            if let Some(path) = self.path_mut(id) {
                path.way_back.on_restored(now);
            }
            self.stir(Time::ZERO);
            self.notify(now, id, &Event::Restored);
            match self.config.carriage {
                Carriage::Datagrams => self.want_ack(now, id),
                Carriage::Streams => self.queue.end_reinjection(id),
            }
            self.events.push_back(SessionEvent::PathRestored(id));
        }
    }

    /// How long after the carrier's acknowledgement the peer's session may take to say the same: its own may come by the
    /// slowest path.
    fn delivery_patience(&self) -> Duration {
        let slowest = self.paths.iter().flatten().map(|path| path.failure_after()).max();
        slowest.unwrap_or(Duration::from_secs(1))
    }
}
