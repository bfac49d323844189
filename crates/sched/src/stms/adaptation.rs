//! STMS-A's gaps (STMS algorithm 2).
//!
//! When a gap is too small the slow subflow's segments arrive late, and each one's arrival releases a burst of data that
//! waited for it: a data acknowledgement of many segments whose old left edge was on the slow subflow. When it is too
//! large the old left edge of such bursts was on the fast one. So each data acknowledgement is a sample: the
//! segments released, positive or negative after the subflow that carried the old left edge, or zero if it released no
//! more than acknowledgements do when nothing is missing. Once every `D = (RTT_s + RTT_f) / 2` the gap moves by what the
//! samples of the interval say together, damped.
//!
//! How much? The paper says "EWMA", which has two readings: the sum of an interval's samples, which overshoots
//! by several times the gap, and their mean. Between evenly paced paths a late segment releases `B_f / B_s + 1` others however late
//! it is, so that the mean moves a gap by four segments an interval whatever the rates: 24 to 28 s to the gap of the paper's
//! setting. The sum times `gain` scales with the rates instead: an interval in which everything is late adds `gain` times what it
//! acknowledged, about `(B_f + B_s) D`, so that a gap of `B_f (OWD_s - OWD_f)` is learnt in no more than `1 / gain` intervals,
//! and what is added before its effect is seen overshoots by about twice `gain` times what an interval acknowledges. Hence 1/16: sixteen
//! intervals, an eighth of that. Where the delays hardly differ an eighth of `(B_f + B_s) D` is many times the gap, which went to and fro
//! between nothing and five times itself, and the receiver held more than without any; so where the slow path's delay is less than three
//! times the fast one's, `gain` is less by `2 (RTT_s - RTT_f) / (RTT_s + RTT_f)`, and the mean is added at least, for paths that
//! differ in one direction only.
//!
//! With several slow subflows, the old left edge on subflow `k` speaks for a larger gap of `k`, for smaller gaps of all slower
//! than `k`, and about no other.
//!
//! Where the paper is silent: acknowledgements whose left edge had been retransmitted are ignored, since loss releases
//! bursts too. And a gap does not *grow* beyond what the faster subflows send in a round trip of the slow one, wait for its
//! pacer included: no segment takes longer to arrive than to be acknowledged, so a larger gap comes of disturbances, and it
//! would idle the slow subflow and with it the feedback that could shrink the gap again. For the same reason a gap that is beyond that already, since
//! a queue has drained, loses `gain` of the excess an interval (samples alone took 20 s from 3,270 segments to 740), and a subflow
//! with nothing under way has a gap of at most what eq. 2 gives with its smallest RTT: nothing else would ever tell.

use manypath_core::{Duration, SubflowId, SubflowState, SubflowView, Time, View};

use super::sent_within_a_round;
use crate::minrtt::fastest;
use crate::scheduler::DataAck;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The gap to begin with, in segments. The paper states none; 0 is how the default scheduler behaves.
    pub gap: f64,
    /// How much an interval counts in the moving average over intervals, in 0..=1. The paper states none; 1, no memory: the
    /// damping is the gain's, and a memory delays the feedback.
    pub weight: f64,
    /// The share of each sample that is added to the gap.
    pub gain: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { gap: 0.0, weight: 1.0, gain: 1.0 / 16.0 }
    }
}

/// One slow subflow's gap.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// In segments; never negative.
    segments: f64,
    /// Moving average of the intervals' sums of samples, in segments an interval.
    trend: f64,
    /// Sum of the samples of this interval.
    sum: f64,
    /// How many there were, zeros included.
    samples: u32,
    /// When the interval began; `None` before the first sample.
    since: Option<Time>,
}

impl Gap {
    const fn new(config: Config) -> Self {
        Self { segments: config.gap, trend: 0.0, sum: 0.0, samples: 0, since: None }
    }

