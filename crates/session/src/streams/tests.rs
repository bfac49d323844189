use manypath_core::{AlgorithmSpec, Bytes, DataSeq, Duration};

use super::*;
use crate::record::{Ack, Data, Record};
use crate::{Carriage, Config, PathInit, Role, SessionEvent, Transmit};

/// Payload of a full packet.
const PAYLOAD: u64 = 1_000;
/// Packets of an initial window.
const WINDOW: usize = 10;

const FIRST: SubflowId = SubflowId(0);
const SECOND: SubflowId = SubflowId(1);

fn config(role: Role) -> Config {
    Config { carriage: Carriage::Streams, pace_windows: false, ..Config::new(role) }
}

/// A sender of this controller and `minrtt` with so many paths and a megabyte to send.
fn sender_of(controller: &str, paths: usize) -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named(controller), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut session = Session::new(config(Role::Client), cc, scheduler);
    let size = Bytes::new(PAYLOAD) + session.config.record_header;
    for _ in 0..paths {
        session.add_path(Time::ZERO, PathInit::new(size)).unwrap();
    }
    let flow = session.open_flow().unwrap();
    for _ in 0..20 {
        session.write(Time::ZERO, flow, 50 * PAYLOAD).unwrap();
    }
    session
}

/// One of `reno`, whose windows are full.
fn sender(paths: usize) -> (Session, Vec<Vec<Data>>, Vec<Vec<PacketNumber>>) {
    let mut session = sender_of("reno", paths);
    let (mut data, mut packets) = (vec![Vec::new(); paths], vec![Vec::new(); paths]);
    for transmit in sent(&mut session, Time::ZERO) {
        data[transmit.subflow.index()].push(payload(&transmit));
        packets[transmit.subflow.index()].push(transmit.packet.unwrap());
    }
    assert!(packets.iter().all(|packets| packets.len() == WINDOW));
    (session, data, packets)
}

/// The data packets that leave now.
fn sent(session: &mut Session, now: Time) -> Vec<Transmit> {
    std::iter::from_fn(|| session.poll_transmit(now)).filter(|transmit| transmit.packet.is_some()).collect()
}

/// Those of them on one path.
fn sent_on(session: &mut Session, now: Time, id: SubflowId) -> Vec<Transmit> {
    sent(session, now).into_iter().filter(|transmit| transmit.subflow == id).collect()
}

fn payload(transmit: &Transmit) -> Data {
    match transmit.record {
        Record::Data(data) => data,
        record => panic!("{record:?}"),
    }
}

fn packet_size(session: &Session) -> Bytes {
    Bytes::new(PAYLOAD) + session.config.record_header
}

#[test]
fn lost_data_leaves_again_on_its_path_before_anything_new() {
    let (mut session, data, packets) = sender(2);
    let (now, of) = (Time::from_millis(30), &packets[0]);
    for packet in &of[1..] {
        session.on_acked(now, FIRST, *packet);
    }
    session.on_recovery(now, FIRST, of[0]);
    session.on_lost(now, FIRST, of[0]);
    assert_eq!(session.view.subflows[0].queued, packet_size(&session), "it counts as queued");
    let again = sent(&mut session, now);
    assert!(again.iter().all(|transmit| transmit.subflow == FIRST), "the window of the other path is full");
    assert_eq!(again[0].repeats, Some(of[0]));
    let (first, repeated) = (data[0][0], payload(&again[0]));
    assert_eq!((repeated.seq, repeated.offset, repeated.len), (first.seq, first.offset, first.len));
    assert!(repeated.copy && !first.copy);
    assert!(again.len() > 1 && again[1..].iter().all(|transmit| transmit.repeats.is_none()), "then what is new");
    assert!(session.view.subflows[0].queued.is_zero());
}

