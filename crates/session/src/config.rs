//! What a session is told when it is made.

use manypath_core::{Bytes, Duration, Priority};

use crate::record::DATA_HEADER;

/// The most paths a session handles: subflows are marked in 64-bit sets.
pub const MAX_PATHS: u32 = 64;

/// Which end of the connection this is: it decides whose flow ids are even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opened the session; opens even flows.
    Client,
    /// Accepted the session; opens odd flows.
    Server,
}

/// What the peer allows, as it said when the session opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// The peer's connection window: how much it keeps for reading later.
    pub receive_window: Bytes,
    /// The peer's window for each new flow.
    pub flow_window: Bytes,
    /// How many flows may be open at once.
    pub max_flows: u32,
}

/// What carriers do with the packets of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// They may lose them, and say so: the session decides on which path lost data is sent again, and watches that paths
    /// answer. QUIC datagrams.
    Datagrams,
    /// They deliver them in the order of their first transmissions, whatever it takes: what is lost is sent again on its own
    /// path, and the carrier keeps the retransmission timer and says when an episode of recovery begins and ends. The
    /// acknowledgements of the carrier take those of the session along. TCP.
    Streams,
}

/// A session's parameters. The default suits a QUIC carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// What the carriers do.
    pub carriage: Carriage,
    /// What a data record adds to its payload, as windows count it.
    pub record_header: Bytes,
    /// The most data admitted and not acknowledged: bounds the sender's memory.
    pub send_buffer: Bytes,
    /// The most data received and not consumed, over all flows: bounds the receiver's memory.
    pub receive_window: Bytes,
    /// The most data received and not consumed, per flow.
    pub flow_window: Bytes,
    /// How many flows the peer may have open at once.
    pub max_flows: u32,
    /// How many paths may be open at once; at most [`MAX_PATHS`].
    pub max_paths: u32,
    /// A data acknowledgement covers this many records at least when nothing is unusual.
    pub records_per_ack: u32,
    /// It leaves no sooner than this after the last one on its path when nothing is unusual, and covers what has come meanwhile.
    pub ack_interval: Duration,
    /// The longest that a received record waits for its acknowledgement.
    pub max_ack_delay: Duration,
    /// A path idle for this long is probed.
    pub keep_alive: Duration,
    /// How late the engine's timers are: a paced subflow may catch up by this much at once.
    pub pacing_burst: Duration,
    /// Whether windows that the controller does not pace leave at 1.25 of them a round trip (RFC 9002 s7.7), in place of as
    /// acknowledgements come: these come in bunches where receivers, links or late timers gather them, and what leaves as a bunch
    /// is lost in shallow queues.
    pub pace_windows: bool,
    /// The initial window in packets (RFC 6928).
    pub initial_window_packets: u64,
    /// The slow-start threshold before the first loss, in packets; `None`: none.
    pub initial_ssthresh_packets: Option<u64>,
    /// What the peer allows.
    pub peer: PeerLimits,
}

impl Config {
    /// The defaults for one end, against a peer with the same defaults.
    pub fn new(role: Role) -> Self {
        let (receive_window, flow_window, max_flows) = (Bytes::new(16 << 20), Bytes::new(16 << 20), 256);
        Self {
            role,
            carriage: Carriage::Datagrams,
            record_header: DATA_HEADER,
            send_buffer: Bytes::new(16 << 20),
            receive_window,
            flow_window,
            max_flows,
            max_paths: 16,
            records_per_ack: 2,
            ack_interval: Duration::ZERO,
            max_ack_delay: Duration::from_millis(5),
            keep_alive: Duration::from_secs(15),
            pacing_burst: Duration::from_micros(500),
            pace_windows: true,
            initial_window_packets: 10,
            initial_ssthresh_packets: None,
            peer: PeerLimits { receive_window, flow_window, max_flows },
        }
    }
}

/// A path that joins a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathInit {
    /// The largest record, header included, that the carrier takes.
    pub max_datagram: Bytes,
    /// Relative cost of a byte.
    pub cost: f64,
    /// Everyday path or backup.
    pub priority: Priority,
    /// The round trip of the carrier's handshake, if it is known: sets the timeout until data has measured one.
    pub handshake_rtt: Option<Duration>,
}

impl PathInit {
    /// An everyday path of cost one.
    pub const fn new(max_datagram: Bytes) -> Self {
        Self { max_datagram, cost: 1.0, priority: Priority::Normal, handshake_rtt: None }
    }
}
