//! MP-OL (Zhuang et al., TNSM 2023): online learning finds a rate, then LIA keeps it while a detector watches for
//! the network to change.
//!
//! Each subflow: slow start (doubling every round trip until the utility falls), then online learning (gradient steps until
//! the gradient changes its sign), then monitoring (LIA, until losses and delays of one monitoring period lie far from the
//! last one's), then online learning again.
//!
//! Where the paper is silent or cannot be followed: `beta` is 1 with rates in Mbit/s (Vivace's, which the paper cites); the
//! rates of other subflows are frozen for a round, since the paper's gradient takes them for constant; `u_0` has an interval
//! of its own; the three rates of a round are sent one after the other, and the base rate until results are in; a step is at
//! most half of the rate; a timeout halves the rate and learns anew; what a slow-start interval brought is known a round trip
//! after it, so that up to four times the rate that is kept has been tried by then.

use manypath_core::{Bytes, Duration, Params, Rate, SpecError, SubflowId, SubflowView, Time, View};

use crate::aimd::{Window, Windows};
use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::lia;
use crate::monitor::{self, Monitor, Report};
use crate::timers::Timers;

/// Parameters of MP-OL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Monitor intervals in a monitoring period (MP-OL s5: 5).
    pub n: usize,
    /// Distance of centroids from which the network has changed, 0..=sqrt(2) (MP-OL s5: 0.5).
    pub d: f64,
    /// Distance of the probed rates, as a share of the own rate (MP-OL s5: 0.05).
    pub epsilon: f64,
    /// Step in Mbit/s per unit of gradient (MP-OL eq. 19, value not stated).
    pub beta: f64,
    /// Whether variation below 5% of the mean RTT and 0.1% of loss counts as none. The paper's detector has no scale:
    /// microseconds of jitter look to it like anything else.
    pub guard: bool,
    /// Rate of a new subflow, Mbit/s (MPCC's release, which the paper builds on).
    pub initial_rate: f64,
}

impl Config {
    /// Reads the parameters of the registry row.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        Ok(Self {
            n: usize::try_from(params.integer("n", 1, 100)?).map_err(|_| params.bad_value("n"))?,
            d: params.number("d", 0.0, 2.0)?,
            epsilon: params.number("epsilon", 0.001, 0.5)?,
            beta: params.number("beta", 0.0001, 10_000.0)?,
            guard: params.switch("guard")?,
            initial_rate: params.number("initial", 0.2, 1e5)?,
        })
    }
}

/// Exponent of the utility (MP-OL s5).
const A: f64 = 0.9;
/// Weight of loss (MP-OL s5).
const B: f64 = 11.0;
/// Weight of the RTT gradient (MP-OL s5).
const C: f64 = 1.0;
/// Stands for the round-trip time before it is known.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// The smallest window while paced, packets, as MPCC.
const MIN_WINDOW: f64 = 4.0;
/// Rates above a terabit per second are an accident, Mbit/s.
const MAX_RATE: f64 = 1e6;
/// Rates of a learning round: the base, below, above.
const TRIES: usize = 3;
/// How often slow start repeats an interval that the sender could not fill, as MPCC.
const MAX_REPEATS: u32 = 2;

/// What an interval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Role {
    epoch: u32,
    index: usize,
}

/// What a subflow is doing.
#[derive(Clone, Debug)]
enum Phase {
    /// Doubling every interval; the last report that came in.
    SlowStart { previous: Option<Report<Role>>, repeats: u32 },
    /// Trying `[r, r(1 - eps), r(1 + eps)]`; intervals begun and reports so far.
    Learning { begun: usize, reports: [Option<Report<Role>>; TRIES] },
    /// LIA; losses and delays of the last two monitoring periods are in `records`.
    Monitoring,
}

