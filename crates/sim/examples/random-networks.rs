//! Schedulers over networks drawn at random: two to four paths of 1 to 100 Mbit/s, one-way delays of 1 to 160 ms, queues of 20 ms to
//! 1 s, losses of none to 1%, host buffers of 256 kB to 8 MB and several controllers. `docs/decisions/arrival-order.md` has its tables.
//! With `-uneven` the same networks, but of each round trip the way there takes between a tenth and nine tenths. With `-changing` two of three
//! links change: an outage of 0.3 to 12 s, a rate of a tenth to ten times as much, another delay, or a rate that changes every few seconds.
//!
//! `cargo run --release -p manypath-sim --example random-networks -- [NETWORKS] [quic|tcp][-uneven|-changing] [SCHEDULER...]`
#![allow(clippy::print_stdout)] // it is what the program is for

use core::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;

use manypath_link::{generator, uniform};
use manypath_scenario::Scenario;
use manypath_sim::{Job, Report, run_all};
use rand_core::Rng;

type Failure = Box<dyn core::error::Error>;

/// Their default parameters are compared.
const SCHEDULERS: [&str; 8] = ["minrtt", "minrtt-pr", "blest", "ecf", "daps", "stms-a", "stms-c", "arrival-order"];
const CONTROLLERS: [&str; 7] = ["cubic", "cubic", "lia", "balia", "bbr", "mpcc-loss", "mpcc-latency"];
const LOSSES: [&str; 5] = ["0%", "0%", "0.01%", "0.1%", "1%"];
const BUFFERS: [&str; 5] = ["256kB", "1MB", "2MB", "4MB", "8MB"];
const PATHS: [usize; 5] = [2, 2, 2, 3, 4];
/// A scheduler with less than this share of the best one's goodput is not among the best.
const AMONG_BEST: f64 = 0.98;

fn one_of<T: Copy>(random: &mut impl Rng, values: &[T]) -> T {
    // Below the length, which fits.
    values[usize::try_from(random.next_u64() % values.len() as u64).unwrap_or(0)]
}

/// Between ten to these powers.
fn power(random: &mut impl Rng, least: f64, most: f64) -> f64 {
    10_f64.powf(least + (most - least) * uniform(random))
}

/// What becomes of a link of this rate in Mbit/s, as a scenario has it.
fn schedule(random: &mut impl Rng, rate: f64) -> String {
    let mut at = 3.0 + 17.0 * uniform(random);
    let changes = match random.next_u64() % 6 {
        0 => format!(
            "{{ at = \"{at:.2}s\", rate = \"0Mbit\" }}, {{ at = \"{:.2}s\", rate = \"{rate:.2}Mbit\" }}",
            at + power(random, -0.5, 1.1)
        ),
        1 => format!("{{ at = \"{at:.2}s\", rate = \"{:.2}Mbit\" }}", rate * power(random, -1.0, 1.0)),
        2 => format!("{{ at = \"{at:.2}s\", delay = \"{:.1}ms\" }}", power(random, 0.0, 2.2)),
        3 => {
            let mut changes = String::new();
            at = 0.0;
            for _ in 0..random.next_u64() % 10 + 3 {
                at += 0.5 + 4.5 * uniform(random);
                // Writing to a string cannot fail.
                let _ =
                    write!(changes, "{{ at = \"{at:.2}s\", rate = \"{:.2}Mbit\" }}, ", rate * power(random, -0.7, 0.3));
            }
            changes
        }
        _ => return String::new(),
    };
    format!("schedule = [{changes}]\n")
}

