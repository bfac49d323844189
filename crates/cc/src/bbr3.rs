//! BBR version 3 (draft-ietf-ccwg-bbr, revision 06 of July 2026; section numbers are its).
//!
//! Version 1's model with bounds learned from loss: a long-term bound from what bandwidth probes found to be too much, and a
//! short-term one from what was lost since. Gains and thresholds are in the file `model.rs`, which also keeps what every packet saw.
//!
//! Every packet is acknowledged by itself here: where the draft looks at one ACK's delivery rate once a round, this takes the
//! largest of the round, and `C.inflight` of a probe that must not reach a bound is what it was before the packet. Spurious losses
//! are not undone: no engine reports them. The offload budget is TCP's three quanta (s5.5.8): what our engines send and acknowledge
//! comes in batches, too.

use manypath_core::{Bytes, Duration, Rate, SubflowView, Time, WindowedMax};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::round::Rounds;

mod model;
mod probe_bw;

use model::{AckPhase, Flights, LOSS_THRESH, Model, State, gains};
use probe_bw::MIN_WINDOW;

/// Interval between visits to ProbeRTT (s2.16 `ProbeRTTInterval`).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Stay in ProbeRTT (s2.16 `ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Span of the propagation-time filter (s2.16 `MinRTTFilterLen`).
const MIN_RTT_SPAN: Duration = Duration::from_secs(10);
/// Window in ProbeRTT, in bandwidth-delay products (s2.16 `ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: f64 = 0.5;
/// Growth that shows the pipe is not full, and rounds without it that show it is (s5.3.1.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Loss ranges in a round that end startup, if the loss rate is above the threshold too (s5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Rounds after which a queue that did not drain is left to the next probe (s5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Rounds of the filter of aggregated acknowledgements (s2.12 `ExtraAckedFilterLen`); in startup one (s5.5.9).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Pacing stays this much below the model (s2.5 `PacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;
/// Stands for the round-trip time before it is known (s5.6.2).
const INITIAL_RTT: Duration = Duration::from_millis(1);

/// BBRv3 for one subflow.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    ack_phase: AckPhase,
    random: Xoshiro256PlusPlus,
    model: Model,
    flights: Flights,
    mss: f64,
    initial_window: f64,
    /// Window, bytes; pacing rate, bit/s.
    cwnd: f64,
    pacing: f64,
    /// The last window that neither a recovery nor ProbeRTT made smaller (s5.6.4.4).
    prior_cwnd: f64,
    /// Whether a recovery is under way, or nothing was heard since a timeout.
    recovering: bool,
    rounds: Rounds,
    /// Largest delivery rate of the round, bit/s.
    round_bandwidth: f64,
    full_bandwidth: f64,
    full_rounds: u32,
    full_now: bool,
    full_reached: bool,
    /// The round in which Drain began (s5.3.2 `drain_start_round`).
    drain_round: u64,
    /// Lost since the loss round began: ranges, and the last packet.
    loss_ranges: u32,
    last_lost: Option<u64>,
    round_lost: f64,
    round_delivered: f64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Duration>,
    probe_rtt_at: Time,
    /// When the stay in ProbeRTT may end, and the round it must outlast.
    probe_done: Option<(Time, u64)>,
    /// Packets that left before so much was delivered measure the small window of ProbeRTT, not the path.
    small_until: Option<Bytes>,
    /// Whether sending began again after an idle time and nothing was heard since (s5.4 `idle_restart`).
    from_idle: bool,
    /// Whether the first rate was set by a measured round-trip time (s5.6.2).
    has_rtt: bool,
    cycle_at: Time,
    probe_wait: Duration,
    rounds_since_probe: u64,
    /// Whether losses may still belong to a bandwidth probe (s2.14 `is_bw_probe_sample`).
    probe_samples: bool,
    /// Whether the last bandwidth probe lost too much, and whether the last one was ended for caution (s5.3.3.6).
    probed_too_high: bool,
    probed_cautiously: bool,
    up_rounds: u32,
    up_acked: f64,
    up_count: f64,
    extra_acked: WindowedMax<f64>,
    /// Rounds as that filter counts them.
    extra_round: u64,
    extra_start: Time,
    extra_delivered: f64,
}

