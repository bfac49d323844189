//! Two sessions against each other over an adversarial carrier, in virtual time.
//!
//! The adversary loses, duplicates and reorders datagrams, kills paths and brings them back, shrinks datagrams, never
//! reports some losses, and acknowledges packets whose records it drops. Required is: every byte once and in order, memory
//! within the windows, and no stall while one path lives. Where applications give flows up in mid-transfer: no error, every
//! flow closes, and the windows are as they were.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use manypath_core::{
    AlgorithmSpec, Bytes, DataRange, DataSeq, Duration, FlowId, PacketNumber, RangeSet, SubflowId, Time,
};
use proptest::prelude::*;

use crate::mutation::Mutation;
use crate::{Config, PathInit, Received, Record, Role, Session, SessionEvent};

/// What the adversary does to one path, both ways.
#[derive(Clone, Debug)]
struct Hostility {
    delay: Duration,
    jitter: Duration,
    loss: f64,
    duplication: f64,
    /// Acknowledged by the carrier, dropped before the session.
    swallowed: f64,
    /// Losses that the carrier does not report.
    unreported: f64,
    /// From and until when nothing passes.
    dead: Option<(Time, Time)>,
    /// From when on datagrams are this small.
    shrinks: Option<(Time, Bytes)>,
}

/// How one end deals with a flow.
#[derive(Clone, Copy, Debug)]
struct Conduct {
    /// It stops the flow when it has read so much.
    stop_at: Option<u64>,
    /// It resets the flow when it has written so much.
    reset_at: Option<u64>,
}

/// Reads everything, writes everything.
const PATIENT: Conduct = Conduct { stop_at: None, reset_at: None };

/// How many flows an end has open at once.
const AT_ONCE: usize = 8;

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    paths: Vec<Hostility>,
    /// What each flow's opener writes; they take turns.
    flows: Vec<u64>,
    /// What the other end answers.
    answer: u64,
    /// How opener and other end deal with the flows, in turn.
    conduct: Vec<[Conduct; 2]>,
    window: u64,
    scheduler: &'static str,
    controller: &'static str,
    /// Records an acknowledgement covers at least, and the milliseconds between two.
    acks: (u32, u64),
    mutation: Mutation,
}

#[derive(Debug)]
enum Happening {
    Record { to: usize, path: SubflowId, record: Box<Record> },
    Acked { at: usize, path: SubflowId, packet: PacketNumber },
    Lost { at: usize, path: SubflowId, packet: PacketNumber },
    Shrink { path: SubflowId, size: Bytes },
    Read,
}

/// What one end's application and engine know.
#[derive(Default)]
struct Host {
    /// Per flow: what is left to write, and whether the end was written or the flow given up.
    writing: BTreeMap<FlowId, (u64, bool)>,
    /// Per flow: bytes stored by offset.
    stored: BTreeMap<FlowId, RangeSet>,
    /// Per flow: bytes read, and whether the end was seen.
    read: BTreeMap<FlowId, (u64, bool)>,
}

struct Duel {
    plan: Plan,
    now: Time,
    random: u64,
    ends: [Session; 2],
    hosts: [Host; 2],
    happenings: BinaryHeap<Reverse<(Time, u64)>>,
    details: BTreeMap<u64, Happening>,
    next: u64,
    /// The next of the plan's flows that each end opens.
    unopened: [usize; 2],
}

fn session(role: Role, plan: &Plan) -> Session {
    let mut config = Config::new(role);
    config.receive_window = Bytes::new(plan.window);
    config.flow_window = Bytes::new(plan.window / 2);
    config.send_buffer = Bytes::new(plan.window * 4);
    config.records_per_ack = plan.acks.0;
    config.ack_interval = Duration::from_millis(plan.acks.1);
    config.peer.receive_window = config.receive_window;
    config.peer.flow_window = config.flow_window;
    let cc = manypath_cc::create(&plan.controller.parse::<AlgorithmSpec>().unwrap(), plan.seed).unwrap();
    let scheduler = manypath_sched::create(&plan.scheduler.parse::<AlgorithmSpec>().unwrap()).unwrap();
    let mut session = Session::new(config, cc, scheduler);
    session.mutation = plan.mutation;
    for _ in &plan.paths {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1400))).unwrap();
    }
    session
}