    /// Adds a sample; at the end of the interval adjusts the gap, which grows to `bound` at most and returns to it.
    fn add(&mut self, now: Time, sample: f64, interval: Duration, lag: f64, config: Config, bound: f64) {
        let since = *self.since.get_or_insert(now);
        self.sum += sample;
        self.samples += 1;
        if now.since(since) < interval {
            return;
        }
        self.trend += config.weight * (self.sum - self.trend);
        let excess = (self.segments - bound).max(0.0);
        let gain = config.gain * (2.0 * lag).min(1.0);
        let share = gain.max(f64::from(self.samples).recip().min(config.gain));
        let moved = (self.segments + share * self.trend).min(bound.max(self.segments));
        self.segments = (moved - config.gain * excess).max(0.0);
        (self.sum, self.samples) = (0.0, 0);
        self.since = Some(now);
    }
}

/// The gaps of all slow subflows.
#[derive(Clone, Debug)]
pub(super) struct Adaptation {
    config: Config,
    /// By subflow. That of [`Self::fastest`] is nobody's.
    gaps: Vec<Gap>,
    /// The subflow behind which the gaps are. While it is away another stands in for it, whose gap waits for its return.
    fastest: Option<SubflowId>,
}

impl Adaptation {
    pub(super) const fn new(config: Config) -> Self {
        Self { config, gaps: Vec::new(), fastest: None }
    }

    /// The gap of a slow subflow in segments.
    pub(super) fn gap(&self, slow: SubflowId) -> f64 {
        self.gaps.get(slow.index()).map_or(self.config.gap, |gap| gap.segments)
    }

    /// A subflow's gap is at most this.
    pub(super) fn cut(&mut self, slow: SubflowId, most: f64) {
        if let Some(gap) = self.gaps.get_mut(slow.index()) {
            gap.segments = gap.segments.min(most);
        }
    }

    /// Notes which subflow is the fastest. When two subflows change roles the gap between them stays.
    pub(super) fn on_fastest(&mut self, view: &View, id: SubflowId) {
        if self.gaps.len() < view.subflows.len() {
            self.gaps.resize(view.subflows.len(), Gap::new(self.config));
        }
        let before = *self.fastest.get_or_insert(id);
        if before != id && view.usable().any(|subflow| subflow.id == before) {
            self.gaps.swap(before.index(), id.index());
            self.fastest = Some(id);
        }
    }

    /// A subflow was removed: its gap is forgotten.
    pub(super) fn remove_subflow(&mut self, id: SubflowId) {
        if let Some(gap) = self.gaps.get_mut(id.index()) {
            *gap = Gap::new(self.config);
        }
        self.fastest.take_if(|fastest| *fastest == id);
    }

    /// Algorithm 2.
    pub(super) fn on_data_ack(&mut self, now: Time, ack: &DataAck, view: &View) {
        // The cumulative acknowledgement only, and not where loss held the edge up.
        let Some(edge) = ack.left_edge_subflow.filter(|_| !ack.left_edge_retransmitted) else { return };
        let Some(fast) = fastest(view.usable()) else { return };
        self.on_fastest(view, fast.id);
        let rtt = |subflow: &SubflowView| (subflow.srtt.unwrap_or(Duration::ZERO), subflow.id);
        // Algorithm 2 line 3, whose threshold of 2 is what delayed acknowledgements cover.
        let released = if ack.segments > ack.segments_per_ack { f64::from(ack.segments) } else { 0.0 };
        let edge_rtt = view.get(edge).map(rtt);
        for (slow, gap) in view.subflows.iter().zip(&mut self.gaps) {
            if slow.state != SubflowState::Active || slow.id == fast.id {
                continue;
            }
            // Lines 4 to 8.
            let sample = match edge_rtt {
                _ if slow.id == edge => released,
                Some(edge) if edge < rtt(slow) => -released,
                _ => 0.0,
            };
            let interval = (rtt(slow).0 + rtt(fast).0) / 2;
            let lag = (rtt(slow).0 - rtt(fast).0).as_secs_f64() / (interval * 2).as_secs_f64().max(1e-9);
            gap.add(now, sample, interval, lag, self.config, sent_within_a_round(view, slow));
        }
    }
}
