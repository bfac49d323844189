//! What a relay reports.

use std::fmt;

use hdrhistogram::Histogram;
use manypath_core::{Bytes, Duration, Rate, Time};
use manypath_link::{Count, Counters};

/// The state of a relay at one time. All counts are since its start.
#[derive(Clone, Debug)]
pub struct RelayStats {
    /// From the clients to the target.
    pub forward: DirectionStats,
    /// From the target to the clients.
    pub backward: DirectionStats,
    /// Time since the relay started.
    pub uptime: Duration,
    /// CPU time of the relay's thread, in user and kernel mode.
    pub cpu: Duration,
    /// Whether the relay's thread has real-time priority: asked for, and granted by the system.
    pub realtime: bool,
    /// Client addresses known at present.
    pub clients: usize,
    /// Datagrams of clients for which there was no place, or no socket to be had.
    pub refused: Count,
    /// Datagrams that the kernel dropped before the relay read them, at the sockets open at present; `None` if the kernel does
    /// not tell. The link model knows nothing of these: a number above zero means that the relay could not keep up.
    pub kernel_drops: Option<u64>,
}

/// One direction of a relay.
#[derive(Clone, Debug)]
pub struct DirectionStats {
    /// What the link model did: drops by cause, marks, queueing.
    pub link: Counters,
    /// What has come out of the link and was given to the kernel.
    pub sent: Count,
    /// Dropped because the relay was set down, on arrival or when due.
    pub dropped_down: Count,
    /// Dropped because [`RelayConfig::memory_limit`](crate::RelayConfig::memory_limit) was reached, before the link.
    pub dropped_memory: Count,
    /// Dropped when due because the kernel refused it or its client was gone.
    pub dropped_unsendable: Count,
    /// What is held at present, waiting or propagating.
    pub held: Count,
    /// The rate really given while the link was backlogged.
    pub measured: MeasuredRate,
    /// How late datagrams were sent.
    pub scheduling_error: SchedulingError,
}

/// The rate given while datagrams were waiting, by the relay's own clock.
///
/// Counted are datagrams that waited behind another, with the time from the sending of that one to their own. Over a
/// backlogged period this is all bytes but the first datagram's, over the time from first to last, so that it equals the
/// link's rate if the relay is exact. (A delay that changes in between counts as time, too.) Periods that are due to take less
/// than 10 ms do not count: at a scheduling error of 100 us they could not be measured to one percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredRate {
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// The time they took.
    pub time: Duration,
}

impl MeasuredRate {
    /// Bytes over time; `None` when the link was never backlogged for long enough.
    pub fn rate(&self) -> Option<Rate> {
        (!self.time.is_zero()).then(|| self.bytes / self.time)
    }

    pub(crate) fn and(self, more: Self) -> Self {
        Self { bytes: self.bytes + more.bytes, time: self.time + more.time }
    }

    /// What was measured after `earlier`, a previous value of the same direction.
    pub fn since(&self, earlier: Self) -> Self {
        Self { bytes: self.bytes - earlier.bytes, time: self.time - earlier.time }
    }
}

/// The distribution of how late datagrams were sent, to about one percent, from 1 ns to 10 s.
#[derive(Clone)]
pub struct SchedulingError {
    histogram: Histogram<u64>,
}

impl SchedulingError {
    /// The longest lateness told apart, in nanoseconds: 10 s.
    const LONGEST: u64 = 10_000_000_000;

    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_max(Self::LONGEST, 2);
        // The bounds are constants that the library accepts: at least 2, and 0 to 5 digits.
        Self { histogram: histogram.expect("constant bounds are valid") }
    }

    pub(crate) fn record(&mut self, due: Time, sent: Time) {
        self.histogram.saturating_record(sent.since(due).as_nanos());
    }

    /// The lateness that a share of `quantile` (in 0..=1) of the datagrams does not exceed; zero if there were none.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// How many datagrams were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
}

impl fmt::Debug for SchedulingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulingError")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_a_distribution_and_early_is_not_late() {
        let mut error = SchedulingError::new();
        for micros in 1..=100 {
            error.record(Time::ZERO, Time::from_micros(micros));
        }
        let p99 = error.quantile(0.99).as_nanos() as f64;
        assert!((p99 / 99_000.0 - 1.0).abs() < 0.01, "{p99}");
        error.record(Time::from_micros(5), Time::ZERO);
        error.record(Time::ZERO, Time::MAX);
        assert_eq!(error.count(), 102);
        assert_eq!(SchedulingError::new().quantile(0.99), Duration::ZERO);
    }

    #[test]
    fn a_rate_is_measured_between_two_readings() {
        let earlier = MeasuredRate { bytes: Bytes::new(1_000), time: Duration::from_millis(1) };
        let later = MeasuredRate { bytes: Bytes::new(126_000), time: Duration::from_millis(11) };
        // 125,000 B * 8 / 10 ms = 100 Mbit/s
        assert!((later.since(earlier).rate().unwrap().as_mbps() - 100.0).abs() < 1e-9);
        assert_eq!(MeasuredRate::default().rate(), None);
    }
}
