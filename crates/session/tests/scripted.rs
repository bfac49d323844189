//! What schedulers may do that others seldom do: data sent behind a gap, and copies for a path with smaller packets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use manypath_core::{AlgorithmSpec, Bytes, DataRange, DataSeq, Duration, SubflowId, Time, View};
use manypath_sched::{Choice, DataAck, Queue, Scheduler};
use manypath_session::record::{Ack, AckRanges, Data, Record};
use manypath_session::{Config, PathInit, ProtocolError, Role, Session, SessionEvent, Transmit};

const WIDE: SubflowId = SubflowId(0);
const NARROW: SubflowId = SubflowId(1);

/// Does what it is told, and then waits.
#[derive(Debug)]
struct Scripted(VecDeque<Choice>);

impl Scheduler for Scripted {
    fn pick(&mut self, _now: Time, _view: &View, _queue: &Queue) -> Choice {
        self.0.pop_front().unwrap_or(Choice::Wait)
    }

    fn reason(&self) -> &'static str {
        "it was told to"
    }
}

fn range(start: u64, end: u64) -> DataRange {
    DataRange::between(DataSeq(start), DataSeq(end))
}

fn send(subflow: SubflowId, range: DataRange) -> Choice {
    Choice::Send { subflow, range }
}

fn copy(subflow: SubflowId, range: DataRange) -> Choice {
    Choice::Duplicate { subflow, range, penalise: None }
}

/// A sender over a path of 1400 and one of 1000 bytes, with 10 kB to send.
fn sender(script: impl Into<VecDeque<Choice>>) -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let mut session = Session::new(Config::new(Role::Client), cc, Box::new(Scripted(script.into())));
    for size in [1_400, 1_000] {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(size))).unwrap();
    }
    let flow = session.open_flow().unwrap();
    assert_eq!(session.write(Time::ZERO, flow, 10_000).unwrap(), 10_000);
    session
}

/// The data packets that leave now.
fn sent(session: &mut Session, now: Time) -> Vec<(Transmit, Data)> {
    session.on_timeout(now);
    let all = std::iter::from_fn(|| session.poll_transmit(now));
    all.filter_map(|transmit| if let Record::Data(data) = transmit.record { Some((transmit, data)) } else { None })
        .collect()
}

fn acknowledge(session: &mut Session, left: u64, arrived: &[DataRange]) -> Result<(), ProtocolError> {
    let mut ranges = AckRanges::new();
    assert!(arrived.iter().all(|range| ranges.push(*range)));
    let ack = Ack { left: DataSeq(left), window_end: DataSeq(1 << 24), ranges };
    session.on_record(Time::from_millis(1), NARROW, &Record::Ack(ack), false).map(|_| ())
}

#[test]
fn nothing_is_acknowledged_beyond_a_gap_of_unsent_data() {
    let mut session = sender([send(WIDE, range(3_000, 4_000))]);
    assert_eq!(sent(&mut session, Time::ZERO).len(), 1);
    acknowledge(&mut session, 0, &[range(3_000, 4_000)]).unwrap();
    assert_eq!(acknowledge(&mut session, 3_500, &[]), Err(ProtocolError::AckOfUnsent));
}

#[test]
fn what_a_copy_did_not_bring_leaves_all_the_same() {
    // A gap holds the left edge, the wide path's carrier takes nothing, and the narrow path brings half of what waits there.
    let mut session =
        sender([send(NARROW, range(0, 900)), send(WIDE, range(900, 2_100)), copy(NARROW, range(900, 1_500))]);
    session.set_carrier_ready(WIDE, false);
    assert_eq!(sent(&mut session, Time::ZERO).len(), 2);
    acknowledge(&mut session, 0, &[range(900, 1_500)]).unwrap();
    session.set_carrier_ready(WIDE, true);
    let rest: Vec<_> = sent(&mut session, Time::from_millis(1)).iter().map(|(_, data)| data.range()).collect();
    assert_eq!(rest, [range(1_500, 2_100)]);
}

#[test]
fn copies_count_when_they_leave() {
    let mut session =
        sender([send(WIDE, range(0, 1_200)), copy(NARROW, range(0, 900)), copy(NARROW, range(900, 1_200))]);
    session.set_carrier_ready(NARROW, false);
    assert_eq!(sent(&mut session, Time::ZERO).len(), 1);
    assert_eq!(session.totals().duplicated, Bytes::ZERO);
    // The first is superfluous by the time that it could leave.
    acknowledge(&mut session, 900, &[]).unwrap();
    session.set_carrier_ready(NARROW, true);
    assert_eq!(sent(&mut session, Time::from_millis(1)).len(), 1);
    assert_eq!(session.totals().duplicated, Bytes::new(300));
}

