//! Bringing one path of a client up: socket, QUIC handshake, then open or join.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_core::{AlgorithmSpec, Duration as Span};
use manypath_session::Role;
use noq::{ConnectionError, Endpoint, EndpointConfig, RecvStream, SendStream};

use crate::carrier::{Carrier, ControlError, read_message, transport_config};
use crate::client::{Client, linger};
use crate::code;
use crate::config::{Bind, PathConfig};
use crate::ecn;
use crate::engine::Engine;
use crate::error::{CloseReason, PathError};
use crate::message::{Hello, Join, Message, VERSION, Welcome, printable, readable};
use crate::proof::{self, Prover, Secret};
use crate::reactor::{self, QuicRuntime};
use crate::reports::Reports;
use crate::settings;
use crate::socket;
use crate::tls::ALPN;

/// How long one attempt may take, from the first packet to the server's answer.
const ATTEMPT: Duration = Duration::from_secs(10);

/// How long QUIC's tasks live on after the last close.
pub(crate) const DRAIN: Duration = Duration::from_millis(500);

/// The most paths a client uses.
const MAX_PATHS: u32 = 16;

/// An open session.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    engine: Arc<Engine>,
    secret: Secret,
}

/// A path that is up.
#[derive(Debug)]
pub(crate) struct Up {
    pub(crate) engine: Arc<Engine>,
    pub(crate) key: u64,
    pub(crate) carrier: Arc<Carrier>,
    /// The address that its packets leave from, when it was dialled.
    pub(crate) source: IpAddr,
}

/// A QUIC connection with its control stream.
struct Dialled {
    remote: SocketAddr,
    connection: noq::Connection,
    reports: Arc<Reports>,
    local: Option<SocketAddr>,
    send: SendStream,
    recv: RecvStream,
}

/// Connects a path and opens or joins the session with it.
pub(crate) async fn bring_up(client: &Arc<Client>, path: &PathConfig) -> Result<Up, PathError> {
    let remote = client.remote(path);
    let source = socket::source(&path.bind, remote).map_err(|error| cannot_send(&path.bind, &error))?;
    let unreachable = |_| PathError::Unreachable { remote };
    let mut dialled = tokio::time::timeout(ATTEMPT, dial(client, path, remote)).await.map_err(unreachable)??;
    let mut session = client.session.lock().await;
    let opened = match &*session {
        Some(opened) => {
            let opened = opened.clone();
            drop(session);
            tokio::time::timeout(ATTEMPT, join(&opened, &mut dialled)).await.map_err(unreachable)??;
            opened
        }
        None => {
            let opened = tokio::time::timeout(ATTEMPT, open(client, &mut dialled)).await.map_err(unreachable)??;
            *session = Some(opened.clone());
            opened
        }
    };
    let Dialled { connection, reports, local, send, recv, .. } = dialled;
    let carrier = Arc::new(Carrier::new(connection, reports, send, local));
    let key = opened.engine.lock().paths.find(&path.name);
    let lost = |reason: &str| PathError::Lost { remote, reason: reason.to_owned() };
    let key = key.ok_or_else(|| lost("the path was removed"))?;
    opened.engine.attach(key, Arc::clone(&carrier)).map_err(|error| lost(&error.to_string()))?;
    reactor::spawn(listen(Arc::clone(&opened.engine), Arc::clone(&carrier), recv));
    Ok(Up { engine: opened.engine, key, carrier, source })
}

/// The QUIC handshake.
async fn dial(client: &Client, path: &PathConfig, remote: SocketAddr) -> Result<Dialled, PathError> {
    let socket = socket::path(&path.bind, remote).map_err(|error| cannot_send(&path.bind, &error))?;
    let local = socket.local_addr().ok();
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(QuicRuntime))
        .map_err(|error| cannot_send(&path.bind, &error))?;
    let reports = Arc::new(Reports::default());
    let mut config = noq::ClientConfig::new(Arc::clone(&client.tls.crypto) as _);
    config.transport_config(transport_config(&reports, client.config.transport.max_mtu, false));
    let connecting = ecn::making(&reports, || endpoint.connect_with(config, remote, &client.tls.server_name))
        .map_err(|error| PathError::Lost { remote, reason: error.to_string() })?;
    let failed = |error: &ConnectionError| client.tls.refusal(remote, error).unwrap_or_else(|| explain(remote, error));
    let connection = connecting.await.map_err(|error| failed(&error))?;
    // Before that, packet numbers of the handshake mix with ours.
    connection.handshake_confirmed().await.map_err(|error| failed(&error))?;
    let (send, recv) = connection.open_bi().await.map_err(|error| failed(&error))?;
    Ok(Dialled { remote, connection, reports, local, send, recv })
}

/// The error of a path whose packets cannot leave.
fn cannot_send(bind: &Bind, error: &io::Error) -> PathError {
    let bind = match bind {
        Bind::Any => "any address".to_owned(),
        Bind::Address(address) => address.to_string(),
        Bind::Interface(name) => name.clone(),
    };
    PathError::Bind { bind, reason: error.to_string() }
}

