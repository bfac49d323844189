//! What goes out: control records that are owed, then data as scheduler, window and pacer allow.

use manypath_cc::Event;
use manypath_core::{Bytes, DataRange, DataSeq, Duration, PacketNumber, SubflowId, SubflowState, Time};
use manypath_sched::{Choice, Content};

use crate::config::Carriage;
use crate::delay::micros;
use crate::path::{Path, Queued};
use crate::record::{Ack, Data, Record, SendTime};
use crate::session::Session;

/// How often a failed path is probed, at the least and at the most.
pub(crate) const PROBE_INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Between two PONGs of a path lies at least this: a bound on what a peer can make us send.
pub(crate) const PONG_INTERVAL: Duration = Duration::from_millis(1);

/// The most decisions a scheduler is asked for before something must leave: a bound against one that never waits.
const MAX_DECISIONS: u32 = 100_000;

/// A record that is to leave now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmit {
    /// On which path.
    pub subflow: SubflowId,
    /// The record. The payload of DATA is the flow's bytes from `offset` on, `len` of them.
    pub record: Record,
    /// The number under which the carrier reports what became of it; `None` for control records, which are not reported.
    pub packet: Option<PacketNumber>,
    /// On a path that carries a stream: the packet in which this very data left first, where it leaves again.
    pub repeats: Option<PacketNumber>,
}

/// What came of a decision of the scheduler.
enum Decision {
    /// A packet that leaves at once.
    Sent(Outgoing),
    /// Something changed: look again for what may leave.
    Again,
    /// Nothing more for now.
    Wait,
}

/// A data packet that leaves: a [`Transmit`] without the room that acknowledgements would need, as it is handed on for
/// every packet.
pub(crate) struct Outgoing {
    subflow: SubflowId,
    packet: PacketNumber,
    repeats: Option<PacketNumber>,
    range: DataRange,
    content: Content,
    copy: bool,
    sent: SendTime,
}

impl Outgoing {
    #[inline]
    fn transmit(self) -> Transmit {
        let Self { subflow, packet, repeats, range, content, copy, sent } = self;
        Transmit { subflow, record: record(range, content, copy, sent), packet: Some(packet), repeats }
    }
}

/// The record of a range that stands for `content`.
#[inline]
pub(crate) fn record(range: DataRange, content: Content, copy: bool, sent: SendTime) -> Record {
    match content {
        Content::Data { flow, offset, fin } => {
            // A datagram is smaller than 64 KiB.
            let len = u32::try_from(content.payload_len(range.len())).unwrap_or(u32::MAX);
            Record::Data(Data { flow, seq: range.start, offset, len, fin, copy, sent, deadline: None })
        }
        Content::Reset { flow, code } => Record::Reset { flow, seq: range.start, code, sent },
        Content::Skip => Record::Skip { range, sent },
    }
}

impl Session {
    /// Whether neither a record to send nor an event can have come up since the last look, so that an engine need not
    /// look: something received needs no answer, and nothing is waiting to leave.
    pub fn is_quiet(&self, now: Time) -> bool {
        now < self.quiet_until && self.queue.is_empty() && self.events.is_empty() && !self.queue.writer_waits()
    }

