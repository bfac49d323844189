//! The session: what it is made of, its paths, and what its parts share.

use std::collections::{BTreeMap, VecDeque};

use manypath_cc::{CongestionControl, Event, SubflowInit};
use manypath_core::{
    Bytes, DataRange, DataSeq, Duration, FlowId, Priority, RangeSet, SubflowId, SubflowState, SubflowView, Time, View,
    prefetch,
};
use manypath_sched::{Queue, Scheduler};

use crate::acks::Arrivals;
use crate::config::{Config, MAX_PATHS, PathInit, Role};
use crate::error::{MIN_DATAGRAM, PathError};
use crate::flow::Flow;
use crate::path::Path;
use crate::record::PathStatus;
use crate::trace::{Trace, Tracer};

/// Something the application or the engine should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The peer opened a flow.
    FlowOpened(FlowId),
    /// A flow has bytes to read in order, or its end was reached.
    Readable(FlowId),
    /// A write that was not admitted in full may be tried again.
    Writable(FlowId),
    /// The peer gave up sending on a flow: nothing more can be read.
    FlowReset {
        /// The flow.
        flow: FlowId,
        /// The peer's reason.
        code: u32,
    },
    /// The peer no longer reads a flow: writing is useless.
    FlowStopped {
        /// The flow.
        flow: FlowId,
        /// The peer's reason.
        code: u32,
    },
    /// Both directions of a flow are over and acknowledged.
    FlowClosed(FlowId),
    /// Nothing is heard on a path: its data goes elsewhere, it is only probed.
    PathFailed(SubflowId),
    /// A failed path is heard again.
    PathRestored(SubflowId),
    /// The peer said how a path should be used.
    PathStatus(SubflowId),
}

/// Totals of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Payload bytes sent for the first time.
    pub sent: Bytes,
    /// Payload bytes sent again, because they were lost or as copies.
    pub retransmitted: Bytes,
    /// Payload bytes sent as copies that the scheduler wished for.
    pub duplicated: Bytes,
    /// Sequence numbers that the peer's session acknowledged.
    pub acknowledged: Bytes,
    /// Payload bytes received for the first time.
    pub received: Bytes,
    /// Payload bytes received that had arrived before.
    pub received_again: Bytes,
    /// Records received that could not be taken: too scattered.
    pub dropped_records: u64,
}

/// A connection: flows over paths. Sans-IO; see the crate documentation for the calls and their order.
#[derive(Debug)]
#[repr(C)] // What every packet needs comes first, so that it is in few lines of the cache.
pub struct Session {
    /// Indexed by subflow id; `None` where a path was removed.
    pub(crate) paths: Vec<Option<Path>>,
    pub(crate) view: View,
    /// Before this no control record is owed and no timer of a path runs out, so that nobody need look at every path for
    /// every packet. Too early only costs a look; whatever may bring something forward must lower it ([`Self::stir`]).
    pub(crate) quiet_until: Time,
    /// Data moves, or has just moved, before this; and when paths are looked at next that carry none of it.
    pub(crate) busy_until: Time,
    pub(crate) look_at: Time,
    /// Records in the queues of all paths, new and to be sent again: mostly none, and then nobody need look at every path.
    pub(crate) waiting: usize,
    /// When the scheduler, which waits, wants to be asked again.
    pub(crate) ask_at: Time,
    pub(crate) events: VecDeque<SessionEvent>,
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) arrivals: Arrivals,
    pub(crate) flows: BTreeMap<FlowId, Flow>,
    /// Sequence numbers that the application consumed or that were dropped: the window moves with them.
    pub(crate) consumed: u64,
    /// What the flows span that somebody reads, together.
    pub(crate) spanned: u64,
    /// Right edge of the receive window as last advertised.
    pub(crate) advertised: DataSeq,
    pub(crate) totals: Totals,
    /// What a path was given for the first time and had taken back before it left: sent again, it leaves for the first time.
    pub(crate) never_left: RangeSet,
    /// The path that is asked first for something to send, so that paths take turns.
    pub(crate) turn: usize,
    pub(crate) queue: Queue,
    /// Whether the controller wants to be told of packets that leave.
    pub(crate) cc_hears_departures: bool,
    pub(crate) config: Config,
    pub(crate) trace: Option<Trace>,
    /// Flows of the peer that are over, by half their id, so that they are contiguous.
    pub(crate) closed_flows: RangeSet,
    pub(crate) next_flow: u32,
    /// Flows that owe the peer a control record.
    pub(crate) control_flows: VecDeque<FlowId>,
    /// The flow that admitted something last.
    pub(crate) last_writer: FlowId,
    /// Flows with data that their window forbids, or `None` for the connection: the peer is asked at `blocked_probe`.
    pub(crate) blocked_flows: Vec<FlowId>,
    pub(crate) blocked_probe: Option<Time>,
    pub(crate) blocked_interval: Duration,
    /// A BLOCKED record is to leave.
    pub(crate) blocked_due: VecDeque<Option<FlowId>>,
    #[cfg(test)]
    pub(crate) mutation: crate::mutation::Mutation,
}