impl Bbr3 {
    /// A controller in startup.
    pub fn new(random: Xoshiro256PlusPlus, init: SubflowInit) -> Self {
        let mss = init.mss.as_f64().max(1.0);
        let initial_window = init.initial_window.as_f64().max(mss);
        Self {
            state: State::Startup,
            ack_phase: AckPhase::Init,
            random,
            model: Model::default(),
            flights: Flights::default(),
            mss,
            initial_window,
            cwnd: initial_window,
            pacing: gains(State::Startup).0 * initial_window * 8.0 / INITIAL_RTT.as_secs_f64(),
            prior_cwnd: 0.0,
            recovering: false,
            rounds: Rounds::default(),
            round_bandwidth: 0.0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full_now: false,
            full_reached: false,
            drain_round: 0,
            loss_ranges: 0,
            last_lost: None,
            round_lost: 0.0,
            round_delivered: 0.0,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_min: None,
            probe_rtt_at: Time::ZERO,
            probe_done: None,
            small_until: None,
            from_idle: false,
            has_rtt: false,
            cycle_at: Time::ZERO,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            probe_samples: false,
            probed_too_high: false,
            probed_cautiously: false,
            up_rounds: 0,
            up_acked: 0.0,
            up_count: f64::INFINITY,
            extra_acked: WindowedMax::new(Duration::from_nanos(EXTRA_ACKED_ROUNDS - 1)),
            extra_round: 0,
            extra_start: Time::ZERO,
            extra_delivered: 0.0,
        }
    }

