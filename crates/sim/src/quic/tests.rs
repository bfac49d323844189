use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A sender with `count` packets in flight, which left at time zero.
fn flight(count: u64) -> Sender {
    let mut sender = Sender::new(ms(25));
    for packet in 0..count {
        assert_eq!({ sender.on_sent(Time::ZERO, Some(PacketNumber(packet))).number }, packet);
    }
    sender
}

/// What the sender makes of an acknowledgement of these ranges, the highest first.
fn acked(sender: &mut Sender, now: Time, numbers: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    told(sender, now, Duration::ZERO, 0, numbers)
}

/// The same with a delay at the receiver, and so many marks so far.
fn told(sender: &mut Sender, now: Time, delay: Duration, marked: u64, numbers: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    let mut ack = CarrierAck::blank();
    numbers.iter().for_each(|range| ack.numbers.push(*range));
    (ack.timing, ack.marked) = (delay.as_nanos(), marked);
    let mut fates = Vec::new();
    sender.on_ack(now, &ack, |packet, fate| fates.push((packet.0, fate)));
    fates
}

/// Whether a probe must leave, and what is lost.
fn timed_out(sender: &mut Sender, now: Time) -> (bool, Vec<(u64, Fate)>) {
    let mut fates = Vec::new();
    let probe = sender.on_timeout(now, |packet, fate| fates.push((packet.0, fate)));
    (probe, fates)
}

/// RFC 9002 s6.1.
#[test]
fn a_packet_is_lost_when_the_third_after_it_is_acknowledged_or_after_an_eighth_more_than_a_round_trip() {
    let mut sender = flight(8);
    assert_eq!(acked(&mut sender, at(16), &[(3, 4)]), [(3, Fate::Acked), (0, Fate::Lost)]);
    assert_eq!(sender.deadline(), at(18), "16 ms and an eighth");
    assert_eq!(timed_out(&mut sender, at(17)), (false, vec![]));
    assert_eq!(timed_out(&mut sender, at(18)), (false, vec![(1, Fate::Lost), (2, Fate::Lost)]));
    // The others have nobody after them.
    assert_eq!(sender.deadline(), Time::ZERO + sender.patience);
}

#[test]
fn where_a_packet_was_only_late_others_may_be_as_late() {
    let mut sender = flight(6);
    assert_eq!(acked(&mut sender, at(16), &[(4, 5)]), [(4, Fate::Acked), (0, Fate::Lost), (1, Fate::Lost)]);
    assert_eq!(acked(&mut sender, at(19), &[(4, 5), (0, 1)]), [], "nobody asks for it any more");
    for packet in 6..20 {
        sender.on_sent(at(100), Some(PacketNumber(packet)));
    }
    let lost = |packets: &[u64]| packets.iter().map(|packet| (*packet, Fate::Lost)).collect::<Vec<_>>();
    assert_eq!(acked(&mut sender, at(116), &[(19, 20)])[1..], lost(&[2, 3, 5]), "these are too late");
    assert_eq!(sender.deadline(), at(120), "16 ms and two eighths");
    assert_eq!(acked(&mut sender, at(119), &[(8, 20)]).len(), 11);
    assert_eq!(timed_out(&mut sender, at(120)), (false, lost(&[6, 7])));
}

#[test]
fn what_is_missing_for_two_probe_timeouts_is_expected_no_more() {
    let mut sender = flight(4);
    acked(&mut sender, at(16), &[(3, 4)]);
    assert_eq!(sender.missing.len(), 1);
    let patience = sender.probe_timeout();
    acked(&mut sender, Time::ZERO + patience * 2 - Duration::from_nanos(1), &[(3, 4)]);
    assert_eq!(sender.missing.len(), 1);
    acked(&mut sender, Time::ZERO + patience * 2, &[(0, 4)]);
    assert_eq!((sender.missing.len(), sender.lateness.packets()), (0, u64::MAX), "it is acknowledged all the same");
    acked(&mut sender, Time::ZERO + patience * 3, &[(3, 4)]);
}

#[test]
fn a_packet_may_be_late_by_a_millisecond_at_least() {
    let mut sender = flight(2);
    acked(&mut sender, Time::from_micros(100), &[(1, 2)]);
    assert_eq!(sender.deadline(), at(1));
}

#[test]
fn what_is_acknowledged_after_all_is_not_waited_for() {
    let mut sender = flight(2);
    acked(&mut sender, at(16), &[(1, 2)]);
    assert_eq!(sender.deadline(), at(18));
    assert_eq!(acked(&mut sender, at(17), &[(0, 2)]), [(0, Fate::Acked)]);
    assert_eq!(sender.deadline(), Time::MAX);
}

/// RFC 9002 s6.1.2: the latest round trip or the smoothed one, whichever is longer.
#[test]
fn the_longer_round_trip_decides_what_is_late() {
    for (second, longer) in [(32, ms(32)), (8, ms(15))] {
        let mut sender = flight(1);
        acked(&mut sender, at(16), &[(0, 1)]);
        sender.on_sent(at(100), Some(PacketNumber(1)));
        sender.on_sent(at(100), Some(PacketNumber(2)));
        acked(&mut sender, at(100 + second), &[(2, 3)]);
        assert_eq!(sender.deadline(), at(100) + longer * 9 / 8);
    }
}

/// RFC 9002 s5.3: the receiver's delay is taken off, as far as it may delay.
#[test]
fn a_delay_counts_up_to_the_one_agreed_on() {
    let mut sender = flight(1);
    acked(&mut sender, at(20), &[(0, 1)]);
    sender.on_sent(at(100), Some(PacketNumber(1)));
    told(&mut sender, at(160), ms(40), 0, &[(1, 2)]);
    assert_eq!(sender.rtt.srtt(), Some((ms(20) * 7 + ms(35)) / 8));
}

