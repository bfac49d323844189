//! Hybrid slow start as Linux' CUBIC has had it since 2.6.29 (Ha and Rhee, "Taming the elephants: new TCP slow start",
//! Computer Networks 55, 2011; the constants are those of `net/ipv4/tcp_cubic.c`): leaves slow start at once when round
//! trips lengthen or when a window's acknowledgements take as long as half a round trip, in every slow start.
//!
//! Where windows leave spread over a round trip, the sender's clock makes the trains and the second rule is left out; Linux,
//! which spreads a window over half of one in slow start, waits for a whole round trip then.
//!
//! HyStart++ (RFC 9406, [`crate::hystart`]) came of it: it keeps the first rule, drops the second and leaves slowly.

use manypath_core::{Duration, SubflowView, Time};

use crate::event::Acked;
use crate::hystart::Growth;
use crate::round::Rounds;

/// Windows below this are left alone, packets (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements of a round whose round-trip times count (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// The least rise of the round-trip time that ends slow start (`HYSTART_DELAY_MIN`).
const LEAST_RISE: Duration = Duration::from_millis(4);
/// The rise that always ends it (`HYSTART_DELAY_MAX`).
const MOST_RISE: Duration = Duration::from_millis(16);
/// Acknowledgements that follow each other within this are one train (`hystart_ack_delta`).
const TRAIN_GAP: Duration = Duration::from_millis(2);

/// Hybrid slow start of one subflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassicHyStart {
    rounds: Rounds,
    /// When the round began.
    round_start: Time,
    /// The latest acknowledgement of the train that began with the round.
    train_end: Time,
    /// Smallest round-trip time of all (spec: `delay_min`).
    least: Option<Duration>,
    /// Smallest of the round's first samples (spec: `curr_rtt`).
    current: Option<Duration>,
    /// Acknowledgements of this round that gave a sample.
    samples: u32,
    /// When the latest sample was taken: the packets of one acknowledgement are one sample.
    sampled_at: Option<Time>,
}

impl ClassicHyStart {
    /// Takes an acknowledgement in slow start: when, the subflow after it, and the window in packets.
    pub fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView, window: f64) -> Growth {
        let least = self.least.map_or(acked.rtt, |held| held.min(acked.rtt));
        self.least = Some(least);
        if self.rounds.on_ack(acked, view.delivered) {
            (self.round_start, self.train_end) = (now, now);
            (self.current, self.samples, self.sampled_at) = (None, 0, None);
        }
        if window < LOW_WINDOW {
            return Growth::Grow(1.0);
        }
        if (!view.spreads_windows && self.train_is_long(now, least)) || self.round_trips_rose(now, acked.rtt, least) {
            return Growth::Exit;
        }
        Growth::Grow(1.0)
    }

    /// Whether the acknowledgements since the round began came without a break, and for longer than half a round trip.
    fn train_is_long(&mut self, now: Time, least: Duration) -> bool {
        if now.since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        now.since(self.round_start) > least / 2
    }

    /// Whether the round's first samples are all above the least by an eighth of it, at least 4 and at most 16 ms.
    fn round_trips_rose(&mut self, now: Time, rtt: Duration, least: Duration) -> bool {
        let same = self.sampled_at == Some(now);
        if self.samples < SAMPLES || (same && self.samples == SAMPLES) {
            self.samples += u32::from(!same);
            self.sampled_at = Some(now);
            self.current = Some(self.current.map_or(rtt, |held| held.min(rtt)));
            return false;
        }
        let rise = (least / 8).clamp(LEAST_RISE, MOST_RISE);
        self.current.is_some_and(|current| current > least + rise)
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Bytes, PacketNumber, Rate, SubflowId};

    use super::*;

    /// A subflow that hears rounds of acknowledgements.
    struct Path {
        hystart: ClassicHyStart,
        delivered: u64,
        now: Time,
    }

    impl Path {
        fn new() -> Self {
            Self { hystart: ClassicHyStart::default(), delivered: 0, now: Time::ZERO }
        }

        /// One round of `n` acknowledgements, `gap_us` apart: the one that ends slow start, if one does.
        fn round(&mut self, n: u64, rtt_ms: u64, gap_us: u64, window: f64) -> Option<u64> {
            self.round_of(n, rtt_ms, gap_us, window, false)
        }

        /// The same; `spread`: the windows leave spread over a round trip.
        fn round_of(&mut self, n: u64, rtt_ms: u64, gap_us: u64, window: f64, spread: bool) -> Option<u64> {
            let mut view = SubflowView::new(SubflowId(0), Bytes::new(1));
            view.spreads_windows = spread;
            let at_send = Bytes::new(self.delivered);
            self.now += Duration::from_millis(rtt_ms);
            for nth in 1..=n {
                self.now += Duration::from_micros(gap_us);
                self.delivered += 1;
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
                view.delivered = Bytes::new(self.delivered);
                if self.hystart.on_ack(self.now, &acked, &view, window) == Growth::Exit {
                    return Some(nth);
                }
            }
            None
        }
    }

    #[test]
    fn a_rise_above_an_eighth_ends_slow_start_with_the_ninth_sample() {
        // 80 / 8 = 10 ms: 90 is not above, 91 is. Gaps of 3 ms are no train.
        let mut path = Path::new();
        assert_eq!(path.round(20, 80, 3000, 20.0), None);
        assert_eq!(path.round(20, 90, 3000, 20.0), None);
        assert_eq!(path.round(20, 91, 3000, 16.0), Some(9));
    }

    #[test]
    fn the_rise_is_clamped_to_4_and_16_ms() {
        let mut path = Path::new();
        assert_eq!(path.round(20, 8, 3000, 20.0), None);
        assert_eq!(path.round(20, 12, 3000, 20.0), None);
        assert_eq!(path.round(20, 13, 3000, 20.0), Some(9));
        let mut path = Path::new();
        assert_eq!(path.round(20, 400, 3000, 20.0), None);
        assert_eq!(path.round(20, 416, 3000, 20.0), None);
        assert_eq!(path.round(20, 417, 3000, 20.0), Some(9));
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start_and_a_break_ends_the_train() {
        // The round begins with its first acknowledgement; 20 / 2 = 10 ms later, at 1 ms each, the twelfth is above.
        assert_eq!(Path::new().round(20, 20, 1000, 20.0), Some(12));
        // 3 ms apart they are no train, however long the round; 7 samples do not judge the round-trip time either.
        assert_eq!(Path::new().round(7, 20, 3000, 20.0), None);
    }

    #[test]
    fn trains_of_windows_that_leave_spread_say_nothing_of_the_path() {
        assert_eq!(Path::new().round_of(30, 20, 1000, 20.0, true), None);
    }

    #[test]
    fn an_acknowledgement_that_ends_a_round_is_a_sample_of_the_next_one_too() {
        let mut path = Path::new();
        assert_eq!(path.round(8, 80, 3000, 20.0), None);
        // Back to the time of the last one.
        path.now = path.now - Duration::from_micros(91_000 + 3_000);
        assert_eq!(path.round(20, 91, 3000, 20.0), Some(9));
    }

    #[test]
    fn small_windows_are_left_alone_and_packets_of_one_acknowledgement_are_one_sample() {
        let mut path = Path::new();
        assert_eq!(path.round(20, 80, 3000, 15.0), None);
        assert_eq!(path.round(20, 200, 3000, 15.0), None);
        let mut path = Path::new();
        assert_eq!(path.round(20, 80, 0, 20.0), None);
        assert_eq!(path.round(20, 200, 0, 20.0), None);
    }
}