    /// s5.6.4.2: gain times bandwidth-delay product, bytes.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window, |rtt| gain * bandwidth / 8.0 * rtt.as_secs_f64())
    }

    /// s5.6.3: bytes sent at once.
    fn quantum(&self) -> f64 {
        (self.pacing / 8.0 * 1e-3).clamp(2.0 * self.mss, 65_536.0f64.max(2.0 * self.mss))
    }

    /// s5.6.4.2 `QuantizationBudget`: what must be in flight besides, so that sending and acknowledging in batches stops nothing.
    fn quantized(&self, inflight: f64) -> f64 {
        let inflight = inflight.max(3.0 * self.quantum()).max(MIN_WINDOW * self.mss);
        if self.state == State::Up { inflight + 2.0 * self.mss } else { inflight }
    }

    /// s5.6.4.2 `Inflight`, with a gain of 1.
    fn inflight(&self, bandwidth: f64) -> f64 {
        self.quantized(self.bdp(bandwidth, 1.0))
    }

    fn target(&self) -> f64 {
        self.bdp(self.model.bandwidth(), 1.0).min(self.cwnd)
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.model.bandwidth(), PROBE_RTT_GAIN).max(MIN_WINDOW * self.mss)
    }

    fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        let (bytes, in_flight) = (acked.bytes.as_f64(), view.in_flight.as_f64());
        let flight = self.flights.take(acked.packet);
        let cwnd_limited = flight.is_some_and(|flight| flight.in_flight + self.mss >= self.cwnd);
        if self.recovering && !view.in_recovery {
            self.recovering = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        let new_round = self.rounds.on_ack(acked, view.delivered);
        // s5.3.4: samples of ProbeRTT count as those that the application limited.
        let limited = view.rate_app_limited || self.small_until.is_some_and(|until| acked.delivered_at_send <= until);
        self.round_bandwidth = self.round_bandwidth.max(acked.delivery_rate.as_bps());
        self.round_delivered += bytes;
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        let loss_round = self.model.on_ack(acked, view.delivered, limited, probing, self.cwnd);
        if new_round {
            self.rounds_since_probe += 1;
            self.extra_round += if self.full_reached { 1 } else { EXTRA_ACKED_ROUNDS };
        }
        self.update_extra_acked(now, bytes);
        if new_round {
            self.check_full(limited);
        }
        if loss_round {
            self.check_startup_losses();
        }
        self.check_drain(now, in_flight, view.delivered);
        if !self.end_ack_phase(limited, new_round, view.delivered) {
            if let Some(flight) = flight {
                self.adapt_long_term(&flight, bytes, new_round, cwnd_limited);
            }
            self.update_cycle(now, view, bytes, new_round, cwnd_limited);
        }
        self.update_min_rtt(now, acked, view);
        self.from_idle = false;
        if loss_round {
            self.model.advance_latest(acked, view.delivered);
        }
        self.set_pacing(view);
        self.set_cwnd(bytes, view.delivered.as_f64());
    }

    /// s5.3.1.2, once a round trip; `limited`: the application limited the rate's sample.
    fn check_full(&mut self, limited: bool) {
        let bandwidth = core::mem::take(&mut self.round_bandwidth);
        if !self.full_now && !limited {
            if bandwidth >= self.full_bandwidth * FULL_GROWTH {
                self.reset_full(bandwidth);
            } else {
                self.full_rounds += 1;
                self.full_now = self.full_rounds >= FULL_ROUNDS;
                self.full_reached |= self.full_now;
            }
        }
    }

    /// s5.3.1.3, at the end of a loss round, which began with a loss: a whole round of recovery.
    fn check_startup_losses(&mut self) {
        let (lost, delivered) = (core::mem::take(&mut self.round_lost), core::mem::take(&mut self.round_delivered));
        let ranges = core::mem::take(&mut self.loss_ranges);
        if !self.full_reached && ranges >= STARTUP_LOSSES && lost > LOSS_THRESH * (lost + delivered) {
            self.full_reached = true;
            self.model.inflight_long = self.bdp(self.model.bandwidth(), 1.0).max(self.model.inflight_latest);
        }
    }

    fn reset_full(&mut self, bandwidth: f64) {
        self.full_bandwidth = bandwidth;
        self.full_rounds = 0;
        self.full_now = false;
    }

    /// s5.5.9.
    fn update_extra_acked(&mut self, now: Time, acked: f64) {
        let expected = self.model.bandwidth() / 8.0 * now.since(self.extra_start).as_secs_f64();
        if self.extra_delivered <= expected {
            self.extra_delivered = 0.0;
            self.extra_start = now;
        }
        self.extra_delivered += acked;
        let expected = self.model.bandwidth() / 8.0 * now.since(self.extra_start).as_secs_f64();
        let extra = (self.extra_delivered - expected).clamp(0.0, self.cwnd);
        self.extra_acked.update(Time::from_nanos(self.extra_round), extra);
    }

    /// s5.3.2.
    fn check_drain(&mut self, now: Time, in_flight: f64, delivered: Bytes) {
        if self.state == State::Startup && self.full_reached {
            self.state = State::Drain;
            self.drain_round = self.rounds.count();
        }
        let drained = in_flight <= self.inflight(self.model.bandwidth());
        if self.state == State::Drain && (drained || self.rounds.count() > self.drain_round + DRAIN_ROUNDS) {
            self.start_down(now, delivered);
        }
    }

    /// s5.3.4.3.
    fn update_min_rtt(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        // Before the first sample nothing is old, however late the subflow begins.
        let probe_expired = self.probe_rtt_min.is_some() && now.since(self.probe_rtt_at) > PROBE_RTT_INTERVAL;
        if probe_expired || self.probe_rtt_min.is_none_or(|rtt| acked.rtt < rtt) {
            self.probe_rtt_min = Some(acked.rtt);
            self.probe_rtt_at = now;
        }
        let expired = now.since(self.min_rtt_at) > MIN_RTT_SPAN;
        if expired || self.probe_rtt_min < self.min_rtt || self.min_rtt.is_none() {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_at;
        }
        // An idle time has drained the queue: what is measured after it needs no small window.
        if self.state != State::ProbeRtt && probe_expired && !self.from_idle {
            self.save_cwnd();
            self.probe_done = None;
            self.ack_phase = AckPhase::Stopping;
            self.rounds = self.rounds.restarted_at(view.delivered);
            self.state = State::ProbeRtt;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.small_until = Some(view.delivered + view.in_flight);
        match self.probe_done {
            None if view.in_flight.as_f64() <= self.probe_rtt_window() => {
                self.rounds = self.rounds.restarted_at(view.delivered);
                self.probe_done = Some((now + PROBE_RTT_TIME, self.rounds.count() + 1));
            }
            Some((at, round)) if now > at && self.rounds.count() >= round => self.leave_probe_rtt(now, view.delivered),
            _ => {}
        }
    }

    fn leave_probe_rtt(&mut self, now: Time, delivered: Bytes) {
        self.probe_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.model.reset_short_term();
        if self.full_reached {
            self.start_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// s5.6.4.4 `SaveCwnd`.
    fn save_cwnd(&mut self) {
        let reduced = self.recovering || self.state == State::ProbeRtt;
        self.prior_cwnd = if reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// s5.4.1 `HandleRestartFromIdle`: an idle pipe is filled at the bandwidth, not at a probe's, and has been measured.
    fn restart(&mut self, now: Time, delivered: Bytes) {
        self.from_idle = true;
        self.extra_start = now;
        if self.is_probing_bandwidth() {
            self.pacing = self.model.bandwidth() * PACING_MARGIN;
        } else if self.state == State::ProbeRtt && self.probe_done.is_some_and(|(at, _)| now > at) {
            self.leave_probe_rtt(now, delivered);
        }
    }

    /// s5.6.2.
    fn set_pacing(&mut self, view: &SubflowView) {
        let gain = gains(self.state).0;
        if let Some(srtt) = view.srtt.filter(|_| !self.has_rtt) {
            self.has_rtt = true;
            self.pacing = gain * self.initial_window * 8.0 / srtt.as_secs_f64().max(1e-6);
        }
        let rate = gain * self.model.bandwidth() * PACING_MARGIN;
        if rate > 0.0 && (self.full_reached || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// s5.6.4.
    fn set_cwnd(&mut self, acked: f64, delivered: f64) {
        let (bandwidth, gain) = (self.model.bandwidth(), gains(self.state).1);
        let max_inflight = self.quantized(self.bdp(bandwidth, gain) + self.extra_acked.get().unwrap_or(0.0));
        if self.full_reached {
            self.cwnd = (self.cwnd + acked).min(max_inflight);
        } else if self.cwnd < max_inflight || delivered < self.initial_window {
            self.cwnd += acked;
        }
        let floor = MIN_WINDOW * self.mss;
        self.cwnd = self.cwnd.max(floor);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        // s5.6.4.7.
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.model.inflight_long,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(bound.min(self.model.inflight_short).max(floor));
    }

    /// s5.5.10.2 `HandleLostPacket`.
    fn on_lost(&mut self, now: Time, packet: u64, bytes: f64, view: &SubflowView) {
        if self.model.note_loss(view.delivered) {
            (self.round_lost, self.round_delivered, self.loss_ranges) = (0.0, 0.0, 0);
        }
        self.flights.lost += bytes;
        self.round_lost += bytes;
        if self.last_lost.is_none_or(|last| packet != last.wrapping_add(1)) {
            self.loss_ranges += 1;
        }
        self.last_lost = Some(packet);
        let Some(flight) = self.flights.take(manypath_core::PacketNumber(packet)) else { return };
        let lost = self.flights.lost - flight.lost;
        if !self.probe_samples || lost <= LOSS_THRESH * flight.in_flight {
            return;
        }
        // What was in flight when losses first exceeded the threshold, within this packet.
        let bound = model::inflight_at_loss(flight.in_flight, lost, bytes);
        self.probed_too_high = true;
        self.probe_samples = false;
        if !flight.app_limited {
            self.model.inflight_long = bound.max(model::BETA * self.target());
        }
        if self.state == State::Up {
            self.start_down(now, view.delivered);
        }
    }

    /// s5.6.4.4 `OnEnterFastRecovery`.
    fn on_recovery(&mut self) {
        self.save_cwnd();
        self.recovering = true;
    }

    /// s5.6.4.4 `OnEnterRTO`: one packet, until something is heard.
    fn on_timeout(&mut self) {
        self.on_recovery();
        self.cwnd = self.mss;
    }
}

impl PathController for Bbr3 {
    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Sent { packet, bytes, app_limited } => {
                if view.in_flight == *bytes && view.app_limited {
                    self.restart(now, view.delivered);
                }
                self.flights.send(*packet, view.in_flight.as_f64(), *app_limited);
            }
            Event::Acked(acked) => self.on_ack(now, acked, view),
            Event::Lost { packet, bytes, .. } => self.on_lost(now, packet.0, bytes.as_f64(), view),
            Event::Congestion { .. } => self.on_recovery(),
            Event::Timeout { .. } => self.on_timeout(),
            _ => {}
        }
    }

    fn limits(&self) -> Limits {
        Limits { cwnd: Bytes::from_f64(self.cwnd), pacing: Some(Rate::from_bps(self.pacing)), ssthresh: None }
    }

    fn inspect(&self, out: &mut dyn Probe) {
        out.value("bandwidth_bps", self.model.bandwidth());
        out.value("max_bandwidth_bps", self.model.max_bandwidth());
        out.value("inflight_long_bytes", self.model.inflight_long);
        out.value("inflight_short_bytes", self.model.inflight_short);
        out.value("min_rtt_s", self.min_rtt.map_or(0.0, Duration::as_secs_f64));
        out.value("state", f64::from(self.state as u8));
    }
}

#[cfg(test)]
mod tests;
