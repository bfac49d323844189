use manypath_core::PacketNumber;

use super::*;

const CONFIG: Config = Config { n: 5, d: 0.5, epsilon: 0.05, beta: 1.0, guard: false, initial_rate: 4.0 };

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

fn report(rate: f64, loss: f64, index: usize) -> Report<Role> {
    let span = Duration::from_millis(100);
    Report {
        role: Role { epoch: 1, index },
        rate,
        span,
        sending: span,
        packets: 10,
        sent: Rate::from_mbps(rate) * span,
        loss,
        in_a_gap: false,
        slope: 0.0,
        rtt: Some(0.1),
        arrival: Rate::ZERO,
        app_limited: false,
    }
}

fn subflow(base: f64) -> (Subflow, Window) {
    let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
    let mut own = Subflow::new(&CONFIG, init);
    own.srtt = Some(Duration::from_millis(100));
    own.base = base;
    (own, Window { ssthresh: 1.0, rtt: 0.1, ..Window::new(1000.0, 1.0, None) })
}

#[test]
fn equation_8() {
    // 30^0.9 + 20^0.9 - 11 * 20 * 0.01 - 1 * 20 * 0.05
    close(utility(20.0, 0.01, 0.05, 30.0), libm::pow(30.0, 0.9) + libm::pow(20.0, 0.9) - 2.2 - 1.0);
    // A single subflow has no first term.
    close(utility(20.0, 0.0, 0.0, 0.0), libm::pow(20.0, 0.9));
}

#[test]
fn equations_18_and_19() {
    // Without loss: step = (21^0.9 - 19^0.9)/2 = 0.667 at 20 Mbit/s.
    let (mut own, mut window) = subflow(20.0);
    own.learn(Time::ZERO, 0.0);
    let reports = [report(20.0, 0.0, 0), report(19.0, 0.0, 1), report(21.0, 0.0, 2)];
    own.on_learned(Time::ZERO, &CONFIG, &reports, &mut window, 0.0);
    close(own.base, 20.0 + (libm::pow(21.0, 0.9) - libm::pow(19.0, 0.9)) / 2.0);
    assert!(matches!(own.phase, Phase::Learning { begun: 1, .. }));
}

#[test]
fn a_change_of_sign_ends_learning() {
    // At the capacity: less rate is worse, more rate loses: g1 > 0 > g2.
    let (mut own, mut window) = subflow(50.0);
    own.learn(Time::ZERO, 0.0);
    let reports = [report(50.0, 0.0, 0), report(47.5, 0.0, 1), report(52.5, 0.048, 2)];
    own.on_learned(Time::ZERO, &CONFIG, &reports, &mut window, 0.0);
    assert!(own.is_monitoring());
    // 50 Mbit/s * 0.1 s / 8 / 1000 = 625 packets.
    close(window.cwnd, 625.0);
}

/// A drop-tail link of 50 Mbit/s, `beta` = 1. Steps down are 15 times as large as steps up.
#[test]
fn learning_on_a_drop_tail_link() {
    let reports = |base: f64| {
        [(0, 1.0), (1, 0.95), (2, 1.05)].map(|(index, share)| {
            let rate = base * share;
            report(rate, (1.0 - 50.0 / rate).max(0.0), index)
        })
    };
    for (base, step) in [(20.0, Some(0.67)), (49.0, None), (50.0, None), (52.0, Some(-9.1)), (60.0, Some(-10.4))] {
        let (mut own, mut window) = subflow(base);
        own.learn(Time::ZERO, 0.0);
        own.on_learned(Time::ZERO, &CONFIG, &reports(base), &mut window, 0.0);
        let found = (!own.is_monitoring()).then_some(own.base - base);
        let as_sheet = match (found, step) {
            (Some(found), Some(step)) => (found - step).abs() < if step > 0.0 { 0.005 } else { 0.05 },
            (found, step) => found.is_none() && step.is_none(),
        };
        assert!(as_sheet, "{base}: {found:?} is not {step:?}");
    }
    // At 49 and 50 the gradient changes its sign: 0.61 below, -5.9 and -10.4 above.
    for (base, above) in [(49.0, -5.9), (50.0, -10.4)] {
        let [u0, u1, u2] = reports(base).map(|report| utility_of(&report, 0.0));
        let (g1, g2) = ((u0 - u1) / (0.05 * base), (u2 - u0) / (0.05 * base));
        assert!((g1 - 0.61).abs() < 0.005 && (g2 - above).abs() < 0.05, "{g1} {g2}");
    }
}

