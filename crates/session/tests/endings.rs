//! Flows that are given up before their end, record by record: what is late, lost or out of order then.

use manypath_core::{AlgorithmSpec, Bytes, DataSeq, Duration, FlowId, SubflowId, Time};
use manypath_session::record::{Ack, Data, Record, SendTime};
use manypath_session::{Config, PathInit, ProtocolError, Received, Role, Session, SessionEvent};

const FLOW: FlowId = FlowId(0);
const PATH: SubflowId = SubflowId(0);
const SENT: SendTime = SendTime(0);

/// A server with two paths.
fn server() -> Session {
    server_with(Config::new(Role::Server))
}

fn server_with(config: Config) -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut session = Session::new(config, cc, scheduler);
    for _ in 0..2 {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    }
    session
}

/// Bytes of the client's first flow, which take the sequence numbers of their offsets.
fn data(offset: u64, len: u32, fin: bool) -> Record {
    Record::Data(Data { flow: FLOW, seq: DataSeq(offset), offset, len, fin, copy: false, sent: SENT, deadline: None })
}

fn reset(seq: u64) -> Record {
    Record::Reset { flow: FLOW, seq: DataSeq(seq), code: 7, sent: SENT }
}

fn takes(session: &mut Session, now: Time, record: &Record) -> Received {
    session.on_record(now, PATH, record, false).expect("an honest peer breaks no rule")
}

/// Everything that leaves now.
fn sent(session: &mut Session, now: Time) -> Vec<Record> {
    std::iter::from_fn(|| session.poll_transmit(now)).map(|transmit| transmit.record).collect()
}

/// The last acknowledgement that leaves now.
fn ack(session: &mut Session, now: Time) -> Ack {
    let mut acks = sent(session, now).into_iter().filter_map(|record| match record {
        Record::Ack(ack) => Some(ack),
        _ => None,
    });
    acks.next_back().expect("an acknowledgement is owed")
}

fn stops(session: &mut Session, now: Time) -> usize {
    sent(session, now).iter().filter(|record| matches!(record, Record::Stop { flow: FLOW, code: 9 })).count()
}

fn events(session: &mut Session) -> Vec<SessionEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

/// The client has everything that the server sent.
fn acknowledge_all(session: &mut Session, now: Time) {
    while let Some(transmit) = session.poll_transmit(now) {
        if let Some(packet) = transmit.packet {
            session.on_acked(now, transmit.subflow, packet);
        }
    }
    let ack = Ack { left: session.queue().admitted(), window_end: session.queue().window_end(), ..Ack::default() };
    takes(session, now, &Record::Ack(ack));
}

/// All that came is acknowledged, and the window is where it would be had the application read it.
fn assert_all_dropped(session: &mut Session, now: Time, end: u64) {
    let Config { max_ack_delay, receive_window, .. } = Config::new(Role::Server);
    let now = now + max_ack_delay;
    session.on_timeout(now);
    let ack = ack(session, now);
    assert_eq!((ack.left, ack.window_end), (DataSeq(end), DataSeq(end) + receive_window.get()));
    assert_eq!(session.receive_buffered(), Bytes::ZERO);
}

#[test]
fn data_that_a_reset_overtook_is_acknowledged_and_dropped() {
    for answered in [false, true] {
        let (mut session, now) = (server(), Time::from_millis(1));
        takes(&mut session, now, &data(0, 1_000, false));
        takes(&mut session, now, &reset(3_000));
        assert_eq!(session.receive_buffered(), Bytes::ZERO);
        if answered {
            session.finish(FLOW).unwrap();
            acknowledge_all(&mut session, now);
            assert!(events(&mut session).contains(&SessionEvent::FlowClosed(FLOW)));
        }
        let later = Time::from_millis(200);
        for record in [data(2_000, 1_000, false), data(1_000, 1_000, false)] {
            assert_eq!(takes(&mut session, later, &record), Received::Nothing);
        }
        assert_all_dropped(&mut session, later, 3_001);
        if !answered {
            session.finish(FLOW).unwrap();
            acknowledge_all(&mut session, later);
            assert!(events(&mut session).contains(&SessionEvent::FlowClosed(FLOW)), "late data does not reopen it");
        }
        assert_eq!(session.open_flows(), 0);
    }
}

#[test]
fn a_reset_of_a_flow_that_has_closed_is_acknowledged_and_ignored() {
    let (mut session, now) = (server(), Time::from_millis(1));
    takes(&mut session, now, &data(0, 1_000, true));
    session.consume_all(now, FLOW);
    session.finish(FLOW).unwrap();
    acknowledge_all(&mut session, now);
    assert_eq!(session.open_flows(), 0);
    takes(&mut session, now, &reset(1_001));
    assert_all_dropped(&mut session, now, 1_002);
    assert_eq!(session.open_flows(), 0);
}

