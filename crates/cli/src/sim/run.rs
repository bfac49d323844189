//! `sim run`: simulate a scenario, once or with many seeds.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use manypath_core::Time;
use manypath_output::{Backpressure, TraceFile};
use manypath_scenario::{Document, Override, Scenario};
use manypath_session::Tracer;
use manypath_sim::{Job, Observer, Report, RunError};

use super::summary;
use crate::interrupt::Interrupt;
use crate::{CheckFailed, output};

/// Seeds are counted on from here and still fit a signed number, which is what tables have.
const LAST_SEED: u64 = 1 << 62;

/// The most seeds of a call: the reports of all of them are in memory at once, some kilobytes each.
const MAX_SEEDS: i64 = 100_000;

/// Simulate a scenario and print what came of it
///
/// The same scenario and seed give the same output, byte for byte, on any number of threads.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim run mine.toml\n  manypath sim run mine.toml --seed 7 --json\n  \
    manypath sim run mine.toml --seeds 20 --set connection.phone.cc=olia --set link.lte.loss=1%\n  \
    manypath sim run mine.toml --seeds 20 --parquet results --plot run.svg\n  \
    manypath sim run --set duration=60s          # the built-in scenario")]
pub(crate) struct Args {
    /// The scenario; `-` reads standard input, and without it the built-in one runs
    file: Option<PathBuf>,

    /// The seed of everything random, or the first of several
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = parse_seed)]
    seed: u64,

    /// Run with so many seeds, counted from --seed; the table shows means and ranges. Where nothing is random all are the
    /// same: `start-spread` in the scenario has each seed start its connections at other times
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_SEEDS))]
    seeds: Option<u32>,

    /// How many runs at once; as many as there are processors without it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Replace a value of the file: KEY, link.NAME.KEY, connection.NAME.KEY, source.NAME.KEY; without NAME in all of them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// Print the reports as JSON: one, or a list with --seeds
    #[arg(long)]
    json: bool,

    /// Write the results as Parquet tables into this folder
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,

    /// Draw the time series of the run (of the first seed, with --seeds)
    #[arg(long, value_name = "FILE.svg", value_parser = output::svg_place())]
    plot: Option<PathBuf>,

    /// Write a line for every scheduling decision; `manypath sim plot-schedule` draws them
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    trace_schedule: Option<PathBuf>,
}

/// Reads a seed.
pub(crate) fn parse_seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= LAST_SEED);
    seed.ok_or_else(|| format!("a seed is a whole number from 0 to {LAST_SEED}"))
}

impl Args {
    /// What runs without any words.
    pub(super) fn built_in() -> Self {
        Self {
            file: None,
            seed: 1,
            seeds: None,
            jobs: None,
            set: Vec::new(),
            json: false,
            parquet: None,
            plot: None,
            trace_schedule: None,
        }
    }

    fn seeds(&self) -> Vec<u64> {
        (self.seed..).take(self.seeds.map_or(1, |count| count as usize)).collect()
    }
}

/// Runs the command.
pub(crate) async fn run(args: Args, interrupt: &Interrupt) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let work = tokio::task::spawn_blocking({
        let stop = Arc::clone(&stop);
        move || simulate(&args, &stop)
    });
    let watch = async {
        interrupt.wait().await;
        stop.store(true, Ordering::Relaxed);
        // The work ends now, and with it this.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        done = work => done?,
        () = watch => Ok(()),
    }
}

