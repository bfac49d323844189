use manypath_core::{Bytes, DataSeq, FlowId};
use manypath_session::record::{Data, SendTime};

use super::*;
use crate::packet::DataPacket;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn sender(recovery: Recovery) -> Sender {
    Sender::new(Config { recovery, min_rto: ms(200), max_ack_delay: ms(40), reinject_after: 2 })
}

/// A sender with `count` segments in flight, which left at time zero in packets of the same numbers.
fn flight(recovery: Recovery, count: u64) -> Sender {
    let mut sender = sender(recovery);
    for packet in 0..count {
        assert_eq!({ sender.on_sent(Time::ZERO, PacketNumber(packet), None).number }, packet);
    }
    sender
}

/// What the sender makes of an acknowledgement of everything below `cumulative` and of blocks, but for round trips.
fn acked(sender: &mut Sender, now: Time, cumulative: u64, blocks: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    let mut fates = echoed(sender, now, 0, cumulative, blocks);
    fates.retain(|(_, fate)| !matches!(fate, Fate::Measured(_)));
    fates
}

/// All that it makes of it, with the time stamp of what left at so many milliseconds.
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
    for _ in 0..3 {
        acked(&mut sender, at(20), 0, &[(3, 9)]);
    }
    // Six arrivals, but each acknowledgement that brings something new counts once.
    assert_eq!(sender.phase, Phase::Open);
    let mut sender = flight(Recovery::NewReno, 9);
    for end in 4..7 {
        acked(&mut sender, at(20), 0, &[(3, end)]);
    }
    assert_eq!(sender.phase, Phase::Recovery);
    sender.on_sent(at(20), PacketNumber(9), Some(PacketNumber(0)));
    assert_eq!(sender.timer, Time::ZERO, "what is sent again does not start it anew");
    acked(&mut sender, at(40), 1, &[(3, 7)]);
    assert_eq!(sender.timer, at(40));
    sender.on_sent(at(45), PacketNumber(10), Some(PacketNumber(1)));
    acked(&mut sender, at(60), 2, &[(3, 7)]);
    sender.on_sent(at(65), PacketNumber(11), Some(PacketNumber(2)));
    assert_eq!(sender.timer, at(40));
    acked(&mut sender, at(80), 9, &[]);
    assert_eq!((sender.phase, sender.timer), (Phase::Open, at(80)), "the episode is over");
    // The next episode has a first partial acknowledgement of its own.
    for packet in 12..18 {
        sender.on_sent(at(80), PacketNumber(packet), None);
    }
    for end in 12..15 {
        acked(&mut sender, at(100), 9, &[(11, end)]);
    }
    sender.on_sent(at(100), PacketNumber(18), Some(PacketNumber(12)));
    acked(&mut sender, at(120), 10, &[(11, 14)]);
    assert_eq!((sender.phase, sender.timer), (Phase::Recovery, at(120)));
}

#[test]
fn the_steady_timer_starts_anew_on_each_partial_acknowledgement() {
    let mut sender = flight(Recovery::NewRenoSteady, 9);
    for end in 4..7 {
        acked(&mut sender, at(20), 0, &[(3, end)]);
    }
    for (now, cumulative) in [(at(40), 1), (at(60), 2)] {
        sender.on_sent(now - ms(20), PacketNumber(8 + cumulative), Some(PacketNumber(cumulative - 1)));
        let fates = acked(&mut sender, now, cumulative, &[(3, 7)]);
        assert_eq!((sender.phase, sender.timer), (Phase::Recovery, now));
        // As with the other, one segment is lost at a time.
        assert_eq!(fates.last(), Some(&(cumulative, Fate::Lost)));
    }
}

#[test]
fn a_head_that_is_lost_again_after_a_timeout_is_found_by_duplicate_acknowledgements() {
    let mut sender = flight(Recovery::NewReno, 4);
    acked(&mut sender, at(20), 1, &[]);
    timed_out(&mut sender, at(300));
    for packet in 4..8 {
        let repeats = (packet < 7).then(|| PacketNumber(packet - 3));
        sender.on_sent(at(300), PacketNumber(packet), repeats);
    }
    for end in 3..5 {
        assert_eq!(acked(&mut sender, at(320), 1, &[(2, end)]).len(), 1);
    }
    let fates = acked(&mut sender, at(320), 1, &[(2, 5)]);
    assert_eq!(fates[1..], [(4, Fate::BeginsRecovery), (4, Fate::Lost)]);
    assert_eq!(sender.phase, Phase::Recovery);
}

