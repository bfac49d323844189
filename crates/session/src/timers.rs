//! What time alone brings about: paths that have fallen silent, data that was never delivered, windows that stay closed.

use manypath_cc::Event;
use manypath_core::{Duration, FlowId, PacketNumber, SubflowId, SubflowState, Time};

use crate::config::Carriage;
use crate::outgoing::{PONG_INTERVAL, PROBE_INTERVAL};
use crate::path::Queued;
use crate::session::{Session, SessionEvent};

/// How often a peer with a closed window is asked for it, at the least and at the most.
const BLOCKED_INTERVAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

impl Session {
    /// When [`on_timeout`](Self::on_timeout) and [`poll_transmit`](Self::poll_transmit) must be called at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let quiet_until = if self.quiet_until == Time::ZERO { self.first_deadline() } else { self.quiet_until };
        let next = self.cc.next_timer().unwrap_or(Time::MAX).min(quiet_until).min(self.ask_at);
        let next = if self.waiting == 0 { next } else { next.min(self.next_paced()) };
        (next < Time::MAX).then_some(next)
    }

    /// When the first pacer lets something go.
    fn next_paced(&self) -> Time {
        let mut next = Time::MAX;
        for (path, view) in self.paths.iter().zip(&self.view.subflows) {
            if let Some(path) = path
                && path.pacer.paces(view.pacing)
                && path.may_send(view)
                && path.carrier_ready
            {
                next = next.min(path.pacer.next());
            }
        }
        next
    }

    /// When the first timer runs out of those that only acknowledgements and records move: all but pacing and the
    /// controller's.
    pub(crate) fn first_deadline(&self) -> Time {
        let mut next = self.blocked_probe.unwrap_or(Time::MAX).min(self.look_at);
        for (path, view) in self.paths.iter().zip(&self.view.subflows) {
            let Some(path) = path else { continue };
            next = next.min(path.next_deadline(view.state == SubflowState::Failed, self.config.keep_alive));
            if path.carrier_ready {
                next = next.min(path.ack.due.unwrap_or(Time::MAX)).min(path.status_due.unwrap_or(Time::MAX));
                if let (Some(_), Some(at)) = (path.pong_due, path.pong_at) {
                    next = next.min(at + PONG_INTERVAL);
                }
            }
        }
        next
    }

    /// Does what time alone brings about. Call [`poll_transmit`](Self::poll_transmit) afterwards.
    pub fn on_timeout(&mut self, now: Time) {
        self.stir(Time::ZERO);
        if self.cc.next_timer().is_some_and(|at| at <= now) {
            self.cc.on_timer(now, &self.view);
            self.refresh_all_limits();
        }
        for index in 0..self.paths.len() {
            self.check_undelivered(now, index);
            self.check_silence(now, index);
        }
        if self.blocked_probe.is_some_and(|at| at <= now) {
            self.probe_window(now);
        }
    }

    /// Data that the carrier delivered and the peer's session never acknowledged was dropped in between.
    fn check_undelivered(&mut self, now: Time, index: usize) {
        while let Some(path) = &mut self.paths[index] {
            match path.undelivered.front() {
                Some((deadline, range)) if *deadline <= now || range.end <= self.queue.left_edge() => {
                    let range = *range;
                    path.undelivered.pop_front();
                    #[cfg(test)]
                    if self.mutation == crate::mutation::Mutation::NoRetransmission {
                        continue;
                    }
                    self.queue.on_undelivered(range);
                }
                _ => break,
            }
        }
    }

    /// A packet without an answer for too long is lost; a path that answers nothing at all has failed.
    fn check_silence(&mut self, now: Time, index: usize) {
        if self.view.subflows[index].state != SubflowState::Active || self.config.carriage == Carriage::Streams {
            return;
        }
        while let Some(path) = &self.paths[index] {
            let id = path.id;
            if path.fails_at() <= now {
                return self.fail(now, id);
            }
            if path.oldest_lost_at() > now {
                return;
            }
            let Some((packet, sent)) = path.oldest() else { return };
            let sent_at = sent.sent_at;
            self.lose(now, id, packet, sent_at);
        }
    }

    fn fail(&mut self, now: Time, id: SubflowId) {
        let idle = self.path(id).is_some_and(|path| path.oldest().is_none());
        self.take_back(now, id);
        let view = &mut self.view.subflows[id.index()];
        view.state = SubflowState::Failed;
        let told = self.paths[id.index()].as_mut().is_some_and(|path| path.times_out(view));
        // Where only probes were lost no data says that the path was overloaded: the threshold is held. The controller hears
        // of it all the same, as coupled ones no longer count a path that is silent.
        self.notify(now, id, &Event::Timeout { repeated: told || idle });
        if let Some(path) = self.path_mut(id) {
            let interval = path.rto().max(PROBE_INTERVAL.0).min(PROBE_INTERVAL.1);
            path.on_failed(now, interval);
        }
        if self.blocked_probe.take().is_some() {
            // What was asked, or the answer, may have gone with the path.
            self.arm_blocked_probe(now);
        }
        self.events.push_back(SessionEvent::PathFailed(id));
    }

    /// Takes everything off a path: what it had in flight and what it was given is pending again.
    pub(crate) fn take_back(&mut self, now: Time, id: SubflowId) {
        let Some(path) = self.path_mut(id) else { return };
        let in_flight: Vec<PacketNumber> = path.packets_in_flight().collect();
        for packet in in_flight {
            let sent_at = self.path(id).and_then(|path| path.sent_at(packet)).unwrap_or(now);
            if let Some(sent) = self.resolve_lost(id, packet) {
                self.notify(now, id, &Event::Lost { packet, bytes: sent.bytes, sent_at });
            }
        }
        while let Some(again) = self.path_mut(id).and_then(|path| path.resend.pop_front()) {
            self.view.subflows[id.index()].queued -= again.bytes;
            self.waiting -= 1;
            self.give_up(again.range, id);
        }
        self.take_back_unsent(id);
        // What only the carrier acknowledged is the receiver's word against the peer's silence: watched on, by any path.
        let watched = self.path_mut(id).map(|path| core::mem::take(&mut path.undelivered)).unwrap_or_default();
        for (_, range) in watched {
            self.queue.on_undelivered(range);
        }
    }

    /// Takes back what a path was given and has not sent: it is pending again.
    pub(crate) fn take_back_unsent(&mut self, id: SubflowId) {
        while let Some(queued) = self.path_mut(id).and_then(|path| path.queue.pop_front()) {
            self.on_taken_back(queued, id);
        }
    }

    /// What was in a path's queue is pending again.
    pub(crate) fn on_taken_back(&mut self, queued: Queued, id: SubflowId) {
        self.view.subflows[id.index()].queued -= queued.bytes;
        self.waiting -= 1;
        if !queued.copy {
            self.never_left.insert(queued.range);
        }
        self.give_up(queued.range, id);
    }

    /// Takes back the last of what a path was given, as far as its window has shrunk below it: what was lost is pending and
    /// goes first, in place of waiting for round trips of what follows it.
    pub(crate) fn take_back_excess(&mut self, id: SubflowId) {
        while let Some(Some(path)) = self.paths.get_mut(id.index()) {
            let view = &self.view.subflows[id.index()];
            if view.in_flight + view.queued <= view.cwnd {
                return;
            }
            let Some(queued) = path.queue.pop_back() else { return };
            self.on_taken_back(queued, id);
        }
    }

    /// Schedules asking the peer for a window, unless it is scheduled already.
    pub(crate) fn arm_blocked_probe(&mut self, now: Time) {
        if self.blocked_probe.is_none() {
            self.blocked_interval = BLOCKED_INTERVAL.0;
            self.blocked_probe = Some(now + self.blocked_interval);
            self.stir(now + self.blocked_interval);
        }
    }

    /// A window opened: the peer reads. What it still holds up, or soon will again, is asked for as often as at first.
    pub(crate) fn on_window_opened(&mut self, now: Time) {
        if self.blocked_probe.take().is_some() && (self.queue.is_window_blocked() || !self.blocked_flows.is_empty()) {
            self.arm_blocked_probe(now);
        }
    }

    /// Asks the peer to repeat the windows that hold data up: its last word may have been lost.
    fn probe_window(&mut self, now: Time) {
        self.blocked_probe = None;
        let connection = self.queue.is_window_blocked().then_some(None);
        let flows: Vec<Option<FlowId>> = self.blocked_flows.iter().copied().map(Some).collect();
        if connection.is_none() && flows.is_empty() {
            return;
        }
        self.blocked_due.clear();
        self.blocked_due.extend(connection);
        self.blocked_due.extend(flows);
        self.blocked_interval = (self.blocked_interval * 2).min(BLOCKED_INTERVAL.1);
        self.blocked_probe = Some(now + self.blocked_interval);
    }
}
