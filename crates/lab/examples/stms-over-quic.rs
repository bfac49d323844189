//! STMS-A and `arrival-order` over the QUIC transport on links that are emulated in real time, beside the default scheduler and the fast path
//! alone, and the same scenarios in the simulator, with the transport's acknowledgements and pacing. Paths of 30 Mbit/s with
//! 0.01% loss; the first has a round trip of 20 ms and a queue of 30 kB, the others a queue of 500 ms: the setting of
//! `docs/stms.md`.
//!
//! `cargo run --release -p manypath-lab --example stms-over-quic -- [SECONDS] [SEEDS] [CC]` takes 24 runs of SECONDS a seed.
//! It needs an idle machine: real time is what it measures.
#![allow(clippy::print_stdout)] // it is what the program is for

use core::fmt::Write as _;
use std::path::Path;

use manypath_lab::{Engine, Input, Quantities, Quic, Simulator};

type Failure = Box<dyn core::error::Error>;

/// How often and how long a case is run.
struct Effort {
    seconds: u32,
    seeds: u64,
    cc: String,
}

/// One-way delays of the paths in milliseconds, and the host buffers.
struct Case {
    delays: &'static [u32],
    buffer: &'static str,
}

const CASES: [Case; 6] = [
    Case { delays: &[10, 100], buffer: "128kB" },
    Case { delays: &[10, 100], buffer: "256kB" },
    Case { delays: &[10, 100], buffer: "1MB" },
    Case { delays: &[10, 100], buffer: "2MB" },
    Case { delays: &[10, 30, 100], buffer: "4MB" },
    Case { delays: &[10, 30, 60, 100], buffer: "4MB" },
];

/// The case's scenario, on its first `paths` paths.
fn scenario(case: &Case, paths: usize, scheduler: &str, effort: &Effort) -> String {
    let Case { delays, buffer } = case;
    let mut text = format!(
        "name = \"stms-over-quic\"\nduration = \"{0}s\"\nwarmup = \"{1}ms\"\n",
        effort.seconds,
        effort.seconds * 250
    );
    let mut routes = String::new();
    for (index, delay) in delays.iter().take(paths).enumerate() {
        let queue = if index == 0 { "30kB" } else { "500ms" };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[link]]\nname = \"link{index}\"\nrate = \"30Mbit\"\ndelay = \"{delay}ms\"\nqueue = \"{queue}\"\nloss = \"0.01%\"\n"
        );
        let _ = write!(routes, "{{ route = [\"link{index}\"] }}, ");
    }
    let cc = &effort.cc;
    text + &format!(
        "[[connection]]\nname = \"mp\"\ncc = \"{cc}\"\nscheduler = \"{scheduler}\"\npath = [{routes}]\n\
         send-buffer = \"{buffer}\"\nreceive-buffer = \"{buffer}\"\npacket = \"1480B\"\noverhead = \"66B\"\n\
         ack-every = 4\nmax-ack-delay = \"5ms\"\npace-windows = true\npacing-burst = \"500us\"\n"
    )
}

/// Mean goodput in Mbit/s over the seeds.
fn goodput(engine: &dyn Engine, text: &str, effort: &Effort) -> Result<f64, Failure> {
    let scenario = manypath_scenario::parse(text, "stms-over-quic", Path::new("."))?;
    let input = Input::Scenario(Box::new(scenario));
    let mut sum = 0.0;
    for seed in 1..=effort.seeds {
        let Quantities(found) = engine.run(&input, seed)?;
        sum += found.get("goodput_bps").and_then(|values| values.first()).copied().unwrap_or(f64::NAN);
    }
    Ok(sum / effort.seeds as f64 * 1e-6)
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let mut number = |default| words.next().map_or(Ok(default), |word| word.parse::<u32>());
    let (seconds, seeds) = (number(15)?, u64::from(number(1)?));
    let effort = Effort { seconds, seeds, cc: words.next().unwrap_or_else(|| "cubic".to_owned()) };
    println!("Goodput in Mbit/s over QUIC (in the simulator), {seconds} s, {seeds} seeds, {}", effort.cc);
    println!(
        "| round trips (ms) | host buffers | fast path alone | minrtt | stms-a | arrival-order | stms-a / fast path alone |"
    );
    println!("|---|---|---|---|---|---|---|");
    for case in &CASES {
        let trips: Vec<String> = case.delays.iter().map(|delay| (delay * 2).to_string()).collect();
        let mut row = format!("| {} | {} |", trips.join(", "), case.buffer);
        let mut over_quic = Vec::new();
        let all = case.delays.len();
        for (paths, scheduler) in [(1, "minrtt"), (all, "minrtt"), (all, "stms-a"), (all, "arrival-order")] {
            let text = scenario(case, paths, scheduler, &effort);
            let (quic, sim) = (goodput(&Quic, &text, &effort)?, goodput(&Simulator, &text, &effort)?);
            // Writing to a string cannot fail.
            let _ = write!(row, " {quic:.2} ({sim:.2}) |");
            over_quic.push(quic);
        }
        println!("{row} {:.3} |", over_quic[2] / over_quic[0]);
    }
    Ok(())
}
