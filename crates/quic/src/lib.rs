//! Manypath over QUIC: one plain QUIC connection a path, records in datagrams, one session over all of them.
//!
//! The protocol is specified in `docs/protocol.md`.

mod config;
mod connection;
mod error;
mod flow;
mod identity;
mod server;
mod stats;
mod tls;

pub use config::{Bind, ClientConfig, PathConfig, ServerConfig, TransportConfig};
pub use connection::{Connection, connect};
pub use error::{BindError, CloseReason, ConnectError, OpenError, PathChangeError, PathError, TlsError};
pub use flow::{RecvFlow, SendFlow};
pub use identity::{Fingerprint, Identity, ParseFingerprintError};
pub use server::Server;
pub use stats::{ConnectionStats, PathState, PathStats};
pub use tls::Trust;
