use super::adaptation::Config;
use super::*;
use crate::testing::{MSS, gap_of, queue, segments, send, subflow, view};
use manypath_core::{Bytes, Duration, Rate, SubflowState};

fn stms_a(gap: f64) -> Stms {
    Stms::adapted(Config { gap, ..Config::default() })
}

/// The fast subflow is full, the slow one has room.
fn fast_full() -> View {
    view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 0)])
}

fn ack(segments: u32, edge: u32) -> DataAck {
    DataAck {
        newly_acked: Bytes::new(u64::from(segments) * 1_000),
        segments,
        left_edge_subflow: Some(SubflowId(edge)),
        left_edge_retransmitted: false,
        segments_per_ack: 2,
    }
}

#[test]
fn the_front_goes_to_the_fast_subflow_and_the_gap_is_left_for_it() {
    let mut queue = queue(100, 100);
    let mut scheduler = stms_a(5.0);
    assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue), send(1, 5));
    assert_eq!(scheduler.reason(), "slow subflow: behind the gap");
    queue.on_assigned(Time::ZERO, segments(5, 6), SubflowId(1));
    assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue), send(1, 6), "5 unsent before it still");
    let mut open = fast_full();
    open.subflows[0].in_flight = Bytes::ZERO;
    assert_eq!(scheduler.pick(Time::ZERO, &open, &queue), send(0, 0));
    assert_eq!(scheduler.reason(), "fast subflow: the front");
    // The fast subflow skips what the slow one has sent (STMS s4).
    for segment in 0..5 {
        queue.on_assigned(Time::ZERO, segments(segment, segment + 1), SubflowId(0));
    }
    assert_eq!(scheduler.pick(Time::ZERO, &open, &queue), send(0, 6));
}

#[test]
fn without_a_gap_it_is_the_default_scheduler() {
    assert_eq!(stms_a(0.0).pick(Time::ZERO, &fast_full(), &queue(9, 9)), send(1, 0));
}

#[test]
fn the_slow_subflow_idles_where_the_gap_reaches_beyond_data_or_window() {
    let mut scheduler = stms_a(5.0);
    assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue(5, 100)), Choice::Wait);
    assert_eq!(scheduler.reason(), "nothing behind the gap within the window");
    assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue(100, 5)), Choice::Wait);
    assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue(6, 6)), send(1, 5));
}

#[test]
fn lost_data_is_the_fast_subflow_s_unless_there_is_more_of_it_than_the_gap() {
    let mut queue = queue(100, 100);
    for segment in 0..10 {
        queue.on_assigned(Time::ZERO, segments(segment, segment + 1), SubflowId(0));
    }
    queue.on_copy_ended(segments(0, 1), SubflowId(0), false);
    queue.on_copy_ended(segments(1, 2), SubflowId(0), false);
    // Two lost and three unsent before it: segment 13.
    assert_eq!(stms_a(5.0).pick(Time::ZERO, &fast_full(), &queue), send(1, 13));
    assert_eq!(stms_a(2.0).pick(Time::ZERO, &fast_full(), &queue), send(1, 10));
    assert_eq!(stms_a(1.0).pick(Time::ZERO, &fast_full(), &queue), send(1, 0));
    let mut open = fast_full();
    open.subflows[0].in_flight = Bytes::ZERO;
    assert_eq!(stms_a(5.0).pick(Time::ZERO, &open, &queue), send(0, 0));
}

#[test]
fn the_calculated_gap_is_equation_2() {
    // RTT_s = 3 RTT_f: the gap is the fast window (STMS figure 9). 10 / 20 ms * (60 - 20) / 2.
    let paths = fast_full();
    assert!((calculated_gap(&paths, &paths.subflows[1]) - 10.0).abs() < 1e-9);
    let mut scheduler = Stms::calculated();
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(1, 10));
    assert!((gap_of(&scheduler, 1) - 10.0).abs() < 1e-9);
    assert!(calculated_gap(&paths, &paths.subflows[0]).abs() < 1e-9, "nobody is faster than the fast one");
}

