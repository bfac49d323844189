//! Shared-bottleneck detection from one-way delays (RFC 8382): which subflows queue behind each other?
//!
//! The receiver reports sums over intervals of `T` ([`crate::PathReport`]); here they are smoothed over the last intervals,
//! and subflows are grouped by how their delays vary. [`Detector`] chooses between this and the marks of [`crate::sbd_ecn`].

use std::collections::VecDeque;

use manypath_core::{Params, SpecError, SubflowId};

use crate::event::PathReport;
use crate::sbd_ecn::Marks;

/// Intervals over which oscillation and loss are counted (RFC 8382 s2.2 N).
const N: usize = 50;
/// Intervals over which means are taken (RFC 8382 s2.2 M).
const M: usize = 30;
/// Newest intervals that count in full (RFC 8382 s2.2 F).
const F: usize = 20;
/// Skewness below which there is a bottleneck (RFC 8382 s2.2 `c_s`).
const C_S: f64 = 0.1;
/// The same with hysteresis (RFC 8382 s2.2 `c_h`).
const C_H: f64 = 0.3;
/// Differences that separate groups (RFC 8382 s2.2): frequency, variability (relative), skewness, loss (relative).
const P_F: f64 = 0.1;
const P_MAD: f64 = 0.1;
const P_S: f64 = 0.15;
const P_D: f64 = 0.1;
/// Share of the variability that makes a crossing of the mean significant (RFC 8382 s2.2 `p_v`).
const P_V: f64 = 0.7;
/// Loss above which there is a bottleneck, and above which loss separates groups (RFC 8382 s2.2 `p_l`).
const P_L: f64 = 0.1;
/// Intervals before a decision is given (RFC 8382 s3.3 advises against deciding before 2 M).
const SETTLE: u64 = 2 * M as u64;

/// One interval of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    mean: f64,
    skew: f64,
    var: f64,
    samples: f64,
    lost: f64,
    /// Whether the mean crossed the long-term mean significantly.
    crossed: bool,
    /// Whether the subflow was behind a bottleneck: variability and crossings count only then.
    congested: bool,
}

/// A subflow's summary statistics.
#[derive(Clone, Debug, Default, PartialEq)]
struct Statistics {
    /// Oldest first, at most [`N`].
    intervals: VecDeque<Interval>,
    /// Reports taken so far.
    reports: u64,
    /// Side of the mean of the last significant crossing: +1, -1, or 0 before the first.
    side: f64,
    congested: bool,
    skew: f64,
    var: f64,
    /// Crossings of the mean in the intervals held (spec: `freq_est` times [`N`]).
    crossings: f64,
    loss: f64,
}

impl Statistics {
    /// The last [`M`] intervals with their weights: the newest [`F`] count in full, older ones ever less (RFC 8382 s3.4).
    fn weighted(&self) -> impl Iterator<Item = (f64, &Interval)> {
        let weight = |age: usize| if age < F { (M - F + 1) as f64 } else { (M - age) as f64 };
        self.intervals.iter().rev().take(M).enumerate().map(move |(age, interval)| (weight(age), interval))
    }

