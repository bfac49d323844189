//! What a user may set, with defaults that fit two home uplinks.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use manypath_core::{AlgorithmSpec, Bytes, Duration, Priority};
use manypath_session::TracerSource;

use crate::identity::Identity;
use crate::tls::Trust;

/// How a session moves its data. Each endpoint has its own; only windows and limits are told to the peer.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Congestion controller, from the registry of `manypath_cc`.
    pub cc: AlgorithmSpec,
    /// Packet scheduler, from the registry of `manypath_sched`.
    pub sched: AlgorithmSpec,
    /// Seed of the controller's randomness; `None` draws one from the operating system.
    pub seed: Option<u64>,
    /// The most bytes kept for the peer, over all flows: written and not yet acknowledged.
    pub send_buffer: Bytes,
    /// The most bytes kept for the application, over all flows: received and not yet read.
    pub receive_window: Bytes,
    /// The same for one flow.
    pub flow_window: Bytes,
    /// The most flows the peer may have open at once.
    pub max_flows: u32,
    /// How long a session lives without any path.
    pub linger: Duration,
    /// The largest UDP payload that MTU discovery tries.
    pub max_mtu: u16,
    /// Who is told every scheduling decision of this side; nobody: `None`.
    pub tracers: Option<Arc<dyn TracerSource>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            cc: AlgorithmSpec::named("cubic"),
            sched: AlgorithmSpec::named("arrival-order").with("rescue", "on"),
            seed: None,
            send_buffer: Bytes::new(16 << 20),
            receive_window: Bytes::new(16 << 20),
            flow_window: Bytes::new(16 << 20),
            max_flows: 256,
            linger: Duration::from_secs(60),
            max_mtu: 1452,
            tracers: None,
        }
    }
}

/// A server's settings.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Addresses to listen on; port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// The certificate shown to clients.
    pub identity: Identity,
    /// What a client must present to open a session; `None` lets everybody in.
    pub token: Option<String>,
    /// How data moves.
    pub transport: TransportConfig,
    /// Whether a client may choose the algorithms that its session sends with, among those that exist.
    pub allow_choice: bool,
    /// The most sessions at once; further ones are refused.
    pub max_sessions: usize,
    /// The most paths of one session; further joins are refused.
    pub max_paths_per_session: u32,
    /// The longest a session may last, whatever it does.
    pub session_lifetime: Duration,
    /// How long a connection may take to open or join a session.
    pub handshake_timeout: Duration,
    /// The most connections at once that have not yet opened or joined a session. A quarter of them may come from one IPv4
    /// address, or one IPv6 network of 64 bits.
    pub max_half_open: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([0, 0, 0, 0], 0))],
            identity: Identity::Ephemeral,
            token: None,
            transport: TransportConfig::default(),
            allow_choice: true,
            max_sessions: 1024,
            max_paths_per_session: 8,
            session_lifetime: Duration::from_secs(24 * 3600),
            handshake_timeout: Duration::from_secs(10),
            max_half_open: 256,
        }
    }
}

/// Where a path leaves this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// Wherever the routing table says.
    #[default]
    Any,
    /// With this source address. The routing table still chooses the interface.
    Address(IpAddr),
    /// By this interface, whatever the routing table says.
    Interface(String),
}

/// One path of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// What statistics call it; unique within a connection.
    pub name: String,
    /// Where it leaves this host.
    pub bind: Bind,
    /// The address to reach the server at on this path, if it is not the client's `server`.
    pub remote: Option<SocketAddr>,
    /// Relative cost of a byte; 1 is usual.
    pub cost: f64,
    /// Everyday path or backup.
    pub priority: Priority,
}

impl PathConfig {
    /// A path of cost 1 for every day.
    pub fn new(name: impl Into<String>, bind: Bind) -> Self {
        Self { name: name.into(), bind, remote: None, cost: 1.0, priority: Priority::Normal }
    }
}

/// How to use a path that is found by itself: an interface with a default route.
#[derive(Clone, Debug, PartialEq)]
pub struct PathTerms {
    /// The interface's name.
    pub name: String,
    /// Relative cost of a byte; 1 is usual.
    pub cost: f64,
    /// Everyday path or backup.
    pub priority: Priority,
}

/// The algorithms that a client would like the server to send with. A server that does not know one, or does not let
/// clients choose, uses its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Congestion controller; `None`: the server's own.
    pub cc: Option<AlgorithmSpec>,
    /// Packet scheduler; `None`: the server's own.
    pub sched: Option<AlgorithmSpec>,
}

/// A client's settings.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server's address.
    pub server: SocketAddr,
    /// How the server proves who it is.
    pub trust: Trust,
    /// What to present if the server asks for a token.
    pub token: Option<String>,
    /// The paths; none: every interface with a default route, as they come and go.
    pub paths: Vec<PathConfig>,
    /// What is known of interfaces before they come, where no paths are given.
    pub terms: Vec<PathTerms>,
    /// How data moves from here.
    pub transport: TransportConfig,
    /// How data should move from the server.
    pub wish: Wish,
    /// How long to try to open the session, over all paths together.
    pub connect_timeout: Duration,
}

impl ClientConfig {
    /// A client of `server` over every interface with a default route.
    pub fn new(server: SocketAddr, trust: Trust) -> Self {
        Self {
            server,
            trust,
            token: None,
            paths: Vec::new(),
            terms: Vec::new(),
            transport: TransportConfig::default(),
            wish: Wish::default(),
            connect_timeout: Duration::from_secs(15),
        }
    }
}
