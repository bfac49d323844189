//! A connection: one session over its paths, as the application sees it.

use std::sync::Arc;

use manypath_core::Bytes;
use manypath_session::FlowError;

use crate::client::Client;
use crate::config::{ClientConfig, PathConfig};
use crate::engine::Engine;
use crate::error::{CloseReason, ConnectError, OpenError, PathChangeError};
use crate::flow::{RecvFlow, SendFlow, halves};
use crate::stats::ConnectionStats;

/// A connection; clones are the same one.
///
/// When the last clone and the last half of a flow are dropped, the connection closes with code 0, as soon as everything
/// written and finished is delivered, but after ten seconds at the latest.
#[derive(Clone, Debug)]
pub struct Connection {
    handle: Arc<Handle>,
}

/// What keeps the connection open.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    /// On a client: who keeps its paths up.
    client: Option<Arc<Client>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.engine.finish();
    }
}

/// Opens a connection; returns as soon as the first path is up, the others follow in the background.
///
/// # Errors
/// If no path comes up in time, or none can for a reason that trying again does not mend.
pub async fn connect(config: ClientConfig) -> Result<Connection, ConnectError> {
    Client::open(config).await
}

impl Connection {
    pub(crate) fn new(engine: Arc<Engine>, client: Option<Arc<Client>>) -> Self {
        Self { handle: Arc::new(Handle { engine, client }) }
    }

    /// Opens a flow; waits while the peer allows no more. The peer sees it when something is written or it is finished.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_flow(&self) -> Result<(SendFlow, RecvFlow), OpenError> {
        let engine = &self.handle.engine;
        loop {
            let mut closed = std::pin::pin!(engine.flow_closed.notified());
            closed.as_mut().enable();
            {
                let state = &mut *engine.lock();
                if let Some(reason) = &state.ended {
                    return Err(OpenError::Closed(reason.clone()));
                }
                match state.session.open_flow() {
                    Ok(id) => {
                        state.flows.entry(id).or_default().handles = 2;
                        return Ok(halves(&self.handle, id));
                    }
                    Err(FlowError::TooManyFlows | FlowError::Closed | FlowError::Finished) => {}
                }
            }
            closed.await;
        }
    }

    /// The next flow the peer opened; `None` when the connection is over.
    pub async fn accept_flow(&self) -> Option<(SendFlow, RecvFlow)> {
        let engine = &self.handle.engine;
        loop {
            let mut opened = std::pin::pin!(engine.flow_accepted.notified());
            opened.as_mut().enable();
            {
                let state = &mut *engine.lock();
                if let Some(id) = state.accepted.pop_front() {
                    state.with_flow(id, |flow| flow.handles = 2);
                    return Some(halves(&self.handle, id));
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            opened.await;
        }
    }

    /// Counters and the state of every path.
    pub fn stats(&self) -> ConnectionStats {
        let state = &*self.handle.engine.lock();
        let totals = state.session.totals();
        ConnectionStats {
            paths: state.paths.stats(state.session.view()),
            written: Bytes::new(state.written),
            delivered: totals.acknowledged,
            received: totals.received,
            received_again: totals.received_again,
            retransmitted: totals.retransmitted,
            duplicated: totals.duplicated,
            send_memory: Bytes::new(state.flows.values().map(|flow| flow.send.memory() as u64).sum()),
            receive_memory: Bytes::new(state.flows.values().map(|flow| flow.recv.memory() as u64).sum()),
        }
    }

    /// Adds a path (client only). It comes up in the background.
    ///
    /// # Errors
    /// If the name is taken, this end is the server, or the connection is over.
    pub fn add_path(&self, path: PathConfig) -> Result<(), PathChangeError> {
        let client = self.handle.client.as_ref().ok_or(PathChangeError::NotClient)?;
        client.add_path(path)
    }

    /// Removes a path (client only). What it had in flight is sent on the others.
    ///
    /// # Errors
    /// If no path has the name, this end is the server, or the connection is over.
    pub fn remove_path(&self, name: &str) -> Result<(), PathChangeError> {
        if self.handle.client.is_none() {
            return Err(PathChangeError::NotClient);
        }
        self.handle.engine.remove_path(name)
    }

    /// Ends the connection now. What is not delivered yet is abandoned. The peer is told in the background; wait for
    /// [`Self::closed`] before the process ends.
    pub fn close(&self, code: u32, reason: &str) {
        self.handle.engine.close(code, reason);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.handle.engine.is_over()
    }

    /// Waits until the connection is over and the peer was told.
    pub async fn closed(&self) -> CloseReason {
        self.handle.engine.closed().await
    }
}
