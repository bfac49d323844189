//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1(4), 1993: \[RED93\]), with the "gentle" slope above the upper threshold (Floyd 2000) as an option.

use manypath_core::{Duration, Time};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::QueueLimit;
use crate::counters::Backlog;
use crate::random::uniform;

/// Parameters of RED. The average queue is kept in the unit of the thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Lower threshold of the average queue: below it nothing is dropped. In the same unit as `max`.
    pub min: QueueLimit,
    /// Upper threshold of the average queue, above `min`.
    pub max: QueueLimit,
    /// Drop probability when the average reaches `max`, in `0 < p <= 1` (\[RED93\] `max_p`).
    pub max_probability: f64,
    /// Weight of the newest queue sample in the average, in `0 < w <= 1` (\[RED93\] `w_q`; 0.002 is usual).
    pub weight: f64,
    /// Whether the probability rises from `max_probability` to 1 between `max` and twice `max`, and not at once.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked where others are dropped early (RFC 3168 s7); above the range of the
    /// probability all are dropped.
    pub ecn: bool,
}

/// What RED wants done with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedAction {
    /// Let it in.
    Pass,
    /// Mark it if it can be marked, drop it otherwise.
    Signal,
    /// Drop it whatever it is.
    Drop,
}

/// The running state.
#[derive(Clone, Debug)]
pub(crate) struct RedState {
    config: Red,
    min: f64,
    max: f64,
    average: f64,
    /// When the last packet was judged: idle time before it is in the average already.
    judged: Time,
    /// Packets without a signal since the last one, or since the average came between the thresholds (\[RED93\] `count` as
    /// its text has it, which makes gaps uniform; its pseudo code counts one more after a signal).
    since_signal: u64,
    random: Xoshiro256PlusPlus,
}

impl RedState {
    pub(crate) fn new(config: Red, random: Xoshiro256PlusPlus) -> Self {
        let (min, max) = (config.min.amount() as f64, config.max.amount() as f64);
        Self { config, min, max, average: 0.0, judged: Time::ZERO, since_signal: 0, random }
    }

    /// Judges a packet that comes at `now` and finds `backlog`, behind which it would wait for `wait`. If that is empty, it has
    /// been so since `emptied`; packets of a typical size take `slot` each.
    pub(crate) fn on_arrival(
        &mut self,
        now: Time,
        backlog: Backlog,
        wait: Duration,
        emptied: Time,
        slot: Duration,
    ) -> RedAction {
        // An empty queue stays empty while packets are dropped: each of them adds what was idle since the one before.
        let idle = now.since(emptied.max(self.judged));
        self.judged = now;
        self.update_average(backlog, wait, idle, slot);
        // One draw per packet, whatever the state, so that the stream does not depend on the queue's history.
        let draw = uniform(&mut self.random);
        let Some(probability) = self.probability() else {
            self.since_signal = 0;
            return RedAction::Drop;
        };
        if probability <= 0.0 {
            self.since_signal = 0;
            return RedAction::Pass;
        }
        // [RED93] s4: p_a = p_b / (1 - count p_b) spreads the signals evenly; the denominator reaches zero when one is due.
        let spread = 1.0 - self.since_signal as f64 * probability;
        self.since_signal += 1;
        if draw * spread < probability {
            self.since_signal = 0;
            return RedAction::Signal;
        }
        RedAction::Pass
    }

    /// Whether an ECN-capable packet is marked instead of dropped.
    pub(crate) const fn marks(&self) -> bool {
        self.config.ecn
    }

    /// \[RED93\] s4: a moving average, which decays over idle time as if small packets had found an empty queue.
    fn update_average(&mut self, backlog: Backlog, wait: Duration, idle: Duration, slot: Duration) {
        let keep = 1.0 - self.config.weight;
        if backlog.packets > 0 {
            let queue = self.config.min.measure(backlog, wait) as f64;
            self.average = keep * self.average + self.config.weight * queue;
        } else if !slot.is_zero() && self.average > 0.0 {
            self.average *= libm::pow(keep, idle.as_nanos() as f64 / slot.as_nanos() as f64);
        }
    }