#[test]
fn what_the_carrier_delivered_and_the_session_did_not_is_sent_again_to_its_end() {
    let mut session = sender([send(WIDE, range(0, 1_200)), copy(NARROW, range(0, 900))]);
    let packets = sent(&mut session, Time::ZERO);
    assert_eq!(packets.len(), 2);
    // The receiver's session dropped what the wide path's carrier acknowledges now.
    acknowledge(&mut session, 900, &[]).unwrap();
    session.on_acked(Time::from_millis(1), WIDE, packets[0].0.packet.unwrap());
    assert!(session.queue().lost_segment().is_none());
    session.on_timeout(Time::from_millis(10_000));
    assert_eq!(session.queue().lost_segment().map(|lost| lost.range), Some(range(900, 1_200)));
}

#[test]
fn what_a_smaller_window_does_not_let_leave_is_taken_back() {
    // The probe of a new path leaves in between.
    let mut script = vec![send(WIDE, range(0, 1_300)), Choice::Wait, Choice::Wait];
    script.extend((1..7).map(|number| send(WIDE, range(number * 1_300, (number + 1) * 1_300))));
    // After the loss: what was lost, and what was taken back.
    script.extend([Choice::Wait, send(WIDE, range(0, 1_300)), send(WIDE, range(7_800, 9_100))]);
    let mut session = sender(script);
    let first = sent(&mut session, Time::ZERO)[0].0.packet.unwrap();
    session.set_carrier_ready(WIDE, false);
    assert_eq!(sent(&mut session, Time::ZERO).len(), 0);
    let view = |session: &Session| session.view().subflows[WIDE.index()].clone();
    let queued = view(&session).queued;
    assert!(queued >= Bytes::new(6 * 1_300), "{queued:?}");
    session.on_lost(Time::from_millis(1), WIDE, first);
    assert!(view(&session).queued < queued && view(&session).queued <= view(&session).cwnd);
    // What was lost goes first, and the last of what was given is pending again.
    assert_eq!(session.queue().lost_segment().map(|lost| lost.range), Some(range(0, 1_300)));
    // What is sent then has been sent before only as far as it had left.
    session.set_carrier_ready(WIDE, true);
    for (transmit, _) in sent(&mut session, Time::from_millis(1)) {
        session.on_acked(Time::from_millis(2), WIDE, transmit.packet.unwrap());
    }
    sent(&mut session, Time::from_millis(2));
    let totals = session.totals();
    assert_eq!((totals.sent, totals.retransmitted), (Bytes::new(7 * 1_300), Bytes::new(1_300)));
}

#[test]
fn a_path_is_not_silent_for_what_is_known_to_be_lost() {
    let mut session = sender([send(WIDE, range(0, 1_300)), send(WIDE, range(1_300, 2_600))]);
    let packets = sent(&mut session, Time::ZERO);
    session.on_acked(Time::from_millis(50), WIDE, packets[1].0.packet.unwrap());
    session.on_lost(Time::from_millis(50), WIDE, packets[0].0.packet.unwrap());
    (50..900).for_each(|ms| drop(sent(&mut session, Time::from_millis(ms))));
    assert!(std::iter::from_fn(|| session.poll_event()).all(|event| !matches!(event, SessionEvent::PathFailed(_))));
}

/// Sends what comes next by the wide path, and notes how many segments acknowledgements are said to cover.
#[derive(Debug)]
struct Listens(Arc<Mutex<Vec<u32>>>);

impl Scheduler for Listens {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        let wide = &view.subflows[WIDE.index()];
        queue.head(wide.mss).filter(|_| wide.has_room()).map_or(Choice::Wait, |range| send(WIDE, range))
    }

    fn on_data_ack(&mut self, _now: Time, ack: &DataAck, _view: &View) {
        self.0.lock().unwrap().push(ack.segments_per_ack);
    }

    fn reason(&self) -> &'static str {
        "it listens"
    }
}

#[test]
fn an_acknowledgement_covers_what_comes_in_an_interval() {
    for (interval, covered) in [(0, 2), (1, 2), (5, 5), (10, 10)] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
        let config =
            Config { ack_interval: Duration::from_millis(interval), pace_windows: false, ..Config::new(Role::Client) };
        let mut session = Session::new(config, cc, Box::new(Listens(Arc::clone(&heard))));
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
        let flow = session.open_flow().unwrap();
        assert_eq!(session.write(Time::ZERO, flow, 50_000).unwrap(), 50_000);
        // Ten packets, the window, arrive in ten milliseconds.
        let arrived = Time::from_millis(10);
        let packets: Vec<_> = sent(&mut session, Time::ZERO).into_iter().filter_map(|(sent, _)| sent.packet).collect();
        assert_eq!(packets.len(), 10);
        packets.into_iter().for_each(|packet| session.on_acked(arrived, WIDE, packet));
        let ack = Ack { left: DataSeq(1_000), window_end: DataSeq(1 << 24), ranges: AckRanges::new() };
        session.on_record(arrived, WIDE, &Record::Ack(ack), false).unwrap();
        assert_eq!(*heard.lock().unwrap(), [covered], "{interval} ms");
    }
}