#[test]
fn any_other_timer_starts_anew_with_each_acknowledgement_that_advances() {
    let mut sender = flight(Recovery::Sack, 9);
    acked(&mut sender, at(20), 0, &[(4, 7)]);
    assert_eq!(sender.phase, Phase::Recovery);
    for (now, cumulative) in [(at(40), 1), (at(60), 2)] {
        acked(&mut sender, now, cumulative, &[(4, 7)]);
        assert_eq!((sender.phase, sender.timer), (Phase::Recovery, now));
    }
    // NewReno's is impatient in a recovery, and not after a timeout.
    let mut sender = flight(Recovery::NewReno, 9);
    assert_eq!(timed_out(&mut sender, at(1_000)).len(), 1);
    for (now, cumulative) in [(at(1_020), 1), (at(1_040), 2)] {
        acked(&mut sender, now, cumulative, &[]);
        assert_eq!((sender.phase, sender.timer), (Phase::TimedOut, now));
    }
}

#[test]
fn duplicate_acknowledgements_count_in_a_row() {
    let mut sender = flight(Recovery::NewReno, 9);
    acked(&mut sender, at(20), 0, &[(3, 4)]);
    acked(&mut sender, at(20), 0, &[(3, 5)]);
    acked(&mut sender, at(21), 1, &[(3, 5)]);
    assert_eq!(acked(&mut sender, at(22), 1, &[(3, 6)]), [(5, Fate::Acked)]);
}

/// The segment just below the next one had arrived out of order: that makes two that are above it no third one.
#[test]
fn arrivals_below_the_cumulative_acknowledgement_are_none_above_it() {
    for recovery in [Recovery::Sack, Recovery::Rack] {
        let mut sender = flight(recovery, 5);
        acked(&mut sender, at(20), 0, &[(1, 5)]);
        sender.on_sent(at(21), PacketNumber(5), Some(PacketNumber(0)));
        acked(&mut sender, at(41), 5, &[]);
        for packet in 6..10 {
            sender.on_sent(at(50), PacketNumber(packet), None);
        }
        let arrived = [(7, Fate::Acked), (8, Fate::Acked)];
        assert_eq!(acked(&mut sender, at(70), 5, &[(6, 8)]), arrived, "{recovery:?}");
        // Nor is a repaired loss reordering (RFC 8985 s6.2 step 3), after which the third would not do.
        let fates = acked(&mut sender, at(71), 5, &[(6, 9)]);
        assert_eq!(fates, [(9, Fate::Acked), (6, Fate::BeginsRecovery), (6, Fate::Lost)], "{recovery:?}");
    }
}

#[test]
fn an_episode_ends_with_the_last_of_its_flight_and_a_timeout_with_all_that_was_lost() {
    let mut sender = flight(Recovery::Sack, 6);
    acked(&mut sender, at(20), 0, &[(1, 4)]);
    sender.on_sent(at(20), PacketNumber(6), Some(PacketNumber(0)));
    assert_eq!(acked(&mut sender, at(40), 5, &[]), [(6, Fate::Acked), (4, Fate::Acked)], "one is missing");
    assert_eq!(acked(&mut sender, at(41), 6, &[]), [(5, Fate::Acked), (0, Fate::Recovered)]);
    let mut sender = flight(Recovery::Sack, 2);
    assert_eq!(timed_out(&mut sender, at(1_000)).len(), 1);
    sender.on_sent(at(1_000), PacketNumber(2), Some(PacketNumber(0)));
    sender.on_sent(at(1_000), PacketNumber(3), Some(PacketNumber(1)));
    acked(&mut sender, at(1_020), 2, &[]);
    for packet in 4..8 {
        sender.on_sent(at(1_020), PacketNumber(packet), None);
    }
    let fates = acked(&mut sender, at(1_040), 2, &[(3, 6)]);
    assert_eq!(fates[3..], [(4, Fate::BeginsRecovery), (4, Fate::Lost)]);
}