impl Session {
    /// A session without paths.
    pub fn new(config: Config, cc: Box<dyn CongestionControl>, scheduler: Box<dyn Scheduler>) -> Self {
        let mut queue = Queue::new(config.record_header);
        queue.extend_window(DataSeq(config.peer.receive_window.get()));
        let next_flow = match config.role {
            Role::Client => 0,
            Role::Server => 1,
        };
        Self {
            advertised: DataSeq(config.receive_window.get()),
            arrivals: Arrivals::new(config.receive_window),
            config,
            cc_hears_departures: cc.hears_departures(),
            cc,
            scheduler,
            view: View::default(),
            paths: Vec::new(),
            queue,
            flows: BTreeMap::new(),
            closed_flows: RangeSet::new(),
            next_flow,
            consumed: 0,
            spanned: 0,
            events: VecDeque::new(),
            waiting: 0,
            ask_at: Time::MAX,
            control_flows: VecDeque::new(),
            last_writer: FlowId(next_flow),
            blocked_flows: Vec::new(),
            blocked_probe: None,
            blocked_interval: Duration::ZERO,
            blocked_due: VecDeque::new(),
            totals: Totals::default(),
            never_left: RangeSet::new(),
            turn: 0,
            quiet_until: Time::ZERO,
            busy_until: Time::ZERO,
            look_at: Time::MAX,
            trace: None,
            #[cfg(test)]
            mutation: crate::mutation::Mutation::None,
        }
    }

    // Paths.

    /// Adds a path. Its id is the lowest that is free.
    ///
    /// # Errors
    /// If there are too many paths or its datagrams are too small.
    pub fn add_path(&mut self, now: Time, init: PathInit) -> Result<SubflowId, PathError> {
        if init.max_datagram.get() < MIN_DATAGRAM {
            return Err(PathError::DatagramTooSmall(init.max_datagram.get()));
        }
        let limit = self.config.max_paths.min(MAX_PATHS);
        let index = self.paths.iter().position(Option::is_none).unwrap_or(self.paths.len());
        let id = u32::try_from(index).ok().filter(|index| *index < limit).ok_or(PathError::TooManyPaths(limit))?;
        let id = SubflowId(id);
        let status = PathStatus { version: 0, cost_milli: milli(init.cost), backup: init.priority == Priority::Backup };
        let mut path = Path::new(now, id, &self.config, status);
        path.on_handshake(init.handshake_rtt.unwrap_or_default());
        if (init.cost, init.priority) != (1.0, Priority::Normal) {
            path.status.version = 1;
            path.status_due = Some(now);
        }
        let mut view = SubflowView::new(id, init.max_datagram);
        view.cost = init.cost;
        view.priority = init.priority;
        view.spreads_windows = self.config.pace_windows;
        if index == self.paths.len() {
            self.paths.push(Some(path));
            self.view.subflows.push(view);
        } else {
            self.queue.forget_carrier(id);
            self.paths[index] = Some(path);
            self.view.subflows[index] = view;
        }
        self.stir(Time::ZERO);
        let initial_window = init.max_datagram * self.config.initial_window_packets;
        let ssthresh = self.config.initial_ssthresh_packets.map(|packets| init.max_datagram * packets);
        self.cc.add_subflow(now, id, SubflowInit { mss: init.max_datagram, initial_window, ssthresh });
        self.refresh_all_limits();
        self.want_ack(now, id);
        Ok(id)
    }

