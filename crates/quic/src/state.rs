//! What the engine's lock protects, and what is done with it that needs no task: sending, taking records and reports.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use manypath_core::{Duration, FlowId, SubflowId, Time};
use manypath_session::{Received, Record, Session};

use crate::carrier::MAX_QUEUED;
use crate::code;
use crate::error::CloseReason;
use crate::flow_state::FlowState;
use crate::paths::{Attached, Counters, Paths};
use crate::reports::Fate;

/// A timer that is this late was not looked at: the shortest silence that fails a path is 250 ms.
const STANDSTILL: Duration = Duration::from_millis(50);
/// How long reading what has arrived meanwhile may take: a socket's buffer is some hundred packets.
const TO_READ: Duration = Duration::from_millis(10);

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) flows: BTreeMap<FlowId, FlowState>,
    pub(crate) accepted: VecDeque<FlowId>,
    pub(crate) paths: Paths,
    /// Why the session is over, once it is.
    pub(crate) ended: Option<CloseReason>,
    /// Bytes the application wrote.
    pub(crate) written: u64,
    pub(crate) linger: Duration,
    /// When the last path went.
    pub(crate) pathless_since: Option<Time>,
    pub(crate) expires: Time,
    /// The application let go: the session ends when everything is delivered, or at this time.
    pub(crate) finish_by: Option<Time>,
    pub(crate) armed: Option<Time>,
    /// When the network thread last looked.
    looked: Time,
    /// The thread stood still: until then what arrived meanwhile is read, and nobody is called silent.
    excused_until: Option<Time>,
}

/// How the peer learns that the session ended.
#[derive(Clone, Debug)]
pub(crate) enum Farewell {
    /// The application's close.
    Close { code: u32, reason: String },
    /// One of the protocol's codes.
    Code { code: u32, reason: String },
}

impl State {
    pub(crate) fn new(session: Session, linger: Duration, lifetime: Duration) -> Self {
        Self {
            session,
            flows: BTreeMap::new(),
            accepted: VecDeque::new(),
            paths: Paths::default(),
            ended: None,
            written: 0,
            linger,
            pathless_since: Some(Time::ZERO),
            expires: Time::ZERO + lifetime,
            finish_by: None,
            armed: None,
            looked: Time::ZERO,
            excused_until: None,
        }
    }

    /// Does what the session's timers ask for. If nobody looked at a timer for long (the process was stopped, or got no
    /// processor), what arrived meanwhile waits unread, and by the clock alone every path would be silent: it is read first.
    pub(crate) fn run_timers(&mut self, now: Time) {
        let due = self.session.next_timeout().filter(|at| *at <= now);
        if due.is_some_and(|at| now.since(at.max(self.looked)) > STANDSTILL) {
            self.excused_until.get_or_insert(now + TO_READ);
        }
        self.looked = now;
        if self.excused_until.is_some_and(|until| now < until) {
            return;
        }
        self.excused_until = None;
        for (_, attached) in self.paths.attached_mut() {
            if attached.loss_at.take_if(|at| *at <= now).is_some() {
                // The carrier's task brings what was found, and when to look next.
                attached.carrier.reports.detect_losses(Instant::now());
            }
        }
        if due.is_some() {
            self.session.on_timeout(now);
        }
    }

    /// When the network thread must look again.
    pub(crate) fn next_look(&self) -> Option<Time> {
        let losses = self.paths.attached().filter_map(|attached| attached.loss_at);
        let timers = self.excused_until.or_else(|| self.session.next_timeout().into_iter().chain(losses).min());
        let own = [self.pathless_since.map(|since| since + self.linger), self.finish_by, Some(self.expires)];
        own.into_iter().flatten().chain(timers).min()
    }

    /// A path lost its carrier.
    pub(crate) fn on_path_gone(&mut self, now: Time) {
        if self.paths.attached().next().is_none() {
            self.pathless_since.get_or_insert(now);
        }
    }

    /// Applies a change to a flow, if it is known.
    pub(crate) fn with_flow(&mut self, id: FlowId, change: impl FnOnce(&mut FlowState)) {
        if let Some(flow) = self.flows.get_mut(&id) {
            change(flow);
        }
    }

