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
pub mod balia;
pub mod bbr;
pub mod bbr3;
pub mod controller;
pub mod coupled;
pub mod cubic;
pub mod event;
pub mod ewtcp;
pub mod hoe;
pub mod hystart;
pub mod hystart_classic;
pub mod lia;
pub mod lisa;
pub mod monitor;
pub mod mp_ol;
pub mod mpcc;
pub mod mpcc_connection;
pub mod nmcc;
pub mod olia;
pub mod omega;
mod penalty;
pub mod per_ack;
pub mod registry;
pub mod reno;
pub mod round;
pub mod sbd;
pub mod sbd_ecn;
pub mod seeds;
pub mod semicoupled;
pub mod slow_start;
pub mod targeted;
pub mod tccc;
pub mod timers;
pub mod uncoupled;
pub mod uni_mptcp;
pub mod vegas;
pub mod vivace;
pub mod wvegas;

pub use controller::{CongestionControl, Limits, PathController, Probe, SubflowInit};
pub use event::{Acked, Event, PathReport};
pub use registry::{Algorithm, algorithms, create, create_seeded, sends_by_rate};
pub use seeds::Seeds;
pub use uncoupled::Uncoupled;
