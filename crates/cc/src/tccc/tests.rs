use manypath_core::{Bytes, Duration, PacketNumber, Rate};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::aimd::Aimd;
use crate::aimd::tests::{close, decreases, increases, windows};
use crate::controller::CongestionControl;
use crate::sbd::Delays;

fn config(decouple: bool) -> Config {
    Config {
        estimate: Choice::Mean,
        threshold: Threshold::Largest,
        tolerance: 0.2,
        deviations: 0.0,
        detector: Detector::Delays(Delays::default()),
        decouple,
    }
}

/// TCCC in congestion avoidance with these members' `(acked, lost)`.
fn avoiding(losses: &[(f64, f64)]) -> Tccc {
    let mut tccc = Tccc::new(config(false));
    let mut none = Windows::default();
    for (id, &(acked, lost)) in (0..).zip(losses) {
        tccc.joined(SubflowId(id), &mut none);
        tccc.member(SubflowId(id)).unwrap().losses = Losses { acked, lost, events: 5.0 };
    }
    tccc.initial = false;
    tccc
}

const SAME: &[(f64, f64)] = &[(99.0, 1.0), (99.0, 1.0)];

#[test]
fn one_subflow_is_reno() {
    let mut tccc = avoiding(&[(99.0, 1.0)]);
    close(increases(&mut tccc, &windows(&[(10.0, 0.1)]))[0], 0.1);
    close(decreases(&mut tccc, &windows(&[(10.0, 0.1)]))[0], 5.0);
}

#[test]
fn algorithm_2() {
    // w = (40, 4), rtt = (0.02, 0.1): S1 = 2000 + 40 = 2040, S2 = 100000 + 400 = 100400, min_rtt = 0.02.
    let windows = windows(&[(40.0, 0.02), (4.0, 0.1)]);
    let found = increases(&mut avoiding(SAME), &windows);
    // 1/(0.02*0.02*100400) = 1/40.16 (0.996 per round trip); 1/(0.1*0.02*100400) = 1/200.8 (0.020).
    close(found[0], 1.0 / 40.16);
    close(found[1], 1.0 / 200.8);
    let found = decreases(&mut avoiding(SAME), &windows);
    // 0.02*2040^2/(2*0.02*100400) = 20.725; 0.02*2040^2/(2*0.1*100400) = 4.145.
    close(found[0], 0.02 * 2040.0 * 2040.0 / (2.0 * 0.02 * 100_400.0));
    close(found[1], 0.02 * 2040.0 * 2040.0 / (2.0 * 0.1 * 100_400.0));
}

/// TCCC algorithm 2 line 10 has no floor: why the frame keeps a packet.
#[test]
fn a_loss_often_takes_a_whole_window() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut between = |low: f64, high: f64| low + (high - low) * (random.next_u64() as f64 / u64::MAX as f64);
    let states = 20_000;
    let whole = (0..states).filter(|_| {
        let windows = windows(&[(); 2].map(|()| (between(2.0, 100.0), between(0.01, 0.2))));
        let found = decreases(&mut avoiding(SAME), &windows);
        windows.iter().zip(found).any(|((_, own), decrease)| decrease >= own.cwnd)
    });
    let share = whole.count() as f64 / f64::from(states);
    // One standard deviation is 0.35%.
    assert!((share - 0.57).abs() < 0.01, "{share}");
}

#[test]
fn other_loss_rates_halve() {
    let windows = windows(&[(40.0, 0.02), (4.0, 0.1)]);
    // 1% and 2%: differ by half of the larger.
    close(decreases(&mut avoiding(&[(99.0, 1.0), (98.0, 2.0)]), &windows)[0], 20.0);
    // 1% and 0.9%: the same within 20%.
    let same = decreases(&mut avoiding(&[(99.0, 1.0), (99.1, 0.9)]), &windows)[0];
    close(same, 0.02 * 2040.0 * 2040.0 / (2.0 * 0.02 * 100_400.0));
}

/// What 5 events of 2 packets each and 5 of 4 tell: rates of 1% and 2% are 1.05 standard deviations apart.
#[test]
fn few_losses_tell_no_rates_apart() {
    let windows = windows(&[(40.0, 0.02), (4.0, 0.1)]);
    let losses = [(990.0, 10.0), (980.0, 20.0)];
    let decrease = |deviations| {
        let mut tccc = avoiding(&losses);
        tccc.config.deviations = deviations;
        decreases(&mut tccc, &windows)[0]
    };
    // p = 30/2000 and 3 packets an event: the variance is 0.015*3*(2/1000) = 9e-5, the difference 0.01 of 0.00949.
    close(decrease(1.0), 20.0);
    close(decrease(1.1), 0.02 * 2040.0 * 2040.0 / (2.0 * 0.02 * 100_400.0));
}

