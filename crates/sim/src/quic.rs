//! The carrier of a subflow as QUIC has it: loss detection by RFC 9002, acknowledgements by RFC 9000 s13.2.
//!
//! Every packet number is used once; what is lost is the session's business. A path that reorders is given more time
//! ([`Lateness`]), as in the transport. The receiver's acknowledgements take the
//! session's along, so that they cost no packet of their own.

use std::collections::VecDeque;

use manypath_core::{DataRange, DataSeq, Duration, Lateness, PacketNumber, RangeSet, RttEstimator, Time, prefetch};

use crate::ack::{CarrierAck, MAX_NUMBER_RANGES};
use crate::carrier::Fate;
use crate::packet::Number;

/// RFC 9002 s6.1.2: `kGranularity`.
const GRANULARITY: Duration = Duration::from_millis(1);

/// In place of the time when a packet left: its fate is known.
const RESOLVED: Time = Time::MAX;

/// The sending half: which packets have arrived, which are lost?
#[derive(Debug)]
pub(crate) struct Sender {
    /// When the packets from number `base` on left, or [`RESOLVED`]; the first never is. Nothing else is kept here, since
    /// every packet in flight has one.
    sent: VecDeque<Time>,
    base: u64,
    /// The numbers of the carrier's own probes from `base` on, which the session does not count, and how many came before.
    probes: VecDeque<u64>,
    probes_before: u64,
    largest_acked: Option<u64>,
    rtt: RttEstimator,
    /// The round trip before data has measured one.
    first_rtt: Duration,
    /// What counts as lost.
    lateness: Lateness,
    /// The numbers of packets that were declared lost and may yet arrive, and when they left.
    missing: VecDeque<(u64, Time)>,
    /// When the first packet is lost by the time threshold.
    loss_at: Option<Time>,
    last_sent: Time,
    /// Probe timeouts in a row.
    timeouts: u32,
    /// How long after the last packet a probe must leave.
    patience: Duration,
    max_ack_delay: Duration,
    /// Marks that the receiver had counted in its last acknowledgement.
    marked: u64,
}

impl Sender {
    pub(crate) fn new(max_ack_delay: Duration) -> Self {
        Self {
            sent: VecDeque::new(),
            base: 0,
            probes: VecDeque::new(),
            probes_before: 0,
            largest_acked: None,
            rtt: RttEstimator::new(),
            first_rtt: Duration::ZERO,
            lateness: Lateness::default(),
            missing: VecDeque::new(),
            loss_at: None,
            last_sent: Time::ZERO,
            timeouts: 0,
            patience: Duration::ZERO,
            max_ack_delay,
            marked: 0,
        }
    }

    /// Takes the round trip of the handshake: RFC 9002 s6.2.1 until data has measured one.
    pub(crate) fn on_handshake(&mut self, rtt: Duration) {
        self.first_rtt = rtt;
        self.patience = self.probe_timeout();
    }

