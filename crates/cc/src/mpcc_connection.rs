//! Connection-level MPCC: gradient ascent on the utility of the whole connection (MPCC s4.1, eq. 1), the design that its
//! authors tried first and gave up (s4.3). Here for comparison.
//!
//! All subflows send their monitor intervals at the same time, as long as the longest round trip asks; an experiment ends
//! when the results of all are in. Rates are probed one subflow after the other, below and above; then all step at once along
//! the gradient. Finding it takes twice as many experiments as there are subflows: the paper's first obstacle, by design.
//!
//! The paper gives no details; probing distance, step bound and timeouts are those of [`crate::ascent`].

use manypath_core::{Bytes, Duration, Params, Rate, SpecError, SubflowId, SubflowView, Time, View};

use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::monitor::{self, Monitor, Report};

/// Parameters of connection-level MPCC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Weight of the loss rate (spec: beta).
    pub loss_weight: f64,
    /// Weight of the RTT gradient (spec: gamma).
    pub latency_weight: f64,
    /// Probing distance and largest step, as a share of the total rate.
    pub omega: f64,
    /// Step per unit of gradient, Mbit/s.
    pub theta: f64,
    /// Rate of a new subflow, Mbit/s.
    pub initial_rate: f64,
}

impl Config {
    /// Reads the parameters of the registry row.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        Ok(Self {
            loss_weight: params.number("loss-weight", 3.0, 1000.0)?,
            latency_weight: params.number("latency-weight", 0.0, 1e6)?,
            omega: params.number("omega", 0.001, 0.5)?,
            theta: params.number("theta", 0.001, 1000.0)?,
            initial_rate: params.number("initial", 0.2, 1e5)?,
        })
    }
}

/// Exponent of the reward (MPCC s7.1).
const A: f64 = 0.9;
/// The smallest rate, Mbit/s.
const MIN_RATE: f64 = 0.2;
/// Rates above a terabit per second are an accident, Mbit/s.
const MAX_RATE: f64 = 1e6;
/// A step is at most this share of the own rate.
const MAX_STEP: f64 = 0.5;
/// The smallest window, packets.
const MIN_WINDOW: f64 = 4.0;
/// Stands for the round-trip time before it is known.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// An experiment is given up after this many of its lengths: a subflow may have nothing to send.
const PATIENCE: f64 = 6.0;

/// One subflow.
#[derive(Clone, Debug)]
struct Subflow {
    monitor: Monitor<u32>,
    /// Present rate, and rate outside of probes, Mbit/s.
    rate: f64,
    base: f64,
    /// Estimated partial derivative of the utility.
    gradient: f64,
    /// Whether it takes part in experiments: it has sent, and has not timed out since.
    active: bool,
    /// Nothing was heard since a timeout: it takes part again once it is.
    silent: bool,
    /// The result of the experiment under way.
    report: Option<Report<u32>>,
    srtt: Option<Duration>,
    mss: f64,
}

/// What an experiment is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// All double; the utility before.
    SlowStart(Option<f64>),
    /// The subflow at this place of the order is below its base rate.
    Below(usize),
    /// It is above; the utility when it was below.
    Above(usize, f64),
}

/// MPCC over the whole connection.
#[derive(Debug)]
pub struct MpccConnection {
    config: Config,
    /// By subflow id.
    subflows: Vec<Option<Subflow>>,
    /// The active ones in the order in which they began to send: probing follows it, since ids mean nothing.
    order: Vec<usize>,
    phase: Phase,
    epoch: u32,
    /// Probing distance of the round, Mbit/s.
    omega: f64,
    /// When the experiment under way is given up; `None` before the first.
    deadline: Option<Time>,
}

