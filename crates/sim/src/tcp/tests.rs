use manypath_core::{Bytes, FlowId};
use manypath_session::record::{Data, SendTime};

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn sender(recovery: Recovery) -> Sender {
    Sender::new(Config {
        recovery,
        min_rto: ms(200),
        max_ack_delay: ms(40),
        handshake_rtt: Duration::ZERO,
        reinject_after: 2,
    })
}

/// A sender with `count` segments in flight, which left at time zero in packets of the same numbers.
fn flight(recovery: Recovery, count: u64) -> Sender {
    let mut sender = sender(recovery);
    for packet in 0..count {
        assert_eq!({ sender.on_sent(Time::ZERO, PacketNumber(packet), None).number }, packet);
    }
    sender
}

/// What the sender makes of an acknowledgement of everything below `cumulative` and of blocks.
fn acked(sender: &mut Sender, now: Time, cumulative: u64, blocks: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    echoed(sender, now, 0, cumulative, blocks)
}

/// The same, with the time stamp of what left at so many milliseconds.
fn echoed(sender: &mut Sender, now: Time, left_at: u64, cumulative: u64, blocks: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    let mut ack = CarrierAck::blank();
    ack.timing = left_at * 1000;
    ack.numbers.push((0, cumulative));
    blocks.iter().for_each(|block| ack.numbers.push(*block));
    let mut fates = Vec::new();
    sender.on_ack(now, &ack, |packet, fate| fates.push((packet.0, fate)));
    fates
}

fn timed_out(sender: &mut Sender, now: Time) -> Vec<Fate> {
    let mut fates = Vec::new();
    sender.on_timeout(now, |_, fate| fates.push(fate));
    fates
}

#[test]
fn three_later_arrivals_lose_a_segment_and_begin_an_episode_once() {
    let mut sender = flight(Recovery::Sack, 10);
    assert_eq!(acked(&mut sender, at(20), 1, &[]), [(0, Fate::Acked)]);
    assert_eq!(acked(&mut sender, at(21), 1, &[(2, 3)]), [(2, Fate::Acked)]);
    assert_eq!(acked(&mut sender, at(22), 1, &[(2, 4)]), [(3, Fate::Acked)]);
    let fates = acked(&mut sender, at(23), 1, &[(5, 6), (2, 4)]);
    assert_eq!(fates, [(5, Fate::Acked), (1, Fate::BeginsRecovery), (1, Fate::Lost)]);
    // Segment 4 has three above it with 6 and 7: the same episode.
    assert_eq!(acked(&mut sender, at(24), 1, &[(5, 7), (2, 4)]), [(6, Fate::Acked)]);
    assert_eq!(acked(&mut sender, at(25), 1, &[(5, 8), (2, 4)]), [(7, Fate::Acked), (4, Fate::Lost)]);
    // Both leave again in packets 10 and 11, keep their numbers, and end the episode when all of the flight has arrived.
    assert_eq!({ sender.on_sent(at(26), PacketNumber(10), Some(PacketNumber(1))).number }, 1);
    assert_eq!({ sender.on_sent(at(26), PacketNumber(11), Some(PacketNumber(4))).number }, 4);
    assert_eq!(acked(&mut sender, at(46), 4, &[(5, 8)]), [(10, Fate::Acked)]);
    let fates = acked(&mut sender, at(47), 10, &[]);
    assert_eq!(fates, [(11, Fate::Acked), (8, Fate::Acked), (9, Fate::Acked), (0, Fate::Recovered)]);
    assert_eq!(sender.deadline(), Time::MAX);
}

