//! Data that arrives in many pieces.

use manypath_core::{AlgorithmSpec, Bytes, DataRange, DataSeq, FlowId, SubflowId, Time};
use manypath_session::record::{Data, Record, SendTime};
use manypath_session::{Carriage, Config, PathInit, Received, Role, Session};

/// A receiver with a window for all there is.
fn receiver(carriage: Carriage) -> (Session, SubflowId) {
    let create = |name| AlgorithmSpec::named(name);
    let cc = manypath_cc::create(&create("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&create("minrtt")).unwrap();
    let window = Bytes::new(64 << 20);
    let config = Config { carriage, receive_window: window, max_flows: 1_000, ..Config::new(Role::Server) };
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

#[test]
fn what_makes_no_range_more_is_kept_however_scattered() {
    let (mut session, id) = receiver(Carriage::Datagrams);
    let scattered: Vec<u64> = (1..PIECES).step_by(2).filter(|number| keeps(&mut session, id, *number)).collect();
    let last = *scattered.last().unwrap();
    assert!(last < PIECES - 1 && !keeps(&mut session, id, last + 2), "a range more");
    assert!(keeps(&mut session, id, last + 1), "grows the last");
    assert!(keeps(&mut session, id, 10), "fills a hole");
    assert!(keeps(&mut session, id, last + 3), "in place of the one that went");
}

/// Memory comes in pages: a byte in each of them must not cost the page.
#[test]
fn pages_that_bytes_are_scattered_over_are_bounded_by_the_window() {
    const PAGE: u64 = 32 << 10;
    const FLOWS: u32 = 64;
    const WINDOW: u64 = 64 << 20;
    let (mut session, id) = receiver(Carriage::Datagrams);
    let mut seq = 0;
    // Numbers without gaps.
    let mut keeps = |session: &mut Session, flow: u32, offset, len| {
        let (flow, sent) = (FlowId(flow * 2), SendTime(0));
        let data = Data { flow, seq: DataSeq(seq), offset, len, fin: false, copy: false, sent, deadline: None };
        let kept = session.on_record(Time::ZERO, id, &Record::Data(data), false).unwrap() != Received::Nothing;
        seq += if kept { u64::from(len) } else { 0 };
        kept
    };
    // No flow begins at its beginning: nothing of it can be read.
    let all = (0..FLOWS).flat_map(|flow| (1..512).map(move |page| (flow, page)));
    let pages = all.filter(|(flow, page)| keeps(&mut session, *flow, page * PAGE, 1)).count() as u64;
    assert!(pages * PAGE <= WINDOW + u64::from(FLOWS) * PAGE, "{pages} pages");
    assert!(session.totals().dropped_records > 0);
    // What makes the first flow readable is taken still, and makes room for others once it is read.
    assert!(!keeps(&mut session, FLOWS - 1, 511 * PAGE, 1));
    for offset in (0..=PAGE).step_by(1_024) {
        assert!(keeps(&mut session, 0, offset, 1_024), "offset {offset}");
    }
    session.consume_all(Time::ZERO, FlowId(0));
    assert!(keeps(&mut session, FLOWS - 1, PAGE, 1));
}

/// The end of a flow may leave alone, when all data has, and overtake some of it.
#[test]
fn ends_that_overtake_data_take_no_room() {
    const LATE: u32 = 100_000;
    let (mut session, id) = receiver(Carriage::Datagrams);
    let mut seq = 0;
    let mut keeps = |session: &mut Session, flow: FlowId, offset, len, fin| {
        let data = Data { flow, seq: DataSeq(seq), offset, len, fin, copy: false, sent: SendTime(0), deadline: None };
        seq += u64::from(len) + u64::from(fin);
        session.on_record(Time::ZERO, id, &Record::Data(data), false).unwrap() != Received::Nothing
    };
    // Together a window and more.
    for flow in (0..1_000).map(|flow| FlowId(flow * 2)) {
        keeps(&mut session, flow, LATE.into(), 0, true);
        assert!(keeps(&mut session, flow, 0, LATE, false), "{flow:?}");
        session.consume_all(Time::ZERO, flow);
        while session.poll_event().is_some() || session.poll_transmit(Time::ZERO).is_some() {}
    }
    assert_eq!(session.totals().dropped_records, 0);
}

/// A RESET may lie beyond the window, which moves when what is missing has been read: so that is taken, whatever is spanned.
#[test]
fn what_can_be_read_is_taken_while_resets_are_late() {
    const FLOW_WINDOW: u64 = 16 << 20;
    let (mut session, id) = receiver(Carriage::Datagrams);
    let mut hears = |record| {
        let received = session.on_record(Time::ZERO, id, &record, false).unwrap();
        // It acknowledges, and says how far the window has moved.
        while session.poll_transmit(Time::ZERO).is_some() {}
        received != Received::Nothing
    };
    let sent = SendTime(0);
    let data = |flow, seq, offset, len| {
        Record::Data(Data { flow, seq: DataSeq(seq), offset, len, fin: false, copy: false, sent, deadline: None })
    };
    // Of four flows all is given up but the last byte that had left. Together they span the window.
    for flow in 0..4 {
        let start = u64::from(flow) * FLOW_WINDOW;
        hears(Record::Skip { range: DataRange::new(DataSeq(start), FLOW_WINDOW - 1), sent });
        assert!(hears(data(FlowId(flow * 2), start + FLOW_WINDOW - 1, FLOW_WINDOW - 1, 1)));
    }
    let next = 4 * FLOW_WINDOW;
    assert!(!hears(data(FlowId(8), next + 1_000, 1_000, 1_000)), "it could not be read");
    assert!(hears(data(FlowId(8), next, 0, 1_000)));
    assert!(hears(data(FlowId(8), next + 1_000, 1_000, 1_000)));
}
