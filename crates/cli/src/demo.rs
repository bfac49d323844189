//! `demo`: the main job in one command. One file over an emulated WiFi link, over an emulated LTE link, and over both,
//! through real sockets, with several controllers.

mod outcome;
mod page;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use manypath_core::AlgorithmSpec;

use self::outcome::{DemoLink, Failure, LINKS, LinkCheck, Measured, Outcome};
use self::run::{Served, Server};
use crate::CheckFailed;
use crate::algorithms;
use crate::client::parse_duration;
use crate::interrupt::Interrupt;
use crate::output;

/// The controllers that are compared when none is named.
const DEFAULT: [&str; 3] = ["cubic", "lia", "mpcc-loss"];

/// The shortest and the longest run: the first two seconds do not count.
const LENGTHS: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(600));

/// How far a link's measured rate may be from its setting.
const EXACTNESS: f64 = 0.01;

/// How often a run is made at most until its links are exact: one pause of the processor is percents of a short backlog.
const TRIES: u32 = 3;

/// Download one file over WiFi, over LTE and over both, and compare
///
/// Starts a server process and emulates both links inside this program; needs no privileges and uses the loopback
/// interface only. Prints one table and writes a page with a plot of every run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath demo\n  manypath demo --cc mpcc-latency --cc balia\n  manypath demo --all --json"
)]
pub(crate) struct Args {
    /// Compare this controller instead of cubic, lia and mpcc-loss; repeat it for more
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]", value_parser = algorithms::parse_cc)]
    cc: Vec<AlgorithmSpec>,

    /// Use this scheduler for all, instead of `arrival-order:rescue=on` (with uni-mptcp, `minrtt`)
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]", value_parser = algorithms::parse_sched)]
    sched: Option<AlgorithmSpec>,

    /// Compare every registered controller
    #[arg(long, conflicts_with = "cc")]
    all: bool,

    /// Length of each download, from 4s to 10min
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "8.5s",
        value_parser = parse_duration,
        allow_hyphen_values = true
    )]
    time: Duration,

    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "manypath-demo.html")]
    page: PathBuf,

    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    output::check_folder_of(&args.page, "--page")?;
    let measured = tokio::select! {
        measured = measure(args) => measured?,
        () = interrupt.wait() => bail!("interrupted; the server process was ended"),
    };
    let outcomes = &measured.outcomes;
    if outcomes.is_empty() {
        return verdict(&measured);
    }
    output::line(&if args.json { outcome::json(&measured)? } else { outcome::table(outcomes) })?;
    std::fs::write(&args.page, page::page(outcomes))
        .with_context(|| format!("cannot write {}: choose another place with --page", args.page.display()))?;
    if !args.json {
        output::line(&format!("Plots: {}", args.page.display()))?;
    }
    verdict(&measured)
}

/// Whether everything was measured, and right.
fn verdict(measured: &Measured) -> Result<()> {
    if !measured.failures.is_empty() {
        let failures: Vec<_> = measured.failures.iter().map(ToString::to_string).collect();
        bail!("{}", failures.join("; "));
    }
    match measured.outcomes.iter().find_map(fault) {
        Some(fault) => Err(CheckFailed(fault).into()),
        None => Ok(()),
    }
}

/// What makes a run worthless, if anything does.
fn fault(outcome: &Outcome) -> Option<String> {
    let run = format!("{} over {}", outcome.cc, outcome.path_names());
    if !outcome.sha256_ok {
        return Some(format!("{run}: what arrived is not the file"));
    }
    let inexact = inexact(outcome)?;
    Some(format!(
        "{run}: the {} link was not what it was set to: run again when the machine is less busy",
        inexact.link
    ))
}

/// A link that was not what it was set to.
fn inexact(outcome: &Outcome) -> Option<&LinkCheck> {
    outcome.links.iter().find(|link| link.error().is_some_and(|error| error > EXACTNESS))
}

/// The links of each controller's runs.
const RUNS: [&[DemoLink]; 3] = [LINKS.split_at(1).0, LINKS.split_at(1).1, &LINKS];

