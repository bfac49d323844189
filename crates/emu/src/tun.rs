//! Links in real time between two network namespaces, for any program: one TUN device a path at each side, and a thread
//! between them that carries IP packets through the models of a scenario's links.
//!
//! ```text
//! client's namespace                                              server's namespace
//!   path1 10.1.0.1 ──> link a ──> link b ──────────────────────────> path1 10.1.0.2
//!         10.1.0.1 <── link b/back <── link a/back ──────────────────      10.1.0.2
//!   path2 10.2.0.1 ──> link c ──> link b ──────────────────────────> path2 10.2.0.2
//! ```
//!
//! # Which path a packet takes
//!
//! The client's address in it decides, in both directions. At the server that is an ordinary route; at the client a routing rule
//! for each source address, since by itself a source address does not choose the device that a packet leaves by. So a subflow of
//! Multipath TCP from 10.2.0.1 to 10.1.0.2, which is what the kernel's path manager opens, takes the second path both ways.
//!
//! # What a packet's size is
//!
//! The length of the IP packet, plus [`TunConfig::overhead`]. The kernel cuts what programs send into packets of the MTU before they
//! are read from the device, so the links see packets as a wire would.
//!
//! # Time
//!
//! As in the relay, but without spinning: the thread is woken when a packet is due, which costs some 30 us of delay, instead of a
//! third of the processor time. When a packet is handed to a device, the kernel does the whole work of receiving it, up to TCP's
//! acknowledgement, before it comes back: that is the larger part of the thread's processor time. [`check`] measures all this.
//!
//! # What is left behind
//!
//! Nothing. The namespaces have no names and the devices are not persistent; they go with the process, however it ends.

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
