//! `sim run`: simulate a scenario, once or with many seeds.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use manypath_core::Time;
use manypath_scenario::{Document, Override, Scenario};
use manypath_sim::{Job, Observer, Report, RunError};

use super::summary;
use crate::interrupt::Interrupt;
use crate::{CheckFailed, output};

/// Simulate a scenario and print what came of it
///
/// The same scenario and seed give the same output, byte for byte, on any number of threads.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim run mine.toml\n  manypath sim run mine.toml --seed 7 --json\n  \
    manypath sim run mine.toml --seeds 20 --set connection.cc=olia --set link.lte.loss=1%\n  \
    manypath sim run --set duration=5s          # the built-in scenario")]
pub(crate) struct Args {
    /// The scenario; `-` reads standard input, and without it the built-in one runs
    file: Option<PathBuf>,

    /// The seed of everything random, or the first of several
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Run with so many seeds, counted from --seed; the table shows means and ranges
    #[arg(long, value_name = "N")]
    seeds: Option<NonZeroU32>,

    /// How many runs at once; as many as there are processors without it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Replace a value of the file: KEY, link.NAME.KEY, connection.NAME.KEY, source.NAME.KEY; without NAME in all of them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// Print the reports as JSON: one, or a list with --seeds
    #[arg(long)]
    json: bool,
}

impl Args {
    /// What runs without any words.
    pub(super) fn built_in() -> Self {
        Self { file: None, seed: 1, seeds: None, jobs: None, set: Vec::new(), json: false }
    }

    fn seeds(&self) -> Result<Vec<u64>> {
        let count = self.seeds.map_or(1, NonZeroU32::get);
        let end = self.seed.checked_add(u64::from(count)).context("--seed is too large to count on from there")?;
        Ok((self.seed..end).collect())
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
    let scenario = document.parse(&args.set)?;
    let reports = reports(args, &document, &scenario, stop)?;
    match reports.as_slice() {
        [only] if args.seeds.is_none() => {
            output::text(&if args.json { only.to_json() } else { only.to_table() })?;
        }
        all if args.json => output::json(&all)?,
        all => output::text(&summary::table(all)?)?,
    }
    Ok(())
}

fn reports(args: &Args, document: &Document, scenario: &Scenario, stop: &AtomicBool) -> Result<Vec<Report>> {
    let seeds = args.seeds()?;
    let jobs: Vec<_> = seeds.iter().map(|seed| Job { scenario, seed: *seed }).collect();
    let threads = args.jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let bar = bar(seeds.len());
    let begun = Instant::now();
    let outcome = manypath_sim::run_all(&jobs, threads, |_| Watch {
        stop,
        bar: &bar,
        begun,
        duration: scenario.duration.as_secs_f64(),
        shown: 0,
    });
    bar.finish_and_clear();
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
    /// Simulated seconds.
    duration: f64,
    /// How much of this run the bar shows.
    shown: u64,
}

impl Observer for Watch<'_> {
    fn on_progress(&mut self, now: Time) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and WHOLE
        let done = (now.as_secs_f64() / self.duration * WHOLE as f64) as u64;
        self.bar.inc(done.saturating_sub(self.shown));
        self.shown = self.shown.max(done);
        ControlFlow::Continue(())
    }
}

impl Drop for Watch<'_> {
    /// The rest of a run, which may have ended without a look.
    fn drop(&mut self) {
        self.bar.inc(WHOLE.saturating_sub(self.shown));
    }
}
