//! Nanoseconds a decision, for every scheduler with 2, 4 and 8 subflows and 10,000 segments queued, and for `stms-a` with
//! queues from 10,000 to 1,000,000 segments.
//!
//! Run with `cargo bench -p manypath-sched`. Absolute figures drift with the machine; compare the lines of one run.
//!
//! Subflows get room one after the other, so that most decisions are for a slow subflow while faster ones are full: the
//! case in which STMS looks behind its gap. Decisions are timed alone; carrying them out is not.
#![allow(clippy::print_stdout, clippy::disallowed_methods)] // a benchmark reads the clock and prints its table

use std::hint::black_box;
use std::time::{Duration as Wall, Instant};

use manypath_core::{Bytes, DataSeq, Duration, FlowId, Rate, SubflowId, SubflowView, Time, View};
use manypath_sched::{Choice, Content, Queue, algorithms, create};

const PAYLOAD: u64 = 1_370;
const HEADER: u64 = 30;
const MSS: Bytes = Bytes::new(PAYLOAD + HEADER);
/// Segments of a subflow's window.
const WINDOW: u64 = 50;
/// Decisions timed with one reading of the clock before and one after.
const BATCH: u32 = 64;
/// Such batches a measurement.
const ROUNDS: u64 = 20_000;

fn view(subflows: u32) -> View {
    let subflow = |id| {
        let mut subflow = SubflowView::new(SubflowId(id), MSS);
        subflow.srtt = Some(Duration::from_millis(20 + 25 * u64::from(id)));
        subflow.rttvar = Duration::from_millis(2);
        subflow.cwnd = MSS * WINDOW;
        subflow.ssthresh = subflow.cwnd;
        subflow.pacing = Some(Rate::from_mbps(30.0));
        subflow.cost = f64::from(id);
        subflow
    };
    View { subflows: (0..subflows).map(subflow).collect() }
}

/// Mean nanoseconds a decision of `scheduler` with so many subflows and `queued` segments unsent all the time.
fn measure(scheduler: &str, subflows: u32, queued: u64) -> f64 {
    let mut scheduler = create(&scheduler.parse().expect("a name")).expect("registered");
    let mut view = view(subflows);
    let mut queue = Queue::new(Bytes::new(HEADER));
    queue.extend_window(DataSeq(u64::MAX));
    let (mut now, mut offset, mut spent) = (Time::ZERO, 0, Wall::ZERO);
    for round in 0..ROUNDS {
        now += Duration::from_micros(400);
        let missing = queued * PAYLOAD - queue.unsent().get();
        queue.admit(Content::Data { flow: FlowId(0), offset, fin: false }, missing);
        offset += missing;
        let turn = round % u64::from(subflows);
        for subflow in &mut view.subflows {
            let has_room = u64::from(subflow.id.0) == turn;
            subflow.in_flight = if has_room { subflow.cwnd / 2 } else { subflow.cwnd };
            // None is silent.
            subflow.delivered += MSS;
        }
        let started = Instant::now();
        let mut choice = Choice::Wait;
        for _ in 0..BATCH {
            choice = black_box(scheduler.pick(now, black_box(&view), black_box(&queue)));
        }
        spent += started.elapsed();
        if let Choice::Send { subflow, range } | Choice::Duplicate { subflow, range, .. } = choice {
            queue.on_assigned(now, range, subflow);
        }
        // About as much stays unacknowledged as the windows hold.
        let sent = queue.unsent_ranges().next().map_or(queue.admitted(), |first| first.start);
        let in_flight = WINDOW * u64::from(subflows) * PAYLOAD;
        queue.advance_left_edge(DataSeq((sent - DataSeq::ZERO).saturating_sub(in_flight)));
    }
    spent.as_nanos() as f64 / (f64::from(BATCH) * ROUNDS as f64)
}

fn main() {
    println!("nanoseconds a decision, 10,000 segments queued\n");
    println!("{:<24}{:>12}{:>12}{:>12}", "scheduler", "2 subflows", "4 subflows", "8 subflows");
    // A gap that leaves holes between what the slow subflows take, as in a long-running transfer.
    let names =
        algorithms().iter().map(|algorithm| if algorithm.name == "stms-a" { "stms-a:gap=200" } else { algorithm.name });
    // The default over QUIC.
    for name in names.chain(["arrival-order:rescue=on"]) {
        let [two, four, eight] = [2, 4, 8].map(|subflows| measure(name, subflows, 10_000));
        println!("{name:<24}{two:>12.1}{four:>12.1}{eight:>12.1}");
    }
    println!("\nstms-a by the length of the queue, 2 subflows\n");
    println!("{:<16}{:>12}{:>12}", "segments", "gap 50", "gap 5000");
    for queued in [10_000, 100_000, 1_000_000] {
        let short = measure("stms-a:gap=50", 2, queued);
        let long = measure("stms-a:gap=5000", 2, queued);
        println!("{queued:<16}{short:>12.1}{long:>12.1}");
    }
}
