//! Whether results can be trusted: laws that theory and standards state, against what runs find.

use std::path::Path;

use manypath_scenario::Scenario;
use manypath_sim::{Report, run};

fn scenario(text: &str) -> Scenario {
    manypath_scenario::parse(text, "trust.toml", Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(text: &str, seed: u64) -> Report {
    run(&scenario(text), seed).unwrap()
}

/// A connection named `name` over link `a`.
fn single(name: &str, cc: &str, more: &str) -> String {
    format!("[[connection]]\nname = \"{name}\"\ncc = \"{cc}\"\npath = [{{ route = [\"a\"] }}]\n{more}\n")
}

/// Reno under random loss. Ott, Kemperman and Mathis ("The stationary behavior of ideal TCP congestion avoidance", 1996)
/// give 1.3098 / sqrt(p) packets a round trip for independent losses; 1.2247 is the constant of periodic ones.
fn packets_a_round_trip(loss: &str, seconds: u32) -> f64 {
    let link = format!(
        "duration = \"{seconds}s\"\nwarmup = \"10s\"\n[[link]]\nname = \"a\"\nrate = \"10Gbit\"\ndelay = \"10ms\"\n\
         queue = \"10000packets\"\nloss = \"{loss}\"\n"
    );
    let report = simulate(&(link + &single("reno", "reno", "ack-every = 1")), 7);
    let connection = &report.connections[0];
    let round_trips = (report.duration_s - report.warmup_s) / 0.020;
    connection.subflows[0].sent_packets as f64 / round_trips
}

#[test]
fn reno_follows_the_square_root_law() {
    for (loss, p, seconds) in [("0.01%", 1e-4_f64, 600), ("0.1%", 1e-3, 500), ("1%", 1e-2, 300)] {
        let expected = 1.3098 / p.sqrt();
        let found = packets_a_round_trip(loss, seconds);
        let ratio = found / expected;
        assert!((ratio - 1.0).abs() < 0.1, "p = {p}: {found:.1} packets, {expected:.1} expected, ratio {ratio:.3}");
    }
}

#[test]
fn cubic_follows_its_curve_after_a_loss() {
    let text = "duration = \"16s\"\nsample = \"100ms\"\n[[link]]\nname = \"a\"\nrate = \"1Gbit\"\ndelay = \"50ms\"\n\
                queue = \"100000packets\"\n\
                schedule = [{ at = \"600ms\", loss = \"1%\" }, { at = \"690ms\", loss = \"0%\" }]\n";
    let report =
        simulate(&(text.to_owned() + &single("cubic", "cubic", "receive-buffer = \"1GB\"\nsend-buffer = \"1GB\"")), 1);
    let series = &report.series.as_ref().unwrap();
    let mss = 1440.0;
    let windows: Vec<f64> =
        series.connections[0].subflows[0].cwnd_bytes.iter().map(|bytes| *bytes as f64 / mss).collect();
    let after = windows.windows(2).position(|pair| pair[1] < pair[0]).unwrap() + 1;
    // RFC 9438 s4.6: the window falls to 0.7 of what it was, which samples do not show.
    let w_max = windows[after] / 0.7;
    // RFC 9438 s4.2: K = cbrt(W_max (1 - beta) / C), W(t) = C (t - K)^3 + W_max; the window follows a round trip behind.
    let k = (w_max * 0.3 / 0.4).cbrt();
    let mut compared = 0;
    for (index, window) in windows.iter().enumerate().skip(after + 10) {
        let t = (index - after) as f64 * 0.1;
        let expected = 0.4 * (t - k).powi(3) + w_max;
        assert!(
            (window / expected - 1.0).abs() < 0.06,
            "at {t:.1} s: {window:.1}, {expected:.1} expected, w_max {w_max}"
        );
        compared += 1;
    }
    assert!(compared > 100);
}

const SLOW_LINK: &str = "duration = \"30s\"\nwarmup = \"100ms\"\nsample = \"1s\"\n[[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
                         queue = \"100packets\"\n";

#[test]
fn a_source_below_capacity_never_queues() {
    let report = simulate(&(SLOW_LINK.to_owned() + &single("steady", "reno", "rate = \"5Mbit\"")), 1);
    // The first packet follows a record that opens the connection; from then on nobody waits.
    assert!(report.links[0].queueing_mean_s.unwrap() < 1e-12, "{:?}", report.links[0]);
    assert!((report.goodput_bps / 5e6 - 1.0).abs() < 0.01, "{}", report.goodput_bps);
    let measures = report.connections[0].measures.unwrap();
    // 10 ms of propagation and 1500 B at 10 Mbit/s: 11.2 ms, to the nanosecond for every packet.
    assert!((measures.write_to_delivery_s.max.unwrap() - 0.0112).abs() < 2e-9, "{measures:?}");
    assert!(measures.out_of_order_delay_s.max.unwrap().abs() < 1e-12);
}

#[test]
fn a_link_keeps_the_order() {
    let report = simulate(&(SLOW_LINK.to_owned() + "jitter = \"5ms\"\n" + &single("one", "cubic", "")), 1);
    // Whatever is out of order waits for what was lost; without losses nothing does.
    let connection = &report.connections[0];
    assert!(connection.delivered_packets > 20_000);
    assert_eq!(connection.received_again_bytes, 0);
}

#[test]
fn random_losses_come_at_their_rate() {
    let report = simulate(&(SLOW_LINK.to_owned() + "loss = \"1%\"\n" + &single("one", "reno", "")), 3);
    let link = &report.links[0];
    let (n, p) = (link.offered_packets as f64, 0.01);
    let found = link.dropped_random as f64 / n;
    // Four standard deviations.
    assert!((found - p).abs() < 4.0 * (p * (1.0 - p) / n).sqrt(), "{found} of {n}");
}

#[test]
fn two_reno_flows_share_equally() {
    let mut shares = Vec::new();
    for seed in 0..10_u64 {
        let link = "duration = \"120s\"\nwarmup = \"20s\"\n[[link]]\nname = \"a\"\nrate = \"20Mbit\"\ndelay = \"10ms\"\n\
                    queue = \"50packets\"\nloss = \"0.001%\"\n";
        let late = format!("start = \"{}ms\"", 1 + 137 * seed);
        let report = simulate(&(link.to_owned() + &single("x", "reno", "") + &single("y", "reno", &late)), seed);
        shares.push(report.connections[0].goodput_bps / report.goodput_bps);
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 0.5).abs() < 0.025, "{mean}: {shares:?}");
}

#[test]
fn short_round_trips_win() {
    let text = "duration = \"200s\"\nwarmup = \"30s\"\n[[link]]\nname = \"a\"\nrate = \"20Mbit\"\ndelay = \"10ms\"\n\
                queue = \"40packets\"\n[[link]]\nname = \"far\"\nrate = \"1Gbit\"\ndelay = \"30ms\"\nqueue = \"1000packets\"\n";
    let near = single("near", "reno", "");
    let far =
        "[[connection]]\nname = \"far\"\ncc = \"reno\"\nstart = \"500ms\"\npath = [{ route = [\"far\", \"a\"] }]\n";
    let report = simulate(&(text.to_owned() + &near + far), 1);
    let ratio = report.connections[0].goodput_bps / report.connections[1].goodput_bps;
    // Propagation there and back, the mean queue that both wait in, and 0.6 ms of transmission.
    let waiting = report.links[0].queueing_mean_s.unwrap() + 0.0006;
    let exponent = ratio.ln() / ((0.080 + waiting) / (0.020 + waiting)).ln();
    // Lakshman and Madhow 1997: between the inverse (1) and, when losses are synchronised as here, the inverse square (2).
    assert!((0.9..2.1).contains(&exponent), "{ratio} in goodput, to the power of {exponent} in round trips");
}

#[test]
fn a_file_takes_as_long_as_the_link_needs() {
    let report = simulate(&(SLOW_LINK.to_owned() + &single("file", "cubic", "file = \"5MB\"")), 1);
    let file = report.connections[0].files[0];
    // 5 MB in packets of 1414 B of payload and 1500 B on the wire at 10 Mbit/s: 4.243 s, and slow start before that.
    assert!(file.bytes == 5_000_000 && (4.24..4.6).contains(&file.completion_s), "{file:?}");
}

#[test]
fn background_traffic_takes_its_share() {
    let source = "[[source]]\nname = \"noise\"\nroute = [\"a\"]\nrate = \"5Mbit\"\ntiming = \"poisson\"\n";
    let report = simulate(&(SLOW_LINK.to_owned() + &single("one", "reno", "") + source), 1);
    // What is left of 10 Mbit/s, less headers (1414 of 1500 bytes).
    assert!((4.0e6..4.8e6).contains(&report.goodput_bps), "{}", report.goodput_bps);
}

#[test]
fn marks_replace_losses_under_ecn() {
    let link = "ecn = \"20packets\"\n";
    let report = simulate(&(SLOW_LINK.to_owned() + link + &single("one", "reno", "ecn = true")), 1);
    // Slow start ends with a mark before the queue of 100 packets is full.
    assert!(report.links[0].marked > 0 && report.connections[0].subflows[0].lost_packets == 0, "{:?}", report.links[0]);
    assert!(report.goodput_bps > 8e6);
}

#[test]
fn only_packets_of_controllers_that_answer_marks_say_that_they_understand_them() {
    let link = "ecn = \"2packets\"\n";
    for algorithm in manypath_cc::algorithms() {
        let scenario = SLOW_LINK.to_owned() + link + &single("one", algorithm.name, "ecn = true");
        let marked = simulate(&scenario, 1).links[0].marked;
        let cc = manypath_cc::create(&manypath_core::AlgorithmSpec::named(algorithm.name), 1).unwrap();
        assert_eq!(marked > 0, cc.answers_marks(), "{}: {marked}", algorithm.name);
    }
}

#[test]
fn early_detection_drops_packets_of_a_controller_that_ignores_marks() {
    // RED marks what it would drop of those who do not understand.
    let red = "red = { min = \"5packets\", max = \"60packets\", max-probability = \"20%\", ecn = true }\n";
    let report = simulate(&(SLOW_LINK.to_owned() + red + &single("one", "mpcc-loss", "ecn = true")), 1);
    let lost = report.connections[0].subflows[0].lost_packets;
    assert!(report.links[0].marked == 0 && lost > 0, "{} marked, {lost} lost", report.links[0].marked);
}