impl Duel {
    fn new(plan: Plan) -> Self {
        let ends = [session(Role::Client, &plan), session(Role::Server, &plan)];
        let mut duel = Self {
            random: plan.seed | 1,
            plan,
            now: Time::ZERO,
            ends,
            hosts: [Host::default(), Host::default()],
            happenings: BinaryHeap::new(),
            details: BTreeMap::new(),
            next: 0,
            unopened: [0, 1],
        };
        for (path, hostility) in (0..).map(SubflowId).zip(duel.plan.paths.clone()) {
            if let Some((at, size)) = hostility.shrinks {
                duel.later(at, Happening::Shrink { path, size });
            }
        }
        duel.later(Time::from_millis(1), Happening::Read);
        duel
    }

    fn chance(&mut self) -> f64 {
        // xorshift64*: the adversary's own dice.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn later(&mut self, at: Time, happening: Happening) {
        self.details.insert(self.next, happening);
        self.happenings.push(Reverse((at, self.next)));
        self.next += 1;
    }

    fn transit(&mut self, path: SubflowId) -> Duration {
        let jitter = self.chance();
        self.plan.paths[path.index()].delay + self.plan.paths[path.index()].jitter.mul_f64(jitter)
    }

    fn is_dead(&self, path: SubflowId, at: Time) -> bool {
        self.plan.paths[path.index()].dead.is_some_and(|(from, until)| from <= at && at < until)
    }

