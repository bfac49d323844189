//! Measures the kernel's controllers over emulated links and on virtual Ethernet, and writes docs/kernel.md's tables.
//!
//! `make bench-kernel` runs all of it, as root on a machine that has nothing else to do; `measure NAME` one part, `measure
//! NAME --short` a quick look that measures nothing worth keeping.

mod baseline;
mod cpu;
mod document;
mod fairness;
mod flow;
mod target_rate;

use std::process::ExitCode;

use manypath_core::AlgorithmSpec;
use manypath_kernel::{Error, Object, Request, engine, objects};

/// Built into this kernel.
const BUILT_IN: [&str; 3] = ["reno", "cubic", "bbr"];

/// How long and how often.
#[derive(Clone, Copy, Debug)]
struct Effort {
    short: bool,
}

impl Effort {
    /// Seconds, or two for a quick look.
    const fn seconds(self, full: u64) -> u64 {
        if self.short { 2 } else { full }
    }

    /// Repetitions, or one.
    const fn times(self, full: u64) -> u64 {
        if self.short { 1 } else { full }
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
}

impl Loaded {
    /// Under its usual name with `m` for `mp`, so that it does not meet one that somebody uses.
    fn new(object: &Object) -> Result<Self, Error> {
        let name = object.kernel_name.replacen("mp", "m", 1);
        let controllers = vec![AlgorithmSpec::named(object.name)];
        engine::load(&Request { controllers, name: Some(name.clone()), ..Request::default() })?;
        Ok(Self { name })
    }

    fn all() -> Result<Vec<(Self, Object)>, Error> {
        objects().map(|object| Ok((Self::new(&object)?, object))).collect()
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

fn measure(part: &str, effort: Effort) -> Result<Outcome, Failure> {
    match part {
        "baseline" => baseline::links(effort),
        "buffers" => baseline::buffers(effort),
        "fairness" => fairness::measure(effort),
        "cpu" => cpu::measure(effort),
        "target-rate" => target_rate::measure(effort),
        _ => Err(format!("no part '{part}'; there are {}", PARTS.join(", ")).into()),
    }
}

const PARTS: [&str; 5] = ["baseline", "buffers", "fairness", "cpu", "target-rate"];

fn run() -> Result<bool, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let effort = Effort { short: has("--short") };
    let mut parts: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    if parts.is_empty() {
        parts = PARTS.to_vec();
    }
    let mut holds = true;
    for part in parts {
        eprintln!("== {part}");
        let outcome = measure(part, effort)?;
        let text = outcome.text();
        eprintln!("{text}");
        holds &= outcome.checks.iter().all(|(holds, _)| *holds);
        if has("--write") && !effort.short {
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
