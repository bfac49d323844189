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
