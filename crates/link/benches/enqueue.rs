//! The cost of one `enqueue`, printed in nanoseconds: `cargo bench -p manypath-link`.
//!
//! A plain loop over a million packets, the best of ten, since the best is what disturbs least on a shared machine.

#![allow(clippy::print_stdout, clippy::disallowed_methods)] // a benchmark prints, and reads the clock

use std::hint::black_box;
use std::time::Instant;

use manypath_core::{Bytes, Duration, Rate, Time};
use manypath_link::{Change, Ecn, GilbertElliott, Link, LinkConfig, Loss, QueueLimit, Red, Trace};

const PACKETS: u64 = 1_000_000;

fn measure(name: &str, config: &LinkConfig, gap: Duration) {
    let best = (0..10)
        .map(|seed| {
            let mut link = Link::new(config, seed, "bench").expect("the configurations below are valid");
            let start = Instant::now();
            let mut now = Time::ZERO;
            for _ in 0..PACKETS {
                black_box(link.enqueue(now, Bytes::new(1500), Ecn::Ect0));
                now += gap;
            }
            start.elapsed().as_nanos() / u128::from(PACKETS)
        })
        .min();
    println!("{name:<40} {:>4} ns/packet", best.unwrap_or_default());
}

fn main() {
    // 100 Mbit/s: 1500 bytes take 120 us.
    let plain = LinkConfig::new(Rate::from_mbps(100.0), Duration::from_millis(15), QueueLimit::Packets(250));
    let (busy, overload) = (Duration::from_micros(125), Duration::from_micros(100));
    measure("plain, below capacity", &plain, busy);
    measure("plain, overloaded (full queue)", &plain, overload);
    measure("1% loss", &LinkConfig { loss: Loss::Random(0.01), ..plain.clone() }, overload);
    let bursty = Loss::Bursty(GilbertElliott::simple(0.01, 5.0));
    measure(
        "bursty loss, jitter",
        &LinkConfig { loss: bursty, jitter: Duration::from_millis(3), ..plain.clone() },
        busy,
    );
    let red = Red {
        min: QueueLimit::Packets(50),
        max: QueueLimit::Packets(150),
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: true,
    };
    measure("RED", &LinkConfig { red: Some(red), ..plain.clone() }, overload);
    let schedule = (0..100_000)
        .map(|step| Change {
            at: Time::from_millis(step),
            rate: Some(Rate::from_mbps(if step % 2 == 0 { 90.0 } else { 110.0 })),
            ..Change::default()
        })
        .collect();
    measure("rate changes every ms", &LinkConfig { schedule, ..plain.clone() }, overload);
    let trace: Trace = "1\n2\n4\n5\n5\n9\n".parse().expect("the trace is valid");
    let capacity = manypath_link::Capacity::Trace(trace);
    measure("Mahimahi trace, overloaded", &LinkConfig { capacity, ..plain }, Duration::from_micros(900));
}
