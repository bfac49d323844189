//! Gradient ascent on a utility by trying rates: what MPCC runs on each subflow (MPCC s5.2) and Vivace on its only one
//! (Dong et al., NSDI 2018). MPCC's is Vivace's with the connection's total rate `T` in place of the own rate.
//!
//! Rates are in Mbit/s. The sum of the rates that the connection's other subflows have published is frozen
//! while a gradient is estimated, so that the others' changes are not taken for effects of the own rate.
//!
//! Where the papers are silent:
//!
//! - The results of a monitor interval arrive about a round trip after its end. Meanwhile the subflow sends at its base
//!   rate, and those packets belong to no interval.
//! - An interval in which the application limited sending, or whose packets fell short of its rate, did not test that rate: it is
//!   discarded and repeated, or the round of probing that it was for ([`Bursts`] says which, and what counts nevertheless). In slow
//!   start, after `MAX_REPEATS` of the latter kind the sender cannot do this rate, and goes back. But one that lost 30% shows that the
//!   rate is too high, the more so as less was sent: the rate is halved and probed anew, as by the emergency brake of MPCC's release.
//!   Without that a subflow whose losses hold up the connection, and with it its own intervals, keeps its rate for good. A moment in
//!   which nothing arrives loses as much and tells nothing of the rate ([`Brake::Lasting`]).
//! - A timeout halves the rate and probes anew, as Vivace's release does; those that follow while nothing is heard may count,
//!   too. When a subflow that had failed is used again, its capacity is unknown: slow start, from that rate.

use manypath_core::{Bytes, Duration, Rate, SubflowView, Time};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::controller::{Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::monitor::{Monitor, Report};

mod config;
mod momentum;
mod overload;
mod slow_start;
mod utility;

pub use config::{
    Brake, Bursts, Config, Defaults, Leave, Low, OnTimeout, Publish, Queue, SlowStart, Steps, config, parameters,
};
use momentum::Momentum;
use slow_start::Doubling;
pub use slow_start::MAX_REPEATS;
pub use utility::{Sample, Utility};

/// What a retransmission timeout has on top of the round trip at least (Linux).
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Rates above a terabit per second are an accident, Mbit/s.
const MAX_RATE: f64 = 1e6;
/// The smallest window, packets (MPCC's release).
const MIN_WINDOW: f64 = 4.0;
/// The window in multiples of rate times RTT (MPCC's release): pacing limits sending, not the window.
const WINDOW_GAIN: f64 = 2.0;
/// Monitor intervals of a probing round: two pairs of a higher and a lower rate.
const PROBES: usize = 4;

/// What an interval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Role {
    /// Reports of earlier epochs are void.
    epoch: u32,
    /// Place in a probing round.
    index: usize,
    begun: Time,
}

/// What a subflow knows of the others of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Others {
    /// The sum of the rates that they have published, Mbit/s.
    pub rate: f64,
    /// How many send.
    pub count: u32,
}

/// Where the ascent is (MPCC s5.2).
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Doubling.
    SlowStart(Doubling),
    /// Trying both sides of the base rate.
    Probing { low: f64, high: f64, highs: [bool; PROBES], begun: [bool; PROBES], samples: [Option<Sample>; PROBES] },
    /// Stepping; `from` is the rate to go back to, `previous` what the next result is compared with.
    Moving { from: f64, previous: Sample },
}

/// The ascent of one subflow.
#[derive(Clone, Debug)]
pub struct Ascent {
    config: Config,
    random: Xoshiro256PlusPlus,
    monitor: Monitor<Role>,
    phase: Phase,
    epoch: u32,
    momentum: Momentum,
    /// Present sending rate, Mbit/s.
    rate: f64,
    /// Rate outside of probes, Mbit/s (spec: x).
    base: f64,
    /// What others see of the rate, Mbit/s; zero while the subflow does not send.
    published: f64,
    /// Others' rates for the gradient being estimated, Mbit/s (spec: C_other).
    others: f64,
    /// Whether intervals are under way; not before the first packet and after a timeout.
    running: bool,
    /// Nothing was heard since this timeout: what leaves until then asks whether the path is there, and opens no interval.
    silent_since: Option<Time>,
    srtt: Option<Duration>,
    /// When the results of an interval came that may have met a moment without delivery: those begun by then may have met it, too.
    gap_at: Option<Time>,
    /// Slow start has ended because round trips grew: what they were before. Until the first probe tells whether that has passed.
    doubted: Option<Duration>,
    /// Bytes per packet.
    mss: f64,
}