/// The network with this number; `file`: what there is to send, or else there is no end of it.
fn network(number: u64, kind: &str, scheduler: &str, file: Option<&str>) -> Result<Scenario, Failure> {
    let (transport, variant) = kind.split_once('-').unwrap_or((kind, ""));
    let (random, ways) = (&mut generator(number, "network"), &mut generator(number, "ways"));
    let changes = &mut generator(number, "changes");
    let mut text = "name = \"random\"\nduration = \"40s\"\nwarmup = \"5s\"\nsample = \"100ms\"\n".to_owned();
    let mut routes = String::new();
    for index in 0..one_of(random, &PATHS) {
        let (rate, delay, queue) = (power(random, 0.0, 2.0), power(random, 0.0, 2.2), power(random, 1.3, 3.0));
        let loss = one_of(random, &LOSSES);
        let (there, schedule) = match variant {
            "uneven" => (2.0 * delay * (0.1 + 0.8 * uniform(ways)), String::new()),
            "changing" => (delay, schedule(changes, rate)),
            "" => (delay, String::new()),
            _ => return Err(format!("no networks are called '{variant}'").into()),
        };
        let back = 2.0 * delay - there;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[link]]\nname = \"l{index}\"\nrate = \"{rate:.2}Mbit\"\ndelay = \"{there:.1}ms\"\nqueue = \"{queue:.0}ms\"\nloss = \"{loss}\"\nback = {{ delay = \"{back:.1}ms\" }}\n{schedule}"
        );
        let _ = write!(routes, "{{ route = [\"l{index}\"] }}, ");
    }
    let (cc, buffer) = (one_of(random, &CONTROLLERS), one_of(random, &BUFFERS));
    let file = file.map(|size| format!("file = \"{size}\"\n")).unwrap_or_default();
    text += &format!(
        "[[connection]]\nname = \"mp\"\ncc = \"{cc}\"\nscheduler = \"{scheduler}\"\ntransport = \"{transport}\"\n{file}\
         send-buffer = \"{buffer}\"\nreceive-buffer = \"{buffer}\"\npath = [{routes}]\n"
    );
    Ok(manypath_scenario::parse(&text, "random", Path::new("."))?)
}

/// One run of each network.
fn runs(networks: u64, kind: &str, scheduler: &str, file: Option<&str>) -> Result<Vec<Report>, Failure> {
    let scenarios: Vec<_> =
        (0..networks).map(|number| network(number, kind, scheduler, file)).collect::<Result<_, _>>()?;
    let jobs: Vec<Job<'_>> = scenarios.iter().map(|scenario| Job { scenario, seed: 1 }).collect();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(run_all(&jobs, threads, |_| ())?)
}

fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

/// What a scheduler did over each network.
struct Row {
    scheduler: String,
    /// Mbit/s.
    goodputs: Vec<f64>,
    /// Mean time for which data waits for earlier data, milliseconds.
    delays: Vec<f64>,
    /// Of a file of 10 MB, seconds; `None` if it was not there after 40 s.
    files: Vec<Option<f64>>,
}

impl Row {
    fn new(networks: u64, kind: &str, scheduler: &str) -> Result<Self, Failure> {
        let endless = runs(networks, kind, scheduler, None)?;
        let files = runs(networks, kind, scheduler, Some("10MB"))?;
        let delay = |run: &Report| run.connections[0].measures.and_then(|held| held.out_of_order_delay_s.mean);
        Ok(Self {
            scheduler: scheduler.to_owned(),
            goodputs: endless.iter().map(|run| run.goodput_bps * 1e-6).collect(),
            delays: endless.iter().map(|run| delay(run).unwrap_or(0.0) * 1e3).collect(),
            files: files.iter().map(|run| run.connections[0].files.first().map(|file| file.completion_s)).collect(),
        })
    }
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let networks: u64 = words.next().map_or(Ok(200), |word| word.parse())?;
    let kind = words.next().unwrap_or_else(|| "quic".to_owned());
    let mut named: Vec<String> = words.collect();
    if named.is_empty() {
        named = SCHEDULERS.map(str::to_owned).to_vec();
    }
    let rows: Vec<Row> =
        named.iter().map(|scheduler| Row::new(networks, &kind, scheduler)).collect::<Result<_, _>>()?;
    let all = 0..usize::try_from(networks)?;
    let best: Vec<f64> = all.clone().map(|at| rows.iter().map(|row| row.goodputs[at]).fold(0.0, f64::max)).collect();
    // Files are compared where every scheduler brought them.
    let complete: Vec<usize> = all.filter(|at| rows.iter().all(|row| row.files[*at].is_some())).collect();
    println!("{networks} networks, transport {kind}; geometric means; files of 10 MB over {} of them", complete.len());
    println!(
        "| scheduler | goodput (Mbit/s) | within 2% of the best | least of the best | out of order (ms) | file (s) |"
    );
    println!("|---|---|---|---|---|---|");
    for Row { scheduler, goodputs, delays, files } in &rows {
        let shares: Vec<f64> = goodputs.iter().zip(&best).map(|(goodput, best)| goodput / best).collect();
        println!(
            "| `{scheduler}` | {:.2} | {} | {:.2} | {:.1} | {:.2} |",
            geometric_mean(goodputs.iter().copied()),
            shares.iter().filter(|share| **share >= AMONG_BEST).count(),
            shares.iter().copied().fold(1.0, f64::min),
            // A network where nothing ever waits has no logarithm.
            geometric_mean(delays.iter().map(|delay| delay.max(0.01))),
            geometric_mean(complete.iter().map(|at| files[*at].unwrap_or(f64::NAN)))
        );
    }
    Ok(())
}
