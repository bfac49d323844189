//! CUBIC congestion control (RFC 9438).
//!
//! The window follows a cubic function of the time since the last congestion event, flat around the window at which that
//! event came; where NewReno would be faster, CUBIC follows an estimate of it. Windows are kept in segments (of one `mss`),
//! times in seconds.
//!
//! Choices where the RFC leaves one: congestion multiplies the window, not the amount in flight (s4.6 allows it when the
//! window does not grow while the application limits sending, which is so here). Spurious congestion events (s4.9) are not
//! undone: no engine reports them.

use manypath_core::{Bytes, Params, SpecError, SubflowView, Time};

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::hystart::Growth;
use crate::penalty::penalised;
use crate::slow_start::{Early, SlowStart};

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Whether a flow that lost before it regained its old maximum gives way faster (RFC 9438 s4.7). The RFC allows turning
    /// it off for a flow that is alone on its bottleneck.
    pub fast_convergence: bool,
    /// How slow start ends before a loss: by HyStart++ as RFC 9438 s4.10 recommends; Linux has the classic one.
    pub hystart: Early,
}

impl Default for Config {
    fn default() -> Self {
        Self { fast_convergence: true, hystart: Early::PlusPlus }
    }
}

impl Config {
    /// Reads the parameters of a registry row.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        Ok(Self { fast_convergence: params.switch("fast-convergence")?, hystart: Early::from_params(params)? })
    }
}

/// Scale of the cubic function, segments per second cubed (RFC 9438 s5.1).
const C: f64 = 0.4;
/// What congestion leaves of the window (RFC 9438 s4.6).
const BETA: f64 = 0.7;
/// NewReno's increase that makes up for the gentler decrease, segments per round trip (RFC 9438 s4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The target is at most this multiple of the window (RFC 9438 s4.2).
const MAX_TARGET: f64 = 1.5;
/// The smallest slow-start threshold, and window after a loss, in segments (RFC 9438 s4.6).
const MIN_WINDOW: f64 = 2.0;

/// One stage of congestion avoidance: from a congestion event to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, later by the time in which the application limited sending (spec: `t_epoch`; RFC 9438 s5.8).
    start: Time,
    /// Time from the start to the inflection point, seconds (spec: `K`).
    k: f64,
    /// The inflection point, segments (spec: `W_max`).
    w_max: f64,
    /// NewReno's window, estimated (spec: `W_est`).
    w_est: f64,
}

/// CUBIC for one subflow.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    /// Bytes per segment.
    mss: f64,
    /// Congestion window, segments.
    cwnd: f64,
    /// Slow-start threshold, segments; infinite before the first congestion event.
    ssthresh: f64,
    /// Where the last congestion event came, after fast convergence; `None` where congestion avoidance starts flat: before
    /// the first event and after a timeout (spec: `W_max`).
    w_max: Option<f64>,
    /// The window before the last reduction (spec: `cwnd_prior`).
    cwnd_prior: f64,
    /// The stage under way; `None` in slow start and until the first acknowledgement of congestion avoidance.
    epoch: Option<Epoch>,
    /// Since when the application has limited sending, within the stage.
    limited_since: Option<Time>,
    /// When something was acknowledged last.
    heard_at: Option<Time>,
    /// What ends slow start early.
    slow_start: SlowStart,
}

impl Cubic {
    /// A controller at its initial window.
    pub fn new(config: Config, init: SubflowInit) -> Self {
        let mss = init.mss.as_f64().max(1.0);
        Self {
            config,
            mss,
            cwnd: (init.initial_window.as_f64() / mss).max(1.0),
            ssthresh: init.threshold() / mss,
            w_max: None,
            cwnd_prior: 0.0,
            epoch: None,
            limited_since: None,
            heard_at: None,
            slow_start: SlowStart::new(config.hystart),
        }
    }

    /// RFC 9438 eq. 1: the window `t` seconds into the stage.
    fn w_cubic(epoch: &Epoch, t: f64) -> f64 {
        let x = t - epoch.k;
        C * x * x * x + epoch.w_max
    }

    /// RFC 9438 eq. 2, and s4.8 for a stage with nothing to return to.
    fn start_epoch(&self, now: Time) -> Epoch {
        let w_max = self.w_max.unwrap_or(self.cwnd);
        let k = if w_max > self.cwnd { libm::cbrt((w_max - self.cwnd) / C) } else { 0.0 };
        // A window already above W_max starts flat where it is, not with a jump up to it.
        Epoch { start: now, k, w_max: w_max.max(self.cwnd), w_est: self.cwnd }
    }