#[test]
fn a_paced_subflow_s_bandwidth_is_its_rate() {
    let mut paths = fast_full();
    // A window that is never filled; 250 segments a second.
    paths.subflows[0].cwnd = paths.subflows[0].mss * 1_000;
    paths.subflows[0].pacing = Some(Rate::from_bps(250.0 * 8.0 * MSS as f64));
    assert!((calculated_gap(&paths, &paths.subflows[1]) - 5.0).abs() < 1e-9);
}

#[test]
fn with_three_subflows_each_slow_one_has_its_own_gap() {
    // 10 / 20 ms * (100 - 20) / 2 = 20, and 10 / 60 ms * (100 - 60) / 2 = 3.33.
    let mut paths = view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 10), subflow(2, 100, 10, 0)]);
    assert!((calculated_gap(&paths, &paths.subflows[2]) - 70.0 / 3.0).abs() < 1e-9);
    let mut queue = queue(100, 100);
    let mut scheduler = Stms::calculated();
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), send(2, 23));
    queue.on_assigned(Time::ZERO, segments(23, 24), SubflowId(2));
    paths.subflows[1].in_flight = Bytes::ZERO;
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), send(1, 10), "the less slow one first");
    // Where even its gap finds nothing the slowest cannot either.
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &crate::testing::queue(10, 10)), Choice::Wait);
}

#[test]
fn roles_follow_the_smoothed_rtt_and_the_gap_stays() {
    let queue = queue(100, 100);
    let mut scheduler = stms_a(0.0);
    // Grow the slow subflow's gap: 32 segments released in an interval of 40 ms, a sixteenth of it counts.
    scheduler.on_data_ack(Time::ZERO, &ack(16, 1), &fast_full());
    scheduler.on_data_ack(Time::from_millis(40), &ack(16, 1), &fast_full());
    assert!((gap_of(&scheduler, 1) - 2.0).abs() < 1e-9);
    let mut swapped = view([subflow(0, 60, 10, 0), subflow(1, 20, 10, 10)]);
    assert_eq!(scheduler.pick(Time::ZERO, &swapped, &queue), send(0, 2));
    // A fast subflow that fails takes no gap from anyone.
    swapped.subflows[1].state = SubflowState::Failed;
    assert_eq!(scheduler.pick(Time::ZERO, &swapped, &queue), send(0, 0));
    assert!((gap_of(&scheduler, 0) - 2.0).abs() < 1e-9);
    // Nor does it when it returns, the fastest again or not.
    swapped.subflows[1].state = SubflowState::Active;
    assert_eq!(scheduler.pick(Time::ZERO, &swapped, &queue), send(0, 2));
    assert!((gap_of(&scheduler, 0) - 2.0).abs() < 1e-9);
    swapped.subflows[1].state = SubflowState::Failed;
    scheduler.pick(Time::ZERO, &swapped, &queue);
    assert_eq!(scheduler.pick(Time::ZERO, &view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 0)]), &queue), send(1, 2));
    assert!((gap_of(&scheduler, 1) - 2.0).abs() < 1e-9);
}

#[test]
fn what_waits_for_a_pacer_lengthens_its_way() {
    // 10 segments in 20 ms: 500 a second. Eq. 2: 500 (0.03 - 0.01) = 10 segments.
    let mut paths = fast_full();
    assert!((calculated_gap(&paths, &paths.subflows[1]) - 10.0).abs() < 1e-9);
    // 5 segments wait at 10 in 60 ms: 30 ms more on the slow way. 4 at 500 a second: 8 ms more on the fast one.
    paths.subflows[1].queued = Bytes::new(5 * MSS);
    assert!((calculated_gap(&paths, &paths.subflows[1]) - 25.0).abs() < 1e-9);
    paths.subflows[0].queued = Bytes::new(4 * MSS);
    assert!((calculated_gap(&paths, &paths.subflows[1]) - 21.0).abs() < 1e-9);
    // 90 ms until the slow one's is acknowledged.
    assert!((sent_within_a_round(&paths, &paths.subflows[1]) - 45.0).abs() < 1e-9);
}