    /// Everything both ends want to do now.
    fn settle(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                match event {
                    SessionEvent::FlowOpened(flow) => {
                        self.hosts[end].writing.insert(flow, (self.plan.answer, false));
                    }
                    SessionEvent::FlowStopped { flow, .. } => {
                        self.hosts[end].writing.insert(flow, (0, true));
                    }
                    _ => {}
                }
            }
            self.open(end);
            self.write(end);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
                self.carry(end, transmit.subflow, transmit.record, transmit.packet);
            }
            let (limit, buffer) = (self.plan.window, self.plan.window * 4);
            assert!(self.ends[end].queue().held().get() <= buffer + 16, "the sender holds more than its buffer");
            let buffered = self.ends[end].receive_buffered().get();
            assert!(buffered <= limit, "the receiver holds more than its window");
            let (consumed, arrived) = (self.ends[end].consumed, self.ends[end].arrivals.total());
            assert_eq!(consumed + buffered, arrived, "the window moves with what was read or dropped");
            let spanned: u64 = self.ends[end].flows.values().map(|flow| flow.recv.span()).sum();
            assert_eq!(self.ends[end].spanned, spanned, "what flows span is given back");
        }
    }

    /// Opens the plan's next flows.
    fn open(&mut self, end: usize) {
        let session = &mut self.ends[end];
        while let Some(size) = self.plan.flows.get(self.unopened[end]).copied()
            && session.flows.keys().filter(|flow| flow.0 as usize % 2 == end).count() < AT_ONCE
        {
            let flow = session.open_flow().unwrap();
            assert_eq!(flow.0 as usize, self.unopened[end], "ids count up from the lowest");
            self.hosts[end].writing.insert(flow, (size, false));
            self.unopened[end] += 2;
        }
    }

    /// How an end deals with a flow.
    fn conduct(&self, end: usize, flow: FlowId) -> Conduct {
        let flow = flow.0 as usize;
        self.plan.conduct[flow % self.plan.conduct.len()][(end + flow) % 2]
    }

    fn write(&mut self, end: usize) {
        let now = self.now;
        let flows: Vec<FlowId> = self.hosts[end].writing.keys().copied().collect();
        for flow in flows {
            let size = if flow.0 as usize % 2 == end { self.plan.flows[flow.0 as usize] } else { self.plan.answer };
            let reset_at = self.conduct(end, flow).reset_at;
            let (left, ended) = self.hosts[end].writing.get_mut(&flow).unwrap();
            if *ended {
                continue;
            }
            // Some end when all of their data has been handed out, so that their end leaves alone and may overtake it.
            let at_once = *left == 0 || flow.0 % 4 < 2;
            while *left > 0 {
                let accepted = self.ends[end].write(now, flow, *left).unwrap();
                *left -= accepted;
                if accepted == 0 {
                    break;
                }
            }
            if reset_at.is_some_and(|at| size - *left >= at) {
                self.ends[end].reset(flow, 1);
                *ended = true;
            } else if *left == 0 && at_once {
                self.ends[end].finish(flow).unwrap();
                *ended = true;
            }
        }
    }

    fn carry(&mut self, from: usize, path: SubflowId, record: Record, packet: Option<PacketNumber>) {
        let hostility = self.plan.paths[path.index()].clone();
        let (there, back) = (self.transit(path), self.transit(path));
        let arrival = self.now + there;
        let (lost, swallowed) = (self.chance() < hostility.loss, self.chance() < hostility.swallowed);
        if lost || self.is_dead(path, arrival) {
            if let Some(packet) = packet
                && self.chance() >= hostility.unreported
                && !self.is_dead(path, arrival + back)
            {
                let at = arrival + back + hostility.delay;
                self.later(at, Happening::Lost { at: from, path, packet });
            }
            return;
        }
        if let Some(packet) = packet
            && !self.is_dead(path, arrival + back)
        {
            self.later(arrival + back, Happening::Acked { at: from, path, packet });
        }
        if packet.is_some() && swallowed {
            return;
        }
        self.later(arrival, Happening::Record { to: 1 - from, path, record: Box::new(record) });
        if self.chance() < hostility.duplication {
            let again = arrival + self.transit(path);
            self.later(again, Happening::Record { to: 1 - from, path, record: Box::new(record) });
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Record { to, path, record } => {
                let received = self.ends[to].on_record(now, path, &record, false);
                match received.expect("an honest peer breaks no rule") {
                    Received::Nothing => {}
                    Received::Store { flow, offset, len, .. } => {
                        let range = DataRange::new(DataSeq(offset), u64::from(len));
                        self.hosts[to].stored.entry(flow).or_default().insert(range);
                    }
                }
            }
            Happening::Acked { at, path, packet } => self.ends[at].on_acked(now, path, packet),
            Happening::Lost { at, path, packet } => self.ends[at].on_lost(now, path, packet),
            Happening::Shrink { path, size } => {
                for end in &mut self.ends {
                    end.set_max_datagram(path, size);
                }
            }
            Happening::Read => {
                self.read();
                self.later(now + Duration::from_millis(7), Happening::Read);
            }
        }
    }

    /// Both applications read what is there, and check it.
    fn read(&mut self) {
        for end in 0..2 {
            let flows: Vec<FlowId> =
                self.hosts[end].stored.keys().chain(self.hosts[end].writing.keys()).copied().collect();
            for flow in flows {
                let stop_at = self.conduct(end, flow).stop_at;
                let readable = self.ends[end].readable(flow);
                let (read, ended) = self.hosts[end].read.entry(flow).or_default();
                if readable.end > readable.start {
                    assert_eq!(readable.start, *read, "bytes come in order");
                    let range = DataRange::between(DataSeq(readable.start), DataSeq(readable.end));
                    let stored = self.hosts[end].stored.get(&flow).is_some_and(|stored| stored.covers(range));
                    assert!(stored, "readable bytes were stored");
                    *read = readable.end;
                }
                let len = readable.end - readable.start;
                if !*ended {
                    self.ends[end].consume(self.now, flow, len);
                    *ended = self.ends[end].is_finished(flow) && *read > 0;
                    if stop_at.is_some_and(|at| *read >= at) {
                        self.ends[end].stop(self.now, flow, 2);
                        *ended = true;
                    }
                }
            }
        }
    }

    /// Whether all that nobody gave up was read, and nothing is left.
    fn is_complete(&self) -> bool {
        let sizes = (0..).map(FlowId).zip(&self.plan.flows);
        let read = sizes.into_iter().all(|(flow, size)| {
            let opener = flow.0 as usize % 2;
            [(opener, *size), (1 - opener, self.plan.answer)].into_iter().all(|(writer, size)| {
                let given_up = self.conduct(writer, flow).reset_at.is_some_and(|at| at <= size)
                    || self.conduct(1 - writer, flow).stop_at.is_some();
                given_up || self.hosts[1 - writer].read.get(&flow) == Some(&(size, true))
            })
        });
        let opened = self.unopened.iter().all(|next| *next >= self.plan.flows.len());
        opened && read && self.ends.iter().all(|end| end.queue().is_empty() && end.open_flows() == 0)
    }

    /// Runs until everything arrived; `Err` says what is missing when time is up.
    fn run(&mut self, limit: Duration) -> Result<Time, String> {
        let end = Time::ZERO + limit;
        self.settle();
        while !self.is_complete() {
            let timer = self.ends.iter().filter_map(Session::next_timeout).min().unwrap_or(Time::MAX);
            let next = self.happenings.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
            if timer.min(next) > end {
                let open = self.ends.each_ref().map(|end| end.flows.keys().copied().collect::<Vec<_>>());
                let read = &self.hosts[1].read;
                return Err(format!("stalled: {read:?} read of {:?}; open: {open:?}", self.plan.flows));
            }
            if next <= timer {
                let Some(Reverse((at, id))) = self.happenings.pop() else { break };
                self.now = at.max(self.now);
                if let Some(happening) = self.details.remove(&id) {
                    self.happen(happening);
                }
            } else {
                // An engine's timers are never early and a little late.
                self.now = timer.max(self.now) + Duration::from_micros(1);
                self.ends.iter_mut().for_each(|end| end.on_timeout(self.now));
            }
            self.settle();
        }
        Ok(self.now)
    }
}