    /// Notes a packet that leaves; returns its number.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, packet: Option<PacketNumber>) -> Number {
        let ahead = self.sent.len();
        let number = self.base + ahead as u64;
        self.sent.push_back(now);
        if packet.is_none() {
            self.probes.push_back(number);
        }
        debug_assert_eq!(self.packet(number), packet, "the session counts all but probes");
        self.last_sent = now;
        Number { number, unresolved: u32::try_from(ahead).unwrap_or(u32::MAX) }
    }

    /// Takes an acknowledgement; tells `fate` of every session packet that it decides.
    pub(crate) fn on_ack(&mut self, now: Time, ack: &CarrierAck, mut fate: impl FnMut(PacketNumber, Fate)) {
        let next = self.base + self.sent.len() as u64;
        let Some((_, end)) = ack.numbers.as_slice().first() else { return };
        let Some(largest) = end.min(&next).checked_sub(1) else { return };
        let marks = ack.marked > self.marked;
        if self.largest_acked.is_none_or(|held| largest > held)
            && let Some(at) = self.sent_at(largest)
        {
            // RFC 9002 s5.1: a sample only when the largest is newly acknowledged. s5.3: a delay above the limit is cut.
            let delay = Duration::from_nanos(ack.timing).min(self.max_ack_delay);
            self.rtt.on_sample(now.since(at), delay);
            self.largest_acked = Some(largest);
            if let Some(packet) = self.packet(largest).filter(|_| marks) {
                self.marked = ack.marked;
                // While the session still knows when the packet left: it decides whose round trip the mark belongs to.
                fate(packet, Fate::Marked);
            }
        }
        self.find_late(now, ack);
        let mut progress = false;
        for &(first, end) in ack.numbers.as_slice() {
            for number in first.max(self.base)..end.min(next) {
                if self.resolve(number) {
                    progress = true;
                    if let Some(packet) = self.packet(number) {
                        fate(packet, Fate::Acked);
                    }
                }
            }
        }
        if progress {
            self.timeouts = 0;
            self.patience = self.probe_timeout();
            self.drop_resolved();
            self.detect_losses(now, fate);
        }
    }

    /// Packets that were declared lost and are acknowledged. After two probe timeouts nothing is expected of them any more.
    fn find_late(&mut self, now: Time, ack: &CarrierAck) {
        if self.missing.is_empty() {
            return;
        }
        let (rtt, given_up) = (self.longer_rtt(), self.probe_timeout() * 2);
        self.missing.retain(|&(number, left_at)| {
            let arrived = ack.numbers.as_slice().iter().any(|(first, end)| (*first..*end).contains(&number));
            if arrived {
                self.lateness.on_arrived_late(now.since(left_at), rtt);
            }
            !arrived && now.since(left_at) < given_up
        });
    }

    /// The latest round trip or the smoothed one, whichever is longer.
    fn longer_rtt(&self) -> Duration {
        self.rtt.srtt().unwrap_or(self.first_rtt).max(self.rtt.latest())
    }

    /// RFC 9002 s6.1: what is lost by the packet threshold or the time threshold.
    fn detect_losses(&mut self, now: Time, mut fate: impl FnMut(PacketNumber, Fate)) {
        self.loss_at = None;
        let Some(largest) = self.largest_acked else { return };
        if self.base > largest {
            return;
        }
        let patience = self.lateness.time(self.longer_rtt());
        let next = self.base + self.sent.len() as u64;
        for number in self.base..=largest {
            let Some(at) = self.sent_at(number) else { continue };
            let lost_at = at + patience;
            if number.saturating_add(self.lateness.packets()) <= largest || lost_at <= now {
                self.resolve(number);
                self.lateness.on_lost(number, next);
                self.missing.push_back((number, at));
                if let Some(packet) = self.packet(number) {
                    fate(packet, Fate::Lost);
                }
            } else {
                // Packets leave in the order of their numbers: the first that is left is the first to be lost.
                self.loss_at = Some(lost_at);
                break;
            }
        }
        self.drop_resolved();
    }

    /// When [`on_timeout`](Self::on_timeout) must be called; [`Time::MAX`]: never.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match self.loss_at {
            Some(at) => at,
            None if self.sent.is_empty() => Time::MAX,
            None => self.last_sent + self.patience,
        }
    }

    /// Time has passed; says whether a probe must leave.
    pub(crate) fn on_timeout(&mut self, now: Time, fate: impl FnMut(PacketNumber, Fate)) -> bool {
        if self.loss_at.is_some_and(|at| at <= now) {
            self.detect_losses(now, fate);
            return false;
        }
        if self.deadline() > now {
            return false;
        }
        self.timeouts += 1;
        self.patience = self.probe_timeout();
        true
    }

    /// RFC 9002 s6.2.1, with the backoff bounded so that a dead path is probed once a minute or so.
    fn probe_timeout(&self) -> Duration {
        let (srtt, rttvar) =
            self.rtt.srtt().map_or((self.first_rtt, self.first_rtt / 2), |srtt| (srtt, self.rtt.rttvar()));
        let base = srtt + (rttvar * 4).max(GRANULARITY) + self.max_ack_delay;
        base * (1 << self.timeouts.min(6))
    }

    /// The session's number of a packet; `None` for the carrier's own probes.
    #[inline]
    fn packet(&self, number: u64) -> Option<PacketNumber> {
        let before = self.probes.partition_point(|probe| *probe < number);
        let is_probe = self.probes.get(before) == Some(&number);
        (!is_probe).then(|| PacketNumber(number - self.probes_before - before as u64))
    }

    /// When a packet left whose fate is not known.
    #[inline]
    fn sent_at(&self, number: u64) -> Option<Time> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.sent.get(index).copied().filter(|at| *at != RESOLVED)
    }

    /// Marks a packet; says whether it was not marked before.
    #[inline]
    fn resolve(&mut self, number: u64) -> bool {
        let index = number.checked_sub(self.base).and_then(|ahead| usize::try_from(ahead).ok());
        let held = index.and_then(|index| self.sent.get_mut(index));
        held.is_some_and(|at| core::mem::replace(at, RESOLVED) != RESOLVED)
    }

    /// Has fetched when the packets left that are acknowledged next, and where the next is noted.
    pub(crate) fn prefetch(&self) {
        self.sent.front().into_iter().chain(self.sent.back()).for_each(prefetch);
    }

    fn drop_resolved(&mut self) {
        while self.sent.pop_front_if(|first| *first == RESOLVED).is_some() {
            self.base += 1;
        }
        while self.probes.pop_front_if(|first| *first < self.base).is_some() {
            self.probes_before += 1;
        }
    }
}