/// The paper's models of a link: loss `1 - exp(-X/B)` (eq. 11) and RTT gradient `T - exp(-(X + R2)/R1)` (eq. 12).
fn modelled(own: f64, others: f64) -> f64 {
    let load = own + others;
    let (loss, slope) = (1.0 - libm::exp(-load / 50.0), 1.2 - libm::exp(-(load - 1.0) / 20.0));
    utility(own, loss, slope, others)
}

/// First and second derivative by the own rate, numerically.
fn derivatives(own: f64, others: f64) -> (f64, f64) {
    let h = 1e-3;
    let [below, here, above] = [own - h, own, own + h].map(|rate| modelled(rate, others));
    ((above - below) / (2.0 * h), (above - 2.0 * here + below) / (h * h))
}

#[test]
fn equations_13_to_16() {
    // B = 50, T = 1.2, R1 = 20, R2 = -1. Equation 13 with x = 3.1 and others of 7.7; 14 is its derivative; 16 is 13 for one alone.
    let printed = |x: f64, load: f64| {
        let (loss, slope) = (libm::exp(-load / 50.0), libm::exp(-(load - 1.0) / 20.0));
        let first = A * libm::pow(x, A - 1.0) + (B - B * x / 50.0) * loss + (C - C * x / 20.0) * slope - B - C * 1.2;
        let second = A * (A - 1.0) * libm::pow(x, A - 2.0)
            + (B * x / 2500.0 - 2.0 * B / 50.0) * loss
            + (C * x / 400.0 - 2.0 * C / 20.0) * slope;
        (first, second)
    };
    for (own, others) in [(3.1, 7.7), (10.0, 0.0), (40.0, 5.0)] {
        let (found, wanted) = (derivatives(own, others), printed(own, own + others));
        assert!((found.0 - wanted.0).abs() < 1e-6 && (found.1 - wanted.1).abs() < 1e-6, "{found:?} {wanted:?}");
    }
}

/// Equation 17 has the utility concave everywhere. It is not, beyond a load of about 2 B.
#[test]
fn equation_17_holds_up_to_a_loss_of_six_sevenths() {
    for own in [1.0, 10.0, 50.0, 90.0] {
        assert!(derivatives(own, 0.0).1 < 0.0, "{own}");
    }
    assert!((derivatives(120.0, 0.0).1 - 0.008).abs() < 0.0005);
}

#[test]
fn steps_are_at_most_half_of_the_rate() {
    let (mut own, mut window) = subflow(60.0);
    own.learn(Time::ZERO, 0.0);
    // Step (u2 - u1)/6 would be about -36.
    let reports = [report(60.0, 0.3, 0), report(57.0, 0.1, 1), report(63.0, 0.4, 2)];
    own.on_learned(Time::ZERO, &CONFIG, &reports, &mut window, 0.0);
    close(own.base, 30.0);
}

#[test]
fn slow_start_doubles_every_round_trip_before_results_are_in() {
    let (mut own, _) = subflow(4.0);
    own.start(Time::ZERO, 0.0);
    let mut packet = 0;
    // 5 packets over 100 ms end an interval.
    let mut round = |own: &mut Subflow, from_ms: u64, held: bool| {
        for at in 0..5 {
            let now = Time::from_millis(from_ms + 25 * at);
            own.monitor.on_sent(now, PacketNumber(packet), Bytes::new(1000), held);
            packet += 1;
            own.held |= held;
            own.advance(now, &CONFIG);
        }
    };
    round(&mut own, 0, false);
    close(own.rate, 8.0);
    round(&mut own, 100, false);
    close(own.rate, 16.0);
    // The application had nothing to send: the same rate again.
    round(&mut own, 200, true);
    close(own.rate, 16.0);
    round(&mut own, 300, false);
    close(own.rate, 32.0);
}