#[test]
fn a_flow_that_this_end_would_open_and_has_not_is_an_error() {
    for record in [
        Record::Reset { flow: FlowId(1), seq: DataSeq(0), code: 0, sent: SENT },
        Record::Stop { flow: FlowId(1), code: 0 },
        Record::FlowWindow { flow: FlowId(1), limit: 1 << 20 },
    ] {
        assert_eq!(server().on_record(Time::ZERO, PATH, &record, false), Err(ProtocolError::UnknownFlow));
    }
}

#[test]
fn what_was_not_read_of_a_stopped_flow_counts_towards_its_end() {
    let (mut session, now) = (server(), Time::from_millis(1));
    takes(&mut session, now, &data(0, 1_000, false));
    session.stop(now, FLOW, 9);
    assert_eq!(session.receive_buffered(), Bytes::ZERO);
    assert_eq!(stops(&mut session, now), 1);
    // It is lost: the client ends the flow in order.
    session.finish(FLOW).unwrap();
    acknowledge_all(&mut session, now);
    takes(&mut session, now, &data(1_000, 500, true));
    assert_all_dropped(&mut session, now, 1_501);
    assert!(events(&mut session).contains(&SessionEvent::FlowClosed(FLOW)));
    assert_eq!(session.open_flows(), 0);
}

#[test]
fn a_stop_is_repeated_while_the_peer_goes_on() {
    let (mut session, start) = (server(), Time::from_millis(1));
    takes(&mut session, start, &data(0, 1_000, false));
    session.stop(start, FLOW, 9);
    assert_eq!(stops(&mut session, start), 1);
    // A second of data, a packet a millisecond: what was under way is no reason for another at once.
    let mut repeated = 0;
    for number in 1..=1_000 {
        let now = start + Duration::from_millis(number);
        takes(&mut session, now, &data(number * 1_000, 1_000, false));
        repeated += stops(&mut session, now);
    }
    assert_eq!(repeated, 20, "one in 50 ms");
    // What has arrived before says nothing new; a writer that waits for the flow's window must hear it.
    let now = start + Duration::from_millis(2_000);
    takes(&mut session, now, &data(0, 1_000, false));
    assert_eq!(stops(&mut session, now), 0);
    takes(&mut session, now, &Record::Blocked { flow: Some(FLOW) });
    assert_eq!(stops(&mut session, now), 1);
    // The flow is over: nothing is left to stop.
    let now = start + Duration::from_millis(3_000);
    takes(&mut session, now, &reset(1_001_000));
    takes(&mut session, now, &Record::Blocked { flow: Some(FLOW) });
    let left = sent(&mut session, now);
    assert!(left.iter().all(|record| !matches!(record, Record::Stop { .. } | Record::FlowWindow { .. })), "{left:?}");
}

#[test]
fn a_writer_that_was_stopped_asks_for_no_window() {
    let mut config = Config::new(Role::Server);
    config.peer.flow_window = Bytes::new(1_000);
    let (mut session, now) = (server_with(config), Time::from_millis(1));
    takes(&mut session, now, &data(0, 1_000, false));
    assert_eq!(session.write(now, FLOW, 2_000).unwrap(), 1_000);
    takes(&mut session, now, &Record::Stop { flow: FLOW, code: 9 });
    acknowledge_all(&mut session, now);
    // Its other direction goes on.
    assert_eq!(session.open_flows(), 1);
    let asked = (1..100).flat_map(|step| {
        let now = now + Duration::from_millis(step * 100);
        session.on_timeout(now);
        sent(&mut session, now)
    });
    assert_eq!(asked.filter(|record| matches!(record, Record::Blocked { .. })).count(), 0);
}

/// The client opens the flow of this number, and both ends are done with it at once.
fn whole_flow(session: &mut Session, number: u32, seq: u64) -> Result<Received, ProtocolError> {
    let (flow, now) = (FlowId(number * 2), Time::from_millis(1));
    let data = Data { flow, seq: DataSeq(seq), offset: 0, len: 0, fin: true, copy: false, sent: SENT, deadline: None };
    let received = session.on_record(now, PATH, &Record::Data(data), false)?;
    session.consume_all(now, flow);
    session.finish(flow).unwrap();
    acknowledge_all(session, now);
    assert!(events(session).contains(&SessionEvent::FlowClosed(flow)));
    Ok(received)
}

#[test]
fn a_peer_that_leaves_out_ids_is_refused() {
    let mut session = server();
    let limit = Config::new(Role::Server).max_flows;
    let opened = (0..10 * limit).find(|number| match whole_flow(&mut session, number * 2, (*number).into()) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error, ProtocolError::TooManyFlows);
            true
        }
    });
    assert_eq!(opened, Some(3 * limit + 2));
}

#[test]
fn flows_that_are_over_in_any_order_are_no_gaps() {
    let mut session = server();
    let limit = Config::new(Role::Server).max_flows;
    // As many as may be open at once end last first, again and again; then every other one before the rest.
    let backwards = (0..8).flat_map(|round| (0..limit).rev().map(move |number| round * limit + number));
    let combed = (0..limit).step_by(2).chain((1..limit).step_by(2)).map(|number| 8 * limit + number);
    for (number, seq) in backwards.chain(combed).zip(0..) {
        whole_flow(&mut session, number, seq).unwrap();
    }
}
