//! Manypath over QUIC: one plain QUIC connection a path, records in datagrams, one session over all of them.
//!
//! The protocol is specified in `docs/protocol.md`. A client [`connect`]s, a [`Server`] accepts; either way the result is a
//! [`Connection`] with flows: ordered byte streams, whose halves are `AsyncRead` and `AsyncWrite`.
//!
//! ```no_run
//! use manypath_quic::{Bind, ClientConfig, PathConfig, Trust, connect};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let pinned = Trust::Fingerprint("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse()?);
//! let mut config = ClientConfig::new("192.0.2.1:4433".parse()?, pinned);
//! config.paths = ["wlan0", "wwan0"].map(|name| PathConfig::new(name, Bind::Interface(name.to_owned()))).to_vec();
//! let connection = connect(config).await?;
//! let (mut send, mut recv) = connection.open_flow().await?;
//! send.write_all(b"question").await?;
//! send.shutdown().await?;
//! let mut answer = Vec::new();
//! recv.read_to_end(&mut answer).await?;
//! connection.close(0, "done");
//! connection.closed().await;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Each client, and each server, has one network thread. On it run noq's tasks, a task a carrier and a task a session. The
//! session (`manypath_session`) decides what leaves when and on which path; the `engine` carries it out. The application
//! runs in its own runtime and copies bytes into and out of the flows' buffers. A byte is copied into the send buffer, into
//! its datagram, and at the other end into the receive buffer and to the reader.
//!
//! `reports` tells the session what became of each data record; which are lost, `under_way` finds out. noq's own window is opened
//! wide, its pacer is off, and its thresholds of loss are out of the way. `reports`
//! also keeps noq from sending several packets at once in a carrier's first moments, where noq 1.4.0 may panic.
//!
//! # Dependencies
//!
//! * `noq`: QUIC; `noq-proto` only for a type in the signature of noq's congestion controller, which noq does not re-export.
//! * `tokio`: the runtime that noq runs on; `AsyncRead` and `AsyncWrite`.
//! * `rustls`: TLS settings, and checking a pinned certificate. `ring`: its cryptography, HMAC and SHA-256 for proofs and
//!   fingerprints. `rcgen`: self-signed certificates.
//! * `bytes`: the type in which noq takes datagrams; its owners tell when one was sent.
//! * `socket2`: sockets bound to a device, and their buffer sizes.
//! * `rustix`: `timerfd` and netlink without `unsafe`.
//! * `thiserror`: error types. `tracing`: logs.

mod buffer;
mod carrier;
mod client;
mod code;
mod config;
mod connection;
mod dial;
mod ecn;
mod engine;
mod error;
mod fd;
mod flow;
mod flow_state;
mod greet;
mod half_open;
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
mod state;
mod stats;
mod timer;
mod tls;
mod under_way;

pub use config::{Bind, ClientConfig, PathConfig, PathTerms, ServerConfig, TransportConfig, Wish};
pub use connection::{Connection, connect};
pub use error::{BindError, CloseReason, ConnectError, FlowError, OpenError, PathChangeError, PathError, TlsError};
pub use flow::{RecvFlow, SendFlow};
pub use identity::{Fingerprint, Identity, ParseFingerprintError};
pub use manypath_session::{Action, Traced, Tracer, TracerSource};
pub use message::{MAX_TOKEN, printable};
pub use server::Server;
pub use stats::{ConnectionStats, PathState, PathStats};
pub use tls::Trust;
