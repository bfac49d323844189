//! Monitor intervals: which packets were sent at which rate, and what became of them (MPCC s3.1, Vivace s3).
//!
//! An interval begins with its first packet. It is *open* while packets are assigned to it, then *closed*; its results are known when all its packets are
//! acknowledged or lost, about a round trip later, or when its deadline has passed. Packets sent while no interval is open
//! belong to none.

use std::collections::VecDeque;

use manypath_core::{Bytes, Duration, PacketNumber, Rate, Time};

use crate::event::Acked;

/// When to close an interval and when to give up on its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Length in round-trip times (MPCC s5.2: "in the order of the subflow's RTT"; its release: 1.5).
    pub length: f64,
    /// The least packets of an interval: it stays open until they are sent (PCC's releases: 5 to 10, MPCC's: 1).
    pub min_packets: u64,
    /// How long after its end an interval waits for packets, in round-trip times. What is missing then counts as lost.
    /// Only a safety net: sessions declare packets lost earlier.
    pub deadline: f64,
    /// Whether it waits on while nothing is heard for half as long, and once for as long again when the path is heard: what
    /// stood still for a moment is not lost.
    pub outlasts_silence: bool,
    /// RTT slopes of smaller magnitude are taken for zero (Vivace: 0.01).
    pub min_slope: f64,
    /// As are slopes below this multiple of their own standard error.
    pub slope_errors: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { length: 1.5, min_packets: 5, deadline: 4.0, outlasts_silence: false, min_slope: 0.01, slope_errors: 2.0 }
    }
}

/// Shorter intervals cannot be timed by any engine's clock.
const MIN_LENGTH: Duration = Duration::from_millis(1);
/// Intervals under way at once: a probing round and one more. Older ones are given up, so that memory is bounded.
const MAX_INTERVALS: usize = 8;

/// Least squares of RTT over send time. Both are taken relative to the first sample, so that sums stay small.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regression {
    n: f64,
    origin: Option<(Time, f64)>,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
    yy: f64,
}

impl Regression {
    /// Adds the RTT of a packet sent at `sent_at`.
    pub fn add(&mut self, sent_at: Time, rtt: Duration) {
        let (start, base) = *self.origin.get_or_insert((sent_at, rtt.as_secs_f64()));
        // The first that is heard is not always the first that left.
        let t = sent_at.since(start).as_secs_f64() - start.since(sent_at).as_secs_f64();
        let y = rtt.as_secs_f64() - base;
        self.n += 1.0;
        self.t += t;
        self.y += y;
        self.tt += t * t;
        self.ty += t * y;
        self.yy += y * y;
    }

    /// Mean of the samples, seconds; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        self.origin.map(|(_, base)| base + self.y / self.n)
    }

    /// Slope in seconds per second, and its standard error; `None` with fewer than three samples or all at one time.
    pub fn slope(&self) -> Option<(f64, f64)> {
        let stt = self.tt - self.t * self.t / self.n;
        if self.n < 3.0 || stt <= 0.0 {
            return None;
        }
        let sty = self.ty - self.t * self.y / self.n;
        let syy = self.yy - self.y * self.y / self.n;
        let slope = sty / stt;
        let residual = (syy - slope * sty).max(0.0) / (self.n - 2.0);
        let error = libm::sqrt(residual / stt);
        (slope.is_finite() && error.is_finite()).then_some((slope, error))
    }

    /// The slope; zero when it cannot be told from zero.
    fn significant_slope(&self, config: &Config) -> f64 {
        self.slope().map_or(0.0, |(slope, error)| {
            if slope.abs() < config.min_slope.max(config.slope_errors * error) { 0.0 } else { slope }
        })
    }
}

