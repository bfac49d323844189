//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Linux 4.9 to 4.20), which MPCC's paper compares with.
//!
//! A model of the path, bottleneck bandwidth and round-trip propagation time, sets pacing rate and window. Loss matters only
//! in the round trip after it begins, when packets are conserved. Where losses go on, TCP's recovery does, and conserves no
//! more; QUIC's ends after a round trip (RFC 9002 s7.3.2) and begins again at the next loss, which is one recovery here.
//! Long-term sampling for policers, part of Linux only, is left out.

use manypath_core::{Bytes, Duration, Rate, SubflowView, Time, WindowedMax};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::round::Rounds;

/// Startup gain: 2/ln 2 (draft s4.1.1.4 `BBRHighGain`).
const HIGH_GAIN: f64 = 2.885_39;
/// Gains of the bandwidth-probing cycle, one round-trip propagation time each (draft s4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Window gain outside of startup (draft s4.2.3.2).
const CWND_GAIN: f64 = 2.0;
/// Rounds that the bandwidth filter spans (draft s4.1.1.3 `BtlBwFilterLen`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Span of the propagation-time filter (draft s4.1.2.3 `RTpropFilterLen`).
const RTPROP_SPAN: Duration = Duration::from_secs(10);
/// Time at the small window (draft s4.3.5 `ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The small window, packets (draft s4.2.3.4 `BBRMinPipeCwnd`).
const MIN_WINDOW: f64 = 4.0;
/// Growth that shows the pipe is not full, and rounds without it that show it is (draft s4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Linux paces this much below the model, to drain queues that its burstiness builds.
const PACING_MARGIN: f64 = 0.99;
/// Episodes of loss at most so many rounds apart are one recovery.
const RECOVERY_ROUNDS: u64 = 2;
/// Stands for the round-trip time before it is known (draft s4.2.1).
const INITIAL_RTT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR for one subflow.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    random: Xoshiro256PlusPlus,
    mss: f64,
    initial_window: f64,
    /// Window, bytes.
    cwnd: f64,
    /// Pacing rate, bit/s.
    pacing: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: Rounds,
    /// Bottleneck bandwidth, bit/s; its clock counts rounds.
    bandwidth: WindowedMax<f64>,
    rtprop: Option<Duration>,
    rtprop_at: Time,
    /// Bandwidth when it last grew, bit/s, and rounds since.
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    cycle: usize,
    cycle_at: Time,
    /// When the stay in ProbeRTT may end, once the window is small; and the round it must outlast.
    probe_done: Option<(Time, u64)>,
    /// Packets that left before so much was delivered measure the small window of ProbeRTT, not the path.
    small_until: Option<Bytes>,
    /// Whether sending began again after an idle time and nothing was heard since (draft s4.3.4.4 `BBR.idle_restart`).
    from_idle: bool,
    /// Whether the first rate was set by a measured round-trip time (Linux: `has_seen_rtt`).
    has_rtt: bool,
    /// The window to return to after ProbeRTT or recovery.
    prior_cwnd: f64,
    /// The round until which packets are conserved; `None` outside of recovery.
    conserve: Option<u64>,
    in_recovery: bool,
    /// The round in which the last episode of loss began.
    last_episode: Option<u64>,
    /// Whether packets were lost since the last acknowledgement.
    lost: bool,
}

impl Bbr {
    /// A controller in startup.
    pub fn new(random: Xoshiro256PlusPlus, init: SubflowInit) -> Self {
        let mss = init.mss.as_f64().max(1.0);
        let initial_window = init.initial_window.as_f64().max(mss);
        Self {
            state: State::Startup,
            random,
            mss,
            initial_window,
            cwnd: initial_window,
            // Draft s4.2.1: the first rate comes from the initial window.
            pacing: HIGH_GAIN * initial_window * 8.0 / INITIAL_RTT.as_secs_f64(),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            rounds: Rounds::default(),
            bandwidth: WindowedMax::new(Duration::from_nanos(BANDWIDTH_ROUNDS - 1)),
            rtprop: None,
            rtprop_at: Time::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            cycle: 0,
            cycle_at: Time::ZERO,
            probe_done: None,
            small_until: None,
            from_idle: false,
            has_rtt: false,
            prior_cwnd: 0.0,
            conserve: None,
            in_recovery: false,
            last_episode: None,
            lost: false,
        }
    }

    fn btlbw(&self) -> f64 {
        self.bandwidth.get().unwrap_or(0.0)
    }