/// Opens the session.
async fn open(client: &Arc<Client>, dialled: &mut Dialled) -> Result<Opened, PathError> {
    let transport = &client.config.transport;
    let name = |wish: Option<&AlgorithmSpec>| wish.map(ToString::to_string).unwrap_or_default();
    let hello = Hello {
        version: VERSION,
        limits: settings::limits(transport),
        max_paths: MAX_PATHS,
        token: client.config.token.clone().unwrap_or_default().into_bytes(),
        cc: name(client.config.wish.cc.as_ref()),
        sched: name(client.config.wish.sched.as_ref()),
    };
    let opening = Opening(Some(dialled.connection.clone()));
    let Message::Welcome(welcome) = dialled.ask(&Message::Hello(hello)).await? else {
        return Err(dialled.misbehaves("it answers HELLO with something else"));
    };
    let Welcome { version, session, limits, max_paths, linger: server_linger } = welcome;
    if version != VERSION {
        return Err(PathError::Version { remote: dialled.remote, ours: ALPN });
    }
    let secret = Secret::of_first_carrier(&dialled.connection, session)
        .map_err(|error| PathError::Lost { remote: dialled.remote, reason: error.to_string() })?;
    let lost = |reason: String| PathError::Lost { remote: dialled.remote, reason };
    let session = settings::session(transport, Role::Client, limits, max_paths.min(MAX_PATHS));
    let session = session.map_err(|error| lost(error.to_string()))?;
    let engine = Engine::start(session, linger(&client.config, server_linger), Span::MAX);
    let engine = engine.map_err(|error| lost(error.to_string()))?;
    client.on_opened(&engine);
    opening.done();
    Ok(Opened { engine, secret })
}

/// A session that the server may have and the client not yet. Given up, it is closed: nobody knows it to join it again, and the
/// server would keep it until its time without a path is over.
struct Opening(Option<noq::Connection>);

impl Opening {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.close(code::application(0), b"");
        }
    }
}

/// Joins the session.
async fn join(opened: &Opened, dialled: &mut Dialled) -> Result<(), PathError> {
    let remote = dialled.remote;
    let no_key = |error: proof::NoKey| PathError::Lost { remote, reason: error.to_string() };
    let nonce = proof::random().map_err(no_key)?;
    let proof = opened.secret.prove(Prover::Client, &dialled.connection, &nonce).map_err(no_key)?;
    let join = Join { version: VERSION, session: opened.secret.session(), nonce, proof };
    let answer = dialled.ask(&Message::Join(join)).await;
    if let Err(PathError::JoinRefused { .. }) = &answer
        && let Some(ConnectionError::ApplicationClosed(close)) = dialled.connection.close_reason()
        && close.error_code.into_inner() == u64::from(code::UNKNOWN_SESSION)
    {
        let reason = "the server no longer has the session: it was restarted, or the time without a path was too long";
        opened.engine.on_peer_closed(CloseReason::Server(reason.to_owned()));
    }
    let Message::Joined(proof) = answer? else {
        return Err(dialled.misbehaves("it answers JOIN with something else"));
    };
    if !opened.secret.verify(Prover::Server, &dialled.connection, &nonce, &proof) {
        dialled.connection.close(code::BAD_PROOF.into(), b"wrong proof");
        return Err(PathError::Protocol { remote, reason: "its proof of the session is wrong".to_owned() });
    }
    Ok(())
}

impl Dialled {
    /// Sends a message and reads the answer.
    async fn ask(&mut self, message: &Message) -> Result<Message, PathError> {
        if let Err(error) = self.send.write_all(&message.encode()).await {
            return Err(self.why(&error.to_string()));
        }
        match read_message(&mut self.recv).await {
            Ok(answer) => Ok(answer),
            Err(ControlError::Message(error)) => Err(self.misbehaves(&error.to_string())),
            Err(ControlError::Ended(error)) => Err(self.why(&error.to_string())),
        }
    }

    /// Why the control stream broke: usually because the server closed the connection.
    fn why(&self, otherwise: &str) -> PathError {
        match self.connection.close_reason() {
            Some(error) => explain(self.remote, &error),
            None => PathError::Lost { remote: self.remote, reason: printable(otherwise) },
        }
    }

    fn misbehaves(&self, reason: &str) -> PathError {
        self.connection.close(code::BAD_MESSAGE.into(), reason.as_bytes());
        PathError::Protocol { remote: self.remote, reason: reason.to_owned() }
    }
}

