//! STMS (Shi et al., ATC 2018: paper 002) in the setting of its section 2.1 over Multipath TCP: prints what the schedulers do
//! there, line by line, for `cubic` and `reno`. `cargo run --release -p manypath-sim --example stms -- [SEEDS]`.
#![allow(clippy::print_stdout)] // it is what the program is for

use std::num::NonZeroUsize;
use std::path::Path;

use manypath_sim::{Job, Report, run_all};

type Failure = Box<dyn std::error::Error>;

const SETTING: &str = include_str!("stms.toml");
const FAST: &str = "connection.path=[{route=[\"fast\"]}]";
const SLOW: &str = "connection.path=[{route=[\"slow\"]}]";
const PACED: &str = "connection.path=[{route=[\"pacer\",\"fast\"],back=[\"fast/back\"]},{route=[\"slow\"]}]";
const RANDOM: &str = "redraw={every=\"10s\",rate={one-of=[\"5Mbit\",\"10Mbit\",\"20Mbit\",\"30Mbit\"]}}";

/// Runs the setting with these values replaced, once for each seed.
fn runs(seeds: u64, values: &[&str]) -> Result<Vec<Report>, Failure> {
    let values = values.iter().map(|value| value.parse()).collect::<Result<Vec<_>, _>>()?;
    let scenario = manypath_scenario::parse_with(SETTING, "stms.toml", Path::new("."), &values)?;
    let jobs: Vec<Job<'_>> = (1..=seeds).map(|seed| Job { scenario: &scenario, seed }).collect();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(run_all(&jobs, threads, |_| ())?)
}

fn mean(reports: &[Report], value: impl Fn(&Report) -> f64) -> f64 {
    reports.iter().map(value).sum::<f64>() / reports.len() as f64
}

fn goodput(reports: &[Report]) -> f64 {
    mean(reports, |run| run.goodput_bps * 1e-6)
}

/// Means of a measure in milliseconds: out-of-order delay, its part without losses, time from write to delivery.
fn delays(reports: &[Report]) -> [f64; 3] {
    let of = |which: usize| {
        mean(reports, |run| {
            let measures = run.connections[0].measures.unwrap_or_else(|| panic!("the setting samples"));
            let all = [measures.out_of_order_delay_s, measures.scheduling_delay_s, measures.write_to_delivery_s];
            all[which].mean.unwrap_or(0.0) * 1e3
        })
    };
    [of(0), of(1), of(2)]
}

/// The mean gap over the mean of `B_f (OWD_s - OWD_f)` from 20 s on, and when from `since` on the gap first was within 20%
/// of it; `apart`: what the delays of the links differ by, all in seconds.
fn gap(report: &Report, apart: f64, since: f64) -> Option<(f64, f64)> {
    let series = report.series.as_ref()?;
    let gaps = series.connections[0].subflows[1].inspected.get("gap_segments")?;
    let late = |link: usize, at: usize| series.links[link].queue_bytes[at] as f64 * 8.0 / 30e6;
    // A second's means: rates of single samples are coarse.
    let smooth = |at: usize, value: &dyn Fn(usize) -> f64| (at - 9..=at).map(value).sum::<f64>() / 10.0;
    let truth = |at: usize| {
        let segments = smooth(at, &|at| series.links[0].throughput_bps[at]) / 12_000.0;
        segments * (apart + smooth(at, &|at| late(2, at) - late(0, at)))
    };
    let near = |at: &usize| (smooth(*at, &|at| gaps[at]) / truth(*at) - 1.0).abs() < 0.2;
    let first =
        (9..gaps.len()).filter(|at| series.time_s[*at] >= since).find(near).map_or(f64::NAN, |at| series.time_s[at]);
    let steady = 200..gaps.len();
    let sum = |value: &dyn Fn(usize) -> f64| steady.clone().map(value).sum::<f64>();
    Some((sum(&|at| gaps[at]) / sum(&truth), first))
}

