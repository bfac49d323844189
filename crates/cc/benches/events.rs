//! Nanoseconds per event of every controller, replaying its own events on a simulated network of 2 and of 8 subflows.
//!
//! `cargo bench -p manypath-cc`. Each number is the smallest mean of several replays, less what the replay itself costs.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints results")]

#[path = "../tests/testbed/mod.rs"]
mod testbed;

use std::hint::black_box;
use std::time::Instant;

use manypath_cc::{CongestionControl, Event, Limits, SubflowInit, algorithms, create};
use manypath_core::{Bytes, SubflowId, Time, View};
use testbed::{Replay, Testbed, link};

/// Replays of each trace.
const REPLAYS: usize = 20;

/// Does nothing: what the replay itself costs.
#[derive(Debug)]
struct Nothing;

impl CongestionControl for Nothing {
    fn add_subflow(&mut self, _now: Time, _id: SubflowId, _init: SubflowInit) {}
    fn remove_subflow(&mut self, _now: Time, _id: SubflowId) {}
    fn on_event(&mut self, _now: Time, _id: SubflowId, _event: &Event, _view: &View) {}
    fn limits(&self, _id: SubflowId) -> Limits {
        Limits { cwnd: Bytes::new(10_000), pacing: None, ssthresh: None }
    }
}

fn trace(name: &str, subflows: usize) -> Vec<(Time, SubflowId, Event)> {
    let links: Vec<_> = (0..subflows as u64).map(|index| link(20.0, 20 + 5 * index, 60_000, 0.001)).collect();
    let mut bed = Testbed::new(links, 1);
    let paths: Vec<_> = (0..subflows).map(|index| (index, Time::ZERO)).collect();
    bed.connect(create(&name.parse().unwrap(), 1).unwrap(), &paths);
    bed.record = Some(Vec::new());
    bed.run(Time::from_millis(10_000));
    bed.record.unwrap_or_default().into_iter().map(|(at, _, id, event)| (at, id, event)).collect()
}

fn nanos(events: &[(Time, SubflowId, Event)], subflows: u32, make: impl Fn() -> Box<dyn CongestionControl>) -> f64 {
    let run = || {
        let mut replay = Replay::new(make(), subflows);
        let start = Instant::now();
        for (at, id, event) in events {
            black_box(replay.step(*at, *id, event));
        }
        start.elapsed().as_secs_f64() * 1e9 / events.len() as f64
    };
    (0..REPLAYS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("{:16} {:>12} {:>12}   ns per event", "controller", "2 subflows", "8 subflows");
    for algorithm in algorithms() {
        let mut cells = Vec::new();
        for subflows in [2u32, 8] {
            let events = trace(algorithm.name, subflows as usize);
            let own = nanos(&events, subflows, || create(&algorithm.name.parse().unwrap(), 1).unwrap());
            let nothing = nanos(&events, subflows, || Box::new(Nothing));
            cells.push(own - nothing);
        }
        println!("{:16} {:12.1} {:12.1}", algorithm.name, cells[0], cells[1]);
    }
}
