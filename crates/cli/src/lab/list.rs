//! `lab list`: the experiments.

use std::fmt::Write as _;

use anyhow::Result;
use manypath_lab::Mode;
use serde::Serialize;

use super::place::{Place, chosen};
use crate::output;

/// List the experiments
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab list\n  manypath lab list tccc --json")]
pub(super) struct Args {
    /// Experiments or papers (mpcc, tccc, stms, mp-ol, uni-mptcp); all without it
    names: Vec<String>,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    id: &'a str,
    paper: &'a str,
    place: &'a str,
    title: &'a str,
    engines: Vec<&'static str>,
    claims: usize,
    quick_runs: usize,
    full_runs: usize,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    let all = args.place.load()?;
    let rows = chosen(&all, &args.names)?.into_iter().map(|experiment| {
        let runs = |mode| experiment.cases(mode).len() * experiment.seeds(mode) as usize;
        Row {
            id: &experiment.id,
            paper: &experiment.paper,
            place: &experiment.place,
            title: &experiment.title,
            engines: experiment.engines.iter().map(|engine| engine.as_str()).collect(),
            claims: experiment.claims.len(),
            quick_runs: runs(Mode::Quick),
            full_runs: runs(Mode::Full),
        }
    });
    let rows: Vec<Row<'_>> = rows.collect();
    if args.json {
        return output::json(&rows);
    }
    let mut text = format!("{:18} {:>6} {:>6} {:>6}  {:28} title\n", "experiment", "claims", "quick", "full", "place");
    for row in rows {
        writeln!(
            text,
            "{:18} {:>6} {:>6} {:>6}  {:28} {}",
            row.id, row.claims, row.quick_runs, row.full_runs, row.place, row.title
        )?;
    }
    text.push_str("quick, full: runs of each length");
    output::line(&text)
}