#[test]
fn new_reno_loses_one_segment_a_round_trip() {
    let mut sender = flight(Recovery::NewReno, 8);
    assert_eq!(acked(&mut sender, at(20), 0, &[(2, 3)]), [(2, Fate::Acked)]);
    assert_eq!(acked(&mut sender, at(20), 0, &[(2, 4)]), [(3, Fate::Acked)]);
    let fates = acked(&mut sender, at(20), 0, &[(2, 5)]);
    assert_eq!(fates, [(4, Fate::Acked), (0, Fate::BeginsRecovery), (0, Fate::Lost)]);
    assert_eq!(acked(&mut sender, at(20), 0, &[(2, 8)]), [(5, Fate::Acked), (6, Fate::Acked), (7, Fate::Acked)]);
    sender.on_sent(at(20), PacketNumber(8), Some(PacketNumber(0)));
    // The partial acknowledgement tells of the second hole, which SACK knew of.
    assert_eq!(acked(&mut sender, at(40), 1, &[(2, 8)]), [(8, Fate::Acked), (1, Fate::Lost)]);
    sender.on_sent(at(40), PacketNumber(9), Some(PacketNumber(1)));
    assert_eq!(acked(&mut sender, at(60), 8, &[]), [(9, Fate::Acked), (0, Fate::Recovered)]);
}

#[test]
fn the_impatient_timer_starts_anew_on_the_first_partial_acknowledgement_only() {
    let mut sender = flight(Recovery::NewReno, 9);
    acked(&mut sender, at(20), 0, &[(3, 9)]);
    acked(&mut sender, at(20), 0, &[(3, 9)]);
    // Six arrivals, but each acknowledgement that brings something new counts once.
    assert_eq!(sender.phase, Phase::Open);
    let mut sender = flight(Recovery::NewReno, 9);
    for end in 4..7 {
        acked(&mut sender, at(20), 0, &[(3, end)]);
    }
    assert_eq!(sender.phase, Phase::Recovery);
    sender.on_sent(at(20), PacketNumber(9), Some(PacketNumber(0)));
    acked(&mut sender, at(40), 1, &[(3, 7)]);
    assert_eq!(sender.timer, at(40));
    acked(&mut sender, at(60), 2, &[(3, 7)]);
    assert_eq!(sender.timer, at(40));
}

#[test]
fn the_timeout_has_a_minimum_and_doubles() {
    let mut sender = flight(Recovery::Sack, 2);
    assert_eq!(sender.deadline(), at(1_000), "RFC 6298 s2.1");
    acked(&mut sender, at(20), 1, &[]);
    // srtt 20 ms, rttvar 10 ms: 60 ms, below the minimum. The timer started with the acknowledgement.
    assert_eq!(sender.deadline(), at(220));
    assert_eq!(timed_out(&mut sender, at(219)), []);
    assert_eq!(timed_out(&mut sender, at(220)), [Fate::TimedOut { repeated: false, lost: 1, reinject: false }]);
    sender.on_sent(at(220), PacketNumber(2), Some(PacketNumber(1)));
    assert_eq!(sender.deadline(), at(620), "doubled");
    assert_eq!(
        timed_out(&mut sender, at(620)),
        [Fate::TimedOut { repeated: true, lost: 1, reinject: true }],
        "the second in a row"
    );
    sender.on_sent(at(620), PacketNumber(3), Some(PacketNumber(1)));
    assert_eq!(sender.deadline(), at(1_420));
    // Heard again: no backoff, and the time stamp says which of the copies arrived.
    let fates = echoed(&mut sender, at(645), 620, 2, &[]);
    assert_eq!(fates, [(0, Fate::Measured(ms(25))), (3, Fate::Acked)]);
    sender.on_sent(at(650), PacketNumber(4), None);
    assert_eq!(sender.deadline(), at(850));
    assert_eq!(sender.rtt.latest(), ms(25));
}

#[test]
fn a_round_trip_that_grows_beyond_the_timeout_is_measured() {
    let mut sender = flight(Recovery::Sack, 2);
    acked(&mut sender, at(20), 1, &[]);
    assert_eq!(timed_out(&mut sender, at(220)).len(), 1);
    sender.on_sent(at(220), PacketNumber(2), Some(PacketNumber(1)));
    // What left at first had been on its way for half a second.
    let fates = echoed(&mut sender, at(500), 0, 2, &[]);
    assert_eq!(fates, [(0, Fate::Measured(ms(500))), (2, Fate::Acked)]);
    sender.on_sent(at(500), PacketNumber(3), None);
    assert!(sender.deadline() > at(1000), "{}", sender.deadline().as_secs_f64());
}

