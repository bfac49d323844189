//! Which way control records go, and when paths are probed.

use manypath_core::{AlgorithmSpec, Bytes, DataSeq, Duration, FlowId, SubflowId, SubflowState, Time};
use manypath_session::record::{Ack, AckRanges, Data, Record, SendTime};
use manypath_session::{Config, PathInit, Role, Session, SessionEvent, Transmit};

const FLOW: FlowId = FlowId(0);
const FIRST: SubflowId = SubflowId(0);
const SECOND: SubflowId = SubflowId(1);

/// A server with two paths, which has sent nothing.
fn receiver() -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut session = Session::new(Config::new(Role::Server), cc, scheduler);
    for _ in 0..2 {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    }
    session
}

/// A full packet comes, of this number, and is read.
fn receive(session: &mut Session, now: Time, path: SubflowId, number: u64) {
    let (offset, sent) = (number * 1_000, SendTime(0));
    let seq = DataSeq(offset);
    let data = Data { flow: FLOW, seq, offset, len: 1_000, fin: false, copy: false, sent, deadline: None };
    session.on_record(now, path, &Record::Data(data), false).unwrap();
    session.consume_all(now, FLOW);
}

/// What leaves at a time.
fn sent(session: &mut Session, now: Time) -> Vec<Transmit> {
    session.on_timeout(now);
    std::iter::from_fn(|| session.poll_transmit(now)).collect()
}

/// The peer answers the probes of a path.
fn answer(session: &mut Session, now: Time, path: SubflowId, transmits: &[Transmit]) {
    for transmit in transmits.iter().filter(|transmit| transmit.subflow == path) {
        if let Record::Ping { token } = transmit.record {
            session.on_record(now, path, &Record::Pong { token }, false).unwrap();
        }
    }
}

fn windows(transmits: &[Transmit]) -> Vec<SubflowId> {
    let windows = transmits.iter().filter(|transmit| matches!(transmit.record, Record::FlowWindow { .. }));
    windows.map(|transmit| transmit.subflow).collect()
}

#[test]
fn windows_leave_by_a_path_that_is_heard() {
    let mut session = receiver();
    // A packet a millisecond moves the window by a quarter in 4.2 s.
    let mut all = Vec::new();
    for number in 0..20_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, if number < 5_000 { FIRST } else { SECOND }, number);
        all.extend(windows(&sent(&mut session, now)));
    }
    assert_eq!(all, [FIRST, SECOND, SECOND, SECOND]);
}

#[test]
fn a_path_that_says_nothing_is_not_told_how_far_the_other_is() {
    let mut session = receiver();
    let mut told = 0;
    for number in 0..20_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, if number < 5_000 { FIRST } else { SECOND }, number);
        let transmits = sent(&mut session, now);
        answer(&mut session, now, SECOND, &transmits);
        let acks = transmits.iter().filter(|transmit| matches!(transmit.record, Record::Ack { .. }));
        told += acks.filter(|transmit| transmit.subflow == FIRST && number >= 10_000).count();
    }
    assert_eq!(told, 0);
}

#[test]
fn a_window_is_repeated_on_the_path_it_was_asked_for() {
    let (mut session, now) = (receiver(), Time::from_millis(1));
    receive(&mut session, now, FIRST, 0);
    sent(&mut session, now);
    for path in [SECOND, FIRST, SECOND] {
        session.on_record(now, path, &Record::Blocked { flow: Some(FLOW) }, false).unwrap();
        assert_eq!(windows(&sent(&mut session, now)), [path]);
    }
    // Where it cannot leave, another path serves.
    session.on_record(now, SECOND, &Record::Blocked { flow: Some(FLOW) }, false).unwrap();
    session.set_carrier_ready(SECOND, false);
    assert_eq!(windows(&sent(&mut session, now)), [FIRST]);
}

