//! HyStart++ (RFC 9406): leaves the first slow start when round-trip times rise, before packets are lost.

use manypath_core::Bytes;

use crate::event::Acked;
use crate::round::Rounds;

/// RFC 9406 s4.3 `MIN_RTT_THRESH`, seconds.
const MIN_RTT_THRESH: f64 = 0.004;
/// RFC 9406 s4.3 `MAX_RTT_THRESH`, seconds.
const MAX_RTT_THRESH: f64 = 0.016;
/// RFC 9406 s4.3 `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: f64 = 8.0;
/// RFC 9406 s4.3 `N_RTT_SAMPLE`.
const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406 s4.3 `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// RFC 9406 s4.3 `CSS_ROUNDS`.
const CSS_ROUNDS: u32 = 5;

/// What slow start is to do with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// Grow by this share of slow start's growth.
    Grow(f64),
    /// Leave slow start: `ssthresh` becomes the window.
    Exit,
}

/// HyStart++ of one subflow. Only for the first slow start (RFC 9406 s4.2). The limit `L` on growth per acknowledgement has
/// no use here, where every packet is acknowledged by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HyStart {
    rounds: Rounds,
    /// Smallest RTT of the last round, seconds.
    last: Option<f64>,
    /// Smallest RTT of this round, seconds.
    current: Option<f64>,
    /// RTT samples of this round.
    samples: u32,
    /// In conservative slow start: the RTT that brought it on, and its rounds left.
    conservative: Option<(f64, u32)>,
}

impl HyStart {
    /// Takes an acknowledgement in slow start, and the subflow's `delivered` after it.
    pub fn on_ack(&mut self, acked: &Acked, delivered: Bytes) -> Growth {
        if self.rounds.on_ack(acked, delivered) {
            self.last = self.current.take();
            self.samples = 0;
            // RFC 9406 s4.2: the round in which conservative slow start began counts as one.
            if let Some((_, left)) = &mut self.conservative {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    return Growth::Exit;
                }
            }
        }
        let rtt = acked.rtt.as_secs_f64();
        let current = self.current.map_or(rtt, |held| held.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        if self.samples >= N_RTT_SAMPLE {
            match self.conservative {
                None => {
                    if let Some(last) = self.last {
                        let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                        if current >= last + threshold {
                            self.conservative = Some((current, CSS_ROUNDS));
                        }
                    }
                }
                // The rise was a false alarm.
                Some((baseline, _)) if current < baseline => self.conservative = None,
                Some(_) => {}
            }
        }
        Growth::Grow(if self.conservative.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, Time};

    use super::*;

    /// One round of `n` acknowledgements of `rtt_ms`; returns the last growth.
    fn round(hystart: &mut HyStart, delivered: &mut u64, n: u64, rtt_ms: u64) -> Growth {
        let at_send = Bytes::new(*delivered);
        let mut growth = Growth::Grow(0.0);
        for _ in 0..n {
            *delivered += 1;
            let acked = Acked {
                packet: PacketNumber(0),
                bytes: Bytes::new(1),
                sent_at: Time::ZERO,
                rtt: Duration::from_millis(rtt_ms),
                delivery_rate: Rate::ZERO,
                delivered_at_send: at_send,
                in_recovery: false,
                app_limited: false,
            };
            growth = hystart.on_ack(&acked, Bytes::new(*delivered));
            if growth == Growth::Exit {
                break;
            }
        }
        growth
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_and_five_rounds_end_it() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        assert_eq!(round(&mut hystart, &mut delivered, 10, 80), Growth::Grow(1.0));
        // 80/8 = 10 ms: 89 is not enough, 99 after 89 (threshold 11.125) neither, 120 after 99 (12.4) is.
        assert_eq!(round(&mut hystart, &mut delivered, 10, 89), Growth::Grow(1.0));
        assert_eq!(round(&mut hystart, &mut delivered, 10, 99), Growth::Grow(1.0));
        assert_eq!(round(&mut hystart, &mut delivered, 10, 120), Growth::Grow(0.25));
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, &mut delivered, 10, 120), Growth::Grow(0.25));
        }
        assert_eq!(round(&mut hystart, &mut delivered, 10, 120), Growth::Exit);
    }

    #[test]
    fn thresholds_are_clamped() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 8);
        // 8/8 = 1 ms, raised to 4: 11 is not enough, 15 after 11 is.
        assert_eq!(round(&mut hystart, &mut delivered, 10, 11), Growth::Grow(1.0));
        assert_eq!(round(&mut hystart, &mut delivered, 10, 15), Growth::Grow(0.25));
        let (mut slow, mut delivered) = (HyStart::default(), 0);
        round(&mut slow, &mut delivered, 10, 400);
        // 400/8 = 50 ms, lowered to 16.
        assert_eq!(round(&mut slow, &mut delivered, 10, 416), Growth::Grow(0.25));
    }

    #[test]
    fn a_false_alarm_resumes_slow_start_and_few_samples_decide_nothing() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 80);
        assert_eq!(round(&mut hystart, &mut delivered, 7, 200), Growth::Grow(1.0));
        round(&mut hystart, &mut delivered, 10, 80);
        assert_eq!(round(&mut hystart, &mut delivered, 10, 100), Growth::Grow(0.25));
        assert_eq!(round(&mut hystart, &mut delivered, 10, 90), Growth::Grow(1.0));
    }
}
