//! The paths of a session: which there are, which carrier each has now, and their counters.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes as Datagram;
use manypath_core::{Bytes, Duration, Priority, SubflowId, SubflowState, SubflowView, Time, View};
use manypath_session::{PathError, PathInit, Session};
use tokio::task::AbortHandle;

use crate::carrier::Carrier;
use crate::code;
use crate::stats::{PathState, PathStats};

/// What went over a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    bytes_sent: u64,
    bytes_received: u64,
    records_sent: u64,
    records_received: u64,
    pub(crate) records_lost: u64,
}

impl Counters {
    pub(crate) fn on_sent(&mut self, payload: u32) {
        self.records_sent += 1;
        self.bytes_sent += u64::from(payload);
    }

    pub(crate) fn on_received(&mut self, payload: u32) {
        self.records_received += 1;
        self.bytes_received += u64::from(payload);
    }

    fn add(&mut self, other: &Self) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.records_sent += other.records_sent;
        self.records_received += other.records_received;
        self.records_lost += other.records_lost;
    }
}

/// A carrier in use.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) counters: Counters,
    /// Records to be given to QUIC.
    pub(crate) outbox: Vec<Datagram>,
    /// Records that QUIC has not sent yet, as last looked.
    pub(crate) queued: usize,
    /// When to look for lost ones.
    pub(crate) loss_at: Option<Time>,
    key: u64,
}

/// A path to be.
#[derive(Clone, Debug)]
pub(crate) struct NewPath {
    pub(crate) name: String,
    pub(crate) remote: SocketAddr,
    pub(crate) cost: f64,
    pub(crate) priority: Priority,
    pub(crate) kept: bool,
}

/// What is known of a path, with or without a carrier.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Identifies the path within the session.
    pub(crate) key: u64,
    pub(crate) name: String,
    pub(crate) remote: SocketAddr,
    pub(crate) cost: f64,
    pub(crate) priority: Priority,
    /// Whether the path outlives its carrier: a client's does, a server's does not.
    kept: bool,
    /// The task that keeps the path up.
    pub(crate) keeper: Option<AbortHandle>,
    pub(crate) last_error: Option<String>,
    /// Of earlier carriers.
    past: Counters,
    subflow: Option<SubflowId>,
    /// It was taken away, and is here for what it has carried: it may come back.
    removed: bool,
}

/// All paths of a session.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    entries: Vec<Entry>,
    /// By subflow.
    carriers: Vec<Option<Attached>>,
    next_key: u64,
}

