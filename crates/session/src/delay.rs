//! One-way-delay statistics of a path, measured at the receiver for shared-bottleneck detection (RFC 8382 s3).

use std::collections::VecDeque;

use manypath_core::{Duration, Time};

use crate::record::{DelayReport, SendTime};

/// RFC 8382 s3.1: the base interval T.
const INTERVAL: Duration = Duration::from_millis(350);
/// RFC 8382 s3.1: how many intervals the mean delay covers (M).
const MEAN_INTERVALS: usize = 30;

/// Collects the one-way delays of one path, interval by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayMeter {
    /// Start of the interval; `None` before the first record.
    started: Option<Time>,
    /// The first record's raw delay: later ones count from it, so that the clocks' offset drops out.
    origin: u32,
    samples: u32,
    sum_us: i64,
    /// The smallest of this interval.
    least_us: i32,
    skew_base: i32,
    var_base_us: u64,
    marked: u32,
    /// Means of the last M intervals.
    means: VecDeque<i64>,
    /// The latest of them, kept here because every record needs it.
    last_mean: Option<i64>,
    /// Their mean.
    long_mean: i64,
}

impl DelayMeter {
    /// Takes a record's send time. Returns a report when an interval is over.
    pub(crate) fn on_record(&mut self, now: Time, sent: SendTime, marked: bool) -> Option<DelayReport> {
        let raw = micros(now).wrapping_sub(sent.0);
        let Some(started) = self.started else {
            self.started = Some(now);
            self.origin = raw;
            self.least_us = i32::MAX;
            self.add(0, marked);
            return None;
        };
        let report = (now.since(started) >= INTERVAL).then(|| self.finish(now, started));
        self.add(raw.wrapping_sub(self.origin).cast_signed(), marked);
        report
    }

    fn add(&mut self, delay_us: i32, marked: bool) {
        self.least_us = self.least_us.min(delay_us);
        let delay_us = i64::from(delay_us);
        self.samples = self.samples.saturating_add(1);
        self.sum_us = self.sum_us.saturating_add(delay_us);
        self.marked += u32::from(marked);
        if let Some(last) = self.last_mean {
            // RFC 8382 s3.2.2: variation around the previous interval's mean.
            self.var_base_us = self.var_base_us.saturating_add(delay_us.abs_diff(last));
            // RFC 8382 s3.2.1: samples below the mean of the last M intervals count up, those above down.
            self.skew_base = self.skew_base.saturating_add(match delay_us.cmp(&self.long_mean) {
                core::cmp::Ordering::Less => 1,
                core::cmp::Ordering::Equal => 0,
                core::cmp::Ordering::Greater => -1,
            });
        }
    }

    fn finish(&mut self, now: Time, started: Time) -> DelayReport {
        let mean = self.sum_us / i64::from(self.samples.max(1));
        let report = DelayReport {
            samples: self.samples,
            interval_us: u32::try_from(now.since(started).as_micros()).unwrap_or(u32::MAX),
            mean_us: i32::try_from(mean).unwrap_or(if mean < 0 { i32::MIN } else { i32::MAX }),
            skew_base: self.skew_base,
            var_base_us: u32::try_from(self.var_base_us).unwrap_or(u32::MAX),
            marked: self.marked,
            least_us: Some(self.origin.wrapping_add_signed(self.least_us)),
        };
        if self.means.len() == MEAN_INTERVALS {
            self.means.pop_front();
        }
        self.means.push_back(mean);
        self.last_mean = Some(mean);
        self.long_mean = self.means.iter().sum::<i64>() / i64::try_from(self.means.len()).unwrap_or(1);
        (self.samples, self.sum_us, self.least_us) = (0, 0, i32::MAX);
        (self.skew_base, self.var_base_us, self.marked) = (0, 0, 0);
        self.started = Some(now);
        report
    }
}

/// The engine's clock as records carry it.
#[allow(clippy::cast_possible_truncation)] // modulo 2^32 is what the field holds
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records every 50 ms whose one-way delay is `delay_ms(n)`, over a clock offset; the reports of the second interval on.
    fn reports(delay_ms: impl Fn(u64) -> u64) -> Vec<DelayReport> {
        let mut meter = DelayMeter::default();
        (0..24)
            .filter_map(|n| {
                let sent = micros(Time::from_millis(n * 50)).wrapping_sub(1_000_000);
                meter.on_record(Time::from_millis(n * 50 + delay_ms(n)), SendTime(sent), n % 2 == 0)
            })
            .collect()
    }

    #[test]
    fn a_constant_delay_has_neither_skew_nor_variation() {
        for report in reports(|_| 20) {
            assert_eq!((report.mean_us, report.skew_base, report.var_base_us), (0, 0, 0));
            assert_eq!(report.samples, 7);
            assert_eq!(report.interval_us, 350_000);
        }
    }

    #[test]
    fn the_smallest_delay_is_that_of_the_interval_by_the_two_clocks() {
        // The sender's clock is a second behind. Seven or eight records an interval, the tenth with the smallest delay.
        let reports = reports(|n| 20 + n.abs_diff(10));
        let least = reports.iter().map(|report| report.least_us).collect::<Vec<_>>();
        assert_eq!(least, [Some(1_023_000), Some(1_020_000), Some(1_025_000)]);
    }

    #[test]
    fn a_rising_delay_skews_down() {
        // Each sample lies above the mean of the intervals before it: -1 each.
        let reports = reports(|n| 20 + n);
        assert_eq!(reports[1].skew_base, -7);
        assert!(reports[1].var_base_us > 0);
        assert!(reports[1].mean_us > reports[0].mean_us);
    }
}
