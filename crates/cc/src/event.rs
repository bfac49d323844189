//! Facts that the session tells a controller. One type, so that the same events are logged, replayed, fuzzed, and fed to
//! another implementation of the same algorithm.

use manypath_core::{Bytes, Duration, PacketNumber, Rate, Time};

/// Something that happened on one subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A data packet left.
    Sent {
        /// Its number on the subflow.
        packet: PacketNumber,
        /// Its size.
        bytes: Bytes,
        /// Whether there was nothing more to send after it although the window had room.
        app_limited: bool,
    },
    /// A data packet was acknowledged; once per packet.
    Acked(Acked),
    /// A data packet was declared lost; once per packet. Controllers that count losses use it, the others use
    /// [`Event::Congestion`].
    Lost {
        /// Its number on the subflow.
        packet: PacketNumber,
        /// Its size.
        bytes: Bytes,
        /// When it had left.
        sent_at: Time,
    },
    /// A loss began a recovery episode: once per round trip at most (RFC 9002 s7.3.2). The view's `in_flight` is the
    /// amount before the lost packets are taken off.
    Congestion {
        /// When the first lost packet of the episode had left.
        sent_at: Time,
    },
    /// A congestion mark (ECN CE) began a recovery episode: once per round trip at most, exclusive with `Congestion`.
    Ecn {
        /// When the marked packet had left.
        sent_at: Time,
    },
    /// A retransmission timeout: nothing was heard for `srtt + 4 rttvar` and everything in flight is given up
    /// (RFC 5681 s3.1, persistent congestion of RFC 9002 s7.6). Those that follow while nothing is heard, with their backoff,
    /// say nothing new and are not told.
    Timeout {
        /// The controller was told of this loss before, by a timeout after which nothing was acknowledged (RFC 5681 s3.1) or by
        /// the episode of recovery that is not over yet (RFC 9002 appendix B.8, Linux): the threshold set then is held.
        repeated: bool,
    },
    /// The subflow is used again: it is heard after a timeout for which its data was given to others, or it had failed.
    Restored,
    /// The scheduler penalises the subflow for holding up the connection (Raiciu et al. 2012, mechanism M2).
    Penalised,
    /// The receiver's one-way-delay measurements (RFC 8382).
    PathReport(PathReport),
    /// The user gives the subflow this weight, above zero (Uni-MPTCP: the user-space interface to `omega`). Controllers
    /// without weights ignore it.
    Weight(f64),
}

/// An acknowledged packet, with what its acknowledgement measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Its number on the subflow.
    pub packet: PacketNumber,
    /// Its size.
    pub bytes: Bytes,
    /// When it had left.
    pub sent_at: Time,
    /// The round-trip time this packet measured.
    pub rtt: Duration,
    /// Delivery rate over the packet's flight (draft-ietf-ccwg-bbr s4.1); zero when it could not be measured.
    pub delivery_rate: Rate,
    /// The subflow's `delivered` when the packet left: a round trip ends when this passes the `delivered` of its start.
    pub delivered_at_send: Bytes,
    /// Whether the packet left before the recovery episode under way began: window-based controllers do not grow on it
    /// (RFC 9002 s7.3.2).
    pub in_recovery: bool,
    /// Whether something else than the window limited sending: the window was not filled since the packet left, and there was
    /// nothing more to send then, or less than half of the window is in flight (the carrier or the receiver is the limit). Window-based controllers do not grow on it (RFC 9002 s7.8). Rate filters look at
    /// the view's `rate_app_limited` instead.
    pub app_limited: bool,
}

/// One-way delay and loss over one reporting interval, measured at the receiver (RFC 8382 s3).
///
/// Delays are relative to an unknown clock offset that is constant within a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathReport {
    /// Number of packets in the interval.
    pub samples: u32,
    /// Length of the interval (RFC 8382's T).
    pub interval: Duration,
    /// Mean one-way delay in seconds, up to a constant.
    pub mean_delay: f64,
    /// Sum of the signs of `mean of the last M intervals - sample` (RFC 8382 s3.2.1 `skew_base_T`).
    pub skew_base: i32,
    /// Sum of `|sample - mean of the previous interval|` in seconds (RFC 8382 s3.2.2 `var_base_T`).
    pub var_base: f64,
    /// Packets known to be missing in the interval.
    pub lost: u32,
    /// Packets that arrived with a congestion mark.
    pub marked: u32,
}