#[test]
fn the_receiver_echoes_the_first_of_what_it_acknowledges_and_nothing_out_of_order() {
    let mut receiver = receiver();
    let mut echo = |numbers: &[u64]| {
        for &number in numbers {
            receiver.on_packet(Time::ZERO, &packet(number), false);
        }
        taken(&mut receiver);
        let mut ack = CarrierAck::blank();
        receiver.write_ack(&mut ack);
        ack.timing
    };
    assert_eq!(echo(&[0, 1]), 0);
    assert_eq!(echo(&[3]), 0, "out of order");
    assert_eq!(echo(&[2]), 2, "fills the gap");
    assert_eq!(echo(&[4, 5]), 4, "the first of two");
}

#[test]
fn a_longer_minimum_is_kept() {
    let mut sender = Sender::new(Config {
        recovery: Recovery::Sack,
        min_rto: ms(1_000),
        max_ack_delay: ms(40),
        handshake_rtt: Duration::ZERO,
        reinject_after: 0,
    });
    sender.on_sent(Time::ZERO, PacketNumber(0), None);
    sender.on_sent(Time::ZERO, PacketNumber(1), None);
    acked(&mut sender, at(20), 1, &[]);
    assert_eq!(sender.deadline(), at(1_020));
    assert_eq!(
        timed_out(&mut sender, at(1_020)),
        [Fate::TimedOut { repeated: false, lost: 1, reinject: false }],
        "reinjection is off"
    );
}

#[test]
fn after_a_timeout_no_recovery_begins_before_all_of_it_is_acknowledged() {
    let mut sender = flight(Recovery::Sack, 6);
    acked(&mut sender, at(20), 1, &[(5, 6)]);
    assert_eq!(timed_out(&mut sender, at(300)), [Fate::TimedOut { repeated: false, lost: 4, reinject: false }]);
    sender.on_sent(at(300), PacketNumber(6), Some(PacketNumber(1)));
    // Segment 4 had only been late; it needs not leave again.
    assert_eq!(acked(&mut sender, at(310), 1, &[(4, 6)]), [(4, Fate::ArrivedAfterAll)]);
    let fates = echoed(&mut sender, at(320), 300, 2, &[(4, 6)]);
    assert_eq!(fates, [(0, Fate::Measured(ms(20))), (6, Fate::Acked)]);
    sender.on_sent(at(320), PacketNumber(7), Some(PacketNumber(2)));
    sender.on_sent(at(320), PacketNumber(8), Some(PacketNumber(3)));
    for packet in 9..13 {
        sender.on_sent(at(320), PacketNumber(packet), None);
    }
    // Segments 2 and 3 are lost again and three above have arrived: the timer's business.
    let fates = acked(&mut sender, at(340), 2, &[(7, 10), (4, 6)]);
    assert_eq!(fates, [(10, Fate::Acked), (11, Fate::Acked), (12, Fate::Acked)]);
    assert_eq!(timed_out(&mut sender, at(600)), [Fate::TimedOut { repeated: false, lost: 3, reinject: false }]);
    sender.on_sent(at(600), PacketNumber(13), Some(PacketNumber(2)));
    let fates = echoed(&mut sender, at(620), 600, 3, &[(7, 10)]);
    assert_eq!(fates, [(0, Fate::Measured(ms(20))), (13, Fate::Acked)]);
}

#[test]
fn a_mark_is_charged_to_a_segment_that_was_under_way() {
    let mut sender = flight(Recovery::Sack, 3);
    let mut marked = |numbers: &[(u64, u64)], marked: u32| {
        let mut ack = CarrierAck::blank();
        numbers.iter().for_each(|block| ack.numbers.push(*block));
        ack.marked = marked.into();
        let mut fates = Vec::new();
        sender.on_ack(at(20), &ack, |packet, fate| fates.push((packet.0, fate)));
        fates
    };
    assert_eq!(marked(&[(0, 1)], 0), [(0, Fate::Acked)]);
    // A duplicate that was marked: nothing that is under way is acknowledged, and the mark waits.
    assert_eq!(marked(&[(0, 1)], 1), []);
    assert_eq!(marked(&[(0, 2)], 1), [(1, Fate::Marked), (1, Fate::Acked)]);
    assert_eq!(marked(&[(0, 3)], 1), [(2, Fate::Acked)]);
}

