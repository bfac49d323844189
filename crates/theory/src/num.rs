//! Network utility maximisation (NUM): the allocation that maximises a sum of utilities of weighted sums of subflow rates,
//!
//! ```text
//! maximise  sum_i U_i(z_i),   z_i = sum_s omega_is x_is
//! subject to  the load of each link <= its capacity,  x >= 0
//! ```
//!
//! With logarithms and one connection of weights `omega` beside TCP flows it is equations 14 and 15 of Uni-MPTCP
//! (s3.2); with `U(z) = w z^(1-alpha)/(1-alpha)` it is alpha-fairness, which goes from throughput (0) over proportional
//! fairness (1) towards max-min fairness.
//!
//! Rates inside utilities and prices are in Mbit/s (10^6 bits per second). The unit matters only where connections with
//! different `alpha` meet; for equal ones it scales all utilities alike.

use crate::conic::{Cone, Program, SolveError};
use crate::lmmf::add_links;
use crate::network::{Allocation, Network};

/// The largest `alpha`; beyond it the prices of one network are too many orders of magnitude apart, and
/// [`lmmf`](crate::lmmf()) is near.
pub const MAX_ALPHA: f64 = 8.0;
/// The largest weight of a connection or a subflow.
pub const MAX_WEIGHT: f64 = 1e6;
/// The smallest positive weight of a connection or a subflow.
pub const MIN_WEIGHT: f64 = 1e-6;
/// An `alpha` this near to one is one.
const LOGARITHM: f64 = 1e-6;
/// A connection's unit is at least this part of what it could have.
const SMALLEST_SHARE: f64 = 1e-9;
/// A connection with less than this part of what it could have starves: in a unit of its own size the solver's tolerance is
/// larger than what its utility demands of prices.
const STARVES: f64 = 1e-6;
/// The most steps of Newton's method. Two suffice for nearly every network; a connection whose first rate is wrong by orders
/// of magnitude takes one for each factor of [`TRUST`].
const NEWTON_STEPS: u32 = 12;
/// Newton's method stops when no weighted sum changes by more than this part.
const SETTLED: f64 = 1e-9;
/// The factor by which one step of Newton's method may change a weighted sum.
const TRUST: f64 = 2.0;
/// The largest relative error of a price: beyond it utilities are so many orders of magnitude apart that the small ones do not
/// count in the solver's objective, and their connections have any rate.
const UNSUPPORTED: f64 = 1e-2;
/// Bits per second in the unit of rates inside utilities.
const UNIT_BPS: f64 = 1e6;

/// What a connection gets out of its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Utility {
    /// How much fairness counts, from 0 to [`MAX_ALPHA`]; 1 is the logarithm.
    pub alpha: f64,
    /// Weight of the connection, from [`MIN_WEIGHT`] to [`MAX_WEIGHT`].
    pub weight: f64,
    /// Weight of each subflow's rate (spec: omega), zero or from [`MIN_WEIGHT`] to [`MAX_WEIGHT`], not all zero. A subflow
    /// of weight zero carries nothing.
    pub subflow_weights: Vec<f64>,
}

impl Utility {
    /// The logarithm of the sum of so many subflows: proportional fairness.
    pub fn proportional(subflows: usize) -> Self {
        Self { alpha: 1.0, weight: 1.0, subflow_weights: vec![1.0; subflows] }
    }

    /// `U(z)` at a weighted sum in Mbit/s.
    pub fn value(&self, z: f64) -> f64 {
        let exponent = 1.0 - self.alpha;
        if exponent.abs() < LOGARITHM { self.weight * z.ln() } else { self.weight * z.powf(exponent) / exponent }
    }

    /// `U'(z)` at a weighted sum in Mbit/s: utility per Mbit/s.
    pub fn slope(&self, z: f64) -> f64 {
        self.weight * z.powf(-self.alpha)
    }
}

/// Why there is no optimum.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NumError {
    /// As many utilities as connections are needed.
    #[error("{utilities} utilities for {connections} connections")]
    Utilities {
        /// Utilities given.
        utilities: usize,
        /// Connections of the network.
        connections: usize,
    },
    /// As many weights as subflows are needed, each in range, one of them positive.
    #[error("connection {connection}: one weight a subflow is needed, each 0 or from 1e-6 to 1e6, not all 0")]
    SubflowWeights {
        /// The connection.
        connection: usize,
    },
    /// A connection's weight is out of range.
    #[error("connection {connection}: the weight is {weight}; it must be from 1e-6 to 1e6")]
    Weight {
        /// The connection.
        connection: usize,
        /// Its weight.
        weight: f64,
    },
    /// An `alpha` out of range.
    #[error("connection {connection}: alpha is {alpha}; it must be from 0 to 8")]
    Alpha {
        /// The connection.
        connection: usize,
        /// Its `alpha`.
        alpha: f64,
    },
    /// The numerical solver gave up.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// An optimal allocation with the prices that support it.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// The rates. Weighted sums are unique where `alpha` is positive; splits over subflows often are not.
    pub allocation: Allocation,
    /// Price of each link: utility gained per Mbit/s of capacity added.
    pub prices: Vec<f64>,
    /// Price of each connection's limit: utility gained per Mbit/s by which it is raised; zero without a limit.
    pub limit_prices: Vec<f64>,
}

