//! Slow start: the rate doubles while the utility grows (MPCC s5.2).
//!
//! [`SlowStart::Tolerant`] ends it once round trips grow. A queue that fills looks like that, and a radio link or a host that stood
//! still for a moment. A queue is still there after slow start, whose rate is what arrived; the moment has passed. So if round trips are back
//! where they were when the first probe is in, slow start goes on from there, once: by the same signs HyStart++ comes back from its
//! conservative slow start (RFC 9406 s4.2).

use manypath_core::{Duration, Time};

use super::config::{FLOODS, QUEUE_GROWS, Queue, SlowStart};
use super::{Ascent, MAX_RATE, Others, Phase, Role, Sample};
use crate::monitor::Report;

/// How often slow start repeats an interval before it goes back (MPCC's release).
pub const MAX_REPEATS: u32 = 2;
/// Loss that slow start ignores but in [`SlowStart::Paper`].
const TOLERATED_LOSS: f64 = 0.15;
/// Longer round trips than this share of those before are a queue (the eighth of RFC 9406 s4.2).
const SAME_RTT: f64 = 1.125;

/// What slow start knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Doubling {
    /// The last interval that it grew by.
    pub previous: Option<Sample>,
    /// How often the present one was repeated.
    pub repeats: u32,
    /// The smoothed round trip when it doubled last.
    pub rtt: Option<Duration>,
    /// Whether it had ended and was resumed.
    pub resumed: bool,
}

impl Ascent {
    /// Sends on at the rate before the last doubling while its results are on their way, as soon as round trips are seen to lengthen; and
    /// at what arrives at once where that is far less.
    pub(super) fn ease(&mut self) {
        let Phase::SlowStart(doubling) = &self.phase else { return };
        if self.config.queue == Queue::Ignored {
            return;
        }
        let slope = self.monitor.latest_slope();
        if slope >= FLOODS {
            self.rate = self.rate.min((self.base / (1.0 + slope)).max(self.away()));
        } else if slope >= QUEUE_GROWS
            && !self.monitor.is_open()
            && let Some(old) = doubling.previous
        {
            self.rate = self.rate.min(old.rate);
        }
    }

    /// The results of an interval that tested its rate: double again while the utility grows.
    pub(super) fn on_doubled(&mut self, now: Time, report: &Report<Role>, doubling: Doubling, others: Others) {
        let new = self.tolerated(report);
        let utility = &self.config.utility;
        // The first interval has none to be compared with: it is a growth, as in the release, but an overload is none.
        let first = self.config.slow_start == SlowStart::Release || !report.is_overload();
        let grew = doubling.previous.map_or(first, |old| utility.of(&new, self.others) > utility.of(&old, self.others));
        if grew {
            self.double(now, new, doubling.resumed, others);
        } else if self.config.slow_start.tries_again(report) {
            self.repeat_or_go_back(now, report, doubling, others);
        } else {
            self.go_back(now, report, doubling, others);
        }
    }

    /// What is compared of an interval.
    fn tolerated(&self, report: &Report<Role>) -> Sample {
        let sample = Sample::of(report);
        if self.config.slow_start == SlowStart::Paper {
            return sample;
        }
        let loss = if sample.loss < TOLERATED_LOSS { 0.0 } else { sample.loss };
        Sample { loss, slope: sample.slope.max(0.0), ..sample }
    }

    fn double(&mut self, now: Time, previous: Sample, resumed: bool, others: Others) {
        self.base = (previous.rate * 2.0).min(MAX_RATE);
        self.phase = Phase::SlowStart(Doubling { previous: Some(previous), repeats: 0, rtt: self.srtt, resumed });
        self.others = others.rate;
        self.begin(now, 0, self.base);
    }

    /// The interval tells nothing yet.
    pub(super) fn repeat_or_go_back(&mut self, now: Time, report: &Report<Role>, doubling: Doubling, others: Others) {
        if doubling.repeats < MAX_REPEATS {
            self.phase = Phase::SlowStart(Doubling { repeats: doubling.repeats + 1, ..doubling });
            self.others = others.rate;
            self.begin(now, 0, report.rate);
        } else {
            self.go_back(now, report, doubling, others);
        }
    }

    /// Slow start ends.
    pub(super) fn go_back(&mut self, now: Time, report: &Report<Role>, doubling: Doubling, others: Others) {
        self.fall(now, self.known_to_fit(report, doubling), report, others);
    }

    /// Goes on with probing around a lower rate, from slow start or later.
    pub(super) fn fall(&mut self, now: Time, base: f64, report: &Report<Role>, others: Others) {
        let before = match self.phase {
            Phase::SlowStart(Doubling { rtt, resumed: false, .. }) => rtt,
            _ => None,
        };
        self.base = base;
        self.probe(now, others);
        let only_grew = report.slope >= QUEUE_GROWS && report.loss < TOLERATED_LOSS;
        if self.config.slow_start == SlowStart::Tolerant && only_grew {
            self.doubted = before;
        }
    }

    /// The rate that slow start goes back to: what arrived, or what it was before the last doubling.
    pub(super) fn known_to_fit(&self, report: &Report<Role>, doubling: Doubling) -> f64 {
        let before = || doubling.previous.map_or(report.rate / 2.0, |old| old.rate);
        self.arrived(report).unwrap_or_else(before)
    }

    /// Whether this is the first probe after slow start, and what had ended it is gone.
    pub(super) fn has_passed(&mut self, report: &Report<Role>) -> bool {
        let same = self.doubted.take().map(|before| before.as_secs_f64() * SAME_RTT);
        report.loss < TOLERATED_LOSS && same.is_some_and(|same| report.rtt.is_some_and(|rtt| rtt <= same))
    }

    /// Goes on with slow start from what the first probe after it has tested.
    pub(super) fn resume_doubling(&mut self, now: Time, report: &Report<Role>, others: Others) {
        // The other probes of the round are void.
        self.epoch = self.epoch.wrapping_add(1);
        self.double(now, self.tolerated(report), true, others);
    }
}
