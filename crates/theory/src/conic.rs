//! Convex programs over linear, exponential and power cones, in the words of this crate; solved by `clarabel`.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

/// Relative accuracy asked of the solver. Where an objective is flat, that of a variable is its square root.
const ACCURACY: f64 = 1e-12;
/// Relative accuracy that is taken if the solver cannot do better.
const ACCEPTED: f64 = 1e-7;
/// Relative accuracy of a proof that there is no solution: programs with very little room are not to be taken for ones
/// with none.
const INFEASIBLE: f64 = 1e-10;
/// Steps of the solver; a solvable program of this crate takes some twenty.
const MAX_STEPS: u32 = 300;
/// How far towards the boundary of the cones a step may go, tried in turn: long steps are fast, and now and then (one
/// random program of power cones in a thousand) end up in a corner that shorter ones avoid.
const STEP_FRACTIONS: [f64; 4] = [0.99, 0.9, 0.7, 0.5];

/// Why the solver has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// No rates satisfy all constraints.
    #[error("no allocation satisfies all constraints")]
    Infeasible,
    /// The objective has no finite optimum.
    #[error("the objective grows without bound")]
    Unbounded,
    /// The solver gave up, mostly because the numbers of one problem are too many orders of magnitude apart.
    #[error("the solver did not reach the accuracy asked for")]
    Inaccurate,
}

/// A cone of three dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cone {
    /// `(x, y, z)` with `y e^(x/y) <= z`, `y > 0`.
    Exponential,
    /// `(x, y, z)` with `x^a y^(1-a) >= |z|`, `x, y >= 0`, for `0 < a < 1`.
    Power(f64),
}

/// A linear expression: coefficients of variables.
pub(crate) type Terms<'a> = &'a [(usize, f64)];

/// A program that maximises a linear objective, less the squares of variables.
#[derive(Debug)]
pub(crate) struct Program {
    /// What is minimised: the negative objective.
    cost: Vec<f64>,
    /// Curvature of the cost in each variable.
    curvature: Vec<f64>,
    /// Rows, columns and values of the constraint matrix.
    entries: (Vec<usize>, Vec<usize>, Vec<f64>),
    /// Right-hand sides.
    bounds: Vec<f64>,
    /// The cones of the rows, in their order.
    cones: Vec<SupportedConeT<f64>>,
}

/// An optimal point.
#[derive(Debug)]
pub(crate) struct Point {
    /// The variables.
    pub(crate) values: Vec<f64>,
    /// By how much the objective would grow if a row's bound did, by row.
    pub(crate) duals: Vec<f64>,
}

impl Program {
    /// A program of so many variables and no objective.
    pub(crate) fn new(variables: usize) -> Self {
        Self {
            cost: vec![0.0; variables],
            curvature: vec![0.0; variables],
            entries: Default::default(),
            bounds: Vec::new(),
            cones: Vec::new(),
        }
    }

    /// Adds `weight` times a variable to the objective.
    pub(crate) fn maximise(&mut self, variable: usize, weight: f64) {
        self.cost[variable] -= weight;
    }

    /// Takes `curvature / 2` times the square of a variable off the objective; `curvature` is not negative.
    pub(crate) fn bend(&mut self, variable: usize, curvature: f64) {
        self.curvature[variable] += curvature;
    }

    /// Demands `terms = bound`.
    pub(crate) fn equal(&mut self, terms: Terms<'_>, bound: f64) {
        self.cones.push(SupportedConeT::ZeroConeT(1));
        self.row(terms, 1.0, bound);
    }

    /// Demands `terms <= bound`; gives the row.
    pub(crate) fn at_most(&mut self, terms: Terms<'_>, bound: f64) -> usize {
        self.cones.push(SupportedConeT::NonnegativeConeT(1));
        self.row(terms, 1.0, bound)
    }

    /// Demands that a variable is not negative.
    pub(crate) fn nonnegative(&mut self, variable: usize) {
        self.at_most(&[(variable, -1.0)], 0.0);
    }

