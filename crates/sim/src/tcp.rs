//! The carrier of a subflow as TCP has it: a sequence space of its own, delivery in order, losses sent again on the subflow.
//!
//! Congestion window and what is in flight are the session's, which makes its `in_flight` the `pipe` of RFC 6675: what is
//! reported acknowledged or lost leaves it, what is sent again enters it. The carrier finds losses:
//!
//! * SACK (RFC 6675): a segment is lost when [`DUP_THRESH`] later ones have arrived; a segment is declared lost that way once,
//!   and its second loss is the timer's business: a sender that lives with much loss, as MPCC does, times out all the time. Of
//!   the rules of `NextSeg` the first two apply: a sender without new data neither sends segments again that are not known to
//!   be lost (rule 3) nor makes a rescue retransmission (rule 4).
//! * RACK-TLP (RFC 8985, [`rack`] and [`tail_probe`]): by time, and what is sent again is judged like anything else. The loss of
//!   what was sent again begins an episode anew (RFC 5681 s4.3), and a timeout spares nothing that left a moment ago (s6.3).
//!   What left again too soon, by its time stamp, has segments be later before they count as lost (s6.2 step 4).
//!   Where nothing is heard the last segment leaves once more as a probe.
//! * NewReno (RFC 6582): the third duplicate acknowledgement in a row loses the first segment, a partial acknowledgement the
//!   next one; the timer starts anew with the first partial acknowledgement of an episode only ("impatient"), or with each of
//!   them ("slow-but-steady", RFC 3782 s4). It is a TCP without options, thus without time stamps, too.
//! * The timer (RFC 6298) with its minimum as a parameter and exponential backoff. With RACK the minimum is one of what is
//!   added to the smoothed round trip, as in Linux. Until data has measured a round trip it is three of the handshake's, as in
//!   Linux, with NewReno a second at least, as in ns-3. Everything that has not arrived is lost, and recovery begins no more
//!   until all of it has been acknowledged; with NewReno it does, as in ns-3, when three duplicate acknowledgements come: what
//!   has arrived does not leave again here, so they tell of a loss (RFC 6582 s4).
//!
//! With SACK and RACK, what left in an episode and is lost begins the next one when that ends (RFC 6675 s5).
//!
//! Choices: sequence numbers count segments, which are never cut anew. What left twice measures no round trip (Karn). With SACK
//! and RACK, where an acknowledgement advances over nothing else, its time stamp does (RFC 7323 s4), as in Linux; with NewReno,
//! the backoff stays until something that left once is acknowledged (RFC 6298 s5). The granularity `G`
//! of RFC 6298 is the time for which a receiver may delay an acknowledgement, since a shorter patience would time out on a
//! lone segment. With NewReno a duplicate acknowledgement takes one segment out of the pipe, which is what RFC 6582's inflated
//! window comes to; it is the segment that arrived, so that a timeout repeats only what has not.

use std::collections::VecDeque;

use manypath_core::{Duration, PacketNumber, RttEstimator, Time};
use manypath_scenario::Recovery;
use manypath_session::record::SendTime;

use crate::ack::CarrierAck;
use crate::carrier::Fate;
use crate::packet::Number;

mod rack;
mod receiver;
mod tail_probe;

use rack::Rack;
pub(crate) use receiver::Receiver;
use tail_probe::TailProbe;

/// RFC 6675 s2: how many later segments must have arrived for one to be lost. RFC 5681 s3.2: duplicate acknowledgements.
const DUP_THRESH: usize = 3;
/// RFC 6298 s2.1: NewReno's timeout before data has measured a round trip, where the handshake's says no more.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 s2.5: the timeout may be bounded at sixty seconds.
const MAX_RTO: Duration = Duration::from_secs(60);
/// Time stamps count microseconds.
const TICK: Duration = Duration::from_micros(1);
/// The most blocks of a SACK option (RFC 2018 s3) beside timestamps and a data acknowledgement (RFC 8684 s3.3).
const MAX_BLOCKS: usize = 2;

