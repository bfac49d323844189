//! Connections that start, and subflows that join, at times of the seed's.

use std::path::Path;

use manypath_sim::{Report, run};

fn simulate(more: &str, seed: u64) -> Report {
    let text = format!(
        "duration = \"4s\"\nwarmup = \"1s\"\nsample = \"100ms\"\ntopology = \"two-links\"\n\
         [[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n{more}\n"
    );
    let scenario = manypath_scenario::parse(&text, "joins.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, seed).unwrap()
}

#[test]
fn a_subflow_sends_from_when_it_joins() {
    for transport in ["quic", "tcp"] {
        let report = simulate(&format!("transport = \"{transport}\"\njoin-after = \"2450ms\""), 1);
        let series = report.series.unwrap();
        let [first, second] = series.connections[0].subflows.as_slice() else { panic!("two subflows") };
        // Samples are at 100 ms, 200 ms, ...: 24 come before it joins.
        assert!(first.sending_bps[0] > 0.0);
        assert!(second.sending_bps[..24].iter().all(|rate| rate.abs() < 1.0), "{:?}", second.sending_bps);
        assert!(second.srtt_s[..24].iter().all(|srtt| srtt.is_nan()));
        assert!(second.sending_bps[24] > 0.0 && second.srtt_s[25] > 0.03, "{:?}", second.srtt_s);
        let summary = &report.connections[0].subflows[1];
        assert!(summary.sent_packets > 1000 && summary.delivered_bps > 1e6, "{summary:?}");
        // The connection goes from one link to two.
        let (before, after) = (series.connections[0].goodput_bps[20], series.connections[0].goodput_bps[39]);
        assert!(before < 100e6 && after > 150e6, "{before} {after}");
    }
}

#[test]
fn a_subflow_that_never_joins_is_reported_as_idle() {
    let report = simulate("join-after = \"1h\"", 1);
    let [first, second] = report.connections[0].subflows.as_slice() else { panic!("two subflows") };
    assert!(first.sent_packets > 0);
    assert_eq!((second.sent_packets, second.cwnd_bytes, second.srtt_s), (0, 0, None));
}

#[test]
fn seeds_differ_without_random_loss_where_starts_do() {
    assert_eq!(simulate("", 1).goodput_bps.to_bits(), simulate("", 2).goodput_bps.to_bits());
    for more in ["start-spread = \"100ms\"", "join-spread = \"100ms\""] {
        let reports = [1, 2].map(|seed| simulate(more, seed).to_json());
        assert_ne!(reports[0].replace("\"seed\": 1", ""), reports[1].replace("\"seed\": 2", ""), "{more}");
        assert_eq!(reports[0], simulate(more, 1).to_json());
    }
}

/// As a handshake does; else TCP's first timeout, three round trips of it, would come before the first acknowledgement.
#[test]
fn a_late_comer_knows_what_waits_before_it() {
    let text = "duration = \"20s\"\n[[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\nqueue = \"9999packets\"\n\
                [[connection]]\nname = \"bulk\"\ncc = \"reno\"\ntransport = \"tcp\"\nreceive-buffer = \"1MB\"\n\
                path = [{ route = [\"a\"] }]\n\
                [[connection]]\nname = \"late\"\ncc = \"reno\"\ntransport = \"tcp\"\nstart = \"10s\"\nfile = \"12kB\"\n\
                path = [{ route = [\"a\"] }]\n";
    let scenario = manypath_scenario::parse(text, "late.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    let report = run(&scenario, 1).unwrap();
    let late = &report.connections[1];
    assert!(late.files[0].completion_s > 0.7, "a queue of some 800 ms: {:?}", late.files);
    assert_eq!(late.retransmitted_bytes, 0);
}

/// Nothing of the first flight arrives. Round trips of 140 ms, there and back, over two links: QUIC probes after three of them and
/// what its receiver may wait, TCP after two and 2 ms, its timer goes off after three, and that of ns-3's TCP after a second.
#[test]
fn the_handshake_says_when_a_first_flight_is_lost() {
    let completion = |transport: &str| {
        let text = format!(
            "duration = \"20s\"\n[[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\nback = {{ delay = \"70ms\" }}\n\
             queue = \"99packets\"\nloss = \"100%\"\nschedule = [{{ at = \"100ms\", loss = \"0%\" }}]\n\
             [[link]]\nname = \"b\"\nrate = \"10Mbit\"\ndelay = \"30ms\"\nqueue = \"99packets\"\n\
             [[connection]]\nname = \"file\"\ncc = \"reno\"\nfile = \"3kB\"\n{transport}\npath = [{{ route = [\"a\", \"b\"] }}]\n"
        );
        let scenario = manypath_scenario::parse(&text, "lost.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, 1).unwrap().connections[0].files[0].completion_s
    };
    let quic = completion("transport = \"quic\"");
    let linux = completion("transport = \"tcp\"");
    let sack = completion("transport = \"tcp\"\nrecovery = \"sack\"");
    let ns3 = completion("transport = \"tcp\"\nrecovery = \"new-reno-steady\"");
    let first = [("quic", quic, 0.42 + 0.025), ("tcp", linux, 0.28 + 0.002), ("sack", sack, 0.42), ("ns-3", ns3, 1.0)];
    for (transport, found, timeout) in first {
        // Later, by a round trip and the way there, and what packets need to leave.
        let rest = found - timeout - 0.14 - 0.04;
        assert!((0.0..0.02).contains(&rest), "{transport}: {found} s");
    }
}

/// LISA (draft-barik-mptcp-lisa-01 s3.1): a subflow that joins during slow start takes its initial window from the others'.
#[test]
fn with_lisa_a_subflow_that_joins_takes_its_window_from_the_one_in_slow_start() {
    let windows = |cc: &str, join: &str| {
        let text = format!(
            "duration = \"1s\"\nsample = \"10ms\"\n\
             [[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"30ms\"\nqueue = \"50packets\"\n\
             [[connection]]\nname = \"mp\"\ncc = \"{cc}\"\ntransport = \"tcp\"\njoin-after = \"{join}\"\n\
             path = [{{ route = [\"a\"] }}, {{ route = [\"a\"] }}]\n"
        );
        let scenario = manypath_scenario::parse(&text, "lisa.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
        let series = run(&scenario, 1).unwrap().series.unwrap();
        let packets = |index: usize| -> Vec<f64> {
            series.connections[0].subflows[index].cwnd_bytes.iter().map(|bytes| *bytes as f64 / 1448.0).collect()
        };
        [packets(0), packets(1)]
    };
    // It joins after sample 14; the other's window is looked at again with its next acknowledgement.
    let [lia, lisa] = ["lia", "lisa"].map(|cc| windows(cc, "155ms"));
    let least_after = |own: &[f64]| own[15..25].iter().copied().fold(f64::INFINITY, f64::min);
    assert!(lia[0][14] > 20.0 && (lia[0][14] - lisa[0][14]).abs() < 1e-9, "{lia:?}");
    assert!(least_after(&lia[0]) >= lia[0][14] && least_after(&lisa[0]) < lisa[0][14], "{:?}", lisa[0]);
    // All that it has of its own is what the other gave.
    assert!((lisa[1][15] - 10.0).abs() < 0.5, "{}", lisa[1][15]);
    // Where both begin at once there is nothing to share.
    assert_eq!(windows("lia", "0ms"), windows("lisa", "0ms"));
}
