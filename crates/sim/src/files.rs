//! Files: when they began and when the receiver had all of them. What is kept does not grow with their number.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use manypath_core::{Bytes, FlowId, Time};

use crate::report::{FileReport, FileSummary};

/// How many files are listed one by one.
const LISTED: usize = 10_000;

/// The files of one connection.
#[derive(Debug, Default)]
pub(crate) struct FileLog {
    under_way: BTreeMap<FlowId, Started>,
    /// The first that arrived.
    listed: Vec<FileReport>,
    /// Files that no flow could be opened for.
    pub(crate) refused: u64,
    /// Files that began after the warm-up and arrived: microseconds to completion.
    times: Option<Histogram<u64>>,
    seconds: f64,
    longest: f64,
    bytes: Bytes,
}

/// What a file was when it began.
#[derive(Clone, Copy, Debug)]
struct Started {
    at: Time,
    size: Bytes,
}

impl FileLog {
    pub(crate) fn on_start(&mut self, now: Time, flow: FlowId, size: Bytes) {
        self.under_way.insert(flow, Started { at: now, size });
    }

    /// A file is given up before all of it was written.
    pub(crate) fn on_cut(&mut self, flow: FlowId) {
        self.under_way.remove(&flow);
    }

    /// The receiver has all of a file, or of a flow that is none. `warmed_up`: when summaries begin.
    pub(crate) fn on_finish(&mut self, now: Time, flow: FlowId, warmed_up: Time) {
        let Some(started) = self.under_way.remove(&flow) else { return };
        let span = now.since(started.at);
        if self.listed.len() < LISTED {
            self.listed.push(FileReport {
                start_s: started.at.as_secs_f64(),
                completion_s: span.as_secs_f64(),
                bytes: started.size.get(),
            });
        }
        if started.at < warmed_up {
            return;
        }
        if self.times.is_none() {
            // Two significant digits, which are allowed; it grows as it must, to some kilobytes.
            self.times = Histogram::new(2).ok();
        }
        if let Some(times) = &mut self.times {
            // It grows to take any time: this cannot fail.
            let _ = times.record((span.as_nanos() / 1000).max(1));
        }
        self.seconds += span.as_secs_f64();
        self.longest = self.longest.max(span.as_secs_f64());
        self.bytes += started.size;
    }

    /// The files listed one by one.
    pub(crate) fn listed(&self) -> Vec<FileReport> {
        self.listed.clone()
    }

    /// The summary; `None` if no file that began after the warm-up has arrived.
    pub(crate) fn summary(&self) -> Option<FileSummary> {
        let times = self.times.as_ref()?;
        // The end of the histogram's step may lie beyond all that is in it.
        let quantile = |share| (times.value_at_quantile(share) as f64 * 1e-6).min(self.longest);
        Some(FileSummary {
            count: times.len(),
            bytes: self.bytes.get(),
            completion_mean_s: self.seconds / times.len() as f64,
            completion_p50_s: quantile(0.5),
            completion_p95_s: quantile(0.95),
            completion_p99_s: quantile(0.99),
            completion_max_s: self.longest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_the_files_that_began_after_the_warm_up() {
        let mut log = FileLog::default();
        let warmed_up = Time::from_millis(1_000);
        assert!(log.summary().is_none());
        let mut one = |flow, start, millis, bytes| {
            let start = Time::from_millis(start);
            log.on_start(start, FlowId(flow), Bytes::new(bytes));
            log.on_finish(start + manypath_core::Duration::from_millis(millis), FlowId(flow), warmed_up);
        };
        // One that began too early, however late it arrived, and a hundred from the very end of the warm-up on, the longest first.
        one(0, 999, 5_000, 70_000);
        (0..100).for_each(|place| one(1 + place, 1_000 + u64::from(place), u64::from(100 - place), 1_000));
        log.on_finish(Time::from_millis(9_000), FlowId(500), warmed_up);
        let found = log.summary().unwrap();
        assert_eq!((found.count, found.bytes, log.listed().len()), (100, 100_000, 101));
        // Quantiles are right to two digits.
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(found.completion_mean_s, 0.0505) && near(found.completion_p50_s, 0.050), "{found:?}");
        assert!(near(found.completion_p95_s, 0.095) && near(found.completion_p99_s, 0.099), "{found:?}");
        assert!((found.completion_max_s - 0.1).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn no_quantile_is_longer_than_the_longest_time() {
        let mut log = FileLog::default();
        log.on_start(Time::ZERO, FlowId(0), Bytes::new(1));
        log.on_finish(Time::from_micros(1_000_001), FlowId(0), Time::ZERO);
        let found = log.summary().unwrap();
        assert!(found.completion_p99_s <= found.completion_max_s, "{found:?}");
    }
}