impl Optimum {
    /// The weighted sum of each connection in Mbit/s (spec: sum of omega_i y_i).
    pub fn weighted_sums(&self, utilities: &[Utility]) -> Vec<f64> {
        let sum = |(index, utility): (usize, &Utility)| {
            let rates = self.allocation.subflows(index);
            utility.subflow_weights.iter().zip(rates).map(|(weight, rate)| weight * rate.as_mbps()).sum()
        };
        utilities.iter().enumerate().map(sum).collect()
    }

    /// The sum of all utilities.
    pub fn utility(&self, utilities: &[Utility]) -> f64 {
        utilities.iter().zip(self.weighted_sums(utilities)).map(|(utility, sum)| utility.value(sum)).sum()
    }
}

/// The allocation that maximises the sum of `utilities`, one for each connection, and its prices.
///
/// A program of exponential and power cones finds it roughly: such a solver stops when the objective is accurate, and where
/// the objective is flat, or a connection's weight is small, rates are not. Newton's method takes over from there: each
/// step solves the quadratic program in which every utility is replaced by its expansion about the last point. On random
/// networks with weights within two decades and `alpha` from 0.3 to 3, weighted sums are then accurate to 1e-6 for
/// connections that have at least a millionth of what they could have alone, and prices satisfy the optimality conditions
/// to 1e-4. What starves, as many do at small `alpha`, has no rate worth a name, but prices keep it out: they are those of a
/// last program in which its utility is a straight line from a millionth on. Where `alpha` is large and rates are orders of
/// magnitude apart, or `alpha` is zero and they are eight, the solver cannot tell the small utilities from nothing; that is
/// an error, not an allocation.
///
/// # Errors
/// If utilities do not fit the network or are out of range, or the numerical solver gives up.
pub fn maximise(network: &Network, utilities: &[Utility]) -> Result<Optimum, NumError> {
    check(network, utilities)?;
    let problem = Problem::new(network, utilities);
    let mut optimum = problem.solve(&problem.whole(), Shape::Exact)?;
    for _ in 0..NEWTON_STEPS {
        let before = optimum.weighted_sums(utilities);
        optimum = problem.solve(&problem.near(&before, 0.0), Shape::Expansion(&before))?;
        let change = |(now, before): (f64, &f64)| (now - before).abs() / before.max(f64::MIN_POSITIVE);
        if optimum.weighted_sums(utilities).into_iter().zip(&before).all(|pair| change(pair) < SETTLED) {
            break;
        }
    }
    let sums = optimum.weighted_sums(utilities);
    if sums.iter().zip(&problem.most).any(|(sum, most)| sum * UNIT_BPS < most * STARVES) {
        let priced = problem.solve(&problem.near(&sums, STARVES), Shape::Expansion(&sums))?;
        optimum = Optimum { allocation: optimum.allocation, ..priced };
    }
    if problem.supports(&optimum, &sums) { Ok(optimum) } else { Err(SolveError::Inaccurate.into()) }
}

/// What a program puts in place of the utilities.
#[derive(Clone, Copy)]
enum Shape<'a> {
    /// The utilities themselves, by cones.
    Exact,
    /// Their second-order expansions about these weighted sums in Mbit/s.
    Expansion(&'a [f64]),
}

/// Where a program looks at a connection's utility.
#[derive(Clone, Copy)]
struct Point {
    /// The unit of its weighted sum in the program, bit/s.
    unit: f64,
    /// Where the slope is taken, bit/s.
    at: f64,
    /// Whether the utility is a straight line, and so the same at any scale.
    straight: bool,
}