    /// Demands that three expressions, each with a constant, are a point of `cone`.
    pub(crate) fn within(&mut self, cone: Cone, expressions: [(Terms<'_>, f64); 3]) {
        self.cones.push(match cone {
            Cone::Exponential => SupportedConeT::ExponentialConeT(),
            Cone::Power(exponent) => SupportedConeT::PowerConeT(exponent),
        });
        for (terms, constant) in expressions {
            self.row(terms, -1.0, constant);
        }
    }

    /// Adds a row `sign * terms + slack = bound`.
    fn row(&mut self, terms: Terms<'_>, sign: f64, bound: f64) -> usize {
        let row = self.bounds.len();
        for &(column, value) in terms {
            self.entries.0.push(row);
            self.entries.1.push(column);
            self.entries.2.push(sign * value);
        }
        self.bounds.push(bound);
        row
    }

    /// Solves the program.
    pub(crate) fn solve(self) -> Result<Point, SolveError> {
        let columns = self.cost.len();
        let (rows, cols, values) = self.entries;
        let matrix = CscMatrix::new_from_triplets(self.bounds.len(), columns, rows, cols, values);
        let quadratic =
            CscMatrix::new(columns, columns, (0..=columns).collect(), (0..columns).collect(), self.curvature);
        for max_step_fraction in STEP_FRACTIONS {
            let settings = DefaultSettings {
                verbose: false,
                max_iter: MAX_STEPS,
                max_step_fraction,
                tol_gap_abs: ACCURACY,
                tol_gap_rel: ACCURACY,
                tol_feas: ACCURACY,
                reduced_tol_gap_abs: ACCEPTED,
                reduced_tol_gap_rel: ACCEPTED,
                reduced_tol_feas: ACCEPTED,
                tol_infeas_rel: INFEASIBLE,
                reduced_tol_infeas_rel: INFEASIBLE,
                ..DefaultSettings::default()
            };
            let mut solver = DefaultSolver::new(&quadratic, &self.cost, &matrix, &self.bounds, &self.cones, settings)
                .map_err(|_| SolveError::Inaccurate)?;
            solver.solve();
            match solver.solution.status {
                SolverStatus::Solved | SolverStatus::AlmostSolved => {
                    return Ok(Point { values: solver.solution.x, duals: solver.solution.z });
                }
                SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => {
                    return Err(SolveError::Infeasible);
                }
                SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => return Err(SolveError::Unbounded),
                _ => {}
            }
        }
        Err(SolveError::Inaccurate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_program_and_its_prices() {
        // max x + y with x <= 1, x + 2y <= 3: x = 1, y = 1; duals 1/2 and 1/2.
        let mut program = Program::new(2);
        program.maximise(0, 1.0);
        program.maximise(1, 1.0);
        let first = program.at_most(&[(0, 1.0)], 1.0);
        let second = program.at_most(&[(0, 1.0), (1, 2.0)], 3.0);
        let point = program.solve().unwrap();
        assert!((point.values[0] - 1.0).abs() < 1e-8 && (point.values[1] - 1.0).abs() < 1e-8);
        assert!((point.duals[first] - 0.5).abs() < 1e-8 && (point.duals[second] - 0.5).abs() < 1e-8);
    }

    #[test]
    fn squares_and_equalities() {
        // max 2x - (3/2) x^2 + y - (1/2) y^2 with x + y = 1: 2 - 3x = 1 - y = x, so x = 1/2; and with x <= 1/4 that.
        let with_limit = |limit: Option<f64>| {
            let mut program = Program::new(2);
            for (variable, slope, curvature) in [(0, 2.0, 3.0), (1, 1.0, 1.0)] {
                program.maximise(variable, slope);
                program.bend(variable, curvature);
            }
            program.equal(&[(0, 1.0), (1, 1.0)], 1.0);
            if let Some(limit) = limit {
                program.at_most(&[(0, 1.0)], limit);
            }
            program.solve().unwrap().values
        };
        assert!(with_limit(None).iter().all(|value| (value - 0.5).abs() < 1e-8));
        assert!(with_limit(Some(0.25)).iter().zip([0.25, 0.75]).all(|(value, want)| (value - want).abs() < 1e-8));
    }

    #[test]
    fn programs_without_an_optimum_say_so() {
        let mut unbounded = Program::new(1);
        unbounded.maximise(0, 1.0);
        unbounded.nonnegative(0);
        assert_eq!(unbounded.solve().unwrap_err(), SolveError::Unbounded);
        let mut infeasible = Program::new(1);
        infeasible.nonnegative(0);
        infeasible.at_most(&[(0, 1.0)], -1.0);
        assert_eq!(infeasible.solve().unwrap_err(), SolveError::Infeasible);
    }

    #[test]
    fn cones_are_those_of_the_documentation() {
        // max t with e^t <= 2: t = ln 2.
        let mut program = Program::new(1);
        program.maximise(0, 1.0);
        program.within(Cone::Exponential, [(&[(0, 1.0)], 0.0), (&[], 1.0), (&[], 2.0)]);
        assert!((program.solve().unwrap().values[0] - 2.0_f64.ln()).abs() < 1e-8);
        // max t with 8^(1/3) 1^(2/3) >= t: t = 2.
        let mut program = Program::new(1);
        program.maximise(0, 1.0);
        program.within(Cone::Power(1.0 / 3.0), [(&[], 8.0), (&[], 1.0), (&[(0, 1.0)], 0.0)]);
        assert!((program.solve().unwrap().values[0] - 2.0).abs() < 1e-8);
    }
}
