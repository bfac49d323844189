//! Packet schedulers: which data goes on which subflow next?
//!
//! One object per connection. Schedulers are sans-IO and read-only: they see the subflows ([`View`](manypath_core::View))
//! and the send [`Queue`], and return a [`Choice`]; the session carries it out. Opportunistic copies (duplication,
//! opportunistic retransmission) and penalisation are their decisions alone; data that is lost anyway stands in the queue's
//! lost set and [`Queue::head`] offers it first.
//!
//! One algorithm, one file; [`registry`] lists them all.

pub mod arrival_order;
pub mod backup;
pub mod blest;
pub mod daps;
pub mod ecf;
pub mod linux_default;
pub mod minrtt;
pub mod minrtt_pr;
mod opportunistic;
pub mod queue;
pub mod rate_based;
mod reason;
pub mod redundant;
pub mod registry;
mod rescue;
pub mod round_robin;
pub mod scheduler;
mod silence;
pub mod stms;
#[cfg(test)]
mod testing;

pub use queue::{Content, Queue, Segment};
pub use registry::{Algorithm, algorithms, create};
pub use scheduler::{Choice, DataAck, Scheduler};
