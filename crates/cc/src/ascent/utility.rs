//! What an ascent climbs.

use crate::monitor::Report;

/// The utility `U = T^a - b T L - g T dRTT/dt` with `T` the connection's total rate (MPCC eq. 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// Exponent of the reward, in 0..1 (spec: alpha).
    pub a: f64,
    /// Weight of the loss rate, above 3 (spec: beta).
    pub b: f64,
    /// Weight of the RTT gradient (spec: gamma).
    pub g: f64,
    /// Units of the utility's rate in one Mbit/s: 1 for Mbit/s, 125,000 for bytes per second.
    pub scale: f64,
}

/// A rate and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Mbit/s.
    pub rate: f64,
    /// Share of bytes lost, 0..=1.
    pub loss: f64,
    /// RTT gradient, s/s.
    pub slope: f64,
}

impl Sample {
    pub(super) fn of<R>(report: &Report<R>) -> Self {
        Self { rate: report.rate, loss: report.loss, slope: report.slope }
    }

    /// Both at one rate: utilities are linear in loss and slope, so this sample's is the mean of theirs.
    pub(super) fn mean(self, other: Self) -> Self {
        Self {
            rate: (self.rate + other.rate) / 2.0,
            loss: (self.loss + other.loss) / 2.0,
            slope: (self.slope + other.slope) / 2.0,
        }
    }
}

/// How many standard errors of a loss rate are no chance.
const LOSS_ERRORS: f64 = 3.0;

impl Utility {
    /// MPCC eq. 2. `others` in Mbit/s.
    pub fn of(&self, sample: &Sample, others: f64) -> f64 {
        let total = (sample.rate + others) * self.scale;
        libm::pow(total, self.a) - self.b * total * sample.loss - self.g * total * sample.slope
    }

    /// Whether more was lost than any rate is worth, and than chance explains: `d(T^a - b T L)/dT` is zero at a loss of
    /// `a T^(a-1) / b`, 5% at 100 Mbit/s.
    pub(super) fn is_unbearable<R>(&self, report: &Report<R>, others: f64) -> bool {
        let total = (report.rate + others) * self.scale;
        let bearable = self.a * libm::pow(total, self.a - 1.0) / self.b;
        let excess = report.loss - bearable;
        report.tells_loss()
            && excess > 0.0
            && excess * excess * f64::from(report.packets) > LOSS_ERRORS * LOSS_ERRORS * bearable * (1.0 - bearable)
    }

    /// Change of utility per unit of rate between two samples; zero if the rates are equal.
    pub fn gradient(&self, from: &Sample, to: &Sample, others: f64) -> f64 {
        let distance = (to.rate - from.rate) * self.scale;
        let gradient = (self.of(to, others) - self.of(from, others)) / distance;
        if gradient.is_finite() { gradient } else { 0.0 }
    }
}
