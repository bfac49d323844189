//! Links in real time, in two ways: a UDP relay inside the process ([`Relay`]), which needs no privileges, and TUN devices
//! between network namespaces ([`tun`]), which any program can use and root must set up.
//!
//! The relay carries datagrams through two [`manypath_link`] models, one in each direction:
//!
//! ```text
//! client A ─┐                                ┌─ socket of A ─┐
//! client B ─┼─> listen ── forward link ──────┼─ socket of B ─┼─> target
//!           <──────────── backward link ─────┘               ┘
//! ```
//!
//! All clients share the two links, as they would share an access line. Each client address gets a socket of its own towards
//! the target, so the target sees them apart, and what comes back finds its client. ECN bits are carried over, and set to CE
//! where the link says so.
//!
//! # Time
//!
//! One thread does everything: it sleeps in `epoll` until a datagram comes or a timer (`timerfd`, with a timer slack of one
//! nanosecond) says that one is due. A datagram arrives when the relay reads it. The scheduling error is the time from the
//! moment when the link model lets a datagram out to the moment when the kernel has taken it; it is recorded for every
//! datagram ([`DirectionStats::scheduling_error`]).
//!
//! Waking up takes time, so the timer fires a little early, by as much as waking has taken lately, and the rest is spun away (at
//! most 100 us). What no program can help without privileges is that others have the processor. The thread asks for the
//! lowest real-time priority and goes on without it if that is refused ([`RelayStats::realtime`]): with it, 99% of the
//! datagrams are well within 100 us on a fully loaded machine; without it, only while a processor is free.
//!
//! On a virtual machine with little to do, waking up takes longest: processors that sleep belong to the host, which is in no hurry to
//! return them. [`Awake`] keeps them from sleeping.
//!
//! # What a datagram's size is
//!
//! Its payload plus 28 bytes of IPv4 and UDP headers, or 48 of IPv6 and UDP, by the family of the target.
//!
//! # Memory
//!
//! What waits and what propagates is held in memory, at most [`RelayConfig::memory_limit`] per direction, whatever the links
//! and the senders do.
//!
//! # Dependencies
//!
//! * `manypath-core`, `manypath-link`, `manypath-scenario`: units, the model that decides everything, and what TUN mode emulates.
//! * `noq-udp`: sends and receives datagrams with their ECN bits, in batches, through a safe interface; `noq` brings it
//!   anyhow.
//! * `preempt-rt`: real-time priority, and the lowest, without `unsafe`.
//! * `rustix`: `epoll`, `timerfd`, `eventfd`, timer slack, thread CPU time, namespaces and netlink sockets, nearly without
//!   `unsafe`.
//! * `tun-rs`: makes TUN devices; without the parts that manage addresses.
//! * `netlink-packet-core`, `netlink-packet-route`: the messages that set addresses, routes and rules. The program `ip` would need
//!   to be installed, and `rtnetlink` an asynchronous runtime for a dozen requests in a row.
//! * `hdrhistogram`: the distribution of the scheduling error in bounded memory; without its serialization features.
//! * `thiserror`: writes the `Display` and `Error` code of the error types.

mod awake;
mod buffer;
mod clients;
mod clock;
mod config;
mod direction;
mod engine;
mod port;
mod priority;
mod relay;
mod stats;
mod system;
pub mod tun;
mod wait;

pub use awake::Awake;
pub use config::{DirectionName, MEMORY_CEILING, RelayConfig, RelayError};
pub use relay::Relay;
pub use stats::{DirectionStats, MeasuredRate, RelayStats, SchedulingError};
pub use system::SystemError;
