//! TCP Vegas (Brakmo and Peterson 1995, with the choices of Linux): keeps a few packets queued.
//!
//! Once a round trip, the packets queued are estimated as `diff = w (rtt - base)/rtt`, with `rtt` the smallest of the round and
//! `base` the smallest ever.

use manypath_core::{Bytes, Params, SpecError, SubflowView, Time};

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::penalty::penalised;
use crate::round::Rounds;

/// Packets queued, in Linux's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Below this the window grows (Linux: 2).
    pub alpha: f64,
    /// Above this it shrinks (Linux: 4).
    pub beta: f64,
    /// Above this slow start ends (Linux: 1).
    pub gamma: f64,
}

impl Config {
    /// Reads the parameters of the registry row.
    ///
    /// # Errors
    /// If a value is out of range, or beta is below alpha.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        let config = Self {
            alpha: params.number("alpha", 0.0, 1000.0)?,
            beta: params.number("beta", 0.0, 1000.0)?,
            gamma: params.number("gamma", 0.0, 1000.0)?,
        };
        if config.beta < config.alpha { Err(params.bad_value("beta")) } else { Ok(config) }
    }
}

/// The smallest window, packets.
const MIN_WINDOW: f64 = 2.0;
/// A round with fewer samples is Reno's (Linux: more than two).
const MIN_SAMPLES: u32 = 3;

/// Vegas for one subflow.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: Config,
    /// Bytes per packet.
    mss: f64,
    /// Congestion window, packets.
    cwnd: f64,
    /// Slow-start threshold, packets; infinite at first.
    ssthresh: f64,
    /// Smallest round-trip time, seconds.
    base: f64,
    /// Smallest of the round, seconds.
    smallest: f64,
    samples: u32,
    rounds: Rounds,
}

impl Vegas {
    /// A controller at its initial window.
    pub fn new(config: Config, init: SubflowInit) -> Self {
        let mss = init.mss.as_f64().max(1.0);
        Self {
            config,
            mss,
            cwnd: (init.initial_window.as_f64() / mss).max(1.0),
            ssthresh: init.threshold() / mss,
            base: f64::INFINITY,
            smallest: f64::INFINITY,
            samples: 0,
            rounds: Rounds::default(),
        }
    }

    fn on_ack(&mut self, acked: &Acked, delivered: Bytes) {
        let packets = acked.bytes.as_f64() / self.mss;
        self.smallest = self.smallest.min(seconds(acked));
        self.samples += 1;
        if self.rounds.on_ack(acked, delivered) {
            let (rtt, samples) = (self.smallest, self.samples);
            (self.smallest, self.samples) = (f64::INFINITY, 0);
            if samples >= MIN_SAMPLES {
                self.on_round(rtt, packets);
            } else if self.cwnd < self.ssthresh {
                self.cwnd += packets;
            } else {
                self.cwnd += packets / self.cwnd;
            }
        } else if self.cwnd < self.ssthresh {
            self.cwnd += packets;
        }
    }

    fn on_round(&mut self, rtt: f64, packets: f64) {
        let diff = self.cwnd * (rtt - self.base) / rtt;
        if self.cwnd < self.ssthresh {
            if diff > self.config.gamma {
                // Linux: fall back to what the path holds, and one packet.
                self.cwnd = self.cwnd.min(libm::floor(self.cwnd * self.base / rtt) + 1.0);
                self.ssthresh = self.ssthresh.min(self.cwnd - 1.0);
            } else {
                self.cwnd += packets;
            }
        } else if diff > self.config.beta {
            self.cwnd -= 1.0;
            self.ssthresh = self.ssthresh.min(self.cwnd - 1.0);
        } else if diff < self.config.alpha {
            self.cwnd += 1.0;
        }
        self.cwnd = self.cwnd.max(MIN_WINDOW);
        // Linux: `tcp_current_ssthresh`.
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
    }

    /// Loss is answered as by Reno (Brakmo and Peterson 1995 s3.1).
    fn on_congestion(&mut self, delivered: Bytes) {
        self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW);
        self.cwnd = self.ssthresh;
        self.rest(delivered);
    }

    fn on_penalty(&mut self) {
        (self.cwnd, self.ssthresh) = penalised(self.cwnd, self.ssthresh, 1.0);
    }

    /// Linux: samples of a recovery do not count, and the first round after it begins when it ends.
    fn rest(&mut self, delivered: Bytes) {
        (self.smallest, self.samples) = (f64::INFINITY, 0);
        self.rounds = self.rounds.restarted_at(delivered);
    }
}

/// The round-trip time of an acknowledgement.
fn seconds(acked: &Acked) -> f64 {
    acked.rtt.as_secs_f64().max(1e-6)
}

impl PathController for Vegas {
    const ANSWERS_MARKS: bool = true;

    fn on_event(&mut self, _now: Time, event: &Event, view: &SubflowView) {
        if let Event::Acked(acked) = event {
            self.base = self.base.min(seconds(acked));
        }
        match event {
            Event::Acked(acked) if acked.in_recovery => self.rest(view.delivered),
            Event::Acked(acked) if !acked.app_limited => self.on_ack(acked, view.delivered),
            Event::Congestion { .. } | Event::Ecn { .. } => self.on_congestion(view.delivered),
            Event::Penalised => self.on_penalty(),
            Event::Timeout { repeated } => {
                if !repeated {
                    self.on_congestion(view.delivered);
                }
                self.cwnd = 1.0;
            }
            _ => {}
        }
    }

    fn limits(&self) -> Limits {
        let ssthresh = self.ssthresh.is_finite().then(|| Bytes::from_f64(self.ssthresh * self.mss));
        Limits { cwnd: Bytes::from_f64(self.cwnd * self.mss), pacing: None, ssthresh }
    }