#[test]
fn by_time_the_second_loss_of_a_segment_is_found_without_a_timeout() {
    let mut sender = flight(Recovery::Rack, 6);
    assert_eq!(acked(&mut sender, at(20), 1, &[]), [(0, Fate::Acked)]);
    let fates = acked(&mut sender, at(20), 1, &[(2, 5)]);
    let arrived = [(2, Fate::Acked), (3, Fate::Acked), (4, Fate::Acked)];
    // Three later ones have arrived a round trip after it left.
    assert_eq!(fates[..3], arrived);
    assert_eq!(fates[3..], [(1, Fate::BeginsRecovery), (1, Fate::Lost)]);
    sender.on_sent(at(21), PacketNumber(6), Some(PacketNumber(1)));
    sender.on_sent(at(22), PacketNumber(7), None);
    assert_eq!(acked(&mut sender, at(30), 1, &[(2, 6)]), [(5, Fate::Acked)], "it had left before");
    // A segment that left after the second try has arrived: that one is lost too, which is another episode.
    let fates = acked(&mut sender, at(42), 1, &[(6, 7), (2, 6)]);
    assert_eq!(fates, [(7, Fate::Acked), (6, Fate::BeginsRecovery), (6, Fate::Lost)]);
    assert_eq!({ sender.on_sent(at(43), PacketNumber(8), Some(PacketNumber(1))).number }, 1);
    let fates = acked(&mut sender, at(63), 7, &[]);
    assert_eq!(fates, [(8, Fate::Acked), (0, Fate::Recovered)]);
}

#[test]
fn by_time_a_segment_may_be_late_by_a_quarter_of_a_round_trip() {
    let mut sender = flight(Recovery::Rack, 2);
    acked(&mut sender, at(20), 2, &[]);
    sender.on_sent(at(100), PacketNumber(2), None);
    sender.on_sent(at(100), PacketNumber(3), None);
    assert_eq!(acked(&mut sender, at(120), 2, &[(3, 4)]), [(3, Fate::Acked)]);
    // 100 ms + 20 ms + 20 ms / 4.
    assert_eq!(sender.deadline(), at(125));
    let mut lost = Vec::new();
    sender.on_timeout(at(125), |packet, fate| lost.push((packet.0, fate)));
    assert_eq!(lost, [(2, Fate::BeginsRecovery), (2, Fate::Lost)]);
    // It arrives after all: from now on segments may be late even where three later ones have arrived.
    assert_eq!(acked(&mut sender, at(126), 4, &[]), [(2, Fate::ArrivedAfterAll), (0, Fate::Recovered)]);
    for packet in 4..8 {
        sender.on_sent(at(200), PacketNumber(packet), None);
    }
    let arrived = [(5, Fate::Acked), (6, Fate::Acked), (7, Fate::Acked)];
    assert_eq!(acked(&mut sender, at(220), 4, &[(5, 8)]), arrived);
    assert_eq!(sender.deadline(), at(225));
}

#[test]
fn by_time_the_loss_of_an_acknowledgement_is_no_reordering() {
    let mut sender = flight(Recovery::Rack, 9);
    acked(&mut sender, at(20), 1, &[]);
    // The acknowledgement that told of 2 and 3 first was lost.
    let fates = acked(&mut sender, at(22), 1, &[(5, 8), (2, 4)]);
    assert!(fates.contains(&(4, Fate::Lost)) && fates.contains(&(1, Fate::Lost)), "{fates:?}");
}

#[test]
fn a_mark_is_charged_to_one_packet() {
    let mut sender = flight(Recovery::Sack, 4);
    let mut ack = CarrierAck::blank();
    ack.numbers.push((0, 2));
    ack.marked = 1;
    let mut fates = Vec::new();
    sender.on_ack(at(20), &ack, |packet, fate| fates.push((packet.0, fate)));
    assert_eq!(fates, [(0, Fate::Marked), (0, Fate::Acked), (1, Fate::Acked)]);
}

