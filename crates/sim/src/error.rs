//! Why a run cannot start or go on.

use manypath_core::SpecError;
use manypath_link::ConfigError;
use manypath_session::{FlowError, PathError, ProtocolError};

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// An algorithm's name or parameter is not known.
    #[error("connection '{connection}': {source}")]
    Algorithm {
        /// Whose.
        connection: String,
        /// What is wrong.
        source: SpecError,
    },
    /// A link's value makes no sense.
    #[error("link '{link}': {source}")]
    Link {
        /// Which.
        link: String,
        /// What is wrong.
        source: ConfigError,
    },
    /// A connection cannot have a path.
    #[error("connection '{connection}': {source}")]
    Path {
        /// Whose.
        connection: String,
        /// What is wrong.
        source: PathError,
    },
    /// A connection cannot open a flow.
    #[error("a flow was refused: {0}")]
    Flow(#[from] FlowError),
    /// The observer ended the run.
    #[error("stopped before its end")]
    Stopped,
    /// A session broke its own protocol: a bug of the session or the simulator.
    #[error("a session refuses what its peer sent, which is a bug: {0}")]
    Protocol(#[from] ProtocolError),
    /// Packets appeared or vanished: a bug of the simulator.
    #[error("packets are not conserved on link '{link}': {sent} sent, {accounted} accounted for")]
    Conservation {
        /// Where.
        link: String,
        /// What was offered to the link.
        sent: u64,
        /// What arrived, was dropped, or is in flight.
        accounted: u64,
    },
}

impl RunError {
    /// The connection it is about, where it is about one.
    pub fn connection(&self) -> Option<&str> {
        match self {
            Self::Algorithm { connection, .. } | Self::Path { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// Whether it is a bug of the simulator or of what it simulates, rather than one of the scenario.
    pub fn is_bug(&self) -> bool {
        matches!(self, Self::Flow(_) | Self::Protocol(_) | Self::Conservation { .. })
    }
}
