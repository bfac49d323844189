//! A system in time: equations 10 and 11, integrated.

use differential_equations::error::Error;
use differential_equations::ivp::IVP;
use differential_equations::methods::ExplicitRungeKutta;
use differential_equations::ode::ODE;
use manypath_core::{Duration, Rate, Time};

use super::system::{FluidError, System};

/// The most samples of one integration.
const MAX_SAMPLES: f64 = 1e5;
/// Relative accuracy of each step.
const ACCURACY: f64 = 1e-6;
/// Steps before the integration gives up.
const MAX_STEPS: usize = 1_000_000;

/// A system at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When, from the start of the integration.
    pub at: Time,
    /// The rates by connection, then by subflow.
    pub rates: Vec<Vec<Rate>>,
    /// The price of each link: a probability of loss.
    pub prices: Vec<f64>,
}

impl System {
    /// Follows the system for `time` from given rates (by connection, then by subflow) and free links; a sample every
    /// `every`, the first one at the start.
    ///
    /// `gamma` is the speed of the links' prices in equation 11, in probability per packet above capacity: what it takes a
    /// queue of `1/gamma` packets to lose everything. The step control is explicit: a `gamma` so large that prices change
    /// many times within a round trip makes it slow.
    ///
    /// # Errors
    /// If arguments are out of range or do not fit the system, or the system changes too fast to follow.
    pub fn integrate(
        &self,
        start: &[Vec<Rate>],
        gamma: f64,
        time: Duration,
        every: Duration,
    ) -> Result<Vec<Sample>, FluidError> {
        if !(gamma.is_finite() && gamma > 0.0) {
            return Err(FluidError::Gamma { gamma });
        }
        let (seconds, interval) = (time.as_secs_f64(), every.as_secs_f64());
        if time.is_zero() || every.is_zero() || seconds / interval > MAX_SAMPLES {
            return Err(FluidError::Interval);
        }
        if !start.iter().map(Vec::len).eq(self.ranges.iter().map(ExactSizeIterator::len)) {
            return Err(FluidError::Start);
        }
        let flow = Flow::new(self, gamma);
        let first = start
            .iter()
            .flatten()
            .zip(&flow.floors)
            .map(|(rate, floor)| (rate.as_bytes_per_sec() / self.packet).max(*floor));
        let prices = core::iter::repeat_n(0.0, self.capacities.len());
        let begin: Vec<f64> = first.chain(prices).zip(&flow.units).map(|(value, unit)| value / unit).collect();
        let method = ExplicitRungeKutta::dopri5().rtol(ACCURACY).atol(ACCURACY * 1e-3).max_steps(MAX_STEPS);
        let solution = IVP::ode(&flow, 0.0, seconds, begin).even(interval).method(method).solve().map_err(stopped)?;
        let sample = |(&at, values): (&f64, &Vec<f64>)| {
            let (x, p) = flow.point(values);
            Sample { at: Time::from_secs_f64(at), rates: self.to_rates(&x), prices: p }
        };
        Ok(solution.t.iter().zip(&solution.y).map(sample).collect())
    }
}

/// Where the step control gave up.
fn stopped(error: Error<f64, Vec<f64>>) -> FluidError {
    match error {
        Error::MaxSteps { t, .. } | Error::StepSize { t, .. } | Error::Stiffness { t, .. } => {
            FluidError::Stiff { seconds: t }
        }
        _ => FluidError::Stiff { seconds: 0.0 },
    }
}

/// The right-hand side of equations 10 and 11, for rates and prices in units of their usual size.
struct Flow<'a> {
    system: &'a System,
    gamma: f64,
    floors: Vec<f64>,
    units: Vec<f64>,
}

impl<'a> Flow<'a> {
    /// A rate's unit is the smallest capacity on its way, a price's the loss at which NewReno fills the link.
    fn new(system: &'a System, gamma: f64) -> Self {
        let alone = |r: usize| {
            let by_loss = (2.0 / system.loss[r]).sqrt() / system.rtts[r];
            system.routes[r].iter().fold(by_loss, |least, &link| least.min(system.capacities[link]))
        };
        let mut units: Vec<f64> = (0..system.subflows()).map(alone).collect();
        let mut prices = vec![1.0_f64; system.capacities.len()];
        for (r, route) in system.routes.iter().enumerate() {
            for &link in route {
                prices[link] = prices[link].min(2.0 / (system.capacities[link] * system.rtts[r]).powi(2));
            }
        }
        units.extend(prices);
        Self { system, gamma, floors: system.floors(), units }
    }

    /// Rates in packets per second, at least the floor, and prices from 0 to 1.
    fn point(&self, values: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let plain: Vec<f64> = values.iter().zip(&self.units).map(|(value, unit)| value * unit).collect();
        let (x, p) = plain.split_at(self.system.subflows());
        let x = x.iter().zip(&self.floors).map(|(x, floor)| x.max(*floor)).collect();
        (x, p.iter().map(|p| p.clamp(0.0, 1.0)).collect())
    }
}

impl ODE<f64, Vec<f64>> for Flow<'_> {
    fn diff(&self, _: f64, values: &Vec<f64>, change: &mut Vec<f64>) {
        let (system, subflows) = (self.system, self.system.subflows());
        let (x, p) = self.point(values);
        let k = system.by_subflow(&x, |algorithm, state| algorithm.gains(state));
        let phi = system.by_subflow(&x, |algorithm, state| algorithm.prices(state));
        let (q, loads) = (system.losses(&p), system.loads(&x));
        for r in 0..subflows {
            // Equation 10 with its edge.
            let speed = k[r] * (phi[r] - q[r]);
            let held = values[r] * self.units[r] <= self.floors[r] && speed < 0.0;
            change[r] = if held { 0.0 } else { speed / self.units[r] };
        }
        for link in 0..system.capacities.len() {
            // Equation 11 with its edges.
            let (value, speed) = (values[subflows + link], self.gamma * (loads[link] - system.capacities[link]));
            let held = (value <= 0.0 && speed < 0.0) || (value * self.units[subflows + link] >= 1.0 && speed > 0.0);
            change[subflows + link] = if held { 0.0 } else { speed / self.units[subflows + link] };
        }
    }
}
