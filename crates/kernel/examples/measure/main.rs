//! Measures the kernel's controllers over emulated links and on virtual Ethernet, and writes docs/kernel.md's tables.
//!
//! `make bench-kernel` runs all of it, as root on a machine that has nothing else to do. Words: parts to measure, and
//!
//! * `--write`: put the tables into the documents;
//! * `--minutes N`: begin no measurement after that; what was measured is kept in `bench-kernel.json` of the target folder, and the
//!   same command goes on from there;
//! * `--again`: forget what was kept of the parts;
//! * `--only NAME,NAME`: only these controllers, by their names in the kernel;
//! * `--rows NAME,NAME`: only these conditions of `baseline` and `buffers`;
//! * `--runs N`: so many runs of `fairness`, `per-packet` and `target-rate` and rounds of `cpu`, five if nothing is said;
//! * `--epoch N`: how many seconds `target-rate` tries each weight, 20 if nothing is said;
//! * `--short`: a quick look that measures nothing worth keeping.
//!
//! Interrupted, it leaves its controllers loaded: the next run or `manypath kernel unload` removes them.

mod baseline;
mod cpu;
mod document;
mod fairness;
mod flow;
mod results;
mod target_rate;
mod validation;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use manypath_core::AlgorithmSpec;
use manypath_kernel::{Error, Object, Request, engine, objects};
use results::Results;

/// Built into this kernel.
const BUILT_IN: [&str; 3] = ["reno", "cubic", "bbr"];

/// How long and how often, of what, and what is known already.
#[derive(Debug)]
struct Session {
    short: bool,
    only: Vec<String>,
    rows: Vec<String>,
    runs: u64,
    epoch: u64,
    results: Results,
}

impl Session {
    /// Seconds, or two for a quick look.
    const fn seconds(&self, full: u64) -> u64 {
        if self.short { 2 } else { full }
    }

    /// Runs, or one.
    const fn runs(&self) -> u64 {
        if self.short { 1 } else { self.runs }
    }

    /// Whether a condition is to be measured.
    fn has_row(&self, name: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| row == name)
    }

    /// Whether a controller is to be measured.
    fn wants(&self, kernel_name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == kernel_name)
    }
}

/// What was measured: a table in Markdown, and what was expected of it.
#[derive(Debug, Default)]
struct Outcome {
    table: String,
    /// Whether each expectation holds, and its words with the numbers.
    checks: Vec<(bool, String)>,
}

impl Outcome {
    fn check(&mut self, holds: bool, words: String) {
        self.checks.push((holds, words));
    }

    /// Table and expectations in Markdown.
    fn text(&self) -> String {
        let checks = self
            .checks
            .iter()
            .map(|(holds, words)| format!("* {words}: {}\n", if *holds { "holds" } else { "does **not** hold" }));
        format!("{}\n{}", self.table.trim_end(), checks.fold(String::from("\n"), |all, line| all + &line))
    }
}

/// A controller in the kernel, unloaded when dropped.
#[derive(Debug)]
struct Loaded {
    name: String,
    /// In tables: its usual name, and its parameters if they are not the usual ones.
    title: String,
}

impl Loaded {
    fn new(object: &Object, name: String, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let words = settings.iter().map(|(key, value)| format!(", {key}={value}"));
        let title = object.kernel_name.to_owned() + &words.collect::<String>();
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let controllers = vec![AlgorithmSpec::named(object.name)];
        // What was killed has left it behind.
        let _ = engine::unload(std::slice::from_ref(&name));
        engine::load(&Request { controllers, settings, name: Some(name.clone()), ..Request::default() })?;
        Ok(Self { name, title })
    }

    /// All that are wanted, under their usual names with the part's first letters for `mp`: no name is one that
    /// somebody uses, and parts can be measured side by side.
    fn all(session: &Session, part: &str) -> Result<Vec<Self>, Error> {
        let wanted = objects().filter(|object| session.wants(object.kernel_name));
        wanted.map(|object| Self::new(&object, object.kernel_name.replacen("mp", &part[..2], 1), &[])).collect()
    }

    /// All, and one with the slow start of its paper, which is the usual one in the simulator.
    fn with_variant(session: &Session, part: &str) -> Result<Vec<Self>, Error> {
        let mut all = Self::all(session, part)?;
        for object in objects().filter(|object| object.name == "mpcc-latency" && session.wants(object.kernel_name)) {
            all.push(Self::new(&object, format!("{}_mpcc_paper", &part[..2]), &[("slow-start", "paper")])?);
        }
        Ok(all)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = engine::unload(std::slice::from_ref(&self.name)) {
            eprintln!("{}: {error}", self.name);
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn measure(part: &str, session: &mut Session) -> Result<Outcome, Failure> {
    match part {
        "baseline" => baseline::links(session),
        "buffers" => baseline::buffers(session),
        "fairness" => fairness::measure(session, fairness::Setting::Segments),
        "per-packet" => fairness::measure(session, fairness::Setting::Packets),
        "cpu" => cpu::measure(session),
        "target-rate" => target_rate::measure(session),
        "validation" => validation::measure(session),
        _ => Err(format!("no part '{part}'; there are {}", PARTS.join(", ")).into()),
    }
}

/// `validation` comes after those that it compares with the simulator.
const PARTS: [&str; 7] = ["baseline", "buffers", "fairness", "per-packet", "cpu", "target-rate", "validation"];

/// The file in the target folder, which this program is two folders below.
fn kept() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let folder = own.ancestors().nth(3).ok_or("this program has no target folder")?;
    Ok(folder.join("bench-kernel.json"))
}

fn run() -> Result<bool, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut write, mut short, mut again) = (false, false, false);
    let (mut only, mut rows, mut runs, mut epoch, mut until) = (Vec::new(), Vec::new(), 5, target_rate::EPOCH, None);
    let mut parts = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--write" => write = true,
            "--short" => short = true,
            "--again" => again = true,
            "--only" => only = words.next().ok_or("--only what?")?.split(',').map(str::to_owned).collect(),
            "--rows" => rows = words.next().ok_or("--rows what?")?.split(',').map(str::to_owned).collect(),
            "--runs" => runs = words.next().ok_or("--runs how many?")?.parse()?,
            "--epoch" => epoch = words.next().ok_or("--epoch of how many seconds?")?.parse()?,
            "--minutes" => {
                let minutes: u64 = words.next().ok_or("--minutes of what?")?.parse()?;
                until = Some(Instant::now() + Duration::from_secs(60 * minutes));
            }
            part if PARTS.contains(&part) => parts.push(part),
            other => return Err(format!("'{other}'? Parts are {}", PARTS.join(", ")).into()),
        }
    }
    if parts.is_empty() {
        parts = PARTS.to_vec();
    }
    let write = write && !short && only.is_empty() && rows.is_empty();
    if write {
        parts.iter().try_for_each(|part| document::ensure_place(part))?;
    }
    let results = Results::open((!short).then(kept).transpose()?, until)?;
    let mut session = Session { short, only, rows, runs, epoch, results };
    let mut holds = true;
    for part in parts {
        eprintln!("== {part}");
        if again {
            session.results.forget(part);
        }
        let outcome = measure(part, &mut session)?;
        let text = outcome.text();
        eprintln!("{text}");
        holds &= outcome.checks.iter().all(|(holds, _)| *holds);
        if write {
            document::replace(part, &text)?;
        }
    }
    Ok(holds)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("measure: {error}");
            ExitCode::from(2)
        }
    }
}