#[test]
fn the_timeout_has_a_minimum_and_doubles() {
    let mut sender = flight(Recovery::Sack, 2);
    assert_eq!(sender.deadline(), at(200));
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
            taken(&mut receiver);
        }
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
fn what_leaves_later_does_not_put_off_the_timeout() {
    let mut sender = flight(Recovery::Sack, 1);
    sender.on_sent(at(100), PacketNumber(1), None);
    assert_eq!(sender.deadline(), at(200));
}

#[test]
fn before_the_first_round_trip_the_timeout_is_three_of_the_handshake_s() {
    for (recovery, handshake, expected) in [
        (Recovery::Sack, 600, 1_800),
        (Recovery::Rack, 100, 300),
        (Recovery::Rack, 20, 220),
        (Recovery::Sack, 20, 200),
        (Recovery::NewReno, 600, 1_800),
        (Recovery::NewReno, 100, 1_000),
        (Recovery::NewRenoSteady, 20, 1_000),
    ] {
        let mut sender = sender(recovery);
        sender.on_handshake(ms(handshake));
        sender.on_sent(Time::ZERO, PacketNumber(0), None);
        assert_eq!(sender.timer + sender.timeout(), at(expected), "{recovery:?} after {handshake} ms");
    }
}

/// The granularity of RFC 6298 s2.3: after as many equal round trips nothing is left of the first one's deviation.
#[test]
fn the_timeout_leaves_the_receiver_time_to_delay_an_acknowledgement() {
    let mut sender = Sender::new(Config { min_rto: ms(1), ..sender(Recovery::Sack).config });
    for packet in 0..100 {
        sender.on_sent(at(packet * 100), PacketNumber(packet), None);
        acked(&mut sender, at(packet * 100 + 20), packet + 1, &[]);
    }
    sender.on_sent(at(20_000), PacketNumber(100), None);
    assert_eq!(sender.deadline(), at(20_060));
}

#[test]
fn the_last_of_what_an_acknowledgement_covers_measures_the_round_trip() {
    let mut sender = flight(Recovery::Sack, 1);
    sender.on_sent(at(15), PacketNumber(1), None);
    acked(&mut sender, at(40), 2, &[]);
    assert_eq!(sender.rtt.latest(), ms(25));
}

/// RFC 6298 s2.5 allows for a bound of a minute.
#[test]
fn the_backoff_ends_at_a_minute_or_at_a_longer_minimum() {
    let doubled = (0..9).map(|times| 200 << times).chain([60_000, 60_000]);
    for (min_rto, expected) in [(200, doubled.collect()), (90_000, vec![90_000, 90_000])] {
        let mut sender = Sender::new(Config { min_rto: ms(min_rto), ..sender(Recovery::Sack).config });
        sender.on_sent(Time::ZERO, PacketNumber(0), None);
        sender.on_sent(Time::ZERO, PacketNumber(1), None);
        let mut now = at(20);
        acked(&mut sender, now, 1, &[]);
        // Nothing leaves in between: the timer starts anew by itself.
        for (count, patience) in expected.into_iter().enumerate() {
            assert_eq!(sender.deadline(), now + ms(patience), "{count} timeouts");
            now = sender.deadline();
            let reinject = count >= 1;
            let lost = u32::from(count == 0);
            assert_eq!(timed_out(&mut sender, now), [Fate::TimedOut { repeated: count > 0, lost, reinject }]);
        }
    }
}

