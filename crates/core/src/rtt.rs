//! Round-trip-time estimation (RFC 9002 s5, which keeps the gains of RFC 6298).

use crate::time::Duration;

/// Smoothed round-trip time, its mean deviation, and its extremes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    latest: Duration,
    srtt: Option<Duration>,
    rttvar: Duration,
    min: Option<Duration>,
    max: Duration,
}

impl RttEstimator {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample: the time from sending a packet to its acknowledgement, and the delay the receiver says it added.
    #[inline]
    pub fn on_sample(&mut self, sample: Duration, ack_delay: Duration) {
        self.latest = sample;
        self.max = self.max.max(sample);
        // RFC 9002 s5.2: min_rtt ignores the acknowledgement delay.
        let min = self.min.map_or(sample, |min| min.min(sample));
        self.min = Some(min);
        // RFC 9002 s5.3: subtract the delay unless the result would be below min_rtt.
        let adjusted = if sample >= min + ack_delay { sample - ack_delay } else { sample };
        match self.srtt {
            None => {
                self.srtt = Some(adjusted);
                self.rttvar = adjusted / 2;
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(adjusted)) / 4;
                self.srtt = Some((srtt * 7 + adjusted) / 8);
            }
        }
    }

    /// Takes a sample of a path that carried nothing for a while. What was measured before tells of that time, and
    /// samples are too few now to be averaged: this one stands for itself as the first one did, and the deviation is at
    /// most what it would be after a first one (RFC 6298 s2.2).
    pub fn on_idle_sample(&mut self, sample: Duration) {
        self.on_sample(sample, Duration::ZERO);
        self.srtt = Some(sample);
        self.rttvar = self.rttvar.min(sample / 2);
    }

    /// The most recent sample; zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The mean deviation.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// The smallest sample; `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The largest sample; zero before the first.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// `srtt + 4 rttvar`, or `initial` before the first sample (RFC 6298 s2 without its one-second floor).
    pub fn timeout(&self, initial: Duration) -> Duration {
        self.srtt.map_or(initial, |srtt| srtt + self.rttvar * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_sets_the_variance_to_half() {
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.timeout(ms(333)), ms(333));
        rtt.on_sample(ms(100), Duration::ZERO);
        assert_eq!(rtt.srtt(), Some(ms(100)));
        assert_eq!(rtt.rttvar(), ms(50));
        assert_eq!(rtt.timeout(ms(333)), ms(300));
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut rtt = RttEstimator::new();
        rtt.on_sample(ms(100), Duration::ZERO);
        rtt.on_sample(ms(180), Duration::ZERO);
        // srtt = (7*100 + 180)/8 = 110; rttvar = (3*50 + 80)/4 = 57.5
        assert_eq!(rtt.srtt(), Some(ms(110)));
        assert_eq!(rtt.rttvar(), Duration::from_micros(57_500));
        assert_eq!((rtt.min(), rtt.max(), rtt.latest()), (Some(ms(100)), ms(180), ms(180)));
    }

    #[test]
    fn a_sample_after_an_idle_time_stands_for_itself() {
        let mut rtt = RttEstimator::new();
        rtt.on_sample(ms(500), Duration::ZERO);
        rtt.on_idle_sample(ms(40));
        // rttvar = (3*250 + 460)/4 = 302.5, at most 40/2.
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(40)), ms(20)));
        rtt.on_idle_sample(ms(44));
        // rttvar = (3*20 + 4)/4 = 16
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(44)), ms(16)));
        assert_eq!((rtt.min(), rtt.max()), (Some(ms(40)), ms(500)));
    }

    #[test]
    fn acknowledgement_delay_never_pushes_a_sample_below_the_minimum() {
        let mut rtt = RttEstimator::new();
        rtt.on_sample(ms(100), ms(25));
        assert_eq!(rtt.srtt(), Some(ms(100)));
        rtt.on_sample(ms(140), ms(25));
        // adjusted = 115: srtt = (700 + 115)/8 = 101.875
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(101_875)));
        rtt.on_sample(ms(125), ms(25));
        // adjusted = 100, the minimum itself: srtt = (713.125 + 100)/8
        assert_eq!(rtt.srtt(), Some(Duration::from_nanos(101_640_625)));
    }
}