    fn on_report(&mut self, report: &PathReport) {
        self.reports += 1;
        let last = self.intervals.iter().rev().take(M);
        // RFC 8382 s3.2.3: the mean of the past, without this interval.
        let (sum, count) = last.fold((0.0, 0.0), |(sum, count), interval| (sum + interval.mean, count + 1.0));
        let mut interval = Interval {
            mean: report.mean_delay,
            skew: f64::from(report.skew_base),
            var: report.var_base,
            samples: f64::from(report.samples),
            lost: f64::from(report.lost),
            crossed: false,
            congested: self.congested,
        };
        if count > 0.0 && self.congested {
            let away = report.mean_delay - sum / count;
            // RFC 8382 s3.2.3: to the other side, by more than p_v of the variability.
            if away.abs() > P_V * self.var && away * self.side <= 0.0 {
                interval.crossed = self.side.abs() > 0.5;
                self.side = away.signum();
            }
        }
        if self.intervals.len() == N {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
        self.summarise();
    }

    fn summarise(&mut self) {
        let ratio = |top: f64, bottom: f64| if bottom > 0.0 { top / bottom } else { 0.0 };
        let (mut skew, mut samples, mut var, mut var_samples) = (0.0, 0.0, 0.0, 0.0);
        for (weight, interval) in self.weighted() {
            skew += weight * interval.skew;
            samples += weight * interval.samples;
            if interval.congested {
                var += weight * interval.var;
                var_samples += weight * interval.samples;
            }
        }
        let sum = |of: fn(&Interval) -> f64| self.intervals.iter().map(of).sum::<f64>();
        let (lost, arrived) = (sum(|interval| interval.lost), sum(|interval| interval.samples));
        let crossings = sum(|interval| f64::from(interval.crossed));
        // RFC 8382 s3.2.1 to s3.2.4.
        self.skew = ratio(skew, samples);
        self.var = ratio(var, var_samples);
        self.crossings = crossings;
        self.loss = ratio(lost, lost + arrived);
        // RFC 8382 s3.3.1: delays skewed to the long side have a queue that is seldom empty behind them.
        self.congested = samples > 0.0 && (self.skew < C_S || (self.skew < C_H && self.congested)) || self.loss > P_L;
    }
}

/// RFC 8382 for the subflows of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// By subflow id.
    subflows: Vec<Statistics>,
    /// The group of each subflow; `None` without a bottleneck.
    groups: Vec<Option<usize>>,
}

impl Delays {
    fn on_report(&mut self, id: SubflowId, report: &PathReport) {
        if self.subflows.len() <= id.index() {
            self.subflows.resize(id.index() + 1, Statistics::default());
        }
        self.subflows[id.index()].on_report(report);
        self.group();
    }

    fn forget(&mut self, id: SubflowId) {
        if let Some(held) = self.subflows.get_mut(id.index()) {
            *held = Statistics::default();
            self.group();
        }
    }

    fn share(&self, a: SubflowId, b: SubflowId) -> Option<bool> {
        let settled = |id: SubflowId| self.subflows.get(id.index()).is_some_and(|held| held.reports >= SETTLE);
        (settled(a) && settled(b)).then(|| {
            let group = |id: SubflowId| self.groups.get(id.index()).copied().flatten();
            group(a).is_some() && group(a) == group(b)
        })
    }

    /// RFC 8382 s3.3.2: split the subflows behind bottlenecks by one statistic after the other.
    fn group(&mut self) {
        let congested = (0..self.subflows.len()).filter(|&index| self.subflows[index].congested).collect::<Vec<_>>();
        let of = |index: usize| &self.subflows[index];
        let mut groups = split(vec![congested], |index| of(index).crossings, |_| P_F * N as f64);
        groups = split(groups, |index| of(index).var, |highest| P_MAD * highest);
        groups = split(groups, |index| of(index).skew, |_| P_S);
        // Loss tells subflows apart only where it is high.
        let (lossy, quiet): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|&index| of(index).loss > P_L));
        groups = split(lossy, |index| of(index).loss, |highest| P_D * highest);
        groups.extend(quiet);
        self.groups.clear();
        self.groups.resize(self.subflows.len(), None);
        for (number, group) in groups.iter().enumerate() {
            for &index in group {
                self.groups[index] = Some(number);
            }
        }
    }
}

/// Splits groups where the sorted statistic jumps by the threshold or more, which may depend on the higher of the two
/// (RFC 8382 s3.3.1: together if the difference is less than it). Equal ones stay together whatever the threshold.
fn split(groups: Vec<Vec<usize>>, statistic: impl Fn(usize) -> f64, threshold: impl Fn(f64) -> f64) -> Vec<Vec<usize>> {
    let mut parts = Vec::new();
    for mut group in groups {
        group.sort_by(|&a, &b| statistic(b).total_cmp(&statistic(a)));
        let Some(&first) = group.first() else { continue };
        let mut part = vec![first];
        for pair in group.windows(2) {
            let [high, low] = [statistic(pair[0]), statistic(pair[1])];
            if high > low && high - low >= threshold(high) {
                parts.push(core::mem::take(&mut part));
            }
            part.push(pair[1]);
        }
        parts.push(part);
    }
    parts
}

