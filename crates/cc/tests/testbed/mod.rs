//! A network in virtual time for tests of controllers: drop-tail links, subflows that send when window and pacing let
//! them, acknowledgements a round trip later, losses declared by the packets behind them.
//!
//! It plays the session's part as the trait documents it, and nothing more: every subflow always has data to send.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test binary uses its own part")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use manypath_cc::{Acked, CongestionControl, Event, Limits, SubflowInit};
use manypath_core::{
    Bytes, Duration, PacketNumber, Rate, RttEstimator, SubflowId, SubflowState, SubflowView, Time, View,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Packets are this large, so that a packet is a round number of bits.
pub const MSS: u64 = 1250;
/// Packets behind a missing one that declare it lost (RFC 9002 s6.1.1).
const REORDERING: u64 = 3;

/// A drop-tail link.
#[derive(Clone, Debug)]
pub struct Link {
    pub mbps: f64,
    pub rtt: Duration,
    pub buffer: u64,
    pub loss: f64,
    /// When the last queued byte will have left.
    free: Time,
}

pub fn link(mbps: f64, rtt_ms: u64, buffer: u64, loss: f64) -> Link {
    Link { mbps, rtt: Duration::from_millis(rtt_ms), buffer, loss, free: Time::ZERO }
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    packet: u64,
    sent_at: Time,
    delivered_at_send: Bytes,
    delivered_time: Time,
    /// When its acknowledgement comes; `None` if the link dropped it.
    ack_at: Option<Time>,
}

#[derive(Debug)]
struct Subflow {
    link: usize,
    connection: usize,
    id: SubflowId,
    rtt: RttEstimator,
    flights: VecDeque<Flight>,
    next: u64,
    /// Pacing: when the next packet may leave.
    release: Time,
    /// Whether a send is already scheduled.
    scheduled: bool,
    delivered_time: Time,
    /// Packets sent before this are of the last recovery episode.
    recovery: Time,
    start: Time,
    lost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Send(usize),
    Ack(usize),
    Timeout(usize),
}

/// One connection.
pub struct Connection {
    pub cc: Box<dyn CongestionControl>,
    pub view: View,
}

/// The network.
pub struct Testbed {
    pub links: Vec<Link>,
    pub connections: Vec<Connection>,
    subflows: Vec<Subflow>,
    tasks: BinaryHeap<Reverse<(Time, u64, Task)>>,
    order: u64,
    pub now: Time,
    random: Xoshiro256PlusPlus,
    /// Every event with its time, connection and subflow, when recording.
    pub record: Option<Vec<(Time, usize, SubflowId, Event)>>,
}

impl Testbed {
    pub fn new(links: Vec<Link>, seed: u64) -> Self {
        Self {
            links,
            connections: Vec::new(),
            subflows: Vec::new(),
            tasks: BinaryHeap::new(),
            order: 0,
            now: Time::ZERO,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            record: None,
        }
    }

    /// Adds a connection with one subflow for each link named; each begins to send at its start time.
    pub fn connect(&mut self, cc: Box<dyn CongestionControl>, links: &[(usize, Time)]) -> usize {
        let connection = self.connections.len();
        self.connections.push(Connection { cc, view: View::default() });
        for &(link, start) in links {
            let held = &mut self.connections[connection];
            let id = SubflowId(u32::try_from(held.view.subflows.len()).unwrap());
            held.view.subflows.push(SubflowView::new(id, Bytes::new(MSS)));
            held.cc.add_subflow(start, id, init());
            let index = self.subflows.len();
            self.subflows.push(Subflow {
                link,
                connection,
                id,
                rtt: RttEstimator::new(),
                flights: VecDeque::new(),
                next: 0,
                release: start,
                scheduled: true,
                delivered_time: start,
                recovery: Time::ZERO,
                start,
                lost: 0,
            });
            self.schedule(start, Task::Send(index));
            self.schedule(start + Duration::from_secs(1), Task::Timeout(index));
        }
        self.refresh(connection);
        connection
    }

    fn schedule(&mut self, at: Time, task: Task) {
        self.order += 1;
        self.tasks.push(Reverse((at, self.order, task)));
    }

    fn refresh(&mut self, connection: usize) {
        let held = &mut self.connections[connection];
        for view in &mut held.view.subflows {
            let limits = held.cc.limits(view.id);
            assert!(limits.cwnd > Bytes::ZERO && limits.cwnd < Bytes::MAX, "{limits:?}");
            view.cwnd = limits.cwnd;
            view.ssthresh = limits.ssthresh.unwrap_or(Bytes::MAX);
            view.pacing = limits.pacing;
        }
    }

    fn tell(&mut self, index: usize, event: &Event) {
        let Subflow { connection, id, .. } = self.subflows[index];
        let held = &mut self.connections[connection];
        held.cc.on_event(self.now, id, event, &held.view);
        if let Some(record) = &mut self.record {
            record.push((self.now, connection, id, *event));
        }
        let limits = held.cc.limits(id);
        let view = &mut held.view.subflows[id.index()];
        view.cwnd = limits.cwnd;
        view.ssthresh = limits.ssthresh.unwrap_or(Bytes::MAX);
        view.pacing = limits.pacing;
    }

    fn view(&mut self, index: usize) -> &mut SubflowView {
        let Subflow { connection, id, .. } = self.subflows[index];
        &mut self.connections[connection].view.subflows[id.index()]
    }

    /// Runs until `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            let task = self.tasks.peek().map(|Reverse((at, _, _))| *at);
            let timers = self.connections.iter().map(|held| held.cc.next_timer()).enumerate();
            let timer = timers.filter_map(|(index, at)| Some((at?, index))).min();
            let next = [task, timer.map(|(at, _)| at)].into_iter().flatten().min().unwrap_or(end);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if let Some((at, connection)) = timer
                && at <= self.now
            {
                let held = &mut self.connections[connection];
                held.cc.on_timer(self.now, &held.view);
                self.refresh(connection);
                for index in 0..self.subflows.len() {
                    if self.subflows[index].connection == connection {
                        self.wake(index);
                    }
                }
                continue;
            }
            let Some(Reverse((_, _, task))) = self.tasks.pop() else { return };
            match task {
                Task::Send(index) => self.send(index),
                Task::Ack(index) => self.acknowledge(index),
                Task::Timeout(index) => self.check_timeout(index),
            }
        }
    }

    fn wake(&mut self, index: usize) {
        let (now, subflow) = (self.now, &mut self.subflows[index]);
        if !subflow.scheduled && now >= subflow.start {
            subflow.scheduled = true;
            let at = subflow.release.max(now);
            self.schedule(at, Task::Send(index));
        }
    }

    fn send(&mut self, index: usize) {
        self.subflows[index].scheduled = false;
        let now = self.now;
        if self.subflows[index].release > now {
            self.wake(index);
            return;
        }
        if !self.view(index).has_room() {
            return;
        }
        let ack_at = self.transmit(self.subflows[index].link);
        let delivered_at_send = self.view(index).delivered;
        let view = self.view(index);
        view.in_flight += Bytes::new(MSS);
        view.last_sent = Some(now);
        let pacing = view.pacing;
        let subflow = &mut self.subflows[index];
        let packet = subflow.next;
        subflow.next += 1;
        subflow.flights.push_back(Flight {
            packet,
            sent_at: now,
            delivered_at_send,
            delivered_time: subflow.delivered_time,
            ack_at,
        });
        if let Some(at) = ack_at {
            self.schedule(at, Task::Ack(index));
        }
        let event = Event::Sent { packet: PacketNumber(packet), bytes: Bytes::new(MSS), app_limited: false };
        self.tell(index, &event);
        // Like a token bucket that holds at most one packet.
        let gap = pacing.map_or(Duration::ZERO, |rate| Bytes::new(MSS).time_at(rate));
        let subflow = &mut self.subflows[index];
        let base = subflow.release.max(now - gap);
        subflow.release = base + gap;
        self.wake(index);
    }

    /// Puts a packet on a link; when its acknowledgement comes, unless it is dropped.
    fn transmit(&mut self, link: usize) -> Option<Time> {
        let draw = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let link = &mut self.links[link];
        let queued = Rate::from_mbps(link.mbps) * link.free.since(self.now);
        if queued + Bytes::new(MSS) > Bytes::new(link.buffer) {
            return None;
        }
        link.free = link.free.max(self.now) + Bytes::new(MSS).time_at(Rate::from_mbps(link.mbps));
        (draw >= link.loss).then(|| link.free + link.rtt)
    }

    fn acknowledge(&mut self, index: usize) {
        let now = self.now;
        let subflow = &mut self.subflows[index];
        let due = |flight: &Flight| flight.ack_at.is_some_and(|at| at <= now);
        // Given up meanwhile by a timeout.
        let Some(place) = subflow.flights.iter().position(due) else { return };
        let Some(flight) = subflow.flights.remove(place) else { return };
        let rtt = now.since(flight.sent_at);
        subflow.rtt.on_sample(rtt, Duration::ZERO);
        subflow.delivered_time = now;
        let estimate = subflow.rtt.clone();
        let in_recovery = flight.sent_at < subflow.recovery;
        let view = self.view(index);
        view.delivered += Bytes::new(MSS);
        view.in_flight -= Bytes::new(MSS);
        view.srtt = estimate.srtt();
        view.latest_rtt = rtt;
        view.rttvar = estimate.rttvar();
        view.min_rtt = estimate.min().unwrap();
        view.max_rtt = estimate.max();
        view.in_recovery = in_recovery;
        let failed = view.state == SubflowState::Failed;
        view.state = SubflowState::Active;
        let span = now.since(flight.delivered_time);
        let delivery_rate = (view.delivered - flight.delivered_at_send) / span;
        view.delivery_rate = delivery_rate;
        if failed {
            self.tell(index, &Event::Restored);
        }
        let acked = Acked {
            packet: PacketNumber(flight.packet),
            bytes: Bytes::new(MSS),
            sent_at: flight.sent_at,
            rtt,
            delivery_rate,
            delivered_at_send: flight.delivered_at_send,
            in_recovery,
            app_limited: false,
        };
        self.tell(index, &Event::Acked(acked));
        self.declare_lost(index, flight.packet);
        self.wake(index);
    }

    fn declare_lost(&mut self, index: usize, acknowledged: u64) {
        while let Some(front) = self.subflows[index].flights.front().copied() {
            if front.packet + REORDERING > acknowledged {
                break;
            }
            if front.sent_at >= self.subflows[index].recovery {
                self.subflows[index].recovery = self.now;
                self.view(index).in_recovery = true;
                self.tell(index, &Event::Congestion { sent_at: front.sent_at });
            }
            self.lose_front(index, front);
        }
    }

    fn lose_front(&mut self, index: usize, front: Flight) {
        self.subflows[index].flights.pop_front();
        self.subflows[index].lost += 1;
        self.view(index).in_flight -= Bytes::new(MSS);
        let event = Event::Lost { packet: PacketNumber(front.packet), bytes: Bytes::new(MSS), sent_at: front.sent_at };
        self.tell(index, &event);
    }

    fn check_timeout(&mut self, index: usize) {
        let subflow = &self.subflows[index];
        let timeout = subflow.rtt.timeout(Duration::from_secs(1)).max(Duration::from_millis(10));
        let oldest = subflow.flights.front().map(|flight| flight.sent_at.max(subflow.delivered_time));
        if oldest.is_some_and(|since| self.now.since(since) >= timeout) {
            self.view(index).state = SubflowState::Failed;
            self.tell(index, &Event::Timeout { repeated: false });
            while let Some(front) = self.subflows[index].flights.front().copied() {
                self.lose_front(index, front);
            }
            // The next packet is the probe.
            self.view(index).state = SubflowState::Active;
            self.subflows[index].recovery = self.now;
            self.wake(index);
        }
        self.schedule(self.now + timeout, Task::Timeout(index));
    }

    /// Bytes a connection's subflow has delivered.
    pub fn delivered(&self, connection: usize, subflow: usize) -> f64 {
        self.connections[connection].view.subflows[subflow].delivered.as_f64()
    }

    /// Runs until `end` and returns the rate of each subflow of each connection meanwhile, Mbit/s.
    pub fn measure(&mut self, end: Time) -> Vec<Vec<f64>> {
        let rates = |bed: &Self| -> Vec<Vec<f64>> {
            let of = |held: &Connection| held.view.subflows.iter().map(|s| s.delivered.as_f64()).collect();
            bed.connections.iter().map(of).collect()
        };
        let (before, start) = (rates(self), self.now);
        self.run(end);
        let after = rates(self);
        let span = end.since(start).as_secs_f64();
        let rate = |(b, a): (&Vec<f64>, &Vec<f64>)| b.iter().zip(a).map(|(b, a)| (a - b) * 8e-6 / span).collect();
        before.iter().zip(&after).map(rate).collect()
    }
}