impl Paths {
    /// Adds a path; it has no carrier yet. One of this name that was removed has come back. Returns its key.
    pub(crate) fn add(&mut self, new: NewPath) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        let NewPath { name, remote, cost, priority, kept } = new;
        let returned = self.entries.iter().position(|entry| entry.removed && entry.name == name);
        let past = returned.map_or_else(Counters::default, |index| self.entries[index].past);
        let (keeper, last_error, subflow, removed) = (None, None, None, false);
        let entry = Entry { key, name, remote, cost, priority, kept, keeper, last_error, past, subflow, removed };
        match returned {
            Some(index) => self.entries[index] = entry,
            None => self.entries.push(entry),
        }
        key
    }

    /// The path with this key.
    pub(crate) fn entry_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// The key of the path with this name.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.entries.iter().find(|entry| entry.name == name && !entry.removed).map(|entry| entry.key)
    }

    /// Removes a path and closes its carrier. What a client's path has carried stays known.
    pub(crate) fn remove(&mut self, now: Time, session: &mut Session, key: u64) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) else { return };
        if let Some(keeper) = entry.keeper.take() {
            keeper.abort();
        }
        entry.removed = true;
        entry.last_error = None;
        if let Some(id) = entry.subflow.take()
            && let Some(attached) = self.carriers.get_mut(id.index()).and_then(Option::take)
        {
            entry.past.add(&attached.counters);
            session.remove_path(now, id);
            attached.carrier.close(code::NO_ERROR, "path removed");
        }
        self.entries.retain(|entry| entry.kept || !entry.removed);
    }

    /// How many paths have a carrier.
    pub(crate) fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.carriers.iter().flatten()
    }

    pub(crate) fn attached_mut(&mut self) -> impl Iterator<Item = (SubflowId, &mut Attached)> {
        let numbered = (0_u32..).map(SubflowId).zip(&mut self.carriers);
        numbered.filter_map(|(id, attached)| attached.as_mut().map(|attached| (id, attached)))
    }

    /// The carrier of a subflow.
    pub(crate) fn get_mut(&mut self, id: SubflowId) -> Option<&mut Attached> {
        self.carriers.get_mut(id.index())?.as_mut()
    }

    /// Whether this is the carrier of a subflow.
    pub(crate) fn is_attached(&self, id: SubflowId, carrier: &Arc<Carrier>) -> bool {
        let held = self.carriers.get(id.index()).and_then(Option::as_ref);
        held.is_some_and(|attached| Arc::ptr_eq(&attached.carrier, carrier))
    }

    /// What the path of a subflow is called, for logs.
    pub(crate) fn name(&self, id: SubflowId) -> &str {
        self.entries.iter().find(|entry| entry.subflow == Some(id)).map_or("?", |entry| &entry.name)
    }

    /// Gives a path a carrier, in place of the one it may have.
    pub(crate) fn attach(
        &mut self,
        now: Time,
        session: &mut Session,
        key: u64,
        carrier: Arc<Carrier>,
    ) -> Result<SubflowId, PathError> {
        carrier.reports.set_answers_marks(session.controller().answers_marks());
        let size = carrier.connection.max_datagram_size().unwrap_or(0);
        let held = self.entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.subflow);
        if let Some(old) = held.and_then(|id| self.get_mut(id).map(|held| (id, Arc::clone(&held.carrier)))) {
            old.1.close(code::NO_ERROR, "replaced");
            self.detach(now, session, old.0, &old.1);
        }
        let (cost, priority) =
            self.entry_mut(key).map_or((1.0, Priority::Normal), |entry| (entry.cost, entry.priority));
        let handshake_rtt = carrier.connection.rtt(noq::PathId::ZERO).map(Duration::from);
        let init = PathInit { max_datagram: Bytes::new(size as u64), cost, priority, handshake_rtt };
        let id = match session.add_path(now, init) {
            Err(PathError::TooManyPaths(_)) if self.evict_failed(now, session) => session.add_path(now, init)?,
            result => result?,
        };
        if self.carriers.len() <= id.index() {
            self.carriers.resize_with(id.index() + 1, || None);
        }
        let counters = Counters::default();
        self.carriers[id.index()] =
            Some(Attached { carrier, counters, outbox: Vec::new(), queued: 0, loss_at: None, key });
        if let Some(entry) = self.entry_mut(key) {
            entry.subflow = Some(id);
            entry.last_error = None;
        }
        Ok(id)
    }

    /// Removes the carrier of a failed path: its peer may have come back as the one that now wants to join.
    fn evict_failed(&mut self, now: Time, session: &mut Session) -> bool {
        let failed = session.view().open().find(|view| view.state == SubflowState::Failed).map(|view| view.id);
        let carrier = failed.and_then(|id| self.get_mut(id).map(|attached| (id, Arc::clone(&attached.carrier))));
        carrier.is_some_and(|(id, carrier)| {
            carrier.close(code::NO_ERROR, "failed, and others wait");
            self.detach(now, session, id, &carrier)
        })
    }

    /// Takes a carrier away from its path. On a server the path goes with it. Says whether it was attached.
    pub(crate) fn detach(&mut self, now: Time, session: &mut Session, id: SubflowId, carrier: &Arc<Carrier>) -> bool {
        if !self.is_attached(id, carrier) {
            return false;
        }
        session.remove_path(now, id);
        if let Some(attached) = self.carriers.get_mut(id.index()).and_then(Option::take)
            && let Some(entry) = self.entry_mut(attached.key)
        {
            entry.past.add(&attached.counters);
            entry.subflow = None;
            if !entry.kept {
                self.entries.retain(|entry| entry.key != attached.key);
            }
        }
        true
    }

    /// Ends all paths; the carriers are the caller's to close.
    pub(crate) fn take_carriers(&mut self) -> Vec<Arc<Carrier>> {
        for entry in &mut self.entries {
            let carrier = entry.subflow.take().and_then(|id| self.carriers.get(id.index())).and_then(Option::as_ref);
            if let Some(attached) = carrier {
                entry.past.add(&attached.counters);
            }
            if let Some(keeper) = entry.keeper.take() {
                keeper.abort();
            }
        }
        self.carriers.drain(..).flatten().map(|attached| attached.carrier).collect()
    }

    /// Whether the carrier of a path answers.
    pub(crate) fn is_failed(&self, key: u64, view: &View) -> bool {
        let subflow = self.entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.subflow);
        subflow.and_then(|id| view.get(id)).is_some_and(|view| view.state == SubflowState::Failed)
    }

    /// What is known of every path.
    pub(crate) fn stats(&self, view: &View) -> Vec<PathStats> {
        self.entries.iter().map(|entry| self.path_stats(entry, view)).collect()
    }

    fn path_stats(&self, entry: &Entry, view: &View) -> PathStats {
        let attached = entry.subflow.and_then(|id| self.carriers.get(id.index())).and_then(Option::as_ref);
        let subflow: Option<&SubflowView> = entry.subflow.filter(|_| attached.is_some()).and_then(|id| view.get(id));
        let mut counters = entry.past;
        if let Some(attached) = attached {
            counters.add(&attached.counters);
        }
        PathStats {
            id: subflow.map(|subflow| subflow.id),
            name: entry.name.clone(),
            local: attached.and_then(|attached| attached.carrier.local),
            remote: attached.and_then(|attached| attached.carrier.remote()).unwrap_or(entry.remote),
            state: match subflow.map(|subflow| subflow.state) {
                _ if entry.removed => PathState::Removed,
                Some(SubflowState::Active) => PathState::Active,
                Some(SubflowState::Failed) => PathState::Failed,
                Some(SubflowState::Closed) | None => PathState::Connecting,
            },
            priority: subflow.map_or(entry.priority, |subflow| subflow.priority),
            cost: subflow.map_or(entry.cost, |subflow| subflow.cost),
            srtt: subflow.and_then(|subflow| subflow.srtt),
            cwnd: subflow.map_or(Bytes::ZERO, |subflow| subflow.cwnd),
            in_flight: subflow.map_or(Bytes::ZERO, |subflow| subflow.in_flight),
            pacing: subflow.and_then(|subflow| subflow.pacing),
            bytes_sent: Bytes::new(counters.bytes_sent),
            bytes_received: Bytes::new(counters.bytes_received),
            records_sent: counters.records_sent,
            records_lost: counters.records_lost,
            records_received: counters.records_received,
            last_error: entry.last_error.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_session::Role;

    use super::*;
    use crate::config::TransportConfig;
    use crate::settings;

    /// A path with somebody who keeps it up, and the session without it.
    fn kept_up(paths: &mut Paths, kept: bool) -> (u64, AbortHandle) {
        let remote = SocketAddr::from(([192, 0, 2, 1], 4433));
        let (name, cost, priority) = ("wlan0".to_owned(), 1.0, Priority::Normal);
        let key = paths.add(NewPath { name, remote, cost, priority, kept });
        let keeper = tokio::spawn(std::future::pending::<()>()).abort_handle();
        let entry = paths.entry_mut(key).unwrap();
        entry.last_error = Some("nobody answers".to_owned());
        entry.keeper = Some(keeper.clone());
        (key, keeper)
    }

    #[tokio::test]
    async fn nobody_keeps_a_path_up_that_was_removed() {
        let transport = TransportConfig::default();
        let mut session = settings::session(&transport, Role::Client, settings::limits(&transport), 8).unwrap();
        let mut paths = Paths::default();
        let (key, keeper) = kept_up(&mut paths, true);
        assert_eq!(paths.find("wlan0"), Some(key));
        paths.remove(Time::ZERO, &mut session, key);
        tokio::task::yield_now().await;
        assert!(keeper.is_finished());
        assert_eq!(paths.find("wlan0"), None);
        let stats = paths.stats(session.view());
        assert_eq!((stats.len(), stats[0].state, &stats[0].last_error), (1, PathState::Removed, &None));
        // Of a server's path nothing stays.
        let (key, _) = kept_up(&mut paths, false);
        paths.remove(Time::ZERO, &mut session, key);
        assert_eq!(paths.entries.len(), 0);
    }

    #[tokio::test]
    async fn nobody_keeps_paths_up_when_the_session_is_over() {
        let mut paths = Paths::default();
        let (_, keeper) = kept_up(&mut paths, true);
        assert!(paths.take_carriers().is_empty());
        tokio::task::yield_now().await;
        assert!(keeper.is_finished());
    }
}
