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
        packets: 10,
        sent: Rate::from_mbps(rate) * span,
        loss,
        slope: 0.0,
        rtt: Some(0.1),
        app_limited: false,
    }
}

fn subflow(base: f64) -> (Subflow, Window) {
    let init = SubflowInit { mss: Bytes::new(1000), initial_window: Bytes::new(10_000) };
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
