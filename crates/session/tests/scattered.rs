//! Data that arrives in many pieces.

use manypath_core::{AlgorithmSpec, Bytes, DataSeq, FlowId, SubflowId, Time};
use manypath_session::record::{Data, Record, SendTime};
use manypath_session::{Carriage, Config, PathInit, Received, Role, Session};

/// A receiver with a window for all there is.
fn receiver(carriage: Carriage) -> (Session, SubflowId) {
    let create = |name| AlgorithmSpec::named(name);
    let cc = manypath_cc::create(&create("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&create("minrtt")).unwrap();
    let window = Bytes::new(64 << 20);
    let config = Config { carriage, receive_window: window, ..Config::new(Role::Server) };
    let mut session = Session::new(config, cc, scheduler);
    let id = session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    (session, id)
}

/// Gives it the piece of this number; says whether it keeps it.
fn keeps(session: &mut Session, id: SubflowId, number: u64) -> bool {
    let at = number * 100;
    let (flow, sent) = (FlowId(0), SendTime(0));
    let data = Data { flow, seq: DataSeq(at), offset: at, len: 100, fin: false, copy: false, sent, deadline: None };
    session.on_record(Time::ZERO, id, &Record::Data(data), false).unwrap() != Received::Nothing
}

const PIECES: u64 = 20_000;

#[test]
fn what_a_stream_has_delivered_is_kept_however_scattered() {
    let (mut session, id) = receiver(Carriage::Streams);
    // Two streams carry every other piece, and the one that has the first is held up.
    for number in (1..PIECES).step_by(2) {
        assert!(keeps(&mut session, id, number), "piece {number}: it never comes again");
    }
    for number in (0..PIECES).step_by(2) {
        assert!(keeps(&mut session, id, number));
    }
    assert_eq!(session.readable(FlowId(0)).end, PIECES * 100);
}

#[test]
fn datagrams_that_are_too_scattered_are_not_kept_and_come_again() {
    let (mut session, id) = receiver(Carriage::Datagrams);
    let kept = (1..PIECES).step_by(2).filter(|number| keeps(&mut session, id, *number)).count();
    assert!(kept < 9_000 && session.totals().dropped_records > 0, "{kept}");
    for number in 0..PIECES {
        keeps(&mut session, id, number);
    }
    assert_eq!(session.readable(FlowId(0)).end, PIECES * 100);
}
