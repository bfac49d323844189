//! `emu check`: how exact the links are on this machine, now.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use manypath_core::{Duration as Span, Rate};
use manypath_emu::Awake;
use manypath_emu::tun::check::{self, Delays, LoadCheck, LossCheck, RateCheck};
use serde::Serialize;

use crate::CheckFailed;
use crate::client::parse_timeout;
use crate::output::{self, counted, rounded};

/// Rates may be off by so much.
const RATE_ERROR: f64 = 0.01;
/// A hundredth of the packets may be later than this.
const ADDED_DELAY: Span = Span::from_micros(500);
/// Numbers of lost packets may be so many standard deviations off: one in 16,000 measurements of right links is.
const DEVIATIONS: f64 = 4.0;
/// Two links of 100 Mbit/s may take so much of a processor.
const CPU_SHARE: f64 = 0.6;
/// Packets of a measurement of losses.
const LOSS_PACKETS: u64 = 100_000;

/// Measure how exact emulated links are on this machine, now
///
/// Rates under overload, the delay of lone packets beyond what is set, losses against their probability, and the processor time of
/// two links of 100 Mbit/s full of TCP. Exit code 1 if one of them is out of bounds: mostly, that other programs keep the processors busy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath emu check\n  manypath emu check --time 30s --json")]
pub(super) struct Args {
    /// How long each measurement takes
    #[arg(
        short,
        long,
        value_name = "DURATION",
        default_value = "5s",
        value_parser = parse_timeout,
        allow_hyphen_values = true
    )]
    time: Duration,

    /// Keep all processors awake meanwhile, as `up --awake` does
    #[arg(long)]
    awake: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct Report {
    /// Of the last minute, before the measurements.
    load_average: f64,
    processors: usize,
    /// How late a thread is woken from its sleep, as a measure of the machine and of what else it does.
    woken_late: String,
    checks: Vec<Row>,
}

/// One measurement.
#[derive(Debug, Serialize)]
struct Row {
    what: String,
    measured: String,
    bound: String,
    holds: bool,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> Result<()> {
    let _awake = args.awake.then(Awake::keep);
    let report = tokio::task::spawn_blocking(move || measure(args.time.into()).map(|report| (report, args.json)));
    let (report, json) = report.await.context("the measurement broke off")??;
    if json {
        output::json(&report)?;
    } else {
        output::text(&table(&report)?)?;
    }
    let broken = report.checks.iter().filter(|row| !row.holds).count();
    if broken > 0 {
        return Err(CheckFailed(format!("{broken} of {} measurements are out of bounds", report.checks.len())).into());
    }
    Ok(())
}

fn measure(time: Span) -> Result<Report> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load average")?;
    let load_average = load.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // Its steps take about as long as each other.
    let steps = ProgressBar::new(7).with_style(ProgressStyle::with_template("{bar:24} {pos} of {len} measurements")?);
    let woken_late = quantiles(&check::wake(time)?);
    steps.inc(1);
    let mut checks = Vec::new();
    for mbps in [10.0, 50.0, 100.0] {
        checks.push(rate_row(check::rate(Rate::from_mbps(mbps), time)?));
        steps.inc(1);
    }
    checks.push(delay_row(check::delay(time)?));
    steps.inc(1);
    checks.extend(check::losses(LOSS_PACKETS)?.iter().map(loss_row));
    steps.inc(1);
    checks.extend(load_rows(check::load(time)?));
    steps.finish_and_clear();
    Ok(Report { load_average, processors, woken_late, checks })
}

fn rate_row(check: RateCheck) -> Row {
    Row {
        what: format!("rate of {:.0} Mbit/s", check.set.as_mbps()),
        measured: format!("{:.3} Mbit/s ({:+.2}%)", check.measured.as_mbps(), check.error() * 100.0),
        bound: format!("within {:.0}%", RATE_ERROR * 100.0),
        holds: check.error().abs() <= RATE_ERROR,
    }
}

fn delay_row(delays: Delays) -> Row {
    Row {
        what: "added delay".to_owned(),
        measured: format!("{} of {} packets", quantiles(&delays), delays.count),
        bound: format!("p99 at most {ADDED_DELAY}"),
        holds: delays.count > 0 && delays.p99 <= ADDED_DELAY,
    }
}

fn quantiles(delays: &Delays) -> String {
    let [p50, p99, max] = [delays.p50, delays.p99, delays.max].map(millis);
    format!("p50 {p50} ms, p99 {p99} ms, max {max} ms")
}

fn millis(span: Span) -> f64 {
    rounded(span.as_secs_f64() * 1e3, 3)
}

fn loss_row(check: &LossCheck) -> Row {
    let LossCheck { what, set, sent, lost, .. } = check;
    Row {
        what: format!("{what} loss of {}%", set * 100.0),
        measured: format!("{lost} of {sent} ({:+.1} standard deviations)", check.distance()),
        bound: format!("within {DEVIATIONS} standard deviations"),
        holds: check.distance().abs() <= DEVIATIONS,
    }
}

fn load_rows(check: LoadCheck) -> [Row; 2] {
    let realtime = if check.realtime { "" } else { ", without real-time priority" };
    [
        Row {
            what: "two links of 100 Mbit/s".to_owned(),
            measured: format!(
                "{:.1}% of a processor at {:.1} Mbit/s of TCP{realtime}",
                check.cpu_share * 100.0,
                check.goodput.as_mbps()
            ),
            bound: format!("at most {:.0}%", CPU_SHARE * 100.0),
            holds: check.cpu_share <= CPU_SHARE,
        },
        Row {
            what: "the same, how late".to_owned(),
            measured: format!(
                "p99 {} ms, {} dropped unread",
                millis(check.late_p99),
                counted(check.kernel_drops, "packet", "packets")
            ),
            bound: format!("p99 at most {ADDED_DELAY}, none dropped"),
            holds: check.late_p99 <= ADDED_DELAY && check.kernel_drops == 0,
        },
    ]
}

fn table(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let Report { load_average, processors, woken_late, .. } = report;
    let processors = counted(*processors, "processor, which wakes", "processors, which wake");
    writeln!(text, "load average {load_average} on {processors} a thread late by {woken_late}")?;
    for Row { what, measured, bound, holds } in &report.checks {
        let verdict = if *holds { "ok" } else { "NO" };
        writeln!(text, "{verdict}  {what:<24} {measured:<56} {bound}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_not_counted_as_many() {
        let woken = |processors| {
            let woken_late = "50us".to_owned();
            table(&Report { load_average: 0.5, processors, woken_late, checks: Vec::new() }).unwrap()
        };
        assert_eq!(woken(1), "load average 0.5 on 1 processor, which wakes a thread late by 50us\n");
        assert_eq!(woken(2), "load average 0.5 on 2 processors, which wake a thread late by 50us\n");
    }
}