    /// Whether the session has to end now.
    pub(crate) fn reason_to_end(&self, now: Time) -> Option<(CloseReason, Farewell)> {
        let by_code = |code, reason: &str| Farewell::Code { code, reason: reason.to_owned() };
        if self.pathless_since.is_some_and(|since| since + self.linger <= now) {
            let text = "no path for too long";
            return Some((CloseReason::NoPath { linger: self.linger }, by_code(code::NO_PATH, text)));
        }
        if self.expires <= now {
            let text = "the session reached its limit of time";
            return Some((CloseReason::Server(text.to_owned()), by_code(code::LIFETIME, text)));
        }
        let delivered = self.session.queue().held().is_zero();
        self.finish_by.filter(|by| delivered || *by <= now).map(|_| {
            let farewell = Farewell::Close { code: 0, reason: String::new() };
            (CloseReason::Local { code: 0 }, farewell)
        })
    }

    /// Sends what the session wants to send.
    pub(crate) fn send(&mut self, now: Time) {
        for (id, attached) in self.paths.attached_mut() {
            attached.queued = attached.carrier.reports.queued(MAX_QUEUED);
            self.session.set_carrier_ready(id, attached.queued < MAX_QUEUED);
        }
        while let Some(transmit) = self.session.poll_transmit(now) {
            let Some(attached) = self.paths.get_mut(transmit.subflow) else { continue };
            let mut bytes = attached.carrier.reports.buffer();
            transmit.record.encode(&mut bytes);
            if let Record::Data(data) = &transmit.record {
                attached.counters.on_sent(data.len);
                if let Some(flow) = self.flows.get(&data.flow) {
                    let range = data.offset..data.offset + u64::from(data.len);
                    flow.send.pieces(range).for_each(|piece| bytes.extend_from_slice(piece));
                }
            }
            debug_assert_eq!(bytes.len(), transmit.record.encoded_len(), "{:?}", transmit.record);
            attached.outbox.push(attached.carrier.reports.datagram(bytes, transmit.packet));
            attached.queued += 1;
            if attached.queued >= MAX_QUEUED {
                attached.flush();
                self.session.set_carrier_ready(transmit.subflow, false);
            }
        }
        for (_, attached) in self.paths.attached_mut() {
            attached.flush();
        }
    }

    /// Takes what became of a carrier's records.
    pub(crate) fn on_fates(&mut self, now: Time, id: SubflowId, fates: &[Fate]) {
        for fate in fates {
            match *fate {
                Fate::Acked(packet) => self.session.on_acked(now, id, packet),
                Fate::Lost(packet) => {
                    self.counters(id, |counters| counters.records_lost += 1);
                    self.session.on_lost(now, id, packet);
                }
                Fate::Marked(packet) => self.session.on_ecn(now, id, packet),
            }
        }
    }

    /// Losses on a path must be looked for at this time.
    pub(crate) fn set_loss_at(&mut self, id: SubflowId, at: Option<Time>) {
        if let Some(attached) = self.paths.get_mut(id) {
            attached.loss_at = at;
        }
    }

    /// The datagrams of a carrier have another size now.
    pub(crate) fn on_datagram_size(&mut self, id: SubflowId, size: usize) {
        tracing::debug!(path = self.paths.name(id), size, "datagram size");
        self.session.set_max_datagram(id, manypath_core::Bytes::new(size as u64));
    }

    fn counters(&mut self, id: SubflowId, count: impl FnOnce(&mut Counters)) {
        if let Some(attached) = self.paths.get_mut(id) {
            count(&mut attached.counters);
        }
    }

    /// Takes records. The error is the code and the reason to end the session with.
    pub(crate) fn on_datagrams(&mut self, now: Time, id: SubflowId, datagrams: &[Bytes]) -> Result<(), (u32, String)> {
        let mut acknowledged = false;
        for datagram in datagrams {
            let decoded = Record::decode(datagram).map_err(|error| (code::BAD_RECORD, error.to_string()))?;
            let Some((record, payload)) = decoded else { continue };
            acknowledged |= matches!(record, Record::Ack(_));
            if let Record::Data(data) = &record {
                self.counters(id, |counters| counters.on_received(data.len));
            }
            // QUIC keeps the congestion mark of a received packet to itself; the sender hears of it by QUIC's ACKs.
            let received = self.session.on_record(now, id, &record, false);
            match received.map_err(|error| (error.code(), error.to_string()))? {
                Received::Nothing => {}
                Received::Store { flow, offset, skip, len } => {
                    let payload = payload.get(skip as usize..(skip + len) as usize).unwrap_or_default();
                    self.flows.entry(flow).or_default().recv.write(offset, payload);
                }
            }
        }
        if acknowledged {
            let left_edge = self.session.queue().left_edge();
            for (id, flow) in &mut self.flows {
                flow.on_acknowledged(self.session.released(*id), left_edge);
            }
        }
        Ok(())
    }
}