/// The receiving half: when to acknowledge what?
#[derive(Debug)]
pub(crate) struct Receiver {
    received: RangeSet,
    every: u32,
    max_delay: Duration,
    unacked: u32,
    /// When an acknowledgement must leave.
    due: Time,
    largest_at: Time,
    marked: u64,
}

impl Receiver {
    pub(crate) fn new(every: u32, max_delay: Duration) -> Self {
        let (due, largest_at) = (Time::MAX, Time::ZERO);
        Self { received: RangeSet::new(), every, max_delay, unacked: 0, due, largest_at, marked: 0 }
    }

    /// A packet that asks for an acknowledgement has arrived; says whether one must leave at once.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, number: Number, ce: bool) -> bool {
        let expected = self.received.last().map_or(0, |range| range.end.0);
        self.received.insert(DataRange::new(DataSeq(number.number), 1));
        if self.received.range_count() > 1 {
            self.received.remove_below(DataSeq(number.floor()));
        }
        if number.number >= expected {
            self.largest_at = now;
        }
        self.marked += u64::from(ce);
        self.unacked += 1;
        // RFC 9000 s13.2.1: at once after a gap, out of order, and for a mark; else every second packet or after a while.
        if self.unacked >= self.every || number.number != expected || ce {
            return true;
        }
        self.due = self.due.min(now + self.max_delay);
        false
    }

    /// Writes an acknowledgement, which leaves now.
    pub(crate) fn write_ack(&mut self, now: Time, ack: &mut CarrierAck) {
        self.unacked = 0;
        self.due = Time::MAX;
        ack.numbers.clear();
        for range in self.received.iter().rev().take(MAX_NUMBER_RANGES) {
            ack.numbers.push((range.start.0, range.end.0));
        }
        ack.timing = now.since(self.largest_at).as_nanos();
        ack.marked = self.marked;
    }

    /// When an acknowledgement must leave; [`Time::MAX`]: never.
    pub(crate) fn due(&self) -> Time {
        self.due
    }
}

#[cfg(test)]
mod tests;
