//! The client's side: brings paths up, opens the session on the first, joins the others, and keeps them up.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use manypath_core::Duration as Span;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;

use crate::config::{Bind, ClientConfig, PathConfig};
use crate::connection::Connection;
use crate::dial::{self, Opened};
use crate::engine::Engine;
use crate::error::{ConnectError, PathChangeError, PathError};
use crate::interfaces::{self, Changes};
use crate::paths::NewPath;
use crate::reactor::{self, Guarded};
use crate::settings;
use crate::socket;
use crate::tls::{self, ClientTls};

/// Pauses between attempts to bring a path up, at the least and at the most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// How often the health of a path is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A path that has failed for this long gets a new connection: its address, or the server's idea of it, may have changed.
const REDIAL_AFTER: u32 = 10;

/// A client and the session it opens.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) config: ClientConfig,
    pub(crate) tls: ClientTls,
    /// The session, once it is open. Whoever opens it holds the lock, so that one only is opened.
    pub(crate) session: tokio::sync::Mutex<Option<Opened>>,
    opened: watch::Sender<Option<Arc<Engine>>>,
    /// Paths, until the session takes them over.
    waiting: Mutex<Vec<Waiting>>,
    /// An attempt failed.
    failed: Notify,
    /// Interfaces, addresses or routes changed: what failed may work now. Each path's keeper hears of every change, also of one
    /// that comes while it does something else.
    network_changes: watch::Sender<()>,
    network: tokio::runtime::Handle,
}

/// A path before the session is open.
#[derive(Debug)]
struct Waiting {
    path: PathConfig,
    keeper: AbortHandle,
    last_error: Option<PathError>,
}

impl Client {
    /// Opens a session. Returns when its first path is up.
    pub(crate) async fn open(config: ClientConfig) -> Result<Connection, ConnectError> {
        settings::check(&config.transport)?;
        for (index, path) in config.paths.iter().enumerate() {
            if config.paths[..index].iter().any(|other| other.name == path.name) {
                return Err(ConnectError::DuplicateName(path.name.clone()));
            }
        }
        let tls = tls::client(&config.trust)?;
        let (result, opened) = oneshot::channel();
        let timeout = config.connect_timeout;
        reactor::start(move |network| run(config, tls, network, result), || {}).map_err(ConnectError::Thread)?;
        // The network thread answers always, unless it panics.
        opened.await.unwrap_or(Err(ConnectError::Timeout { timeout, detail: "the network thread ended".to_owned() }))
    }

    /// Adds a path, before or after the session is open.
    pub(crate) fn add_path(self: &Arc<Self>, path: PathConfig) -> Result<(), PathChangeError> {
        // Holding this lock keeps the session from opening in between.
        let mut waiting = self.waiting();
        let engine = self.opened.borrow().clone();
        let Some(engine) = engine else {
            if waiting.iter().any(|held| held.path.name == path.name) {
                return Err(PathChangeError::DuplicateName(path.name));
            }
            let keeper = self.network.spawn(Guarded::new(keep(Arc::clone(self), path.clone()))).abort_handle();
            waiting.push(Waiting { path, keeper, last_error: None });
            return Ok(());
        };
        drop(waiting);
        let state = &mut *engine.lock();
        if let Some(reason) = &state.ended {
            return Err(PathChangeError::Closed(reason.clone()));
        }
        if state.paths.find(&path.name).is_some() {
            return Err(PathChangeError::DuplicateName(path.name));
        }
        let key = state.paths.add(self.new_path(&path));
        let keeper = self.network.spawn(Guarded::new(keep(Arc::clone(self), path))).abort_handle();
        if let Some(entry) = state.paths.entry_mut(key) {
            entry.keeper = Some(keeper);
        }
        Ok(())
    }

    /// The session is open: it takes the paths over.
    pub(crate) fn on_opened(&self, engine: &Arc<Engine>) {
        let mut waiting = self.waiting();
        let state = &mut *engine.lock();
        for waiting in waiting.drain(..) {
            let key = state.paths.add(self.new_path(&waiting.path));
            if let Some(entry) = state.paths.entry_mut(key) {
                entry.keeper = Some(waiting.keeper);
                entry.last_error = waiting.last_error.map(|error| error.to_string());
            }
        }
        self.opened.send_replace(Some(Arc::clone(engine)));
    }

    /// Nobody wants the session: what is opening is stopped, which tells the server, and what is open is closed.
    fn give_up(&self) {
        self.waiting().drain(..).for_each(|waiting| waiting.keeper.abort());
        if let Some(engine) = self.opened.borrow().as_ref() {
            engine.close(0, "");
        }
    }

    /// Where a path reaches the server.
    pub(crate) fn remote(&self, path: &PathConfig) -> SocketAddr {
        path.remote.unwrap_or(self.config.server)
    }