#[test]
fn a_longer_minimum_is_kept() {
    let mut sender =
        Sender::new(Config { recovery: Recovery::Sack, min_rto: ms(1_000), max_ack_delay: ms(40), reinject_after: 0 });
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

/// RFC 7323 s4: what left twice is measured by its time stamp, unless something else is acknowledged that left once.
#[test]
fn what_left_twice_measures_a_round_trip_by_its_time_stamp() {
    let mut sender = flight(Recovery::Sack, 6);
    acked(&mut sender, at(20), 0, &[(1, 5)]);
    sender.on_sent(at(20), PacketNumber(6), Some(PacketNumber(0)));
    assert_eq!(echoed(&mut sender, at(70), 20, 5, &[]), [(0, Fate::Measured(ms(50))), (6, Fate::Acked)]);
    assert_eq!(sender.rtt.srtt(), Some(ms(20) * 7 / 8 + ms(50) / 8));
    let mut sender = flight(Recovery::Sack, 6);
    acked(&mut sender, at(20), 0, &[(1, 5)]);
    sender.on_sent(at(20), PacketNumber(6), Some(PacketNumber(0)));
    let fates = echoed(&mut sender, at(70), 20, 6, &[]);
    assert_eq!(fates, [(6, Fate::Acked), (5, Fate::Acked), (0, Fate::Recovered)]);
}

/// Karn's algorithm; RFC 6298 s5: a new measurement ends the backoff.
#[test]
fn without_time_stamps_what_left_twice_measures_nothing_and_the_timeout_stays_doubled() {
    let mut sender = flight(Recovery::NewReno, 2);
    assert_eq!(echoed(&mut sender, at(20), 0, 1, &[]), [(0, Fate::Acked)]);
    timed_out(&mut sender, at(220));
    sender.on_sent(at(220), PacketNumber(2), Some(PacketNumber(1)));
    assert_eq!(sender.deadline(), at(620));
    assert_eq!(echoed(&mut sender, at(240), 220, 2, &[]), [(2, Fate::Acked)]);
    assert_eq!(sender.rtt.srtt(), Some(ms(20)));
    sender.on_sent(at(240), PacketNumber(3), None);
    assert_eq!(sender.deadline(), at(640));
    assert_eq!(timed_out(&mut sender, at(640)), [Fate::TimedOut { repeated: false, lost: 1, reinject: false }]);
    sender.on_sent(at(640), PacketNumber(4), Some(PacketNumber(3)));
    sender.on_sent(at(640), PacketNumber(5), None);
    assert_eq!(echoed(&mut sender, at(660), 640, 4, &[]), [(4, Fate::Acked), (5, Fate::Acked)]);
    sender.on_sent(at(660), PacketNumber(6), None);
    assert_eq!(sender.deadline(), at(860));
}

/// RFC 6675 s5: what is known of losses is kept when an episode ends, and the next one begins at once.
#[test]
fn what_left_in_an_episode_and_is_lost_begins_the_next_when_it_ends() {
    for recovery in [Recovery::Sack, Recovery::Rack] {
        for again in [false, true] {
            let mut sender = flight(recovery, 5);
            let fates = acked(&mut sender, at(20), 0, &[(1, 5)]);
            assert_eq!(fates[4..], [(0, Fate::BeginsRecovery), (0, Fate::Lost)]);
            for packet in 5..9 {
                sender.on_sent(at(20), PacketNumber(packet), None);
            }
            sender.on_sent(at(21), PacketNumber(9), Some(PacketNumber(0)));
            let fates = acked(&mut sender, at(40), 0, &[(6, 9), (1, 5)]);
            assert_eq!(fates[3..], [(5, Fate::Lost)], "the episode is that of its window");
            if again {
                sender.on_sent(at(40), PacketNumber(10), Some(PacketNumber(5)));
            }
            let last = if again { 10 } else { 5 };
            let fates = acked(&mut sender, at(41), 5, &[(6, 9)]);
            assert_eq!(fates, [(9, Fate::Acked), (0, Fate::Recovered), (last, Fate::BeginsRecovery)]);
            if !again {
                sender.on_sent(at(41), PacketNumber(10), Some(PacketNumber(5)));
            }
            let fates = acked(&mut sender, at(61), 9, &[]);
            assert_eq!(fates, [(10, Fate::Acked), (0, Fate::Recovered)], "once");
        }
    }
}

/// And so after a timeout.
#[test]
fn what_left_after_a_timeout_and_is_lost_begins_an_episode_when_the_rest_has_arrived() {
    let mut sender = flight(Recovery::Rack, 2);
    assert_eq!(timed_out(&mut sender, at(1_000)).len(), 1);
    for again in 0..2 {
        sender.on_sent(at(1_000), PacketNumber(2 + again), Some(PacketNumber(again)));
    }
    sender.on_sent(at(1_001), PacketNumber(4), None);
    sender.on_sent(at(1_002), PacketNumber(5), None);
    let fates = acked(&mut sender, at(1_022), 0, &[(3, 4)]);
    assert_eq!(fates[1..], [(2, Fate::Lost), (3, Fate::Lost), (4, Fate::Lost)]);
    for again in 0..2 {
        sender.on_sent(at(1_022), PacketNumber(6 + again), Some(PacketNumber(again)));
    }
    let fates = acked(&mut sender, at(1_042), 2, &[(3, 4)]);
    assert_eq!(fates, [(6, Fate::Acked), (7, Fate::Acked), (4, Fate::BeginsRecovery)]);
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
    // At the very moment that its loss is known, as in a simulation.
    sender.on_sent(at(20), PacketNumber(6), Some(PacketNumber(1)));
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

/// A flight of four from `base` on, of which the first is overtaken, counts as lost after `patience`, leaves again, and comes: the
/// first copy, or the second. Round trips take 20 ms.
fn overtaken(sender: &mut Sender, base: u64, patience: u64, first_copy: bool) {
    let (left, packet) = (base * 100, PacketNumber(base * 2));
    for ahead in 0..4 {
        sender.on_sent(at(left), PacketNumber(packet.0 + ahead), None);
    }
    let fates = acked(sender, at(left + 20), base, &[(base + 1, base + 4)]);
    assert_eq!(fates.iter().filter(|(_, fate)| *fate == Fate::Acked).count(), 3, "{fates:?}");
    assert_eq!(sender.deadline(), at(left + 20 + patience), "of segment {base}");
    assert_eq!(timed_out(sender, at(left + 20 + patience)), [Fate::BeginsRecovery, Fate::Lost]);
    let again = left + 25 + patience;
    sender.on_sent(at(again), PacketNumber(packet.0 + 4), Some(packet));
    echoed(sender, at(again + 20), if first_copy { left } else { again }, base + 4, &[]);
}

/// A sender that has measured 20 ms, and has seen a segment come after a later one if `reordered`.
fn of_twenty_ms(reordered: bool) -> Sender {
    let mut sender = flight(Recovery::Rack, 4);
    acked(&mut sender, at(20), 0, if reordered { &[(1, 2)] } else { &[] });
    acked(&mut sender, at(20), 4, &[]);
    sender
}

/// RFC 8985 s6.2 step 4.
#[test]
fn by_time_a_segment_may_be_the_later_the_more_were_sent_again_too_soon() {
    let mut sender = of_twenty_ms(true);
    overtaken(&mut sender, 4, 5, true);
    // What had been lost teaches nothing, and a row of sixteen recoveries, of which that was the first, makes up for it.
    for turn in 2..=16 {
        overtaken(&mut sender, 4 * turn, 10, false);
    }
    overtaken(&mut sender, 68, 5, true);
    overtaken(&mut sender, 72, 10, true);
    overtaken(&mut sender, 76, 15, false);
    // Never for longer than a round trip.
    sender.rack.hasty = 1_000;
    let srtt = sender.rtt.srtt().unwrap();
    assert_eq!(sender.rack.tolerance(true, &sender.rtt), srtt);
}

#[test]
fn by_time_what_a_timeout_repeated_says_nothing_of_the_order() {
    for (reordered, hasty) in [(false, 0), (true, 1)] {
        let mut sender = of_twenty_ms(reordered);
        for packet in 4..8 {
            sender.on_sent(at(100), PacketNumber(packet), None);
        }
        probed(&mut sender, at(142));
        let deadline = sender.deadline();
        timed_out(&mut sender, deadline);
        for packet in 4..8 {
            sender.on_sent(at(500), PacketNumber(packet + 5), Some(PacketNumber(packet)));
        }
        // All come late; more than one of a round trip counts as one.
        echoed(&mut sender, at(520), 100, 5, &[]);
        echoed(&mut sender, at(521), 100, 8, &[]);
        assert_eq!(sender.rack.hasty, hasty, "{reordered}");
    }
}

/// RFC 5681 s4.3: each window in which something is lost is one sign of congestion.
#[test]
fn by_time_what_is_lost_again_in_one_round_trip_begins_one_episode() {
    let mut sender = flight(Recovery::Rack, 6);
    let fates = acked(&mut sender, at(20), 0, &[(2, 6)]);
    assert_eq!(fates[4..], [(0, Fate::BeginsRecovery), (0, Fate::Lost), (1, Fate::Lost)]);
    sender.on_sent(at(21), PacketNumber(6), Some(PacketNumber(0)));
    sender.on_sent(at(22), PacketNumber(7), Some(PacketNumber(1)));
    sender.on_sent(at(23), PacketNumber(8), None);
    sender.on_sent(at(24), PacketNumber(9), None);
    let fates = acked(&mut sender, at(43), 0, &[(6, 7), (2, 6)]);
    assert_eq!(fates, [(8, Fate::Acked), (6, Fate::BeginsRecovery), (6, Fate::Lost), (7, Fate::Lost)]);
    // One left again in this episode, the other not yet: the first one's third loss is the next episode.
    sender.on_sent(at(44), PacketNumber(10), Some(PacketNumber(0)));
    sender.on_sent(at(45), PacketNumber(11), None);
    let fates = acked(&mut sender, at(65), 0, &[(8, 9), (2, 7)]);
    assert_eq!(fates, [(11, Fate::Acked), (9, Fate::Lost), (10, Fate::BeginsRecovery), (10, Fate::Lost)]);
    // By the packet that it left in first.
    assert_eq!(acked(&mut sender, at(66), 1, &[(8, 9), (2, 7)]), [(0, Fate::ArrivedAfterAll)]);
}

#[test]
fn by_time_losses_after_a_timeout_begin_no_episode_and_are_judged_by_when_they_left_last() {
    let mut sender = flight(Recovery::Rack, 5);
    acked(&mut sender, at(20), 1, &[]);
    assert_eq!(timed_out(&mut sender, at(240)).len(), 1);
    sender.on_sent(at(240), PacketNumber(5), Some(PacketNumber(1)));
    // It had only been late, and says nothing of what has just left.
    assert_eq!(acked(&mut sender, at(241), 1, &[(2, 3)]), [(2, Fate::ArrivedAfterAll)]);
    assert_eq!(sender.rack.due(), Time::MAX);
    sender.on_sent(at(242), PacketNumber(6), Some(PacketNumber(3)));
    // Two are above it, but recovery is under way: no patience.
    assert_eq!(acked(&mut sender, at(242 + 245), 1, &[(2, 4)]), [(6, Fate::Acked), (5, Fate::Lost)]);
    assert_eq!(sender.phase, Phase::TimedOut);
}

/// RFC 8985 s6.2 step 4: nothing may be late while an episode is under way.
#[test]
fn by_time_recovery_has_no_patience_with_the_rest_of_its_flight() {
    let mut sender = flight(Recovery::Rack, 6);
    for packet in [6, 7] {
        sender.on_sent(at(19), PacketNumber(packet), None);
    }
    acked(&mut sender, at(20), 0, &[(1, 6)]);
    sender.on_sent(at(21), PacketNumber(8), Some(PacketNumber(0)));
    let fates = acked(&mut sender, at(41), 6, &[]);
    assert_eq!(fates, [(8, Fate::Acked), (6, Fate::Lost), (7, Fate::Lost)]);
}

/// RFC 8985 s6.2 step 2: it was the first copy that came, and its round trip is not that of the second.
#[test]
fn by_time_a_repeated_segment_that_comes_too_soon_is_not_the_copy() {
    for (back_after, due) in [(5, Time::MAX), (20, at(21 + 20 + 20 / 4))] {
        let mut sender = flight(Recovery::Rack, 5);
        acked(&mut sender, at(20), 1, &[]);
        let fates = acked(&mut sender, at(20), 1, &[(2, 5)]);
        assert_eq!(fates[3..], [(1, Fate::BeginsRecovery), (1, Fate::Lost)]);
        sender.on_sent(at(21), PacketNumber(5), None);
        sender.on_sent(at(22), PacketNumber(6), Some(PacketNumber(1)));
        let fates = acked(&mut sender, at(22 + back_after), 5, &[]);
        assert_eq!(fates, [(6, Fate::Acked), (0, Fate::Recovered)]);
        // What had left just before is late only if the copy has come.
        assert_eq!(sender.rack.due(), due, "after {back_after} ms");
    }
}

#[test]
fn by_time_a_path_may_become_shorter() {
    let mut sender = flight(Recovery::Rack, 1);
    acked(&mut sender, at(50), 1, &[]);
    for packet in 1..5 {
        sender.on_sent(at(100), PacketNumber(packet), None);
    }
    let fates = acked(&mut sender, at(120), 1, &[(2, 5)]);
    assert_eq!(fates[3..], [(1, Fate::BeginsRecovery), (1, Fate::Lost)]);
}

/// RFC 8985 s6.2 step 2: what was overtaken and comes late does not take the place of what left after it.
#[test]
fn by_time_the_segment_that_left_last_says_how_long_a_round_trip_takes() {
    let mut sender = flight(Recovery::Rack, 2);
    sender.on_sent(at(1), PacketNumber(2), None);
    acked(&mut sender, at(21), 0, &[(2, 3)]);
    assert_eq!(sender.deadline(), at(25), "a round trip and a quarter after it left");
    acked(&mut sender, at(22), 0, &[(1, 3)]);
    assert_eq!(sender.deadline(), at(25));
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
    let mut receiver = Receiver::new(2, ms(40), 1_999);
    receiver.on_packet(at(1), &packet(1), false);
    assert!(!receiver.has_memory_for(&packet(2)), "all of it must fit");
}

#[test]
fn what_arrives_again_is_counted_and_so_are_marks() {
    let mut receiver = receiver();
    for number in [0, 2] {
        receiver.on_packet(at(1), &packet(number), true);
    }
    taken(&mut receiver);
    assert_eq!(receiver.received_again(), 0);
    receiver.on_packet(at(2), &packet(0), false);
    assert_eq!(receiver.received_again(), 1_000, "below what was taken");
    receiver.on_packet(at(2), &packet(2), true);
    assert_eq!(receiver.received_again(), 2_000, "of what waits");
    let mut ack = CarrierAck::blank();
    receiver.write_ack(&mut ack);
    assert_eq!(ack.marked, 3);
}

#[test]
fn the_first_of_what_waits_says_when_it_is_acknowledged_and_the_count_begins_anew() {
    let mut receiver = Receiver::new(3, ms(40), u64::MAX);
    for (number, now) in [(0, 5), (1, 6)] {
        receiver.on_packet(at(now), &packet(number), false);
        taken(&mut receiver);
        assert_eq!((receiver.due(), receiver.is_complete()), (at(45), false));
    }
    assert_eq!(blocks(&mut receiver), [(0, 2)]);
    receiver.on_packet(at(50), &packet(2), false);
    assert_eq!((receiver.due(), receiver.is_complete()), (at(90), false));
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

// Tail loss probes (RFC 8985 s7).

/// A sender that measures round trips of 20 ms by the clock of its packets, with this many segments in flight since 20 ms.
fn tail(recovery: Recovery, count: u64) -> Sender {
    let mut sender = flight(recovery, 1);
    echoed(&mut sender, at(20), 0, 1, &[]);
    for packet in 1..=count {
        sender.on_sent(at(20), PacketNumber(packet), None);
    }
    sender
}

/// The packet that leaves once more when time has passed, and the number of its segment.
fn probed(sender: &mut Sender, now: Time) -> Option<(u64, u64)> {
    let probe = sender.on_timeout(now, |_, fate| panic!("{fate:?}"))?;
    Some((probe.0.0, probe.1.number))
}

#[test]
fn the_last_segment_probes_after_two_round_trips_of_silence() {
    let mut sender = tail(Recovery::Rack, 3);
    assert_eq!(sender.deadline(), at(62));
    assert_eq!(probed(&mut sender, at(61)), None);
    // What leaves, and what is acknowledged in order, puts it off.
    sender.on_sent(at(30), PacketNumber(4), None);
    assert_eq!(sender.deadline(), at(72));
    acked(&mut sender, at(40), 2, &[]);
    assert_eq!(sender.deadline(), at(82));
    assert_eq!(probed(&mut sender, at(82)), Some((4, 4)));
    // One at a time; then it is the timer's turn.
    assert_eq!(sender.deadline(), at(82) + ms(220));
    assert_eq!(timed_out(&mut sender, at(302)), [Fate::TimedOut { repeated: false, lost: 3, reinject: false }]);
}

#[test]
fn the_acknowledgement_of_a_lone_segment_may_be_delayed() {
    let mut sender = tail(Recovery::Rack, 1);
    // Two round trips and 200 ms are longer than the timeout, which comes first.
    assert_eq!(sender.deadline(), at(20 + 220));
    assert_eq!(timed_out(&mut sender, at(240)).len(), 1);
    // Round trips of 100 and 1,100 ms make one of 225 and a timeout of 1,375 ms.
    let mut sender = flight(Recovery::Rack, 1);
    acked(&mut sender, at(100), 1, &[]);
    sender.on_sent(at(100), PacketNumber(1), None);
    acked(&mut sender, at(1_200), 2, &[]);
    sender.on_sent(at(1_200), PacketNumber(2), None);
    assert_eq!(sender.deadline(), at(1_200 + 450 + 200));
    assert_eq!(probed(&mut sender, at(1_850)), Some((2, 2)));
}

#[test]
fn only_rack_probes_and_only_where_nothing_tells_of_a_loss() {
    for recovery in [Recovery::Sack, Recovery::NewReno, Recovery::NewRenoSteady] {
        let mut sender = tail(recovery, 3);
        assert_eq!(probed(&mut sender, at(70)), None, "{recovery:?}");
    }
    // Something has arrived out of order.
    let mut sender = tail(Recovery::Rack, 4);
    acked(&mut sender, at(40), 1, &[(2, 3)]);
    assert_eq!(sender.probe_at(), Time::MAX);
    // Recovery, and what follows a timeout.
    acked(&mut sender, at(40), 1, &[(2, 5)]);
    assert_eq!((sender.phase, sender.probe_at()), (Phase::Recovery, Time::MAX));
    let mut sender = tail(Recovery::Rack, 4);
    timed_out(&mut sender, at(900));
    assert_eq!((sender.phase, sender.probe_at()), (Phase::TimedOut, Time::MAX));
}

#[test]
fn before_data_has_measured_a_round_trip_the_handshake_s_counts() {
    let mut sender = sender(Recovery::Rack);
    sender.on_handshake(ms(50));
    for packet in 0..2 {
        sender.on_sent(Time::ZERO, PacketNumber(packet), None);
    }
    assert_eq!(sender.deadline(), at(102));
}

#[test]
fn what_a_probe_shows_to_be_lost_begins_an_episode() {
    let mut sender = tail(Recovery::Rack, 4);
    assert_eq!(probed(&mut sender, at(62)), Some((4, 4)));
    let fates = acked(&mut sender, at(82), 1, &[(4, 5)]);
    let lost: Vec<_> = (1..4).map(|packet| (packet, Fate::Lost)).collect();
    assert_eq!(fates[..2], [(4, Fate::Acked), (1, Fate::BeginsRecovery)]);
    assert_eq!(fates[2..], lost);
    assert!(sender.probe.is_none(), "it has told what it can");
}

#[test]
fn a_loss_that_the_probe_itself_repairs_is_an_episode_that_is_over() {
    let mut sender = tail(Recovery::Rack, 3);
    probed(&mut sender, at(62));
    // All but the last arrive late, then the probe.
    assert_eq!(acked(&mut sender, at(70), 3, &[]).len(), 2);
    let fates = echoed(&mut sender, at(82), 62, 4, &[]);
    let measured = (0, Fate::Measured(ms(20)));
    assert_eq!(fates, [measured, (3, Fate::Acked), (3, Fate::BeginsRecovery), (3, Fate::Recovered)]);
    assert_eq!(sender.phase, Phase::Open);
}

#[test]
fn a_probe_of_what_was_only_late_says_nothing() {
    let mut sender = tail(Recovery::Rack, 3);
    probed(&mut sender, at(62));
    let fates = echoed(&mut sender, at(90), 20, 4, &[]);
    assert_eq!(fates[0], (1, Fate::Acked));
    assert!(!fates.iter().any(|(_, fate)| matches!(fate, Fate::BeginsRecovery | Fate::Lost)), "{fates:?}");
    // The next silence has a probe again.
    sender.on_sent(at(90), PacketNumber(4), None);
    sender.on_sent(at(90), PacketNumber(5), None);
    assert!(sender.probe_at() < at(200));
}