#[test]
fn marks_are_losses() {
    // 1000 packets each; subflow 0 is marked 20 times, subflow 1 once: not the same rate, so half is taken of 40 packets.
    let mut tccc = avoiding(&[(1000.0, 0.0); 2]);
    let mut windows = windows(&[(40.0, 0.02), (4.0, 0.1)]);
    for (id, marks) in [(0, 20), (1, 1)] {
        for _ in 0..marks {
            let mark = Event::Ecn { sent_at: Time::ZERO };
            tccc.observe(Time::ZERO, SubflowId(id), &mark, &mut windows, &View::default());
        }
    }
    close(decreases(&mut tccc, &windows)[0], 20.0);
}

#[test]
fn all_subflows_together_grow_like_one_tcp() {
    // Sum of (growth per round trip)/rtt = 1/min_rtt, whatever windows and round trips (TCCC eq. 3).
    let windows = windows(&[(40.0, 0.02), (4.0, 0.1), (17.0, 0.05)]);
    let mut tccc = avoiding(&[(9.0, 1.0); 3]);
    let found = increases(&mut tccc, &windows);
    let total: f64 = windows.iter().zip(found).map(|((_, own), growth)| growth * own.cwnd / own.rtt).sum();
    close(total, 1.0 / 0.02);
}

fn sent() -> Event {
    Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false }
}

/// TCCC in CSS with one started subflow of this window and a second of ten packets that has not sent.
fn css(total: f64, con_ssth: f64) -> (Tccc, Windows) {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(total, 0.1), (10.0, 0.0)]);
    windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
    for id in 0..2 {
        tccc.joined(SubflowId(id), &mut windows);
    }
    let first = tccc.member(SubflowId(0)).unwrap();
    first.started = true;
    first.rtt = Some(0.1);
    first.ssthresh = Some(con_ssth);
    (tccc, windows)
}

#[test]
fn a_join_keeps_the_finishing_time() {
    // con = 47, Tot = 10, IW = 10: CT = ln(4.7)/ln(1.5) = 3.8168; alpha' = (47/20)^(1/3.8168) = 1.251.
    for (total, con_ssth, alpha) in [(10.0, 47.0, 1.251), (20.0, 47.0, 1.237), (40.0, 100.0, 1.359)] {
        let (mut tccc, mut windows) = css(total, con_ssth);
        tccc.observe(Time::ZERO, SubflowId(1), &sent(), &mut windows, &View::default());
        assert!((tccc.alpha - alpha).abs() < 5e-4, "{} is not {alpha}", tccc.alpha);
        assert!(tccc.initial);
    }
}

#[test]
fn subflows_that_begin_together_are_all_in_the_sum() {
    // con = 100: Tot = 10 and then, with the second that has measured nothing, 20.
    // CT = ln(10)/ln(1.5) = 5.679: alpha' = (100/20)^(1/5.679) = 1.3276, and alpha'' = (100/30)^(1/5.679) = 1.2362.
    let (mut tccc, mut windows) = css(10.0, 100.0);
    windows.insert(SubflowId(2), Window::new(1000.0, 10.0, None));
    tccc.joined(SubflowId(2), &mut windows);
    for (id, alpha) in [(1, 1.3276), (2, 1.2362)] {
        tccc.observe(Time::ZERO, SubflowId(id), &sent(), &mut windows, &View::default());
        assert!((tccc.alpha - alpha).abs() < 1e-4, "{} is not {alpha}", tccc.alpha);
    }
}

#[test]
fn a_join_that_does_not_fit_ends_css() {
    // Tot = 40, new = 50 > 47.
    let (mut tccc, mut windows) = css(40.0, 47.0);
    // A backup that has measured something, and rests.
    windows.insert(SubflowId(2), Window { rtt: 0.1, idle: true, ..Window::new(1000.0, 8.0, None) });
    tccc.observe(Time::ZERO, SubflowId(1), &sent(), &mut windows, &View::default());
    assert!(!tccc.initial);
    close(windows.get(SubflowId(0)).unwrap().ssthresh, 40.0);
    close(windows.get(SubflowId(2)).unwrap().ssthresh, 8.0);
    assert!(windows.get(SubflowId(1)).unwrap().ssthresh.is_infinite());
}

#[test]
fn a_subflow_that_failed_is_nobody_to_finish_with() {
    let (mut tccc, mut windows) = css(10.0, 47.0);
    windows.get_mut(SubflowId(0)).unwrap().failed = true;
    tccc.observe(Time::ZERO, SubflowId(1), &sent(), &mut windows, &View::default());
    close(tccc.alpha, INITIAL_ALPHA);
}