/// One subflow.
#[derive(Clone, Debug)]
struct Subflow {
    monitor: Monitor<Role>,
    phase: Phase,
    epoch: u32,
    /// Present and base rate outside of monitoring, Mbit/s.
    rate: f64,
    base: f64,
    /// Others' rates, frozen for a comparison, Mbit/s.
    others: f64,
    running: bool,
    /// Whether the application limited sending in the open interval.
    held: bool,
    srtt: Option<Duration>,
    mss: f64,
    /// Loss rates and mean RTTs in seconds, at most `2 n`, oldest first.
    records: Vec<(f64, f64)>,
}

/// MP-OL eq. 8, with `others` the sum of the other subflows' rates.
fn utility(rate: f64, loss: f64, slope: f64, others: f64) -> f64 {
    libm::pow(others, A) + libm::pow(rate, A) - B * rate * loss - C * rate * slope
}

fn utility_of(report: &Report<Role>, others: f64) -> f64 {
    utility(report.rate, report.loss, report.slope, others)
}

/// MP-OL s4.2.3: distance of the centroids of the first and second half of the records, after both series are stretched to
/// 0..=1. A constant series is all zero.
fn centroid_distance(records: &[(f64, f64)], guard: bool) -> f64 {
    let half = records.len() / 2;
    let moved = |of: fn(&(f64, f64)) -> f64, least_span: f64| {
        let (low, high) = records
            .iter()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if high - low <= least_span {
            return 0.0;
        }
        let mean = |part: &[(f64, f64)]| part.iter().map(of).sum::<f64>() / part.len() as f64;
        (mean(&records[half..]) - mean(&records[..half])) / (high - low)
    };
    let mean_rtt = records.iter().map(|record| record.1).sum::<f64>() / records.len() as f64;
    let loss = moved(|record| record.0, if guard { 0.001 } else { 0.0 });
    let rtt = moved(|record| record.1, if guard { 0.05 * mean_rtt } else { 0.0 });
    libm::sqrt(loss * loss + rtt * rtt)
}

impl Subflow {
    fn new(config: &Config, init: SubflowInit) -> Self {
        // MP-OL s4.2: an interval is one round trip.
        let monitor = monitor::Config { length: 1.0, ..monitor::Config::default() };
        Self {
            monitor: Monitor::new(monitor),
            phase: Phase::SlowStart { previous: None, repeats: 0 },
            epoch: 0,
            rate: config.initial_rate,
            base: config.initial_rate,
            others: 0.0,
            running: false,
            held: false,
            srtt: None,
            mss: init.mss.as_f64().max(1.0),
            records: Vec::with_capacity(2 * config.n),
        }
    }

    fn rtt(&self) -> Duration {
        self.srtt.unwrap_or(INITIAL_RTT)
    }

    fn is_monitoring(&self) -> bool {
        matches!(self.phase, Phase::Monitoring)
    }

    /// One packet a round trip, Mbit/s.
    fn min_rate(&self) -> f64 {
        (self.mss * 8e-6 / self.rtt().as_secs_f64().max(1e-6)).min(MAX_RATE)
    }

    fn begin(&mut self, now: Time, index: usize, rate: f64) {
        self.rate = rate;
        self.held = false;
        // The first interval lasts until a round trip is known: the rate doubles every round trip, not unheard.
        self.monitor.begin(now, Role { epoch: self.epoch, index }, rate, self.srtt, Duration::MAX);
    }

    /// Begins a round of learning at the base rate.
    fn learn(&mut self, now: Time, others: f64) {
        self.base = self.base.clamp(self.min_rate(), MAX_RATE);
        self.others = others;
        self.epoch = self.epoch.wrapping_add(1);
        self.phase = Phase::Learning { begun: 1, reports: [None; TRIES] };
        self.begin(now, 0, self.base);
    }

    fn start(&mut self, now: Time, others: f64) {
        self.running = true;
        self.others = others;
        match self.phase {
            Phase::SlowStart { .. } => self.begin(now, 0, self.base),
            Phase::Learning { .. } => self.learn(now, others),
            Phase::Monitoring => self.begin(now, 0, 0.0),
        }
    }