    /// Removes a path; what it carried goes to the others.
    pub fn remove_path(&mut self, now: Time, id: SubflowId) {
        if self.path(id).is_none() {
            return;
        }
        self.stir(Time::ZERO);
        self.take_back(now, id);
        self.paths[id.index()] = None;
        let mss = self.view.subflows[id.index()].mss;
        self.view.subflows[id.index()] = SubflowView { state: SubflowState::Closed, ..SubflowView::new(id, mss) };
        self.cc.remove_subflow(now, id);
        self.scheduler.remove_subflow(id);
        self.refresh_all_limits();
    }

    /// The carrier's datagrams have another size now. What was cut for a larger size is cut again when it leaves.
    pub fn set_max_datagram(&mut self, id: SubflowId, size: Bytes) {
        if let Some(view) = self.view.subflows.get_mut(id.index()) {
            view.mss = size.max(Bytes::new(MIN_DATAGRAM));
        }
    }

    /// Says whether the carrier takes datagrams; while it does not, nothing is emitted for it.
    pub fn set_carrier_ready(&mut self, id: SubflowId, ready: bool) {
        if let Some(path) = self.path_mut(id) {
            path.carrier_ready = ready;
        }
        self.stir(Time::ZERO);
    }

    /// Changes how a path is used, here and at the peer.
    pub fn set_path_status(&mut self, now: Time, id: SubflowId, cost: f64, priority: Priority) {
        if let Some(path) = self.path_mut(id) {
            let version = path.status.version.wrapping_add(1);
            path.status = PathStatus { version, cost_milli: milli(cost), backup: priority == Priority::Backup };
            path.status_due = Some(now);
            let view = &mut self.view.subflows[id.index()];
            (view.cost, view.priority) = (cost.max(0.0), priority);
        }
        self.stir(Time::ZERO);
    }