/// A subflow's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) recovery: Recovery,
    pub(crate) min_rto: Duration,
    pub(crate) max_ack_delay: Duration,
    /// Timeouts in a row from which on the subflow's data is offered to other subflows; zero: never.
    pub(crate) reinject_after: u32,
}

/// Where a segment is, as far as the sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    InFlight,
    Arrived,
    /// It waits to be sent again.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The session's packet in which it left first, and in which it left last.
    first: PacketNumber,
    last: PacketNumber,
    sent_at: Time,
    whereabouts: Whereabouts,
    /// It left more than once.
    repeated: bool,
}

/// What loss recovery is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery until [`Sender::recover`] is passed.
    Recovery,
    /// After a timeout, until [`Sender::recover`] is passed.
    TimedOut,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    config: Config,
    /// Segments from number `base` on: RFC 6675's `HighACK + 1`.
    segments: VecDeque<Segment>,
    base: u64,
    /// The highest segments that arrived out of order, in descending order, one past each; zero: none.
    highest: [u64; DUP_THRESH],
    /// Segments below have arrived or were declared lost by what arrived above them.
    judged: u64,
    rack: Rack,
    probe: Option<TailProbe>,
    phase: Phase,
    /// One past the highest segment that had left when the phase began (spec: RecoveryPoint, recover).
    recover: u64,
    /// When the last episode of recovery began.
    began: Time,
    /// Duplicate acknowledgements in a row.
    duplicates: usize,
    /// A partial acknowledgement has come in this phase.
    partial: bool,
    rtt: RttEstimator,
    handshake_rtt: Duration,
    /// When the timer was started.
    timer: Time,
    /// When a segment left or the cumulative acknowledgement moved last, from which a probe's time counts.
    active_at: Time,
    /// Timeouts in a row.
    timeouts: u32,
    /// How often the timeout was doubled.
    backoff: u32,
    /// Marks that the receiver had counted in its last acknowledgement.
    marked: u64,
}

