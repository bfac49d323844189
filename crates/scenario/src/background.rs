//! When a source sends: every engine sends the same packets at the same times.

use manypath_core::{Duration, Time};
use manypath_link::{exponential, generator};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::model::Source;

/// The mean of what is drawn for a gap, whatever the gap is.
const GAP: Duration = Duration::from_secs(1);

/// A source at work. It is asked first when the source starts, and then when it says.
#[derive(Clone, Debug)]
pub struct Background {
    /// Seconds between packets.
    gap_s: f64,
    /// When the source began, and the silences since then later; and when the next packet leaves after that, in gaps: so
    /// rounding does not add up, and what is left of a gap when a silence begins is waited for after it.
    origin: Time,
    gaps: f64,
    poisson: bool,
    on_off: Option<(Duration, Duration)>,
    /// When the present busy time ends.
    busy_until: Time,
    stop: Time,
    random: Xoshiro256PlusPlus,
}

/// What a source does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Whether it sends a packet.
    pub sends: bool,
    /// When to ask again; `None`: never.
    pub again: Option<Time>,
}

impl Source {
    /// The source at its start. Its randomness is named after it.
    pub fn begin(&self, seed: u64) -> Background {
        let mut random = generator(seed, &self.name);
        let busy_until = self.on_off.map_or(Time::MAX, |(on, _)| self.start + exponential(&mut random, on));
        Background {
            gap_s: self.packet.as_f64() * 8.0 / self.rate.as_bps(),
            origin: self.start,
            gaps: 0.0,
            poisson: self.poisson,
            on_off: self.on_off,
            busy_until,
            stop: self.stop.unwrap_or(Time::MAX),
            random,
        }
    }
}

impl Background {
    /// What the source does at `now`, which is when it said that it wants to be asked.
    pub fn act(&mut self, now: Time) -> Act {
        if now >= self.stop {
            return Act { sends: false, again: None };
        }
        let sends = now < self.busy_until;
        if sends {
            self.gaps += if self.poisson { exponential(&mut self.random, GAP).as_secs_f64() } else { 1.0 };
        } else if let Some((on, off)) = self.on_off {
            let silence = exponential(&mut self.random, off);
            self.origin += silence;
            self.busy_until += silence + exponential(&mut self.random, on);
        }
        let next = self.origin + Duration::from_secs_f64(self.gaps * self.gap_s);
        Act { sends, again: Some(next.min(self.busy_until)) }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Bytes, Rate};

    use super::*;

    fn sent(rate: f64, poisson: bool, on_off: Option<(Duration, Duration)>) -> u64 {
        let source = Source {
            name: "s".to_owned(),
            route: vec![0],
            rate: Rate::from_mbps(rate),
            packet: Bytes::new(1500),
            poisson,
            on_off,
            start: Time::from_millis(1_000),
            stop: Some(Time::from_millis(61_000)),
        };
        let mut background = source.begin(5);
        let (mut count, mut now) = (0, Some(source.start));
        while let Some(at) = now {
            let act = background.act(at);
            count += u64::from(act.sends);
            now = act.again;
        }
        count
    }

    #[test]
    fn gaps_of_a_few_nanoseconds_are_not_rounded() {
        for poisson in [false, true] {
            let source = Source {
                name: "s".to_owned(),
                route: vec![0],
                rate: Rate::from_mbps(200_000.0),
                packet: Bytes::new(64),
                poisson,
                on_off: None,
                start: Time::ZERO,
                stop: None,
            };
            let mut background = source.begin(5);
            let mut now = Time::ZERO;
            for _ in 0..1_000_000 {
                now = background.act(now).again.unwrap();
            }
            // 2.56 ns each. Poisson: standard deviation 0.1%.
            assert!((now.as_secs_f64() / 2.56e-3 - 1.0).abs() < if poisson { 4e-3 } else { 1e-6 }, "{now:?}");
        }
    }

    #[test]
    fn a_source_sends_its_rate_between_start_and_stop() {
        // 12 Mbit/s are 1000 packets a second, for 60 s. Poisson: standard deviation sqrt(60,000) = 245.
        assert_eq!(sent(12.0, false, None), 60_000);
        assert!(sent(12.0, true, None).abs_diff(60_000) < 4 * 245);
        // On for a third of the time: some 400 busy times, so the number is good to about sqrt(2 / 400) = 7%.
        let on_off = Some((Duration::from_millis(50), Duration::from_millis(100)));
        assert!(sent(12.0, false, on_off).abs_diff(20_000) < 5_600);
        // Gaps of 20 ms are longer than the busy times of 5 ms: 4,000 of these, so good to 2.2%.
        let on_off = Some((Duration::from_millis(5), Duration::from_millis(10)));
        assert!(sent(0.6, false, on_off).abs_diff(1_000) < 70);
    }
}
