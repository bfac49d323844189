//! All data arrives, whatever path dies: every scheduler drives a small simulated session.
//!
//! Paths have a rate, a delay, a window and regular losses; a dead path swallows everything, and is given up a
//! retransmission timeout later. The receiver acknowledges every segment on the path it came by.

use std::collections::BTreeMap;

use manypath_core::{
    AlgorithmSpec, Bytes, DataRange, DataSeq, Duration, FlowId, RangeSet, SubflowId, SubflowState, SubflowView, Time,
    View,
};
use manypath_sched::{Choice, Content, DataAck, Queue, Scheduler, algorithms, create};

/// Every scheduler, and those with a parameter that changes what they do.
fn names() -> impl Iterator<Item = &'static str> {
    let all = algorithms().iter().map(|algorithm| algorithm.name);
    all.chain(["minrtt:rescue=on", "rate-based:rescue=on", "arrival-order:rescue=on"])
}

const HEADER: u64 = 30;
const MSS: u64 = 1_030;

/// One path of the simulated session.
#[derive(Clone, Copy)]
struct Path {
    /// Segments a millisecond.
    rate: f64,
    /// One way, in milliseconds.
    delay: f64,
    /// In segments.
    window: u64,
    /// Every such packet is lost.
    loses_every: u64,
    cost: f64,
    pacing: bool,
}

const PATHS: [Path; 3] = [
    Path { rate: 2.0, delay: 10.0, window: 60, loses_every: 97, cost: 1.0, pacing: false },
    Path { rate: 1.0, delay: 60.0, window: 150, loses_every: 71, cost: 2.0, pacing: true },
    Path { rate: 0.5, delay: 30.0, window: 40, loses_every: 1_000_000, cost: 3.0, pacing: false },
];

enum Event {
    /// The receiver gets a segment.
    Arrival(usize, DataRange),
    /// The sender learns that a packet arrived, and how far the receiver is.
    Ack(usize, DataRange, DataSeq),
    /// The sender notices that a packet is lost.
    Loss(usize, DataRange),
    /// The sender gives a path up.
    Failure(usize),
}

struct Session {
    name: &'static str,
    scheduler: Box<dyn Scheduler>,
    paths: Vec<Path>,
    view: View,
    queue: Queue,
    events: BTreeMap<(Time, u64), Event>,
    serial: u64,
    now: Time,
    /// By path: when its link is free, in milliseconds; how many packets it carried; what is in flight.
    links: Vec<(f64, u64, Vec<DataRange>)>,
    dead: Option<usize>,
    received: RangeSet,
    /// The receiver's window, in bytes.
    window: u64,
    copies: u64,
    penalties: u64,
}

impl Session {
    fn new(name: &'static str, paths: &[Path], bytes: u64, window: u64, dead: Option<usize>) -> Self {
        let mut view = View::default();
        for (id, path) in (0..).zip(paths) {
            let mut subflow = SubflowView::new(SubflowId(id), Bytes::new(MSS));
            subflow.cwnd = Bytes::new(MSS) * path.window;
            subflow.cost = path.cost;
            subflow.pacing = path.pacing.then(|| Bytes::from_f64(path.rate * MSS as f64) / Duration::from_millis(1));
            view.subflows.push(subflow);
        }
        let mut queue = Queue::new(Bytes::new(HEADER));
        queue.admit(Content::Data { flow: FlowId(0), offset: 0, fin: true }, bytes);
        queue.extend_window(DataSeq(window));
        Self {
            name,
            scheduler: create(&name.parse::<AlgorithmSpec>().unwrap()).unwrap(),
            paths: paths.to_vec(),
            view,
            queue,
            events: BTreeMap::new(),
            serial: 0,
            now: Time::ZERO,
            links: vec![(0.0, 0, Vec::new()); paths.len()],
            dead,
            received: RangeSet::new(),
            window,
            copies: 0,
            penalties: 0,
        }
    }

    fn at(&mut self, ms: f64, event: Event) {
        self.serial += 1;
        self.events.insert((Time::from_secs_f64(ms * 1e-3), self.serial), event);
    }

