//! What a connection tells about itself.

use std::net::SocketAddr;

use manypath_core::{Bytes, Duration, Priority, Rate, SubflowId};

/// What a path is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// A client's path that is not up yet, or went down and is being tried again.
    Connecting,
    /// It carries data.
    Active,
    /// Nothing is heard on it; it is probed until something is.
    Failed,
    /// A client's path that was taken away, or whose interface leads out no more. What it carried counts on if it comes
    /// back.
    Removed,
}

/// One path. Counters go on over reconnections of a client's path, and over its removal and return.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The subflow, while there is one.
    pub id: Option<SubflowId>,
    /// The client's name for it; on a server, the client's address.
    pub name: String,
    /// This end's address, as far as known.
    pub local: Option<SocketAddr>,
    /// The other end's address.
    pub remote: SocketAddr,
    /// What it is doing.
    pub state: PathState,
    /// Everyday path or backup.
    pub priority: Priority,
    /// Relative cost of a byte.
    pub cost: f64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Sent and neither acknowledged nor lost.
    pub in_flight: Bytes,
    /// Pacing rate; `None` when clocked by acknowledgements.
    pub pacing: Option<Rate>,
    /// Payload bytes sent in data records, repeated ones too.
    pub bytes_sent: Bytes,
    /// Payload bytes received in data records, repeated ones too.
    pub bytes_received: Bytes,
    /// Data records sent.
    pub records_sent: u64,
    /// Data records declared lost.
    pub records_lost: u64,
    /// Data records received.
    pub records_received: u64,
    /// Why the last attempt to bring the path up failed, in words.
    pub last_error: Option<String>,
}

/// A connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionStats {
    /// Its paths, in the order they were added. A client's stay where they are, also when they are removed.
    pub paths: Vec<PathStats>,
    /// Payload bytes that the application wrote.
    pub written: Bytes,
    /// What the peer's session acknowledged: payload bytes, and one for the end of each flow.
    pub delivered: Bytes,
    /// Payload bytes that arrived for the first time.
    pub received: Bytes,
    /// Payload bytes that arrived again.
    pub received_again: Bytes,
    /// Payload bytes that this end sent again, because they were lost or as copies.
    pub retransmitted: Bytes,
    /// Payload bytes that this end sent twice because the scheduler wished so.
    pub duplicated: Bytes,
    /// Memory held for bytes written and not acknowledged.
    pub send_memory: Bytes,
    /// Memory held for bytes received and not read.
    pub receive_memory: Bytes,
}
