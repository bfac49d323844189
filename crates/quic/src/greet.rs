//! A server's side of opening and joining.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_core::Priority;
use manypath_session::Role;
use noq::{Incoming, RecvStream, SendStream};
use tokio::time::Instant;

use crate::carrier::{Carrier, ControlError, read_message, transport_config};
use crate::code;
use crate::connection::Connection;
use crate::dial;
use crate::ecn;
use crate::engine::Engine;
use crate::message::{Hello, Join, Message, VERSION, Welcome};
use crate::paths::NewPath;
use crate::proof::{self, Prover, Secret, SessionId};
use crate::reactor;
use crate::reports::Reports;
use crate::server::Shared;
use crate::settings;

/// Why a connection got no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GreetError {
    #[error(transparent)]
    Connection(#[from] noq::ConnectionError),
    #[error("no HELLO or JOIN: {0}")]
    Control(#[from] ControlError),
    #[error("{reason}")]
    Refused { code: u32, reason: String },
}

/// A connection after its QUIC handshake.
struct Guest {
    connection: noq::Connection,
    reports: Arc<Reports>,
    local: SocketAddr,
    send: SendStream,
    recv: RecvStream,
}

/// Takes a connection in, to a new session or to one it belongs to. Must be given `limit` to finish.
pub(crate) async fn accept(
    shared: &Arc<Shared>,
    incoming: Incoming,
    local: SocketAddr,
    limit: Duration,
) -> Result<(), GreetError> {
    // Shortly before the limit, so that who is too slow learns why.
    let expiry = Instant::now() + limit.mul_f64(0.9);
    let reports = Arc::new(Reports::default());
    let transport = transport_config(&reports, shared.config.transport.max_mtu, true);
    let connecting = ecn::making(&reports, || incoming.accept_with(shared.quic(transport)))?;
    let connection = connecting.await?;
    let result = tokio::select! {
        result = greet(shared, connection.clone(), reports, local) => result,
        () = tokio::time::sleep_until(expiry) => Err(refuse(code::HANDSHAKE_TIMEOUT, "neither HELLO nor JOIN in time")),
    };
    match &result {
        Ok(()) => {}
        &Err(GreetError::Refused { code, ref reason }) => connection.close(code.into(), reason.as_bytes()),
        Err(error) => connection.close(code::BAD_MESSAGE.into(), error.to_string().as_bytes()),
    }
    result
}

async fn greet(
    shared: &Arc<Shared>,
    connection: noq::Connection,
    reports: Arc<Reports>,
    local: SocketAddr,
) -> Result<(), GreetError> {
    let first = async {
        let (send, mut recv) = connection.accept_bi().await?;
        let message = read_message(&mut recv).await?;
        Ok::<_, GreetError>((send, recv, message))
    };
    let (send, recv, message) = tokio::select! {
        first = first => first?,
        refusal = early_record(&connection) => return Err(refusal),
    };
    let guest = Guest { connection, reports, local, send, recv };
    match message {
        Message::Hello(hello) => open(shared, guest, hello).await,
        Message::Join(join) => add(shared, guest, &join).await,
        _ => Err(refuse(code::BAD_MESSAGE, "the first message is neither HELLO nor JOIN")),
    }
}

/// Who is no path of a session yet has no records to send: they would be kept, as much as is kept for a path.
async fn early_record(connection: &noq::Connection) -> GreetError {
    match connection.read_datagram().await {
        Ok(_) => refuse(code::BAD_MESSAGE, "a record before HELLO or JOIN"),
        Err(error) => error.into(),
    }
}

/// Opens a session for a client.
async fn open(shared: &Arc<Shared>, mut guest: Guest, hello: Hello) -> Result<(), GreetError> {
    check_version(hello.version)?;
    if let Some(token) = &shared.config.token
        && !proof::equal(token.as_bytes(), &hello.token).map_err(internal)?
    {
        return Err(refuse(code::BAD_TOKEN, "the access token is missing or wrong"));
    }
    if !shared.has_room() {
        return Err(refuse(code::BUSY, "the server has as many sessions as it takes"));
    }
    let own = &shared.config.transport;
    let transport = if shared.config.allow_choice { settings::chosen(own, &hello) } else { Cow::Borrowed(own) };
    let max_paths = shared.config.max_paths_per_session;
    let id = SessionId(proof::random().map_err(internal)?);
    let secret = Secret::of_first_carrier(&guest.connection, id).map_err(internal)?;
    let session = settings::session(&transport, Role::Server, hello.limits, max_paths).map_err(internal)?;
    let engine = Engine::start(session, transport.linger, shared.config.session_lifetime).map_err(internal)?;
    // Dropped if the client cannot be welcomed, which ends the session.
    let connection = Connection::new(Arc::clone(&engine), None);
    shared.on_opened(secret, &engine);
    let limits = settings::limits(&transport);
    let welcome = Welcome { version: VERSION, session: id, limits, max_paths, linger: transport.linger };
    guest.answer(&Message::Welcome(welcome)).await?;
    guest.attach(&engine)?;
    shared.announce(connection);
    Ok(())
}

/// Adds a client's carrier to its session.
async fn add(shared: &Arc<Shared>, mut guest: Guest, join: &Join) -> Result<(), GreetError> {
    check_version(join.version)?;
    let Some((secret, engine)) = shared.session(join.session) else {
        return Err(refuse(code::UNKNOWN_SESSION, "there is no such session"));
    };
    if !secret.verify(Prover::Client, &guest.connection, &join.nonce, &join.proof) {
        return Err(refuse(code::BAD_PROOF, "the proof is wrong: this client does not own the session"));
    }
    let proof = secret.prove(Prover::Server, &guest.connection, &join.nonce).map_err(internal)?;
    guest.answer(&Message::Joined(proof)).await?;
    guest.attach(&engine)
}

impl Guest {
    async fn answer(&mut self, message: &Message) -> Result<(), GreetError> {
        let sent = self.send.write_all(&message.encode()).await;
        sent.map_err(|error| refuse(code::BAD_MESSAGE, &error.to_string()))
    }

    /// Makes the connection a path of the session.
    fn attach(self, engine: &Arc<Engine>) -> Result<(), GreetError> {
        let carrier = Arc::new(Carrier::new(self.connection, self.reports, self.send, Some(self.local)));
        let remote = carrier.remote().ok_or_else(|| refuse(code::BUSY, "the connection is over"))?;
        let path = NewPath { name: remote.to_string(), remote, cost: 1.0, priority: Priority::Normal, kept: false };
        let key = engine.lock().paths.add(path);
        if let Err(error) = engine.attach(key, Arc::clone(&carrier)) {
            engine.forget_path(key);
            return Err(refuse(code::BUSY, &error.to_string()));
        }
        reactor::spawn(dial::listen(Arc::clone(engine), carrier, self.recv));
        Ok(())
    }
}

fn check_version(version: u16) -> Result<(), GreetError> {
    if version == VERSION { Ok(()) } else { Err(refuse(code::VERSION, "this version is not spoken here")) }
}

fn refuse(code: u32, reason: &str) -> GreetError {
    GreetError::Refused { code, reason: reason.to_owned() }
}

/// Something failed here, not at the client: it may try again.
fn internal(error: impl std::fmt::Display) -> GreetError {
    tracing::error!(%error, "a session cannot be opened");
    refuse(code::BUSY, "the server cannot open a session now")
}
