//! `lab run`: makes the runs that are not there yet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use manypath_lab::{Engine, EngineKind, Experiment, Failure, Mode, Plan, engine, runs_needed};

use super::place::{Length, Place, add_to_log, axis_value, chosen, parse_engine};
use crate::CheckFailed;
use crate::interrupt::Interrupt;
use crate::output::{self, counted};

/// The most runs of a case: the list of all runs is in memory.
const MAX_SEEDS: i64 = 10_000;

/// Run experiments
///
/// What has been run with the same scenario, seed and code is not run again: an interrupted run goes on where it was.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab run mpcc-fig5a\n  manypath lab run tccc --full --jobs 8\n  \
    manypath lab run mpcc-fig5a --engine quic --case cc=lia --case cc=mpcc-loss --seeds 1\n  \
    manypath lab run --all --quick")]
pub(super) struct Args {
    /// Experiments or papers (mpcc, tccc, stms, mp-ol, uni-mptcp)
    #[arg(required_unless_present = "all")]
    names: Vec<String>,

    /// Every experiment
    #[arg(long, conflicts_with = "names")]
    all: bool,

    #[command(flatten)]
    length: Length,

    /// How many runs at once; as many as there are processors without it, and always one in real time
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Runs of each case, in place of the experiment's own number
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_SEEDS))]
    seeds: Option<u32>,

    /// What carries out the runs: sim, theory, quic or kernel; each experiment's first one without it
    #[arg(long, value_name = "ENGINE", value_parser = parse_engine)]
    engine: Option<EngineKind>,

    /// Only the cases with this value; several of one axis take each of them
    #[arg(long, value_name = "AXIS=LABEL")]
    case: Vec<String>,

    /// Say how many runs are missing and about how long they take, and make none
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    place: Place,
}

/// Work that one processor does in a second: 2.5 million packets of 1500 bytes, in bits.
const WORK_PER_SECOND: f64 = 3e10;

/// Runs the command.
pub(super) async fn run(args: Args, interrupt: &Interrupt) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut work = tokio::task::spawn_blocking({
        let stop = Arc::clone(&stop);
        move || work(&args, &stop)
    });
    tokio::select! {
        done = &mut work => done?,
        () = interrupt.wait() => {
            stop.store(true, Ordering::Relaxed);
            output::note("finishing the runs under way; a second Ctrl-C ends at once");
            work.await?
        }
    }
}

fn work(args: &Args, stop: &AtomicBool) -> Result<()> {
    let all = args.place.load()?;
    let (mode, store) = (args.length.mode().unwrap_or(Mode::Quick), args.place.store()?);
    let mut plans = Vec::new();
    for experiment in runs_needed(&all, &chosen(&all, &args.names)?) {
        let kind = args.engine.unwrap_or(experiment.engines[0]);
        if !experiment.engines.contains(&kind) {
            continue;
        }
        let engine = engine(kind);
        if let Some(obstacle) = engine.obstacle() {
            bail!("skipped: the engine {} cannot run here: {obstacle}", kind.as_str());
        }
        let seeds = args.seeds.unwrap_or_else(|| experiment.seeds(mode));
        let users: Vec<&Experiment> = all.iter().filter(|user| user.runs_of == experiment.id).collect();
        let mut plan = Plan::new(experiment, &users, (mode, seeds), engine.as_ref(), &store)?;
        plan.select(&selected(experiment, &args.case)?);
        plans.push((plan, engine));
    }
    if plans.is_empty() {
        bail!("none of these runs on that engine: `manypath lab list --json` says which do");
    }
    let is_real_time = plans.iter().all(|(_, engine)| engine.is_real_time());
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let jobs = if is_real_time { 1 } else { jobs };
    if args.dry_run {
        return dry_run(&plans, jobs);
    }
    let begun = Instant::now();
    let works = plans.iter().map(|(plan, engine)| work_of(engine.as_ref(), plan.cost(), plan.duration()));
    let bar = bar(works.sum());
    let (mut made, mut held, mut skipped, mut failures) = (0, 0, 0, Vec::new());
    for (plan, engine) in &plans {
        bar.set_message(plan.experiment().id.clone());
        let mut progress = |run: &manypath_lab::Run| bar.inc(units(work_of(engine.as_ref(), run.cost, run.duration())));
        let outcome = plan.carry_out(engine.as_ref(), jobs, &store, stop, &mut progress)?;
        made += outcome.made;
        held += outcome.held;
        for (reason, count) in by_reason(&outcome.skipped) {
            skipped += count;
            let count = counted(count, "run", "runs");
            bar.suspend(|| output::note(format_args!("{}: {count} skipped: {reason}", plan.experiment().id)));
        }
        for failure in &outcome.failures {
            bar.suspend(|| output::note(format_args!("{}: {}", failure.run, failure.reason)));
        }
        failures.extend(outcome.failures);
        if outcome.stopped {
            bar.finish_and_clear();
            let ended = format!(", interrupted within {}", plan.experiment().id);
            remember(&args.place, mode, made, (begun.elapsed(), &ended), jobs)?;
            let made = counted(made, "run, which is kept", "runs, which are kept");
            bail!("interrupted after {made}: the same command goes on from here");
        }
    }
    bar.finish_and_clear();
    remember(&args.place, mode, made, (begun.elapsed(), ""), jobs)?;
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    let (made, failed) = (counted(made, "run", "runs"), failures.len());
    output::line(&format!("{made} made, {held} there already{skipped}, {failed} failed ({})", mode.as_str()))?;
    if failed == 0 { Ok(()) } else { Err(CheckFailed(format!("{} failed", counted(failed, "run", "runs"))).into()) }
}