/// A network with its utilities.
struct Problem<'a> {
    /// The network.
    network: &'a Network,
    /// One for each connection.
    utilities: &'a [Utility],
    /// What each subflow could carry alone, in bit/s.
    alone: Vec<f64>,
    /// Each connection's weighted sum of those.
    most: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn new(network: &'a Network, utilities: &'a [Utility]) -> Self {
        let alone = network.alone_bps();
        let most = |(index, utility): (usize, &Utility)| {
            network.range(index).zip(&utility.subflow_weights).map(|(number, weight)| weight * alone[number]).sum()
        };
        let most = utilities.iter().enumerate().map(most).collect();
        Self { network, utilities, alone, most }
    }

    /// Every connection at what it could have.
    fn whole(&self) -> Vec<Point> {
        let whole =
            |(most, utility): (&f64, &Utility)| Point { unit: *most, at: *most, straight: utility.alpha <= 0.0 };
        self.most.iter().zip(self.utilities).map(whole).collect()
    }

    /// The connections at these sums in Mbit/s, if they are not too small. Those with less than the share `straighten` of what
    /// they could have count as if they had that, with a straight utility from there: it demands no more of prices than theirs.
    fn near(&self, sums: &[f64], straighten: f64) -> Vec<Point> {
        let near = |((sum, most), utility): ((&f64, &f64), &Utility)| {
            let at = (sum * UNIT_BPS).clamp(most * SMALLEST_SHARE, *most);
            let straight = utility.alpha <= 0.0 || at < most * straighten;
            Point { unit: if straight { *most } else { at }, at: at.max(most * straighten), straight }
        };
        sums.iter().zip(&self.most).zip(self.utilities).map(near).collect()
    }

    /// Whether prices keep every connection where it is: what its utility demands of a subflow's price is that price where the
    /// subflow carries something, and no more than that elsewhere. Of what starves nothing is demanded, unless its slope is the
    /// same everywhere.
    fn supports(&self, optimum: &Optimum, sums: &[f64]) -> bool {
        let price = |(index, subflow): (usize, &crate::network::Subflow)| {
            subflow.links.iter().map(|&link| optimum.prices[link]).sum::<f64>() + optimum.limit_prices[index]
        };
        let prices: Vec<f64> = self.network.subflows().map(price).collect();
        self.utilities.iter().enumerate().all(|(index, utility)| {
            let starves = sums[index] * UNIT_BPS < self.most[index] * STARVES;
            let slope = utility.slope(sums[index]);
            let rates = optimum.allocation.subflows(index);
            let mut parts = self.network.range(index).zip(&utility.subflow_weights).zip(rates);
            starves && utility.alpha > 0.0
                || parts.all(|((number, omega), rate)| {
                    let error = 1.0 - prices[number] / (omega * slope).max(f64::MIN_POSITIVE);
                    let share = if starves { 0.0 } else { omega * rate.as_mbps() / sums[index] };
                    *omega <= 0.0 || (error <= UNSUPPORTED && share * error.abs() <= UNSUPPORTED)
                })
        })
    }

    /// Solves the program with each connection's utility as it is at a point.
    fn solve(&self, near: &[Point], shape: Shape<'_>) -> Result<Optimum, SolveError> {
        let Self { network, utilities, .. } = *self;
        let subflows = network.subflow_count();
        // Variables: the subflows' rates, then one for each connection. A rate's unit makes its part in the sum at most one.
        let parts = utilities
            .iter()
            .zip(near)
            .flat_map(|(utility, near)| utility.subflow_weights.iter().map(move |w| near.unit / w));
        let units: Vec<f64> = parts.zip(&self.alone).map(|(part, alone)| part.min(*alone)).collect();
        let mut program = Program::new(subflows + utilities.len());
        let columns: Vec<Option<usize>> = (0..subflows).map(Some).collect();
        let (link_rows, limit_rows) = add_links(&mut program, network, &units, &columns);
        let weight = |(utility, near): (&Utility, &Point)| utility.slope(near.at / UNIT_BPS) * near.unit / UNIT_BPS;
        let weights: Vec<f64> = utilities.iter().zip(near).map(weight).collect();
        // One factor for all utilities, so that the largest coefficient of the objective is one.
        let scale = weights.iter().copied().fold(0.0, f64::max);
        for (index, utility) in utilities.iter().enumerate() {
            let parts = || network.range(index).zip(&utility.subflow_weights);
            let sum: Vec<(usize, f64)> =
                parts().map(|(number, omega)| (number, omega * units[number] / near[index].unit)).collect();
            let (variable, weight) = (subflows + index, weights[index] / scale);
            let alpha = if near[index].straight { 0.0 } else { utility.alpha };
            match shape {
                Shape::Exact => add_utility(&mut program, alpha, weight, &sum, variable),
                Shape::Expansion(sums) => {
                    let least = (sums[index] * UNIT_BPS / near[index].unit).min(1.0) / TRUST;
                    add_expansion(&mut program, alpha, weight, &sum, variable, least);
                }
            }
            for (number, _) in parts().filter(|(_, omega)| **omega <= 0.0) {
                program.at_most(&[(number, 1.0)], 0.0);
            }
        }
        let point = program.solve()?;
        let rates: Vec<f64> = point.values.iter().zip(&units).map(|(value, unit)| value * unit).collect();
        // A row is in units of the bound; its price per Mbit/s follows.
        let price = |row: usize, bound_bps: f64| point.duals[row].max(0.0) * scale * UNIT_BPS / bound_bps;
        let links = link_rows.iter().zip(network.capacities()).map(|(&row, capacity)| price(row, capacity.as_bps()));
        let limits =
            limit_rows.iter().zip(network.connections()).map(|(row, connection)| match (row, connection.limit) {
                (Some(row), Some(limit)) => price(*row, limit.as_bps()),
                _ => 0.0,
            });
        let (prices, limit_prices) = (links.collect(), limits.collect());
        Ok(Optimum { allocation: Allocation::fitted(network, &rates), prices, limit_prices })
    }
}

