//! `lab show`: an experiment in words, and the scenario of a case.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use manypath_lab::{Case, Experiment, Mode};

use super::place::{Place, axis_value, chosen};
use crate::output;

/// Show an experiment: its setting, axes, metrics and claims, or the scenario of one case
///
/// With --case it prints a scenario that `manypath sim run` takes: the way to look closer, or to change something.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab show mpcc-fig5a\n  \
    manypath lab show mpcc-fig5a --case cc=mpcc-loss --case buffer=9kB > mine.toml")]
pub(super) struct Args {
    /// The experiment
    name: String,

    /// Print the scenario of this case: AXIS=LABEL for each axis; the first value where an axis is not given
    #[arg(long, value_name = "AXIS=LABEL")]
    case: Vec<String>,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    let all = args.place.load()?;
    let found = chosen(&all, core::slice::from_ref(&args.name))?;
    let [experiment] = found[..] else { bail!("'{}' is a paper: name one experiment", args.name) };
    if args.case.is_empty() {
        return output::line(describe(experiment)?.trim_end());
    }
    let case = case(experiment, &args.case)?;
    match experiment.scenario(&case, Mode::Full)? {
        Some((text, _)) => {
            output::line(&format!("# {}: {}\n{}", experiment.id, experiment.describe(&case), text.trim_end()))
        }
        None => bail!("'{}' asks theory: it has no scenario", args.name),
    }
}

fn case(experiment: &Experiment, given: &[String]) -> Result<Case> {
    let mut indices = vec![0; experiment.axes.len()];
    for text in given {
        let (at, index) = axis_value(experiment, text)?;
        indices[at] = index;
    }
    Ok(Case(indices))
}

fn describe(experiment: &Experiment) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "{} ({}, {})\n{}\n", experiment.title, experiment.paper, experiment.place, experiment.about)?;
    for axis in &experiment.axes {
        let labels: Vec<&str> = axis.values.iter().map(|value| value.label.as_str()).collect();
        writeln!(out, "axis {}: {}", axis.name, labels.join(" | "))?;
    }
    for metric in &experiment.metrics {
        writeln!(out, "metric {}: {}{}", metric.name, metric.title, unit(&metric.unit))?;
    }
    writeln!(out)?;
    for claim in &experiment.claims {
        writeln!(out, "claim {}: {} [{}; {}]", claim.id, claim.says, claim.number, claim.place)?;
    }
    if !experiment.deviations.is_empty() {
        writeln!(out, "\nOurs differs, or is our choice where the paper is silent:")?;
    }
    for deviation in &experiment.deviations {
        writeln!(out, "* {deviation}")?;
    }
    Ok(out)
}

fn unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" ({unit})") }
}