impl Ascent {
    /// A subflow in slow start at the initial rate.
    pub fn new(config: Config, random: Xoshiro256PlusPlus, init: SubflowInit) -> Self {
        Self {
            config,
            random,
            monitor: Monitor::new(config.monitor),
            phase: Phase::SlowStart(Doubling::default()),
            epoch: 0,
            momentum: Momentum::default(),
            rate: config.initial_rate,
            base: config.initial_rate,
            published: 0.0,
            others: 0.0,
            running: false,
            silent_since: None,
            srtt: None,
            gap_at: None,
            doubted: None,
            mss: init.mss.as_f64().max(1.0),
        }
    }

    /// The rate that other subflows see, Mbit/s.
    pub const fn published(&self) -> f64 {
        self.published
    }

    fn rtt(&self) -> Duration {
        self.srtt.unwrap_or(self.config.initial_rtt)
    }

    /// Whether the subflow sends.
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// Opens an interval. MPCC s5.2, "rate-publication points": the rate is published as it begins.
    fn begin(&mut self, now: Time, index: usize, rate: f64) {
        self.rate = rate;
        if self.config.publish == Publish::Interval {
            self.published = rate;
        }
        self.monitor.begin(
            now,
            Role { epoch: self.epoch, index, begun: now },
            rate,
            self.srtt,
            self.config.initial_rtt,
        );
    }