#[test]
fn the_first_repetition_of_an_episode_leaves_whatever_the_window_says() {
    let (mut session, _, packets) = sender(1);
    let (now, of) = (Time::from_millis(30), &packets[0]);
    session.on_recovery(now, FIRST, of[0]);
    session.on_lost(now, FIRST, of[0]);
    session.on_lost(now, FIRST, of[1]);
    let view = &session.view.subflows[0];
    assert!(view.in_flight > view.cwnd, "eight packets, half a window of ten");
    let repeats = |transmits: Vec<Transmit>| transmits.iter().map(|again| again.repeats.unwrap()).collect::<Vec<_>>();
    assert_eq!(repeats(sent(&mut session, now)), [of[0]]);
    // The second waits for the window.
    for packet in &of[2..5] {
        session.on_acked(now, FIRST, *packet);
    }
    assert_eq!(sent(&mut session, now), []);
    for packet in &of[5..7] {
        session.on_acked(now, FIRST, *packet);
    }
    assert_eq!(repeats(sent(&mut session, now)), [of[1]]);
}

#[test]
fn a_mark_and_a_loss_of_one_round_trip_halve_the_window_once() {
    let (mut session, _, packets) = sender(1);
    let (now, of) = (Time::from_millis(30), &packets[0]);
    session.on_ecn(now, FIRST, of[0]);
    let halved = session.view.subflows[0].cwnd;
    assert_eq!(halved, packet_size(&session) * (WINDOW as u64 / 2));
    session.on_recovery(now, FIRST, of[1]);
    session.on_lost(now, FIRST, of[1]);
    assert_eq!(session.view.subflows[0].cwnd, halved);
    assert!(session.view.subflows[0].in_recovery);
}

#[test]
fn an_episode_lasts_until_the_carrier_ends_it() {
    let (mut session, _, packets) = sender(1);
    let (now, of) = (Time::from_millis(30), &packets[0]);
    session.on_recovery(now, FIRST, of[0]);
    session.on_lost(now, FIRST, of[0]);
    let halved = session.view.subflows[0].cwnd;
    assert_eq!(halved, packet_size(&session) * (WINDOW as u64 / 2));
    let again = sent(&mut session, now)[0].packet.unwrap();
    // Even what left in the episode does not end it, and does not open the window.
    let later = Time::from_millis(60);
    for packet in of[1..].iter().chain([&again]) {
        session.on_acked(later, FIRST, *packet);
    }
    assert!(session.view.subflows[0].in_recovery);
    assert_eq!(session.view.subflows[0].cwnd, halved);
    session.on_recovered(FIRST);
    assert!(!session.view.subflows[0].in_recovery);
    let new = sent(&mut session, later)[0].packet.unwrap();
    session.on_acked(Time::from_millis(90), FIRST, new);
    assert!(session.view.subflows[0].cwnd > halved);
}

#[test]
fn an_episode_that_sent_nothing_again_leaves_no_right_to_send_beyond_the_window() {
    let (mut session, _, packets) = sender(1);
    let (now, of) = (Time::from_millis(30), &packets[0]);
    // A probe repaired the loss (RFC 8985 s7.4.2).
    session.on_recovery(now, FIRST, of[0]);
    session.on_recovered(FIRST);
    session.on_lost(now, FIRST, of[0]);
    assert_eq!(sent(&mut session, now), [], "the window is halved and full");
}

#[test]
fn a_timeout_loses_all_and_starts_with_the_window_of_a_timeout() {
    let (mut session, data, packets) = sender(2);
    let now = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(now, FIRST, false, false);
    let (size, view) = (packet_size(&session), session.view.subflows[0].clone());
    assert_eq!((view.in_flight, view.queued, view.state), (Bytes::ZERO, size * WINDOW as u64, SubflowState::Active));
    // RFC 5681 s3.1: the loss window is one segment.
    assert_eq!(view.cwnd, size);
    let again = sent(&mut session, now);
    assert_eq!(again.iter().map(|again| again.repeats).collect::<Vec<_>>(), [Some(packets[0][0])]);
    // The other path has room: it is given nothing of what waits here.
    for packet in &packets[1] {
        session.on_acked(now, SECOND, *packet);
    }
    let waits = |seq: DataSeq| data[0].iter().any(|data| data.seq == seq);
    let others = sent_on(&mut session, now, SECOND);
    assert!(others.len() >= WINDOW && others.iter().all(|transmit| !waits(payload(transmit).seq)));
    // One acknowledgement later two leave (slow start), in the order in which they left first.
    session.on_acked(now + Duration::from_millis(30), FIRST, again[0].packet.unwrap());
    let again = sent_on(&mut session, now + Duration::from_millis(30), FIRST);
    assert_eq!(again.iter().map(|again| again.repeats).collect::<Vec<_>>(), [Some(packets[0][1]), Some(packets[0][2])]);
}