    /// RFC 9438 s5.8: time in which the window could not be used does not count: while the application limits sending, and
    /// while it sends nothing.
    fn leave_out(&mut self, now: Time, acked: &Acked) {
        let heard_at = self.heard_at.replace(now).unwrap_or(now);
        let Some(epoch) = &mut self.epoch else { return };
        if self.limited_since.is_none() {
            // Of a packet that left after all before it were acknowledged.
            epoch.start += acked.sent_at.since(heard_at);
        }
        if acked.app_limited {
            self.limited_since.get_or_insert(now);
        }
    }

    fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView) {
        let segments = acked.bytes.as_f64() / self.mss;
        let rtt = view.srtt.unwrap_or(acked.rtt);
        if self.cwnd < self.ssthresh {
            // RFC 9438 s4.10: standard slow start, or one that ends early.
            match self.slow_start.on_ack(now, acked, view, self.cwnd) {
                Growth::Grow(share) => {
                    self.cwnd += share * segments;
                    return;
                }
                Growth::Exit => self.ssthresh = self.cwnd,
            }
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.start_epoch(now));
        if let Some(since) = self.limited_since.take() {
            epoch.start += now.since(since);
        }
        let t = now.since(epoch.start).as_secs_f64();
        // RFC 9438 s4.3, eq. 4 with the switch to an increase of one segment once the old window is reached.
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * segments / self.cwnd;
        // RFC 9438 s4.2: the window of one round trip later, neither below the present one nor far above.
        let target = Self::w_cubic(&epoch, t + rtt.as_secs_f64()).clamp(self.cwnd, MAX_TARGET * self.cwnd);
        if Self::w_cubic(&epoch, t) < epoch.w_est {
            // RFC 9438 s4.3: Reno-friendly region. An acknowledgement never shrinks the window.
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            // RFC 9438 s4.4 and s4.5: concave and convex regions.
            self.cwnd += (target - self.cwnd) / self.cwnd * segments;
        }
        self.epoch = Some(epoch);
    }

    /// RFC 9438 s4.6 and s4.7; `floor` in segments.
    fn on_congestion(&mut self, floor: f64) {
        self.cwnd_prior = self.cwnd;
        let gives_way = self.config.fast_convergence && self.w_max.is_some_and(|w_max| self.cwnd < w_max);
        self.w_max = Some(if gives_way { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd });
        self.ssthresh = self.cwnd * BETA;
        self.cwnd = self.ssthresh.max(floor);
        self.ssthresh = self.ssthresh.max(MIN_WINDOW);
        self.epoch = None;
        self.limited_since = None;
        self.slow_start.ended();
    }

    /// CUBIC hears nothing of it in Linux, so that the window returns to its curve, growing by at most a half a round trip.
    fn on_penalty(&mut self) {
        (self.cwnd, self.ssthresh) = penalised(self.cwnd, self.ssthresh, 1.0);
        if let Some(epoch) = &mut self.epoch {
            // Here the window jumps to this estimate, in Linux it grows towards it.
            epoch.w_est = epoch.w_est.min(self.cwnd);
        }
    }

    /// RFC 9438 s4.8.
    fn on_timeout(&mut self, repeated: bool) {
        if !repeated {
            self.cwnd_prior = self.cwnd;
            self.ssthresh = (self.cwnd * BETA).max(MIN_WINDOW);
        }
        self.cwnd = 1.0;
        self.w_max = None;
        self.epoch = None;
        self.limited_since = None;
        self.slow_start.ended();
    }
}