#[test]
fn an_estimate_is_at_least_two_packets() {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(12.0, 0.1)]);
    tccc.joined(SubflowId(0), &mut windows);
    // A packet in 100 ms, of which a round trip is one.
    for (millis, delivered) in [(100, 0), (200, 0), (300, 0), (400, 1000)] {
        let (now, event) = ack(millis, 100, delivered);
        tccc.observe(now, SubflowId(0), &event, &mut windows, &View::default());
    }
    assert_eq!(tccc.con_ssth(), Some(2.0));
}

#[test]
fn loss_rates_follow_changes() {
    // Enough events remain enough.
    for (events, remain) in [(5.0, 2.5), (3.0, MIN_LOSS_EVENTS), (1.0, 1.0)] {
        let mut tccc = avoiding(&[(1000.0, 49.0)]);
        tccc.member(SubflowId(0)).unwrap().losses.events = events;
        let lost = Event::Lost { packet: PacketNumber(0), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        tccc.observe(Time::ZERO, SubflowId(0), &lost, &mut windows(&[(10.0, 0.1)]), &View::default());
        let losses = tccc.member(SubflowId(0)).unwrap().losses;
        assert_eq!(losses, Losses { acked: 500.0, lost: 25.0, events: remain });
    }
}

#[test]
fn growth_has_the_round_trip_ratio_in_the_exponent() {
    let mut tccc = Tccc::new(config(false));
    tccc.alpha = 1.36;
    let windows = windows(&[(10.0, 0.1), (10.0, 0.2), (10.0, 0.5)]);
    let growth = |tccc: &mut Tccc, id| {
        let own = windows.get(SubflowId(id)).unwrap().clone();
        tccc.slow_start(SubflowId(id), &own, &windows)
    };
    // 0.36; 1.36^2 - 1 = 0.8496; 1.36^5 - 1 = 3.65, capped at one packet per acknowledgement.
    close(growth(&mut tccc, 0), 0.36);
    close(growth(&mut tccc, 1), 1.36 * 1.36 - 1.0);
    close(growth(&mut tccc, 2), 1.0);
}

fn ack(millis: u64, rtt_ms: u64, delivered_at_send: u64) -> (Time, Event) {
    let acked = Acked {
        packet: PacketNumber(0),
        bytes: Bytes::new(1000),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(rtt_ms),
        delivery_rate: Rate::ZERO,
        delivered_at_send: Bytes::new(delivered_at_send),
        in_recovery: false,
        app_limited: false,
    };
    (Time::from_millis(millis), Event::Acked(acked))
}

#[test]
fn css_ends_for_all_at_the_expected_throughput() {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(12.0, 0.1), (12.0, 0.1)]);
    windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
    for id in 0..2 {
        tccc.joined(SubflowId(id), &mut windows);
    }
    // 1000 bytes each 5 ms over 100 ms: 20 packets. Two windows of 12 at 100 ms: 240/s > 20/0.1 = 200/s.
    for (millis, delivered) in [(100, 0), (105, 0), (110, 0), (200, 1000)] {
        assert!(tccc.initial);
        let (now, event) = ack(millis, 100, delivered);
        tccc.observe(now, SubflowId(0), &event, &mut windows, &View::default());
    }
    assert!(!tccc.initial);
    for id in 0..2 {
        close(windows.get(SubflowId(id)).unwrap().ssthresh, 12.0);
    }
}

/// TCCC algorithm 1 lines 5 and 6.
#[test]
fn css_has_the_first_threshold_until_there_is_an_estimate() {
    // Two windows of 12 at 100 ms: 240/s, and thresholds of 25 and 20 packets are 250/s and 200/s.
    for (ssthresh, stays) in [(25.0, true), (20.0, false)] {
        let mut tccc = Tccc::new(config(false));
        let mut windows = windows(&[(12.0, 0.1), (12.0, 0.1)]);
        for id in 0..2 {
            windows.get_mut(SubflowId(id)).unwrap().ssthresh = ssthresh - f64::from(id);
            tccc.joined(SubflowId(id), &mut windows);
        }
        let (now, event) = ack(100, 100, 0);
        tccc.observe(now, SubflowId(0), &event, &mut windows, &View::default());
        assert_eq!(tccc.initial, stays);
        assert_eq!(tccc.con_ssth(), Some(ssthresh));
    }
}

