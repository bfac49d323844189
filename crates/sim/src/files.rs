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