    fn schedule(&mut self) {
        loop {
            match self.scheduler.pick(self.now, &self.view, &self.queue) {
                Choice::Wait => return,
                Choice::Penalise { .. } => self.penalties += 1,
                Choice::Send { subflow, range } => self.send(subflow, range),
                Choice::Duplicate { subflow, range, penalise } => {
                    self.copies += 1;
                    self.penalties += u64::from(penalise.is_some());
                    self.send(subflow, range);
                }
            }
        }
    }

    /// Gives a segment to its link; what waits for the link counts as in flight, as for an ACK-clocked sender.
    fn send(&mut self, id: SubflowId, range: DataRange) {
        let index = id.index();
        self.queue.on_assigned(self.now, range, id);
        self.view.subflows[index].in_flight += Bytes::new(MSS);
        let path = self.paths[index];
        let now = self.now.as_secs_f64() * 1e3;
        let (free, carried, in_flight) = &mut self.links[index];
        *free = free.max(now) + 1.0 / path.rate;
        *carried += 1;
        in_flight.push(range);
        let arrives = *free + path.delay;
        if self.dead == Some(index) {
            // Nothing is heard; the first packet's retransmission timeout gives the path up.
            if *carried == 1 {
                self.at(now + 500.0, Event::Failure(index));
            }
        } else if carried.is_multiple_of(path.loses_every) {
            self.at(arrives + 1.5 * path.delay, Event::Loss(index, range));
        } else {
            self.at(arrives, Event::Arrival(index, range));
        }
    }

    /// A copy is off its path; says whether it was on it still.
    fn end(&mut self, index: usize, range: DataRange, delivered: bool) -> bool {
        let in_flight = &mut self.links[index].2;
        let Some(position) = in_flight.iter().position(|held| *held == range) else { return false };
        in_flight.swap_remove(position);
        self.view.subflows[index].in_flight -= Bytes::new(MSS);
        let id = self.view.subflows[index].id;
        self.queue.on_copy_ended(range, id, delivered);
        if !delivered {
            self.scheduler.on_lost(id, range);
        }
        true
    }

    fn handle(&mut self, event: Event) {
        let now = self.now.as_secs_f64() * 1e3;
        match event {
            Event::Arrival(index, range) => {
                self.received.insert(range);
                let edge = self.received.first().filter(|first| first.start == DataSeq::ZERO);
                let edge = edge.map_or(DataSeq::ZERO, |first| first.end);
                self.at(now + self.paths[index].delay, Event::Ack(index, range, edge));
            }
            Event::Ack(index, range, edge) => {
                let subflow = &mut self.view.subflows[index];
                let rtt = self.queue.segment_at(range.start).map(|segment| self.now.since(segment.sent_at));
                if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
                    let before = subflow.srtt.unwrap_or(rtt);
                    subflow.srtt = Some(before.mul_f64(0.875) + rtt.mul_f64(0.125));
                    subflow.rttvar = subflow.rttvar.mul_f64(0.75) + before.abs_diff(rtt).mul_f64(0.25);
                }
                self.end(index, range, true);
                self.queue.on_selective_ack(range);
                let left = self.queue.segment_at(self.queue.left_edge()).copied();
                let before = self.queue.left_edge();
                let segments = self.queue.advance_left_edge(edge);
                let moved = self.queue.left_edge() > before;
                self.queue.extend_window(edge + self.window);
                let ack = DataAck {
                    newly_acked: Bytes::new(self.queue.left_edge() - before),
                    segments,
                    left_edge_subflow: left.filter(|_| moved).map(|segment| segment.last_subflow),
                    left_edge_retransmitted: left.is_some_and(|segment| segment.retransmitted),
                    segments_per_ack: 1,
                };
                self.scheduler.on_data_ack(self.now, &ack, &self.view);
            }
            Event::Loss(index, range) => drop(self.end(index, range, false)),
            Event::Failure(index) => {
                self.view.subflows[index].state = SubflowState::Failed;
                for range in self.links[index].2.clone() {
                    self.end(index, range, false);
                }
            }
        }
    }

    /// Runs until all is acknowledged; returns the seconds that took.
    fn run(&mut self) -> f64 {
        self.schedule();
        while let Some(((now, _), event)) = self.events.pop_first() {
            self.now = now;
            self.handle(event);
            self.schedule();
            if self.queue.is_empty() {
                return now.as_secs_f64();
            }
            assert!(now < Time::from_secs_f64(600.0), "{} takes too long", self.name);
        }
        panic!("{} stalls at {:?}: {}", self.name, self.queue.left_edge(), self.scheduler.reason());
    }

    fn carried(&self, index: usize) -> u64 {
        self.links[index].1
    }
}

