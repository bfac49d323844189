//! What a relay is given, and what can go wrong when it starts.

use std::fmt;
use std::net::SocketAddr;

use manypath_core::{Bytes, Duration};
use manypath_link::{ConfigError, LinkConfig, QueueLimit};

use crate::system::SystemError;

/// The most memory that a direction holds datagrams in by default: 256 MiB.
pub const MEMORY_CEILING: Bytes = Bytes::new(256 << 20);

/// The largest UDP datagram with its headers, for queue limits in packets.
const LARGEST_PACKET: u64 = 65_535;
/// Room beyond the estimate of [`RelayConfig::new`], for bursts of a trace.
const SPARE: Bytes = Bytes::new(1 << 20);
/// The memory that a packet needs at most for each of its bytes on the wire: the smallest has 20, an IP header, which are held in up to
/// twice as much (see [`crate::buffer`]), with 128 of bookkeeping.
const MEMORY_PER_BYTE: u64 = 9;

/// A direction of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectionName {
    /// From the clients to the target.
    Forward,
    /// From the target to the clients.
    Backward,
}

impl fmt::Display for DirectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        })
    }
}

/// What a relay is made of.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where clients send to; port 0 takes a free one ([`Relay::local_addr`](crate::Relay::local_addr) tells which).
    pub listen: SocketAddr,
    /// Where datagrams go.
    pub target: SocketAddr,
    /// The link from the clients to the target.
    pub forward: LinkConfig,
    /// The link from the target to the clients.
    pub backward: LinkConfig,
    /// Seed of all randomness.
    pub seed: u64,
    /// The most client addresses at a time. Datagrams of further ones are dropped and counted while no other is idle.
    pub max_clients: usize,
    /// How long a client is silent, in both directions, before its place may be given to another.
    pub client_idle: Duration,
    /// The most memory that each direction holds datagrams in. A datagram that finds no room is dropped and counted.
    pub memory_limit: Bytes,
    /// Whether the relay's thread asks for real-time priority. It is needed for exact times while other programs use all
    /// processors; a relay that its links load fully then takes its share of a processor before they do.
    pub realtime: bool,
}

impl RelayConfig {
    /// A relay for up to 256 clients, idle after two minutes, whose memory limit fits the links: per direction a full queue
    /// and twice what the peak rate puts into the longest delay, also if all packets are as small as can be, with a megabyte to spare,
    /// but no more than [`MEMORY_CEILING`]. It asks for real-time priority.
    pub fn new(listen: SocketAddr, target: SocketAddr, forward: LinkConfig, backward: LinkConfig, seed: u64) -> Self {
        let memory_limit = memory_need(&forward).max(memory_need(&backward)).min(MEMORY_CEILING);
        Self {
            listen,
            target,
            forward,
            backward,
            seed,
            max_clients: 256,
            client_idle: Duration::from_secs(120),
            memory_limit,
            realtime: true,
        }
    }
}

/// The memory that a link's packets need at most.
pub(crate) fn memory_need(link: &LinkConfig) -> Bytes {
    let queue = match link.queue {
        QueueLimit::Bytes(bytes) => bytes * MEMORY_PER_BYTE,
        QueueLimit::Packets(packets) => Bytes::new(LARGEST_PACKET) * packets,
        QueueLimit::Wait(wait) => link.peak_rate() * wait * MEMORY_PER_BYTE,
    };
    queue + link.peak_rate() * link.longest_delay() * (2 * MEMORY_PER_BYTE) + SPARE
}

/// Why a relay did not start or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A link makes no sense.
    #[error("the {direction} link: {source}")]
    Link {
        /// Which link.
        direction: DirectionName,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// `max_clients` is zero.
    #[error("max_clients is zero: at least one client must fit")]
    NoClients,
    /// The operating system refused something.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The relay's thread is gone: it panicked.
    #[error("the relay's thread is gone")]
    Gone,
}