#[test]
fn a_subflow_that_would_arrive_later_still_takes_nothing_from_the_gap() {
    // 500 segments a second, (100 - 20) / 2 = 40 ms ahead: 20. What 60 ms of waiting make of the second one's 30 ms is later
    // than 50 ms: it fills none of the gap, and leaves none of it to others.
    let mut paths = view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 10), subflow(2, 100, 10, 0)]);
    paths.subflows[1].queued = Bytes::new(10 * MSS);
    assert!((calculated_gap(&paths, &paths.subflows[2]) - 20.0).abs() < 1e-9);
}

#[test]
fn gaps_are_in_segments_of_the_fastest() {
    // 500 and 250 segments a second, the latter ten times as large, and 20 and 10 ms ahead of the third: 10 + 25 segments.
    let mut paths = view([subflow(0, 20, 10, 10), subflow(1, 40, 10, 10), subflow(2, 60, 10, 0)]);
    paths.subflows[1].mss = Bytes::new(10 * MSS);
    paths.subflows[1].cwnd = Bytes::new(100 * MSS);
    assert!((calculated_gap(&paths, &paths.subflows[2]) - 35.0).abs() < 1e-9);
    let mut scheduler = Stms::calculated();
    paths.subflows[2].mss = Bytes::new(5 * MSS);
    scheduler.gap(&paths, &paths.subflows[2]);
    assert_eq!(scheduler.looks_ahead(&paths), Bytes::new(35 * MSS));
}

#[test]
fn the_gap_follows_the_samples_once_an_interval() {
    let mut scheduler = stms_a(10.0);
    let paths = fast_full();
    let at = Time::from_millis;
    // D = (60 + 20) / 2 = 40 ms. Samples 27, 0 (at the threshold), -3: 24 / 16 = 1.5.
    scheduler.on_data_ack(at(0), &ack(27, 1), &paths);
    scheduler.on_data_ack(at(39), &ack(2, 1), &paths);
    assert!((gap_of(&scheduler, 1) - 10.0).abs() < 1e-9);
    scheduler.on_data_ack(at(40), &ack(3, 0), &paths);
    assert!((gap_of(&scheduler, 1) - 11.5).abs() < 1e-9);
    // Next interval: nothing.
    scheduler.on_data_ack(at(80), &ack(1, 0), &paths);
    assert!((gap_of(&scheduler, 1) - 11.5).abs() < 1e-9);
}

#[test]
fn intervals_are_smoothed_where_that_is_wanted() {
    let mut scheduler = Stms::adapted(Config { weight: 0.5, gain: 1.0, gap: 10.0 });
    let at = Time::from_millis;
    scheduler.on_data_ack(at(0), &ack(5, 1), &fast_full());
    scheduler.on_data_ack(at(40), &ack(3, 1), &fast_full());
    assert!((gap_of(&scheduler, 1) - 14.0).abs() < 1e-9, "half of 8");
    scheduler.on_data_ack(at(80), &ack(1, 0), &fast_full());
    assert!((gap_of(&scheduler, 1) - 16.0).abs() < 1e-9, "and a quarter of it");
}

#[test]
fn duplicates_and_retransmitted_edges_are_no_samples() {
    let mut scheduler = stms_a(10.0);
    let paths = fast_full();
    scheduler.on_data_ack(Time::ZERO, &DataAck { left_edge_retransmitted: true, ..ack(50, 1) }, &paths);
    scheduler.on_data_ack(Time::from_millis(100), &DataAck { left_edge_subflow: None, ..ack(0, 1) }, &paths);
    scheduler.on_data_ack(Time::from_millis(200), &ack(4, 1), &paths);
    scheduler.on_data_ack(Time::from_millis(240), &ack(4, 1), &paths);
    assert!((gap_of(&scheduler, 1) - 10.5).abs() < 1e-9, "the first interval began with the first sample");
}