const BYTES: u64 = 2_000_000;

#[test]
fn all_data_arrives_with_any_one_path_dead() {
    for name in names() {
        for count in 1..=3 {
            for dead in (0..count).map(Some).chain([None]) {
                if count == 1 && dead.is_some() {
                    continue;
                }
                for window in [30_000, 200_000, 10_000_000] {
                    let mut session = Session::new(name, &PATHS[..count], BYTES, window, dead);
                    let seconds = session.run();
                    // The slowest single path, with a window of 30 segments and losses, at its slowest.
                    assert!(seconds < 40.0, "{} {count} paths, {dead:?} dead, {window}: {seconds} s", name);
                }
            }
        }
    }
}

#[test]
fn a_run_repeats_itself() {
    for name in names() {
        let run = || {
            let mut session = Session::new(name, &PATHS, BYTES, 200_000, None);
            (session.run().to_bits(), [0, 1, 2].map(|index| session.carried(index)), session.copies)
        };
        assert_eq!(run(), run(), "{}", name);
    }
}

#[test]
fn copies_are_made_by_those_whose_rule_it_is() {
    for name in names() {
        let mut session = Session::new(name, &PATHS[..2], BYTES, 100_000, None);
        session.run();
        let (copies, penalties) = (session.copies, session.penalties);
        match name {
            "minrtt:rescue=on" | "rate-based:rescue=on" | "arrival-order:rescue=on" => {
                assert!(copies > 0 && penalties == 0, "{name}: {copies} {penalties}")
            }
            "minrtt-pr" => assert!(copies > 0 && penalties > 0, "{copies} {penalties}"),
            "redundant" => assert!(copies > 1_000 && penalties == 0, "{copies} {penalties}"),
            "ecf" | "blest" => assert!(copies > 0 && penalties > 0, "{}: {copies} {penalties}", name),
            name => assert!(copies == 0 && penalties == 0, "{name}: {copies} {penalties}"),
        }
    }
}

/// With a window for everything each scheduler but the redundant one reaches most of what the paths offer together.
#[test]
fn paths_are_used_together() {
    // 2 + 1 segments of 1000 bytes a millisecond.
    let bytes = 20_000_000;
    let (together, alone) = (bytes as f64 / 3.0e6, bytes as f64 / 2.0e6);
    for name in names() {
        let seconds = Session::new(name, &PATHS[..2], bytes, 10_000_000, None).run();
        let bound = match name {
            "redundant" => 1.1 * alone,
            _ => 1.15 * together,
        };
        assert!(seconds < bound, "{}: {seconds} s for {together} s", name);
    }
}

#[test]
fn backup_spares_the_dear_path_while_the_cheap_one_carries_the_load() {
    // The application has less to say than the cheap path carries: 50 segments every 50 ms.
    let mut session = Session::new("backup", &PATHS[..2], 1, 10_000_000, None);
    session.queue = Queue::new(Bytes::new(HEADER));
    session.queue.extend_window(DataSeq(10_000_000));
    for burst in 0..40 {
        let content = Content::Data { flow: FlowId(0), offset: burst * 50_000, fin: false };
        session.queue.admit(content, 50_000);
        session.now = Time::from_millis(burst * 50).max(session.now);
        session.schedule();
        let until = Time::from_millis((burst + 1) * 50);
        while session.events.first_key_value().is_some_and(|((at, _), _)| *at < until) {
            let ((now, _), event) = session.events.pop_first().unwrap();
            session.now = now;
            session.handle(event);
            session.schedule();
        }
    }
    assert!(session.carried(0) >= 1_900);
    assert_eq!(session.carried(1), 0);
}
