//! Links in real time between two network namespaces, for any program: one TUN device a path at each side, and a thread
//! between them that carries IP packets through the models of a scenario's links.

mod background;
pub mod check;
mod configure;
mod device;
mod engine;
mod error;
mod links;
mod mptcp;
mod namespace;
mod netlink;
mod packet;
mod plan;
mod stats;

pub use error::TunError;
pub use links::TunLinks;

pub use namespace::Namespace;
pub use plan::{MAX_PATHS, PathPlan, TunConfig};
pub use stats::{LinkStats, PathStats, RouteStats, TunStats};