fn hostility() -> impl Strategy<Value = Hostility> {
    let rates = (0.0..0.3_f64, 0.0..0.2_f64, 0.0..0.1_f64, prop_oneof![Just(0.0), Just(1.0), Just(0.5)]);
    let dead = prop::option::of((0_u64..3_000, 1_u64..8_000));
    let shrinks = prop::option::of((0_u64..2_000, 300_u64..1_400));
    (1_u64..150, 0_u64..50, rates, dead, shrinks).prop_map(|(delay, jitter, rates, dead, shrinks)| Hostility {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss: rates.0,
        duplication: rates.1,
        swallowed: rates.2,
        unreported: rates.3,
        dead: dead.map(|(from, len)| (Time::from_millis(from), Time::from_millis(from + len))),
        shrinks: shrinks.map(|(at, size)| (Time::from_millis(at), Bytes::new(size))),
    })
}

/// A plan whose applications give flows up in mid-transfer.
fn impatient() -> impl Strategy<Value = Plan> {
    let give_up = || prop::option::of(0_u64..60_000);
    let conduct = move || (give_up(), give_up()).prop_map(|(stop_at, reset_at)| Conduct { stop_at, reset_at });
    let conduct = prop::collection::vec((conduct(), conduct()).prop_map(<[Conduct; 2]>::from), 1..24);
    let flows = (prop::collection::vec(1_u64..60_000, 1..40), 1_u64..60_000);
    let plan = (plan(Mutation::None), conduct, flows);
    plan.prop_map(|(plan, conduct, (flows, answer))| Plan { conduct, flows, answer, ..plan })
}

/// Schedulers with other parameters than their defaults.
const RESCUED: [&str; 3] = ["minrtt:rescue=on", "rate-based:rescue=on", "arrival-order:rescue=on"];

fn named(all: impl Iterator<Item = &'static str>, more: &[&'static str]) -> Vec<&'static str> {
    all.chain(more.iter().copied()).collect()
}

fn plan(mutation: Mutation) -> impl Strategy<Value = Plan> {
    let names = (
        prop::sample::select(named(manypath_sched::algorithms().iter().map(|found| found.name), &RESCUED)),
        prop::sample::select(named(manypath_cc::algorithms().iter().map(|found| found.name), &[])),
        prop::sample::select(vec![(2, 0), (4, 1)]),
    );
    let flows = prop::collection::vec(1_u64..400_000, 1..8);
    (any::<u64>(), prop::collection::vec(hostility(), 1..4), flows, 20_000_u64..300_000, names).prop_map(
        move |(seed, paths, flows, window, (scheduler, controller, acks))| Plan {
            seed,
            paths,
            flows,
            // The answering direction carries a few bytes of its own.
            answer: 100,
            conduct: vec![[PATIENT; 2]],
            window,
            scheduler,
            controller,
            acks,
            mutation,
        },
    )
}

