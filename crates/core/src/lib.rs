//! Manypath's common language: units that carry their dimension, identifiers, the view of a connection's subflows that
//! controllers and schedulers read, round-trip-time estimation, and small statistics.
//!
//! Nothing here knows about sockets, clocks or threads: time is an argument, never a call.
//!
//! Dependencies: `thiserror` writes the `Display` and `Error` code of the error types.

pub mod cache;
pub mod filter;
pub mod ids;
pub mod lateness;
pub mod parse;
pub mod quantity;
pub mod ranges;
pub mod rtt;
pub mod spec;
pub mod time;
pub mod view;

pub use cache::prefetch;
pub use filter::{Ewma, WindowedMax, WindowedMin, jain_index};
pub use ids::{DataSeq, FlowId, PacketNumber, SubflowId};
pub use lateness::Lateness;
pub use parse::ParseUnitError;
pub use quantity::{Bytes, Rate};
pub use ranges::{DataRange, RangeSet};
pub use rtt::RttEstimator;
pub use spec::{AlgorithmSpec, Parameter, Params, SpecError, Status};
pub use time::{Duration, Time};
pub use view::{Priority, SubflowState, SubflowView, View};