    fn new_path(&self, path: &PathConfig) -> NewPath {
        let (name, remote) = (path.name.clone(), self.remote(path));
        NewPath { name, remote, cost: path.cost, priority: path.priority, kept: true }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_failed(&self, path: &PathConfig, error: PathError) {
        tracing::info!(path = path.name, %error, "path is not up");
        let mut waiting = self.waiting();
        if let Some(held) = waiting.iter_mut().find(|held| held.path.name == path.name) {
            held.last_error = Some(error);
        } else if let Some(engine) = self.opened.borrow().as_ref() {
            let state = &mut *engine.lock();
            let key = state.paths.find(&path.name);
            if let Some(entry) = key.and_then(|key| state.paths.entry_mut(key)) {
                entry.last_error = Some(error.to_string());
            }
        }
        drop(waiting);
        self.failed.notify_one();
    }

    /// Why opening is hopeless: every path failed for a reason that trying again does not mend.
    fn hopeless(&self) -> Option<ConnectError> {
        let waiting = self.waiting();
        let fatal = |held: &Waiting| held.last_error.as_ref().is_some_and(PathError::is_final);
        let first = waiting.first().filter(|_| waiting.iter().all(fatal))?;
        let error = first.last_error.clone()?;
        Some(ConnectError::Path { name: first.path.name.clone(), error })
    }

    /// What happened on each path, for the message that says that nothing came up.
    fn report(&self) -> ConnectError {
        let describe = |held: &Waiting| {
            let error = held.last_error.as_ref();
            let error =
                error.map_or_else(|| format!("{} does not answer", self.remote(&held.path)), ToString::to_string);
            format!("{}: {error}", held.path.name)
        };
        let detail = self.waiting().iter().map(describe).collect::<Vec<_>>().join("; ");
        ConnectError::Timeout { timeout: self.config.connect_timeout, detail }
    }

    async fn wait_opened(&self) -> Result<Arc<Engine>, ConnectError> {
        let mut opened = self.opened.subscribe();
        let deadline = tokio::time::sleep(self.config.connect_timeout.into());
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                engine = opened.wait_for(Option::is_some) => {
                    if let Some(engine) = engine.ok().and_then(|engine| engine.clone()) {
                        return Ok(engine);
                    }
                }
                () = self.failed.notified() => {
                    if let Some(error) = self.hopeless() {
                        return Err(error);
                    }
                }
                () = &mut deadline => return Err(self.report()),
            }
        }
    }
}

/// The network thread's main task: lives as long as the session.
async fn run(
    config: ClientConfig,
    tls: ClientTls,
    network: tokio::runtime::Handle,
    mut result: oneshot::Sender<Result<Connection, ConnectError>>,
) {
    let paths = config.paths.clone();
    let client = Arc::new(Client {
        config,
        tls,
        session: tokio::sync::Mutex::new(None),
        opened: watch::Sender::new(None),
        waiting: Mutex::new(Vec::new()),
        failed: Notify::new(),
        network_changes: watch::Sender::new(()),
        network,
    });
    reactor::spawn(follow_network(Arc::clone(&client), paths.is_empty()));
    for path in paths {
        // The names were checked; the session is not open yet.
        if let Err(error) = client.add_path(path) {
            tracing::warn!(%error, "path");
        }
    }
    let opened = tokio::select! {
        opened = client.wait_opened() => Some(opened),
        () = result.closed() => None,
    };
    match opened {
        // An answer that nobody takes is dropped, and with it the connection.
        Some(Ok(engine)) => drop(result.send(Ok(Connection::new(engine, Some(Arc::clone(&client)))))),
        Some(Err(error)) => {
            drop(result.send(Err(error)));
            client.give_up();
        }
        None => client.give_up(),
    }
    let engine = client.opened.borrow().clone();
    if let Some(engine) = engine {
        engine.closed().await;
    }
    // QUIC repeats its close to a peer that missed it.
    tokio::time::sleep(dial::DRAIN).await;
}

/// Follows the interfaces with a default route if no paths were named, and tells waiting paths of changes.
async fn follow_network(client: Arc<Client>, choose_paths: bool) {
    let changes = match Changes::subscribe() {
        Ok(changes) => Some(changes),
        Err(error) => {
            tracing::warn!(%error, "changes of interfaces are not noticed");
            None
        }
    };
    let mut chosen: Vec<String> = Vec::new();
    loop {
        if choose_paths {
            chosen = update_paths(&client, chosen);
        }
        let Some(changes) = &changes else { return };
        if let Err(error) = changes.changed().await {
            tracing::warn!(%error, "changes of interfaces are not noticed any more");
            return;
        }
        // An interface that comes up changes several times at once.
        tokio::time::sleep(Duration::from_millis(200)).await;
        client.network_changes.send_replace(());
    }
}

