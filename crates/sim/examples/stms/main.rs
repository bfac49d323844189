//! STMS (Shi et al., ATC 2018) in the setting of its section 2.1 over Multipath TCP: prints what the schedulers do
//! there, line by line. `cargo run --release -p manypath-sim --example stms -- [SEEDS] [CC...]`; without arguments five seeds of
//! `cubic` as Linux has it (`hystart=classic`), of `cubic` (HyStart++) and of `reno`, as in `docs/stms.md`.
#![allow(clippy::print_stdout)] // it is what the program is for

use std::num::NonZeroUsize;
use std::path::Path;

use manypath_sim::{Job, Report, run_all};

type Failure = Box<dyn std::error::Error>;

const SETTING: &str = include_str!("stms.toml");
const FAST: &str = "connection.path=[{route=[\"fast\"]}]";
const SLOW: &str = "connection.path=[{route=[\"slow\"]}]";
const BACK: &str = "connection.path=[{route=[\"fast\"],back=[\"fast-back\"]},{route=[\"slow\"],back=[\"slow-back\"]}]";
const PACED: &str = "connection.path=[{route=[\"pacer\",\"fast\"],back=[\"fast/back\"]},{route=[\"slow\"]}]";
const TCP: &str = "connection.transport=tcp";
const QUIC: &str = "connection.transport=quic";
/// s2.2: "The Data ACK won't be sent until the packets from the slow path reach the receiver".
const WINDOW: &str = "connection.ack-rule=window";
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

/// The setting with one controller, so many times.
struct Setting {
    cc: String,
    seeds: u64,
}

const DEFAULT: &str = "connection.scheduler=minrtt-pr";
const STMS: &str = "connection.scheduler=stms-a";
const NAMES: [&str; 5] = ["minrtt-pr", "ecf", "stms-c", "stms-a", "arrival-order"];
/// How much of what both paths carry alone counts as all of it (line b).
const NEARLY_ALL: f64 = 0.9;
const QUEUES_KB: [u32; 12] = [6, 12, 20, 30, 40, 50, 60, 90, 120, 150, 200, 300];

impl Setting {
    fn runs(&self, values: &[&str]) -> Result<Vec<Report>, Failure> {
        let receivers: &[&str] = if values.contains(&QUIC) { &[] } else { &[WINDOW] };
        runs(self.seeds, &[&[self.cc.as_str()], receivers, values].concat())
    }

    /// Mean goodput with host buffers of this size, Mbit/s.
    fn goodput(&self, host: &str, values: &[&str]) -> Result<f64, Failure> {
        let (send, receive) = (format!("connection.send-buffer={host}"), format!("connection.receive-buffer={host}"));
        Ok(goodput(&self.runs(&[&[send.as_str(), &receive], values].concat())?))
    }

    fn delays(&self) -> Result<(), Failure> {
        for name in NAMES {
            for (transport, warmup) in [(TCP, "0s"), (TCP, "20s"), (QUIC, "20s")] {
                let (scheduler, warmup_key) = (format!("connection.scheduler={name}"), format!("warmup={warmup}"));
                let reports = self.runs(&[&scheduler, &warmup_key, transport])?;
                let transport = transport.trim_start_matches("connection.transport=");
                let [order, scheduling, delay] = delays(&reports);
                let goodput = goodput(&reports);
                println!(
                    "a. {name:13} {transport:4} from {warmup:3}: out of order {order:6.1}, without repairs {scheduling:5.1}, \
                     write to delivery {delay:6.1}, goodput {goodput:.2}"
                );
            }
        }
        Ok(())
    }

