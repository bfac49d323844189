//! A connection: one session over its paths, as the application sees it.

use crate::config::{ClientConfig, PathConfig};
use crate::error::{CloseReason, ConnectError, OpenError, PathChangeError};
use crate::flow::{RecvFlow, SendFlow};
use crate::stats::ConnectionStats;

/// A connection; clones are the same one. Dropping the last one closes it with code 0.
#[derive(Clone, Debug)]
pub struct Connection {}

/// Opens a connection; returns as soon as the first path is up, the others follow in the background.
pub async fn connect(_config: ClientConfig) -> Result<Connection, ConnectError> {
    Err(ConnectError::NoInterface)
}

impl Connection {
    /// Opens a flow; waits while the peer allows no more.
    pub async fn open_flow(&self) -> Result<(SendFlow, RecvFlow), OpenError> {
        Err(OpenError::Closed(self.closed().await))
    }

    /// The next flow the peer opened; `None` when the connection is over.
    pub async fn accept_flow(&self) -> Option<(SendFlow, RecvFlow)> {
        None
    }

    /// Counters and the state of every path.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats::default()
    }

    /// Adds a path (client only).
    pub fn add_path(&self, _path: PathConfig) -> Result<(), PathChangeError> {
        Err(PathChangeError::NotClient)
    }

    /// Removes a path (client only).
    pub fn remove_path(&self, _name: &str) -> Result<(), PathChangeError> {
        Err(PathChangeError::NotClient)
    }

    /// Ends the connection now. What is not delivered yet is abandoned.
    pub fn close(&self, _code: u32, _reason: &str) {}

    /// Waits until the connection is over.
    pub async fn closed(&self) -> CloseReason {
        CloseReason::Local { code: 0 }
    }
}
