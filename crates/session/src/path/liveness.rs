//! Whether a path lives: its timeouts, its probes, and when it has failed.

use manypath_core::{Duration, SubflowState, SubflowView, Time};

use super::{INITIAL_RTO, Path};
use crate::config::Carriage;

/// As many probes are remembered: one a second at most leaves, so the answer to the first may take a minute.
const MAX_PROBES: usize = 64;

/// However short the round trip, silence shorter than this is no failure: schedulers and radios pause that long.
const MIN_FAILURE: Duration = Duration::from_millis(250);

impl Path {
    /// `srtt + 4 rttvar + max_ack_delay`, without floor and without backoff.
    pub(crate) fn rto(&self) -> Duration {
        self.rtt.timeout(self.first_rto) + self.max_ack_delay
    }

    /// RFC 6298 s2.2: the timeout after one sample, that of the handshake, where it is the longer.
    pub(crate) fn on_handshake(&mut self, rtt: Duration) {
        self.first_rto = INITIAL_RTO.max(rtt * 3);
    }

    /// A packet without an answer for this long is lost; if nothing at all was answered, the path has failed.
    pub(crate) fn failure_after(&self) -> Duration {
        (self.rto() * 2).max(MIN_FAILURE)
    }

    /// When a silent path has failed; [`Time::MAX`] when no answer is owed.
    pub(crate) fn fails_at(&self) -> Time {
        self.awaiting_since.map_or(Time::MAX, |since| since + self.failure_after())
    }

    /// When the oldest packet in flight is lost although later ones were answered; [`Time::MAX`] without one.
    pub(crate) fn oldest_lost_at(&self) -> Time {
        self.sent.front().map_or(Time::MAX, |oldest| oldest.sent_at + self.failure_after())
    }

    /// The path is heard to deliver.
    pub(crate) fn on_alive(&mut self, now: Time) {
        self.timed_out = false;
        self.probes.clear();
        self.alive_at = now;
        self.active_at = now;
        self.awaiting_since = (!self.sent.is_empty()).then_some(now);
    }

    /// The carrier knows what became of a packet. With nothing under way that could be answered, what leaves next begins a
    /// silence of its own.
    pub(crate) fn on_word_of_loss(&mut self) {
        if self.sent.is_empty() && self.probes.is_empty() {
            self.awaiting_since = None;
        }
    }

    /// What no probe carried for long.
    pub(crate) fn next_token(&mut self) -> u32 {
        self.last_token = self.last_token.wrapping_add(1);
        self.last_token
    }

    /// A probe leaves that must be answered.
    pub(crate) fn on_probe(&mut self, now: Time) -> u32 {
        let token = self.next_token();
        if self.probes.len() == MAX_PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back((token, now));
        self.awaiting_since.get_or_insert(now);
        token
    }

    /// A probe was answered; says whether it is one that left since the path was last heard. Where nothing else measures,
    /// on a path that has failed or never was heard, the answer is a sample: acknowledgements of what was given up are
    /// none, and with its old timeout a path whose round trip has grown would fail for ever.
    pub(crate) fn on_answered(&mut self, now: Time, token: u32, view: &mut SubflowView) -> bool {
        let Some(&(_, left_at)) = self.probes.iter().find(|(sent, _)| *sent == token) else { return false };
        if view.state == SubflowState::Failed || self.rtt.srtt().is_none() {
            self.measure(now, now.since(left_at), view);
        }
        self.on_alive(now);
        true
    }

    /// Nothing is in flight any more and no answer owed: the path was given up.
    pub(crate) fn on_failed(&mut self, now: Time, probe_interval: Duration) {
        self.awaiting_since = None;
        self.next_probe = now;
        self.probe_interval = probe_interval;
        self.pacer.reset();
    }

    /// Whether the path must be probed: it is silent for a retransmission timeout, idle, or failed and its turn has come.
    pub(crate) fn probe_due(&self, now: Time, failed: bool, keep_alive: Duration) -> bool {
        if self.carriage == Carriage::Streams {
            // The carrier's retransmission timer finds out.
            return false;
        }
        if failed {
            return self.next_probe <= now;
        }
        self.probe_at(keep_alive) <= now
    }

    /// When an active path wants a probe; [`Time::MAX`]: not before it is heard. After an RTO without an answer, or after the
    /// keep-alive time without traffic; that one again after an RTO, since a lost packet is no failure.
    fn probe_at(&self, keep_alive: Duration) -> Time {
        if let Some((_, left_at)) = self.probes.back() {
            return if self.sent.is_empty() { *left_at + self.rto() } else { Time::MAX };
        }
        let idle = self.active_at + keep_alive;
        match self.sent.front() {
            Some(oldest) => idle.min(oldest.sent_at.max(self.alive_at) + self.rto()),
            None => idle,
        }
    }

    /// When the path's own timers want attention; [`Time::MAX`]: never.
    pub(crate) fn next_deadline(&self, failed: bool, keep_alive: Duration) -> Time {
        if self.carriage == Carriage::Streams {
            return Time::MAX;
        }
        let mut next = self.undelivered.front().map_or(Time::MAX, |(deadline, _)| *deadline);
        // A carrier that takes nothing takes no probe.
        if failed {
            return if self.carrier_ready { next.min(self.next_probe) } else { next };
        }
        if self.carrier_ready {
            next = next.min(self.probe_at(keep_alive));
        }
        next.min(self.fails_at()).min(self.oldest_lost_at())
    }
}