    /// \[RED93\] s4's p_b; `None` above the range in which anything passes.
    fn probability(&self) -> Option<f64> {
        let top = self.config.max_probability;
        if self.average < self.min {
            Some(0.0)
        } else if self.average < self.max {
            Some(top * (self.average - self.min) / (self.max - self.min))
        } else if self.config.gentle && self.average < 2.0 * self.max {
            Some(top + (1.0 - top) * (self.average - self.max) / self.max)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;
    use manypath_core::Bytes;

    fn red(weight: f64, gentle: bool) -> RedState {
        let config = Red {
            min: QueueLimit::Packets(5),
            max: QueueLimit::Packets(15),
            max_probability: 0.1,
            weight,
            gentle,
            ecn: true,
        };
        RedState::new(config, generator(3, "red"))
    }

    fn packets(packets: u64) -> Backlog {
        Backlog { packets, bytes: Bytes::new(packets * 1500) }
    }

    fn arrive(red: &mut RedState, queue: u64) -> RedAction {
        red.on_arrival(Time::ZERO, packets(queue), Duration::ZERO, Time::ZERO, Duration::from_millis(1))
    }

    #[test]
    fn probability_follows_the_thresholds() {
        let mut state = red(1.0, false);
        for (queue, expected) in [(4, Some(0.0)), (5, Some(0.0)), (10, Some(0.05)), (15, None), (40, None)] {
            arrive(&mut state, queue);
            match (state.probability(), expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12),
                (found, expected) => assert_eq!(found, expected),
            }
        }
        let mut gentle = red(1.0, true);
        arrive(&mut gentle, 20);
        // 0.1 + 0.9 * (20 - 15) / 15 = 0.4
        assert!((gentle.probability().unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(arrive(&mut gentle, 30), RedAction::Drop);
    }

    #[test]
    fn signals_are_spread_evenly() {
        // p_b = 0.05 throughout: gaps are uniform on 1..=20 ([RED93] s7), so their mean is 10.5 and none is longer.
        let mut state = red(1.0, false);
        let mut gaps = vec![0u32];
        for _ in 0..200_000 {
            *gaps.last_mut().unwrap() += 1;
            if arrive(&mut state, 10) == RedAction::Signal {
                gaps.push(0);
            }
        }
        gaps.pop();
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        // sd of a gap 5.77, about 19,000 gaps: four sd of the mean are 0.17
        assert!((mean - 10.5).abs() < 0.17, "{mean}");
        assert!(gaps.iter().all(|gap| (1..=20).contains(gap)));
    }

    #[test]
    fn outside_of_the_thresholds_the_spread_begins_anew() {
        // [RED93] s4: below the lower threshold and above the upper one the count is set back.
        for queue in [4, 15] {
            let mut state = red(1.0, false);
            state.since_signal = 7;
            arrive(&mut state, queue);
            assert_eq!(state.since_signal, 0, "{queue}");
        }
    }

    #[test]
    fn the_average_stays_while_nothing_can_leave() {
        let mut state = red(0.5, false);
        arrive(&mut state, 16);
        state.on_arrival(Time::from_millis(3), packets(0), Duration::ZERO, Time::ZERO, Duration::ZERO);
        assert!((state.average - 8.0).abs() < 1e-12);
    }

    #[test]
    fn the_average_decays_over_idle_time() {
        let mut state = red(0.5, false);
        arrive(&mut state, 16);
        assert!((state.average - 8.0).abs() < 1e-12);
        // 3 ms idle, 1 ms a packet: 8 * 0.5^3 = 1
        let at = Time::from_millis(3);
        state.on_arrival(at, packets(0), Duration::ZERO, Time::ZERO, Duration::from_millis(1));
        assert!((state.average - 1.0).abs() < 1e-12);
    }
}