impl MpccConnection {
    /// A controller without subflows.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            subflows: Vec::new(),
            order: Vec::new(),
            phase: Phase::SlowStart(None),
            epoch: 0,
            omega: 0.0,
            deadline: None,
        }
    }

    fn active(&self) -> impl Iterator<Item = &Subflow> {
        self.subflows.iter().flatten().filter(|subflow| subflow.active)
    }

    /// MPCC eq. 1 of the experiment's results: `T^a - T max(b L + g dRTT/dt)`.
    fn utility(&self) -> f64 {
        let total: f64 = self.active().map(|subflow| subflow.rate).sum();
        let penalty =
            |report: Report<u32>| self.config.loss_weight * report.loss + self.config.latency_weight * report.slope;
        let worst = self.active().filter_map(|subflow| subflow.report.map(penalty)).reduce(f64::max);
        libm::pow(total, A) - total * worst.unwrap_or(0.0)
    }

    /// Starts an experiment at the subflows' rates.
    fn begin(&mut self, now: Time) {
        self.epoch = self.epoch.wrapping_add(1);
        let rtt = self.active().map(|subflow| subflow.srtt.unwrap_or(INITIAL_RTT)).max();
        let Some(rtt) = rtt else {
            self.deadline = None;
            return;
        };
        for subflow in self.subflows.iter_mut().flatten().filter(|subflow| subflow.active) {
            subflow.report = None;
            subflow.monitor.begin(now, self.epoch, subflow.rate, subflow.srtt.map(|_| rtt), rtt);
        }
        self.deadline = Some(self.patience_ends(now));
    }

    /// When an experiment that begins now is given up: not before all subflows in it have been heard.
    fn patience_ends(&self, now: Time) -> Time {
        let rtt = self.active().map(|subflow| subflow.srtt).max_by_key(|srtt| srtt.unwrap_or(Duration::MAX)).flatten();
        rtt.map_or(Time::MAX, |rtt| now + rtt.mul_f64(PATIENCE).max(Duration::from_millis(1)))
    }

    /// Probes one subflow while the others keep their base rates.
    fn probe(&mut self, now: Time, place: usize, phase: Phase) {
        let Some(&index) = self.order.get(place) else { return };
        self.phase = phase;
        let side = if matches!(phase, Phase::Below(_)) { -self.omega } else { self.omega };
        for (at, slot) in self.subflows.iter_mut().enumerate() {
            if let Some(subflow) = slot {
                let rate = if at == index { subflow.base + side } else { subflow.base };
                subflow.rate = rate.clamp(MIN_RATE, MAX_RATE);
            }
        }
        self.begin(now);
    }

    /// Begins a round of probes.
    fn round(&mut self, now: Time) {
        let total: f64 = self.active().map(|subflow| subflow.base).sum();
        self.omega = self.config.omega * total;
        if self.order.is_empty() {
            self.deadline = None;
        }
        self.probe(now, 0, Phase::Below(0));
    }

    /// Repeats what the experiment under way was for, when its subflows have changed.
    fn restart(&mut self, now: Time) {
        match self.phase {
            Phase::SlowStart(_) => {
                self.phase = Phase::SlowStart(None);
                self.begin(now);
            }
            Phase::Below(_) | Phase::Above(..) => self.round(now),
        }
    }

    /// Ends the experiment once all results are in, or its time is up.
    fn settle(&mut self, now: Time) {
        let epoch = self.epoch;
        for subflow in self.subflows.iter_mut().flatten() {
            if subflow.monitor.is_due(now) {
                subflow.monitor.close(now);
                subflow.rate = subflow.base;
            }
            while let Some(report) = subflow.monitor.take_report(now) {
                if report.role == epoch {
                    subflow.report = Some(report);
                }
            }
        }
        let late = self.deadline.is_some_and(|deadline| now >= deadline);
        let done = self.active().all(|subflow| subflow.report.is_some());
        if self.deadline.is_none() || !(done || late) {
            return;
        }
        for subflow in self.subflows.iter_mut().flatten().filter(|subflow| subflow.active) {
            // The rate that was measured, for the utility.
            if let Some(report) = subflow.report {
                subflow.rate = report.rate;
            }
        }
        let fair = self.active().all(|subflow| subflow.report.is_none_or(|report| report.is_fair(subflow.mss)));
        let known = self.active().any(|subflow| subflow.report.is_some());
        if !fair || !known {
            self.repeat(now);
        } else {
            self.on_result(now);
        }
    }

    fn repeat(&mut self, now: Time) {
        match self.phase {
            Phase::SlowStart(_) => self.begin(now),
            Phase::Below(place) | Phase::Above(place, _) => self.probe(now, place, self.phase),
        }
    }

    fn on_result(&mut self, now: Time) {
        let utility = self.utility();
        match self.phase {
            Phase::SlowStart(before) => {
                // The first experiment has none to be compared with: it is a growth, as in MPCC, but an overload is none.
                let overload =
                    || self.active().any(|subflow| subflow.report.is_some_and(|report| report.is_overload()));
                let grew = before.map_or_else(|| !overload(), |before| utility > before);
                for subflow in self.subflows.iter_mut().flatten().filter(|subflow| subflow.active) {
                    let factor = if grew { 2.0 } else { 0.5 };
                    subflow.base = (subflow.base * factor).clamp(MIN_RATE, MAX_RATE);
                    subflow.rate = subflow.base;
                }
                if grew {
                    self.phase = Phase::SlowStart(Some(utility));
                    self.begin(now);
                } else {
                    self.round(now);
                }
            }
            Phase::Below(place) => self.probe(now, place, Phase::Above(place, utility)),
            Phase::Above(place, below) => {
                let index = self.order.get(place).copied().unwrap_or(usize::MAX);
                if let Some(Some(subflow)) = self.subflows.get_mut(index) {
                    let low = (subflow.base - self.omega).clamp(MIN_RATE, MAX_RATE);
                    let gradient = (utility - below) / (subflow.rate - low);
                    subflow.gradient = if gradient.is_finite() { gradient } else { 0.0 };
                }
                if place + 1 < self.order.len() {
                    self.probe(now, place + 1, Phase::Below(place + 1));
                } else {
                    self.step();
                    self.round(now);
                }
            }
        }
    }

    /// All subflows move along the gradient.
    fn step(&mut self) {
        let (theta, bound) = (self.config.theta, self.omega);
        for subflow in self.subflows.iter_mut().flatten().filter(|subflow| subflow.active) {
            let most = bound.min(MAX_STEP * subflow.base);
            subflow.base = (subflow.base + (theta * subflow.gradient).clamp(-most, most)).clamp(MIN_RATE, MAX_RATE);
            subflow.gradient = 0.0;
        }
    }

    fn on_sent(&mut self, now: Time, id: SubflowId, view: &SubflowView) {
        let Some(Some(subflow)) = self.subflows.get_mut(id.index()) else { return };
        if !subflow.active && !subflow.silent {
            subflow.active = true;
            subflow.srtt = view.srtt.or(subflow.srtt);
            self.order.push(id.index());
            self.restart(now);
        }
    }

    /// A subflow is out of the experiments until it sends again.
    fn pause(&mut self, now: Time, id: SubflowId) {
        let Some(Some(subflow)) = self.subflows.get_mut(id.index()) else { return };
        if core::mem::replace(&mut subflow.active, false) {
            self.order.retain(|&index| index != id.index());
            self.restart(now);
        }
    }
}