fn table(cc: &str, seeds: u64) -> Result<(), Failure> {
    let cc = format!("connection.cc={cc}");
    let with = |values: &[&str]| runs(seeds, &[&[cc.as_str()], values].concat());
    let (default, stms) = ("connection.scheduler=minrtt-pr", "connection.scheduler=stms-a");
    println!("\n{cc}, {seeds} seeds; goodput in Mbit/s, delays in ms");
    let (fast, slow) = (with(&[FAST])?, with(&[SLOW])?);
    println!("   alone: fast {:.2}, slow {:.2}", goodput(&fast), goodput(&slow));
    for name in ["minrtt-pr", "ecf", "stms-c", "stms-a"] {
        let scheduler = format!("connection.scheduler={name}");
        for warmup in ["0s", "20s"] {
            let reports = with(&[&scheduler, &format!("warmup={warmup}")])?;
            let [order, scheduling, delay] = delays(&reports);
            let goodput = goodput(&reports);
            println!(
                "a. {name:9} from {warmup:3}: out of order {order:6.1}, of it by scheduling {scheduling:5.1}, write to \
                 delivery {delay:6.1}, goodput {goodput:.2}"
            );
        }
    }
    let equal = ["link.slow.delay=10ms", "link.slow.queue=50ms"];
    let (both, one) = (with(&[default, equal[0], equal[1]])?, with(&[SLOW, equal[0], equal[1]])?);
    println!("   minrtt-pr with equal RTTs: {:.3} of the sum", goodput(&both) / (goodput(&fast) + goodput(&one)));
    for host in ["128kB", "256kB", "512kB", "1MB", "2MB", "6MB"] {
        let (send, receive) = (format!("connection.send-buffer={host}"), format!("connection.receive-buffer={host}"));
        let at = |more: &[&str]| Ok::<_, Failure>(goodput(&with(&[&[send.as_str(), &receive], more].concat())?));
        let (alone, pr, a) = (at(&[FAST])?, at(&[default])?, at(&[stms])?);
        println!("c. host {host:5}: fast alone {alone:.2}, minrtt-pr {pr:.2}, stms-a {a:.2}: ratio {:.3}", a / pr);
        for queue in ["15kB", "30kB", "60kB", "90kB"] {
            let queue = format!("link.fast.queue={queue}");
            let (pr, a) = (at(&[default, &queue])?, at(&[stms, &queue])?);
            println!("b. host {host:5}, {queue}: minrtt-pr {pr:.2}, stms-a {a:.2}: ratio {:.3}", a / pr);
        }
        let paced = at(&[default, PACED, "link.fast.queue=30kB"])?;
        println!("f. host {host:5}, link.fast.queue=30kB: minrtt-pr with its fast path paced {paced:.2}");
    }
    for (seed, report) in (1..).zip(with(&[stms])?) {
        if let Some((ratio, first)) = gap(&report, 0.090, 0.0) {
            println!("d. seed {seed}: gap / B_f (OWD_s - OWD_f) {ratio:.3}, first within 20% at {first:.1} s");
        }
    }
    // Round trips of 20 to 5 ms and of 200 to 100 ms. The means over a second no longer mix both from 46 s on.
    for (link, delay, apart) in [("fast", "2.5ms", 0.0975), ("slow", "50ms", 0.040)] {
        let change = format!("link.{link}.schedule=[{{at=\"45s\",delay=\"{delay}\"}}]");
        for (seed, report) in (1..).zip(with(&[stms, &change])?) {
            if let Some((_, again)) = gap(&report, apart, 46.0) {
                println!("d. seed {seed}: {link} link {delay} from 45 s: within 20% again at {again:.1} s");
            }
        }
    }
    for host in ["2MB", "6MB"] {
        let (send, receive) = (format!("connection.send-buffer={host}"), format!("connection.receive-buffer={host}"));
        for name in ["minrtt-pr", "ecf", "stms-c", "stms-a"] {
            let scheduler = format!("connection.scheduler={name}");
            let (fast, slow) = (format!("link.fast.{RANDOM}"), format!("link.slow.{RANDOM}"));
            let reports = with(&[&scheduler, &send, &receive, &fast, &slow])?;
            println!("e. host {host}, random rates, {name:9}: {:.2}", goodput(&reports));
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let seeds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    ["cubic", "reno"].iter().try_for_each(|cc| table(cc, seeds))
}
