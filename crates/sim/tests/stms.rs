//! STMS in the setting of paper 002 section 2.1, a lean part of what `--example stms` prints.

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