    fn advance(&mut self, now: Time, config: &Config) {
        if !self.monitor.is_due(now) {
            return;
        }
        self.monitor.close(now);
        match &mut self.phase {
            // MP-OL s4.2.1: the rate doubles every round trip; what an interval brought is known a round trip later.
            Phase::SlowStart { .. } => {
                self.base = if self.held { self.base } else { (self.base * 2.0).min(MAX_RATE) };
                self.begin(now, 0, self.base);
            }
            // MP-OL s4.2.2: first below, then above.
            Phase::Learning { begun, .. } if *begun < TRIES => {
                let index = *begun;
                *begun += 1;
                let side = if index == 1 { 1.0 - config.epsilon } else { 1.0 + config.epsilon };
                self.begin(now, index, self.base * side);
            }
            Phase::Monitoring => self.begin(now, 0, 0.0),
            _ => self.rate = self.base,
        }
    }

    /// Takes the results that have come in; `own` is the window that LIA moves.
    fn settle(&mut self, now: Time, config: &Config, own: &mut Window, others: f64) {
        while let Some(report) = self.monitor.take_report(now) {
            if report.role.epoch == self.epoch {
                self.on_report(now, config, &report, own, others);
            }
        }
    }

    fn on_report(&mut self, now: Time, config: &Config, report: &Report<Role>, own: &mut Window, others: f64) {
        match &mut self.phase {
            Phase::SlowStart { previous, repeats } => {
                let (previous, repeats) = (*previous, *repeats);
                self.on_doubled(now, report, previous, repeats, others);
            }
            Phase::Learning { .. } if !report.is_fair(self.mss) => {
                // As MPCC's ascent: what was lost shows the rate to be too high, though not all of it was sent.
                self.base /= if report.is_overload() { 2.0 } else { 1.0 };
                self.learn(now, others);
            }
            Phase::Learning { reports, .. } => {
                reports[report.role.index] = Some(*report);
                if let [Some(base), Some(below), Some(above)] = *reports {
                    self.on_learned(now, config, &[base, below, above], own, others);
                }
            }
            Phase::Monitoring => self.on_monitored(now, config, report, own, others),
        }
    }

    /// MP-OL s4.2.1: doubling ends when the utility decreases for the first time.
    fn on_doubled(
        &mut self,
        now: Time,
        report: &Report<Role>,
        previous: Option<Report<Role>>,
        repeats: u32,
        others: f64,
    ) {
        let fair = report.is_fair(self.mss);
        // The first interval has none to be compared with: it is a growth, as in MPCC, but an overload is none.
        let grew = previous.map_or(!report.is_overload(), |old| utility_of(report, others) > utility_of(&old, others));
        if report.app_limited && !report.is_overload() {
            // It tested no rate; the next interval is under way.
        } else if !fair && !report.is_overload() && repeats < MAX_REPEATS {
            self.base = report.rate;
            self.phase = Phase::SlowStart { previous, repeats: repeats + 1 };
            self.epoch = self.epoch.wrapping_add(1);
            self.begin(now, 0, self.base);
        } else if fair && grew {
            self.phase = Phase::SlowStart { previous: Some(*report), repeats: 0 };
        } else {
            // As MPCC: back to the rate before the last doubling.
            self.base = previous.map_or(report.rate / 2.0, |old| old.rate);
            self.learn(now, others);
        }
    }