#[test]
fn after_a_timeout_a_paced_path_sends_one_packet_until_it_is_heard() {
    let mut session = sender_of("mpcc-latency", 1);
    let paced = |session: &mut Session, from: u64| {
        (0..100).flat_map(|ms| sent(session, Time::from_millis(from + ms))).collect::<Vec<_>>()
    };
    let first = paced(&mut session, 0);
    assert!(first.len() > 3, "{}", first.len());
    for (from, repeated) in [(1000, false), (1400, true)] {
        session.on_retransmission_timeout(Time::from_millis(from), FIRST, repeated, false);
        let again = paced(&mut session, from);
        assert_eq!(again.iter().map(|again| again.repeats).collect::<Vec<_>>(), [first[0].packet]);
        if repeated {
            session.on_acked(Time::from_millis(1530), FIRST, again[0].packet.unwrap());
        }
    }
    assert!(paced(&mut session, 1530).len() > 1);
}

#[test]
fn timeouts_in_a_row_hold_the_threshold_of_the_first() {
    let (mut session, _, _) = sender(1);
    let mut now = Time::from_secs_f64(1.0);
    let window = session.view.subflows[0].cwnd;
    for repeated in [false, true, true] {
        session.on_retransmission_timeout(now, FIRST, repeated, false);
        assert_eq!(sent(&mut session, now).len(), 1, "the loss window");
        now += Duration::from_millis(400);
    }
    // RFC 5681 s3.1: half of what the first one found, not of the window of one segment that the others did.
    assert_eq!(session.view.subflows[0].ssthresh, window / 2);
}

#[test]
fn a_timeout_in_a_recovery_holds_its_threshold() {
    let (mut session, _, packets) = sender(1);
    let now = Time::from_secs_f64(1.0);
    let window = session.view.subflows[0].cwnd;
    session.on_recovery(now, FIRST, packets[0][0]);
    session.on_lost(now, FIRST, packets[0][0]);
    session.on_retransmission_timeout(now + Duration::from_millis(400), FIRST, false, false);
    // Linux, tcp_enter_loss: the loss that it finds has been answered.
    assert_eq!(session.view.subflows[0].ssthresh, window / 2);
}

#[test]
fn after_a_timeout_others_may_carry_the_data_until_the_path_is_heard() {
    let (mut session, data, packets) = sender(2);
    let now = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(now, FIRST, false, true);
    assert_eq!(session.view.subflows[0].state, SubflowState::Failed);
    for packet in &packets[1][..5] {
        session.on_acked(now, SECOND, *packet);
    }
    let sent = sent(&mut session, now);
    let (here, there): (Vec<&Transmit>, Vec<&Transmit>) = sent.iter().partition(|transmit| transmit.subflow == FIRST);
    // Its own repetition leaves there as well, but nothing new.
    assert_eq!(here.iter().map(|transmit| transmit.repeats).collect::<Vec<_>>(), [Some(packets[0][0])]);
    let seqs = |data: &[Data]| data.iter().map(|data| data.seq).collect::<Vec<_>>();
    let carried: Vec<Data> = there.iter().map(|transmit| payload(transmit)).collect();
    let waiting = seqs(&data[0]);
    assert!(carried.len() >= 5);
    assert_eq!(seqs(&carried)[..carried.len().min(WINDOW)], waiting[..carried.len().min(WINDOW)]);
    assert!(there.iter().all(|transmit| transmit.repeats.is_none()), "new to that stream");
    // The path is heard: it takes part again, and what others have not taken stays with it.
    session.on_acked(now, FIRST, here[0].packet.unwrap());
    assert_eq!(session.view.subflows[0].state, SubflowState::Active);
    let restored = std::iter::from_fn(|| session.poll_event()).any(|event| event == SessionEvent::PathRestored(FIRST));
    assert!(restored && session.queue.lost().is_zero());
}