    /// Draft s4.2.3.2 `BBRInflight`: gain times bandwidth times propagation time, and what waits in sender and receiver; bytes.
    fn inflight(&self, gain: f64) -> f64 {
        let bdp = |rtprop: Duration| self.btlbw() / 8.0 * rtprop.as_secs_f64();
        self.rtprop.map_or(self.initial_window, |rtprop| gain * bdp(rtprop) + 3.0 * self.quantum())
    }

    /// Draft s4.2.2: packets sent at once, bytes.
    fn quantum(&self) -> f64 {
        match self.pacing {
            rate if rate < 1.2e6 => self.mss,
            rate if rate < 24e6 => 2.0 * self.mss,
            rate => (rate / 8.0 * 1e-3).min(65_536.0),
        }
    }

    fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        let in_flight = view.in_flight.as_f64();
        let new_round = self.rounds.on_ack(acked, view.delivered);
        // Draft s4.3.5: samples of ProbeRTT count as those that the application limited.
        let limited = view.rate_app_limited || self.small_until.is_some_and(|until| acked.delivered_at_send <= until);
        self.update_bandwidth(acked, limited);
        self.check_cycle(now, in_flight + acked.bytes.as_f64());
        if new_round && !limited {
            self.check_full_pipe();
        }
        self.check_drain(now, in_flight);
        self.update_rtprop(now, acked, view);
        self.from_idle = false;
        self.recover(acked);
        self.set_pacing(view);
        self.set_cwnd(acked.bytes.as_f64(), in_flight, view.delivered.as_f64());
    }

    /// Draft s4.1.1.3. What the application limited is the rate's sample: a window that is not filled says nothing about it.
    fn update_bandwidth(&mut self, acked: &Acked, limited: bool) {
        let rate = acked.delivery_rate.as_bps();
        if rate > 0.0 && (!limited || rate >= self.btlbw()) {
            self.bandwidth.update(Time::from_nanos(self.rounds.count()), rate);
        }
    }

    /// Draft s4.3.4.3; `in_flight`: before the acknowledgement (`prior_inflight`).
    fn check_cycle(&mut self, now: Time, in_flight: f64) {
        let lost = core::mem::take(&mut self.lost);
        if self.state != State::ProbeBandwidth {
            return;
        }
        let long = now.since(self.cycle_at) > self.rtprop.unwrap_or(INITIAL_RTT);
        let gain = self.pacing_gain;
        let advance = if gain > 1.0 {
            // Stay until the probe has filled the pipe, or lost packets.
            long && (lost || in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            long || in_flight <= self.inflight(1.0)
        } else {
            long
        };
        if advance {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_at = now;
            self.pacing_gain = CYCLE[self.cycle];
        }
    }

    /// Draft s4.3.2.2.
    fn check_full_pipe(&mut self) {
        if self.filled {
            return;
        }
        if self.btlbw() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.btlbw();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    /// Draft s4.3.3.
    fn check_drain(&mut self, now: Time, in_flight: f64) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && in_flight <= self.inflight(1.0) {
            self.enter_probe_bandwidth(now);
        }
    }

    /// Draft s4.3.4.3: at a random phase other than the one that drains.
    fn enter_probe_bandwidth(&mut self, now: Time) {
        self.state = State::ProbeBandwidth;
        self.cwnd_gain = CWND_GAIN;
        let draw = usize::try_from(self.random.next_u64() % 7).unwrap_or(0);
        self.cycle = if draw == 0 { 0 } else { draw + 1 };
        self.cycle_at = now;
        self.pacing_gain = CYCLE[self.cycle];
    }

    /// Draft s4.1.2.3 and s4.3.5.
    fn update_rtprop(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        // Before the first sample nothing is old, however late the subflow begins.
        let expired = self.rtprop.is_some() && now.since(self.rtprop_at) > RTPROP_SPAN;
        if self.rtprop.is_none_or(|rtprop| acked.rtt <= rtprop) || expired {
            self.rtprop = Some(acked.rtt);
            self.rtprop_at = now;
        }
        // An idle time has drained the queue: what is measured after it needs no small window.
        if expired && !self.from_idle && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
            self.probe_done = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.small_until = Some(view.delivered + view.in_flight);
        match self.probe_done {
            None if view.in_flight.as_f64() <= MIN_WINDOW * self.mss => {
                self.rounds = self.rounds.restarted_at(view.delivered);
                self.probe_done = Some((now + PROBE_RTT_TIME, self.rounds.count() + 1));
            }
            Some((at, round)) if now >= at && self.rounds.count() >= round => self.leave_probe_rtt(now),
            _ => {}
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        self.rtprop_at = now;
        self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
        if self.filled {
            self.enter_probe_bandwidth(now);
        } else {
            self.state = State::Startup;
            self.pacing_gain = HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
    }

    /// Draft s4.2.3.3: the end of conservation, and of recovery.
    fn recover(&mut self, acked: &Acked) {
        if self.conserve.is_some_and(|round| self.rounds.count() > round) {
            self.conserve = None;
        }
        if self.in_recovery && !acked.in_recovery {
            self.in_recovery = false;
            self.conserve = None;
            if self.state != State::ProbeRtt {
                self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
            }
        }
    }

    /// Draft s4.2.1.
    fn set_pacing(&mut self, view: &SubflowView) {
        if let Some(srtt) = view.srtt.filter(|_| !self.has_rtt) {
            self.has_rtt = true;
            self.pacing = HIGH_GAIN * self.initial_window * 8.0 / srtt.as_secs_f64().max(1e-6);
        }
        let rate = self.pacing_gain * self.btlbw() * PACING_MARGIN;
        if rate > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// Draft s4.2.3.
    fn set_cwnd(&mut self, acked: f64, in_flight: f64, delivered: f64) {
        let target = self.inflight(self.cwnd_gain);
        if self.conserve.is_some() {
            self.cwnd = self.cwnd.max(in_flight + acked);
        } else {
            if self.filled {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || delivered < self.initial_window {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_WINDOW * self.mss);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW * self.mss);
        }
    }

    /// Draft s4.3.4.4 `BBRHandleRestartFromIdle`: an idle pipe is filled at the bandwidth, not at a probe's.
    fn on_sent(&mut self, bytes: Bytes, view: &SubflowView) {
        if view.in_flight == bytes && view.app_limited {
            self.from_idle = true;
            if self.state == State::ProbeBandwidth {
                self.pacing = self.btlbw() * PACING_MARGIN;
            }
        }
    }

    /// Draft s4.2.3.3: what is in flight is conserved for the first round trip of a recovery.
    fn on_congestion(&mut self, view: &SubflowView) {
        if !self.in_recovery {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
            self.in_recovery = true;
        }
        let round = self.rounds.count();
        let goes_on = self.last_episode.replace(round).is_some_and(|last| round <= last + RECOVERY_ROUNDS);
        if goes_on {
            return;
        }
        self.cwnd = view.in_flight.as_f64().max(self.mss) + self.mss;
        self.rounds = self.rounds.restarted_at(view.delivered);
        self.conserve = Some(self.rounds.count());
    }

    /// Draft s4.2.3.3: what was lost does not leave again at once.
    fn on_lost(&mut self, bytes: Bytes) {
        self.lost = true;
        if self.in_recovery {
            self.cwnd = (self.cwnd - bytes.as_f64()).max(self.mss);
        }
    }

    /// Draft s4.2.3.3: one packet, and back to the old window when something is heard.
    fn on_timeout(&mut self) {
        self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        self.in_recovery = true;
        self.cwnd = self.mss;
        self.conserve = None;
    }
}

impl PathController for Bbr {
    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Sent { bytes, .. } => self.on_sent(*bytes, view),
            Event::Acked(acked) => self.on_ack(now, acked, view),
            Event::Lost { bytes, .. } => self.on_lost(*bytes),
            Event::Congestion { .. } => self.on_congestion(view),
            Event::Timeout { .. } => self.on_timeout(),
            _ => {}
        }
    }

    fn limits(&self) -> Limits {
        Limits { cwnd: Bytes::from_f64(self.cwnd), pacing: Some(Rate::from_bps(self.pacing)), ssthresh: None }
    }

    fn inspect(&self, out: &mut dyn Probe) {
        out.value("bandwidth_bps", self.btlbw());
        out.value("rtprop_s", self.rtprop.map_or(0.0, Duration::as_secs_f64));
        out.value("pacing_gain", self.pacing_gain);
        out.value(
            "state",
            match self.state {
                State::Startup => 0.0,
                State::Drain => 1.0,
                State::ProbeBandwidth => 2.0,
                State::ProbeRtt => 3.0,
            },
        );
    }
}

#[cfg(test)]
#[path = "bbr/tests.rs"]
mod tests;