#[test]
fn the_threshold_is_what_one_acknowledgement_covers() {
    for (per_ack, grown) in [(1, 0.25), (2, 0.0)] {
        let mut scheduler = stms_a(0.0);
        let two = DataAck { segments_per_ack: per_ack, ..ack(2, 1) };
        scheduler.on_data_ack(Time::ZERO, &two, &fast_full());
        scheduler.on_data_ack(Time::from_millis(40), &two, &fast_full());
        assert!((gap_of(&scheduler, 1) - grown).abs() < 1e-9);
    }
}

#[test]
fn a_gap_is_never_negative_and_does_not_grow_beyond_a_slow_round_trip() {
    let paths = fast_full();
    let mut scheduler = stms_a(1.0);
    scheduler.on_data_ack(Time::ZERO, &ack(9, 0), &paths);
    scheduler.on_data_ack(Time::from_millis(40), &ack(9, 0), &paths);
    assert!(gap_of(&scheduler, 1).abs() < 1e-9);
    // The fast subflow sends 10 / 20 ms * 60 ms = 30 segments in a round trip of the slow one.
    let mut scheduler = stms_a(29.0);
    for interval in 0..9 {
        scheduler.on_data_ack(Time::from_millis(interval * 40), &ack(50, 1), &paths);
    }
    assert!((gap_of(&scheduler, 1) - 30.0).abs() < 1e-9);
    // One that is larger already, because a queue has drained since, returns to it: a sixteenth of the 70 beyond an interval.
    let mut scheduler = stms_a(100.0);
    scheduler.on_data_ack(Time::ZERO, &ack(50, 1), &paths);
    scheduler.on_data_ack(Time::from_millis(40), &ack(50, 1), &paths);
    assert!((gap_of(&scheduler, 1) - (100.0 - 70.0 / 16.0)).abs() < 1e-9);
}

#[test]
fn a_subflow_with_nothing_under_way_gets_going_again() {
    // Equation 2 with the smallest RTT, 60 ms: 10 / 20 ms * (60 - 20) / 2 = 10, whatever the RTT was while data queued.
    let mut paths = fast_full();
    paths.subflows[1].srtt = Some(Duration::from_millis(600));
    let mut scheduler = stms_a(50.0);
    paths.subflows[1].in_flight = Bytes::new(1);
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(30, 30)), Choice::Wait, "what is under way will tell");
    paths.subflows[1].in_flight = Bytes::ZERO;
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(30, 30)), send(1, 10));
    // A smaller gap stays.
    let mut scheduler = stms_a(5.0);
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(30, 30)), send(1, 5));
}

#[test]
fn the_send_buffer_holds_the_largest_gap() {
    let paths = view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 10), subflow(2, 100, 10, 0)]);
    let mut scheduler = Stms::calculated();
    assert_eq!(scheduler.looks_ahead(&paths), Bytes::ZERO);
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(2, 23));
    assert!((scheduler.looks_ahead(&paths).as_f64() / MSS as f64 - 70.0 / 3.0).abs() < 0.01);
    let (mut scheduler, paths) = (stms_a(5.0), fast_full());
    assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(1, 5));
    assert_eq!(scheduler.looks_ahead(&paths), Bytes::new(5 * MSS));
}

#[test]
fn an_edge_speaks_for_its_own_gap_and_against_those_of_slower_subflows() {
    let paths = view([subflow(0, 20, 99, 0), subflow(1, 60, 99, 0), subflow(2, 100, 99, 0)]);
    let gaps = |edge| {
        let mut scheduler = stms_a(20.0);
        scheduler.on_data_ack(Time::ZERO, &ack(8, edge), &paths);
        scheduler.on_data_ack(Time::from_millis(100), &ack(8, edge), &paths);
        [gap_of(&scheduler, 1), gap_of(&scheduler, 2)].map(|gap| (gap * 10.0).round() / 10.0)
    };
    assert!(gaps(0).iter().all(|gap| (gap - 19.0).abs() < 1e-9));
    assert!((gaps(1)[0] - 21.0).abs() < 1e-9 && (gaps(1)[1] - 19.0).abs() < 1e-9);
    assert!((gaps(2)[0] - 20.0).abs() < 1e-9 && (gaps(2)[1] - 21.0).abs() < 1e-9);
}

