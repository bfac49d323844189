//! How much of a round trip is the way back, between clocks that differ.

use std::collections::VecDeque;

use manypath_core::{AlgorithmSpec, Bytes, Duration, FlowId, PacketNumber, SubflowId, Time};
use manypath_session::{Config, PathInit, Record, Role, Session};

/// Milliseconds there and back.
const WAYS: [(u64, u64); 2] = [(10, 10), (40, 160)];
/// The receiver's clock is ahead by so much.
const OFFSET: Duration = Duration::from_secs(5_000);

fn session(role: Role) -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("round-robin")).unwrap();
    let mut session = Session::new(Config::new(role), cc, scheduler);
    for _ in WAYS {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    }
    session
}

/// On its way: when it arrives, and what.
struct Way<T>(VecDeque<(Time, T)>);

impl<T> Way<T> {
    fn arrivals(&mut self, now: Time) -> Vec<T> {
        let due = self.0.iter().take_while(|(at, _)| *at <= now).count();
        self.0.drain(..due).map(|(_, what)| what).collect()
    }
}

/// What the sender takes for the ways back, in ms, after three seconds of data on both paths. How much longer the second one takes there and
/// back by the millisecond.
fn measured(there_ms: impl Fn(u64) -> u64, back_ms: impl Fn(u64) -> u64) -> [f64; 2] {
    let (mut sender, mut receiver) = (session(Role::Client), session(Role::Server));
    let flow = sender.open_flow().unwrap();
    let mut there = WAYS.map(|_| Way::<(Record, Option<PacketNumber>)>(VecDeque::new()));
    let mut back = WAYS.map(|_| Way::<Result<Record, PacketNumber>>(VecDeque::new()));
    for ms in 0..3_000 {
        let now = Time::from_millis(ms);
        sender.write(now, flow, 100_000).unwrap();
        for (index, id) in [SubflowId(0), SubflowId(1)].into_iter().enumerate() {
            for what in back[index].arrivals(now) {
                match what {
                    Ok(record) => drop(sender.on_record(now, id, &record, false).unwrap()),
                    Err(packet) => sender.on_acked(now, id, packet),
                }
            }
            let at = now + Duration::from_millis(WAYS[index].1 + if index == 1 { back_ms(ms) } else { 0 });
            for (record, packet) in there[index].arrivals(now) {
                receiver.on_record(now + OFFSET, id, &record, false).unwrap();
                back[index].0.extend(packet.map(|packet| (at, Err(packet))));
            }
        }
        receiver.consume_all(now + OFFSET, FlowId(0));
        for (session, now) in [(&mut sender, now), (&mut receiver, now + OFFSET)] {
            session.on_timeout(now);
            while session.poll_event().is_some() {}
        }
        while let Some(transmit) = sender.poll_transmit(now) {
            let index = transmit.subflow.index();
            let delay = WAYS[index].0 + if index == 1 { there_ms(ms) } else { 0 };
            let at = now + Duration::from_millis(delay);
            there[index].0.push_back((at, (transmit.record, transmit.packet)));
        }
        while let Some(transmit) = receiver.poll_transmit(now + OFFSET) {
            let index = transmit.subflow.index();
            let delay = WAYS[index].1 + if index == 1 { back_ms(ms) } else { 0 };
            back[index].0.push_back((now + Duration::from_millis(delay), Ok(transmit.record)));
        }
    }
    [0, 1].map(|index| sender.view().subflows[index].way_back.expect("reports came").as_secs_f64() * 1e3)
}

#[test]
fn what_the_ways_back_differ_by_is_known_whatever_the_clocks_and_queues() {
    // Nothing queues, or from 1 s on the second path has a queue of 100 ms.
    for (name, queue) in [("none", (|_| 0) as fn(u64) -> u64), ("later", |ms| if ms < 1_000 { 0 } else { 100 })] {
        let [first, second] = measured(queue, |_| 0);
        assert!((second - first - 150.0).abs() < 1.5, "{name}: {first} and {second}");
        // 130 of 200 at least, since the first takes at most its 20; half of 220 is less.
        assert!(first < 1.5, "{name}: {first}");
    }
}

#[test]
fn a_way_back_that_becomes_longer_may_be_more_than_the_smallest_round_trip() {
    let [first, second] = measured(|_| 0, |ms| if ms < 1_000 { 0 } else { 100 });
    assert!((second - first - 250.0).abs() < 1.5, "{first} and {second}");
}
