//! Fluid models of window-based controllers: equations 10 to 13 and Table II of TCCC (s4), after Peng et al.
//! (ToN 2016).
//!
//! ```text
//! dx_r/dt = k_r(x) (phi_r(x) - q_r)+     q_r = loss of the subflow + sum of the prices of its links     (10)
//! dp_l/dt = gamma (y_l - c_l)+           y_l = load of the link                                         (11)
//! k_r = x_r/rtt_r D_r,  phi_r = I_r/D_r  I_r: window gained per ACK, D_r: window lost per loss          (12)
//! ```
//!
//! `(a)+` stops at the edge: a window is at least [`MIN_WINDOW`], a price is not negative.
//!
//! * [`Algorithm`] has `I`, `D`, `k` and `phi` of each control law, and compares laws by friendliness (Theorem 1).
//! * [`System`] is a network with a law for each connection. [`System::equilibrium`] finds where it rests,
//!   [`System::response`] how fast it returns there (Theorem 2), [`System::integrate`] follows it in time.
//!
//! Inside, rates are in packets per second, windows in packets, times in seconds, prices are probabilities of loss.
//! Round-trip times are constants: what queues add must be in them.

mod algorithm;
mod equilibrium;
mod integrate;
mod response;
mod system;

pub use algorithm::{Algorithm, State};
pub use equilibrium::Equilibrium;
pub use integrate::Sample;
pub use response::Response;
pub use system::{FluidError, MAX_STATES, MIN_WINDOW, System};
