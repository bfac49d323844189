//! What schedulers are told of applications that wait.

use std::sync::{Arc, Mutex};

use manypath_core::{AlgorithmSpec, Bytes, FlowId, SubflowId, Time, View};
use manypath_sched::{Choice, Queue, Scheduler};
use manypath_session::record::{Ack, Record};
use manypath_session::{Config, PathInit, Role, Session, SessionEvent};

/// Sends in order on the only path, and notes what it is told when nothing is left to send.
#[derive(Debug)]
struct Witness(Arc<Mutex<Vec<bool>>>);

impl Scheduler for Witness {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        if queue.unsent().is_zero() {
            self.0.lock().unwrap().push(queue.writer_waits());
        }
        match queue.head(view.subflows[0].mss) {
            Some(range) if view.subflows[0].has_room() => Choice::Send { subflow: SubflowId(0), range },
            _ => Choice::Wait,
        }
    }

    fn reason(&self) -> &'static str {
        "in order"
    }
}

#[test]
fn only_a_writer_without_room_holds_up() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let config = Config { send_buffer: Bytes::new(20_000), pace_windows: false, ..Config::new(Role::Client) };
    let header = config.record_header;
    let mut session = Session::new(config, cc, Box::new(Witness(seen.clone())));
    let id = session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_000) + header)).unwrap();
    let flow = session.open_flow().unwrap();
    let accepted = session.write(Time::ZERO, flow, 100_000).unwrap();
    assert_eq!(accepted, 20_000);

    // Ten packets fill the initial window; ten remain.
    let packets: Vec<_> =
        std::iter::from_fn(|| session.poll_transmit(Time::ZERO)).filter_map(|transmit| transmit.packet).collect();
    assert_eq!((packets.len(), session.queue().unsent()), (10, Bytes::new(10_000)));
    assert!(seen.lock().unwrap().is_empty());

    // They arrive: half of the memory is free, and the others leave until nothing is left to send.
    let now = Time::from_millis(20);
    let ack =
        Ack { left: session.queue().left_edge() + 10_000, window_end: session.queue().window_end(), ..Ack::default() };
    session.on_record(now, id, &Record::Ack(ack), false).unwrap();
    packets.iter().for_each(|packet| session.on_acked(now, id, *packet));
    let sent = std::iter::from_fn(|| session.poll_transmit(now)).filter(|transmit| transmit.packet.is_some()).count();
    assert_eq!(sent, 10);
    assert_eq!(*seen.lock().unwrap(), [false]);
    let woken = std::iter::from_fn(|| session.poll_event()).filter(|event| *event == SessionEvent::Writable(flow));
    assert_eq!(woken.count(), 1);

    // Memory is full again: now somebody waits.
    assert_eq!(session.write(now, flow, 80_000).unwrap(), 10_000);
    while session.poll_transmit(now).is_some() {}
    assert_eq!(seen.lock().unwrap().last(), Some(&true));
}

#[test]
fn a_writer_whose_reader_holds_it_up_waits_for_no_memory() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let mut config = Config { pace_windows: false, ..Config::new(Role::Client) };
    config.peer.flow_window = Bytes::new(3_000);
    let header = config.record_header;
    let mut session = Session::new(config, cc, Box::new(Witness(seen.clone())));
    let id = session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_000) + header)).unwrap();
    let (held, other) = (session.open_flow().unwrap(), session.open_flow().unwrap());
    assert_eq!(session.write(Time::ZERO, held, 100_000).unwrap(), 3_000);
    assert_eq!(session.write(Time::ZERO, other, 500).unwrap(), 500);
    while session.poll_transmit(Time::ZERO).is_some() {}
    assert_eq!(*seen.lock().unwrap(), [false], "everything was sent, and there is memory");
    // Its reader goes on: it hears of it.
    let flow = Record::FlowWindow { flow: held, limit: 4_000 };
    session.on_record(Time::from_millis(20), id, &flow, false).unwrap();
    let woken = std::iter::from_fn(|| session.poll_event()).filter(|event| *event == SessionEvent::Writable(held));
    assert_eq!(woken.count(), 1);
    assert_eq!(session.write(Time::from_millis(20), held, 100_000).unwrap(), 1_000);
}

/// Looks at so much more.
#[derive(Debug)]
struct LooksAhead(Bytes);

impl Scheduler for LooksAhead {
    fn pick(&mut self, _now: Time, _view: &View, _queue: &Queue) -> Choice {
        Choice::Wait
    }

    fn looks_ahead(&self, _view: &View) -> Bytes {
        self.0
    }

    fn reason(&self) -> &'static str {
        "never"
    }
}

#[test]
fn the_send_buffer_holds_what_the_scheduler_looks_at() {
    let admitted = |ahead: u64, send_buffer: u64| {
        let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
        let config = Config { send_buffer: Bytes::new(send_buffer), ..Config::new(Role::Client) };
        let mut session = Session::new(config, cc, Box::new(LooksAhead(Bytes::new(ahead))));
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
        let flow = session.open_flow().unwrap();
        let mut sum = 0;
        while let accepted @ 1.. = session.write(Time::ZERO, flow, 1 << 20).unwrap() {
            sum += accepted;
        }
        sum
    };
    let without = admitted(0, 16 << 20);
    assert_eq!(admitted(900_000, 16 << 20), without + 900_000);
    assert_eq!(admitted(900_000, 400_000), 400_000, "no more than its memory");
}

/// Whoever hears first that there is room takes it all.
#[test]
fn flows_that_all_have_more_to_write_take_turns() {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut config = Config::new(Role::Client);
    config.peer.flow_window = Bytes::new(1 << 40);
    let mut session = Session::new(config, cc, scheduler);
    let path = session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    let mut written: Vec<_> = (0..4).map(|_| (session.open_flow().unwrap(), 0)).collect();
    let write = |session: &mut Session, now, (flow, sum): &mut (FlowId, u64)| {
        while let accepted @ 1.. = session.write(now, *flow, 1 << 20).unwrap() {
            *sum += accepted;
        }
    };
    written.iter_mut().for_each(|flow| write(&mut session, Time::ZERO, flow));
    for ms in 0..50 {
        let now = Time::from_millis(ms);
        session.on_timeout(now);
        let packets: Vec<_> = std::iter::from_fn(|| session.poll_transmit(now)).collect();
        for transmit in packets {
            let (Record::Data(data), Some(packet)) = (transmit.record, transmit.packet) else { continue };
            let window_end = session.queue().window_end() + u64::from(data.len);
            let ack = Ack { left: data.seq + u64::from(data.len), window_end, ..Ack::default() };
            session.on_record(now, path, &Record::Ack(ack), false).unwrap();
            session.on_acked(now, path, packet);
        }
        while let Some(event) = session.poll_event() {
            if let SessionEvent::Writable(id) = event {
                write(&mut session, now, written.iter_mut().find(|(flow, _)| *flow == id).unwrap());
            }
        }
    }
    let sums = written.iter().map(|(_, sum)| *sum);
    let (least, most) = (sums.clone().min().unwrap(), sums.max().unwrap());
    assert!(least > 1_000_000 && most - least < most / 4, "{written:?}");
}
