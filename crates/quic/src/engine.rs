//! One session with its carriers and the bytes of its flows.
//!
//! The engine's state is behind one lock. The network thread takes it once for a batch of datagrams or reports; the
//! application takes it to copy bytes in or out. Everything that touches QUIC happens on the network thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use manypath_core::{Duration, SubflowId, Time};
use manypath_session::{PathError, Session, SessionEvent};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::carrier::Carrier;
use crate::code;
use crate::error::{CloseReason, PathChangeError};
use crate::flow_state::FlowState;
use crate::message::readable;
use crate::reactor::{self, Guarded};
use crate::reports::News;
use crate::state::{Farewell, State};
use crate::timer::Timer;

/// A timer that is due although nothing could be done about it fires again after this long: a bound on idle turning.
const MIN_TIMER: Duration = Duration::from_micros(50);

/// A session in operation.
#[derive(Debug)]
pub(crate) struct Engine {
    state: Mutex<State>,
    epoch: Instant,
    timer: Timer,
    /// The application did something: the network thread looks.
    kick: Notify,
    /// A flow of the peer waits to be accepted, or the session is over.
    pub(crate) flow_accepted: Notify,
    /// A flow was closed, so that another may be opened, or the session is over.
    pub(crate) flow_closed: Notify,
    closed: watch::Sender<Option<CloseReason>>,
    network: Handle,
}

/// A carrier cannot be used for a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error("the session is over: {0}")]
    Ended(CloseReason),
    #[error(transparent)]
    Path(#[from] PathError),
}

