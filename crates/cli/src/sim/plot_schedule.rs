//! `sim plot-schedule`: the picture of a trace of scheduling decisions.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use manypath_output::{ScheduleView, schedule_figure, write_file};

use crate::client::parse_duration;
use crate::output;

/// Draw which data went on which subflow when, from a file of --trace-schedule
///
/// Every decision is a marker at its time and at the first data sequence number that it sends, as in Figures 4 and 9 of the
/// STMS paper. Each subflow has a shape of its own; data sent again and copies have others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim run mine.toml --trace-schedule trace.tsv\n  \
    manypath sim plot-schedule trace.tsv -o schedule.svg --from 2s --to 2200ms")]
pub(crate) struct Args {
    /// The trace
    file: PathBuf,

    /// Where the figure goes
    #[arg(short, long, value_name = "FILE.svg", value_parser = output::svg_place())]
    output: PathBuf,

    /// The connection; the first in the trace without it
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,

    /// From when on
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "0s",
        value_parser = parse_duration,
        allow_hyphen_values = true
    )]
    from: Duration,

    /// Until when; to the end without it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    to: Option<Duration>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(to) = args.to
        && to <= args.from
    {
        bail!("--to {to:?} is not after --from {:?}: there is no time between them", args.from);
    }
    let view = ScheduleView {
        connection: args.connection.clone(),
        from_s: args.from.as_secs_f64(),
        to_s: args.to.map_or(f64::INFINITY, |to| to.as_secs_f64()),
    };
    let figure = schedule_figure(&args.file, &view)?;
    Ok(write_file(&args.output, figure.to_svg().as_bytes())?)
}