    /// Lines b, c and f; `sum`: what both paths carry alone.
    fn buffers(&self, sum: f64) -> Result<(), Failure> {
        for host in ["128kB", "256kB", "512kB", "1MB", "2MB", "6MB"] {
            let at = |more: &[&str]| self.goodput(host, more);
            let (alone, pr, a) = (at(&[FAST])?, at(&[DEFAULT])?, at(&[STMS])?);
            println!("c. host {host:5}: fast alone {alone:.2}, minrtt-pr {pr:.2}, stms-a {a:.2}: ratio {:.3}", a / pr);
            let queue = "link.fast.queue=30kB";
            let (pr, a, paced) = (at(&[DEFAULT, queue])?, at(&[STMS, queue])?, at(&[DEFAULT, PACED, queue])?);
            println!("b. host {host:5}, fast queue 30 kB: minrtt-pr {pr:.2}, stms-a {a:.2}: ratio {:.3}", a / pr);
            println!("f. host {host:5}, fast queue 30 kB: minrtt-pr with its fast path paced {paced:.2}");
        }
        for host in ["2MB", "6MB"] {
            for name in ["minrtt-pr", "stms-a"] {
                let scheduler = format!("connection.scheduler={name}");
                let (mut enough, mut line) = (None, String::new());
                for queue in QUEUES_KB {
                    let share = self.goodput(host, &[&scheduler, &format!("link.fast.queue={queue}kB")])? / sum;
                    line += &format!(" {queue}: {share:.3}");
                    if share >= NEARLY_ALL {
                        enough.get_or_insert(queue);
                    }
                }
                let enough = enough.map_or("none of them".to_owned(), |queue| format!("{queue} kB"));
                println!("b. host {host:5}, {name:13}: 90% of the sum from {enough} of fast queue; shares by kB{line}");
            }
        }
        Ok(())
    }

    /// What the slow path carries for STMS-A, of what it carries alone (line c).
    fn slow_share(&self) -> Result<(), Failure> {
        let slow = |reports: &[Report], at: usize| mean(reports, |run| run.connections[0].subflows[at].delivered_bps);
        let (alone, with) = (slow(&self.runs(&[SLOW])?, 0), slow(&self.runs(&[STMS])?, 1));
        println!("c. host 6MB: the slow path carries {:.3} of what it carries alone", with / alone);
        Ok(())
    }

    fn gaps(&self) -> Result<(), Failure> {
        for (seed, report) in (1..).zip(self.runs(&[STMS])?) {
            if let Some((ratio, first)) = gap(&report, 0.090, 0.0) {
                println!("d. seed {seed}: gap / B_f (OWD_s - OWD_f) {ratio:.3}, first within 20% at {first:.1} s");
            }
        }
        // Round trips of 20 to 5 ms and of 200 to 100 ms. The means over a second no longer mix both from 46 s on.
        for (link, delay, apart) in [("fast", "2.5ms", 0.0975), ("slow", "50ms", 0.040)] {
            let change = |link: String| format!("link.{link}.schedule=[{{at=\"45s\",delay=\"{delay}\"}}]");
            let (there, back) = (change(link.to_owned()), change(format!("{link}-back")));
            for (seed, report) in (1..).zip(self.runs(&[STMS, BACK, &there, &back])?) {
                if let Some((_, again)) = gap(&report, apart, 46.0) {
                    println!("d. seed {seed}: {link} link {delay} from 45 s: within 20% again at {again:.1} s");
                }
            }
        }
        Ok(())
    }

    fn random_rates(&self) -> Result<(), Failure> {
        for host in ["2MB", "6MB"] {
            for name in NAMES {
                let scheduler = format!("connection.scheduler={name}");
                let (fast, slow) = (format!("link.fast.{RANDOM}"), format!("link.slow.{RANDOM}"));
                let goodput = self.goodput(host, &[&scheduler, &fast, &slow])?;
                println!("e. host {host}, random rates, {name:13}: {goodput:.2}");
            }
        }
        Ok(())
    }

    fn print(&self) -> Result<(), Failure> {
        println!("\n{}, {} seeds; goodput in Mbit/s, delays in ms", self.cc, self.seeds);
        let (fast, slow) = (goodput(&self.runs(&[FAST])?), goodput(&self.runs(&[SLOW])?));
        println!("   alone: fast {fast:.2}, slow {slow:.2}");
        let equal = ["link.slow.delay=10ms", "link.slow.queue=50ms"];
        let both = goodput(&self.runs(&[DEFAULT, equal[0], equal[1]])?);
        let one = goodput(&self.runs(&[SLOW, equal[0], equal[1]])?);
        println!("   minrtt-pr with equal RTTs: {:.3} of the sum", both / (fast + one));
        self.delays()?;
        self.buffers(fast + slow)?;
        self.slow_share()?;
        self.gaps()?;
        self.random_rates()
    }
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let seeds = words.next().map_or(Ok(5), |text| text.parse())?;
    let mut ccs: Vec<String> = words.collect();
    if ccs.is_empty() {
        ccs = ["cubic:hystart=classic", "cubic", "reno"].map(str::to_owned).to_vec();
    }
    ccs.iter().try_for_each(|cc| Setting { cc: format!("connection.cc={cc}"), seeds }.print())
}