/// What subflows are given when they join.
pub fn init() -> SubflowInit {
    SubflowInit::new(Bytes::new(MSS), Bytes::new(10 * MSS))
}

/// A view that follows replayed events well enough for controllers that read it.
pub struct Replay {
    pub cc: Box<dyn CongestionControl>,
    pub view: View,
}

impl Replay {
    pub fn new(cc: Box<dyn CongestionControl>, subflows: u32) -> Self {
        let mut replay = Self { cc, view: View::default() };
        for id in 0..subflows {
            replay.view.subflows.push(SubflowView::new(SubflowId(id), Bytes::new(MSS)));
            replay.cc.add_subflow(Time::ZERO, SubflowId(id), init());
        }
        replay
    }

    pub fn step(&mut self, now: Time, id: SubflowId, event: &Event) -> Limits {
        while self.cc.next_timer().is_some_and(|at| at < now) {
            let before = self.cc.next_timer().unwrap();
            self.cc.on_timer(before, &self.view);
            if self.cc.next_timer() == Some(before) {
                break;
            }
        }
        let view = &mut self.view.subflows[id.index()];
        match event {
            Event::Sent { bytes, .. } => view.in_flight += *bytes,
            Event::Acked(acked) => {
                view.in_flight -= acked.bytes;
                view.delivered += acked.bytes;
                view.srtt = Some(view.srtt.map_or(acked.rtt, |srtt| (srtt * 7 + acked.rtt) / 8));
                view.min_rtt = view.min_rtt.min(acked.rtt);
            }
            Event::Lost { bytes, .. } => view.in_flight -= *bytes,
            _ => {}
        }
        self.cc.on_event(now, id, event, &self.view);
        let limits = self.cc.limits(id);
        let view = &mut self.view.subflows[id.index()];
        view.cwnd = limits.cwnd;
        view.pacing = limits.pacing;
        limits
    }
}
