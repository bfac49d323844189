//! Congestion controllers: how fast may each subflow of a connection send?
//!
//! One object per connection owns the state of all its subflows, because coupling is the point. Controllers are sans-IO:
//! facts come in as [`Event`]s with an explicit `now`, [`Limits`] are read back. Single-path algorithms implement the
//! smaller [`PathController`]; [`Uncoupled`] lifts them.
//!
//! One algorithm, one file; [`registry`] lists them all.
//!
//! Dependencies: `libm` for powers, logarithms and roots that agree on every machine; `rand_xoshiro` and `rand_core` for
//! seeded randomness (the order of probes); `thiserror` for error types.

pub mod aimd;
pub mod ascent;
pub mod controller;
pub mod cubic;
pub mod event;
pub mod lia;
pub mod monitor;
pub mod mpcc;
pub mod registry;
pub mod reno;
pub mod round;
pub mod seeds;
pub mod uncoupled;

pub use controller::{CongestionControl, Limits, PathController, Probe, SubflowInit};
pub use event::{Acked, Event, PathReport};
pub use registry::{Algorithm, algorithms, create, create_seeded};
pub use seeds::Seeds;
pub use uncoupled::Uncoupled;
