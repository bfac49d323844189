//! BBR version 3 (draft-ietf-ccwg-bbr, revision 02; section numbers are its).
//!
//! Version 1's model with bounds learned from loss: a long-term bound from what bandwidth probes found to be too much, and a
//! short-term one from what was lost since. Gains and thresholds are in the file `model.rs`, which also keeps what every packet saw.
//!
//! Every packet is acknowledged by itself here: where the draft looks at one ACK's delivery rate once a round, this takes the
//! largest of the round. Spurious losses are not undone: no engine reports them.

use manypath_core::{Bytes, Duration, Rate, SubflowView, Time, WindowedMax};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::round::Rounds;

mod model;

use model::{AckPhase, Flight, Flights, LOSS_THRESH, Model, State, gains};

/// Interval between visits to ProbeRTT (s2.13 `ProbeRTTInterval`).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Stay in ProbeRTT (s2.13 `ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Span of the propagation-time filter (s2.13 `MinRTTFilterLen`).
const MIN_RTT_SPAN: Duration = Duration::from_secs(10);
/// Window in ProbeRTT, in bandwidth-delay products (s2.7 `ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: f64 = 0.5;
/// Growth that shows the pipe is not full, and rounds without it that show it is (s5.3.1.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Loss ranges in a round that end startup, if the loss rate is above the threshold too (s5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Rounds between bandwidth probes at most, for coexistence with Reno (s5.3.3.5).
const MAX_RENO_ROUNDS: f64 = 63.0;
/// Rounds of the filter of aggregated acknowledgements (s2.11 `ExtraAckedFilterLen`).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Pacing stays this much below the model (s2.7 `PacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;
/// The smallest window, packets (s2.8 `MinPipeCwnd`).
const MIN_WINDOW: f64 = 4.0;
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
    prior_cwnd: f64,
    timed_out: bool,
    rounds: Rounds,
    /// Largest delivery rate of the round, bit/s.
    round_bandwidth: f64,
    full_bandwidth: f64,
    full_rounds: u32,
    full_now: bool,
    full_reached: bool,
    /// Lost in the round: ranges, and the last packet.
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
    /// Whether losses may still belong to a bandwidth probe (s5.3.3.6 `bw_probe_samples`).
    probe_samples: bool,
    up_rounds: u32,
    up_acked: f64,
    up_count: f64,
    extra_acked: WindowedMax<f64>,
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
            timed_out: false,
            rounds: Rounds::default(),
            round_bandwidth: 0.0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full_now: false,
            full_reached: false,
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
            up_rounds: 0,
            up_acked: 0.0,
            up_count: f64::INFINITY,
            extra_acked: WindowedMax::new(Duration::from_nanos(EXTRA_ACKED_ROUNDS - 1)),
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

    /// s5.6.4.2 `BBRInflight`: what a bandwidth needs in flight, with room for quantisation.
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        let inflight = self.bdp(bandwidth, gain).max(3.0 * self.quantum()).max(MIN_WINDOW * self.mss);
        if self.state == State::Up { inflight + 2.0 * self.mss } else { inflight }
    }

    fn target(&self) -> f64 {
        self.bdp(self.model.bandwidth(), 1.0).min(self.cwnd)
    }

    /// s5.3.3.2: leaves a share of what was found unused.
    fn with_headroom(&self) -> f64 {
        let bound = self.model.inflight_long;
        let headroom = (model::HEADROOM * bound).max(self.mss);
        if bound.is_finite() { (bound - headroom).max(MIN_WINDOW * self.mss) } else { f64::INFINITY }
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.model.bandwidth(), PROBE_RTT_GAIN).max(MIN_WINDOW * self.mss)
    }

    fn is_probing_bandwidth(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        let (bytes, in_flight) = (acked.bytes.as_f64(), view.in_flight.as_f64());
        let flight = self.flights.take(acked.packet);
        let cwnd_limited = flight.is_some_and(|flight| flight.in_flight + self.mss >= self.cwnd);
        if core::mem::take(&mut self.timed_out) {
            self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
        }
        let new_round = self.rounds.on_ack(acked, view.delivered);
        // s5.3.4: samples of ProbeRTT count as those that the application limited.
        let limited = view.rate_app_limited || self.small_until.is_some_and(|until| acked.delivered_at_send <= until);
        self.round_bandwidth = self.round_bandwidth.max(acked.delivery_rate.as_bps());
        self.round_delivered += bytes;
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        self.model.on_ack(acked, view.delivered, limited, probing, self.cwnd);
        if new_round {
            self.on_round(limited);
        }
        self.update_extra_acked(now, bytes);
        self.check_drain(now, in_flight);
        self.end_ack_phase(limited, new_round);
        if let Some(flight) = flight {
            self.adapt_long_term(&flight, bytes, new_round, cwnd_limited);
        }
        self.update_cycle(now, view, new_round, cwnd_limited);
        self.update_min_rtt(now, acked, view);
        self.from_idle = false;
        self.set_pacing(view);
        self.set_cwnd(bytes, view.delivered.as_f64());
    }

    /// s5.3.1.2 and s5.3.1.3, once a round trip; `limited`: the application limited the rate's sample.
    fn on_round(&mut self, limited: bool) {
        self.rounds_since_probe += 1;
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
        let (lost, delivered) = (core::mem::take(&mut self.round_lost), core::mem::take(&mut self.round_delivered));
        let ranges = core::mem::take(&mut self.loss_ranges);
        if !self.full_reached && ranges >= STARTUP_LOSSES && lost > LOSS_THRESH * (lost + delivered) {
            self.full_reached = true;
            self.model.inflight_long = self.bdp(self.model.max_bandwidth(), 1.0).max(self.model.inflight_latest);
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
        self.extra_acked.update(Time::from_nanos(self.rounds.count()), extra);
    }

    /// s5.3.2.
    fn check_drain(&mut self, now: Time, in_flight: f64) {
        if self.state == State::Startup && self.full_reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && in_flight <= self.inflight(self.model.max_bandwidth(), 1.0) {
            self.start_down(now);
        }
    }

    /// s5.3.3.6 `BBRAdaptLongTermModel`, once a round trip; `limited`: the application limited the rate's sample.
    fn end_ack_phase(&mut self, limited: bool, new_round: bool) {
        if !self.full_reached || !new_round {
            return;
        }
        match self.ack_phase {
            AckPhase::Starting => self.ack_phase = AckPhase::Feedback,
            AckPhase::Stopping => {
                self.probe_samples = false;
                self.ack_phase = AckPhase::Init;
                if self.is_probing_bandwidth() && !limited {
                    self.model.advance_cycle();
                }
            }
            _ => {}
        }
    }

    /// s5.3.3.6 `BBRAdaptLongTermModel`: what went well may be in flight again.
    fn adapt_long_term(&mut self, flight: &Flight, acked: f64, new_round: bool, limited: bool) {
        let too_high = self.flights.lost - flight.lost > LOSS_THRESH * flight.in_flight;
        if self.full_reached && !too_high && self.model.inflight_long.is_finite() {
            self.model.inflight_long = self.model.inflight_long.max(flight.in_flight);
            if self.state == State::Up {
                self.raise_long_term(acked, new_round, limited);
            }
        }
    }

    /// s5.3.3.6 `BBRProbeInflightLongtermUpward`: slowly at first, doubling every round trip.
    fn raise_long_term(&mut self, acked: f64, new_round: bool, limited: bool) {
        if !limited || self.cwnd < self.model.inflight_long {
            return;
        }
        self.up_acked += acked;
        if self.up_acked >= self.up_count {
            let packets = libm::floor(self.up_acked / self.up_count);
            self.up_acked -= packets * self.up_count;
            self.model.inflight_long += packets * self.mss;
        }
        if new_round {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        let growth = self.mss * f64::from(1u32 << self.up_rounds.min(30));
        self.up_rounds = (self.up_rounds + 1).min(30);
        // Bytes acknowledged for one packet more: one window yields `growth` bytes.
        self.up_count = (self.cwnd / growth).max(1.0) * self.mss;
    }

    /// s5.3.3.6 `BBRUpdateProbeBWCyclePhase`.
    fn update_cycle(&mut self, now: Time, view: &SubflowView, new_round: bool, cwnd_limited: bool) {
        let (in_flight, delivered) = (view.in_flight.as_f64(), view.delivered);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(delivered),
            State::Down => {
                let drained = in_flight <= self.with_headroom();
                if drained && in_flight <= self.inflight(self.model.max_bandwidth(), 1.0) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if new_round => self.start_up(now),
            State::Up => {
                if cwnd_limited && self.cwnd >= self.model.inflight_long {
                    self.reset_full(self.model.bandwidth_latest);
                } else if self.full_now {
                    self.start_down(now);
                }
            }
            _ => {}
        }
    }

    /// s5.3.3.5.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno = (self.target() / self.mss).min(MAX_RENO_ROUNDS);
        now.since(self.cycle_at) > self.probe_wait || self.rounds_since_probe as f64 >= reno
    }

    fn start_down(&mut self, now: Time) {
        self.model.reset_latest();
        self.up_count = f64::INFINITY;
        // s5.3.3.5: 2 to 3 seconds, so that flows do not probe together.
        let bits = self.random.next_u64();
        self.rounds_since_probe = bits & 1;
        self.probe_wait = Duration::from_secs(2) + Duration::from_nanos((bits >> 1) % 1_000_000_000);
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.state = State::Down;
    }

    fn start_refill(&mut self, delivered: Bytes) {
        self.model.reset_short_term();
        self.up_rounds = 0;
        self.up_acked = 0.0;
        self.ack_phase = AckPhase::Refilling;
        self.state = State::Refill;
        // The round that refills begins now.
        self.rounds = self.rounds.restarted_at(delivered);
    }

    fn start_up(&mut self, now: Time) {
        self.probe_samples = true;
        self.ack_phase = AckPhase::Starting;
        self.cycle_at = now;
        self.reset_full(self.model.bandwidth_latest);
        self.raise_slope();
        self.state = State::Up;
    }

    /// s5.5.7 and s5.3.4.
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
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
            self.probe_done = None;
            self.ack_phase = AckPhase::Stopping;
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
            Some((at, round)) if now >= at && self.rounds.count() >= round => self.leave_probe_rtt(now),
            _ => {}
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        self.probe_rtt_at = now;
        self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
        self.model.reset_short_term();
        if self.full_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// s5.4 `BBRHandleRestartFromIdle`: an idle pipe is filled at the bandwidth, not at a probe's, and has been measured.
    fn restart(&mut self, now: Time) {
        self.from_idle = true;
        if self.is_probing_bandwidth() {
            self.pacing = self.model.bandwidth() * PACING_MARGIN;
        } else if self.state == State::ProbeRtt && self.probe_done.is_some_and(|(at, _)| now >= at) {
            self.leave_probe_rtt(now);
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
        let max_inflight = self.inflight(bandwidth, gain) + self.extra_acked.get().unwrap_or(0.0);
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
        // s5.6.4.6.
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.model.inflight_long,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(bound.min(self.model.inflight_short).max(floor));
    }

    /// s5.5.10.2 `BBRHandleLostPacket`.
    fn on_lost(&mut self, now: Time, packet: u64, bytes: f64, view: &SubflowView) {
        self.flights.lost += bytes;
        self.round_lost += bytes;
        if self.last_lost.is_none_or(|last| packet != last.wrapping_add(1)) {
            self.loss_ranges += 1;
        }
        self.last_lost = Some(packet);
        self.model.note_loss(view.delivered);
        let Some(flight) = self.flights.take(manypath_core::PacketNumber(packet)) else { return };
        let lost = self.flights.lost - flight.lost;
        if !self.probe_samples || lost <= LOSS_THRESH * flight.in_flight {
            return;
        }
        // What was in flight when losses first exceeded the threshold, within this packet.
        let bound = model::inflight_at_loss(flight.in_flight, lost, bytes);
        self.probe_samples = false;
        if !flight.app_limited {
            self.model.inflight_long = bound.max(model::BETA * self.target());
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    /// s5.6.4.4: one packet, until something is heard.
    fn on_timeout(&mut self) {
        self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        self.cwnd = self.mss;
        self.timed_out = true;
    }
}

impl PathController for Bbr3 {
    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Sent { packet, bytes, app_limited } => {
                if view.in_flight == *bytes && view.app_limited {
                    self.restart(now);
                }
                self.flights.send(*packet, view.in_flight.as_f64(), *app_limited);
            }
            Event::Acked(acked) => self.on_ack(now, acked, view),
            Event::Lost { packet, bytes, .. } => self.on_lost(now, packet.0, bytes.as_f64(), view),
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