    /// Something happened on the subflow; `others` are those of the connection.
    pub fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView, others: Others) {
        match event {
            Event::Sent { packet, bytes, app_limited } => {
                if !self.running && self.silent_since.is_none() {
                    self.srtt = view.srtt;
                    self.start(now, others);
                }
                self.monitor.on_sent(now, *packet, *bytes, *app_limited);
                self.advance(now);
            }
            Event::Acked(acked) => {
                self.on_heard(now);
                let first = self.srtt.is_none();
                self.srtt = Some(view.srtt.unwrap_or(acked.rtt));
                if first {
                    self.monitor.retime(self.rtt());
                }
                self.monitor.on_acked(acked);
                self.ease();
                self.settle(now, others);
            }
            Event::Lost { packet, bytes, .. } => {
                self.monitor.on_lost(*packet, *bytes);
                self.settle(now, others);
            }
            Event::Timeout { .. } => self.on_timeout(now),
            Event::Restored => {
                self.on_heard(now);
                self.phase = Phase::SlowStart(Doubling::default());
            }
            _ => {}
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    pub fn on_timer(&mut self, now: Time, others: Others) {
        self.advance(now);
        self.settle(now, others);
    }

    /// When an interval ends or is given up.
    pub fn next_timer(&self) -> Option<Time> {
        self.monitor.next_timer()
    }

    /// How fast the subflow may send.
    pub fn limits(&self) -> Limits {
        let window = WINDOW_GAIN * self.rate * 1e6 / 8.0 * self.rtt().as_secs_f64();
        Limits {
            cwnd: Bytes::from_f64(window.max(MIN_WINDOW * self.mss)),
            pacing: Some(Rate::from_mbps(self.rate)),
            ssthresh: None,
        }
    }

    /// Reports the ascent's values.
    pub fn inspect(&self, out: &mut dyn Probe) {
        out.value("rate_bps", self.rate * 1e6);
        out.value("base_rate_bps", self.base * 1e6);
        out.value("published_bps", self.published * 1e6);
        out.value("others_bps", self.others * 1e6);
        out.value("amplifier", f64::from(self.momentum.amplifier()));
        out.value(
            "phase",
            match self.phase {
                Phase::SlowStart(_) => 0.0,
                Phase::Probing { .. } => 1.0,
                Phase::Moving { .. } => 2.0,
            },
        );
    }

    /// The first packet, or the first after an idle time or once the path is heard after a timeout: intervals begin.
    fn start(&mut self, now: Time, others: Others) {
        self.running = true;
        self.published = self.base;
        self.others = others.rate;
        match self.phase {
            Phase::SlowStart(_) => self.begin(now, 0, self.base),
            Phase::Probing { .. } | Phase::Moving { .. } => self.probe(now, others),
        }
    }

    fn on_timeout(&mut self, now: Time) {
        if self.config.timeout != OnTimeout::Keep {
            self.fall_to((self.base / 2.0).max(self.away()));
        }
        self.silent_since = Some(now);
        self.pause();
    }

    /// The path is heard, for the first time after a timeout if there was one.
    fn on_heard(&mut self, now: Time) {
        let Some(since) = self.silent_since.take() else { return };
        if self.config.timeout != OnTimeout::Backoff {
            return;
        }
        // What is heard left a round trip ago. Each timeout takes twice as long as the one before: 2^n - 2 times the first pass after it
        // when there are n. The round trip is the one before it: what waited in the path until now tells no other.
        let (rtt, silence) = (self.rtt().as_secs_f64(), now.since(since).as_secs_f64());
        let first = rtt + MIN_TIMEOUT.as_secs_f64();
        let least = self.base.min(self.config.initial_rate);
        self.fall_to((self.base / (1.0 + (silence - rtt).max(0.0) / (2.0 * first))).max(least));
        self.rate = self.base;
    }

    /// After timeouts. Slow start does not go back to a rate above what they left.
    fn fall_to(&mut self, base: f64) {
        self.base = base;
        if let Phase::SlowStart(doubling) = &mut self.phase {
            doubling.previous = doubling.previous.filter(|old| old.rate <= base);
        }
    }

    /// The subflow sends no more: its rate is no longer published, and what was under way is forgotten.
    pub fn pause(&mut self) {
        self.rate = self.base;
        self.momentum = Momentum::default();
        self.monitor.clear();
        self.published = 0.0;
        self.running = false;
        self.gap_at = None;
        self.doubted = None;
        if !matches!(self.phase, Phase::SlowStart(_)) {
            self.phase = Phase::Moving { from: self.base, previous: Sample { rate: self.base, loss: 0.0, slope: 0.0 } };
        }
    }

    /// Ends the open interval when it is due; goes on to the next probe or waits for results at the base rate.
    fn advance(&mut self, now: Time) {
        if !self.monitor.is_due(now) {
            return;
        }
        self.monitor.close(now);
        if !self.begin_probe(now) {
            self.rate = self.base;
        }
        self.ease();
    }

    /// Begins the first probe of the round that was not begun, or was to no avail, if there is one.
    fn begin_probe(&mut self, now: Time) -> bool {
        let Phase::Probing { begun, highs, low, high, .. } = &mut self.phase else { return false };
        let Some(index) = begun.iter().position(|&begun| !begun) else { return false };
        begun[index] = true;
        let rate = if highs[index] { *high } else { *low };
        self.begin(now, index, rate);
        true
    }

    /// An interval tested nothing. It alone is repeated.
    fn repeat(&mut self, now: Time, report: &Report<Role>) {
        let Phase::Probing { begun, .. } = &mut self.phase else { return self.begin(now, 0, report.rate) };
        begun[report.role.index] = false;
        if !self.monitor.is_open() {
            self.begin_probe(now);
        }
    }

    /// Takes the results that have come in.
    fn settle(&mut self, now: Time, others: Others) {
        while let Some(report) = self.monitor.take_report(now) {
            if report.role.epoch == self.epoch {
                self.on_report(now, &report, others);
            }
        }
    }

    fn on_report(&mut self, now: Time, report: &Report<Role>, others: Others) {
        // A source as fast as the path has nothing more to send after each packet, though an interval was sent at its rate.
        let wants_data = report.app_limited && self.config.bursts == Bursts::Ignored;
        let held_back = wants_data || !report.is_filled(self.mss);
        if !report.is_overload() {
            self.gap_at = None;
        } else if self.may_have_met_a_gap(now, report) {
            self.repeat(now, report);
            return;
        } else if held_back || self.config.brake != Brake::Held {
            self.brake(now, report, others);
            return;
        }
        let heeds_bursts = held_back && self.config.bursts == Bursts::Heeded;
        if heeds_bursts && let Some(carried) = self.carried(report) {
            self.momentum = Momentum::default();
            self.fall(now, carried.min(self.base), report, others);
            return;
        }
        let is_probe = !held_back || heeds_bursts && report.is_cut_short(self.mss);
        if is_probe && self.has_passed(report) {
            self.resume_doubling(now, report, others);
            return;
        }
        match self.phase.clone() {
            Phase::SlowStart(_) if held_back && report.app_limited => self.begin(now, 0, report.rate),
            Phase::SlowStart(doubling) if !held_back => self.on_doubled(now, report, doubling, others),
            // Whatever the sender can do, the path cannot do as much.
            Phase::SlowStart(doubling) if self.arrived(report).is_some() => self.go_back(now, report, doubling, others),
            Phase::SlowStart(doubling) => self.repeat_or_go_back(now, report, doubling, others),
            Phase::Probing { .. } if is_probe => self.on_probed(now, report, others),
            Phase::Probing { .. } if heeds_bursts => self.repeat(now, report),
            Phase::Probing { .. } => self.probe(now, others),
            Phase::Moving { .. } if held_back => self.repeat(now, report),
            Phase::Moving { from, previous } => self.on_moved(now, from, &previous, Sample::of(report), others),
        }
    }

    /// Begins a probing round around the base rate.
    fn probe(&mut self, now: Time, others: Others) {
        self.others = others.rate;
        self.doubted = None;
        self.base = self.base.max(self.config.min_rate);
        let omega = self.distance(others);
        let low = self.low(omega);
        let high = (self.base + omega).min(MAX_RATE);
        // Within each pair the order is random, so that a trend of the path does not always favour one side.
        let bits = self.random.next_u64();
        let (first, second) = (bits & 1 == 1, bits & 2 == 2);
        let highs = [first, !first, second, !second];
        self.epoch = self.epoch.wrapping_add(1);
        self.phase = Phase::Probing { low, high, highs, begun: [false; PROBES], samples: [None; PROBES] };
        self.begin_probe(now);
    }

    /// What distances and steps are shares of, Mbit/s. MPCC s5.2: the connection's rate. Among many subflows each has little of that.
    fn shared(&self, others: Others) -> f64 {
        let total = self.base + others.rate;
        match self.config.low {
            Low::Near => total * (config::MEANS / (1.0 + f64::from(others.count))).min(1.0),
            Low::Half | Low::Least => total,
        }
    }

    /// How far the rates to try are from the base rate, which may be more than a slow subflow has.
    fn distance(&self, others: Others) -> f64 {
        let distance = self.config.omega * self.shared(others);
        match self.config.low {
            Low::Near => distance.min(self.base * config::NEAR),
            Low::Half | Low::Least => distance,
        }
    }

    /// The lower of two rates to try.
    fn low(&self, omega: f64) -> f64 {
        let low = (self.base - omega).max(self.config.min_rate);
        match self.config.low {
            Low::Half => low.max(self.base / 2.0),
            Low::Near | Low::Least => low,
        }
    }

    fn on_probed(&mut self, now: Time, report: &Report<Role>, others: Others) {
        let Phase::Probing { samples, highs, .. } = &mut self.phase else { return };
        samples[report.role.index] = Some(Sample::of(report));
        let [Some(a), Some(b), Some(c), Some(d)] = *samples else { return };
        let sides = |swap: bool, x: Sample, y: Sample| if swap { (x, y) } else { (y, x) };
        let (first_high, first_low) = sides(highs[0], a, b);
        let (second_high, second_low) = sides(highs[2], c, d);
        let utility = &self.config.utility;
        let first = utility.gradient(&first_low, &first_high, self.others);
        let second = utility.gradient(&second_low, &second_high, self.others);
        if first * second <= 0.0 {
            // The pairs disagree, or nothing changed: stay and look again.
            self.momentum.stay();
            self.probe(now, others);
            return;
        }
        let gradient = first.abs().min(second.abs()).copysign(first);
        // What the first move is compared with: the side that was worse, which lies well apart from where the move goes.
        let worse = if gradient > 0.0 { first_low.mean(second_low) } else { first_high.mean(second_high) };
        self.step(now, gradient, worse, others);
        self.published = self.base;
    }

    /// MPCC s5.2, moving: the gradient of the two preceding intervals.
    fn on_moved(&mut self, now: Time, from: f64, previous: &Sample, new: Sample, others: Others) {
        let gradient = self.config.utility.gradient(previous, &new, self.others);
        if self.momentum.agrees(gradient) {
            if self.config.queue == Queue::Heeded && gradient > 0.0 && new.slope > 0.0 {
                self.momentum.calm();
            }
            self.step(now, gradient, new, others);
            return;
        }
        // A gradient of zero tells no direction: moving ends, but nothing has turned.
        if gradient.abs() > 0.0 {
            self.momentum.turn(&self.config);
        }
        if self.config.leave == Leave::Better {
            self.base = from;
        }
        self.probe(now, others);
    }

    /// Moves the base rate and measures there.
    fn step(&mut self, now: Time, gradient: f64, previous: Sample, others: Others) {
        let from = self.base;
        let step = self.momentum.step(&self.config, gradient, from, self.shared(others));
        self.base = (from + step).clamp(self.config.min_rate, MAX_RATE);
        self.others = others.rate;
        self.phase = Phase::Moving { from, previous };
        self.begin(now, 0, self.base);
    }
}

#[cfg(test)]
#[path = "ascent/tests.rs"]
mod tests;
