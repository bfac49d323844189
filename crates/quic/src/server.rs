//! The server: listens, lets sessions in, and adds joining paths to them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noq::{Endpoint, EndpointConfig, Incoming};
use noq_proto::HashedConnectionIdGenerator;
use ring::hmac::{self, HMAC_SHA256, Key};
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::code;
use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::error::{BindError, CloseReason};
use crate::greet;
use crate::half_open::{HalfOpen, Place};
use crate::identity::Fingerprint;
use crate::proof::{Secret, SessionId};
use crate::reactor::{self, QuicRuntime};
use crate::{dial, settings, socket, tls};

/// A listening server. Dropping it shuts it down, without waiting for the clients to be told.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    fingerprint: Fingerprint,
    shared: Arc<Shared>,
}

/// What the listeners and handshakes of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    quic: noq::ServerConfig,
    /// Of what keys of stateless resets are derived, if the certificate is this machine's own.
    resets: Option<Key>,
    sessions: Mutex<HashMap<SessionId, (Secret, Arc<Engine>)>>,
    half_open: Arc<HalfOpen>,
    /// Sessions that wait to be accepted.
    waiting: Mutex<VecDeque<Connection>>,
    /// One more waits.
    announced: Notify,
    stopping: AtomicBool,
    /// Shutting down was asked for.
    stop: Notify,
    /// The network thread is done.
    stopped: Arc<Semaphore>,
}

impl Server {
    /// Starts listening.
    ///
    /// # Errors
    /// If an address cannot be listened on, or the identity or an algorithm cannot be used.
    pub async fn bind(config: ServerConfig) -> Result<Self, BindError> {
        settings::check(&config.transport)?;
        if config.listen.is_empty() {
            return Err(BindError::NoAddress);
        }
        let credentials = config.identity.load()?;
        let fingerprint = credentials.fingerprint();
        let resets = credentials.is_own.then(|| Key::new(HMAC_SHA256, credentials.key.secret_der()));
        let quic = noq::ServerConfig::with_crypto(Arc::new(tls::server(credentials)?));
        let shared = Arc::new(Shared {
            half_open: HalfOpen::new(config.max_half_open),
            config,
            quic,
            resets,
            sessions: Mutex::new(HashMap::new()),
            waiting: Mutex::default(),
            announced: Notify::new(),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            stopped: Arc::new(Semaphore::new(0)),
        });
        let (listening, listens) = oneshot::channel();
        let (for_thread, for_defect) = (Arc::clone(&shared), Arc::clone(&shared));
        let on_defect = move || {
            for_defect.stopping.store(true, Ordering::Relaxed);
            for_defect.on_stopped();
        };
        reactor::start(move |_| run(for_thread, listening), on_defect).map_err(BindError::Thread)?;
        let ended = |_| BindError::Thread(std::io::Error::other("the network thread ended"));
        let addresses = listens.await.map_err(ended)??;
        Ok(Self { addresses, fingerprint, shared })
    }

    /// The addresses listened on, with the ports the system chose.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// What clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The next session that a client opened; `None` after [`Self::shutdown`], or if a defect ended the server.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let mut announced = std::pin::pin!(self.shared.announced.notified());
            announced.as_mut().enable();
            if self.shared.stopping.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(connection) = self.shared.waiting().pop_front() {
                return Some(connection);
            }
            tokio::select! {
                () = announced => {}
                // Released permits tell every waiter; none are taken.
                _ = self.shared.stopped.acquire() => return None,
            }
        }
    }

    /// Refuses new sessions, closes those that are open, and returns when the clients were told.
    pub async fn shutdown(&self) {
        self.shared.request_stop();
        // The semaphore is never closed; either way the thread is done.
        let _ = self.shared.stopped.acquire().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.request_stop();
    }
}

