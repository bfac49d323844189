//! `lab compare`: two algorithms over all experiments.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use manypath_lab::{Compared, compare, short};
use serde::Serialize;

use super::place::{Length, Place, chosen, results};
use crate::output;

/// Compare two algorithms in every experiment that has both
///
/// Names are labels of an axis: controllers, schedulers, or whatever an experiment varies. Means are over all cases in which
/// both have a number, of full runs where all are there, else of quick ones; the last column says in how many of them the first
/// has the larger number, and how many cases are without one. Runs that are there only for wrong variations of claims do not
/// count.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab compare mpcc-loss lia\n  manypath lab compare stms-a minrtt-pr stms")]
pub(super) struct Args {
    /// The first
    first: String,

    /// The second
    second: String,

    /// Experiments or papers; all without it
    names: Vec<String>,

    #[command(flatten)]
    length: Length,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Serialize)]
struct Row {
    experiment: String,
    length: &'static str,
    metric: String,
    unit: String,
    first: f64,
    second: f64,
    larger: usize,
    cases: usize,
    /// Cases in which one of them was not run or gave no number.
    missing: usize,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    if args.first == args.second {
        bail!("'{}' is compared with itself: name two values of an axis", args.first);
    }
    let all = args.place.load()?;
    let store = args.place.store()?;
    let mut rows = Vec::new();
    for experiment in chosen(&all, &args.names)? {
        let (mode, results) = results(args.length, experiment, experiment.engines[0], &store)?;
        for Compared { metric, unit, means, larger, cases, missing, .. } in
            compare(&results.table()?, &args.first, &args.second)
        {
            let [first, second] = means;
            let (experiment, length) = (experiment.id.clone(), mode.as_str());
            rows.push(Row { experiment, length, metric, unit, first, second, larger, cases, missing });
        }
    }
    if rows.is_empty() {
        bail!(
            "no experiment that has been run has both '{}' and '{}': `manypath lab run` makes runs, `manypath lab show` names what \
             an experiment varies",
            args.first,
            args.second
        );
    }
    if args.json {
        return output::json(&rows);
    }
    let mut text = format!(
        "{:18} {:6} {:16} {:>12} {:>12} {:>8}  {}\n",
        "experiment", "length", "metric", args.first, args.second, "ratio", "first is larger"
    );
    for row in &rows {
        writeln!(
            text,
            "{:18} {:6} {:16} {:>12} {:>12} {:>8}  {} of {} {}{}",
            row.experiment,
            row.length,
            row.metric,
            short(row.first),
            short(row.second),
            short(row.first / row.second),
            row.larger,
            row.cases,
            if row.unit.is_empty() { String::new() } else { format!("({})", row.unit) },
            if row.missing == 0 { String::new() } else { format!(", {} without a number", row.missing) }
        )?;
    }
    output::line(text.trim_end())
}