/// RFC 9002 s5.1.
#[test]
fn only_the_highest_packet_measures_a_round_trip() {
    let mut sender = flight(3);
    acked(&mut sender, at(20), &[(2, 3)]);
    // An acknowledgement that was overtaken.
    assert_eq!(acked(&mut sender, at(21), &[(0, 1)]), [(0, Fate::Acked)]);
    assert_eq!(sender.rtt.latest(), ms(20));
}

#[test]
fn a_mark_is_charged_to_the_highest_packet_once() {
    let mut sender = flight(4);
    let marked = |sender: &mut Sender, marked, end| told(sender, at(20), Duration::ZERO, marked, &[(0, end)]);
    assert_eq!(marked(&mut sender, 0, 1), [(0, Fate::Acked)]);
    assert_eq!(marked(&mut sender, 1, 3), [(2, Fate::Marked), (1, Fate::Acked), (2, Fate::Acked)]);
    assert_eq!(marked(&mut sender, 1, 4), [(3, Fate::Acked)]);
}

/// RFC 9002 s6.2.
#[test]
fn probes_leave_after_a_patience_that_doubles_until_something_is_heard() {
    let mut sender = Sender::new(ms(25));
    sender.on_handshake(ms(10));
    sender.on_sent(Time::ZERO, Some(PacketNumber(0)));
    let mut now = Time::ZERO;
    // The handshake's round trip, four of its half as its deviation, and the receiver's delay.
    for patience in [1, 2, 4, 8, 16, 32, 64, 64].map(|times| ms(10 + 20 + 25) * times) {
        assert_eq!(sender.deadline(), now + patience);
        assert_eq!(timed_out(&mut sender, now + patience - Duration::from_nanos(1)), (false, vec![]));
        now = sender.deadline();
        assert_eq!(timed_out(&mut sender, now), (true, vec![]));
        sender.on_sent(now, None);
    }
    // The session does not hear of probes, and counts on without them.
    assert_eq!(acked(&mut sender, now + ms(20), &[(8, 9)]), [(0, Fate::Lost)]);
    sender.on_sent(now + ms(30), Some(PacketNumber(1)));
    assert_eq!(sender.deadline(), now + ms(30 + 20 + 40 + 25));
    assert_eq!(acked(&mut sender, now + ms(50), &[(9, 10)]), [(1, Fate::Acked)]);
}

#[test]
fn the_patience_of_a_steady_path_has_a_millisecond_for_its_deviation() {
    let mut sender = Sender::new(ms(25));
    for packet in 0..100 {
        sender.on_sent(at(packet * 100), Some(PacketNumber(packet)));
        acked(&mut sender, at(packet * 100 + 20), &[(packet, packet + 1)]);
    }
    sender.on_sent(at(20_000), Some(PacketNumber(100)));
    assert_eq!(sender.deadline(), at(20_000 + 20 + 1 + 25));
}

fn arrives(receiver: &mut Receiver, now: u64, number: u64, unresolved: u32) -> bool {
    receiver.on_packet(at(now), Number { number, unresolved }, false)
}

/// The ranges of an acknowledgement, and the milliseconds for which its highest packet waited.
fn taken(receiver: &mut Receiver, now: u64) -> (Vec<(u64, u64)>, u64) {
    let mut ack = CarrierAck::blank();
    receiver.write_ack(at(now), &mut ack);
    (ack.numbers.as_slice().to_vec(), ack.timing / 1_000_000)
}

/// RFC 9000 s13.2.1.
#[test]
fn every_third_packet_is_acknowledged_and_one_alone_after_a_while() {
    let mut receiver = Receiver::new(3, ms(25));
    for (number, now) in [(0, 10), (1, 12)] {
        assert!(!arrives(&mut receiver, now, number, 0));
        assert_eq!(receiver.due(), at(35), "the first that waits decides");
    }
    assert!(arrives(&mut receiver, 13, 2, 0));
    assert_eq!(taken(&mut receiver, 20), (vec![(0, 3)], 7));
    assert_eq!(receiver.due(), Time::MAX);
    assert!(!arrives(&mut receiver, 30, 3, 0), "the count begins anew");
}

#[test]
fn a_gap_what_fills_it_and_a_mark_are_acknowledged_at_once() {
    let mut receiver = Receiver::new(9, ms(25));
    assert!(!arrives(&mut receiver, 1, 0, 0));
    assert!(arrives(&mut receiver, 10, 2, 2), "a gap");
    assert!(arrives(&mut receiver, 30, 1, 1), "what fills it");
    assert_eq!(taken(&mut receiver, 30), (vec![(0, 3)], 20), "it is the highest whose wait is told");
    assert!(receiver.on_packet(at(31), Number { number: 3, unresolved: 3 }, true), "a mark");
}

#[test]
fn what_the_sender_knows_of_is_listed_no_more() {
    let mut receiver = Receiver::new(2, ms(25));
    for (number, unresolved) in [(0, 0), (2, 2), (4, 4)] {
        arrives(&mut receiver, 1, number, unresolved);
    }
    assert_eq!(taken(&mut receiver, 1).0, [(4, 5), (2, 3), (0, 1)]);
    arrives(&mut receiver, 2, 6, 4);
    assert_eq!(taken(&mut receiver, 2).0, [(6, 7), (4, 5), (2, 3)]);
}
