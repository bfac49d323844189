//! Where a system rests.
//!
//! At rest `phi_r(x) = q_r` on every subflow above its floor and `y_l = c_l` on every link with a price. In logarithms of
//! rates and prices these are `ln phi_r - ln q_r = 0` and `ln y_l - ln c_l = 0`, which are nearly linear (`phi` is a power of
//! the rates for most laws), and no rate or price can become negative. The left sides have the signs of equations 10 and 11,
//! so that following them leads to the same place: implicit Euler steps that grow as the error shrinks, and become Newton's
//! method near the end (pseudo-transient continuation).

use manypath_core::Rate;
use nalgebra::{DMatrix, DVector};

use super::system::{FluidError, System};

/// The smallest price: below it a link is free.
const FREE: f64 = 1e-18;
/// The largest relative error of an equilibrium.
const ACCURACY: f64 = 1e-9;
/// Steps before the search gives up.
const MAX_STEPS: usize = 2000;
/// The first pseudo-time step.
const START: f64 = 0.1;
/// The shortest pseudo-time step.
const SHORTEST: f64 = 1e-3;
/// The longest pseudo-time steps, in turn. Beyond the first, the error of numerical derivatives would choose the way where a
/// law leaves it open.
const CEILINGS: [f64; 3] = [1e7, 1.0, 0.05];
/// Steps without halving the error after which the next ceiling has its turn.
const PATIENCE: usize = 100;
/// An error below which steps do not become shorter.
const NEAR: f64 = 1e-3;
/// By how much a step grows if the error stays the same.
const GROWTH: f64 = 1.5;
/// The largest change of a logarithm in one step.
const STRIDE: f64 = 1.0;
/// The relative difference over which derivatives are taken.
pub(super) const DIFFERENCE: f64 = 1e-6;

/// A point where a system rests.
#[derive(Clone, Debug, PartialEq)]
pub struct Equilibrium {
    /// In packets per second, by subflow.
    pub(super) x: Vec<f64>,
    /// Prices by link; zero for a link that is not full.
    pub(super) p: Vec<f64>,
    /// Whether a subflow is at its smallest window because its path is too bad for more.
    pub(super) at_floor: Vec<bool>,
    /// Loss by subflow.
    q: Vec<f64>,
    /// By connection.
    rates: Vec<Vec<Rate>>,
}

impl Equilibrium {
    /// The rates of a connection's subflows; empty if there is no such connection.
    pub fn subflows(&self, connection: usize) -> &[Rate] {
        self.rates.get(connection).map_or(&[], Vec::as_slice)
    }

    /// The total rate of each connection.
    pub fn totals(&self) -> Vec<Rate> {
        self.rates.iter().map(|subflows| subflows.iter().copied().sum()).collect()
    }

    /// The price of each link: the probability of loss there; zero for a link that is not full.
    pub fn prices(&self) -> &[f64] {
        &self.p
    }

    /// The probability of loss of each subflow, connection after connection.
    pub fn losses(&self) -> &[f64] {
        &self.q
    }
}

impl System {
    /// Where the system rests. Where a law leaves the split over paths open (Coupled on equal paths), the answer is the
    /// one nearest to equal rates.
    ///
    /// # Errors
    /// If no equilibrium is found.
    pub fn equilibrium(&self) -> Result<Equilibrium, FluidError> {
        let search = Search::new(self);
        let mut v = search.start();
        let mut ceilings = CEILINGS.iter().copied().cycle();
        let (mut step, mut ceiling) = (SHORTEST, f64::INFINITY);
        let mut left = search.errors(&v);
        let mut residual = search.residual(&v, &left);
        let (mut best, mut since) = (residual, PATIENCE);
        for _ in 0..MAX_STEPS {
            if residual < ACCURACY {
                return Ok(search.finish(&v));
            }
            // Steps grow as the error shrinks, and a little anyway (the price of a link that is not full has far to fall).
            // Where long steps do not help (Newton's method jumps about a kink, such as LIA's largest window), short ones
            // have their turn.
            if since >= PATIENCE {
                (ceiling, since) = (ceilings.next().unwrap_or(SHORTEST), 0);
                step = ceiling.min(START);
            }
            let Some(change) = search.implicit_step(&v, &left, step) else {
                (step, since) = ((step * 0.1).max(SHORTEST), since + 1);
                continue;
            };
            let next = search.confined(&(&v + change.map(|part| part.clamp(-STRIDE, STRIDE))));
            let errors = search.errors(&next);
            let new = search.residual(&next, &errors);
            since += 1;
            if new < best * 0.5 {
                (best, since) = (new, 0);
            }
            let least = if new < NEAR { 1.0 } else { 0.3 };
            let growth = (GROWTH * residual / new.max(ACCURACY * 1e-3)).clamp(least, 3.0);
            step = (step * growth).clamp(SHORTEST, ceiling);
            (v, left, residual) = (next, errors, new);
        }
        Err(FluidError::NoEquilibrium { residual })
    }
}

