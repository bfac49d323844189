//! Subflows as TCP has them: recovery, the laws of its throughput, and what a connection makes of them.

use std::path::Path;

use manypath_scenario::Scenario;
use manypath_sim::{Report, run};

fn scenario(text: &str) -> Scenario {
    manypath_scenario::parse(text, "tcp.toml", Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(text: &str, seed: u64) -> Report {
    run(&scenario(text), seed).unwrap()
}

fn link(name: &str, rate: &str, delay: &str, queue: &str, more: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n")
}

/// A TCP connection over these links, one a path.
fn tcp(name: &str, cc: &str, links: &[&str], more: &str) -> String {
    let paths: Vec<String> = links.iter().map(|link| format!("{{ route = [\"{link}\"] }}")).collect();
    let paths = paths.join(", ");
    format!("[[connection]]\nname = \"{name}\"\ncc = \"{cc}\"\ntransport = \"tcp\"\npath = [{paths}]\n{more}\n")
}

/// As in tests/trust.rs, with TCP's recovery in place of RFC 9002: 1.3098 / sqrt(p) packets a round trip.
#[test]
fn reno_follows_the_square_root_law() {
    for (loss, p, seconds, recovery) in [
        ("0.01%", 1e-4_f64, 600, "rack"),
        ("0.1%", 1e-3, 500, "sack"),
        ("0.1%", 1e-3, 500, "rack"),
        ("1%", 1e-2, 300, "sack"),
    ] {
        let header = format!("duration = \"{seconds}s\"\nwarmup = \"10s\"\n");
        let network = link("a", "10Gbit", "10ms", "10000packets", &format!("loss = \"{loss}\""));
        let more = format!("ack-every = 1\nrecovery = \"{recovery}\"");
        let report = simulate(&(header + &network + &tcp("reno", "reno", &["a"], &more)), 7);
        let round_trips = (report.duration_s - report.warmup_s) / 0.020;
        let found = report.connections[0].subflows[0].sent_packets as f64 / round_trips;
        let ratio = found * p.sqrt() / 1.3098;
        assert!((ratio - 1.0).abs() < 0.1, "p = {p}: {found:.1} packets a round trip, ratio {ratio:.3}");
    }
}

#[test]
fn two_flows_share_equally() {
    let mut shares = Vec::new();
    for seed in 0..6_u64 {
        let network = link("a", "20Mbit", "10ms", "50packets", "loss = \"0.001%\"");
        let late = format!("start = \"{}ms\"", 1 + 137 * seed);
        let flows = tcp("x", "reno", &["a"], "") + &tcp("y", "reno", &["a"], &late);
        let report = simulate(&format!("duration = \"120s\"\nwarmup = \"20s\"\n{network}{flows}"), seed);
        shares.push(report.connections[0].goodput_bps / report.goodput_bps);
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 0.5).abs() < 0.025, "{mean}: {shares:?}");
}

/// RFC 5681 s3.1: below the threshold windows double each round trip, above it they grow by a packet.
#[test]
fn the_first_slow_start_ends_at_the_threshold_of_the_scenario() {
    let window = |more: &str| {
        let network = link("a", "100Mbit", "50ms", "1000packets", "");
        let report = simulate(&format!("duration = \"1s\"\n{network}{}", tcp("one", "reno", &["a"], more)), 1);
        report.connections[0].subflows[0].cwnd_bytes
    };
    let (free, bounded) = (window(""), window("initial-ssthresh = 20"));
    assert!(bounded < 35 * 1500 && free > 4 * bounded, "{bounded} and {free} bytes");
}

/// A file over a link that loses everything for a while: several losses in one window.
fn with_losses(recovery: &str, loss_ms: u64) -> Report {
    let until = 300 + loss_ms;
    let schedule =
        format!("schedule = [{{ at = \"300ms\", loss = \"40%\" }}, {{ at = \"{until}ms\", loss = \"0%\" }}]");
    let network = link("a", "20Mbit", "20ms", "200packets", &schedule);
    let flow = tcp("file", "reno", &["a"], &format!("file = \"3MB\"\nrecovery = \"{recovery}\""));
    simulate(&format!("duration = \"60s\"\n{network}{flow}"), 3)
}

#[test]
fn sack_repairs_many_losses_in_one_round_trip_and_new_reno_one_in_each() {
    let (sack, new_reno) = (with_losses("sack", 10), with_losses("new-reno", 10));
    let completion = |report: &Report| report.connections[0].files[0].completion_s;
    let lost = |report: &Report| report.connections[0].subflows[0].lost_packets;
    assert!(lost(&sack) >= 5, "several losses in one window: {}", lost(&sack));
    assert!(completion(&sack) + 0.1 < completion(&new_reno), "{} {}", completion(&sack), completion(&new_reno));
}

/// MPCC-loss lives with a loss of some per cent, so that much of what it sends again is lost again: without timeouts this
/// costs nothing. The fair rate is that of the link, to each.
#[test]
fn what_is_lost_again_does_not_stall_a_sender_that_lives_with_loss() {
    let network = link("a", "50Mbit", "15ms", "188kB", "") + &link("b", "50Mbit", "15ms", "188kB", "");
    let buffers = "scheduler = \"rate-based\"\nsend-buffer = \"300MB\"\nreceive-buffer = \"300MB\"";
    let flows = tcp("two", "mpcc-loss", &["a", "b"], buffers) + &tcp("one", "mpcc-loss", &["b"], buffers);
    let report = simulate(&format!("duration = \"60s\"\nwarmup = \"30s\"\n{network}{flows}"), 1);
    for connection in &report.connections {
        assert!(connection.goodput_bps > 35e6, "{} {}", connection.name, connection.goodput_bps);
    }
}

/// MPCC s5.2 tries a slow path at its rate and 5% of the connection's, and the connection waits for what is lost there.
#[test]
fn a_slow_path_beside_a_fast_one_costs_less_where_it_is_probed_near_its_rate() {
    let network = link("fast", "100Mbit", "15ms", "375kB", "") + &link("slow", "1Mbit", "150ms", "100kB", "");
    let goodput = |low: &str, seed: u64| {
        let cc = format!("mpcc-latency:low={low}");
        let flow = tcp("mp", &cc, &["fast", "slow"], "send-buffer = \"16MiB\"\nreceive-buffer = \"16MiB\"");
        simulate(&format!("duration = \"30s\"\nwarmup = \"10s\"\n{network}{flow}"), seed).goodput_bps
    };
    for seed in 1..4 {
        let (near, least) = (goodput("near", seed), goodput("least", seed));
        assert!(near > 1.5 * least, "seed {seed}: {near} and {least} bit/s");
    }
}

/// Where the higher rate of a round is too much for the path, the subflow stays that far below what the path carries.
#[test]
fn a_slow_path_beside_a_fast_one_is_used_where_it_is_probed_near_its_rate() {
    let network = link("fast", "160Mbit", "10ms", "400kB", "") + &link("slow", "24Mbit", "20ms", "120kB", "");
    let flow = tcp("mp", "mpcc-latency:low=near", &["fast", "slow"], "");
    for seed in 1..4 {
        let report = simulate(&format!("duration = \"20s\"\nwarmup = \"5s\"\n{network}{flow}"), seed);
        let slow = report.connections[0].subflows[1].delivered_bps;
        assert!(slow > 0.8 * 24e6, "seed {seed}: {slow} bit/s");
    }
}

#[test]
fn timeouts_last_as_long_as_their_minimum() {
    // Everything is lost for 100 ms: no acknowledgement comes back, and only the timer helps.
    let completion = |min_rto: &str| {
        let network = link(
            "a",
            "20Mbit",
            "10ms",
            "200packets",
            "schedule = [{ at = \"50ms\", loss = \"100%\" }, { at = \"150ms\", loss = \"0%\" }]",
        );
        let flow = tcp("file", "reno", &["a"], &format!("file = \"2MB\"\nmin-rto = \"{min_rto}\""));
        simulate(&format!("duration = \"60s\"\n{network}{flow}"), 1).connections[0].files[0].completion_s
    };
    let (short, long) = (completion("200ms"), completion("1s"));
    assert!((long - short - 0.8).abs() < 0.05, "{short} {long}");
}

#[test]
fn a_subflow_delivers_in_order_and_its_losses_stay_on_it() {
    let network = link("a", "10Mbit", "10ms", "100packets", "loss = \"1%\"")
        + &link("b", "10Mbit", "30ms", "100packets", "loss = \"1%\"");
    let flow = tcp("mp", "lia", &["a", "b"], "reinject-after = 0");
    let report = simulate(&format!("duration = \"60s\"\nsample = \"1s\"\n{network}{flow}"), 2);
    let connection = &report.connections[0];
    assert!(connection.subflows.iter().all(|subflow| subflow.lost_packets > 50), "{:?}", connection.subflows);
    // What was lost in flight was sent again where it was lost, once each, but for spurious timeouts; nothing came twice.
    assert_eq!(connection.duplicated_bytes, 0);
    assert_eq!(connection.received_again_bytes, 0);
    let lost: u64 = report.links.iter().map(|link| link.dropped_random + link.dropped_queue_full).sum();
    let declared: u64 = connection.subflows.iter().map(|subflow| subflow.lost_packets).sum();
    // The last losses of the run are not known yet, and what a timeout gives up is not declared.
    assert!(declared.abs_diff(lost) <= lost / 10, "{declared} declared, {lost} lost");
}

/// Without a loss all that is sent again arrives again.
#[test]
fn what_a_subflow_receives_twice_is_counted() {
    let network = link("a", "20Mbit", "20ms", "200packets", "jitter = \"20ms\"\nreorder = true");
    for recovery in ["rack", "sack", "new-reno", "new-reno-steady"] {
        let flow = tcp("one", "cubic", &["a"], &format!("file = \"2MB\"\nrecovery = \"{recovery}\""));
        let report = simulate(&format!("duration = \"60s\"\n{network}{flow}"), 1);
        let connection = &report.connections[0];
        assert_eq!(report.links[0].dropped_queue_full, 0);
        assert!(connection.retransmitted_bytes > 0, "{recovery}");
        assert_eq!(connection.received_again_bytes, connection.retransmitted_bytes, "{recovery}");
    }
}

/// STMS s2.2: what waits for data of the slow path is acknowledged when that has come, many segments at once, and what they
/// clock out overflows the fast path's short queue.
#[test]
fn acknowledgements_by_the_window_break_the_fast_paths_clock() {
    let lossy = "loss = \"0.01%\"";
    let network = link("fast", "30Mbit", "10ms", "30kB", lossy) + &link("slow", "30Mbit", "100ms", "500ms", lossy);
    let fast = |rule: &str| {
        let flow = tcp("mp", "cubic:hystart=classic", &["fast", "slow"], &format!("ack-rule = \"{rule}\""));
        let report = simulate(&format!("duration = \"60s\"\nwarmup = \"20s\"\n{network}{flow}"), 1);
        let subflow = &report.connections[0].subflows[0];
        (subflow.delivered_bps / 1e6, subflow.lost_packets)
    };
    let ((clocked, few), (bursts, many)) = (fast("count"), fast("window"));
    assert!(clocked > 27.0 && bursts < 0.8 * clocked, "{clocked} and {bursts} Mbit/s");
    assert!(many > 5 * few, "{few} and {many} lost");
}

/// Nothing waits for another subflow's data where there is none: a lone TCP acknowledges alike, whatever the rule.
#[test]
fn a_lone_subflow_acknowledges_alike_by_either_rule() {
    let network = link("a", "10Mbit", "10ms", "30packets", "loss = \"1%\"");
    let report = |rule: &str| {
        let flow = tcp("one", "cubic", &["a"], &format!("ack-rule = \"{rule}\""));
        format!("{:?}", simulate(&format!("duration = \"20s\"\nsample = \"1s\"\n{network}{flow}"), 3))
    };
    assert!(report("count") == report("window"));
}

#[test]
fn a_dead_subflow_does_not_hold_up_the_connection() {
    let network = link("a", "10Mbit", "10ms", "100packets", "schedule = [{ at = \"2s\", loss = \"100%\" }]")
        + &link("b", "10Mbit", "30ms", "100packets", "");
    let completion = |more: &str| {
        let flow = tcp("mp", "lia", &["a", "b"], &format!("file = \"20MB\"\n{more}"));
        let report = simulate(&format!("duration = \"120s\"\n{network}{flow}"), 2);
        report.connections[0].files.first().map(|file| file.completion_s)
    };
    let rescued = completion("").expect("the other subflow takes over");
    assert!(rescued < 20.0, "{rescued}");
    assert_eq!(completion("reinject-after = 0"), None, "without reinjection what the dead subflow holds never arrives");
}

/// Much is lost just before the outage: what arrived behind the gaps waits in the receiver's end of the subflow, and only the
/// other subflow can bring it to the application.
#[test]
fn a_subflow_that_dies_in_recovery_does_not_hold_up_the_connection() {
    let outage = "schedule = [{ at = \"9970ms\", loss = \"20%\" }, { at = \"10s\", rate = \"0bit\" }]";
    let network = link("a", "30Mbit", "10ms", "60packets", outage) + &link("b", "15Mbit", "40ms", "100packets", "");
    for recovery in ["sack", "new-reno"] {
        let more = format!("send-buffer = \"1MiB\"\nreceive-buffer = \"1MiB\"\nrecovery = \"{recovery}\"");
        let flow = tcp("mp", "olia", &["a", "b"], &more);
        let report = simulate(&format!("duration = \"20s\"\nwarmup = \"11s\"\n{network}{flow}"), 2);
        assert!(report.goodput_bps > 10e6, "{recovery}: {}", report.goodput_bps);
    }
}

#[test]
fn small_host_buffers_bound_what_is_under_way() {
    let network =
        link("a", "30Mbit", "10ms", "100packets", "") + &link("b", "30Mbit", "100ms", "1000packets", "loss = \"0.1%\"");
    let flow = tcp("mp", "cubic", &["a", "b"], "send-buffer = \"256kB\"\nreceive-buffer = \"256kB\"");
    let report = simulate(&format!("duration = \"30s\"\nsample = \"1s\"\n{network}{flow}"), 2);
    let measures = report.connections[0].measures.unwrap();
    let held = measures.receive_buffer_bytes.max.unwrap();
    assert!(held > 100e3 && held <= 256e3, "{held}");
    assert!(measures.send_buffer_bytes.max.unwrap() <= 256e3);
    assert!(report.goodput_bps > 5e6, "{}", report.goodput_bps);
}

/// The window moves on past what the other subflow delivered, while a segment lost again and again keeps copies waiting.
#[test]
fn copies_that_wait_on_a_subflow_take_no_more_than_its_receive_buffer() {
    let network =
        link("a", "50Mbit", "10ms", "100packets", "") + &link("b", "10Mbit", "50ms", "1000packets", "loss = \"5%\"");
    let buffers = "scheduler = \"redundant\"\nrecovery = \"sack\"\nsend-buffer = \"100kB\"\nreceive-buffer = \"100kB\"";
    let report = simulate(
        &format!("duration = \"60s\"\nsample = \"1s\"\n{network}{}", tcp("mp", "bbr", &["a", "b"], buffers)),
        1,
    );
    let held = report.connections[0].measures.unwrap().receive_buffer_bytes.max.unwrap();
    // Each subflow has as much as the connection.
    assert!(held > 100e3 && held <= 300e3, "{held}");
}

#[test]
fn ten_more_seconds_cost_no_allocations() {
    let network = link("a", "100Mbit", "15ms", "250packets", "loss = \"0.01%\"")
        + &link("b", "100Mbit", "15ms", "250packets", "loss = \"0.01%\"");
    let mut scenario = scenario(&format!("duration = \"1s\"\n{network}{}", tcp("mp", "lia", &["a", "b"], "")));
    let mut cost = |seconds| {
        scenario.duration = manypath_core::Duration::from_secs(seconds);
        let mut packets = 0;
        let counts = allocation_counter::measure(|| {
            packets = run(&scenario, 1).unwrap().connections[0].delivered_packets;
        });
        (packets, counts.count_total, counts.bytes_max)
    };
    let (short, long) = (cost(40), cost(50));
    assert!(long.0 - short.0 > 50_000, "{short:?} {long:?}");
    // Rings that grow to a new largest size now and then are not a cost per packet.
    assert!(long.1 - short.1 < 20, "{short:?} {long:?}");
    assert!(long.2 < 32 << 20 && long.2 <= short.2 + (1 << 20), "{short:?} {long:?}");
}