/// Measures every controller. One that fails does not take the results of the others with it.
async fn measure(args: &Args) -> Result<Measured> {
    if !(LENGTHS.0..=LENGTHS.1).contains(&args.time) {
        bail!("--time takes 4s to 10min: the first two seconds of a run do not count");
    }
    let controllers = controllers(args);
    let progress = progress(controllers.len() * RUNS.len());
    let served = Served::make(args.time)?;
    let mut measured = Measured::default();
    for (cc, sched) in &controllers {
        let before = measured.outcomes.len();
        if let Err(error) = measure_one(args, &served, (cc, sched), &progress, &mut measured.outcomes).await {
            let failure = Failure { cc: cc.to_string(), error: format!("{error:#}") };
            progress.suspend(|| output::note(&failure));
            measured.failures.push(failure);
            progress.inc((before + RUNS.len() - measured.outcomes.len()) as u64);
        }
    }
    progress.finish_and_clear();
    Ok(measured)
}

/// Makes the runs of one controller; each goes to `outcomes` as it ends.
async fn measure_one(
    args: &Args,
    served: &Served,
    (cc, sched): (&AlgorithmSpec, &AlgorithmSpec),
    progress: &ProgressBar,
    outcomes: &mut Vec<Outcome>,
) -> Result<()> {
    let server = Server::start(served, cc, sched).await?;
    for links in RUNS {
        let names: Vec<_> = links.iter().map(|link| link.name).collect();
        progress.set_message(format!("{cc} over {}", names.join(" + ")));
        let seed = outcomes.len() as u64 * 10;
        let mut tries = 1;
        let outcome = loop {
            let run = run::download(served, &server, (cc, sched), links, args.time, seed);
            let outcome = run.await.with_context(|| format!("over {}", names.join(" + ")))?;
            match inexact(&outcome).filter(|_| tries < TRIES) {
                Some(link) => progress.suspend(|| output::note(format!("the {} link was not exact: again", link.link))),
                None => break outcome,
            }
            tries += 1;
        };
        let line = format!("{cc} over {}: {:.1} Mbit/s", outcome.path_names(), outcome.goodput_mbps);
        progress.suspend(|| output::note(line));
        outcomes.push(outcome);
        progress.inc(1);
    }
    Ok(())
}

/// The controllers to compare, each with its scheduler.
fn controllers(args: &Args) -> Vec<(AlgorithmSpec, AlgorithmSpec)> {
    let named: Vec<AlgorithmSpec> = if args.all {
        manypath_cc::algorithms().iter().map(|algorithm| AlgorithmSpec::named(algorithm.name)).collect()
    } else if args.cc.is_empty() {
        DEFAULT.map(AlgorithmSpec::named).to_vec()
    } else {
        args.cc.clone()
    };
    let pair = |cc: AlgorithmSpec| {
        let sched = args.sched.clone().unwrap_or_else(|| algorithms::default_sched(&cc));
        (cc, sched)
    };
    named.into_iter().map(pair).collect()
}

fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::outcome::tests::outcome;
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    /// No server starts here: the program of a test is none.
    #[tokio::test]
    async fn a_controller_that_fails_leaves_the_others_their_turn() {
        let args = Cli::parse_from(["x", "--cc", "lia", "--cc", "cubic", "--time", "4s"]).args;
        let mut measured = measure(&args).await.unwrap();
        assert_eq!(measured.failures.iter().map(|failure| failure.cc.as_str()).collect::<Vec<_>>(), ["lia", "cubic"]);
        measured.outcomes.push(outcome("reno", vec!["wifi"], 40.0));
        let told = verdict(&measured).unwrap_err();
        assert!(!told.is::<CheckFailed>() && told.to_string().contains("lia failed: the server process did not start"));
        let value: serde_json::Value = serde_json::from_str(&outcome::json(&measured).unwrap()).unwrap();
        assert_eq!((&value["runs"][0]["cc"], &value["failures"][1]["cc"]), (&"reno".into(), &"cubic".into()));
    }

    #[test]
    fn a_run_with_wrong_bytes_or_wrong_links_is_a_failure() {
        let good = outcome("lia", vec!["wifi"], 40.0);
        assert_eq!(fault(&good), None);
        let mut wrong = outcome("lia", vec!["wifi"], 40.0);
        wrong.sha256_ok = false;
        assert!(fault(&wrong).is_some_and(|fault| fault.contains("not the file")));
        let mut busy = outcome("lia", vec!["wifi"], 40.0);
        busy.links[0].measured_mbps = Some(49.0); // 2% below 50
        assert!(fault(&busy).is_some_and(|fault| fault.contains("the wifi link")));
    }
}