/// How long a session that the application let go of may take to deliver what was written.
const FINISH_PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Puts a session into operation. Must be called on the network thread.
    pub(crate) fn start(session: Session, linger: Duration, lifetime: Duration) -> std::io::Result<Arc<Self>> {
        let engine = Arc::new(Self {
            state: Mutex::new(State::new(session, linger, lifetime)),
            epoch: Instant::now(),
            timer: Timer::new()?,
            kick: Notify::new(),
            flow_accepted: Notify::new(),
            flow_closed: Notify::new(),
            closed: watch::Sender::new(None),
            network: Handle::current(),
        });
        reactor::watch(&engine);
        reactor::spawn(drive(Arc::clone(&engine)));
        Ok(engine)
    }

    /// The engine's clock.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed().into()
    }

    /// The state. A panic while it was held cannot leave bytes torn: sessions survive it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the network thread look at what the application did.
    pub(crate) fn kick(&self) {
        self.kick.notify_one();
    }

    /// Waits until the session is over and the peer was told.
    pub(crate) async fn closed(&self) -> CloseReason {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            Err(_) => None,
        }
        .unwrap_or(CloseReason::Local { code: 0 })
    }

    /// Whether [`Self::closed`] returns at once.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.borrow().is_some()
    }

    // Carriers.

    /// Adds a carrier as the path with this key.
    ///
    /// # Errors
    /// If the session is over, or takes no more paths, or not such a path.
    pub(crate) fn attach(self: &Arc<Self>, key: u64, carrier: Arc<Carrier>) -> Result<(), AttachError> {
        let now = self.now();
        let state = &mut *self.lock();
        if let Some(reason) = &state.ended {
            return Err(AttachError::Ended(reason.clone()));
        }
        let id = state.paths.attach(now, &mut state.session, key, Arc::clone(&carrier))?;
        state.pathless_since = None;
        self.work(state, now);
        reactor::spawn(serve(Arc::clone(self), id, carrier));
        Ok(())
    }

    /// Removes the carrier of a path, if it is still the one attached.
    fn detach(self: &Arc<Self>, id: SubflowId, carrier: &Arc<Carrier>) {
        let now = self.now();
        let state = &mut *self.lock();
        if state.paths.detach(now, &mut state.session, id, carrier) {
            state.on_path_gone(now);
            self.work(state, now);
        }
    }

    /// Forgets a path that never got a carrier.
    pub(crate) fn forget_path(&self, key: u64) {
        let now = self.now();
        let state = &mut *self.lock();
        state.paths.remove(now, &mut state.session, key);
    }

    /// Removes the path with this name.
    pub(crate) fn remove_path(self: &Arc<Self>, name: &str) -> Result<(), PathChangeError> {
        let now = self.now();
        let state = &mut *self.lock();
        if let Some(reason) = &state.ended {
            return Err(PathChangeError::Closed(reason.clone()));
        }
        let key = state.paths.find(name).ok_or_else(|| PathChangeError::UnknownName(name.to_owned()))?;
        state.paths.remove(now, &mut state.session, key);
        state.on_path_gone(now);
        self.kick();
        Ok(())
    }

    // The end.

    /// The application closes the session.
    pub(crate) fn close(self: &Arc<Self>, code: u32, reason: &str) {
        let farewell = Farewell::Close { code, reason: reason.to_owned() };
        self.end(&mut self.lock(), CloseReason::Local { code }, Some(farewell));
    }

    /// The application let go of the session: it ends when everything is delivered.
    pub(crate) fn finish(&self) {
        let now = self.now();
        self.lock().finish_by.get_or_insert(now + FINISH_PATIENCE);
        self.kick();
    }

    /// The session ends by the protocol's rules.
    pub(crate) fn end_with(self: &Arc<Self>, reason: CloseReason, code: u32, text: &str) {
        let farewell = Farewell::Code { code, reason: text.to_owned() };
        self.end(&mut self.lock(), reason, Some(farewell));
    }

    /// The peer ended the session.
    pub(crate) fn on_peer_closed(self: &Arc<Self>, reason: CloseReason) {
        self.end(&mut self.lock(), reason, None);
    }

    fn end(self: &Arc<Self>, state: &mut State, reason: CloseReason, farewell: Option<Farewell>) {
        if state.ended.is_some() {
            return;
        }
        tracing::info!(%reason, "session over");
        state.ended = Some(reason.clone());
        for flow in state.flows.values_mut() {
            flow.wake_all();
        }
        let carriers: Vec<_> = state.paths.take_carriers();
        self.flow_accepted.notify_waiters();
        self.flow_closed.notify_waiters();
        self.kick();
        let engine = Arc::clone(self);
        self.network.spawn(Guarded::new(async move {
            let mut farewells = tokio::task::JoinSet::new();
            for carrier in carriers {
                let farewell = farewell.clone();
                farewells.spawn(Guarded::new(async move {
                    match farewell {
                        Some(Farewell::Close { code, reason }) => carrier.close_session(code, &reason).await,
                        Some(Farewell::Code { code, reason }) => carrier.close(code, &reason),
                        None => carrier.close(code::NO_ERROR, ""),
                    }
                }));
            }
            farewells.join_all().await;
            // The closing packets leave when QUIC's tasks have had their turn.
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            engine.closed.send_replace(Some(reason));
        }));
    }

    /// The network thread ends for a defect: nobody works for the session any more, and nobody touches its carriers.
    pub(crate) fn on_defect(&self, what: &str) {
        let state = &mut *self.lock();
        let reason = state.ended.get_or_insert_with(|| CloseReason::Defect(what.to_owned())).clone();
        for flow in state.flows.values_mut() {
            flow.wake_all();
        }
        std::mem::forget(state.paths.take_carriers());
        self.flow_accepted.notify_waiters();
        self.flow_closed.notify_waiters();
        self.closed.send_replace(Some(reason));
    }

    // Work.

    /// Does everything that is due: timers, sending, telling the application; then sets the timer.
    fn work(self: &Arc<Self>, state: &mut State, now: Time) {
        if state.ended.is_some() {
            return;
        }
        state.run_timers(now);
        state.send(now);
        while let Some(event) = state.session.poll_event() {
            self.on_event(state, event);
        }
        if let Some((reason, farewell)) = state.reason_to_end(now) {
            self.end(state, reason, Some(farewell));
            return;
        }
        if let Some(at) = state.next_look()
            && state.armed.is_none_or(|armed| at < armed)
        {
            let after = at.since(now).max(MIN_TIMER);
            match self.timer.arm(after.into()) {
                Ok(()) => state.armed = Some(now + after),
                Err(error) => tracing::error!(%error, "the timer cannot be set"),
            }
        }
    }

    fn on_event(&self, state: &mut State, event: SessionEvent) {
        match event {
            SessionEvent::FlowOpened(id) => {
                state.flows.entry(id).or_default();
                state.accepted.push_back(id);
                self.flow_accepted.notify_one();
            }
            SessionEvent::Readable(id) => state.with_flow(id, FlowState::wake_reader),
            SessionEvent::Writable(id) => state.with_flow(id, FlowState::wake_writer),
            SessionEvent::FlowReset { flow, code } => state.with_flow(flow, |flow| flow.on_reset(code)),
            SessionEvent::FlowStopped { flow, code } => state.with_flow(flow, |flow| flow.on_stopped(code)),
            SessionEvent::FlowClosed(id) => {
                if state.flows.get_mut(&id).is_some_and(FlowState::on_closed) {
                    state.flows.remove(&id);
                    // The peer may have given it up before anybody accepted it.
                    state.accepted.retain(|waiting| *waiting != id);
                }
                self.flow_closed.notify_waiters();
            }
            SessionEvent::PathFailed(id) => {
                tracing::info!(path = state.paths.name(id), "path failed");
            }
            SessionEvent::PathRestored(id) => {
                tracing::info!(path = state.paths.name(id), "path restored");
            }
            SessionEvent::PathStatus(_) => {}
        }
    }

    /// Takes what a carrier brought. An error ends the session.
    fn on_batch(
        self: &Arc<Self>,
        state: &mut State,
        now: Time,
        id: SubflowId,
        carrier: &Carrier,
        datagrams: &[Bytes],
        news: &News,
    ) {
        state.on_fates(now, id, &news.fates);
        state.set_loss_at(id, news.loss_at.map(|at| Time::ZERO + at.saturating_duration_since(self.epoch).into()));
        if news.mtu_changed
            && let Some(size) = carrier.connection.max_datagram_size()
        {
            state.on_datagram_size(id, size);
        }
        match state.on_datagrams(now, id, datagrams) {
            Ok(()) => self.work(state, now),
            Err((code, reason)) => {
                let farewell = Farewell::Code { code, reason: reason.clone() };
                self.end(state, CloseReason::Protocol(reason), Some(farewell));
            }
        }
    }
}