/// What the end of a connection means for a path that was coming up.
fn explain(remote: SocketAddr, error: &ConnectionError) -> PathError {
    // The reason in the text is the server's, or of anybody on the way: QUIC's first packets are not secret.
    let lost = || PathError::Lost { remote, reason: printable(&error.to_string()) };
    match error {
        ConnectionError::TimedOut => PathError::Unreachable { remote },
        ConnectionError::VersionMismatch => PathError::Version { remote, ours: ALPN },
        ConnectionError::ApplicationClosed(close) => {
            let reason = readable(&close.reason);
            match u32::try_from(close.error_code.into_inner()) {
                Ok(code::BAD_TOKEN) => PathError::WrongToken { remote },
                Ok(code::VERSION) => PathError::Version { remote, ours: ALPN },
                Ok(code::BUSY) => PathError::Busy { remote, reason },
                Ok(code::UNKNOWN_SESSION | code::BAD_PROOF) => PathError::JoinRefused { remote, reason },
                Ok(code::BAD_MESSAGE) => PathError::Protocol { remote, reason },
                _ => lost(),
            }
        }
        ConnectionError::ConnectionClosed(close) if close.error_code == noq::TransportErrorCode::CONNECTION_REFUSED => {
            PathError::Busy { remote, reason: "it takes no more connections now".to_owned() }
        }
        _ => lost(),
    }
}

/// Listens to the control stream of a carrier in use.
pub(crate) async fn listen(engine: Arc<Engine>, carrier: Arc<Carrier>, mut control: RecvStream) {
    match read_message(&mut control).await {
        Ok(Message::Close { code, reason }) => engine.on_peer_closed(CloseReason::Peer { code, reason }),
        Ok(_) | Err(ControlError::Message(_)) => carrier.close(code::BAD_MESSAGE, "not a message for an open session"),
        // The carrier ended; its driver notices.
        Err(ControlError::Ended(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use noq::{ApplicationClose, ConnectionClose, TransportErrorCode, VarInt};
    use noq_proto::MaybeFrame;

    use super::*;
    use crate::identity::Fingerprint;
    use crate::tls::{self, Trust};

    #[test]
    fn what_a_server_closes_with_says_what_is_wrong() {
        let remote = SocketAddr::from(([192, 0, 2, 7], 4433));
        let closed_with = |code: u32| {
            let (error_code, reason) = (VarInt::from_u32(code), bytes::Bytes::new());
            explain(remote, &ConnectionError::ApplicationClosed(ApplicationClose { error_code, reason }))
        };
        assert!(matches!(closed_with(code::BAD_TOKEN), PathError::WrongToken { .. }));
        assert!(matches!(closed_with(code::VERSION), PathError::Version { .. }));
        assert!(matches!(closed_with(code::BUSY), PathError::Busy { .. }));
        assert!(matches!(closed_with(code::UNKNOWN_SESSION), PathError::JoinRefused { .. }));
        assert!(matches!(closed_with(code::BAD_PROOF), PathError::JoinRefused { .. }));
        assert!(matches!(closed_with(code::BAD_MESSAGE), PathError::Protocol { .. }));
        assert!(matches!(closed_with(code::HANDSHAKE_TIMEOUT), PathError::Lost { .. }));
        let (error_code, reason) = (TransportErrorCode::CONNECTION_REFUSED, bytes::Bytes::new());
        let refused = ConnectionClose { error_code, frame_type: MaybeFrame::None, reason };
        assert!(matches!(explain(remote, &ConnectionError::ConnectionClosed(refused)), PathError::Busy { .. }));
        assert!(matches!(explain(remote, &ConnectionError::TimedOut), PathError::Unreachable { .. }));
    }

    /// In an Initial packet, whose keys everybody on the way can make, such a close needs no certificate.
    #[test]
    fn what_ends_a_connection_cannot_steer_a_terminal() {
        let remote = SocketAddr::from(([192, 0, 2, 7], 4433));
        let reason = bytes::Bytes::from_static(b"\x1b]0;gotcha\x07\n");
        let by_transport = |error_code| {
            let close = ConnectionClose { error_code, frame_type: MaybeFrame::None, reason: reason.clone() };
            ConnectionError::ConnectionClosed(close)
        };
        let by_application = |code: u32| {
            let error_code = VarInt::from_u32(code);
            ConnectionError::ApplicationClosed(ApplicationClose { error_code, reason: reason.clone() })
        };
        let errors = [
            by_transport(TransportErrorCode::NO_ERROR),
            by_application(0),
            by_application(code::BUSY),
            by_application(code::BAD_PROOF),
            by_application(code::BAD_MESSAGE),
        ];
        for error in errors {
            let told = explain(remote, &error).to_string();
            assert!(told.contains("gotcha") && !told.chars().any(char::is_control), "{told:?}");
        }
        // A TLS alert goes another way.
        let trust = Trust::Fingerprint(Fingerprint([0; 32]));
        let alert = by_transport(TransportErrorCode::crypto(42));
        let told = tls::client(&trust).unwrap().refusal(remote, &alert).unwrap().to_string();
        assert!(told.contains("gotcha") && !told.chars().any(char::is_control), "{told:?}");
    }
}