    fn on_learned(
        &mut self,
        now: Time,
        config: &Config,
        [base, below, above]: &[Report<Role>; TRIES],
        own: &mut Window,
        others: f64,
    ) {
        let [u0, u1, u2] = [base, below, above].map(|report| utility_of(report, self.others));
        let distance = config.epsilon * self.base;
        // MP-OL eq. 18.
        let (g1, g2) = ((u0 - u1) / distance, (u2 - u0) / distance);
        if g1 * g2 > 0.0 {
            // MP-OL eq. 19.
            let step = config.beta * (u2 - u1) / (2.0 * distance);
            self.base += step.clamp(-self.base / 2.0, self.base / 2.0);
            self.learn(now, others);
        } else {
            // MP-OL s4.2.3: the learned rate becomes a window.
            self.rate = self.base;
            self.epoch = self.epoch.wrapping_add(1);
            self.phase = Phase::Monitoring;
            self.records.clear();
            own.cwnd = (self.base * 1e6 / 8.0 * self.rtt().as_secs_f64() / self.mss).max(1.0);
            own.ssthresh = own.cwnd;
            self.begin(now, 0, 0.0);
        }
    }

    fn on_monitored(&mut self, now: Time, config: &Config, report: &Report<Role>, own: &Window, others: f64) {
        let Some(rtt) = report.rtt else { return };
        self.records.push((report.loss, rtt));
        if self.records.len() < 2 * config.n {
            return;
        }
        if centroid_distance(&self.records, config.guard) > config.d {
            self.base = own.cwnd * self.mss * 8e-6 / self.rtt().as_secs_f64().max(1e-6);
            self.learn(now, others);
        } else {
            self.records.drain(..config.n);
        }
    }

    fn on_timeout(&mut self, own: &Window) {
        if self.is_monitoring() {
            self.base = own.cwnd * self.mss * 8e-6 / self.rtt().as_secs_f64().max(1e-6);
        }
        self.base = (self.base / 2.0).clamp(self.min_rate(), MAX_RATE);
        self.rate = self.base;
        self.monitor.clear();
        self.epoch = self.epoch.wrapping_add(1);
        self.phase = Phase::Learning { begun: 0, reports: [None; TRIES] };
        self.running = false;
    }
}

/// MP-OL for a connection.
#[derive(Debug)]
pub struct MpOl {
    config: Config,
    /// By subflow id.
    subflows: Vec<Option<Subflow>>,
    /// The windows that LIA couples; of subflows that do not monitor, rate times RTT.
    windows: Windows,
    timers: Timers,
}

impl MpOl {
    /// A controller without subflows.
    pub fn new(config: Config) -> Self {
        Self { config, subflows: Vec::new(), windows: Windows::default(), timers: Timers::default() }
    }

    /// The rates of the other running subflows, Mbit/s.
    fn others(&self, id: SubflowId) -> f64 {
        let rate = |(other, window): (SubflowId, &Window)| {
            if other == id { 0.0 } else { window.rate() * window.mss * 8e-6 }
        };
        self.windows.counting().map(rate).sum()
    }

    /// Runs `act` on a subflow and keeps its window in step with its rate.
    fn with(&mut self, id: SubflowId, act: impl FnOnce(&mut Subflow, &Config, &mut Window, f64)) {
        let others = self.others(id);
        let (Some(Some(own)), Some(window)) = (self.subflows.get_mut(id.index()), self.windows.get_mut(id)) else {
            return;
        };
        act(own, &self.config, window, others);
        self.timers.set(id, own.monitor.next_timer());
        if !own.is_monitoring() {
            window.cwnd = (own.base * 1e6 / 8.0 * own.rtt().as_secs_f64() / own.mss).max(1.0);
        }
    }