/// Works for the application and the timers, until the session is over.
async fn drive(engine: Arc<Engine>) {
    loop {
        tokio::select! {
            () = engine.kick.notified() => {}
            fired = engine.timer.fired() => {
                if let Err(error) = fired {
                    tracing::error!(%error, "the timer failed");
                    engine.end_with(CloseReason::Protocol(error.to_string()), code::SHUTDOWN, "internal error");
                }
                engine.lock().armed = None;
            }
        }
        let now = engine.now();
        let state = &mut *engine.lock();
        if state.ended.is_some() {
            return;
        }
        engine.work(state, now);
    }
}

/// Works for one carrier, until it ends.
async fn serve(engine: Arc<Engine>, id: SubflowId, carrier: Arc<Carrier>) {
    let mut datagrams = vec![Bytes::new(); 128];
    let mut news = News::default();
    let error = loop {
        let count = tokio::select! {
            read = carrier.connection.read_many_datagrams(&mut datagrams) => read,
            () = carrier.reports.notify.notified() => Ok(0),
        };
        let count = match count {
            Ok(count) => count,
            Err(error) => break error,
        };
        carrier.reports.take(&mut news);
        let now = engine.now();
        let state = &mut *engine.lock();
        if !state.paths.is_attached(id, &carrier) {
            return;
        }
        engine.on_batch(state, now, id, &carrier, &datagrams[..count], &news);
        // The buffers belong to whole UDP batches: they are not kept longer than needed.
        datagrams[..count].fill(Bytes::new());
    };
    tracing::debug!(%error, "carrier ended");
    if let noq::ConnectionError::ApplicationClosed(close) = &error {
        let reason = readable(&close.reason);
        match code::meaning(close.error_code.into_inner()) {
            code::Meaning::Carrier => {}
            code::Meaning::Application(code) => engine.on_peer_closed(CloseReason::Peer { code, reason }),
            code::Meaning::Ended => engine.on_peer_closed(CloseReason::Server(reason)),
            code::Meaning::Accusation => engine.on_peer_closed(CloseReason::Accused(reason)),
        }
    }
    engine.detach(id, &carrier);
}

#[cfg(test)]
mod tests;