/// Adds `weight * z^(1-alpha)/(1-alpha)`, or its logarithm, to the objective by way of the variable `level`, where `z` is
/// the expression `sum`.
fn add_utility(program: &mut Program, alpha: f64, weight: f64, sum: &[(usize, f64)], level: usize) {
    let level_terms = [(level, 1.0)];
    let (sum, level_terms) = ((sum, 0.0), (level_terms.as_slice(), 0.0));
    let one = (&[][..], 1.0);
    if alpha <= 0.0 {
        // The level is the sum itself, at most.
        program.maximise(level, weight);
        let difference: Vec<(usize, f64)> =
            level_terms.0.iter().copied().chain(sum.0.iter().map(|&(variable, part)| (variable, -part))).collect();
        program.at_most(&difference, 0.0);
    } else if (alpha - 1.0).abs() < LOGARITHM {
        // level <= ln z  <=>  1 * e^(level/1) <= z.
        program.maximise(level, weight);
        program.within(Cone::Exponential, [level_terms, one, sum]);
    } else if alpha < 1.0 {
        // level <= z^(1-alpha).
        program.maximise(level, weight / (1.0 - alpha));
        program.within(Cone::Power(1.0 - alpha), [sum, one, level_terms]);
    } else {
        // level >= z^(1-alpha)  <=>  level^(1/alpha) z^(1-1/alpha) >= 1; the objective falls with it.
        program.maximise(level, -weight / (alpha - 1.0));
        program.within(Cone::Power(1.0 / alpha), [level_terms, sum, one]);
    }
}

/// Adds the expansion of the utility about `z = 1` to the objective: with `d = z - 1`, the variable `change`,
/// `weight * (d - alpha d^2 / 2)`. It is trusted for `z` from `least` to [`TRUST`].
fn add_expansion(program: &mut Program, alpha: f64, weight: f64, sum: &[(usize, f64)], change: usize, least: f64) {
    program.maximise(change, weight);
    program.bend(change, weight * alpha);
    let terms: Vec<(usize, f64)> = sum.iter().copied().chain([(change, -1.0)]).collect();
    program.equal(&terms, 1.0);
    if alpha > 0.0 {
        program.at_most(&[(change, 1.0)], TRUST - 1.0);
        program.at_most(&[(change, -1.0)], 1.0 - least);
    }
}

/// Checks utilities against the network and their ranges.
fn check(network: &Network, utilities: &[Utility]) -> Result<(), NumError> {
    let connections = network.connections().len();
    if utilities.len() != connections {
        return Err(NumError::Utilities { utilities: utilities.len(), connections });
    }
    let range = MIN_WEIGHT..=MAX_WEIGHT;
    for (connection, utility) in utilities.iter().enumerate() {
        let Utility { alpha, weight, ref subflow_weights } = *utility;
        if !(0.0..=MAX_ALPHA).contains(&alpha) {
            return Err(NumError::Alpha { connection, alpha });
        }
        if !range.contains(&weight) {
            return Err(NumError::Weight { connection, weight });
        }
        let positive = subflow_weights.iter().filter(|weight| range.contains(weight)).count();
        let zero = subflow_weights.iter().filter(|&&weight| weight == 0.0).count();
        let count = network.range(connection).len();
        if positive == 0 || positive + zero != count || subflow_weights.len() != count {
            return Err(NumError::SubflowWeights { connection });
        }
    }
    Ok(())
}