#[test]
fn a_removed_subflow_s_gap_is_forgotten() {
    let paths = fast_full();
    let mut scheduler = stms_a(0.0);
    scheduler.on_data_ack(Time::ZERO, &ack(8, 1), &paths);
    scheduler.on_data_ack(Time::from_millis(40), &ack(8, 1), &paths);
    assert!(gap_of(&scheduler, 1) > 0.9);
    scheduler.remove_subflow(SubflowId(1));
    assert!(gap_of(&scheduler, 1).abs() < 1e-9);
    // And of what STMS-C has calculated.
    let mut calculated = Stms::calculated();
    calculated.pick(Time::ZERO, &paths, &queue(100, 100));
    assert!(gap_of(&calculated, 1) > 0.9);
    calculated.remove_subflow(SubflowId(1));
    assert!(gap_of(&calculated, 1).abs() < 1e-9);
}

#[test]
fn what_must_be_at_hand_is_the_largest_gap_of_the_slow_subflows() {
    let mut paths = view([subflow(0, 20, 99, 0), subflow(1, 60, 99, 0), subflow(2, 100, 99, 0)]);
    let mut scheduler = stms_a(20.0);
    for ms in [0, 100] {
        scheduler.on_data_ack(Time::from_millis(ms), &ack(8, 2), &paths);
    }
    let [largest, smaller] = [2, 1].map(|id| gap_of(&scheduler, id));
    assert!(largest > smaller);
    assert_eq!(scheduler.looks_ahead(&paths), Bytes::from_f64(largest * MSS as f64));
    // The fastest has no gap, whatever is remembered of its id.
    paths.subflows[2].srtt = Some(Duration::from_millis(10));
    assert_eq!(scheduler.looks_ahead(&paths), Bytes::from_f64(smaller * MSS as f64));
}

/// Paths without losses or windows: every subflow sends at its rate, one data acknowledgement a
/// segment. Returns the means of the gaps over the last half of the time.
fn converged(rates: &[f64], delays_ms: &[f64], scheduler: &mut Stms, seconds: f64) -> Vec<f64> {
    let mut paths = view([]);
    for (index, (rate, delay)) in rates.iter().zip(delays_ms).enumerate() {
        let mut subflow = subflow(u32::try_from(index).unwrap(), 1, 1, 0);
        subflow.srtt = Some(Duration::from_secs_f64(delay * 2e-3));
        // A window of one bandwidth-delay product, so that the bound on growth knows the rate.
        subflow.cwnd = Bytes::from_f64(rate * 2.0 * delay * MSS as f64);
        paths.subflows.push(subflow);
    }
    let mut queue = queue(1_000_000, 1_000_000);
    let mut next: Vec<f64> = (0..rates.len()).map(|index| index as f64 * 0.1).collect();
    // Arrivals and acknowledgements by time; segments are few enough for a sorted map.
    type Event = Result<(usize, manypath_core::DataRange), manypath_core::DataSeq>;
    let mut events: std::collections::BTreeMap<(Time, u64), Event> = std::collections::BTreeMap::new();
    let mut received = manypath_core::RangeSet::new();
    let mut serial = 0_u64;
    let (mut sums, mut picks) = (vec![0.0; rates.len()], 0.0);
    let key = |ms: f64, serial: &mut u64| {
        *serial += 1;
        (Time::from_secs_f64(ms * 1e-3), *serial)
    };
    loop {
        let sender = (0..next.len()).min_by(|a, b| next[*a].total_cmp(&next[*b])).unwrap();
        let send_at = Time::from_secs_f64(next[sender] * 1e-3);
        if let Some(entry) = events.first_entry()
            && entry.key().0 <= send_at
        {
            let ((now, _), event) = entry.remove_entry();
            match event {
                // A segment arrives; its acknowledgement takes the same way back.
                Ok((path, range)) => {
                    received.insert(range);
                    let edge = received.first().unwrap().end;
                    events.insert(key(now.as_secs_f64() * 1e3 + delays_ms[path], &mut serial), Err(edge));
                }
                Err(edge) if edge > queue.left_edge() => {
                    let left = *queue.segment_at(queue.left_edge()).unwrap();
                    let segments = queue.advance_left_edge(edge);
                    let ack = DataAck {
                        newly_acked: Bytes::new(u64::from(segments) * 1_000),
                        segments,
                        left_edge_subflow: Some(left.last_subflow),
                        left_edge_retransmitted: left.retransmitted,
                        segments_per_ack: 1,
                    };
                    scheduler.on_data_ack(now, &ack, &paths);
                }
                Err(_) => {}
            }
            continue;
        }
        if send_at > Time::from_secs_f64(seconds) {
            break;
        }
        // Only the sender has room, for one segment.
        for (index, subflow) in paths.subflows.iter_mut().enumerate() {
            subflow.in_flight = if index == sender { subflow.cwnd - subflow.mss } else { subflow.cwnd };
        }
        if let Choice::Send { subflow, range } = scheduler.pick(send_at, &paths, &queue) {
            assert_eq!(subflow.index(), sender);
            queue.on_assigned(send_at, range, subflow);
            events.insert(key(next[sender] + delays_ms[sender], &mut serial), Ok((sender, range)));
        }
        next[sender] += 1.0 / rates[sender];
        if send_at > Time::from_secs_f64(seconds / 2.0) {
            picks += 1.0;
            for (index, sum) in (0..).zip(&mut sums) {
                *sum += gap_of(scheduler, index);
            }
        }
    }
    sums.iter().map(|sum| sum / picks).collect()
}