    /// The next record to send now; `None` when there is none until something happens or
    /// [`next_timeout`](Self::next_timeout) comes.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some((subflow, record)) = self.poll_control(now) {
            return Some(Transmit { subflow, record, packet: None, repeats: None });
        }
        for _ in 0..MAX_DECISIONS {
            if let Some(outgoing) = self.poll_queued(now) {
                return Some(outgoing.transmit());
            }
            match self.schedule(now) {
                Decision::Sent(outgoing) => return Some(outgoing.transmit()),
                Decision::Again => {}
                Decision::Wait => break,
            }
        }
        // What was sent made room for more to be written.
        self.wake_writers();
        self.mark_app_limited();
        self.poll_idle(now)
    }

    // Data.

    /// Carries out one decision of the scheduler.
    fn schedule(&mut self, now: Time) -> Decision {
        self.ask_at = Time::MAX;
        if self.queue.is_empty() {
            return Decision::Wait;
        }
        if self.queue.unsent().is_zero() {
            // Schedulers ask whether a writer waits: only one for whom there is no room does.
            self.wake_writers();
        }
        let choice = self.scheduler.pick(now, &self.view, &self.queue);
        if let Some(trace) = &mut self.trace {
            trace.report(now, choice, self.scheduler.reason(), &self.queue);
        }
        let (subflow, range, duplicate) = match choice {
            Choice::Wait => {
                self.ask_at = self.scheduler.asks_at().filter(|at| *at > now).unwrap_or(Time::MAX);
                if self.queue.is_window_blocked() {
                    self.arm_blocked_probe(now);
                }
                return Decision::Wait;
            }
            Choice::Send { subflow, range } => (subflow, range, false),
            Choice::Duplicate { subflow, range, penalise } => {
                if let Some(held_up) = penalise {
                    self.notify_if_open(now, held_up);
                }
                (subflow, range, true)
            }
            Choice::Penalise { subflow } => {
                self.notify_if_open(now, subflow);
                return Decision::Again;
            }
        };
        self.assign(now, subflow, range, duplicate)
    }

    fn notify_if_open(&mut self, now: Time, id: SubflowId) {
        if self.path(id).is_some() {
            self.notify(now, id, &Event::Penalised);
        }
    }

    /// Gives data to a path. A decision that breaks the scheduler's contract is not carried out.
    fn assign(&mut self, now: Time, id: SubflowId, range: DataRange, duplicate: bool) -> Decision {
        let usable = self.view.get(id).is_some_and(|view| view.state == SubflowState::Active);
        let Some(content) = self.queue.content_at(range).filter(|_| usable && !range.is_empty()) else {
            debug_assert!(false, "the scheduler chose {id} and {range:?}");
            return Decision::Wait;
        };
        let bytes = self.config.record_header + Bytes::new(content.payload_len(range.len()));
        let copy = self.queue.on_assigned(now, range, id);
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return Decision::Again };
        let view = &mut self.view.subflows[id.index()];
        if !copy && path.queue.is_empty() && path.lets_go(now, view) && bytes <= view.mss {
            // Nothing holds it up, and nothing can have happened to it: it need not be queued and looked up again.
            self.turn = id.index() + 1;
            return self.launch(now, id.index(), range, content, false, None).map_or(Decision::Again, Decision::Sent);
        }
        path.queue.push_back(Queued { range, bytes, copy, duplicate });
        self.waiting += 1;
        view.queued += bytes;
        Decision::Again
    }

    /// The next packet that a path's pacer and carrier let go; paths take turns.
    fn poll_queued(&mut self, now: Time) -> Option<Outgoing> {
        if self.waiting == 0 {
            return None;
        }
        let count = self.paths.len();
        let mut next = self.turn;
        for _ in 0..count {
            let index = if next < count { next } else { 0 };
            next = index + 1;
            while let Some(path) = &mut self.paths[index] {
                let view = &mut self.view.subflows[index];
                if !path.may_send(view) || !path.lets_go(now, view) {
                    break;
                }
                if !path.resend.is_empty() {
                    self.turn = next;
                    return self.resend(now, index);
                }
                let Some(queued) = path.queue.pop_front() else { break };
                if queued.bytes > view.mss {
                    // The carrier's datagrams have shrunk: the data is pending again and cut anew.
                    let id = path.id;
                    self.on_taken_back(queued, id);
                    continue;
                }
                view.queued -= queued.bytes;
                self.waiting -= 1;
                if let Some(transmit) = self.emit(now, index, queued) {
                    self.turn = next;
                    return Some(transmit);
                }
            }
        }
        None
    }

    /// Turns queued data into a packet, unless it has meanwhile become superfluous.
    fn emit(&mut self, now: Time, index: usize, queued: Queued) -> Option<Outgoing> {
        let mut start = queued.range.start.max(self.queue.left_edge());
        // Copies for a path with smaller packets may have cut it, and their segments have arrived.
        while let Some(arrived) =
            self.queue.segment_at(start).filter(|segment| segment.acked && start < queued.range.end)
        {
            start = arrived.range.end;
        }
        if start > queued.range.start {
            let id = self.paths[index].as_ref()?.id;
            self.queue.on_copy_ended(DataRange::between(queued.range.start, start.min(queued.range.end)), id, true);
        }
        let range = DataRange::between(start, queued.range.end);
        if range.is_empty() {
            return None;
        }
        let content = self.queue.content_at(range)?;
        let launched = self.launch(now, index, range, content, queued.copy, None)?;
        if queued.duplicate {
            self.totals.duplicated += Bytes::new(content.payload_len(range.len()));
        }
        Some(launched)
    }

    /// Makes a packet of data that stands for `content`.
    #[inline(always)]
    #[allow(clippy::inline_always)] // what is returned through memory is read before all of it has got there
    pub(crate) fn launch(
        &mut self,
        now: Time,
        index: usize,
        range: DataRange,
        content: Content,
        copy: bool,
        repeats: Option<PacketNumber>,
    ) -> Option<Outgoing> {
        self.on_busy(now);
        let payload = content.payload_len(range.len());
        let first = if copy { self.leaves_first(range).min(payload) } else { payload };
        let path = self.paths[index].as_mut()?;
        let view = &mut self.view.subflows[index];
        let sent = SendTime(micros(now));
        self.totals.sent += Bytes::new(first);
        self.totals.retransmitted += Bytes::new(payload - first);
        let bytes = self.config.record_header + Bytes::new(payload);
        let packet = path.on_sent(now, range, bytes, repeats, view);
        let id = path.id;
        if view.in_flight == bytes {
            // Only the first packet of a flight brings a timer forward.
            let deadline = path.next_deadline(false, self.config.keep_alive);
            self.stir(deadline);
        }
        if self.cc_hears_departures {
            let idle = self.paths[index].as_ref().is_some_and(Path::is_idle);
            let app_limited = idle && !self.queue.has_pending();
            self.notify(now, id, &Event::Sent { packet, bytes, app_limited });
        }
        Some(Outgoing { subflow: id, packet, repeats, range, content, copy, sent })
    }

    /// How much of what was given to a path before leaves for the first time.
    fn leaves_first(&mut self, range: DataRange) -> u64 {
        if self.never_left.is_empty() {
            return 0;
        }
        self.never_left.remove_below(self.queue.left_edge());
        self.never_left.remove(range)
    }

    /// Paths that have room although nothing more can be sent are limited by the application, not by the network.
    fn mark_app_limited(&mut self) {
        for (path, view) in self.paths.iter_mut().zip(&mut self.view.subflows) {
            if let Some(path) = path
                && path.is_idle()
                && view.has_room()
            {
                path.mark_app_limited(view);
            }
        }
    }

    // Control.

    /// The next control record that is owed. They are small and bypass scheduler and window; each kind bounds its own rate.
    fn poll_control(&mut self, now: Time) -> Option<(SubflowId, Record)> {
        if now < self.quiet_until {
            return None;
        }
        let owed = self.look_for_control(now);
        if owed.is_none() {
            let waiting = !self.control_flows.is_empty() || !self.blocked_due.is_empty();
            self.quiet_until = if waiting { Time::ZERO } else { self.first_deadline() };
        }
        owed
    }

    fn look_for_control(&mut self, now: Time) -> Option<(SubflowId, Record)> {
        for index in 0..self.paths.len() {
            if let Some(record) = self.poll_path_control(now, index) {
                // It says nothing of the path that it leaves: keep-alive is not put off.
                return Some((self.paths[index].as_ref()?.id, record));
            }
        }
        if self.control_flows.is_empty() && self.blocked_due.is_empty() {
            return None;
        }
        let id = self.control_path().filter(|id| self.path(*id).is_some_and(|path| path.carrier_ready))?;
        if let Some(flow) = self.blocked_due.pop_front() {
            return Some((id, Record::Blocked { flow }));
        }
        self.poll_flow_control(id)
    }

    /// What is owed about flows, and where it goes: by the path on which the peer asked, else by `otherwise`.
    fn poll_flow_control(&mut self, otherwise: SubflowId) -> Option<(SubflowId, Record)> {
        while let Some(id) = self.control_flows.pop_front() {
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let asked_by = flow.asked_by.take();
            let record = if core::mem::take(&mut flow.stop_due)
                && let Some((code, _)) = flow.stopped
            {
                Record::Stop { flow: id, code }
            } else if core::mem::take(&mut flow.window_due) {
                Record::FlowWindow { flow: id, limit: flow.recv.limit }
            } else {
                continue;
            };
            let path = asked_by.filter(|id| self.path(*id).is_some_and(|path| path.carrier_ready));
            return Some((path.unwrap_or(otherwise), record));
        }
        None
    }

    /// What is owed on one path.
    fn poll_path_control(&mut self, now: Time, index: usize) -> Option<Record> {
        let failed = self.view.subflows.get(index)?.state == SubflowState::Failed;
        let path = self.paths[index].as_mut()?;
        if !path.carrier_ready {
            return None;
        }
        if path.ack.due.is_some_and(|due| due <= now) {
            return Some(self.make_ack(now, index));
        }
        if path.pong_due.is_some() && path.pong_at.is_none_or(|at| at + PONG_INTERVAL <= now) {
            path.pong_at = Some(now);
            return path.pong_due.take().map(|token| Record::Pong { token });
        }
        if let Some(version) = path.status_ack_due.take() {
            return Some(Record::PathStatusAck { version });
        }
        if path.status_due.is_some_and(|due| due <= now) {
            path.status_due = Some(now + path.failure_after());
            return Some(Record::PathStatus(path.status));
        }
        if let Some(report) = path.report_due.take() {
            return Some(Record::PathReport(report));
        }
        if path.probe_due(now, failed, self.config.keep_alive) {
            let token = path.on_probe(now);
            if failed {
                path.next_probe = now + path.probe_interval;
                path.probe_interval = (path.probe_interval * 2).min(PROBE_INTERVAL.1);
            }
            return Some(Record::Ping { token });
        }
        None
    }

    /// The data acknowledgement that a path carries now.
    fn make_ack(&mut self, now: Time, index: usize) -> Record {
        let mut ack = Ack::default();
        self.fill_ack(now, index, &mut ack);
        Record::Ack(ack)
    }

    fn fill_ack(&mut self, now: Time, index: usize, ack: &mut Ack) {
        let window_end = DataSeq(self.consumed + self.config.receive_window.get());
        self.advertised = self.advertised.max(window_end);
        ack.left = self.arrivals.left();
        ack.window_end = self.advertised;
        ack.ranges.clear();
        if let Some(Some(path)) = self.paths.get_mut(index) {
            self.arrivals.list_for(now, &mut path.ack, &mut ack.ranges);
        }
        if self.config.carriage == Carriage::Streams {
            // What arrived on a stream is not lost any more; RFC 8684 s3.3.2 acknowledges data cumulatively only.
            ack.ranges.clear();
        }
    }

    /// Writes the data acknowledgement that a path would carry now, for an engine whose carrier sends an acknowledgement of
    /// its own anyway and takes the session's along: what was owed on the path is then paid.
    pub fn take_ack(&mut self, now: Time, id: SubflowId, ack: &mut Ack) {
        self.fill_ack(now, id.index(), ack);
    }
}