#[test]
fn what_leaves_does_not_put_off_the_probe_of_a_path_that_brings_nothing() {
    let mut session = receiver();
    let (mut probes, mut failed) = (Vec::new(), None);
    for number in 0..20_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, SECOND, number);
        if number % 500 == 0 {
            // The peer hears nothing on the first path, and says so by asking.
            session.on_record(now, FIRST, &Record::Ping { token: 1 }, false).unwrap();
        }
        let transmits = sent(&mut session, now);
        answer(&mut session, now, SECOND, &transmits);
        let is_probe = |transmit: &&Transmit| matches!(transmit.record, Record::Ping { .. });
        probes.extend(transmits.iter().filter(is_probe).map(|transmit| (now, transmit.subflow)));
        if failed.is_none() && session.view().subflows[FIRST.index()].state == SubflowState::Failed {
            failed = Some(now);
        }
    }
    let silent = Time::ZERO + Config::new(Role::Server).keep_alive;
    assert!(probes.contains(&(silent, FIRST)));
    let failed = failed.expect("it answers nothing");
    assert!(failed > silent && failed.since(silent) < Duration::from_millis(1_100), "{failed:?}");
}

#[test]
fn a_carrier_that_takes_nothing_is_not_asked_again_and_again_for_a_probe() {
    let mut session = receiver();
    session.remove_path(Time::ZERO, SECOND);
    sent(&mut session, Time::ZERO);
    session.set_carrier_ready(FIRST, false);
    let idle = Time::from_millis(15_000);
    assert_eq!(sent(&mut session, idle), []);
    assert!(session.next_timeout().is_none_or(|at| at > idle), "{:?}", session.next_timeout());
    // It leaves when the carrier is ready; then the path fails, and the same holds for those that follow.
    session.set_carrier_ready(FIRST, true);
    assert!(session.next_timeout().is_some_and(|at| at <= idle));
    assert_eq!(sent(&mut session, idle).len(), 1);
    session.set_carrier_ready(FIRST, false);
    let silent = Time::from_millis(17_000);
    assert_eq!(sent(&mut session, silent), []);
    assert_eq!(session.view().subflows[FIRST.index()].state, SubflowState::Failed);
    assert!(session.next_timeout().is_none_or(|at| at > silent), "{:?}", session.next_timeout());
    session.set_carrier_ready(FIRST, true);
    assert_eq!(sent(&mut session, silent).len(), 1);
}

#[test]
fn windows_leave_by_the_faster_path_of_an_end_that_only_receives() {
    let mut session = receiver();
    let (mut all, mut owed) = (Vec::new(), Vec::new());
    for number in 0..10_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, FIRST, number);
        let transmits = sent(&mut session, now);
        all.extend(windows(&transmits));
        // Answers take 100 ms on the first path and 10 ms on the second.
        owed.extend(transmits.into_iter().map(|transmit| (number + [100, 10][transmit.subflow.index()], transmit)));
        for (_, transmit) in owed.extract_if(.., |(at, _)| *at == number) {
            answer(&mut session, now, transmit.subflow, &[transmit]);
        }
    }
    let round_trips = [FIRST, SECOND].map(|id| session.view().subflows[id.index()].srtt);
    assert_eq!(round_trips, [100, 10].map(|millis| Some(Duration::from_millis(millis))));
    assert_eq!(all, [SECOND, SECOND]);
}

#[test]
fn a_path_that_carries_nothing_is_measured_once_a_second_while_another_carries_data() {
    let mut session = receiver();
    let (mut probes, mut owed) = (Vec::new(), Vec::new());
    let srtt = |session: &Session| session.view().subflows[SECOND.index()].srtt;
    for number in 0..14_000 {
        let now = Time::from_millis(1 + number);
        if number < 6_000 {
            receive(&mut session, now, FIRST, number);
        }
        let is_probe = |one: &Transmit| one.subflow == SECOND && matches!(one.record, Record::Ping { .. });
        for probe in sent(&mut session, now).into_iter().filter(is_probe) {
            // The round trip has risen when it is measured first, and falls.
            owed.push((number + if probes.is_empty() { 900 } else { 40 }, probe));
            probes.push(number);
        }
        for (_, probe) in owed.extract_if(.., |(at, _)| *at == number) {
            answer(&mut session, now, SECOND, &[probe]);
        }
        if number == 1_900 {
            assert_eq!(srtt(&session), Some(Duration::from_millis(900)));
        }
    }
    assert_eq!(srtt(&session), Some(Duration::from_millis(40)), "a sample stands for itself");
    assert!((4..=8).contains(&probes.len()) && probes.iter().all(|at| *at <= 8_000), "{probes:?}");
    assert!(probes.windows(2).all(|pair| pair[1] - pair[0] >= 1_000), "{probes:?}");
}

