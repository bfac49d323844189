//! Uni-MPTCP(omega, n), weighted coupled congestion control (Wang, Che, Wang and Jiang, s3.3).
//!
//! A subflow of small weight leaves its path to others where it can. Weights come from the user, at the start or at run time
//! ([`Event::Weight`], the paper's user-space interface), for instance from [`crate::omega`]. They belong to the subflow's number,
//! also when another subflow takes it.
//!
//! The paper prints increase and decrease per round trip, both times the weight. Per acknowledgement the increase is that
//! divided by the window. The decrease is not weighted here: weighting both cancels, every equilibrium would be independent of
//! the weights, against the paper's own Table I, theorem 1 and measurements. The printed rule is a parameter.

use manypath_core::{Params, SpecError, SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;
use crate::event::Event;

/// Weights are at least this, so that sums of weighted rates are never zero.
const MIN_WEIGHT: f64 = 1e-6;

/// What congestion takes from a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decrease {
    /// Half.
    #[default]
    Unweighted,
    /// Half times the weight, as eq. 17 and 20 print it.
    Printed,
}

/// Parameters of Uni-MPTCP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Weights of the subflows by id; 1 where not given (spec: omega).
    pub weights: Vec<f64>,
    /// The decrease rule.
    pub decrease: Decrease,
}

impl Config {
    /// Reads the parameters of the registry row.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        let weight = |text: &str| text.parse::<f64>().ok().filter(|weight| (0.001..=1000.0).contains(weight));
        let weights: Option<Vec<f64>> = params.text("weights").split('/').map(weight).collect();
        Ok(Self {
            weights: weights.ok_or_else(|| params.bad_value("weights"))?,
            decrease: params
                .choice("decrease", &[("unweighted", Decrease::Unweighted), ("printed", Decrease::Printed)])?,
        })
    }
}

/// Uni-MPTCP's rules.
#[derive(Clone, Debug, Default)]
pub struct UniMptcp {
    config: Config,
}

impl UniMptcp {
    /// The rules with their parameters.
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    fn weight(&self, id: SubflowId) -> f64 {
        self.config.weights.get(id.index()).copied().unwrap_or(1.0)
    }

    /// The weight relative to the largest of those that count. Congestion avoidance does not depend on the scale of weights,
    /// slow start does: "omega = 100" is the same as weights 0.01 and 1.
    fn relative_weight(&self, id: SubflowId, windows: &Windows) -> f64 {
        let largest = windows.counting().map(|(other, _)| self.weight(other)).fold(0.0, f64::max);
        self.weight(id) / largest
    }
}

impl Law for UniMptcp {
    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // Uni-MPTCP eq. 20 over W_l: omega_l / (tau_l sum(omega_i W_i / tau_i)).
        let sum: f64 = windows.counting().map(|(other, window)| self.weight(other) * window.rate()).sum();
        self.weight(id) / (own.rtt * sum)
    }

    fn decrease(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        match self.config.decrease {
            Decrease::Unweighted => own.cwnd / 2.0,
            Decrease::Printed => self.relative_weight(id, windows) * own.cwnd / 2.0,
        }
    }

    fn slow_start(&mut self, id: SubflowId, _own: &Window, windows: &Windows) -> f64 {
        // Uni-MPTCP eq. 19 over W_l.
        self.relative_weight(id, windows)
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, _windows: &mut Windows, _view: &View) {
        if let Event::Weight(weight) = event
            && weight.is_finite()
        {
            if self.config.weights.len() <= id.index() {
                self.config.weights.resize(id.index() + 1, 1.0);
            }
            self.config.weights[id.index()] = weight.max(MIN_WEIGHT);
        }
    }

    fn inspect(&self, id: SubflowId, _windows: &Windows, out: &mut dyn Probe) {
        out.value("weight", self.weight(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, decreases, increases, windows};

    fn uni(weights: &[f64], decrease: Decrease) -> UniMptcp {
        UniMptcp::new(Config { weights: weights.to_vec(), decrease })
    }

    #[test]
    fn one_subflow_is_reno() {
        // 0.3/(0.1 * 0.3 * 100) = 0.1, whatever the weight.
        let windows = windows(&[(10.0, 0.1)]);
        close(increases(&mut uni(&[0.3], Decrease::Unweighted), &windows)[0], 0.1);
        close(decreases(&mut uni(&[0.3], Decrease::Printed), &windows)[0], 5.0);
    }

    #[test]
    fn equation_20() {
        // W/tau = (200, 100), omega = (1, 0.2): sum 220; 1/(0.1*220) and 0.2/(0.2*220).
        let windows = windows(&[(20.0, 0.1), (20.0, 0.2)]);
        let found = increases(&mut uni(&[1.0, 0.2], Decrease::Unweighted), &windows);
        close(found[0], 1.0 / 22.0);
        close(found[1], 1.0 / 220.0);
        close(decreases(&mut uni(&[1.0, 0.2], Decrease::Unweighted), &windows)[1], 10.0);
        close(decreases(&mut uni(&[1.0, 0.2], Decrease::Printed), &windows)[1], 2.0);
    }

    #[test]
    fn equal_weights_and_round_trips_are_semicoupled() {
        let windows = windows(&[(20.0, 0.1), (5.0, 0.1)]);
        close(increases(&mut uni(&[], Decrease::Unweighted), &windows)[1], 1.0 / 25.0);
    }

    #[test]
    fn slow_start_is_relative_to_the_largest_weight_and_weights_change_at_run_time() {
        let mut windows = windows(&[(20.0, 0.1), (5.0, 0.1)]);
        let mut uni = uni(&[1.0, 100.0], Decrease::Unweighted);
        let own = windows.get(SubflowId(0)).unwrap().clone();
        close(uni.slow_start(SubflowId(0), &own, &windows), 0.01);
        uni.observe(Time::ZERO, SubflowId(1), &Event::Weight(0.01), &mut windows, &View::default());
        close(uni.slow_start(SubflowId(0), &own, &windows), 1.0);
        // At least a millionth; those that were not given are one.
        uni.observe(Time::ZERO, SubflowId(3), &Event::Weight(0.0), &mut windows, &View::default());
        close(uni.weight(SubflowId(3)), 1e-6);
        close(uni.weight(SubflowId(2)), 1.0);
    }
}