/// Long enough for the most hostile plan on a single path: 30% loss each way, windows of one or two packets.
const PATIENCE: Duration = Duration::from_secs(1_500);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order(plan in plan(Mutation::None)) {
        prop_assert_eq!(Duel::new(plan).run(PATIENCE).map(|_| ()), Ok(()));
    }

    #[test]
    fn flows_that_are_given_up_close_and_leave_nothing(plan in impatient()) {
        let mut duel = Duel::new(plan);
        prop_assert_eq!(duel.run(PATIENCE).map(|_| ()), Ok(()));
        for end in &duel.ends {
            prop_assert_eq!(end.consumed, end.arrivals.left().0);
            prop_assert_eq!(end.blocked_flows.len(), 0);
        }
    }
}

/// Whether some plan defeats a session with a part missing.
fn is_found(mutation: Mutation) -> bool {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(RunnerConfig::default(), random);
    (0..40).any(|_| {
        let plan = plan(mutation).new_tree(&mut runner).expect("plans are never rejected").current();
        // The whole session survives the same plan.
        Duel::new(Plan { mutation: Mutation::None, ..plan.clone() }).run(PATIENCE).expect("no part is missing");
        let attempt = std::panic::catch_unwind(|| Duel::new(plan).run(PATIENCE).is_err());
        attempt.unwrap_or(true)
    })
}

#[test]
fn the_adversary_finds_a_session_without_retransmission() {
    assert!(is_found(Mutation::NoRetransmission));
}

#[test]
fn the_adversary_finds_a_session_without_window_check() {
    assert!(is_found(Mutation::NoWindowCheck));
    assert!(is_found(Mutation::NoWindowCheckAtBothEnds));
}

#[test]
fn the_adversary_finds_a_session_without_deduplication() {
    assert!(is_found(Mutation::NoDeduplication));
}

/// The connection's window in the tests below; a flow's is half of it.
const WINDOW: u64 = 8 << 20;

/// An honest network, to be changed by each test.
fn calm(delay: u64) -> Hostility {
    Hostility {
        delay: Duration::from_millis(delay),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        swallowed: 0.0,
        unreported: 0.0,
        dead: None,
        shrinks: None,
    }
}

fn duel(paths: Vec<Hostility>, size: u64) -> Duel {
    let (window, scheduler, controller) = (WINDOW, "minrtt", "reno");
    let (flows, answer, conduct) = (vec![size], 100, vec![[PATIENT; 2]]);
    let mutation = Mutation::None;
    Duel::new(Plan { seed: 7, paths, flows, answer, conduct, window, scheduler, controller, acks: (2, 0), mutation })
}

#[test]
fn a_dead_path_is_noticed_and_its_data_moves_in_time() {
    for delay in [5, 40, 150] {
        let death = Time::from_millis(1_500);
        let dying = Hostility { dead: Some((death, Time::MAX)), unreported: 1.0, ..calm(delay) };
        let mut duel = duel(vec![dying, calm(200)], 1 << 34);
        duel.run(Duration::from_millis(1_500)).unwrap_err();
        let rto = duel.ends[0].paths[0].as_ref().unwrap().rto();
        let allowed = (rto * 3).max(Duration::from_millis(500));
        // What is still on its way back when the path dies is heard; silence begins half a round trip later.
        duel.run(Duration::from_millis(1_500) + allowed).unwrap_err();
        let session = &duel.ends[0];
        assert_eq!(session.view().subflows[0].state, manypath_core::SubflowState::Failed, "delay {delay} ms");
        assert_eq!(session.view().subflows[0].in_flight, Bytes::ZERO);
        let stranded =
            session.queue().segments().filter(|s| s.is_in_flight() && s.last_subflow == SubflowId(0)).count();
        assert_eq!(stranded, 0, "delay {delay} ms");
    }
}

#[test]
fn a_path_that_returns_is_used_again() {
    let back = Time::from_millis(4_000);
    let dying = Hostility { dead: Some((Time::from_millis(1_000), back)), unreported: 1.0, ..calm(5) };
    let mut duel = duel(vec![dying, calm(30)], 1 << 34);
    duel.run(Duration::from_millis(3_900)).unwrap_err();
    let before = duel.ends[0].view().subflows[0].delivered;
    duel.run(Duration::from_millis(7_000)).unwrap_err();
    assert!(duel.ends[0].view().subflows[0].delivered > before + Bytes::new(1 << 20));
}

