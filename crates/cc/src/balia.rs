//! BALIA, the Balanced Linked Adaptation (draft-walid-mptcp-congestion-control-04; Peng et al., ToN 2016).

use manypath_core::{Params, SpecError, SubflowId};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;

/// The largest decrease in halves of the window (draft s3).
const MAX_DECREASE: f64 = 1.5;

/// How `alpha_r = max x / x_r` is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alpha {
    /// As the draft defines it.
    #[default]
    Exact,
    /// Rounded down, as the Linux kernel divides: the decrease is then a half or three quarters of the window, never between.
    Integer,
}

impl Alpha {
    /// Reads the parameter of the registry row.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("alpha", &[("exact", Self::Exact), ("integer", Self::Integer)])
    }
}

/// BALIA's rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia {
    alpha: Alpha,
}

impl Balia {
    /// The rules with one way to compute `alpha`.
    pub const fn new(alpha: Alpha) -> Self {
        Self { alpha }
    }

    fn alpha(self, own: &Window, windows: &Windows) -> f64 {
        let best = windows.counting().map(|(_, window)| window.rate()).fold(0.0, f64::max);
        let alpha = best / own.rate();
        match self.alpha {
            Alpha::Exact => alpha,
            Alpha::Integer => libm::floor(alpha),
        }
    }
}

impl Law for Balia {
    fn increase(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // Draft s3: x_r / (rtt_r (sum x)^2) * (1 + alpha)/2 * (4 + alpha)/5.
        let (alpha, sum) = (self.alpha(own, windows), windows.total_rate());
        own.rate() / (own.rtt * sum * sum) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }

    fn decrease(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // Draft s3: w_r/2 * min(alpha, 1.5).
        own.cwnd / 2.0 * self.alpha(own, windows).min(MAX_DECREASE)
    }

    fn inspect(&self, id: SubflowId, windows: &Windows, out: &mut dyn Probe) {
        if let Some(own) = windows.get(id).filter(|own| own.counts()) {
            out.value("alpha", self.alpha(own, windows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, decreases, increases, windows};

    #[test]
    fn one_subflow_is_reno() {
        close(increases(&mut Balia::default(), &windows(&[(10.0, 0.1)]))[0], 0.1);
        close(decreases(&mut Balia::default(), &windows(&[(10.0, 0.1)]))[0], 5.0);
    }

    #[test]
    fn two_rates() {
        // x = (200, 100), rtt 0.1, sum 300: alpha = (1, 2).
        // 200/(0.1*90000) * 1 * 1 = 0.0222222; 100/(0.1*90000) * 3/2 * 6/5 = 0.02.
        // The same by (x + max)(4x + max)/(10 w (sum x)^2): 300*600/(10*10*90000) = 0.02.
        let windows = windows(&[(20.0, 0.1), (10.0, 0.1)]);
        let found = increases(&mut Balia::default(), &windows);
        close(found[0], 200.0 / 9000.0);
        close(found[1], 0.02);
        // Decrease: 20/2 * 1 = 10; 10/2 * min(2, 1.5) = 7.5.
        let found = decreases(&mut Balia::default(), &windows);
        close(found[0], 10.0);
        close(found[1], 7.5);
    }

    #[test]
    fn the_kernels_alpha_is_whole() {
        // x = (150, 100): alpha = 1.5, whole part 1.
        let windows = windows(&[(15.0, 0.1), (10.0, 0.1)]);
        close(decreases(&mut Balia::default(), &windows)[1], 7.5);
        close(decreases(&mut Balia::new(Alpha::Integer), &windows)[1], 5.0);
    }
}