#[test]
fn nothing_doubles_before_the_first_round_trip_is_over() {
    let (mut own, _) = subflow(4.0);
    own.srtt = None;
    own.start(Time::ZERO, 0.0);
    let send = |own: &mut Subflow, packet: u64| {
        let now = Time::from_millis(25 * packet);
        own.monitor.on_sent(now, PacketNumber(packet), Bytes::new(1000), false);
        own.advance(now, &CONFIG);
        (own.rate, own.monitor.next_timer().is_some_and(|at| at <= now))
    };
    for packet in 0..24 {
        assert_eq!(send(&mut own, packet), (4.0, false));
    }
    // 600 ms later the first packet is acknowledged.
    own.srtt = Some(Duration::from_millis(600));
    own.monitor.retime(own.rtt());
    close(send(&mut own, 24).0, 8.0);
}

#[test]
fn slow_start_ends_when_utility_falls() {
    let (mut own, mut window) = subflow(4.0);
    own.epoch = 1;
    own.on_report(Time::ZERO, &CONFIG, &report(4.0, 0.0, 0), &mut window, 0.0);
    own.on_report(Time::ZERO, &CONFIG, &report(8.0, 0.0, 0), &mut window, 0.0);
    assert!(matches!(own.phase, Phase::SlowStart { .. }));
    // 16^0.9 - 11 * 16 * 0.3 < 8^0.9: back to 8, although 32 is being tried by now.
    own.base = 32.0;
    own.on_report(Time::ZERO, &CONFIG, &report(16.0, 0.3, 0), &mut window, 0.0);
    close(own.base, 8.0);
    assert!(matches!(own.phase, Phase::Learning { .. }));
    assert_eq!(own.epoch, 2);
}

#[test]
fn an_overload_in_the_first_interval_of_slow_start_is_no_growth() {
    for (loss, base) in [(0.31, 2.0), (0.29, 8.0)] {
        // 8 Mbit/s are being tried when the result of 4 comes.
        let (mut own, mut window) = subflow(8.0);
        own.epoch = 1;
        let first = Report { packets: 30, ..report(4.0, loss, 0) };
        own.on_report(Time::ZERO, &CONFIG, &first, &mut window, 0.0);
        close(own.base, base);
    }
}

#[test]
fn slow_start_repeats_what_the_sender_could_not_fill() {
    let (mut own, mut window) = subflow(16.0);
    own.epoch = 1;
    let mut short = report(8.0, 0.0, 0);
    short.sent = Bytes::new(1000);
    for epoch in [2, 3] {
        own.on_report(Time::ZERO, &CONFIG, &short, &mut window, 0.0);
        close(own.base, 8.0);
        assert_eq!(own.epoch, epoch);
        assert!(matches!(own.phase, Phase::SlowStart { .. }));
    }
    own.on_report(Time::ZERO, &CONFIG, &short, &mut window, 0.0);
    close(own.base, 4.0);
    assert!(matches!(own.phase, Phase::Learning { .. }));
}

#[test]
fn centroids() {
    // Loss constant; RTT 0.1 in one period, 0.2 in the next: 1. Both moved: sqrt 2.
    let mut records = [(0.0, 0.1), (0.0, 0.1), (0.0, 0.2), (0.0, 0.2)];
    close(centroid_distance(&records, false), 1.0);
    records[2].0 = 0.1;
    records[3].0 = 0.1;
    close(centroid_distance(&records, false), libm::sqrt(2.0));
    // (0, 1) and (0, 1) in both periods: no distance; all equal: none either.
    close(centroid_distance(&[(0.0, 0.1), (0.0, 0.2), (0.0, 0.1), (0.0, 0.2)], false), 0.0);
    close(centroid_distance(&[(0.0, 0.1); 4], false), 0.0);
    // Jitter of microseconds, with and without the guard.
    let jitter = [(0.0, 0.1), (0.0, 0.1), (0.0, 0.100_001), (0.0, 0.100_001)];
    close(centroid_distance(&jitter, false), 1.0);
    close(centroid_distance(&jitter, true), 0.0);
    let few = [(0.0, 0.1), (0.0, 0.1), (0.0005, 0.1), (0.0005, 0.1)];
    close(centroid_distance(&few, false), 1.0);
    close(centroid_distance(&few, true), 0.0);
}

