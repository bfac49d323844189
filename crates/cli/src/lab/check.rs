//! `lab check`: one line for each claim.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use manypath_lab::{Claim, EngineKind, Experiment, Mode, Ours, Status, Verdict};
use manypath_output::write_file;
use serde::Serialize;

use super::place::{Length, Place, chosen, parse_engine, results};
use crate::CheckFailed;
use crate::output::{self, counted};

/// Judge the papers' claims by what has been run
///
/// Prints for each claim its name, whether it holds, the paper's number, ours with the smallest and largest of the seeds,
/// and the paper's words in short. Ends with 1 if a claim that held before, by `experiments/status.toml`, no longer holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab check\n  manypath lab check mpcc --full\n  \
    manypath lab check --wrong           # every claim that holds fails under its wrong variation\n  \
    manypath lab check --update          # remember what holds")]
pub(super) struct Args {
    /// Experiments or papers; all without it
    names: Vec<String>,

    #[command(flatten)]
    length: Length,

    /// Judge by this engine's runs: sim, theory, quic or kernel; by each experiment's first one without it
    #[arg(long, value_name = "ENGINE", value_parser = parse_engine)]
    engine: Option<EngineKind>,

    /// Put the wrong variation of each claim that holds in place: ends with 1 if it still holds, or was not run
    #[arg(long, conflicts_with = "update")]
    wrong: bool,

    /// Write what holds to `status.toml`
    #[arg(long)]
    update: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    claim: String,
    verdict: &'static str,
    length: &'static str,
    says: &'a str,
    place: &'a str,
    paper: &'a str,
    ours: Vec<f64>,
    /// Smallest and largest of the seeds, for each number.
    spread: Vec<(f64, f64)>,
    unit: &'a str,
    /// Why there is no verdict.
    missing: Option<String>,
    /// Whether it held before and no longer does.
    regression: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    let all = args.place.load()?;
    let store = args.place.store()?;
    let path = args.place.experiments()?.join("status.toml");
    let mut status = Status::read(&path)?;
    let (mut rows, mut broken) = (Vec::new(), Vec::new());
    for experiment in chosen(&all, &args.names)? {
        let kind = args.engine.unwrap_or(experiment.engines[0]);
        if !experiment.engines.contains(&kind) {
            continue;
        }
        let (mode, results) = results(args.length, experiment, kind, &store)?;
        // One that makes no sense for some case keeps no other from being judged.
        let table = match results.table() {
            Ok(table) => table,
            Err(error) => {
                output::note(format_args!("manypath: {error}"));
                broken.push(experiment.id.as_str());
                continue;
            }
        };
        for claim in &experiment.claims {
            let mut verdict = claim.judge(&table);
            if args.wrong {
                // What does not hold anyway may well hold the other way round.
                if !matches!(verdict, Verdict::Holds(_)) {
                    continue;
                }
                verdict = claim.judge_wrong(&table).unwrap_or(verdict);
            }
            let held = status.held(&experiment.id, &claim.id, mode) && !args.wrong;
            let fails = matches!(verdict, Verdict::Fails(_));
            rows.push(row(experiment, claim, mode, &verdict, held && fails && kind == experiment.engines[0]));
            if kind == experiment.engines[0] {
                status.set(&experiment.id, &claim.id, mode, &verdict);
            }
        }
    }
    if args.json {
        output::json(&rows)?;
    } else {
        print(&rows)?;
    }
    if args.update {
        // Whole or not at all: it is the only record of what held.
        write_file(&path, status.to_toml().as_bytes())?;
    }
    if !broken.is_empty() {
        bail!("not judged: {}", broken.join(", "));
    }
    verdict(args, &rows)
}

fn row<'a>(experiment: &'a Experiment, claim: &'a Claim, mode: Mode, verdict: &Verdict, regression: bool) -> Row<'a> {
    let Ours { values, spread } = verdict.ours().cloned().unwrap_or_default();
    let missing = match verdict {
        Verdict::NotRun(reason) => Some(reason.clone()),
        Verdict::Holds(_) | Verdict::Fails(_) => None,
    };
    Row {
        claim: format!("{}.{}", experiment.id, claim.id),
        verdict: verdict.as_str(),
        length: mode.as_str(),
        says: &claim.says,
        place: &claim.place,
        paper: &claim.number,
        ours: values,
        spread,
        unit: &claim.unit,
        missing,
        regression,
    }
}

fn print(rows: &[Row<'_>]) -> Result<()> {
    let mut text = String::new();
    let width = rows.iter().map(|row| row.claim.len()).max().unwrap_or(0);
    for row in rows {
        let ours = row.missing.as_ref().map_or_else(|| numbers(row), |missing| format!("- ({missing})"));
        let held = if row.regression { " (HELD BEFORE)" } else { "" };
        writeln!(
            text,
            "{:width$}  {:13}{held}  paper: {}  ours: {ours}  {} [{}, {}]",
            row.claim, row.verdict, row.paper, row.says, row.place, row.length
        )?;
    }
    let count = |word| rows.iter().filter(|row| row.verdict == word).count();
    let all = counted(rows.len(), "claim holds", "claims hold");
    write!(text, "{} of {all}, {} not run", count("holds"), count("not run"))?;
    output::line(&text)
}

/// Our numbers, each with its spread.
fn numbers(row: &Row<'_>) -> String {
    let number = |(index, value): (usize, &f64)| match row.spread.get(index) {
        Some((least, most)) => {
            format!(
                "{} ({} to {})",
                manypath_lab::short(*value),
                manypath_lab::short(*least),
                manypath_lab::short(*most)
            )
        }
        None => manypath_lab::short(*value),
    };
    let numbers: Vec<String> = row.ours.iter().enumerate().map(number).collect();
    let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
    format!("{}{unit}", numbers.join(" < "))
}

fn verdict(args: &Args, rows: &[Row<'_>]) -> Result<()> {
    let names = |wanted: &dyn Fn(&Row<'_>) -> bool| {
        rows.iter().filter(|row| wanted(row)).map(|row| row.claim.as_str()).collect::<Vec<_>>().join(", ")
    };
    let faults = if args.wrong {
        // One that nobody ran shows nothing.
        let none = names(&|row| row.missing.is_some());
        vec![
            ("claims hold under their wrong variation", names(&|row| row.verdict == "holds")),
            ("wrong variations were not run", none),
        ]
    } else {
        vec![("claims held before and no longer hold", names(&|row| row.regression))]
    };
    let said = faults.iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| format!("{what}: {names}"));
    let said: Vec<String> = said.collect();
    if said.is_empty() { Ok(()) } else { Err(CheckFailed(said.join("; ")).into()) }
}