#[test]
fn the_only_path_is_not_measured_without_need() {
    let mut session = receiver();
    session.remove_path(Time::ZERO, SECOND);
    for number in 0..5_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, FIRST, number);
        assert_eq!(probes(&sent(&mut session, now)), 0);
    }
}

#[test]
fn a_probe_of_an_idle_path_that_is_lost_is_no_failure() {
    let mut session = receiver();
    let mut probes = Vec::new();
    for number in 0..14_000 {
        let now = Time::from_millis(1 + number);
        receive(&mut session, now, FIRST, number);
        let is_probe = |one: &&Transmit| one.subflow == SECOND && matches!(one.record, Record::Ping { .. });
        probes.extend(sent(&mut session, now).iter().filter(is_probe).map(|_| number));
        assert_eq!(session.view().subflows[SECOND.index()].state, SubflowState::Active);
    }
    assert_eq!(probes, [0, 1_000, 3_000, 7_000], "each waits for twice as long");
}

#[test]
fn a_keep_alive_that_is_lost_is_no_failure() {
    let mut session = receiver();
    let (mut asked, mut heard) = (Vec::new(), 0);
    for number in 1..40_000 {
        let now = Time::from_millis(number);
        let is_probe = |one: &Transmit| one.subflow == SECOND && matches!(one.record, Record::Ping { .. });
        for probe in sent(&mut session, now).into_iter().filter(is_probe) {
            asked.push(number);
            // Every second one arrives.
            if asked.len() % 2 == 0 {
                answer(&mut session, now, SECOND, &[probe]);
                heard += 1;
            }
        }
        while let Some(event) = session.poll_event() {
            assert_ne!(event, SessionEvent::PathFailed(SECOND), "{asked:?}");
        }
    }
    assert_eq!(heard, 2, "one every 15 s: {asked:?}");
}

/// A client with one path and much to send.
fn sender() -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut session = Session::new(Config::new(Role::Client), cc, scheduler);
    session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    let flow = session.open_flow().unwrap();
    session.write(Time::ZERO, flow, 100_000).unwrap();
    session
}

fn probes(transmits: &[Transmit]) -> usize {
    transmits.iter().filter(|transmit| matches!(transmit.record, Record::Ping { .. })).count()
}

#[test]
fn a_path_is_probed_again_when_a_probe_was_lost_and_data_was_answered() {
    let mut session = sender();
    let packets: Vec<_> = sent(&mut session, Time::ZERO).iter().filter_map(|transmit| transmit.packet).collect();
    assert_eq!(probes(&sent(&mut session, Time::from_millis(600))), 1, "silent for a timeout");
    for packet in packets {
        session.on_acked(Time::from_millis(900), FIRST, packet);
    }
    let again: Vec<_> = sent(&mut session, Time::from_millis(900)).iter().filter_map(|again| again.packet).collect();
    assert!(!again.is_empty());
    // The probe's answer never comes; what is in flight now is silent in its turn.
    assert_eq!(probes(&sent(&mut session, Time::from_millis(5_000))), 1);
}

#[test]
fn a_path_that_falls_silent_twice_halves_its_threshold_once() {
    let mut session = sender();
    let packets: Vec<_> = sent(&mut session, Time::ZERO).iter().filter_map(|transmit| transmit.packet).collect();
    session.on_acked(Time::from_millis(100), FIRST, packets[0]);
    let window = session.view().subflows[0].cwnd;
    let mut failures = 0;
    for ms in 100..4_000 {
        let now = Time::from_millis(ms);
        for transmit in sent(&mut session, now) {
            // Once it answers a probe, and nothing else.
            if let Record::Ping { token } = transmit.record
                && failures == 1
                && ms > 2_000
            {
                session.on_record(now, FIRST, &Record::Pong { token }, false).unwrap();
            }
        }
        let failed = |event: &_| matches!(event, manypath_session::SessionEvent::PathFailed(_));
        failures += std::iter::from_fn(|| session.poll_event()).filter(failed).count();
    }
    assert_eq!(failures, 2);
    // RFC 9002 appendix B.8: what the silence took before the path failed is answered by one reduction.
    assert_eq!(session.view().subflows[0].ssthresh, window / 2);
}