fn simulate(args: &Args, stop: &AtomicBool) -> Result<()> {
    let document = args.file.as_deref().map_or_else(|| Ok(Document::built_in()), Document::read)?;
    let mut scenario = document.parse(&args.set)?;
    warn_of_absent(&document, &scenario);
    args.plot.as_deref().map_or(Ok(()), |path| output::check_folder_of(path, "--plot"))?;
    if let Some(folder) = &args.parquet {
        // Before the simulation, which may be long.
        if folder.exists() && !folder.is_dir() {
            bail!("{} is no folder: choose another place with --parquet", folder.display());
        }
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    if args.plot.is_some() && scenario.sample.is_none() {
        // Measuring changes nothing but itself. As if it was asked for: what memory does not hold is refused.
        let interval = (scenario.duration / PLOT_SAMPLES).max(manypath_core::Duration::from_micros(1));
        let sample = format!("sample={}ns", interval.as_nanos()).parse().map_err(|error: String| anyhow!(error))?;
        let overrides = [args.set.as_slice(), &[sample]].concat();
        scenario = document.parse(&overrides).context("--plot needs time series")?;
    }
    let reports = reports(args, &document, &scenario, stop)?;
    write_files(args, &document, &reports)?;
    match reports.as_slice() {
        [only] if args.seeds.is_none() => {
            output::text(&if args.json { only.to_json() } else { only.to_table() })?;
        }
        all if args.json => output::json(&all)?,
        all => output::text(&summary::table(all)?)?,
    }
    Ok(())
}

/// Rows of zeros in a report have a reason that is easily overlooked.
fn warn_of_absent(document: &Document, scenario: &Scenario) {
    for (line, name, start) in scenario.never_starts() {
        let place = if line > 0 { format!("{}:{line}", document.name()) } else { document.name().to_owned() };
        let end = scenario.duration;
        output::note(format_args!(
            "manypath: {place}: warning: '{name}' starts at {start}, and all ends at {end}: it sends nothing; let it start \
             earlier, or give a longer duration"
        ));
    }
}

/// Writes the files that were asked for.
fn write_files(args: &Args, document: &Document, reports: &[Report]) -> Result<()> {
    if let Some(folder) = &args.parquet {
        let overrides: Vec<_> = args.set.iter().map(Override::to_string).collect();
        let facts = [
            ("manypath.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("manypath.scenario", document.text().to_owned()),
            ("manypath.overrides", overrides.join("\n")),
            ("manypath.seed", args.seed.to_string()),
            ("manypath.runs", reports.len().to_string()),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), value));
        manypath_output::write_tables(folder, &manypath_output::run_tables(reports), &facts)?;
    }
    if let Some(path) = &args.plot {
        let figure = reports.first().and_then(manypath_output::run_figure).context("there is nothing to draw")?;
        manypath_output::write_file(path, figure.to_svg().as_bytes())?;
    }
    Ok(())
}

fn reports(args: &Args, document: &Document, scenario: &Scenario, stop: &AtomicBool) -> Result<Vec<Report>> {
    let seeds = args.seeds();
    let jobs: Vec<_> = seeds.iter().map(|seed| Job { scenario, seed: *seed }).collect();
    let threads = args.jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let trace = args.trace_schedule.as_deref().map(|path| TraceFile::create(path, Backpressure::Wait)).transpose()?;
    let bar = bar(seeds.len());
    let begun = Instant::now();
    let outcome = manypath_sim::run_all(&jobs, threads, |_| Watch {
        stop,
        bar: &bar,
        begun,
        scenario,
        trace: trace.as_ref(),
        shown: 0,
    });
    bar.finish_and_clear();
    // A trace that could not be written has ended the run: that is what is to be said.
    trace.map(TraceFile::finish).transpose()?;
    outcome.map_err(|error| explained(error, document, scenario))
}

/// An error with the place in the file that it comes from.
fn explained(error: RunError, document: &Document, scenario: &Scenario) -> anyhow::Error {
    if error == RunError::Stopped {
        return anyhow!("interrupted");
    }
    if error.is_bug() {
        return CheckFailed(error.to_string()).into();
    }
    let connection = scenario.connections.iter().find(|held| Some(held.name.as_str()) == error.connection());
    match connection.filter(|connection| connection.line > 0) {
        Some(connection) => anyhow!("{}:{}: {error}", document.name(), connection.line),
        None => anyhow!("{error}"),
    }
}

/// How many samples a figure has where the scenario asks for none.
const PLOT_SAMPLES: u64 = 500;

/// What a whole run is on the bar.
const WHOLE: u64 = 1000;

/// Runs that are over sooner show no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar for so many runs on standard error. Nothing is drawn where that is not a terminal.
fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64 * WHOLE), ProgressDrawTarget::hidden());
    let template = "{bar:24} {percent:>3}%  {elapsed} so far, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Looks on while a scenario runs.
struct Watch<'a> {
    stop: &'a AtomicBool,
    bar: &'a ProgressBar,
    begun: Instant,
    scenario: &'a Scenario,
    trace: Option<&'a TraceFile>,
    /// How much of this run the bar shows.
    shown: u64,
}

impl Observer for Watch<'_> {
    fn on_progress(&mut self, now: Time) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) || self.trace.is_some_and(TraceFile::has_failed) {
            return ControlFlow::Break(());
        }
        if self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and WHOLE
        let done = (now.as_secs_f64() / self.scenario.duration.as_secs_f64() * WHOLE as f64) as u64;
        self.bar.inc(done.saturating_sub(self.shown));
        self.shown = self.shown.max(done);
        ControlFlow::Continue(())
    }

    fn tracer(&mut self, connection: usize) -> Option<Box<dyn Tracer>> {
        Some(self.trace?.tracer(&self.scenario.connections.get(connection)?.name))
    }
}

impl Drop for Watch<'_> {
    /// The rest of a run, which may have ended without a look.
    fn drop(&mut self) {
        self.bar.inc(WHOLE.saturating_sub(self.shown));
    }
}
