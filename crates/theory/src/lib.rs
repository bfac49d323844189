//! The theory that checks the controllers: what a network's connections should get, and what a control law gives them.
//!
//! | module | question | source |
//! |---|---|---|
//! | [`mod@lmmf`] | Which allocation is lexicographically max-min fair? | MPCC, s4 |
//! | [`num`] | Which allocation maximises a sum of utilities, and at which prices? | Uni-MPTCP, eqs. 14, 15 |
//! | [`uni`] | What does a weight buy on two paths? | Uni-MPTCP, Table I |
//! | [`fluid`] | Where does a control law come to rest, how friendly is it, how fast? | TCCC, eqs. 10 to 16, Table II |
//! | [`buffers`] | How much buffer do two paths need? | STMS, eqs. 1 to 4 |
//!
//! All of them read a [`Network`] (or two paths); [`scenario`] makes one of a scenario file. Rates, times and sizes are the
//! types of `manypath-core` wherever a caller meets them; inside, equations are in `f64`.
//!
//! # Example
//!
//! Two connections: one over links 0 and 1, one over link 1 alone. Each gets 100 Mbit/s, and link 1 is left to the one that
//! has nothing else.
//!
//! ```
//! use manypath_core::Rate;
//! use manypath_theory::{Connection, Network, lmmf};
//!
//! let links = vec![Rate::from_mbps(100.0); 2];
//! let network = Network::new(links, vec![Connection::over(&[[0], [1]]), Connection::over(&[[1]])])?;
//! let totals = lmmf(&network)?.totals();
//! assert!(totals.iter().all(|total| (total.as_mbps() - 100.0).abs() < 1e-3));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Dependencies
//!
//! * `manypath-core`: units. `manypath-scenario` and `manypath-link`: what a scenario file says.
//! * `clarabel` 0.11 (Apache-2.0; since 2022; last release November 2025; University of Oxford): an interior-point solver
//!   in plain Rust for linear programs and for exponential and power cones, so that one solver serves both fairness and
//!   utility. Without BLAS; its feature `serde` is on because release 0.11.1 does not compile without it. A simplex
//!   solver such as `microlp` (Apache-2.0) would do for fairness alone, and brings `ndarray` and `sprs`.
//! * `nalgebra` 0.35 (Apache-2.0; since 2013; last release May 2026): LU decomposition and eigenvalues of dense
//!   matrices that are not symmetric.
//! * `differential-equations` 0.7 (Apache-2.0; last release October 2026): Runge-Kutta methods with step control and dense
//!   output. The older `ode_solvers` 0.6 depends, through an old `nalgebra`, on `paste`, which is no longer maintained.
//!   `diffsol` is made for large stiff systems and brings a compiler of its own.
//! * `thiserror`: writes the `Display` and `Error` code of the error types.

pub mod buffers;
mod conic;
pub mod fluid;
pub mod lmmf;
pub mod network;
pub mod num;
pub mod scenario;
pub mod uni;

pub use conic::SolveError;
pub use lmmf::lmmf;
pub use network::{Allocation, Connection, Network, NetworkError, Subflow};