/// What an interval measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report<R> {
    /// What the interval was for.
    pub role: R,
    /// The rate it was sent at, in the caller's unit.
    pub rate: f64,
    /// Time it was open.
    pub span: Duration,
    /// Time from its first packet to its last.
    pub sending: Duration,
    /// Packets sent in it.
    pub packets: u32,
    /// Bytes sent in it.
    pub sent: Bytes,
    /// Share of those bytes that were lost, in 0..=1.
    pub loss: f64,
    /// Whether little was lost beside its longest gap: packets sent one after another that were all lost.
    pub in_a_gap: bool,
    /// Slope of the RTT over the interval (s/s); zero when it cannot be told from zero. If the application limited sending, without the
    /// latest acknowledgement: a receiver keeps that of the last packet back, in case that more come.
    pub slope: f64,
    /// Mean RTT, seconds; `None` if nothing was acknowledged.
    pub rtt: Option<f64>,
    /// How fast its packets arrived, by their acknowledgements; zero if they were too few to tell.
    pub arrival: Rate,
    /// Whether the application limited sending in it.
    pub app_limited: bool,
}

/// An interval sent at less than this share of its rate did not test it (the test of MPCC's release).
const MIN_SHARE: f64 = 0.9;
/// Loss above which a rate is too high whatever its utility (the emergency brake of MPCC's release).
const OVERLOAD: f64 = 0.3;
/// Loss beside a gap up to which it is the gap that lost the rest. Too high a rate loses packets all along: the path still carries some.
const BESIDE_GAP: f64 = OVERLOAD / 2.0;
/// Packets of which such a loss is no accident; the release wants 100, which slow paths do not send in an interval.
const OVERLOAD_PACKETS: u32 = 20;

impl<R> Report<R> {
    /// Whether the interval, sent at a rate in Mbit/s, was sent at that rate, but for one packet of `mss` bytes.
    pub fn is_filled(&self, mss: f64) -> bool {
        self.fills(self.span, mss)
    }

    /// Whether the application had no more to send before its end, and it was sent at its rate until then: a shorter interval.
    pub fn is_cut_short(&self, mss: f64) -> bool {
        self.app_limited && self.tells_loss() && self.fills(self.sending, mss)
    }

    fn fills(&self, span: Duration, mss: f64) -> bool {
        (self.sent.as_f64() + mss) * 8e-6 >= MIN_SHARE * self.rate * span.as_secs_f64()
    }

    /// Whether so much of the interval was lost that its rate is too high even if it was not sent at all of it.
    pub fn is_overload(&self) -> bool {
        self.tells_loss() && self.loss > OVERLOAD
    }

    /// Whether such a loss may be of a moment in which nothing arrived, which tells nothing of the rate.
    pub fn is_gap(&self) -> bool {
        self.is_overload() && self.in_a_gap
    }

    /// Whether it has enough packets for a share of them to say something.
    pub fn tells_loss(&self) -> bool {
        self.packets >= OVERLOAD_PACKETS
    }

    /// Whether the interval tested its rate: neither the application nor the sender held it back.
    pub fn is_fair(&self, mss: f64) -> bool {
        !self.app_limited && self.packets > 0 && self.is_filled(mss)
    }
}

/// One interval.
#[derive(Clone, Debug)]
struct Interval<R> {
    role: R,
    rate: f64,
    /// When its first packet left; when it was opened, before that.
    start: Time,
    /// How long it lasts at least; longer if it lacks packets.
    length: Duration,
    /// When its last packet left.
    last_sent: Time,
    /// First packet and the one after the last; `None` before the first.
    range: Option<(u64, u64)>,
    sent: Bytes,
    acked: Bytes,
    /// When the first acknowledgement came, what it was for, and when the latest came.
    heard: Option<(Time, Bytes, Time)>,
    lost: Bytes,
    gaps: Gaps,
    regression: Regression,
    /// Without the latest acknowledgement.
    regression_before: Regression,
    app_limited: bool,
    /// When it was closed.
    closed: Option<Time>,
    /// When the path was heard again after a silence that began later.
    heard_again: Option<Time>,
}

/// Packets sent one after another that were all lost, as losses are told in the order of sending.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    /// The packet after the latest, and bytes of it and those before it.
    latest: Option<(u64, Bytes)>,
    longest: Bytes,
}

