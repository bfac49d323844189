//! The link model: one direction of one link, without sockets, clocks or threads.
//!
//! A [`Link`] answers one question, once per packet: *when does this packet come out at the other end, if at all?* The
//! FIFO queue is computed, not simulated: service times are integrated over the rate schedule (or the trace) that is known
//! in advance, so a packet costs one call to [`Link::enqueue`] and no further event. The simulator calls it in virtual time,
//! the emulator in real time.
//!
//! # What happens to a packet, in this order
//!
//! 1. Random or bursty loss, at the entrance of the link: a packet lost there uses no capacity and no queue space.
//! 2. RED, if configured: an early drop or a CE mark by the average queue.
//! 3. Drop-tail: the packet must fit within the queue limit together with everything that has not left yet. The packet
//!    that is being transmitted counts until its last bit has left.
//! 4. The ECN threshold, if configured: CE if the packet found more than the threshold in the queue.
//! 5. Transmission in FIFO order at the rate in force, which may change in mid-packet, or at the delivery opportunities of
//!    a Mahimahi trace.
//! 6. Propagation delay and jitter, as set at the moment when the packet's last bit leaves the queue. Order is kept unless
//!    [`LinkConfig::reorder`] is set: a packet never arrives before an earlier one, also when the delay shrinks.
//!
//! # What a packet's size is
//!
//! The size on the wire from the IP header on: payload + 8 (UDP) + 20 (IPv4) or 40 (IPv6) bytes, given by the caller. Link
//! framing (Ethernet's 38 bytes) does not count, as in the papers and in Mahimahi, whose opportunities are 1500-byte IP
//! packets. A packet counts at least one byte.
//!
//! # Determinism
//!
//! A link is a pure function of its configuration, seed, name, and calls. Loss, jitter and RED draw from separate
//! generators, so that turning one on does not change what another does. Times in schedules and traces count from the
//! engine's epoch, [`Time::ZERO`](manypath_core::Time::ZERO).
//!
//! # Dependencies
//!
//! * `manypath-core`: units and time.
//! * `rand_xoshiro` (Xoshiro256++) and `rand_core` (its trait): small, fast, seedable generators.
//! * `libm`: powers and logarithms that are the same on every platform (RED's average over idle time, exponential spans).
//! * `thiserror`: writes the `Display` and `Error` code of the error types.
//!
//! The crate `netem-trace` reads Mahimahi traces too, but turns them into bandwidth patterns (which loses the opportunities)
//! and brings a dozen dependencies; the parser here is a page.

mod config;
mod counters;
mod ecn;
mod link;
mod loss;
mod random;
mod red;
mod service;
mod steps;
mod trace;
mod waiting;

pub use config::{
    Capacity, Change, ConfigError, LinkConfig, MAX_CHANGES, MAX_DELAY, MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS,
    MAX_RATE_BPS, MIN_RATE_BPS, QueueLimit,
};
pub use counters::{Backlog, Count, Counters, Drops};
pub use ecn::Ecn;
pub use link::{DropCause, Link, Verdict};
pub use loss::{GilbertElliott, Loss};
pub use random::{exponential, generator, uniform};
pub use red::Red;
pub use trace::{MAX_TRACE_LINES, MAX_TRACE_MS, OPPORTUNITY, Trace, TraceError};