/// The equations in logarithms: of the subflows' rates first, then of the links' prices.
struct Search<'a> {
    system: &'a System,
    lower: DVector<f64>,
    upper: DVector<f64>,
}

impl<'a> Search<'a> {
    fn new(system: &'a System) -> Self {
        let (subflows, links) = (system.subflows(), system.capacities.len());
        let floors = system.floors();
        let value = |inside: &dyn Fn(usize) -> f64, price: f64| {
            DVector::from_fn(subflows + links, |i, _| if i < subflows { inside(i) } else { price })
        };
        // Windows of a billion packets bound the search where nothing else does.
        let lower = value(&|r| floors[r].ln(), FREE.ln());
        let upper = value(&|r| (floors[r] * 1e9).ln(), 0.0);
        Self { system, lower, upper }
    }

    /// Links divided evenly, at the loss at which NewReno would have that.
    fn start(&self) -> DVector<f64> {
        let (system, subflows) = (self.system, self.system.subflows());
        let crossing = system.loads(&vec![1.0; subflows]);
        let share = |r: usize| {
            let bottleneck = system.routes[r].iter().map(|&link| system.capacities[link] / crossing[link]);
            let alone = (2.0 / system.loss[r].max(FREE)).sqrt() / system.rtts[r];
            bottleneck.fold(alone, f64::min)
        };
        let mut prices: Vec<f64> = vec![FREE; system.capacities.len()];
        for (r, route) in system.routes.iter().enumerate() {
            let window = share(r) * system.rtts[r];
            for &link in route {
                prices[link] = prices[link].max(2.0 / (window * window));
            }
        }
        let start =
            DVector::from_fn(
                self.lower.len(),
                |i, _| {
                    if i < subflows { share(i).ln() } else { prices[i - subflows].ln() }
                },
            );
        self.confined(&start)
    }

    fn confined(&self, v: &DVector<f64>) -> DVector<f64> {
        v.zip_zip_map(&self.lower, &self.upper, |v, lower, upper| v.max(lower).min(upper))
    }

    /// Rates in packets per second and prices.
    fn point(&self, v: &DVector<f64>) -> (Vec<f64>, Vec<f64>) {
        let (x, p) = v.as_slice().split_at(self.system.subflows());
        (x.iter().map(|x| x.exp()).collect(), p.iter().map(|p| p.exp()).collect())
    }

    /// The left sides of the equations.
    fn errors(&self, v: &DVector<f64>) -> DVector<f64> {
        let (x, p) = self.point(v);
        let phi = self.system.by_subflow(&x, |algorithm, state| algorithm.prices(state));
        let rates = phi.iter().zip(self.system.losses(&p)).map(|(phi, q)| (phi / q).ln());
        let loads = self.system.loads(&x);
        let prices = loads.iter().zip(&self.system.capacities).map(|(load, capacity)| (load / capacity).ln());
        // A link that nothing crosses has no load: its price falls to zero.
        let all: Vec<f64> = rates.chain(prices).map(|error| error.max(-1e3)).collect();
        DVector::from_vec(all)
    }

