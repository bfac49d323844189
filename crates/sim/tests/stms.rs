//! STMS in the setting of its paper's section 2.1, a lean part of what `--example stms` prints.

use std::path::Path;

use manypath_sim::{Report, run};

/// The setting with `reno`, host buffers of this size and more values replaced, for thirty seconds.
fn simulate(host: &str, more: &str) -> Report {
    let setting = include_str!("../examples/stms/stms.toml");
    let values = [
        "duration=30s".to_owned(),
        "connection.cc=reno".to_owned(),
        format!("connection.send-buffer={host}"),
        format!("connection.receive-buffer={host}"),
        more.to_owned(),
    ];
    let values: Vec<_> = values.iter().map(|value| value.parse().unwrap()).collect();
    run(&manypath_scenario::parse_with(setting, "stms.toml", Path::new("."), &values).unwrap(), 1).unwrap()
}

#[test]
fn stms_a_falls_back_to_the_fast_path_where_buffers_are_tiny_and_the_default_scheduler_does_not() {
    let fast = simulate("128kB", "connection.path=[{route=[\"fast\"]}]").goodput_bps;
    let stms = simulate("128kB", "connection.scheduler=stms-a").goodput_bps;
    let default = simulate("128kB", "connection.scheduler=minrtt-pr").goodput_bps;
    assert!(stms > 0.97 * fast && default < 0.97 * fast, "{stms} {default} {fast}");
}

#[test]
fn stms_a_causes_little_of_the_disorder_that_the_default_scheduler_causes() {
    let disorder = |scheduler: &str| {
        let report = simulate("1MB", scheduler);
        (report.connections[0].measures.unwrap().scheduling_delay_s.mean.unwrap(), report.goodput_bps)
    };
    let (default, default_bps) = disorder("connection.scheduler=minrtt-pr");
    let (stms, stms_bps) = disorder("connection.scheduler=stms-a");
    assert!(stms < default / 3.0 && stms_bps > default_bps, "{stms} {default} {stms_bps} {default_bps}");
}

/// So many paths of 10 Mbit/s with round trips from 20 to 200 ms, for twenty seconds.
fn over_paths(count: usize, scheduler: &str) -> Report {
    let mut text = "name = \"paths\"\nduration = \"20s\"\nwarmup = \"5s\"\n".to_owned();
    let mut routes = String::new();
    for (index, delay) in ["10ms", "30ms", "60ms", "100ms"].iter().take(count).enumerate() {
        text += &format!("[[link]]\nname = \"l{index}\"\nrate = \"10Mbit\"\ndelay = \"{delay}\"\nqueue = \"50ms\"\n");
        routes += &format!("{{ route = [\"l{index}\"] }}, ");
    }
    text += &format!(
        "[[connection]]\nname = \"mp\"\ncc = \"reno\"\nscheduler = \"{scheduler}\"\npath = [{routes}]\n\
         send-buffer = \"2MB\"\nreceive-buffer = \"2MB\"\n"
    );
    run(&manypath_scenario::parse(&text, "paths", Path::new(".")).unwrap(), 1).unwrap()
}

#[test]
fn three_and_four_paths_carry_nearly_all_that_their_links_do() {
    let alone = over_paths(1, "stms-a").goodput_bps;
    for count in [3_usize, 4] {
        let report = over_paths(count, "stms-a");
        // Each link carries as much as the first one alone does, but for what reno gives away on the long ones.
        assert!(report.goodput_bps > 0.8 * count as f64 * alone, "{count} paths: {} of {alone}", report.goodput_bps);
        assert!(report.connections[0].subflows.iter().all(|subflow| subflow.delivered_bps > 0.5 * alone));
    }
}