/// What had been given to the path but had not left when it timed out is not the stream's to deliver.
#[test]
fn what_never_left_stays_pending_when_the_path_is_heard_again() {
    let (mut session, data, packets) = sender(2);
    let now = Time::from_millis(30);
    session.set_carrier_ready(FIRST, false);
    for packet in &packets[0][..3] {
        session.on_acked(now, FIRST, *packet);
    }
    assert!(sent(&mut session, now).is_empty());
    let given = session.view.subflows[0].queued;
    assert!(given >= packet_size(&session) * 3, "{given:?}");
    session.on_retransmission_timeout(now, FIRST, false, true);
    session.on_acked_late(now, FIRST, packets[0][3]);
    assert_eq!(session.view.subflows[0].state, SubflowState::Active);
    session.set_carrier_ready(FIRST, true);
    for packet in &packets[1] {
        session.on_acked(now, SECOND, *packet);
    }
    let carried: Vec<DataSeq> = sent(&mut session, now).iter().map(|transmit| payload(transmit).seq).collect();
    let next = data.iter().flatten().map(|data| data.seq.0 + PAYLOAD).max().unwrap();
    for seq in [next, next + PAYLOAD, next + 2 * PAYLOAD] {
        assert!(carried.contains(&DataSeq(seq)), "{seq} is missing among {carried:?}");
    }
}

/// What arrived behind a gap is not in flight any more, but only the receiver's stream has it: others must carry that too,
/// or the connection stands still until the path is back.
#[test]
fn others_may_carry_what_waits_behind_a_gap_of_the_stream() {
    let (mut session, data, packets) = sender(2);
    let now = Time::from_millis(30);
    for packet in &packets[0][1..] {
        session.on_acked(now, FIRST, *packet);
    }
    session.on_recovery(now, FIRST, packets[0][0]);
    session.on_lost(now, FIRST, packets[0][0]);
    sent(&mut session, now);
    let later = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(later, FIRST, false, true);
    for packet in &packets[1] {
        session.on_acked(later, SECOND, *packet);
    }
    let carried: Vec<DataSeq> =
        sent_on(&mut session, later, SECOND).iter().map(|transmit| payload(transmit).seq).collect();
    for data in &data[0] {
        assert!(carried.contains(&data.seq), "{:?} is missing", data.seq);
    }
}

#[test]
fn the_only_path_never_fails() {
    let (mut session, _, packets) = sender(1);
    let now = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(now, FIRST, false, true);
    assert_eq!(session.view.subflows[0].state, SubflowState::Active);
    assert!(session.queue.lost().is_zero(), "nobody to offer it to");
    assert_eq!(sent(&mut session, now)[0].repeats, Some(packets[0][0]));
}

#[test]
fn what_arrived_after_all_does_not_leave_again() {
    let (mut session, _, packets) = sender(2);
    let now = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(now, FIRST, false, true);
    let delivered = session.view.subflows[0].delivered;
    for packet in &packets[0][..4] {
        session.on_acked_late(now, FIRST, *packet);
    }
    // Twice is once, and what never left is not known.
    session.on_acked_late(now, FIRST, packets[0][0]);
    session.on_acked_late(now, FIRST, PacketNumber(1_000_000));
    session.on_acked_late(now, SubflowId(9), packets[0][5]);
    let (size, view) = (packet_size(&session), &session.view.subflows[0]);
    assert_eq!(view.delivered - delivered, size * 4);
    assert_eq!(view.queued, size * (WINDOW as u64 - 4));
    assert_eq!(view.state, SubflowState::Active, "the path was heard");
    assert_eq!(sent_on(&mut session, now, FIRST)[0].repeats, Some(packets[0][4]));
}

#[test]
fn a_stream_needs_even_what_the_receiver_has_by_another_path() {
    let (mut session, data, packets) = sender(2);
    let now = Time::from_secs_f64(1.0);
    session.on_retransmission_timeout(now, FIRST, false, true);
    for packet in &packets[1] {
        session.on_acked(now, SECOND, *packet);
    }
    let here: Vec<_> = sent(&mut session, now).into_iter().filter(|transmit| transmit.subflow == FIRST).collect();
    // The peer has all of the first packet's data, and half of the second's.
    let (first, second) = (data[0][0], data[0][1]);
    assert_eq!(first.range().end, second.seq, "minrtt fills one window after the other");
    let ack = Ack { left: second.seq + PAYLOAD / 2, window_end: session.queue.window_end(), ..Ack::default() };
    session.on_record(now, SECOND, &Record::Ack(ack), false).unwrap();
    // The repetition of the first is lost once more.
    session.on_retransmission_timeout(now, FIRST, false, false);
    let again = sent_on(&mut session, now, FIRST);
    assert_eq!(again[0].repeats, here[0].repeats);
    assert_eq!(payload(&again[0]).seq, first.seq, "the stream still waits for it");
    session.on_acked(now, FIRST, again[0].packet.unwrap());
    let next = payload(&sent_on(&mut session, now, FIRST)[0]);
    assert_eq!((next.seq, next.offset, next.len), (second.seq, second.offset, second.len));
}