    /// Whether a variable is at its lower edge and would leave it outwards.
    fn held(&self, i: usize, v: &DVector<f64>, errors: &DVector<f64>) -> bool {
        v[i] <= self.lower[i] && errors[i] <= 0.0
    }

    /// What of each link's price matters: the largest part that it has in the loss of a subflow.
    fn parts(&self, p: &[f64]) -> Vec<f64> {
        let mut parts = vec![0.0_f64; p.len()];
        for (route, q) in self.system.routes.iter().zip(self.system.losses(p)) {
            for &link in route {
                parts[link] = parts[link].max(p[link] / q);
            }
        }
        parts
    }

    /// The largest error of what is not held; a link that is not full counts with its price's part if that is smaller.
    fn residual(&self, v: &DVector<f64>, errors: &DVector<f64>) -> f64 {
        let subflows = self.system.subflows();
        let parts = self.parts(&self.point(v).1);
        let error = |i: usize| match errors[i] {
            error if i >= subflows && error < 0.0 => error.abs().min(parts[i - subflows]),
            error => error.abs(),
        };
        let free = (0..v.len()).filter(|&i| !self.held(i, v, errors)).map(error);
        free.fold(0.0, |most, error| if error.is_nan() { error } else { most.max(error) })
    }

    /// The change by an implicit Euler step: `(1/step - J) change = errors`.
    fn implicit_step(&self, v: &DVector<f64>, errors: &DVector<f64>, step: f64) -> Option<DVector<f64>> {
        let (system, subflows) = (self.system, self.system.subflows());
        let (x, p) = self.point(v);
        let (q, loads) = (system.losses(&p), system.loads(&x));
        let mut matrix = DMatrix::from_diagonal_element(v.len(), v.len(), 1.0 / step);
        for (connection, range) in system.ranges.iter().enumerate() {
            let mut state = system.state(connection, &x);
            for column in range.clone() {
                let slopes =
                    log_slopes(&mut state, column - range.start, |state| system.algorithms[connection].prices(state));
                for (row, slope) in range.clone().zip(slopes) {
                    matrix[(row, column)] -= slope;
                }
            }
        }
        for (r, route) in system.routes.iter().enumerate() {
            for &link in route {
                matrix[(r, subflows + link)] += p[link] / q[r];
                matrix[(subflows + link, r)] -= x[r] / loads[link];
            }
        }
        let mut right = errors.clone();
        for i in (0..v.len()).filter(|&i| self.held(i, v, errors)) {
            matrix.row_mut(i).fill(0.0);
            matrix[(i, i)] = 1.0;
            right[i] = 0.0;
        }
        matrix.lu().solve(&right).filter(|change| change.iter().all(|part| part.is_finite()))
    }

    fn finish(&self, v: &DVector<f64>) -> Equilibrium {
        let (x, p) = self.point(v);
        let floor = |r: usize| v[r] <= self.lower[r];
        let parts = self.parts(&p);
        let p: Vec<f64> = p
            .into_iter()
            .zip(parts)
            .map(|(p, part)| if part < ACCURACY || p <= FREE * 1.01 { 0.0 } else { p })
            .collect();
        let (q, rates) = (self.system.losses(&p), self.system.to_rates(&x));
        Equilibrium { at_floor: (0..x.len()).map(floor).collect(), q, rates, x, p }
    }
}

/// How the logarithms of a law's values change with the logarithm of one subflow's rate: central differences.
pub(super) fn log_slopes(
    state: &mut super::State,
    subflow: usize,
    law: impl Fn(&super::State) -> Vec<f64>,
) -> Vec<f64> {
    let rate = state.rates[subflow];
    state.rates[subflow] = rate * DIFFERENCE.exp();
    let above = law(state);
    state.rates[subflow] = rate * (-DIFFERENCE).exp();
    let below = law(state);
    state.rates[subflow] = rate;
    above.iter().zip(&below).map(|(above, below)| (above / below).ln() / (2.0 * DIFFERENCE)).collect()
}