impl Sender {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            segments: VecDeque::new(),
            base: 0,
            highest: [0; DUP_THRESH],
            judged: 0,
            rack: Rack::default(),
            probe: None,
            phase: Phase::Open,
            recover: 0,
            began: Time::ZERO,
            duplicates: 0,
            partial: false,
            rtt: RttEstimator::new(),
            handshake_rtt: Duration::ZERO,
            timer: Time::ZERO,
            active_at: Time::ZERO,
            timeouts: 0,
            backoff: 0,
            marked: 0,
        }
    }

    /// Notes a segment that leaves, new or again; returns its number.
    pub(crate) fn on_sent(&mut self, now: Time, packet: PacketNumber, repeats: Option<PacketNumber>) -> Number {
        let again = repeats.and_then(|first| self.segments.binary_search_by_key(&first, |held| held.first).ok());
        let index = match again {
            Some(index) => {
                let segment = &mut self.segments[index];
                segment.last = packet;
                segment.sent_at = now;
                segment.whereabouts = Whereabouts::InFlight;
                segment.repeated = true;
                index
            }
            None => {
                let whereabouts = Whereabouts::InFlight;
                self.segments.push_back(Segment {
                    first: packet,
                    last: packet,
                    sent_at: now,
                    whereabouts,
                    repeated: false,
                });
                self.segments.len() - 1
            }
        };
        if index == 0 && !(self.config.recovery.is_new_reno() && self.phase == Phase::Recovery) {
            // RFC 6298 s5.1, and s5.6 after a timeout. RFC 6675 s6 allows it in recovery; with NewReno it runs on.
            self.timer = now;
        }
        self.active_at = now;
        self.departs(now, index)
    }

    /// The segment at this place of those held leaves, new or again.
    fn departs(&mut self, now: Time, index: usize) -> Number {
        let number = self.base + index as u64;
        if self.config.recovery == Recovery::Rack {
            self.rack.on_sent(now, number);
        }
        Number { number, unresolved: u32::try_from(index).unwrap_or(u32::MAX) }
    }

    /// Takes an acknowledgement: the cumulative one first, then the blocks of its SACK option.
    pub(crate) fn on_ack(&mut self, now: Time, ack: &CarrierAck, mut fate: impl FnMut(PacketNumber, Fate)) {
        let next = self.base + self.segments.len() as u64;
        let Some(((_, cumulative), blocks)) = ack.numbers.as_slice().split_first() else { return };
        let cumulative = (*cumulative).min(next);
        let marked = ack.marked > self.marked;
        let mut marks = marked;
        let advanced = cumulative > self.base;
        let mut sample = None;
        let acked = usize::try_from(cumulative.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let tells_nothing = |held: &Segment| held.repeated || held.whereabouts != Whereabouts::InFlight;
        let stamped = !self.config.recovery.is_new_reno();
        if advanced && stamped && self.segments.iter().take(acked).all(tells_nothing) {
            // Else the timer would stay with what may just have proved too short, as after an outage.
            let echo = SendTime(u32::try_from(ack.timing).unwrap_or(0)).elapsed(now);
            fate(PacketNumber::default(), Fate::Measured(echo));
            sample = Some(echo);
        }
        if advanced {
            self.judge_repetition(now, SendTime(u32::try_from(ack.timing).unwrap_or(0)));
        }
        let timed = (self.config.recovery == Recovery::Rack).then(|| self.rtt.min().unwrap_or_default());
        let mut note = |number: u64, segment: &Segment, fate: &mut dyn FnMut(PacketNumber, Fate)| {
            if segment.whereabouts == Whereabouts::Arrived {
                return;
            }
            if let Some(min_rtt) = timed {
                self.rack.on_arrived(now, number, segment.sent_at, segment.repeated, min_rtt);
            }
            if segment.whereabouts == Whereabouts::Lost {
                return fate(segment.first, Fate::ArrivedAfterAll);
            }
            if core::mem::take(&mut marks) {
                fate(segment.last, Fate::Marked);
            }
            if !segment.repeated {
                sample = Some(now.since(segment.sent_at));
            }
            fate(segment.last, Fate::Acked);
        };
        while self.base < cumulative {
            let Some(segment) = self.segments.pop_front() else { break };
            note(self.base, &segment, &mut fate);
            self.base += 1;
        }
        let mut arrived = false;
        // By number, not by when they changed: where an acknowledgement was lost, that would look like reordering.
        let mut ordered = [(0, 0); MAX_BLOCKS];
        let blocks = &mut ordered[..blocks.len().min(MAX_BLOCKS)];
        blocks.copy_from_slice(&ack.numbers.as_slice()[1..=blocks.len()]);
        blocks.sort_unstable();
        for &mut (first, end) in blocks {
            for number in first.max(self.base)..end.min(next) {
                // Blocks lie between the base and what was sent, so the offset fits.
                let Some(segment) = usize::try_from(number - self.base).ok().and_then(|at| self.segments.get_mut(at))
                else {
                    break;
                };
                if segment.whereabouts == Whereabouts::Arrived {
                    continue;
                }
                note(number, segment, &mut fate);
                segment.whereabouts = Whereabouts::Arrived;
                arrived = true;
                insert_descending(&mut self.highest, number + 1);
            }
        }
        if marked && !marks {
            // Marks that no segment could be charged with wait for one.
            self.marked = ack.marked;
        }
        if let Some(sample) = sample {
            self.rtt.on_sample(sample, Duration::ZERO);
        }
        if advanced {
            if sample.is_some() {
                self.backoff = 0;
            }
            self.on_advance(now, &mut fate);
            self.judge_probe(now, SendTime(u32::try_from(ack.timing).unwrap_or(0)), &mut fate);
        } else if arrived {
            self.duplicates += 1;
        }
        self.detect_losses(now, &mut fate);
    }

    /// What is first in order arrives in a recovery. Its time stamp says whether it left again too soon (RFC 3522 s3), as
    /// D-SACK would when the second copy has come.
    fn judge_repetition(&mut self, now: Time, echo: SendTime) {
        let repeated = |held: &&Segment| held.repeated && held.whereabouts == Whereabouts::InFlight;
        if let Some(first) = self.segments.front().filter(repeated)
            && self.phase != Phase::Open
            && echo.elapsed(now) > now.since(first.sent_at) + TICK
        {
            self.rack.on_sent_too_soon(self.base, self.base + self.segments.len() as u64);
        }
    }

    /// The cumulative acknowledgement moved.
    fn on_advance(&mut self, now: Time, fate: &mut impl FnMut(PacketNumber, Fate)) {
        self.duplicates = 0;
        self.timeouts = 0;
        self.active_at = now;
        let over = self.base >= self.recover;
        let impatient = self.config.recovery == Recovery::NewReno && self.phase == Phase::Recovery && !over;
        if !core::mem::replace(&mut self.partial, true) || !impatient {
            // RFC 6298 s5.3; RFC 6582 s3.2 step 3: on the first partial acknowledgement only.
            self.timer = now;
        }
        if over && self.phase != Phase::Open {
            self.rack.on_recovered();
            if core::mem::replace(&mut self.phase, Phase::Open) == Phase::Recovery {
                fate(PacketNumber::default(), Fate::Recovered);
            }
            self.recover_again(now, fate);
        } else if self.phase == Phase::Recovery && self.config.recovery.is_new_reno() {
            // RFC 6582 s3.2 step 3: a partial acknowledgement ends at the next hole.
            self.lose(now, self.base, fate);
        }
    }

    /// An episode is over. RFC 6675 s5: what left in it and was lost, too, begins the next one.
    fn recover_again(&mut self, now: Time, fate: &mut impl FnMut(PacketNumber, Fate)) {
        let missing = |held: &&Segment| {
            held.whereabouts == Whereabouts::Lost || held.repeated && held.whereabouts == Whereabouts::InFlight
        };
        if let Some(first) = self.segments.iter().find(missing).map(|held| held.last) {
            self.begin_recovery(now, first, fate);
        }
    }

    fn begin_recovery(&mut self, now: Time, packet: PacketNumber, fate: &mut impl FnMut(PacketNumber, Fate)) {
        self.phase = Phase::Recovery;
        self.probe = None;
        self.recover = self.base + self.segments.len() as u64;
        self.began = now;
        self.partial = false;
        fate(packet, Fate::BeginsRecovery);
    }

    fn detect_losses(&mut self, now: Time, fate: &mut impl FnMut(PacketNumber, Fate)) {
        match self.config.recovery {
            Recovery::Sack if self.phase != Phase::TimedOut => {
                // RFC 6675 s4, IsLost: at least DupThresh segments above have arrived.
                let end = self.highest[DUP_THRESH - 1].saturating_sub(1);
                for number in self.judged.max(self.base)..end {
                    self.lose(now, number, fate);
                }
                self.judged = end;
            }
            Recovery::NewReno | Recovery::NewRenoSteady
                if self.phase != Phase::Recovery && self.duplicates >= DUP_THRESH =>
            {
                self.lose(now, self.base, fate);
            }
            Recovery::Rack => {
                while let Some(number) = self.next_late(now) {
                    self.lose(now, number, fate);
                }
            }
            _ => {}
        }
    }

    /// RFC 8985 s6.2: the next segment that has not arrived although it should have.
    fn next_late(&mut self, now: Time) -> Option<u64> {
        let certain = self.phase != Phase::Open || self.highest[DUP_THRESH - 1] > self.base;
        let tolerance = self.rack.tolerance(certain, &self.rtt);
        let (segments, base) = (&self.segments, self.base);
        self.rack.next_lost(now, tolerance, |number, sent_at| {
            let index = number.checked_sub(base).and_then(|ahead| usize::try_from(ahead).ok());
            let segment = index.and_then(|index| segments.get(index));
            segment.is_some_and(|held| held.whereabouts == Whereabouts::InFlight && held.sent_at == sent_at)
        })
    }

    /// Declares a segment lost that has not arrived, for the first time but with RACK. The first one begins an episode, and
    /// so does one that left again since the last began.
    fn lose(&mut self, now: Time, number: u64, fate: &mut impl FnMut(PacketNumber, Fate)) {
        let index = usize::try_from(number.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let Some(segment) = self.segments.get_mut(index) else { return };
        // RFC 6582 s4: three duplicate acknowledgements may also tell of a head that is lost again after a timeout.
        let rescued = self.phase == Phase::TimedOut && self.config.recovery.is_new_reno();
        let settled = segment.repeated && self.config.recovery != Recovery::Rack && !rescued;
        if segment.whereabouts != Whereabouts::InFlight || settled {
            return;
        }
        segment.whereabouts = Whereabouts::Lost;
        let packet = segment.last;
        // What is lost first leaves again at the moment when the episode begins.
        let again = segment.repeated && segment.sent_at >= self.began;
        if self.phase == Phase::Open || rescued || self.phase == Phase::Recovery && again {
            self.begin_recovery(now, packet, fate);
        }
        fate(packet, Fate::Lost);
    }

    /// Takes the round trip of the handshake.
    pub(crate) fn on_handshake(&mut self, rtt: Duration) {
        self.handshake_rtt = rtt;
    }

    /// When [`on_timeout`](Self::on_timeout) must be called; [`Time::MAX`]: never.
    pub(crate) fn deadline(&self) -> Time {
        if self.segments.is_empty() {
            return Time::MAX;
        }
        self.rack.due().min(self.timer + self.timeout()).min(self.probe_at())
    }

    /// Time has passed; returns the packet that must leave once more as a probe, and the number under which.
    pub(crate) fn on_timeout(
        &mut self,
        now: Time,
        mut fate: impl FnMut(PacketNumber, Fate),
    ) -> Option<(PacketNumber, Number)> {
        if self.rack.due() <= now {
            self.detect_losses(now, &mut fate);
        }
        if self.segments.is_empty() {
            return None;
        }
        if self.timer + self.timeout() <= now {
            self.time_out(now, &mut fate);
            return None;
        }
        if self.probe_at() <= now { self.send_probe(now) } else { None }
    }

    /// RFC 6298 s5.4 to s5.6, RFC 6675 s5.1, RFC 6582 s3.2 on timeouts.
    fn time_out(&mut self, now: Time, fate: &mut impl FnMut(PacketNumber, Fate)) {
        self.timeouts += 1;
        self.backoff += 1;
        self.timer = now;
        self.phase = Phase::TimedOut;
        self.probe = None;
        self.duplicates = 0;
        self.recover = self.base + self.segments.len() as u64;
        let mut lost = 0;
        for segment in self.segments.iter_mut().filter(|segment| segment.whereabouts == Whereabouts::InFlight) {
            segment.whereabouts = Whereabouts::Lost;
            lost += 1;
        }
        let reinject = self.config.reinject_after > 0 && self.timeouts >= self.config.reinject_after;
        fate(PacketNumber::default(), Fate::TimedOut { repeated: self.timeouts > 1, lost, reinject });
    }

    /// RFC 6298 s2: the timeout with its backoff.
    fn timeout(&self) -> Duration {
        let Config { recovery, min_rto, max_ack_delay, .. } = self.config;
        let handshake = || (self.handshake_rtt, self.handshake_rtt / 2);
        let (srtt, rttvar) = self.rtt.srtt().map_or_else(handshake, |srtt| (srtt, self.rtt.rttvar()));
        let least = match recovery {
            Recovery::Rack => srtt + min_rto,
            Recovery::NewReno | Recovery::NewRenoSteady if self.rtt.srtt().is_none() => INITIAL_RTO.max(min_rto),
            _ => min_rto,
        };
        let base = srtt + (rttvar * 4).max(max_ack_delay);
        (base.max(least) * (1 << self.backoff.min(10))).min(MAX_RTO.max(min_rto))
    }
}

/// Keeps the greatest of the values held and a new one.
fn insert_descending(held: &mut [u64; DUP_THRESH], mut value: u64) {
    for slot in held {
        if value > *slot {
            core::mem::swap(slot, &mut value);
        }
    }
}

#[cfg(test)]
mod tests;