#[test]
fn three_small_writes_say_nothing_of_the_network() {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(12.0, 0.1)]);
    windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
    tccc.joined(SubflowId(0), &mut windows);
    // A packet every 30 ms, as the application had them, would make a threshold of 3.3 packets.
    for (millis, delivered) in [(100, 0), (130, 0), (160, 0), (260, 1000)] {
        let (now, Event::Acked(acked)) = ack(millis, 100, delivered) else { unreachable!() };
        let event = Event::Acked(Acked { app_limited: delivered == 0, ..acked });
        tccc.observe(now, SubflowId(0), &event, &mut windows, &View::default());
    }
    assert!(tccc.initial);
    assert_eq!(tccc.con_ssth(), None);
    assert!(windows.get(SubflowId(0)).unwrap().ssthresh.is_infinite());
}

#[test]
fn a_loss_ends_css_and_halves_once() {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(12.0, 0.1), (20.0, 0.1)]);
    windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
    for id in 0..2 {
        tccc.joined(SubflowId(id), &mut windows);
    }
    let loss = Event::Congestion { sent_at: Time::ZERO };
    tccc.observe(Time::ZERO, SubflowId(0), &loss, &mut windows, &View::default());
    assert!(!tccc.initial);
    close(windows.get(SubflowId(1)).unwrap().ssthresh, 20.0);
    close(decreases(&mut tccc, &windows)[0], 6.0);
}

#[test]
fn a_timeout_that_ended_css_halves_nothing_later() {
    let (mut tccc, mut windows) = css(10.0, 47.0);
    for event in [Event::Timeout { repeated: false }, Event::Congestion { sent_at: Time::ZERO }] {
        tccc.observe(Time::ZERO, SubflowId(0), &event, &mut windows, &View::default());
    }
    assert!(!tccc.initial && !tccc.member(SubflowId(0)).unwrap().halve);
}

#[test]
fn the_round_trip_time_is_halfway_to_the_sample() {
    let mut tccc = Tccc::new(config(false));
    let mut windows = windows(&[(12.0, 0.1)]);
    tccc.joined(SubflowId(0), &mut windows);
    for rtt in [100, 200] {
        let (now, event) = ack(0, rtt, 0);
        tccc.observe(now, SubflowId(0), &event, &mut windows, &View::default());
    }
    close(windows.get(SubflowId(0)).unwrap().rtt, 0.15);
}

#[test]
fn tccc_plus_decouples_what_does_not_share() {
    let mut tccc = Tccc::new(config(true));
    let mut windows = windows(&[(10.0, 0.1), (20.0, 0.2)]);
    for id in 0..2 {
        tccc.joined(SubflowId(id), &mut windows);
        let report = crate::PathReport {
            samples: 10,
            interval: Duration::from_millis(350),
            mean_delay: 0.1,
            skew_base: 8,
            var_base: 0.1,
            lost: 0,
            marked: 0,
        };
        for _ in 0..60 {
            tccc.observe(Time::ZERO, SubflowId(id), &Event::PathReport(report), &mut windows, &View::default());
        }
    }
    tccc.initial = false;
    let found = increases(&mut tccc, &windows);
    close(found[0], 0.1);
    close(found[1], 0.05);
    // Of another subflow with the number of one that left nothing is known: S2 = 100/0.1 + 100/0.2, 1/(0.1*0.1*1500).
    tccc.left(SubflowId(1), &mut windows);
    tccc.joined(SubflowId(1), &mut windows);
    close(increases(&mut tccc, &windows)[0], 1.0 / 15.0);
}

#[test]
fn a_loss_of_the_whole_window_leaves_a_packet_that_slow_start_doubles() {
    let mut aimd = Aimd::new(avoiding(SAME), false);
    for id in 0..2 {
        let window = Window { ssthresh: 10.0, rtt: 0.1, ..Window::new(1000.0, 20.0, None) };
        aimd.windows_mut().insert(SubflowId(id), window);
    }
    // Two equal subflows: 0.1*400^2/(2*0.1*4000) = 20, all of it.
    let loss = Event::Congestion { sent_at: Time::ZERO };
    aimd.on_event(Time::ZERO, SubflowId(0), &loss, &View::default());
    let limits = aimd.limits(SubflowId(0));
    assert_eq!((limits.cwnd, limits.ssthresh), (Bytes::new(1000), Some(Bytes::new(2000))));
    let (now, event) = ack(100, 100, 0);
    aimd.on_event(now, SubflowId(0), &event, &View::default());
    assert_eq!(aimd.limits(SubflowId(0)).cwnd, Bytes::new(2000));
    // And after a timeout, as RFC 5681 has it.
    aimd.on_event(now, SubflowId(0), &Event::Timeout { repeated: false }, &View::default());
    let limits = aimd.limits(SubflowId(0));
    assert_eq!((limits.cwnd, limits.ssthresh), (Bytes::new(1000), Some(Bytes::new(2000))));
}