/// Adds a path for each interface that leads out, and removes those of interfaces that no longer do.
fn update_paths(client: &Arc<Client>, chosen: Vec<String>) -> Vec<String> {
    let server = client.config.server.ip();
    let mut wanted = if server.is_loopback() { Vec::new() } else { interfaces::with_default_route(server) };
    if wanted.is_empty() {
        // No default route: the server may still be near.
        wanted.push(String::new());
    }
    for name in &wanted {
        if !chosen.contains(name) {
            let mut path = match name.as_str() {
                "" => PathConfig::new("default", Bind::Any),
                name => PathConfig::new(name, Bind::Interface(name.to_owned())),
            };
            if let Some(terms) = client.config.terms.iter().find(|terms| terms.name == path.name) {
                (path.cost, path.priority) = (terms.cost, terms.priority);
            }
            if let Err(error) = client.add_path(path) {
                tracing::info!(%error, "path not added");
            }
        }
    }
    let engine = client.opened.borrow().clone();
    for name in chosen.iter().filter(|name| !wanted.contains(name)) {
        let name = if name.is_empty() { "default" } else { name };
        if let Some(engine) = &engine {
            if let Err(error) = engine.remove_path(name) {
                tracing::info!(%error, "path not removed");
            }
        } else {
            let mut waiting = client.waiting();
            waiting.iter().filter(|held| held.path.name == name).for_each(|held| held.keeper.abort());
            waiting.retain(|held| held.path.name != name);
        }
    }
    wanted
}

/// Changes of the network, as one path's keeper hears of them.
struct NetworkChanges(watch::Receiver<()>);

impl NetworkChanges {
    /// Waits for a change since the last one that this returned for. Who waits for something else too, and takes that first, hears
    /// of the change the next time.
    async fn next(&mut self) {
        // The client, which a keeper holds, holds the sender.
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Keeps one path up as long as the session lasts.
async fn keep(client: Arc<Client>, path: PathConfig) {
    let mut changes = NetworkChanges(client.network_changes.subscribe());
    let mut pause = BACKOFF.0;
    loop {
        match bring_up(&client, &path, &mut changes).await {
            Ok(up) => {
                pause = BACKOFF.0;
                tracing::info!(path = path.name, remote = %client.remote(&path), "path up");
                watch_path(&client, &path, &up, &mut changes).await;
                up.carrier.close(crate::code::NO_ERROR, "replaced");
            }
            Err(error) => client.on_failed(&path, error),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(BACKOFF.1),
            () = changes.next() => pause = BACKOFF.0,
        }
    }
}

/// Brings a path up, from the address that its packets leave from: when that changes, it begins again.
async fn bring_up(
    client: &Arc<Client>,
    path: &PathConfig,
    changes: &mut NetworkChanges,
) -> Result<dial::Up, PathError> {
    let source = || socket::source(&path.bind, client.remote(path)).ok();
    loop {
        let begun_from = source();
        let moved = async {
            loop {
                changes.next().await;
                if source() != begun_from {
                    return;
                }
            }
        };
        tokio::select! {
            result = dial::bring_up(client, path) => return result,
            () = moved => {}
        }
    }
}

/// Returns when a path needs a new connection.
async fn watch_path(client: &Client, path: &PathConfig, up: &dial::Up, changes: &mut NetworkChanges) {
    let mut failed_for = 0;
    loop {
        let changed = tokio::select! {
            _ = up.carrier.connection.closed() => return,
            () = tokio::time::sleep(WATCH_INTERVAL) => false,
            () = changes.next() => true,
        };
        let failed = {
            let state = &*up.engine.lock();
            state.paths.is_failed(up.key, state.session.view())
        };
        // QUIC sends from the address it began with: without it the path is dead, which an end that only receives is
        // slow to notice.
        if changed && socket::source(&path.bind, client.remote(path)).ok() != Some(up.source) {
            return;
        }
        failed_for = if failed { failed_for + 1 } else { 0 };
        if failed && (changed || failed_for >= REDIAL_AFTER) {
            return;
        }
    }
}

/// How long the session lives without a path, given what the server said.
pub(crate) fn linger(config: &ClientConfig, server: Span) -> Span {
    config.transport.linger.min(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_without_a_path_as_long_as_both_ends_say() {
        let trust = tls::Trust::Fingerprint(crate::identity::Fingerprint([0; 32]));
        let config = ClientConfig::new(SocketAddr::from(([127, 0, 0, 1], 4433)), trust);
        let own = config.transport.linger;
        assert_eq!(linger(&config, own / 2), own / 2);
        assert_eq!(linger(&config, own * 2), own);
    }

    #[tokio::test]
    async fn a_change_of_the_network_is_heard_later_by_who_was_busy() {
        let network = watch::Sender::new(());
        let mut changes = NetworkChanges(network.subscribe());
        let mut heard = async || {
            tokio::select! {
                biased;
                () = changes.next() => true,
                () = std::future::ready(()) => false,
            }
        };
        assert!(!heard().await);
        network.send_replace(());
        network.send_replace(());
        assert!(heard().await);
        assert!(!heard().await);
    }
}