impl Gaps {
    fn on_lost(&mut self, packet: PacketNumber, bytes: Bytes) {
        let before = self.latest.filter(|(next, _)| *next == packet.0).map_or(Bytes::ZERO, |(_, bytes)| bytes);
        self.latest = Some((packet.0.saturating_add(1), before + bytes));
        self.longest = self.longest.max(before + bytes);
    }
}

impl<R: Copy> Interval<R> {
    fn end(&self) -> Time {
        self.start + self.length
    }

    fn packets(&self) -> u64 {
        self.range.map_or(0, |(first, end)| end - first)
    }

    fn holds(&self, packet: PacketNumber) -> bool {
        self.range.is_some_and(|(first, end)| (first..end).contains(&packet.0))
    }

    fn is_settled(&self) -> bool {
        self.acked + self.lost >= self.sent
    }

    fn arrival(&self) -> Rate {
        match self.heard {
            Some((first, size, last)) if self.packets() >= OVERLOAD_PACKETS.into() => {
                Rate::from_bytes_per(self.acked - size, last.since(first))
            }
            _ => Rate::ZERO,
        }
    }

    fn report(&self, config: &Config) -> Report<R> {
        let regression = if self.app_limited { self.regression_before } else { self.regression };
        // Past the deadline, what is unknown counts as lost; events that count a packet twice cannot exceed all.
        let lost = self.lost.max(self.sent - self.acked).min(self.sent);
        let gap = self.gaps.longest.min(lost);
        let share = |of: Bytes, all: Bytes| if all.is_zero() { 0.0 } else { of.as_f64() / all.as_f64() };
        Report {
            role: self.role,
            rate: self.rate,
            span: self.closed.unwrap_or(self.end()).since(self.start),
            sending: self.last_sent.since(self.start),
            packets: u32::try_from(self.packets()).unwrap_or(u32::MAX),
            sent: self.sent,
            loss: share(lost, self.sent),
            in_a_gap: share(lost - gap, self.sent - gap) <= BESIDE_GAP,
            slope: regression.significant_slope(config),
            rtt: self.regression.mean(),
            arrival: self.arrival(),
            app_limited: self.app_limited,
        }
    }
}

/// The intervals of one subflow; `R` says what an interval is for.
#[derive(Clone, Debug)]
pub struct Monitor<R> {
    config: Config,
    /// Oldest first; only the last may be open.
    intervals: VecDeque<Interval<R>>,
    /// Whether the open interval's end has passed and it waits for packets only.
    overdue: bool,
    /// How long closed intervals wait; without end before a round trip was measured.
    patience: Option<Duration>,
    /// When the latest acknowledgement came.
    heard_at: Time,
}

