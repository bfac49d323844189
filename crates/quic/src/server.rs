//! The server: listens, lets sessions in, and adds joining paths to them.

use std::net::SocketAddr;

use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::error::BindError;
use crate::identity::Fingerprint;

/// A listening server.
#[derive(Debug)]
pub struct Server {
    fingerprint: Fingerprint,
}

impl Server {
    /// Starts listening.
    pub async fn bind(_config: ServerConfig) -> Result<Self, BindError> {
        Err(BindError::NoAddress)
    }

    /// The addresses listened on, with the ports the system chose.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// What clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The next session that a client opened; `None` after [`Self::shutdown`].
    pub async fn accept(&self) -> Option<Connection> {
        None
    }

    /// Refuses new sessions, closes those that are open, and returns when the clients were told.
    pub async fn shutdown(&self) {}
}
