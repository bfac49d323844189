//! Manypath over QUIC: one plain QUIC connection a path, records in datagrams, one session over all of them.
//!
//! The protocol is specified in `docs/protocol.md`.

mod buffer;
mod carrier;
mod client;
mod code;
mod config;
mod connection;
mod dial;
mod engine;
mod error;
mod fd;
mod flow;
mod flow_state;
mod greet;
mod identity;
mod interfaces;
mod message;
mod paths;
mod proof;
mod reactor;
mod reports;
mod server;
mod settings;
mod socket;
mod stats;
mod timer;
mod tls;

pub use config::{Bind, ClientConfig, PathConfig, ServerConfig, TransportConfig, Wish};
pub use connection::{Connection, connect};
pub use error::{BindError, CloseReason, ConnectError, FlowError, OpenError, PathChangeError, PathError, TlsError};
pub use flow::{RecvFlow, SendFlow};
pub use identity::{Fingerprint, Identity, ParseFingerprintError};
pub use server::Server;
pub use stats::{ConnectionStats, PathState, PathStats};
pub use tls::Trust;