    fn inspect(&self, out: &mut dyn Probe) {
        out.value("cwnd_bytes", self.cwnd * self.mss);
        out.value("base_rtt_s", self.base);
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, SubflowId};

    use super::*;

    fn vegas(cwnd: f64, slow_start: bool) -> Vegas {
        let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
        let mut vegas = Vegas::new(Config { alpha: 2.0, beta: 4.0, gamma: 1.0 }, init);
        vegas.cwnd = cwnd;
        vegas.base = 0.1;
        if !slow_start {
            vegas.ssthresh = 1.0;
        }
        vegas
    }

    fn after(mut vegas: Vegas, rtt: f64) -> f64 {
        vegas.on_round(rtt, 1.0);
        vegas.cwnd
    }

    #[test]
    fn a_few_packets_are_kept_queued() {
        // diff = 20 * 5/105 = 0.95 < 2: up. 20 * 15/115 = 2.6: stay. 20 * 30/130 = 4.6 > 4: down.
        assert!((after(vegas(20.0, false), 0.105) - 21.0).abs() < 1e-12);
        assert!((after(vegas(20.0, false), 0.115) - 20.0).abs() < 1e-12);
        assert!((after(vegas(20.0, false), 0.130) - 19.0).abs() < 1e-12);
        // What shrinks is not in slow start.
        let mut shrinking = vegas(20.0, false);
        shrinking.ssthresh = 19.5;
        shrinking.on_round(0.130, 1.0);
        assert!((shrinking.ssthresh - 18.0).abs() < 1e-12);
    }

    #[test]
    fn one_number_of_packets_may_be_both_ends() {
        let read = |text: &str| crate::create(&text.parse().unwrap(), 1).is_ok();
        assert!(read("vegas:alpha=3,beta=3") && !read("vegas:alpha=3,beta=2.9"));
    }

    #[test]
    fn slow_start_ends_when_one_packet_is_queued() {
        // diff = 20 * 10/110 = 1.8 > 1: floor(20 * 100/110) + 1 = 19.
        let mut ending = vegas(20.0, true);
        ending.on_round(0.11, 1.0);
        assert!((ending.cwnd - 19.0).abs() < 1e-12 && ending.cwnd >= ending.ssthresh);
        // diff = 3 * 9/10 = 2.7: floor(3 * 1/10) + 1 = 1, but two packets at least.
        assert!((after(vegas(3.0, true), 1.0) - 2.0).abs() < 1e-12);
        // 20 * 4/104 = 0.77.
        assert!((after(vegas(20.0, true), 0.104) - 21.0).abs() < 1e-12);
    }

    #[test]
    fn every_sample_may_be_the_smallest_ever() {
        let mut vegas = vegas(20.0, false);
        let acked = Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(1000),
            sent_at: Time::ZERO,
            rtt: Duration::from_millis(20),
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: true,
            app_limited: true,
        };
        let view = SubflowView::new(SubflowId(0), Bytes::new(1000));
        vegas.on_event(Time::ZERO, &Event::Acked(acked), &view);
        assert!((vegas.base - 0.02).abs() < 1e-12 && (vegas.cwnd - 20.0).abs() < 1e-12);
    }

    #[test]
    fn a_loss_halves() {
        let mut vegas = vegas(20.0, false);
        vegas.on_congestion(Bytes::ZERO);
        assert!((vegas.cwnd - 10.0).abs() < 1e-12);
        let view = SubflowView::new(SubflowId(0), Bytes::new(1000));
        for repeated in [false, true] {
            vegas.on_event(Time::ZERO, &Event::Timeout { repeated }, &view);
            assert!((vegas.cwnd - 1.0).abs() < 1e-12 && (vegas.ssthresh - 5.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_first_round_after_a_recovery_begins_at_its_end() {
        let mut vegas = vegas(20.0, false);
        let mut view = SubflowView::new(SubflowId(0), Bytes::new(1000));
        let mut acknowledge = |vegas: &mut Vegas, sent: u64, in_recovery: bool| {
            view.delivered += Bytes::new(1000);
            let acked = Acked {
                packet: PacketNumber(0),
                bytes: Bytes::new(1000),
                sent_at: Time::ZERO,
                rtt: Duration::from_millis(105),
                delivery_rate: Rate::ZERO,
                delivered_at_send: Bytes::new(sent * 1000),
                in_recovery,
                app_limited: false,
            };
            vegas.on_event(Time::ZERO, &Event::Acked(acked), &view);
        };
        acknowledge(&mut vegas, 0, true);
        acknowledge(&mut vegas, 0, true);
        // Of packets that left in the recovery: samples, but no end of a round.
        (0..3).for_each(|_| acknowledge(&mut vegas, 1, false));
        assert!((vegas.cwnd - 20.0).abs() < 1e-12 && vegas.samples == 3, "{}", vegas.cwnd);
        // diff = 20 * 5/105 = 0.95 < 2.
        acknowledge(&mut vegas, 2, false);
        assert!((vegas.cwnd - 21.0).abs() < 1e-12);
        // A round of one sample is Reno's.
        acknowledge(&mut vegas, 6, false);
        assert!((vegas.cwnd - 21.0 - 1.0 / 21.0).abs() < 1e-12, "{}", vegas.cwnd);
    }

    #[test]
    fn a_penalty_halves_the_window_and_the_threshold_only_after_slow_start() {
        let mut starting = vegas(20.0, true);
        starting.on_penalty();
        assert!((starting.cwnd - 10.0).abs() < 1e-12 && starting.ssthresh.is_infinite());
        starting.ssthresh = 8.0;
        starting.on_penalty();
        assert!((starting.cwnd - 5.0).abs() < 1e-12 && (starting.ssthresh - 4.0).abs() < 1e-12);
    }
}
