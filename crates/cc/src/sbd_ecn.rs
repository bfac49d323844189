//! Shared-bottleneck detection from congestion marks.
//!
//! TCCC (s4.4) prefers SB-CC (Wei et al., ToN 2020), which compares ECN marks; that paper was not at hand, so this
//! definition is ours: two subflows share a bottleneck when the shares of their packets that were marked, interval by
//! interval, correlate over the last 30 intervals. Marks of one queue come and go for all who use it; independent
//! queues mark at unrelated times.

use std::collections::VecDeque;

use manypath_core::SubflowId;

use crate::event::PathReport;

/// Intervals compared: as many as RFC 8382's means span.
const WINDOW: usize = 30;
/// Fewest intervals with marks on each of the two: fewer tell nothing.
const MIN_MARKED: usize = 5;
/// Correlation from which two subflows are taken to share.
const MIN_CORRELATION: f64 = 0.5;

/// Marks of the subflows of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// By subflow id: share of packets marked in each interval, newest last.
    subflows: Vec<VecDeque<f64>>,
}

impl Marks {
    pub(crate) fn on_report(&mut self, id: SubflowId, report: &PathReport) {
        if self.subflows.len() <= id.index() {
            self.subflows.resize(id.index() + 1, VecDeque::new());
        }
        let held = &mut self.subflows[id.index()];
        if held.len() == WINDOW {
            held.pop_front();
        }
        held.push_back(f64::from(report.marked) / f64::from(report.samples.max(1)));
    }

    pub(crate) fn forget(&mut self, id: SubflowId) {
        if let Some(held) = self.subflows.get_mut(id.index()) {
            held.clear();
        }
    }

    /// `None` until both have a window of reports.
    pub(crate) fn share(&self, a: SubflowId, b: SubflowId) -> Option<bool> {
        let full = |id: SubflowId| self.subflows.get(id.index()).filter(|held| held.len() == WINDOW);
        let (a, b) = (full(a)?, full(b)?);
        let marked = |held: &VecDeque<f64>| held.iter().filter(|share| **share > 0.0).count();
        Some(marked(a) >= MIN_MARKED && marked(b) >= MIN_MARKED && correlation(a, b) >= MIN_CORRELATION)
    }
}

/// Pearson's correlation of two series of equal length; zero if one is constant.
fn correlation(a: &VecDeque<f64>, b: &VecDeque<f64>) -> f64 {
    let n = a.len() as f64;
    let mean = |series: &VecDeque<f64>| series.iter().sum::<f64>() / n;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x - mean_a, y - mean_b);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    let scale = libm::sqrt(aa * bb);
    if scale > 0.0 { ab / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use manypath_core::Duration;

    use super::*;

    fn report(marked: u32) -> PathReport {
        PathReport {
            samples: 100,
            interval: Duration::from_millis(350),
            mean_delay: 0.0,
            skew_base: 0,
            var_base: 0.0,
            lost: 0,
            marked,
        }
    }

    #[test]
    fn marks_of_one_queue_come_together() {
        let mut marks = Marks::default();
        let (a, b, c) = (SubflowId(0), SubflowId(1), SubflowId(2));
        for interval in 0..WINDOW {
            assert_eq!(marks.share(a, b), None);
            let burst = if interval % 5 < 2 { 10 } else { 0 };
            marks.on_report(a, &report(burst));
            marks.on_report(b, &report(burst / 2));
            marks.on_report(c, &report(if interval % 3 == 0 { 10 } else { 0 }));
        }
        assert_eq!(marks.share(a, b), Some(true));
        assert_eq!(marks.share(a, c), Some(false));
        marks.forget(b);
        assert_eq!(marks.share(a, b), None);
    }

    #[test]
    fn few_marks_and_marks_of_more_packets_tell_nothing() {
        let mut marks = Marks::default();
        let (a, b, c, d) = (SubflowId(0), SubflowId(1), SubflowId(2), SubflowId(3));
        for interval in 0..WINDOW {
            for id in [a, b] {
                marks.on_report(id, &report(if interval < MIN_MARKED - 1 { 10 } else { 0 }));
            }
            // A tenth of the packets always, of one; of the other, of as many packets always, one or two tenths.
            let twice = if interval % 2 == 0 { 1 } else { 2 };
            marks.on_report(c, &PathReport { samples: 100 * twice, ..report(10 * twice) });
            marks.on_report(d, &report(10 * twice));
        }
        assert_eq!((marks.share(a, b), marks.share(c, d)), (Some(false), Some(false)));
    }

    #[test]
    fn correlation_of_short_series() {
        let series = |values: [f64; 3]| VecDeque::from(values.to_vec());
        // Deviations (-1,0,1) and (-1,1,0): 1/2.
        assert!((correlation(&series([1.0, 2.0, 3.0]), &series([0.0, 2.0, 1.0])) - 0.5).abs() < 1e-12);
        assert!(correlation(&series([1.0, 1.0, 1.0]), &series([0.0, 2.0, 1.0])).abs() < 1e-12);
    }
}
