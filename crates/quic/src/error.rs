//! What can go wrong, each with its cause and, where there is one, its remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use manypath_core::{Duration, SpecError};

use crate::identity::Fingerprint;

/// A certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file holds no certificate or key in PEM form.
    #[error("{path} holds no {what} in PEM form", path = path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A certificate cannot be made.
    #[error("cannot make a self-signed certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// The TLS library refuses the certificate, the key or both together.
    #[error("the certificate or key cannot be used: {0}")]
    Refused(#[from] rustls::Error),
    /// The certificate and the key of a folder are of different pairs.
    #[error(
        "{cert} and {key} do not belong together: delete both, and a new pair is made; clients need its fingerprint",
        cert = cert.display(), key = key.display()
    )]
    Mismatch {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// A certificate authority's file cannot be used for checking.
    #[error("the certificate authority cannot be used: {0}")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    /// A name cannot be checked against a certificate.
    #[error("'{0}' is not a server name: give a DNS name or an IP address")]
    ServerName(String),
}

/// A server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No address was given.
    #[error("no address to listen on was given")]
    NoAddress,
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; listen on another address or port")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The thread that serves the network cannot be started.
    #[error("cannot start the network thread: {0}")]
    Thread(io::Error),
    /// The identity cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The congestion controller or scheduler does not exist.
    #[error(transparent)]
    Algorithm(#[from] SpecError),
}

/// One path could not be brought up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PathError {
    /// The local end cannot be made.
    #[error("cannot send from {bind}: {reason}")]
    Bind {
        /// Interface or address.
        bind: String,
        /// What the system says.
        reason: String,
    },
    /// Nothing answers.
    #[error("{remote} does not answer: check the address, that the server runs, and that UDP passes")]
    Unreachable {
        /// The server's address.
        remote: SocketAddr,
    },
    /// The server's certificate is not the pinned one.
    #[error(
        "the server at {remote} shows the certificate {presented}, not {expected}: either the fingerprint is outdated (compare \
         with what the server prints) or somebody is in between"
    )]
    WrongFingerprint {
        /// The server's address.
        remote: SocketAddr,
        /// What the client was given.
        expected: Fingerprint,
        /// What the server shows.
        presented: Fingerprint,
    },
    /// The server's certificate does not check out against the authority.
    #[error("the certificate of {remote} is not valid: {reason}")]
    Certificate {
        /// The server's address.
        remote: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The server speaks another version, or something else.
    #[error("{remote} does not speak this version of the protocol ({ours}): use the same version on both ends")]
    Version {
        /// The server's address.
        remote: SocketAddr,
        /// What this end speaks.
        ours: &'static str,
    },
    /// The server wants a token, or another one.
    #[error("the server at {remote} refuses the token: give the one it was started with")]
    WrongToken {
        /// The server's address.
        remote: SocketAddr,
    },
    /// The server has no room.
    #[error("the server at {remote} is full: {reason}")]
    Busy {
        /// The server's address.
        remote: SocketAddr,
        /// What it says.
        reason: String,
    },
    /// The server does not know the session, or not this client as its owner.
    #[error("the server at {remote} refuses the path: {reason}")]
    JoinRefused {
        /// The server's address.
        remote: SocketAddr,
        /// What it says.
        reason: String,
    },
    /// The server does not follow the protocol.
    #[error("the server at {remote} breaks the protocol: {reason}")]
    Protocol {
        /// The server's address.
        remote: SocketAddr,
        /// How.
        reason: String,
    },
    /// The connection ended while the path was coming up.
    #[error("the connection to {remote} ended: {reason}")]
    Lost {
        /// The server's address.
        remote: SocketAddr,
        /// Why.
        reason: String,
    },
}

impl PathError {
    /// Whether trying again is useless unless somebody changes something.
    pub(crate) const fn is_final(&self) -> bool {
        match self {
            // What fills a server may be gone in a moment.
            Self::Bind { .. } | Self::Unreachable { .. } | Self::Lost { .. } | Self::Busy { .. } => false,
            Self::WrongFingerprint { .. }
            | Self::Certificate { .. }
            | Self::Version { .. }
            | Self::WrongToken { .. }
            | Self::JoinRefused { .. }
            | Self::Protocol { .. } => true,
        }
    }
}

/// A connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No path came up. Where a path failed for a reason that no retry mends, that one is given.
    #[error("path {name}: {error}")]
    Path {
        /// The path's name.
        name: String,
        /// Why it failed.
        error: PathError,
    },
    /// No path came up in time.
    #[error("no path came up within {timeout:?}; {detail}")]
    Timeout {
        /// The time allowed.
        timeout: Duration,
        /// What happened on each path.
        detail: String,
    },
    /// Two paths have the same name.
    #[error("two paths are called '{0}'")]
    DuplicateName(String),
    /// The trust settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The congestion controller or scheduler does not exist.
    #[error(transparent)]
    Algorithm(#[from] SpecError),
    /// The thread that serves the network cannot be started.
    #[error("cannot start the network thread: {0}")]
    Thread(io::Error),
}

/// Paths cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathChangeError {
    /// A path has this name already.
    #[error("there is a path called '{0}' already")]
    DuplicateName(String),
    /// No path has this name.
    #[error("no path is called '{0}'")]
    UnknownName(String),
    /// Only the client opens paths.
    #[error("only the client adds and removes paths")]
    NotClient,
    /// The connection is over.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// What a reader or writer of a flow meets, inside an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The peer gave up sending.
    #[error("the peer reset the flow, code {code}")]
    Reset {
        /// The peer application's code.
        code: u32,
    },
    /// The peer gave up reading.
    #[error("the peer stopped reading the flow, code {code}")]
    Stopped {
        /// The peer application's code.
        code: u32,
    },
    /// This half was finished, reset or stopped.
    #[error("the flow was ended here")]
    Ended,
    /// The connection is over.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

impl From<FlowError> for io::Error {
    fn from(error: FlowError) -> Self {
        let kind = match error {
            FlowError::Reset { .. } => io::ErrorKind::ConnectionReset,
            FlowError::Stopped { .. } | FlowError::Ended => io::ErrorKind::BrokenPipe,
            FlowError::Closed(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

/// A flow could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The connection is over.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// This end closed it.
    #[error("closed here, code {code}")]
    Local {
        /// The application's code.
        code: u32,
    },
    /// The peer closed it.
    #[error("closed by the peer, code {code}: {reason}")]
    Peer {
        /// The peer application's code.
        code: u32,
        /// What the peer says.
        reason: String,
    },
    /// No path for too long.
    #[error("no path for {linger:?}")]
    NoPath {
        /// How long the session waited.
        linger: Duration,
    },
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// The peer says that this end broke the protocol.
    #[error("the peer says that this end broke the protocol: {0}")]
    Accused(String),
    /// The session reached the server's limit of time, or the server shut down.
    #[error("ended by the server: {0}")]
    Server(String),
    /// The network thread panicked, with these words: a defect of this program. All of its sessions ended.
    #[error("a defect of this program ended it ({0}): please report it, with what was written to standard error")]
    Defect(String),
}