/// Notes how runs were made: how many, in what time, and how the command ended if it did not come to its end.
fn remember(place: &Place, mode: Mode, made: usize, (time, ended): (Duration, &str), jobs: usize) -> Result<()> {
    if made == 0 {
        return Ok(());
    }
    let command = without_places(std::env::args().skip(1)).join(" ");
    let (mode, seconds, version) = (mode.as_str(), time.as_secs_f64(), env!("CARGO_PKG_VERSION"));
    let made = counted(made, "run", "runs");
    add_to_log(
        place,
        &format!("{mode}: manypath {command}: {made} in {seconds:.0} s{ended}, {jobs} at once, version {version}"),
    )
}

/// How many runs each reason keeps from being made.
fn by_reason(skipped: &[Failure]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    skipped.iter().for_each(|failure| *counts.entry(failure.reason.as_str()).or_default() += 1);
    counts
}

/// A command without the folders that this machine has for experiments and results.
fn without_places(words: impl Iterator<Item = String>) -> Vec<String> {
    const PLACES: [&str; 2] = ["--experiments", "--results"];
    let mut words = words;
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if PLACES.contains(&word.as_str()) {
            words.next();
        } else if !PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(|rest| rest.starts_with('='))) {
            kept.push(word);
        }
    }
    kept
}

/// The values of each axis that are meant, by index; all of an axis that is not named.
fn selected(experiment: &Experiment, given: &[String]) -> Result<Vec<Vec<usize>>> {
    let mut selected = vec![Vec::new(); experiment.axes.len()];
    for text in given {
        let (axis, value) = axis_value(experiment, text)?;
        selected[axis].push(value);
    }
    Ok(selected)
}

/// Says what is missing: of each experiment, and altogether.
fn dry_run(plans: &[(Plan<'_>, Box<dyn Engine>)], jobs: usize) -> Result<()> {
    let mut text = String::new();
    let (mut runs, mut total) = (0, 0.0);
    for (plan, engine) in plans {
        // In real time there is one job.
        let at_once = if engine.is_real_time() { 1.0 } else { jobs as f64 };
        let seconds = work_of(engine.as_ref(), plan.cost(), plan.duration()) / WORK_PER_SECOND / at_once;
        // The space keeps the numbers in their column.
        let count = counted(plan.len(), "run ", "runs");
        writeln!(text, "{:18} {count:>11} {seconds:>8.0} s", plan.experiment().id)?;
        runs += plan.len();
        total += seconds;
    }
    let time = if total < 120.0 { format!("{total:.0} s") } else { format!("{:.0} min", total / 60.0) };
    let runs = counted(runs, "run", "runs");
    write!(text, "{runs} to make, about {time} with {jobs} at once on an idle machine")?;
    output::line(&text)
}

/// The work of runs: what they cost, or in real time what one processor could do meanwhile, whatever they send.
fn work_of(engine: &dyn Engine, cost: f64, duration: Duration) -> f64 {
    if engine.is_real_time() { duration.as_secs_f64() * WORK_PER_SECOND } else { cost }
}

/// The work of a run in units of the bar.
fn units(cost: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // costs are positive; casts saturate
    let units = (cost * 1e-5) as u64;
    units.max(1)
}

/// A bar on standard error. Nothing is drawn where that is not a terminal.
fn bar(cost: f64) -> ProgressBar {
    let bar = ProgressBar::new(units(cost));
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {elapsed} so far, {eta} left  {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_no_part_of_the_command() {
        let words =
            "lab run --results some/where mpcc --full --experiments=there --jobs 2".split(' ').map(str::to_owned);
        assert_eq!(without_places(words).join(" "), "lab run mpcc --full --jobs 2");
    }

    #[test]
    fn runs_in_real_time_count_by_how_long_they_are() {
        let work = |kind| work_of(engine(kind).as_ref(), 7.0, Duration::from_secs(2)) / WORK_PER_SECOND;
        assert!(work(EngineKind::Sim) < 1e-6);
        assert!((work(EngineKind::Quic) - 2.0).abs() < 1e-9);
    }
}