#[test]
fn unknown_paths_and_packets_change_nothing() {
    let (mut session, _, packets) = sender(1);
    let (now, before) = (Time::from_millis(30), session.view.subflows[0].clone());
    let nowhere = SubflowId(7);
    session.on_recovery(now, nowhere, packets[0][0]);
    session.on_recovered(nowhere);
    session.on_retransmission_timeout(now, nowhere, false, true);
    session.on_arrival(now, nowhere, SendTime(0), true);
    session.on_lost(now, nowhere, packets[0][0]);
    session.on_lost(now, FIRST, PacketNumber(1_000_000));
    assert_eq!(format!("{before:?}"), format!("{:?}", session.view.subflows[0]));
    assert_eq!(sent(&mut session, now), []);
}

#[test]
fn each_arrival_is_measured_once() {
    let cc = manypath_cc::create(&AlgorithmSpec::named("reno"), 1).unwrap();
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).unwrap();
    let mut receiver = Session::new(config(Role::Server), cc, scheduler);
    receiver.add_path(Time::ZERO, PathInit::new(Bytes::new(1_400))).unwrap();
    let mut report = None;
    // RFC 8382 s3.1: an interval is 350 ms, which 35 packets take.
    for number in 0..36_u32 {
        let now = Time::from_millis(u64::from(number) * 10);
        let (seq, sent) = (u64::from(number) * PAYLOAD, SendTime(number * 10_000));
        let data = Data {
            flow: FlowId(0),
            seq: DataSeq(seq),
            offset: seq,
            len: 1_000,
            fin: false,
            copy: false,
            sent,
            deadline: None,
        };
        receiver.on_arrival(now, FIRST, sent, false);
        receiver.on_record(now, FIRST, &Record::Data(data), false).unwrap();
        while let Some(transmit) = receiver.poll_transmit(now) {
            if let Record::PathReport(held) = transmit.record {
                report = Some(held);
            }
        }
    }
    let report = report.expect("an interval is over");
    assert_eq!((report.samples, report.least_us), (35, None));
}

#[test]
fn what_leaves_once_more_as_a_probe_is_the_same_data_and_changes_no_flight() {
    let (mut session, data, packets) = sender(1);
    let (now, last) = (Time::from_millis(60), *packets[0].last().unwrap());
    let (in_flight, sent) = (session.view.subflows[0].in_flight, session.totals().sent);
    let Some(Record::Data(again)) = session.repeat(now, FIRST, last) else { panic!("data") };
    let first = data[0][WINDOW - 1];
    assert_eq!((again.seq, again.offset, again.len, again.copy), (first.seq, first.offset, first.len, true));
    assert_eq!(again.sent.elapsed(now), Duration::ZERO);
    assert_eq!(session.view.subflows[0].in_flight, in_flight);
    assert_eq!((session.totals().sent, session.totals().retransmitted), (sent, Bytes::new(PAYLOAD)));
    // Nobody knows which of the two its acknowledgement is for (Karn).
    session.on_acked(Time::from_millis(80), FIRST, packets[0][0]);
    session.on_acked(Time::from_millis(300), FIRST, last);
    assert_eq!(session.view.subflows[0].latest_rtt, Duration::from_millis(80));
    assert_eq!(session.view.subflows[0].in_flight, in_flight - packet_size(&session) * 2);
    // What is resolved, and what is lost, has no probe.
    session.on_lost(Time::from_millis(300), FIRST, packets[0][1]);
    for packet in [last, packets[0][1], PacketNumber(99)] {
        assert_eq!(session.repeat(now, FIRST, packet), None);
    }
    assert_eq!(session.repeat(now, SECOND, last), None);
}
