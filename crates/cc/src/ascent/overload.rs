//! Rates that are too high, and what looks like that: a moment without delivery, a path that is away.

use manypath_core::{Rate, Time};

use super::config::{AWAY, Brake, DOUBLED_TOO_FAR, QUEUE_GROWS, Queue};
use super::{Ascent, Momentum, Others, Phase, Role};
use crate::monitor::Report;

impl Ascent {
    /// Whether it may be a moment without delivery that took so much of an interval, not its rate: for as long as it takes to
    /// hear of one. Not in slow start, whose rate nothing has tested.
    pub(super) fn may_have_met_a_gap(&mut self, now: Time, report: &Report<Role>) -> bool {
        let heeds = self.config.brake == Brake::Lasting && !matches!(self.phase, Phase::SlowStart(_));
        heeds && report.is_gap() && report.role.begun < *self.gap_at.get_or_insert(now)
    }

    /// The rate at which packets of an interval arrived, Mbit/s, if its own is known to be too high by that.
    pub(super) fn arrived(&self, report: &Report<Role>) -> Option<f64> {
        let too_high = report.is_overload() || report.slope >= QUEUE_GROWS;
        let is_known = self.config.queue == Queue::Heeded && report.arrival > Rate::ZERO;
        (is_known && too_high).then(|| report.arrival.as_mbps().min(report.rate))
    }

    /// The rate is far too high.
    pub(super) fn brake(&mut self, now: Time, report: &Report<Role>, others: Others) {
        self.momentum = Momentum::default();
        let lower = match &self.phase {
            Phase::SlowStart(doubling) => self.known_to_fit(report, *doubling),
            _ => self.arrived(report).unwrap_or(f64::INFINITY).min(self.base / 2.0),
        };
        let delivered = match self.config.brake {
            Brake::Any | Brake::Lasting => report.rate * (1.0 - report.loss),
            Brake::Held => f64::INFINITY,
        };
        let least = if report.loss < 1.0 { 0.0 } else { self.away() };
        self.base = lower.min(delivered).max(least);
        self.probe(now, others);
    }

    /// What the path carried of an interval that was held back, Mbit/s, if it shows that this rate is too high.
    pub(super) fn carried(&self, report: &Report<Role>) -> Option<f64> {
        let arrived = report.rate * (1.0 - report.loss);
        if self.config.utility.is_unbearable(report, self.others) {
            return Some(arrived);
        }
        let too_fast = match self.phase {
            Phase::SlowStart(_) => DOUBLED_TOO_FAR,
            Phase::Probing { .. } | Phase::Moving { .. } => QUEUE_GROWS,
        };
        // A sender or receiver that stood still for a moment looks the same: one burst alone takes no more than half.
        let carried = (arrived / (1.0 + report.slope)).max(self.base / 2.0);
        (report.is_cut_short(self.mss) && report.slope >= too_fast && carried < self.base).then_some(carried)
    }

    /// The rate that is left of a path that carries nothing: it is away, which tells not how thin it is.
    pub(super) fn away(&self) -> f64 {
        self.base.min(AWAY).max(self.config.min_rate)
    }
}