/// A way to find out which subflows share a bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum Detector {
    /// One-way delays (RFC 8382).
    Delays(Delays),
    /// Congestion marks.
    Marks(Marks),
}

impl Detector {
    /// Reads the parameter `detector`.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        let marks = params.choice("detector", &[("rfc8382", false), ("ecn", true)])?;
        Ok(if marks { Self::Marks(Marks::default()) } else { Self::Delays(Delays::default()) })
    }

    /// Takes a report of a subflow.
    pub fn on_report(&mut self, id: SubflowId, report: &PathReport) {
        match self {
            Self::Delays(delays) => delays.on_report(id, report),
            Self::Marks(marks) => marks.on_report(id, report),
        }
    }

    /// A subflow is gone, or its id has a new owner.
    pub fn forget(&mut self, id: SubflowId) {
        match self {
            Self::Delays(delays) => delays.forget(id),
            Self::Marks(marks) => marks.forget(id),
        }
    }

    /// Whether two subflows share a bottleneck; `None` while that is not known.
    pub fn share(&self, a: SubflowId, b: SubflowId) -> Option<bool> {
        match self {
            _ if a == b => Some(true),
            Self::Delays(delays) => delays.share(a, b),
            Self::Marks(marks) => marks.share(a, b),
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::Duration;

    use super::*;

    /// A report of 100 samples.
    fn report(mean_delay: f64, skew_base: i32, var: f64, lost: u32) -> PathReport {
        PathReport {
            samples: 100,
            interval: Duration::from_millis(350),
            mean_delay,
            skew_base,
            var_base: var * 100.0,
            lost,
            marked: 0,
        }
    }

    fn ids() -> (SubflowId, SubflowId, SubflowId) {
        (SubflowId(0), SubflowId(1), SubflowId(2))
    }

    #[test]
    fn means_over_samples() {
        let mut held = Statistics::default();
        held.on_report(&report(0.1, 50, 0.01, 0));
        // 50 of 100; not congested, so no variability.
        assert!((held.skew - 0.5).abs() < 1e-12 && !held.congested);
        held.on_report(&report(0.1, -150, 0.01, 0));
        // (50 - 150)/200 = -0.5: behind a bottleneck from now on.
        assert!((held.skew + 0.5).abs() < 1e-12 && held.congested && held.var.abs() < 1e-12);
        held.on_report(&report(0.1, -50, 0.02, 0));
        assert!((held.var - 0.02).abs() < 1e-12);
        // 20 lost of 420.
        held.on_report(&report(0.1, -50, 0.02, 20));
        assert!((held.loss - 20.0 / 420.0).abs() < 1e-12);
    }

    #[test]
    fn old_intervals_weigh_less() {
        let mut held = Statistics::default();
        for age in 0..N {
            held.on_report(&report(0.1, i32::try_from(age).unwrap(), 0.0, 0));
        }
        let weights: Vec<f64> = held.weighted().map(|(weight, _)| weight).collect();
        assert_eq!(weights.len(), M);
        assert!(weights[..F].iter().all(|weight| (weight - 11.0).abs() < 1e-12));
        assert!((weights[20] - 10.0).abs() < 1e-12 && (weights[29] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn crossings_of_the_mean_are_counted() {
        let mut held = Statistics::default();
        for interval in 0..N {
            // Five intervals up, five down, about 0.1; variability 0.01 makes steps of 0.03 significant.
            let mean = if interval / 5 % 2 == 0 { 0.13 } else { 0.07 };
            held.on_report(&report(mean, -50, 0.01, 0));
        }
        // Ten runs; the first sets the side, the second is the first crossing: 9 of 50, or 8 as the mean settles.
        assert!((held.crossings - 9.0).abs() < 1.05, "{}", held.crossings);
    }

    #[test]
    fn the_first_side_of_the_mean_is_no_crossing_and_without_a_bottleneck_there_is_none() {
        for (skew, crossings) in [(-50, [0.0, 1.0]), (60, [0.0, 0.0])] {
            let mut held = Statistics::default();
            (0..3).for_each(|_| held.on_report(&report(0.1, skew, 0.01, 0)));
            let found = [0.13, 0.07].map(|mean| {
                held.on_report(&report(mean, skew, 0.01, 0));
                held.crossings
            });
            assert_eq!(found.map(f64::to_bits), crossings.map(f64::to_bits), "{skew}");
        }
    }

    #[test]
    fn a_bottleneck_stays_one_until_the_skewness_is_clearly_above_and_loss_is_one_too() {
        let mut held = Statistics::default();
        // Means of 20/100, -30/200, 60/300 and 150/400.
        for (skew, congested) in [(20, false), (-50, true), (90, true), (90, false)] {
            held.on_report(&report(0.1, skew, 0.01, 0));
            assert_eq!(held.congested, congested, "{}", held.skew);
        }
        // 60 lost of 560.
        held.on_report(&report(0.1, 90, 0.01, 60));
        assert!(held.congested);
        (0..100).for_each(|_| held.on_report(&report(0.1, 90, 0.01, 0)));
        assert_eq!(held.intervals.len(), N);
    }

    #[test]
    fn skewness_separates_and_who_leaves_holds_nobody_together() {
        let mut detector = Detector::Delays(Delays::default());
        let (a, b, c) = ids();
        let d = SubflowId(3);
        for _ in 0..60 {
            // Each variability within a tenth of the next, but not a and c; d has a's.
            for (id, skew, var) in [(a, -30, 0.0100), (b, -30, 0.0109), (c, -30, 0.0119), (d, -60, 0.0100)] {
                detector.on_report(id, &report(0.1, skew, var, 0));
            }
        }
        assert_eq!((detector.share(a, c), detector.share(a, d)), (Some(true), Some(false)));
        detector.forget(b);
        assert_eq!(detector.share(a, c), Some(false));
    }

    #[test]
    fn subflows_with_equal_statistics_share() {
        let mut detector = Detector::Delays(Delays::default());
        let (a, b, c) = ids();
        for interval in 0..59 {
            for (id, var) in [(a, 0.010), (b, 0.0105), (c, 0.03)] {
                let mean = if interval / 5 % 2 == 0 { 0.13 } else { 0.07 };
                detector.on_report(id, &report(mean, -30, var, 0));
            }
        }
        assert_eq!(detector.share(a, b), None);
        for id in [a, b, c] {
            detector.on_report(id, &report(0.1, -30, if id == c { 0.03 } else { 0.01 }, 0));
        }
        assert_eq!(detector.share(a, b), Some(true));
        assert_eq!(detector.share(a, c), Some(false));
        detector.forget(b);
        assert_eq!(detector.share(a, b), None);
    }

    #[test]
    fn subflows_without_a_bottleneck_share_nothing() {
        let mut detector = Detector::Delays(Delays::default());
        let (a, b, _) = ids();
        for _ in 0..60 {
            detector.on_report(a, &report(0.1, 60, 0.01, 0));
            detector.on_report(b, &report(0.1, 60, 0.01, 0));
        }
        assert_eq!(detector.share(a, b), Some(false));
    }

    #[test]
    fn splitting_follows_the_jumps() {
        let values = [0.9, 0.5, 0.85, 0.1];
        let mut parts = split(vec![vec![0, 1, 2, 3]], |index| values[index], |_| 0.1);
        parts.iter_mut().for_each(|part| part.sort_unstable());
        assert_eq!(parts, [vec![0, 2], vec![1], vec![3]]);
        // Each by the higher of its own pair: 0.0029 of 0.0272 is more than a tenth, 0.0028 of 0.03 less.
        let variabilities = [0.0300, 0.0272, 0.0243];
        let parts = split(vec![vec![0, 1, 2]], |index| variabilities[index], |highest| 0.1 * highest);
        assert_eq!(parts, [vec![0, 1], vec![2]]);
        // A difference as large as the threshold is one; without any there is none.
        let counts = [15.0, 10.0, 10.0, 0.0, 0.0];
        let parts =
            split(vec![vec![0, 1, 2, 3, 4]], |index| counts[index], |highest| if highest > 0.0 { 5.0 } else { 0.0 });
        assert_eq!(parts, [vec![0], vec![1, 2], vec![3, 4]]);
    }
}