impl CongestionControl for MpccConnection {
    fn add_subflow(&mut self, now: Time, id: SubflowId, init: SubflowInit) {
        self.remove_subflow(now, id);
        if self.subflows.len() <= id.index() {
            self.subflows.resize_with(id.index() + 1, || None);
        }
        self.subflows[id.index()] = Some(Subflow {
            monitor: Monitor::new(monitor::Config::default()),
            rate: self.config.initial_rate,
            base: self.config.initial_rate,
            gradient: 0.0,
            active: false,
            silent: false,
            report: None,
            srtt: None,
            mss: init.mss.as_f64().max(1.0),
        });
    }

    fn remove_subflow(&mut self, now: Time, id: SubflowId) {
        let Some(slot) = self.subflows.get_mut(id.index()) else { return };
        if slot.take().is_some_and(|subflow| subflow.active) {
            self.order.retain(|&index| index != id.index());
            self.restart(now);
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        let Some(own) = view.get(id) else { return };
        for subflow in &view.subflows {
            if subflow.id != id && subflow.is_idle(now) {
                self.pause(now, subflow.id);
            }
        }
        if matches!(event, Event::Sent { .. }) {
            self.on_sent(now, id, own);
        }
        let Some(Some(subflow)) = self.subflows.get_mut(id.index()) else { return };
        match event {
            Event::Sent { packet, bytes, app_limited } => subflow.monitor.on_sent(now, *packet, *bytes, *app_limited),
            Event::Acked(acked) => {
                subflow.silent = false;
                let rtt = own.srtt.unwrap_or(acked.rtt);
                let first = subflow.srtt.replace(rtt).is_none();
                subflow.monitor.on_acked(acked);
                if first {
                    subflow.monitor.retime(rtt);
                    self.deadline = self.deadline.map(|_| self.patience_ends(now));
                }
            }
            Event::Lost { packet, bytes, .. } => subflow.monitor.on_lost(*packet, *bytes),
            Event::Timeout { .. } => {
                // As MPCC: half the rate, and out of the experiments until it is heard.
                subflow.silent = true;
                subflow.base = (subflow.base / 2.0).max(MIN_RATE);
                subflow.rate = subflow.base;
                subflow.monitor.clear();
                self.pause(now, id);
                return;
            }
            Event::Restored => subflow.silent = false,
            _ => return,
        }
        self.settle(now);
    }

    fn limits(&self, id: SubflowId) -> Limits {
        let Some(Some(subflow)) = self.subflows.get(id.index()) else { return Limits::NONE };
        let rtt = subflow.srtt.unwrap_or(INITIAL_RTT).as_secs_f64();
        let window = 2.0 * subflow.rate * 1e6 / 8.0 * rtt;
        Limits {
            cwnd: Bytes::from_f64(window.max(MIN_WINDOW * subflow.mss)),
            pacing: Some(Rate::from_mbps(subflow.rate)),
            ssthresh: None,
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let monitors = self.subflows.iter().flatten().filter_map(|subflow| subflow.monitor.next_timer()).min();
        [monitors, self.deadline].into_iter().flatten().min()
    }

    fn on_timer(&mut self, now: Time, _view: &View) {
        self.settle(now);
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let Some(Some(subflow)) = self.subflows.get(id.index()) {
            out.value("rate_bps", subflow.rate * 1e6);
            out.value("base_rate_bps", subflow.base * 1e6);
            out.value("gradient", subflow.gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::PacketNumber;

    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    /// A connection whose active subflows are at these rates.
    fn connection(rates: &[f64]) -> MpccConnection {
        let config = Config { loss_weight: 11.35, latency_weight: 1.0, omega: 0.05, theta: 1.0, initial_rate: 4.0 };
        let mut held = MpccConnection::new(config);
        for (id, rate) in (0..).zip(rates) {
            let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
            held.add_subflow(Time::ZERO, SubflowId(id), init);
            let subflow = held.subflows[id as usize].as_mut().unwrap();
            (subflow.rate, subflow.base, subflow.active) = (*rate, *rate, true);
            held.order.push(id as usize);
        }
        held
    }

    fn report(held: &mut MpccConnection, index: usize, loss: f64, slope: f64) {
        let subflow = held.subflows[index].as_mut().unwrap();
        let span = Duration::from_millis(100);
        subflow.report = Some(Report {
            role: held.epoch,
            rate: subflow.rate,
            span,
            sending: span,
            packets: 10,
            sent: Rate::from_mbps(subflow.rate) * span,
            loss,
            in_a_gap: false,
            slope,
            rtt: Some(0.1),
            arrival: Rate::ZERO,
            app_limited: false,
        });
    }

    #[test]
    fn equation_1() {
        let mut held = connection(&[60.0, 40.0]);
        report(&mut held, 0, 0.01, 0.0);
        report(&mut held, 1, 0.0, 0.05);
        // T = 100; the worse of 11.35 * 0.01 = 0.1135 and 0.05.
        close(held.utility(), libm::pow(100.0, 0.9) - 11.35);
    }

    #[test]
    fn a_round_probes_every_subflow_on_both_sides_and_then_steps() {
        let mut held = connection(&[60.0, 40.0]);
        held.round(Time::ZERO);
        for rates in [[55.0, 40.0], [65.0, 40.0], [60.0, 35.0], [60.0, 45.0]] {
            for (at, rate) in rates.into_iter().enumerate() {
                close(held.subflows[at].as_ref().unwrap().rate, rate);
                report(&mut held, at, 0.0, 0.0);
            }
            held.on_result(Time::ZERO);
        }
        // Gradient (105^0.9 - 95^0.9)/10 for both.
        let gradient = (libm::pow(105.0, 0.9) - libm::pow(95.0, 0.9)) / 10.0;
        close(held.subflows[0].as_ref().unwrap().base, 60.0 + gradient);
        close(held.subflows[1].as_ref().unwrap().base, 40.0 + gradient);
    }

    #[test]
    fn slow_start_doubles_all_and_goes_back() {
        let mut held = connection(&[4.0, 4.0]);
        for (loss, rate) in [(0.0, 8.0), (0.0, 16.0), (0.3, 8.0)] {
            report(&mut held, 0, 0.0, 0.0);
            report(&mut held, 1, loss, 0.0);
            held.on_result(Time::ZERO);
            close(held.subflows[0].as_ref().unwrap().base, rate);
        }
        assert!(matches!(held.phase, Phase::Below(0)));
    }

    #[test]
    fn an_overload_in_the_first_experiment_of_slow_start_is_no_growth() {
        for (loss, base) in [(0.31, 2.0), (0.29, 8.0)] {
            let mut held = connection(&[4.0, 4.0]);
            for (index, loss) in [(0, 0.0), (1, loss)] {
                report(&mut held, index, loss, 0.0);
                held.subflows[index].as_mut().unwrap().report.as_mut().unwrap().packets = 30;
            }
            held.on_result(Time::ZERO);
            close(held.subflows[0].as_ref().unwrap().base, base);
        }
    }

    #[test]
    fn a_step_is_at_most_half_of_the_rate_and_uses_up_its_gradient() {
        let mut held = connection(&[4.0, 96.0]);
        held.omega = 5.0;
        held.subflows[0].as_mut().unwrap().gradient = -100.0;
        for base in [2.0, 2.0] {
            held.step();
            close(held.subflows[0].as_ref().unwrap().base, base);
        }
    }

    /// Two subflows at 4 Mbit/s in slow start, and a view in which neither has sent for two seconds.
    fn resting() -> (MpccConnection, View) {
        let mut held = connection(&[4.0, 4.0]);
        held.phase = Phase::SlowStart(Some(100.0));
        let subflow =
            |id| SubflowView { last_sent: Some(Time::ZERO), ..SubflowView::new(SubflowId(id), Bytes::new(1000)) };
        (held, View { subflows: (0..2).map(subflow).collect() })
    }

    const LATER: Time = Time::from_millis(2_000);

    #[test]
    fn an_idle_subflow_and_one_that_timed_out_are_out_of_the_experiments() {
        let (mut held, view) = resting();
        let mut hear = |event| {
            held.on_event(LATER, SubflowId(0), &event, &view);
            (held.order.clone(), held.phase)
        };
        // Of fewer subflows the utility is another.
        assert_eq!(hear(Event::Restored), (vec![0], Phase::SlowStart(None)));
        let sent = |packet| Event::Sent { packet: PacketNumber(packet), bytes: Bytes::new(1000), app_limited: false };
        assert_eq!(hear(Event::Timeout { repeated: false }).0, [] as [usize; 0]);
        assert_eq!(hear(sent(0)).0, [] as [usize; 0], "nothing was heard");
        hear(Event::Restored);
        assert_eq!(hear(sent(1)).0, [0]);
    }

    #[test]
    fn an_experiment_of_which_nothing_is_heard_is_repeated() {
        let mut held = connection(&[4.0]);
        held.deadline = Some(Time::ZERO);
        held.settle(Time::ZERO);
        assert_eq!(held.phase, Phase::SlowStart(None));
        close(held.subflows[0].as_ref().unwrap().base, 4.0);
    }

    #[test]
    fn patience_lasts_six_round_trips_once_all_are_known() {
        let mut held = connection(&[4.0]);
        held.begin(Time::ZERO);
        assert_eq!(held.deadline, Some(Time::MAX));
        let view = View { subflows: vec![SubflowView::new(SubflowId(0), Bytes::new(1000))] };
        let acked = crate::aimd::tests::acked(Duration::from_millis(100));
        held.on_event(Time::from_millis(100), SubflowId(0), &acked, &view);
        assert_eq!(held.deadline, Some(Time::from_millis(700)));
    }

    #[test]
    fn removing_the_probed_subflow_starts_the_round_again() {
        let mut held = connection(&[60.0, 40.0]);
        held.round(Time::ZERO);
        held.remove_subflow(Time::ZERO, SubflowId(0));
        assert_eq!((held.phase, held.order.as_slice()), (Phase::Below(0), [1].as_slice()));
        close(held.omega, 2.0);
    }
}