#[test]
fn the_adapted_gap_converges_to_equation_2() {
    // STMS eq. 2: 2.5 packets/ms, one-way delays 10 and 50 ms: 100.
    for rates in [[2.5, 2.5], [2.5, 1.0]] {
        let gap = converged(&rates, &[10.0, 50.0], &mut stms_a(0.0), 6.0)[1];
        assert!((gap / 100.0 - 1.0).abs() < 0.2, "{rates:?}: {gap}");
    }
    // The paper's setting, at its rates and at a tenth and ten times of them, from its sixteenth interval of 110 ms on.
    for scale in [0.1, 1.0, 10.0] {
        let gap = converged(&[2.5 * scale, 2.5 * scale], &[10.0, 100.0], &mut stms_a(0.0), 3.6)[1];
        assert!((gap / (225.0 * scale) - 1.0).abs() < 0.2, "{scale}: {gap}");
    }
}

#[test]
fn a_small_gap_does_not_swing_by_many_times_itself() {
    // 2.5 * 5 = 12.5 between equal rates, and 2.5 * 10 = 25 beside a slow path of four times the rate.
    for (rates, delays) in [([2.5, 2.5], [45.0, 50.0]), ([2.5, 10.0], [40.0, 50.0])] {
        let gap = converged(&rates, &delays, &mut stms_a(0.0), 20.0)[1];
        assert!((gap / (2.5 * (delays[1] - delays[0])) - 1.0).abs() < 0.3, "{rates:?} {delays:?}: {gap}");
    }
}

#[test]
fn a_gap_that_is_too_large_shrinks_slowly() {
    // Samples of two segments down beside many up: shrinking is much slower than growing, by the rule.
    let gap = converged(&[2.5, 2.5], &[10.0, 50.0], &mut stms_a(300.0), 6.0)[1];
    assert!(gap > 100.0 && gap < 299.0, "{gap}");
}

#[test]
fn three_gaps_converge_too() {
    // 2.5 * 40 = 100, and 2.5 * 90 + 2.5 * 50 = 350.
    let gaps = converged(&[2.5, 2.5, 2.5], &[10.0, 50.0, 100.0], &mut stms_a(0.0), 20.0);
    assert!((gaps[1] / 100.0 - 1.0).abs() < 0.3 && (gaps[2] / 350.0 - 1.0).abs() < 0.3, "{gaps:?}");
}