fn packet(number: u64) -> DataPacket {
    let data = Data {
        flow: FlowId(0),
        seq: DataSeq(number * 1000),
        offset: number * 1000,
        len: 1000,
        fin: false,
        copy: false,
        sent: SendTime(u32::try_from(number).unwrap()),
        deadline: None,
    };
    DataPacket::new(Number { number, unresolved: 0 }, &data)
}

fn receiver() -> Receiver {
    Receiver::new(2, ms(40), u64::MAX)
}

fn taken(receiver: &mut Receiver) -> Vec<u64> {
    core::iter::from_fn(|| receiver.take()).map(|packet| packet.number.number).collect()
}

fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
    let mut ack = CarrierAck::blank();
    receiver.write_ack(&mut ack);
    ack.numbers.as_slice().to_vec()
}

#[test]
fn segments_are_given_on_in_order() {
    let mut receiver = receiver();
    assert!(!receiver.on_packet(at(0), &packet(0), false));
    assert_eq!(taken(&mut receiver), [0]);
    for number in [2, 4, 3] {
        assert!(receiver.on_packet(at(1), &packet(number), false), "out of order: at once");
        assert!(taken(&mut receiver).is_empty());
    }
    assert_eq!(receiver.held_bytes(), 3_000);
    assert!(receiver.on_packet(at(1), &packet(3), false), "a duplicate: at once");
    assert!(receiver.on_packet(at(2), &packet(1), false), "a gap is filled: at once");
    assert_eq!(taken(&mut receiver), [1, 2, 3, 4]);
    assert_eq!(receiver.held_bytes(), 0);
    assert!(receiver.on_packet(at(3), &packet(2), false), "a duplicate: at once");
    assert!(taken(&mut receiver).is_empty());
}

/// Segments carry 1000 bytes each.
#[test]
fn what_waits_behind_a_gap_is_bounded_and_what_fills_it_is_not() {
    let mut receiver = Receiver::new(2, ms(40), 2_000);
    for number in [1, 2] {
        assert!(receiver.has_memory_for(&packet(number)));
        receiver.on_packet(at(1), &packet(number), false);
    }
    assert!(!receiver.has_memory_for(&packet(3)) && receiver.has_memory_for(&packet(0)));
    receiver.on_packet(at(2), &packet(0), false);
    assert_eq!(taken(&mut receiver), [0, 1, 2]);
    assert!(receiver.has_memory_for(&packet(4)));
}

#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_after_a_while() {
    let mut receiver = receiver();
    assert!(!receiver.on_packet(at(5), &packet(0), false) && !receiver.is_complete());
    taken(&mut receiver);
    assert_eq!(receiver.due(), at(45));
    assert!(!receiver.on_packet(at(6), &packet(1), false) && receiver.is_complete());
    taken(&mut receiver);
    assert_eq!(blocks(&mut receiver), [(0, 2)]);
    assert_eq!(receiver.due(), Time::MAX);
    assert!(receiver.on_packet(at(7), &packet(2), true), "a mark: at once");
}

/// Linux `__tcp_ack_snd_check`: as long as the window that it can offer has not shrunk.
#[test]
fn a_receiver_bears_windows_as_large_as_the_last_one_offered() {
    let mut receiver = receiver();
    assert!(!receiver.bears(1_000), "nothing was offered yet");
    receiver.set_offered(1_000);
    assert!(receiver.bears(1_000) && !receiver.bears(999));
}

#[test]
fn the_block_that_changed_last_comes_first() {
    let mut receiver = receiver();
    for number in [2, 4, 5, 8] {
        receiver.on_packet(at(1), &packet(number), false);
    }
    assert_eq!(blocks(&mut receiver), [(0, 0), (8, 9), (4, 6)], "two blocks fit");
    receiver.on_packet(at(2), &packet(3), false);
    assert_eq!(blocks(&mut receiver), [(0, 0), (2, 6), (8, 9)]);
    for number in [0, 1] {
        receiver.on_packet(at(3), &packet(number), false);
    }
    assert_eq!(taken(&mut receiver), [0, 1, 2, 3, 4, 5]);
    assert_eq!(blocks(&mut receiver), [(0, 6), (8, 9)]);
    assert_eq!(Bytes::new(receiver.held_bytes()), Bytes::new(1_000));
}
