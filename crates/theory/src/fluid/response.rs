//! How fast a system returns to where it rests: Theorem 2 of TCCC.

use nalgebra::{DMatrix, Schur};

use super::equilibrium::{Equilibrium, log_slopes};
use super::system::{FluidError, System};

/// Accuracy and number of iterations of the eigenvalue search.
const SCHUR: (f64, usize) = (1e-13, 10_000);

/// The eigenvalues of the Jacobian `J*` of equations 10 and 11 at an equilibrium.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Real and imaginary parts in 1/s, the largest real part first.
    pub eigenvalues: Vec<(f64, f64)>,
}

impl Response {
    /// The largest real part in 1/s, which equation 13 expresses by the symmetric part of the derivative of `phi`: the more
    /// negative, the more responsive. Near zero where the law leaves something open, as the split over equal paths.
    pub fn slowest(&self) -> f64 {
        self.eigenvalues[0].0
    }
}

impl System {
    /// How the system responds near `equilibrium`; `gamma` is the speed of the links' prices in equation 11, in probability
    /// per packet above capacity. Subflows at their floor and links without a price do not move and are left out.
    ///
    /// # Errors
    /// If the equilibrium is not of this system, `gamma` is not positive, or the eigenvalues are not found.
    pub fn response(&self, equilibrium: &Equilibrium, gamma: f64) -> Result<Response, FluidError> {
        if !(gamma.is_finite() && gamma > 0.0) {
            return Err(FluidError::Gamma { gamma });
        }
        let (subflows, links) = (self.subflows(), self.capacities.len());
        let Equilibrium { x, p, at_floor, .. } = equilibrium;
        if x.len() != subflows || p.len() != links {
            return Err(FluidError::Start);
        }
        let moving = (0..subflows).filter(|&r| !at_floor[r]);
        let priced = (0..links).filter(|&link| p[link] > 0.0).map(|link| subflows + link);
        let kept: Vec<usize> = moving.chain(priced).collect();
        if kept.is_empty() {
            return Err(FluidError::NoEigenvalues);
        }
        let full = self.jacobian(equilibrium, gamma);
        let jacobian = DMatrix::from_fn(kept.len(), kept.len(), |row, column| full[(kept[row], kept[column])]);
        // The iteration may go round in circles where connections are exactly alike; the same system with its equations in the
        // opposite order has the same eigenvalues and takes another course.
        let size = kept.len();
        let reversed = DMatrix::from_fn(size, size, |row, column| jacobian[(size - 1 - row, size - 1 - column)]);
        let schur = Schur::try_new(jacobian, SCHUR.0, SCHUR.1);
        let schur = schur.or_else(|| Schur::try_new(reversed, SCHUR.0, SCHUR.1)).ok_or(FluidError::NoEigenvalues)?;
        let mut eigenvalues: Vec<(f64, f64)> =
            schur.complex_eigenvalues().iter().map(|value| (value.re, value.im)).collect();
        eigenvalues.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)));
        Ok(Response { eigenvalues })
    }

    /// The derivatives of equations 10 and 11, for rates and prices in units of their values at the equilibrium (which
    /// leaves eigenvalues as they are).
    fn jacobian(&self, equilibrium: &Equilibrium, gamma: f64) -> DMatrix<f64> {
        let subflows = self.subflows();
        let Equilibrium { x, p, .. } = equilibrium;
        let k = self.by_subflow(x, |algorithm, state| algorithm.gains(state));
        let phi = self.by_subflow(x, |algorithm, state| algorithm.prices(state));
        let size = subflows + self.capacities.len();
        let mut jacobian = DMatrix::zeros(size, size);
        for (connection, range) in self.ranges.iter().enumerate() {
            let mut state = self.state(connection, x);
            for column in range.clone() {
                let slopes =
                    log_slopes(&mut state, column - range.start, |state| self.algorithms[connection].prices(state));
                for (row, slope) in range.clone().zip(slopes) {
                    // At rest phi = q, so that only phi's derivative is left: k_r dphi_r/dx_k * x_k/x_r.
                    jacobian[(row, column)] = k[row] / x[row] * phi[row] * slope;
                }
            }
        }
        for (r, route) in self.routes.iter().enumerate() {
            for &link in route.iter().filter(|&&link| p[link] > 0.0) {
                jacobian[(r, subflows + link)] = -k[r] * p[link] / x[r];
                jacobian[(subflows + link, r)] = gamma * x[r] / p[link];
            }
        }
        jacobian
    }
}