#[test]
fn an_end_that_only_receives_notices_a_dead_path_and_sends_its_windows_elsewhere() {
    let death = Time::from_millis(1_500);
    let dying = Hostility { dead: Some((death, Time::MAX)), unreported: 1.0, ..calm(5) };
    // What the receiver writes, its end of the flow, leaves by the first path; it has probed the second, and prefers
    // it.
    let mut duel = duel(vec![calm(30), dying], 1 << 34);
    duel.plan.answer = 0;
    duel.run(Duration::from_millis(1_500)).unwrap_err();
    assert_eq!(duel.ends[1].control_path(), Some(SubflowId(1)));
    let (mut still, mut longest, mut last) = (0, 0, 0);
    for step in 1..=200 {
        duel.run(Duration::from_millis(1_500 + step * 100)).unwrap_err();
        let read = duel.hosts[1].read[&FlowId(0)].0;
        still = if read == last { still + 1 } else { 0 };
        (last, longest) = (read, longest.max(still));
    }
    assert!(longest <= 10, "{longest} tenths of a second without a byte");
    assert!(last > 10 * WINDOW, "{last} bytes");
    assert_eq!(duel.ends[1].view().subflows[1].state, manypath_core::SubflowState::Failed);
}

#[test]
fn a_session_without_any_path_for_a_minute_resumes() {
    let mut duel = duel(vec![calm(5)], 30 << 20);
    duel.run(Duration::from_millis(100)).unwrap_err();
    for end in &mut duel.ends {
        end.remove_path(duel.now, SubflowId(0));
    }
    duel.run(Duration::from_secs(61)).unwrap_err();
    duel.now = Time::ZERO + Duration::from_secs(61);
    for end in &mut duel.ends {
        end.add_path(duel.now, PathInit::new(Bytes::new(1400))).unwrap();
    }
    duel.run(Duration::from_secs(70)).unwrap();
}

#[test]
fn an_idle_path_is_kept_alive() {
    let mut duel = duel(vec![calm(5)], 1000);
    duel.run(Duration::from_secs(1)).unwrap();
    let before = duel.next;
    // Not complete any more, so that time goes on; nobody reads, so that only the paths' own records are counted.
    duel.plan.flows = vec![2000];
    duel.happenings.clear();
    duel.run(Duration::from_secs(50)).unwrap_err();
    let records = duel.next - before;
    assert!((6..=24).contains(&records), "{records} records in 50 s of silence");
    assert_eq!(duel.ends[0].view().subflows[0].state, manypath_core::SubflowState::Active);
}

#[test]
fn a_reader_that_stops_bounds_the_senders_memory() {
    let mut duel = duel(vec![calm(5)], 1 << 34);
    duel.details.clear();
    duel.happenings.clear();
    duel.run(Duration::from_secs(30)).unwrap_err();
    let buffered = duel.ends[1].receive_buffered().get();
    assert_eq!(buffered, WINDOW / 2, "the flow's window is full");
    assert!(duel.ends[0].queue().held().get() <= 4 * WINDOW);
    // It goes on when the reader does.
    duel.later(Time::ZERO + Duration::from_secs(30), Happening::Read);
    duel.run(Duration::from_secs(40)).unwrap_err();
    assert!(duel.hosts[1].read[&FlowId(0)].0 > 10 << 20);
}

#[test]
fn a_mark_reported_after_its_acknowledgement_begins_one_episode_a_round_trip() {
    let mut duel = duel(vec![calm(20)], 1 << 34);
    duel.run(Duration::from_millis(200)).unwrap_err();
    let session = &mut duel.ends[0];
    let window = |session: &Session| session.view().subflows[0].cwnd.get();
    let packets: Vec<_> = session.paths[0].as_ref().unwrap().packets_in_flight().take(20).collect();
    let before = window(session);
    for packet in packets {
        session.on_acked(duel.now, SubflowId(0), packet);
        session.on_ecn(duel.now, SubflowId(0), packet);
    }
    // Reno halves once; what is acknowledged before the first mark adds a packet at most.
    assert!(window(session) >= before / 2, "{} after {before}", window(session));
    assert!(window(session) < before * 3 / 4);
}