    /// All subflows, as controllers and schedulers see them.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The send queue, as schedulers see it.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The controller, to inspect.
    pub fn controller(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// The scheduler, to inspect.
    pub fn scheduler(&self) -> &dyn Scheduler {
        &*self.scheduler
    }

    /// From now on, tells someone every decision of the scheduler.
    pub fn set_tracer(&mut self, tracer: Box<dyn Tracer>) {
        self.trace = Some(Trace::new(tracer));
    }

    /// What was moved so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// How many flows are open.
    pub fn open_flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes received and not consumed, over all flows.
    pub fn receive_buffered(&self) -> Bytes {
        self.flows.values().map(|flow| Bytes::new(flow.recv.buffered())).sum()
    }

    /// Has fetched what the session refers to and needs for every packet, for an engine of so many that no cache holds them.
    pub fn prefetch(&self) {
        prefetch(self.paths.as_slice());
        prefetch(self.view.subflows.as_slice());
        prefetch(&*self.cc);
        prefetch(&*self.scheduler);
    }

    /// The same for what lies behind that.
    pub fn prefetch_paths(&self) {
        self.paths.iter().flatten().for_each(Path::prefetch);
    }

    // Shared by the parts of the session.

    pub(crate) fn path(&self, id: SubflowId) -> Option<&Path> {
        self.paths.get(id.index())?.as_ref()
    }

    pub(crate) fn path_mut(&mut self, id: SubflowId) -> Option<&mut Path> {
        self.paths.get_mut(id.index())?.as_mut()
    }

    /// Reads the controller's limits of one subflow.
    pub(crate) fn refresh_limits(&mut self, id: SubflowId) {
        let limits = self.cc.limits(id);
        let view = &mut self.view.subflows[id.index()];
        view.cwnd = self.paths[id.index()].as_ref().map_or(limits.cwnd, |path| path.window(limits.cwnd, view));
        view.pacing = limits.pacing;
        view.ssthresh = limits.ssthresh.unwrap_or(Bytes::MAX);
    }

    pub(crate) fn refresh_all_limits(&mut self) {
        for index in 0..self.paths.len() {
            if let Some(path) = &self.paths[index] {
                self.refresh_limits(path.id);
            }
        }
    }

    /// Tells the controller something about a subflow.
    pub(crate) fn notify(&mut self, now: Time, id: SubflowId, event: &Event) {
        self.cc.on_event(now, id, event, &self.view);
        self.refresh_limits(id);
    }

    pub(crate) fn insert_flow(&mut self, id: FlowId) {
        let flow = Flow::new(self.config.peer.flow_window.get(), self.config.flow_window.get());
        self.flows.insert(id, flow);
    }

    pub(crate) fn was_closed(&self, id: FlowId) -> bool {
        if self.is_peers_flow(id) {
            self.closed_flows.contains(DataSeq(u64::from(id.0 / 2)))
        } else {
            id.0 < self.next_flow && !self.flows.contains_key(&id)
        }
    }

    /// Whether the peer may open this flow.
    pub(crate) fn is_peers_flow(&self, id: FlowId) -> bool {
        id.0 % 2 != self.next_flow % 2
    }

    pub(crate) fn close_if_done(&mut self, id: FlowId) {
        if self.flows.get(&id).is_some_and(Flow::is_closed) {
            self.flows.remove(&id);
            if self.is_peers_flow(id) {
                self.closed_flows.insert(DataRange::new(DataSeq(u64::from(id.0 / 2)), 1));
            }
            self.blocked_flows.retain(|held| *held != id);
            self.events.push_back(SessionEvent::FlowClosed(id));
        }
    }

    /// Moves the receive window by what was consumed or dropped; tells the peer when it is worth it.
    pub(crate) fn on_consumed(&mut self, now: Time, len: u64) {
        self.consumed += len;
        let window = self.config.receive_window.get();
        if self.consumed + window >= self.advertised.0 + window / 4
            && let Some(id) = self.control_path()
        {
            self.want_ack(now, id);
        }
    }

    pub(crate) fn want_ack(&mut self, now: Time, id: SubflowId) {
        if let Some(path) = self.path_mut(id) {
            path.ack.want(now);
        }
        self.stir(now);
    }

    /// Something may have to be done at `at`.
    pub(crate) fn stir(&mut self, at: Time) {
        self.quiet_until = self.quiet_until.min(at);
    }

    /// Where control records without a path of their own go: the fastest usable path, or any that is open. A path that
    /// says nothing when asked comes last: it may be dead, and an end that sends no data has no other sign of that.
    /// Before it comes one that was not measured yet.
    pub(crate) fn control_path(&self) -> Option<SubflowId> {
        let heard = self.paths.iter().flatten().map(|path| path.active_at).max().unwrap_or_default();
        let usable = self.view.usable().filter_map(|view| Some((view, self.path(view.id)?)));
        let ready = usable.filter(|(_, path)| path.carrier_ready);
        let fastest = ready.min_by_key(|(view, path)| (path.is_silent(heard), view.srtt.unwrap_or(Duration::MAX)));
        fastest.map(|(view, _)| view).or_else(|| self.view.open().next()).map(|view| view.id)
    }
}

/// A cost in the thousandths that records carry.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // float to integer casts saturate, NaN gives 0
fn milli(cost: f64) -> u32 {
    (cost * 1000.0 + 0.5) as u32
}
