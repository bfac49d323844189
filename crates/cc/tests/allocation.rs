//! In steady state no controller allocates.

mod testbed;

use std::hint::black_box;

use manypath_cc::{algorithms, create};
use manypath_core::{SubflowId, Time};
use testbed::{Replay, Testbed, link};

#[test]
fn no_controller_allocates_once_its_tables_have_grown() {
    for algorithm in algorithms() {
        let make = || create(&algorithm.name.parse().unwrap(), 1).unwrap();
        let mut bed = Testbed::new(vec![link(20.0, 20, 60_000, 0.001), link(20.0, 25, 60_000, 0.001)], 1);
        bed.connect(make(), &[(0, Time::ZERO), (1, Time::ZERO)]);
        bed.record = Some(Vec::new());
        bed.run(Time::from_millis(20_000));
        let events = bed.record.unwrap_or_default();
        let (warm, steady) = events.split_at(events.len() / 2);
        assert!(steady.iter().any(|(_, _, id, _)| *id == SubflowId(1)) && steady.len() > 10_000, "{}", algorithm.name);
        let mut replay = Replay::new(make(), 2);
        let mut step = |events: &[_]| {
            for (at, _, id, event) in events {
                black_box(replay.step(*at, *id, event));
            }
        };
        step(warm);
        let counts = allocation_counter::measure(|| step(steady));
        // A ring of packets in flight grows to a new largest size now and then: no cost per event.
        let count = counts.count_total;
        assert!(count < 5, "{}: {count} allocations in {} events", algorithm.name, steady.len());
    }
}