impl Shared {
    fn request_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.notify_one();
    }

    /// Whoever waits for the end hears of it, now and later.
    fn on_stopped(&self) {
        self.stopped.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, (Secret, Arc<Engine>)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more session may be opened.
    pub(crate) fn has_room(&self) -> bool {
        self.sessions().len() < self.config.max_sessions && !self.stopping.load(Ordering::Relaxed)
    }

    /// The session with this id.
    pub(crate) fn session(&self, id: SessionId) -> Option<(Secret, Arc<Engine>)> {
        self.sessions().get(&id).cloned()
    }

    /// Takes a session in, and out when it is over.
    pub(crate) fn on_opened(self: &Arc<Self>, secret: Secret, engine: &Arc<Engine>) {
        let id = secret.session();
        self.sessions().insert(id, (secret, Arc::clone(engine)));
        let (shared, engine) = (Arc::clone(self), Arc::clone(engine));
        reactor::spawn(async move {
            engine.closed().await;
            shared.sessions().remove(&id);
        });
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Connection>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a session to the application.
    pub(crate) fn announce(&self, connection: Connection) {
        let waiting = &mut *self.waiting();
        if waiting.len() >= self.config.max_sessions {
            // Those that are over may be any number, where nobody accepts; the others are no more than that.
            waiting.retain(|held| !held.is_over());
        }
        waiting.push_back(connection);
        self.announced.notify_one();
    }
}

/// The network thread's main task.
async fn run(shared: Arc<Shared>, listening: oneshot::Sender<Result<Vec<SocketAddr>, BindError>>) {
    let mut endpoints = Vec::new();
    let mut addresses = Vec::new();
    for &address in &shared.config.listen {
        match listen(address, &shared) {
            Ok((endpoint, address)) => {
                endpoints.push(endpoint);
                addresses.push(address);
            }
            Err(source) => {
                // If nobody waits for the answer, there is no server to run either.
                let _ = listening.send(Err(BindError::Socket { address, source }));
                return;
            }
        }
    }
    for (endpoint, &address) in endpoints.iter().zip(&addresses) {
        reactor::spawn(accept(Arc::clone(&shared), endpoint.clone(), address));
    }
    if listening.send(Ok(addresses)).is_ok() {
        shared.stop.notified().await;
    }
    let engines: Vec<_> = shared.sessions().values().map(|(_, engine)| Arc::clone(engine)).collect();
    let reason = "the server shut down";
    for engine in &engines {
        engine.end_with(CloseReason::Server(reason.to_owned()), code::SHUTDOWN, reason);
    }
    for engine in &engines {
        engine.closed().await;
    }
    for endpoint in &endpoints {
        endpoint.close(code::SHUTDOWN.into(), reason.as_bytes());
    }
    let drained = async {
        for endpoint in &endpoints {
            endpoint.wait_idle().await;
        }
    };
    // A client that misses the close finds out by itself.
    let _ = tokio::time::timeout(dial::DRAIN, drained).await;
    shared.on_stopped();
}

fn listen(address: SocketAddr, shared: &Shared) -> std::io::Result<(Endpoint, SocketAddr)> {
    let same_port = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
    let socket = socket::listener(address, shared.config.listen.iter().any(same_port))?;
    let address = socket.local_addr()?;
    let config = shared.resets.as_ref().map_or_else(EndpointConfig::default, |key| endpoint_config(key, address));
    Ok((Endpoint::new(config, Some(shared.quic.clone()), socket, Arc::new(QuicRuntime))?, address))
}

/// Settings that a server which was started anew makes again: it knows the connection ids of the one before, and
/// answers them with stateless resets (RFC 9000 section 10.3), so that clients need not wait for an answer until they
/// give up. No two endpoints have the same: one would tell the reset tokens of the other (section 21.11).
fn endpoint_config(key: &Key, address: SocketAddr) -> EndpointConfig {
    let derived = |what: &str| hmac::sign(key, format!("manypath {what} {address}").as_bytes());
    let mut of_ids = [0; 8];
    of_ids.copy_from_slice(&derived("connection ids").as_ref()[..8]);
    let of_ids = u64::from_be_bytes(of_ids);
    let mut config = EndpointConfig::new(Arc::new(Key::new(HMAC_SHA256, derived("resets").as_ref())));
    config.cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(of_ids))));
    config
}

/// Takes connections in at one address.
async fn accept(shared: Arc<Shared>, endpoint: Endpoint, local: SocketAddr) {
    while let Some(incoming) = endpoint.accept().await {
        let Some(place) = shared.half_open.take(incoming.remote_address().ip()) else {
            tracing::debug!(remote = %incoming.remote_address(), "too many half-open connections");
            incoming.refuse();
            continue;
        };
        // When it gets tight, only those are let in who can be reached at the address they claim.
        if place.is_tight && !incoming.remote_address_validated() && incoming.may_retry() {
            if let Err(error) = incoming.retry() {
                tracing::debug!(%error, "retry");
            }
            continue;
        }
        reactor::spawn(greet_in_time(Arc::clone(&shared), incoming, local, place));
    }
}

async fn greet_in_time(shared: Arc<Shared>, incoming: Incoming, local: SocketAddr, place: Place) {
    let limit = Duration::from(shared.config.handshake_timeout);
    let remote = incoming.remote_address();
    match tokio::time::timeout(limit, greet::accept(&shared, incoming, local, limit)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%remote, %error, "connection refused"),
        Err(_) => tracing::debug!(%remote, "connection neither opened nor joined a session in time"),
    }
    drop(place);
}

impl Shared {
    /// QUIC's settings for one connection.
    pub(crate) fn quic(&self, transport: Arc<noq::TransportConfig>) -> Arc<noq::ServerConfig> {
        let mut config = self.quic.clone();
        config.transport_config(transport);
        Arc::new(config)
    }
}
