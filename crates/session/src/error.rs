//! What can go wrong, one small type per kind of operation.

/// The peer broke the protocol: the connection must be closed with [`code`](Self::code).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Data beyond the connection's window.
    #[error("the peer sent beyond the connection's receive window")]
    WindowExceeded,
    /// Data beyond a flow's window.
    #[error("the peer sent beyond a flow's receive window")]
    FlowWindowExceeded,
    /// Data beyond a flow's end, or two different ends.
    #[error("the peer contradicted a flow's length")]
    FinalSize,
    /// More flows than allowed.
    #[error("the peer opened more flows than allowed")]
    TooManyFlows,
    /// A record about a flow that this end would have to open and has not.
    #[error("the peer named a flow that does not exist")]
    UnknownFlow,
    /// An acknowledgement of data that was never sent.
    #[error("the peer acknowledged data that was never sent")]
    AckOfUnsent,
}

impl ProtocolError {
    /// The error code of the connection's close (`docs/protocol.md`).
    pub const fn code(self) -> u32 {
        match self {
            Self::WindowExceeded => 0x10,
            Self::FlowWindowExceeded => 0x11,
            Self::FinalSize => 0x12,
            Self::TooManyFlows => 0x13,
            Self::UnknownFlow => 0x14,
            Self::AckOfUnsent => 0x15,
        }
    }
}

/// Why a flow could not be opened or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The peer allows no more flows at once.
    #[error("the peer allows no more open flows: finish one first")]
    TooManyFlows,
    /// There is no such flow, or it is over.
    #[error("the flow does not exist or is closed")]
    Closed,
    /// The sending half was finished or reset.
    #[error("the flow was already finished or reset")]
    Finished,
}

/// Why a path could not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The session has as many paths as it may.
    #[error("the session already has its {0} paths")]
    TooManyPaths(u32),
    /// The carrier's datagrams are too small for a record.
    #[error("the path's datagrams are too small: {0} bytes, at least {MIN_DATAGRAM} are needed")]
    DatagramTooSmall(u64),
}

/// The smallest datagram a path must carry: the largest control record, and a useful share of payload.
pub const MIN_DATAGRAM: u64 = 300;
