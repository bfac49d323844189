//! Data packets per second of wall time: one connection over two links of 100 Mbit/s and 15 ms with queues of 250 packets,
//! 200 simulated seconds, `lia` and `minrtt`; then five simulated seconds, slow start included, of one such connection and of more
//! and more of them on links that are as many times faster: the same job for each connection.
//!
//! `cargo bench -p manypath-sim --bench throughput -- SECONDS [CONNECTIONS]` makes one run, for profilers.

#![allow(clippy::print_stdout)] // a benchmark's result

use std::path::Path;
use std::time::Instant;

use manypath_core::{Duration, Rate};
use manypath_link::{Capacity, QueueLimit};
use manypath_scenario::Scenario;

/// The benchmark's scenario with `connections` connections on links that are as many times faster.
fn scenario(seconds: u64, connections: u32) -> Scenario {
    let text =
        "duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
    let text = format!("{text}count = {connections}\n");
    let mut scenario = manypath_scenario::parse(&text, "bench", Path::new(".")).expect("a good scenario");
    scenario.duration = Duration::from_secs(seconds);
    for link in &mut scenario.links {
        link.config.capacity = Capacity::Rate(Rate::from_mbps(100.0 * f64::from(connections)));
        link.config.queue = QueueLimit::Packets(250 * u64::from(connections));
    }
    scenario
}

/// Unique data packets delivered, and seconds of wall time.
fn measure(scenario: &Scenario) -> (u64, f64) {
    let started = Instant::now();
    let report = manypath_sim::run(scenario, 1).expect("the scenario runs");
    let packets = report.connections.iter().map(|connection| connection.delivered_packets).sum();
    (packets, started.elapsed().as_secs_f64())
}

fn show(what: &str, packets: u64, seconds: f64) {
    let rate = packets as f64 / seconds;
    println!("{what:>17} {packets:8} packets in {seconds:6.3} s: {:5.2} M/s, {:4.0} ns each", rate / 1e6, 1e9 / rate);
}

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|argument| argument.parse::<u32>().ok());
    if let Some(seconds) = given.next() {
        let connections = given.next().unwrap_or(1);
        let (packets, wall) = measure(&scenario(u64::from(seconds), connections));
        return show(&format!("{connections} connections"), packets, wall);
    }
    let best = |scenario: &Scenario, runs| {
        (0..runs).map(|_| measure(scenario)).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 1.0))
    };
    let (packets, wall) = best(&scenario(200, 1), 5);
    show("1 connection", packets, wall);
    for (connections, runs) in [(1, 100), (10, 10), (100, 2), (1000, 1)] {
        let scenario = scenario(5, connections);
        let (packets, wall) =
            (0..runs).map(|_| measure(&scenario)).fold((0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        show(&format!("{connections} for 5 s"), packets, wall);
    }
}