impl<R: Copy> Monitor<R> {
    /// A monitor without intervals.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            intervals: VecDeque::with_capacity(MAX_INTERVALS),
            overdue: false,
            patience: None,
            heard_at: Time::ZERO,
        }
    }

    /// Opens an interval at `rate`, after closing the one that was open. Before a round trip was measured, `guess` stands for it
    /// in the length, and intervals wait for their results however long: none can have come.
    pub fn begin(&mut self, now: Time, role: R, rate: f64, rtt: Option<Duration>, guess: Duration) {
        self.close(now);
        if self.intervals.len() == MAX_INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval {
            role,
            rate,
            start: now,
            last_sent: now,
            length: rtt.unwrap_or(guess).mul_f64(self.config.length).max(MIN_LENGTH),
            range: None,
            sent: Bytes::ZERO,
            acked: Bytes::ZERO,
            heard: None,
            lost: Bytes::ZERO,
            gaps: Gaps::default(),
            regression: Regression::default(),
            regression_before: Regression::default(),
            app_limited: false,
            closed: None,
            heard_again: None,
        });
        self.overdue = false;
        self.patience = rtt.map(|rtt| self.patience_for(rtt));
    }

    /// Closes the open interval, if any.
    pub fn close(&mut self, now: Time) {
        if let Some(open) = self.open_mut() {
            open.closed = Some(now);
        }
    }

    /// Gives up all intervals.
    pub fn clear(&mut self) {
        self.intervals.clear();
    }

    fn patience_for(&self, rtt: Duration) -> Duration {
        rtt.mul_f64(self.config.deadline).max(MIN_LENGTH)
    }

    /// Sets the length of the open interval anew, when the round-trip time has become known meanwhile.
    pub fn retime(&mut self, rtt: Duration) {
        let length = rtt.mul_f64(self.config.length).max(MIN_LENGTH);
        if let Some(open) = self.open_mut() {
            open.length = length;
        }
        self.patience = Some(self.patience_for(rtt));
    }

    fn open(&self) -> Option<&Interval<R>> {
        self.intervals.back().filter(|last| last.closed.is_none())
    }

    fn open_mut(&mut self) -> Option<&mut Interval<R>> {
        self.intervals.back_mut().filter(|last| last.closed.is_none())
    }

    /// Whether an interval is open.
    pub fn is_open(&self) -> bool {
        self.open().is_some()
    }

    /// Whether the open interval has lasted long enough and has its packets.
    pub fn is_due(&mut self, now: Time) -> bool {
        let min_packets = self.config.min_packets;
        let Some(open) = self.open() else { return false };
        let (late, enough) = (now >= open.end(), open.packets() >= min_packets);
        self.overdue = late && !enough;
        late && enough
    }

    /// A packet left.
    pub fn on_sent(&mut self, now: Time, packet: PacketNumber, bytes: Bytes, app_limited: bool) {
        let Some(open) = self.open_mut() else { return };
        if open.range.is_none() {
            open.start = now;
        }
        let (first, end) = open.range.unwrap_or((packet.0, packet.0));
        // Numbers are contiguous from zero; a number out of order would make the range claim packets of others.
        if packet.0 != end {
            return;
        }
        open.range = Some((first, end.saturating_add(1)));
        open.last_sent = now;
        open.sent += bytes;
        open.app_limited |= app_limited;
    }

    /// A packet was acknowledged.
    pub fn on_acked(&mut self, acked: &Acked) {
        let at = acked.sent_at + acked.rtt;
        if self.is_silent(at) {
            for interval in self.intervals.iter_mut().filter(|interval| interval.closed.is_some()) {
                interval.heard_again.get_or_insert(at);
            }
        }
        self.heard_at = self.heard_at.max(at);
        if let Some(interval) = self.intervals.iter_mut().find(|interval| interval.holds(acked.packet)) {
            interval.acked += acked.bytes;
            let (first, size, last) = interval.heard.unwrap_or((at, acked.bytes, at));
            if at > last {
                interval.regression_before = interval.regression;
            }
            interval.heard = Some((first, size, last.max(at)));
            interval.regression.add(acked.sent_at, acked.rtt);
        }
    }

    /// A packet was lost.
    pub fn on_lost(&mut self, packet: PacketNumber, bytes: Bytes) {
        if let Some(interval) = self.intervals.iter_mut().find(|interval| interval.holds(packet)) {
            interval.lost += bytes;
            interval.gaps.on_lost(packet, bytes);
        }
    }

    /// The oldest interval whose results are known. Intervals are reported in order, each once.
    pub fn take_report(&mut self, now: Time) -> Option<Report<R>> {
        let front = self.intervals.front()?;
        front.closed?;
        if !front.is_settled() && self.given_up_at(front).is_none_or(|at| now < at) {
            return None;
        }
        let report = front.report(&self.config);
        self.intervals.pop_front();
        Some(report)
    }

    /// When an interval waits no longer, if it is known.
    fn given_up_at(&self, interval: &Interval<R>) -> Option<Time> {
        let at = interval.heard_again.or(interval.closed)? + self.patience?;
        (!self.is_silent(at)).then_some(at)
    }

    /// Whether nothing will have been heard for so long then that intervals wait on.
    fn is_silent(&self, at: Time) -> bool {
        self.config.outlasts_silence
            && self.patience.is_some_and(|patience| self.heard_at + patience.mul_f64(0.5) <= at)
    }

    /// The slope of the RTT over what was heard so far of the latest interval.
    pub fn latest_slope(&self) -> f64 {
        self.intervals.back().map_or(0.0, |latest| latest.regression.significant_slope(&self.config))
    }

    /// When the open interval ends or the oldest closed one is given up.
    pub fn next_timer(&self) -> Option<Time> {
        let end = self.open().filter(|open| open.range.is_some() && !self.overdue).map(Interval::end);
        let deadline = self.intervals.front().and_then(|front| self.given_up_at(front));
        [end, deadline].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn ack(packet: u64, sent_ms: u64, rtt_ms: u64) -> Acked {
        Acked {
            packet: PacketNumber(packet),
            bytes: Bytes::new(1000),
            sent_at: Time::from_millis(sent_ms),
            rtt: Duration::from_millis(rtt_ms),
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: false,
            app_limited: false,
        }
    }

    fn monitor(sent: u64) -> Monitor<()> {
        let mut monitor = Monitor::new(Config::default());
        monitor.begin(Time::ZERO, (), 8.0, Some(RTT), RTT);
        for packet in 0..sent {
            monitor.on_sent(Time::ZERO, PacketNumber(packet), Bytes::new(1000), false);
        }
        monitor
    }

    #[test]
    fn an_interval_lasts_one_and_a_half_round_trips_and_some_packets() {
        let mut few = monitor(4);
        assert_eq!(few.next_timer(), Some(Time::from_millis(150)));
        assert!(!few.is_due(Time::from_millis(150)));
        assert_eq!(few.next_timer(), None);
        few.on_sent(Time::ZERO, PacketNumber(4), Bytes::new(1000), false);
        assert!(few.is_due(Time::from_millis(151)));
        assert!(!monitor(5).is_due(Time::from_millis(149)));
    }

    #[test]
    fn a_report_waits_for_every_packet() {
        let mut monitor = monitor(4);
        monitor.close(Time::from_millis(150));
        // Sent in no interval.
        monitor.on_sent(Time::ZERO, PacketNumber(4), Bytes::new(1000), false);
        for packet in 0..3 {
            monitor.on_acked(&ack(packet, packet * 10, 100));
        }
        monitor.on_lost(PacketNumber(4), Bytes::new(1000));
        assert_eq!(monitor.take_report(Time::from_millis(200)), None);
        monitor.on_lost(PacketNumber(3), Bytes::new(1000));
        let report = monitor.take_report(Time::from_millis(200)).unwrap();
        // 1000 of 4000 bytes.
        assert!((report.loss - 0.25).abs() < 1e-12);
        assert_eq!((report.packets, report.sent), (4, Bytes::new(4000)));
        assert_eq!(report.span, Duration::from_millis(150));
        assert_eq!(monitor.take_report(Time::from_millis(200)), None);
    }

    #[test]
    fn packets_arrive_as_fast_as_their_acknowledgements_come() {
        // Sent a millisecond apart, of round trips that grow by half of the time: 1000 bytes in 1.5 ms. Every second is lost.
        let mut twenty = monitor(20);
        for packet in 0..20 {
            if packet % 2 == 0 {
                let mut sample = ack(packet, packet, 0);
                sample.rtt = Duration::from_micros(100_000 + 500 * packet);
                twenty.on_acked(&sample);
            } else {
                twenty.on_lost(PacketNumber(packet), Bytes::new(1000));
            }
        }
        assert!((twenty.latest_slope() - 0.5).abs() < 1e-9);
        twenty.close(Time::from_millis(150));
        let arrival = twenty.take_report(Time::from_millis(300)).unwrap().arrival;
        assert!((arrival.as_mbps() - 8.0 / 3.0).abs() < 1e-3, "{arrival:?}");
        let mut few = monitor(19);
        (0..19).for_each(|packet| few.on_acked(&ack(packet, packet, 100)));
        few.close(Time::from_millis(150));
        assert_eq!(few.take_report(Time::from_millis(300)).unwrap().arrival, Rate::ZERO);
    }

    #[test]
    fn after_the_deadline_the_rest_is_lost() {
        let mut monitor = monitor(4);
        monitor.close(Time::from_millis(150));
        monitor.on_acked(&ack(0, 0, 100));
        assert_eq!(monitor.next_timer(), Some(Time::from_millis(550)));
        assert_eq!(monitor.take_report(Time::from_millis(549)), None);
        let report = monitor.take_report(Time::from_millis(550)).unwrap();
        assert!((report.loss - 0.75).abs() < 1e-12);
    }

    #[test]
    fn an_interval_may_outlast_a_silence_once() {
        let ms = Time::from_millis;
        let mut monitor = monitor(5);
        monitor.config.outlasts_silence = true;
        monitor.on_acked(&ack(0, 0, 100));
        monitor.close(ms(150));
        monitor.on_acked(&ack(1, 150, 100));
        // Nothing is heard from 250 ms on, so that the wait does not end at 550.
        assert_eq!(monitor.next_timer(), None);
        assert_eq!(monitor.take_report(ms(10_000)), None);
        // It begins anew at 500 ms, and not again at 800.
        monitor.on_acked(&ack(2, 400, 100));
        monitor.on_acked(&ack(3, 700, 100));
        assert_eq!(monitor.next_timer(), Some(ms(900)));
        assert_eq!(monitor.take_report(ms(899)), None);
        assert!((monitor.take_report(ms(900)).unwrap().loss - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_timer_that_has_been_served_asks_for_no_time_that_has_passed() {
        for seed in 0..500 {
            let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut below = |n: u64| dice.next_u64() % n;
            let mut monitor = Monitor::new(Config { outlasts_silence: seed % 2 == 0, ..Config::default() });
            let (mut now, mut sent) = (Time::ZERO, Vec::new());
            for packet in 0..100 {
                now += Duration::from_millis(below(4) * below(100));
                if below(4) == 0 || !monitor.is_open() {
                    monitor.begin(now, (), 8.0, Some(RTT), RTT);
                }
                monitor.on_sent(now, PacketNumber(packet), Bytes::new(1000), false);
                sent.push((packet, now));
                if below(2) == 0 {
                    let (packet, sent_at) = sent.swap_remove(usize::try_from(below(sent.len() as u64)).unwrap());
                    if below(3) == 0 {
                        monitor.on_lost(PacketNumber(packet), Bytes::new(1000));
                    } else {
                        let rtt = now.since(sent_at);
                        monitor.on_acked(&Acked { sent_at, rtt, ..ack(packet, 0, 0) });
                    }
                }
                if monitor.is_due(now) {
                    monitor.close(now);
                }
                while monitor.take_report(now).is_some() {}
                assert!(
                    monitor.next_timer().is_none_or(|at| at > now),
                    "{seed}: {:?} at {now:?}",
                    monitor.next_timer()
                );
            }
        }
    }

    #[test]
    fn an_overload_is_a_gap_if_little_is_lost_beside_the_longest() {
        let report = |lost: &[u64]| {
            let mut monitor = monitor(20);
            for packet in 0..20 {
                if lost.contains(&packet) {
                    monitor.on_lost(PacketNumber(packet), Bytes::new(1000));
                } else {
                    monitor.on_acked(&ack(packet, packet, 100));
                }
            }
            monitor.close(Time::from_millis(150));
            monitor.take_report(Time::from_millis(300)).unwrap()
        };
        // Two of the 16 beside four, and three of them.
        assert!(report(&[1, 5, 6, 7, 8, 12]).in_a_gap && !report(&[1, 5, 6, 7, 8, 12, 14]).in_a_gap);
        assert!(report(&(0..20).collect::<Vec<_>>()).is_gap());
        assert!(!report(&[]).is_gap());
        // Ten of twenty: in one piece, in one piece but for one, every second.
        assert!(report(&(5..15).collect::<Vec<_>>()).is_gap());
        assert!(report(&[0, 6, 7, 8, 9, 10, 11, 12, 13, 14]).is_gap());
        assert!(!report(&(0..10).map(|n| 2 * n).collect::<Vec<_>>()).is_gap());
        // A quarter is no overload, in however few pieces.
        assert!(!report(&[5, 6, 7, 8, 9]).is_gap());
    }

    #[test]
    fn regression_of_a_line() {
        let mut regression = Regression::default();
        for (sent, rtt) in [(0, 100), (10, 101), (20, 102), (30, 103)] {
            regression.add(Time::from_millis(sent), Duration::from_millis(rtt));
        }
        let (slope, error) = regression.slope().unwrap();
        // 1 ms in 10 ms.
        assert!((slope - 0.1).abs() < 1e-9);
        assert!(error < 1e-6);
        assert!((regression.mean().unwrap() - 0.1015).abs() < 1e-12);
    }

    #[test]
    fn the_order_in_which_packets_are_heard_makes_no_line() {
        let mut regression = Regression::default();
        for (sent, rtt) in [(20, 102), (0, 100), (30, 103), (10, 101)] {
            regression.add(Time::from_millis(sent), Duration::from_millis(rtt));
        }
        let (slope, error) = regression.slope().unwrap();
        assert!((slope - 0.1).abs() < 1e-9 && error < 1e-6, "{slope} {error}");
    }

    #[test]
    fn regression_with_noise_has_the_textbook_error() {
        let mut regression = Regression::default();
        for (sent, rtt) in [(0, 100), (1000, 102), (2000, 101)] {
            regression.add(Time::from_millis(sent), Duration::from_millis(rtt));
        }
        // t = (0,1,2), y = (0,2,1) ms: Stt = 2, Sty = 4 - 3*3/3 = 1, Syy = 5 - 9/3 = 2 (ms^2);
        // slope = 0.5 ms/s; residual = (2 - 0.5)/1 = 1.5; error = sqrt(1.5/2) = 0.8660 ms/s.
        let (slope, error) = regression.slope().unwrap();
        assert!((slope - 0.5e-3).abs() < 1e-9);
        assert!((error - 0.866_025_403e-3).abs() < 1e-9);
    }

    #[test]
    fn slopes_that_may_be_noise_are_zero() {
        let mut flat = monitor(5);
        for packet in 0..5 {
            // 5 us in each ms: slope 0.005 < 0.01
            let mut sample = ack(packet, packet, 0);
            sample.rtt = Duration::from_micros(100_000 + 5 * packet);
            flat.on_acked(&sample);
        }
        flat.close(Time::from_millis(150));
        assert!(flat.take_report(Time::from_millis(300)).unwrap().slope.abs() < 1e-15);
        let mut noisy = monitor(5);
        for (packet, rtt) in [(0, 100), (1, 140), (2, 90), (3, 135), (4, 120)] {
            noisy.on_acked(&ack(packet, packet * 10, rtt));
        }
        noisy.close(Time::from_millis(150));
        assert!(noisy.take_report(Time::from_millis(300)).unwrap().slope.abs() < 1e-15);
        let mut rising = monitor(5);
        for packet in 0..5 {
            rising.on_acked(&ack(packet, packet * 10, 100 + packet));
        }
        rising.close(Time::from_millis(150));
        assert!((rising.take_report(Time::from_millis(300)).unwrap().slope - 0.1).abs() < 1e-9);
    }

    #[test]
    fn an_interval_ends_its_length_after_its_first_packet_and_asks_for_no_time_before() {
        let ms = Time::from_millis;
        let mut monitor = monitor(4);
        assert!(!monitor.is_due(ms(150)));
        monitor.begin(ms(200), (), 8.0, Some(RTT), RTT);
        // The one before is given up four round trips after its end.
        assert_eq!(monitor.next_timer(), Some(ms(600)));
        monitor.on_sent(ms(230), PacketNumber(4), Bytes::new(1000), false);
        assert_eq!(monitor.next_timer(), Some(ms(380)));
    }

    #[test]
    fn before_a_round_trip_is_known_nothing_is_given_up() {
        let mut monitor = Monitor::new(Config::default());
        monitor.begin(Time::ZERO, (), 8.0, None, RTT);
        monitor.on_sent(Time::ZERO, PacketNumber(0), Bytes::new(1000), false);
        monitor.close(Time::from_millis(150));
        assert_eq!((monitor.next_timer(), monitor.take_report(Time::MAX)), (None, None));
        monitor.retime(RTT);
        assert_eq!(monitor.next_timer(), Some(Time::from_millis(550)));
    }

    #[test]
    fn intervals_are_neither_too_short_to_be_timed_nor_too_many() {
        let mut monitor = Monitor::new(Config::default());
        monitor.begin(Time::ZERO, (), 8.0, Some(Duration::ZERO), RTT);
        monitor.on_sent(Time::ZERO, PacketNumber(0), Bytes::new(1000), false);
        assert_eq!(monitor.next_timer(), Some(Time::from_millis(1)));
        monitor.close(Time::from_millis(1));
        assert_eq!(monitor.next_timer(), Some(Time::from_millis(2)));
        (0..100).for_each(|_| monitor.begin(Time::ZERO, (), 8.0, Some(RTT), RTT));
        assert_eq!(monitor.intervals.len(), MAX_INTERVALS);
    }

    #[test]
    fn one_packet_that_the_application_limited_makes_an_interval_so_and_none_tests_nothing() {
        let mut limited = monitor(0);
        for (packet, app_limited) in [(0, true), (1, false)] {
            limited.on_sent(Time::ZERO, PacketNumber(packet), Bytes::new(1000), app_limited);
            limited.on_lost(PacketNumber(packet), Bytes::new(1000));
            // As a session that counts a packet twice would have it.
            limited.on_lost(PacketNumber(packet), Bytes::new(1000));
        }
        limited.close(Time::ZERO);
        let report = limited.take_report(Time::ZERO).unwrap();
        assert!(report.app_limited && (report.loss - 1.0).abs() < 1e-12);
        let mut empty = monitor(0);
        empty.close(Time::ZERO);
        assert!(!empty.take_report(Time::ZERO).unwrap().is_fair(1000.0));
    }

    #[test]
    fn what_a_receiver_keeps_back_lengthens_no_round_trip() {
        let slope = |app_limited| {
            let mut monitor = monitor(20);
            for packet in [20, 21] {
                monitor.on_sent(Time::from_millis(packet), PacketNumber(packet), Bytes::new(1000), app_limited);
            }
            (0..20).for_each(|packet| monitor.on_acked(&ack(packet, packet, 100)));
            // Of one acknowledgement.
            monitor.on_acked(&ack(20, 20, 126));
            monitor.on_acked(&ack(21, 21, 125));
            monitor.close(Time::from_millis(150));
            monitor.take_report(Time::from_millis(150)).unwrap().slope
        };
        assert!(slope(false) > 0.1);
        assert!(slope(true).abs() < 1e-15);
    }

    #[test]
    fn an_interval_is_cut_short_that_was_sent_at_its_rate_while_there_was_something_to_send() {
        // 8 Mbit/s are a packet of 1000 bytes in a millisecond.
        let is_cut_short = |packets: u64, gap: u64, app_limited| {
            let mut monitor = monitor(0);
            for packet in 0..packets {
                let last = app_limited && packet + 1 == packets;
                monitor.on_sent(Time::from_millis(gap * packet), PacketNumber(packet), Bytes::new(1000), last);
                monitor.on_acked(&ack(packet, gap * packet, 100));
            }
            monitor.close(Time::from_millis(150));
            monitor.take_report(Time::from_millis(300)).unwrap().is_cut_short(1000.0)
        };
        assert!(is_cut_short(50, 1, true));
        assert!(!is_cut_short(50, 1, false) && !is_cut_short(50, 2, true));
        // Too few to say something.
        assert!(!is_cut_short(19, 1, true));
    }

    #[test]
    fn a_packet_number_out_of_order_is_in_no_interval() {
        let mut monitor = monitor(2);
        monitor.on_sent(Time::ZERO, PacketNumber(u64::MAX), Bytes::new(1), false);
        monitor.on_acked(&ack(u64::MAX, 0, 1));
        monitor.close(Time::from_millis(150));
        monitor.on_acked(&ack(0, 0, 1));
        monitor.on_acked(&ack(1, 0, 1));
        assert_eq!(monitor.take_report(Time::from_millis(200)).unwrap().packets, 2);
    }
}