#[test]
fn a_round_trip_beyond_the_timeout_is_learnt_from_probes() {
    const TRIP: u64 = 1_300;
    let mut session = sender();
    let mut answers = std::collections::VecDeque::new();
    let mut failures = 0;
    for ms in 0..20_000 {
        let now = Time::from_millis(ms);
        while let Some((_, answer)) = answers.pop_front_if(|(at, _)| *at <= ms) {
            match answer {
                Ok(packet) => session.on_acked(now, FIRST, packet),
                Err(token) => drop(session.on_record(now, FIRST, &Record::Pong { token }, false).unwrap()),
            }
        }
        for transmit in sent(&mut session, now) {
            match (transmit.record, transmit.packet) {
                (Record::Ping { token }, _) => answers.push_back((ms + TRIP, Err(token))),
                (_, Some(packet)) => answers.push_back((ms + TRIP, Ok(packet))),
                _ => {}
            }
        }
        failures += std::iter::from_fn(|| session.poll_event())
            .filter(|event| matches!(event, manypath_session::SessionEvent::PathFailed(_)))
            .count();
    }
    let view = &session.view().subflows[FIRST.index()];
    assert_eq!((view.srtt, view.state, failures), (Some(Duration::from_millis(TRIP)), SubflowState::Active, 1));
    assert!(view.delivered > Bytes::ZERO, "what left once the trip was known");
}

#[test]
fn an_idle_path_that_fails_keeps_its_threshold() {
    let mut session = sender();
    for ms in 0..1_000 {
        // All that leaves arrives, and the peer's session says so.
        asks(&mut session, ms, ms + 1, 1 << 20);
    }
    assert_eq!(session.view().subflows[0].in_flight, Bytes::ZERO);
    let threshold = session.view().subflows[0].ssthresh;
    for ms in 1_000..20_000 {
        sent(&mut session, Time::from_millis(ms));
    }
    let view = &session.view().subflows[0];
    assert_eq!((view.state, view.ssthresh), (SubflowState::Failed, threshold));
    assert!(view.cwnd <= view.mss, "a path that is silent counts for nothing");
}

/// The times, in milliseconds, at which a session asks for windows. All that it sends arrives, and is acknowledged at
/// once.
fn asks(session: &mut Session, from: u64, to: u64, window_end: u64) -> Vec<u64> {
    let mut asks = Vec::new();
    for ms in from..to {
        let now = Time::from_millis(ms);
        for transmit in sent(session, now) {
            match transmit.record {
                Record::Data(data) => {
                    let (left, ranges) = (DataSeq(data.seq.0 + u64::from(data.len)), AckRanges::new());
                    let ack = Ack { left, window_end: DataSeq(window_end), ranges };
                    session.on_record(now, FIRST, &Record::Ack(ack), false).unwrap();
                    session.on_acked(now, FIRST, transmit.packet.unwrap());
                }
                Record::Blocked { .. } => asks.push(ms),
                _ => {}
            }
        }
    }
    asks
}

#[test]
fn a_window_that_opened_and_closed_again_is_asked_for_as_soon_as_at_first() {
    const WINDOW: u64 = 10_000;
    for by_flow in [true, false] {
        let mut config = Config::new(Role::Client);
        let window = if by_flow { &mut config.peer.flow_window } else { &mut config.peer.receive_window };
        *window = Bytes::new(WINDOW);
        let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
        let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
        let mut session = Session::new(config, cc, scheduler);
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
        let flow = session.open_flow().unwrap();
        session.write(Time::ZERO, flow, 100_000).unwrap();
        // The reader pauses.
        let first = asks(&mut session, 0, 9_000, if by_flow { u64::MAX } else { WINDOW });
        assert_eq!(first, [50, 150, 350, 750, 1_550, 3_150, 5_150, 7_150]);
        // It reads, and the next window that it opens is lost.
        let opened = Time::from_millis(9_000);
        if by_flow {
            session.on_record(opened, FIRST, &Record::FlowWindow { flow, limit: 2 * WINDOW }, false).unwrap();
        } else {
            let (left, window_end) = (DataSeq(WINDOW), DataSeq(2 * WINDOW));
            let ack = Ack { left, window_end, ranges: AckRanges::new() };
            session.on_record(opened, FIRST, &Record::Ack(ack), false).unwrap();
        }
        session.write(opened, flow, 100_000).unwrap();
        let again = asks(&mut session, 9_000, 11_000, if by_flow { u64::MAX } else { 2 * WINDOW });
        assert!(again[0] <= 9_051 && again.len() >= 5, "by flow: {by_flow}: {again:?}");
    }
}