impl Attached {
    /// Gives what is collected to QUIC.
    fn flush(&mut self) {
        if !self.outbox.is_empty() {
            self.carrier.send(&mut self.outbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Bytes as Size, SubflowState};
    use manypath_session::{PathInit, Role};

    use super::*;
    use crate::config::TransportConfig;
    use crate::settings;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    /// That lives 10 s without a path, and 100 s at most.
    fn state() -> State {
        let transport = TransportConfig::default();
        let session = settings::session(&transport, Role::Server, settings::limits(&transport), 8).unwrap();
        State::new(session, Duration::from_secs(10), Duration::from_secs(100))
    }

    /// Writes on a new flow, and has one packet of it leave on a new path at the time.
    fn sending(state: &mut State, now: Time) -> SubflowId {
        let path = state.session.add_path(now, PathInit::new(Size::new(1200))).unwrap();
        let flow = state.session.open_flow().unwrap();
        state.session.write(now, flow, 1000).unwrap();
        while state.session.poll_transmit(now).is_some() {}
        assert!(!state.session.view().get(path).unwrap().in_flight.is_zero());
        path
    }

    fn ends_with(state: &State, now: Time) -> Option<CloseReason> {
        state.reason_to_end(now).map(|(reason, _)| reason)
    }

    #[test]
    fn a_session_that_never_gets_a_path_ends() {
        let state = state();
        assert_eq!(state.next_look(), Some(at(10)));
        assert_eq!(ends_with(&state, at(9)), None);
        assert_eq!(ends_with(&state, at(10)), Some(CloseReason::NoPath { linger: Duration::from_secs(10) }));
    }

    #[test]
    fn a_session_with_a_path_ends_with_its_lifetime() {
        let mut state = state();
        state.pathless_since = None;
        assert_eq!(state.next_look(), Some(at(100)));
        assert_eq!(ends_with(&state, at(99)), None);
        assert!(matches!(ends_with(&state, at(100)), Some(CloseReason::Server(_))));
    }

    #[test]
    fn a_session_that_was_let_go_ends_when_everything_is_delivered_but_in_time() {
        let mut state = state();
        state.pathless_since = None;
        state.finish_by = Some(at(20));
        assert_eq!(ends_with(&state, at(1)), Some(CloseReason::Local { code: 0 }));
        let flow = state.session.open_flow().unwrap();
        state.session.write(at(1), flow, 100).unwrap();
        assert_eq!(ends_with(&state, at(19)), None);
        assert_eq!(state.next_look(), Some(at(20)));
        assert_eq!(ends_with(&state, at(20)), Some(CloseReason::Local { code: 0 }));
    }

    #[test]
    fn what_arrived_during_a_standstill_is_read_before_anybody_is_called_silent() {
        let mut state = state();
        let path = sending(&mut state, at(0));
        let is_failed = |state: &State| state.session.view().get(path).unwrap().state == SubflowState::Failed;
        state.run_timers(at(5));
        assert!(!is_failed(&state));
        assert_eq!(state.next_look(), Some(at(5) + TO_READ));
        state.run_timers(at(5) + TO_READ);
        assert!(is_failed(&state));
    }

    #[test]
    fn a_timer_that_was_looked_at_a_moment_ago_is_no_standstill() {
        let mut state = state();
        let path = sending(&mut state, at(0));
        state.looked = at(5);
        state.run_timers(at(5) + STANDSTILL);
        assert_eq!(state.session.view().get(path).unwrap().state, SubflowState::Failed);
    }

    #[test]
    fn the_controller_hears_of_marks_and_the_session_of_the_size_of_datagrams() {
        let mut state = state();
        let path = sending(&mut state, at(0));
        let window = |state: &State| state.session.view().get(path).unwrap().cwnd;
        let before = window(&state);
        state.on_fates(at(0), path, &[Fate::Marked(manypath_core::PacketNumber(0))]);
        assert!(window(&state) < before);
        state.on_datagram_size(path, 1400);
        assert_eq!(state.session.view().get(path).unwrap().mss, Size::new(1400));
    }
}