    fn on_event_of(&mut self, now: Time, id: SubflowId, event: &Event, view: &SubflowView) {
        let floor = self.windows.floor();
        self.with(id, |own, config, window, others| match event {
            Event::Sent { packet, bytes, app_limited } => {
                if !own.running {
                    own.srtt = view.srtt.or(own.srtt);
                    own.start(now, others);
                }
                own.monitor.on_sent(now, *packet, *bytes, *app_limited);
                own.held |= *app_limited;
                own.advance(now, config);
            }
            Event::Acked(acked) => {
                let first = own.srtt.is_none();
                own.srtt = Some(view.srtt.unwrap_or(acked.rtt));
                if first {
                    own.monitor.retime(own.rtt());
                }
                window.rtt = own.rtt().as_secs_f64().max(1e-6);
                window.failed = false;
                own.monitor.on_acked(acked);
                own.settle(now, config, window, others);
            }
            Event::Lost { packet, bytes, .. } => {
                own.monitor.on_lost(*packet, *bytes);
                own.settle(now, config, window, others);
            }
            Event::Congestion { .. } | Event::Ecn { .. } | Event::Penalised if own.is_monitoring() => {
                // RFC 6356 s3, as LIA's frame does.
                window.cwnd = (window.cwnd / 2.0).max(floor);
                window.ssthresh = window.cwnd;
            }
            Event::Timeout { .. } => {
                own.on_timeout(window);
                window.failed = true;
            }
            Event::Restored => window.failed = false,
            _ => {}
        });
        self.grow(id, event);
    }

    /// LIA's increase, while monitoring.
    fn grow(&mut self, id: SubflowId, event: &Event) {
        let monitoring = self.subflows.get(id.index()).and_then(Option::as_ref).is_some_and(Subflow::is_monitoring);
        if let Event::Acked(acked) = event
            && monitoring
            && !acked.in_recovery
            && !acked.app_limited
            && let Some(own) = self.windows.get(id)
        {
            let growth = lia::increase(own, &self.windows) * acked.bytes.as_f64() / own.mss;
            if let Some(own) = self.windows.get_mut(id) {
                own.cwnd += growth;
            }
        }
    }
}

impl CongestionControl for MpOl {
    fn add_subflow(&mut self, _now: Time, id: SubflowId, init: SubflowInit) {
        if self.subflows.len() <= id.index() {
            self.subflows.resize_with(id.index() + 1, || None);
        }
        self.subflows[id.index()] = Some(Subflow::new(&self.config, init));
        self.timers.set(id, None);
        let mss = init.mss.as_f64().max(1.0);
        self.windows.insert(id, Window::new(mss, 1.0, None));
    }

    fn remove_subflow(&mut self, _now: Time, id: SubflowId) {
        if let Some(slot) = self.subflows.get_mut(id.index()) {
            *slot = None;
            self.windows.remove(id);
            self.timers.set(id, None);
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        if let Some(own) = view.get(id) {
            self.windows.note_idle(now, id, view);
            self.on_event_of(now, id, event, own);
        }
    }

    fn limits(&self, id: SubflowId) -> Limits {
        let (Some(Some(own)), Some(window)) = (self.subflows.get(id.index()), self.windows.get(id)) else {
            return Limits::NONE;
        };
        if own.is_monitoring() {
            let ssthresh = Some(Bytes::from_f64(window.ssthresh * own.mss));
            return Limits { cwnd: Bytes::from_f64(window.cwnd * own.mss), pacing: None, ssthresh };
        }
        let twice = 2.0 * own.rate * 1e6 / 8.0 * own.rtt().as_secs_f64();
        Limits {
            cwnd: Bytes::from_f64(twice.max(MIN_WINDOW * own.mss)),
            pacing: Some(Rate::from_mbps(own.rate)),
            ssthresh: None,
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        for subflow in &view.subflows {
            if self.timers.get(subflow.id).is_some_and(|at| at <= now) {
                self.with(subflow.id, |own, config, window, others| {
                    own.advance(now, config);
                    own.settle(now, config, window, others);
                });
            }
        }
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let (Some(Some(own)), Some(window)) = (self.subflows.get(id.index()), self.windows.get(id)) {
            out.value("rate_bps", own.rate * 1e6);
            out.value("base_rate_bps", own.base * 1e6);
            out.value("cwnd_bytes", window.cwnd * own.mss);
            out.value(
                "phase",
                match own.phase {
                    Phase::SlowStart { .. } => 0.0,
                    Phase::Learning { .. } => 1.0,
                    Phase::Monitoring => 2.0,
                },
            );
        }
    }
}

#[cfg(test)]
#[path = "mp_ol/tests.rs"]
mod tests;