impl PathController for Cubic {
    const ANSWERS_MARKS: bool = true;

    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Acked(acked) => {
                self.leave_out(now, acked);
                if !acked.in_recovery && !acked.app_limited {
                    self.on_ack(now, acked, view);
                }
            }
            Event::Congestion { .. } => self.on_congestion(MIN_WINDOW),
            Event::Penalised => self.on_penalty(),
            // RFC 9438 s4.6: one segment is enough after a mark.
            Event::Ecn { .. } => self.on_congestion(1.0),
            Event::Timeout { repeated } => self.on_timeout(*repeated),
            _ => {}
        }
    }

    fn limits(&self) -> Limits {
        let ssthresh = self.ssthresh.is_finite().then(|| Bytes::from_f64(self.ssthresh * self.mss));
        Limits { cwnd: Bytes::from_f64(self.cwnd * self.mss), pacing: None, ssthresh }
    }

    fn inspect(&self, out: &mut dyn Probe) {
        out.value("cwnd_bytes", self.cwnd * self.mss);
        out.value("ssthresh_bytes", self.ssthresh * self.mss);
        out.value("w_max_bytes", self.w_max.unwrap_or(0.0) * self.mss);
        out.value("w_est_bytes", self.epoch.map_or(0.0, |epoch| epoch.w_est) * self.mss);
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, SubflowId};

    use super::*;

    const MSS: u64 = 1000;

    fn cubic(cwnd: f64) -> Cubic {
        let init = SubflowInit::new(Bytes::new(MSS), Bytes::new(10 * MSS));
        let mut cubic = Cubic::new(Config::default(), init);
        cubic.cwnd = cwnd;
        cubic
    }

    fn ack(cubic: &mut Cubic, millis: u64, app_limited: bool) {
        ack_of(cubic, 0, millis, app_limited);
    }

    /// Of a packet that left at `sent`.
    fn ack_of(cubic: &mut Cubic, sent: u64, millis: u64, app_limited: bool) {
        let mut view = SubflowView::new(SubflowId(0), Bytes::new(MSS));
        view.srtt = Some(Duration::from_millis(100));
        let acked = Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(MSS),
            sent_at: Time::from_millis(sent),
            rtt: Duration::from_millis(100),
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: false,
            app_limited,
        };
        cubic.on_event(Time::from_millis(millis), &Event::Acked(acked), &view);
    }

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn congestion_leaves_seven_tenths() {
        let mut cubic = cubic(100.0);
        cubic.on_congestion(MIN_WINDOW);
        close(cubic.cwnd, 70.0);
        close(cubic.ssthresh, 70.0);
        close(cubic.w_max.unwrap(), 100.0);
        // Again before W_max = 100 is reached: W_max = 70 * (1 + 0.7)/2 = 59.5, window 49.
        cubic.on_congestion(MIN_WINDOW);
        close(cubic.w_max.unwrap(), 59.5);
        close(cubic.cwnd, 49.0);
    }

    #[test]
    fn without_fast_convergence_the_maximum_is_the_window() {
        let mut cubic = cubic(100.0);
        cubic.config.fast_convergence = false;
        cubic.on_congestion(MIN_WINDOW);
        cubic.on_congestion(MIN_WINDOW);
        close(cubic.w_max.unwrap(), 70.0);
    }

    #[test]
    fn floors_are_two_segments_after_loss_and_one_after_a_mark() {
        let (loss, mark) = (Event::Congestion { sent_at: Time::ZERO }, Event::Ecn { sent_at: Time::ZERO });
        for (event, window) in [(loss, 2.0), (mark, 1.0), (Event::Timeout { repeated: false }, 1.0)] {
            let mut cubic = cubic(1.2);
            cubic.on_event(Time::ZERO, &event, &SubflowView::new(SubflowId(0), Bytes::new(MSS)));
            close(cubic.cwnd, window);
            close(cubic.ssthresh, 2.0);
        }
    }

    #[test]
    fn concave_growth_follows_equation_1() {
        let mut cubic = cubic(1000.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 1_000, false);
        // K = cbrt((1000 - 700)/0.4) = cbrt(750) = 9.08560296...
        let epoch = cubic.epoch.unwrap();
        close(epoch.k * epoch.k * epoch.k, 750.0);
        // At t = 0 Reno's line is ahead: W_est = 700 + 9/17/700, and the window with it.
        let first = 700.0 + 9.0 / 17.0 / 700.0;
        close(epoch.w_est, first);
        close(cubic.cwnd, first);
        // At t = 2: target = W_cubic(2.1) = 0.4 (2.1 - K)^3 + 1000 (about 863.8); cwnd += (target - cwnd)/cwnd.
        ack(&mut cubic, 3_000, false);
        let x = 2.1 - epoch.k;
        close(cubic.cwnd, first + (0.4 * x * x * x + 1000.0 - first) / first);
    }

    #[test]
    fn a_short_round_trip_is_in_the_reno_friendly_region() {
        let mut cubic = cubic(10.0);
        cubic.on_congestion(MIN_WINDOW);
        // K = cbrt(3/0.4) = 1.957: for a long time the cubic function is flatter than Reno's line.
        ack(&mut cubic, 0, false);
        ack(&mut cubic, 1, false);
        // W_est: 7 + a/7 (cubic region at t = 0: W_cubic(0) = 7 < W_est) -> cwnd = W_est; then + a/cwnd; a = 9/17.
        let a = 9.0 / 17.0;
        let first = 7.0 + a / 7.0;
        close(cubic.cwnd, first + a / first);
    }

    #[test]
    fn the_reno_estimate_grows_by_one_once_the_old_window_is_reached() {
        let mut cubic = cubic(10.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 0, false);
        cubic.epoch.as_mut().unwrap().w_est = 10.0;
        cubic.cwnd = 10.0;
        ack(&mut cubic, 1, false);
        close(cubic.epoch.unwrap().w_est, 10.0 + 1.0 / 10.0);
    }

    #[test]
    fn the_target_is_at_most_half_as_much_again() {
        let mut cubic = cubic(10.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 0, false);
        let before = cubic.cwnd;
        // 100 s later W_cubic is about 377,000: the target is 1.5 cwnd, one acknowledgement adds half a segment.
        ack(&mut cubic, 100_000, false);
        close(cubic.cwnd, before + 0.5);
    }

    #[test]
    fn a_timeout_starts_over_and_congestion_avoidance_starts_flat() {
        let mut cubic = cubic(100.0);
        cubic.ssthresh = 100.0;
        ack(&mut cubic, 0, false);
        cubic.cwnd = 100.0;
        // What is said again is nothing new.
        for repeated in [false, true] {
            cubic.on_timeout(repeated);
            close(cubic.cwnd, 1.0);
            close(cubic.ssthresh, 70.0);
        }
        cubic.cwnd = 70.0;
        ack(&mut cubic, 0, false);
        let epoch = cubic.epoch.unwrap();
        close(epoch.k, 0.0);
        close(epoch.w_max, 70.0);
    }

    #[test]
    fn a_penalty_halves_the_window_and_leaves_the_curve() {
        let mut starting = cubic(100.0);
        starting.on_penalty();
        close(starting.cwnd, 50.0);
        assert!(starting.ssthresh.is_infinite(), "slow start goes on");
        let mut cubic = cubic(100.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 0, false);
        cubic.on_penalty();
        close(cubic.ssthresh, 35.0);
        let (halved, epoch) = (cubic.cwnd, cubic.epoch.unwrap());
        close(epoch.w_max, 100.0);
        // The curve is far above: half a segment an acknowledgement.
        ack(&mut cubic, 3_000, false);
        close(cubic.cwnd, halved + 0.5);
    }

    #[test]
    fn a_penalty_halves_what_reno_would_have() {
        let mut cubic = cubic(10.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 0, false);
        cubic.on_penalty();
        let halved = cubic.cwnd;
        ack(&mut cubic, 1, false);
        close(cubic.cwnd, halved + 0.5);
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut cubic = cubic(1000.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 1_000, false);
        // Whoever has a full window and then nothing to send for half a minute is never told to be limited.
        ack_of(&mut cubic, 31_000, 31_100, false);
        assert_eq!(cubic.epoch.unwrap().start, Time::from_millis(31_000));
        // One whose packets before it are under way is not idle.
        ack_of(&mut cubic, 31_050, 31_150, false);
        assert_eq!(cubic.epoch.unwrap().start, Time::from_millis(31_000));
        // What the application limited is left out once.
        ack_of(&mut cubic, 31_100, 31_200, true);
        ack_of(&mut cubic, 40_000, 40_100, false);
        assert_eq!(cubic.epoch.unwrap().start, Time::from_millis(31_000 + 8_900));
    }

    #[test]
    fn application_limited_time_does_not_count() {
        let mut cubic = cubic(1000.0);
        cubic.on_congestion(MIN_WINDOW);
        ack(&mut cubic, 0, false);
        let before = cubic.cwnd;
        ack(&mut cubic, 1_000, true);
        close(cubic.cwnd, before);
        ack(&mut cubic, 31_000, false);
        assert_eq!(cubic.epoch.unwrap().start, Time::from_millis(30_000));
        // Nor does what was before congestion.
        for timeout in [false, true] {
            ack(&mut cubic, 32_000, true);
            if timeout {
                cubic.on_timeout(false);
                cubic.cwnd = cubic.ssthresh;
            } else {
                cubic.on_congestion(MIN_WINDOW);
            }
            ack(&mut cubic, 40_000, false);
            assert_eq!(cubic.epoch.unwrap().start, Time::from_millis(40_000));
        }
    }
}