#[test]
fn monitoring_ends_when_the_network_changes() {
    let (mut own, mut window) = subflow(8.0);
    own.phase = Phase::Monitoring;
    own.epoch = 1;
    window.cwnd = 100.0;
    for index in 0..20 {
        let mut calm = report(0.0, 0.0, 0);
        calm.rtt = Some(0.1 + 0.001 * f64::from(index % 2));
        own.on_report(Time::ZERO, &CONFIG, &calm, &mut window, 0.0);
        assert!(own.is_monitoring());
    }
    for _ in 0..5 {
        let mut changed = report(0.0, 0.0, 0);
        changed.rtt = Some(0.2);
        own.on_report(Time::ZERO, &CONFIG, &changed, &mut window, 0.0);
    }
    // 100 packets of 1000 bytes per 0.1 s = 8 Mbit/s.
    assert!(matches!(own.phase, Phase::Learning { .. }));
    close(own.base, 8.0);
}

#[test]
fn learning_keeps_a_packet_a_round_trip() {
    let (mut own, _) = subflow(0.001);
    own.learn(Time::ZERO, 0.0);
    // 8000 bits in 100 ms.
    close(own.base, 0.08);
}

#[test]
fn a_timeout_halves_what_the_window_was_worth() {
    let (mut own, mut window) = subflow(1.0);
    own.phase = Phase::Monitoring;
    window.cwnd = 100.0;
    own.on_timeout(&window);
    close(own.base, 4.0);
}

#[test]
fn others_are_all_but_the_own_and_who_has_left_asks_for_no_time() {
    let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
    let mut cc = MpOl::new(CONFIG);
    let view = View { subflows: vec![SubflowView::new(SubflowId(0), Bytes::new(1000))] };
    for (id, cwnd) in [(0, 100.0), (1, 50.0)] {
        cc.add_subflow(Time::ZERO, SubflowId(id), init);
        *cc.windows.get_mut(SubflowId(id)).unwrap() = Window { rtt: 0.1, ..Window::new(1000.0, cwnd, None) };
    }
    // 50 packets of 8000 bits in 100 ms.
    close(cc.others(SubflowId(0)), 4.0);
    let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
    cc.on_event(Time::ZERO, SubflowId(0), &sent, &view);
    assert!(cc.next_timer().is_some());
    cc.remove_subflow(Time::ZERO, SubflowId(0));
    assert_eq!(cc.next_timer(), None);
}

#[test]
fn what_losses_leave_while_monitoring() {
    let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
    // LIA: two packets of a lone subflow, one where there are several.
    for (subflows, least) in [(1, 2.0), (2, 1.0)] {
        let mut cc = MpOl::new(CONFIG);
        let views = (0..subflows).map(|id| SubflowView::new(SubflowId(id), Bytes::new(1000)));
        let view = View { subflows: views.collect() };
        for id in (0..subflows).map(SubflowId) {
            cc.add_subflow(Time::ZERO, id, init);
            cc.subflows[id.index()].as_mut().unwrap().phase = Phase::Monitoring;
            *cc.windows.get_mut(id).unwrap() = Window { rtt: 0.1, ..Window::new(1000.0, 40.0, None) };
        }
        for _ in 0..12 {
            cc.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &view);
        }
        close(cc.windows.get(SubflowId(0)).unwrap().cwnd, least);
    }
}

#[test]
fn what_loses_heavily_is_too_fast_even_if_held_back() {
    let held = |rate, loss| Report { packets: 30, app_limited: true, ..report(rate, loss, 0) };
    let (mut own, mut window) = subflow(20.0);
    own.learn(Time::ZERO, 0.0);
    own.on_report(Time::ZERO, &CONFIG, &held(20.0, 0.29), &mut window, 0.0);
    close(own.base, 20.0);
    own.on_report(Time::ZERO, &CONFIG, &held(20.0, 0.31), &mut window, 0.0);
    close(own.base, 10.0);
    assert!(matches!(own.phase, Phase::Learning { .. }));
    let (mut own, mut window) = subflow(20.0);
    own.start(Time::ZERO, 0.0);
    own.on_report(Time::ZERO, &CONFIG, &held(20.0, 0.29), &mut window, 0.0);
    assert!(matches!(own.phase, Phase::SlowStart { .. }));
    own.on_report(Time::ZERO, &CONFIG, &held(20.0, 0.31), &mut window, 0.0);
    assert!(matches!(own.phase, Phase::Learning { .. }));
    close(own.base, 10.0);
}
