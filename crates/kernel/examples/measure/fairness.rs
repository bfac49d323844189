//! A connection of two subflows beside one TCP Reno flow, all over one bottleneck.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use crate::flow::{Flow, Wish, goodput, links, median, send_single_packets};
use crate::{BUILT_IN, Failure, Loaded, Outcome, Session};

/// One link of 50 Mbit/s with a queue of one product of rate and round trip, 30 ms, for two subflows and a TCP flow.
const SCENARIO: &str = "duration = \"90s\"\n\
    [[link]]\nname = \"shared\"\nrate = \"50Mbit\"\ndelay = \"15ms\"\nqueue = \"187500B\"\n\
    [[connection]]\nname = \"multipath\"\ncc = \"reno\"\npath = [{ route = [\"shared\"] }, { route = [\"shared\"] }]\n\
    [[connection]]\nname = \"single\"\ncc = \"reno\"\npath = [{ route = [\"shared\"] }]\n";

/// Where the TCP flow is found: the paths of all connections over the same links are the same, so it has the first.
const SINGLE: usize = 0;

/// Run as often as is asked for; the others once, to see them beside these.
const REPEATED: [&str; 7] = ["reno", "mp_lia", "mp_olia", "mp_balia", "mp_tccc", "mp_mpcc_lat", "mp_uni"];

/// What else decides who meets a full queue: see docs/kernel.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// As the kernel sends if nothing is said: up to 64 KB at a time, cut into packets below TCP.
    Segments,
    /// One packet at a time, TCP's and ours.
    Packets,
}

impl Setting {
    /// All, in the order of the table of [`crate::validation`].
    pub(crate) const ALL: [Self; 2] = [Self::Segments, Self::Packets];

    /// The part of the measurements, and the first word of its results' names.
    pub(crate) const fn part(self) -> &'static str {
        match self {
            Self::Segments => "fairness",
            Self::Packets => "per-packet",
        }
    }
}

/// When the second flow comes. Runs differ by this: there is no randomness on the links.
const fn late_ms(run: u64) -> u64 {
    500 + 70 * run
}

/// The scenario as the simulator runs it: the TCP flow first, as long as it is measured here. Round trips vary by the time of a packet on the
/// link: without that, 30 ms are the time of 125 packets, and each packet finds the queue as the one a round trip before has left it, which
/// the emulator's and the kernel's timers do not keep (Floyd and Jacobson, 1992).
pub(crate) fn simulated(run: u64) -> String {
    let late = format!("cc = \"reno\"\nstart = \"{}ms\"", late_ms(run));
    let noisy = SCENARIO.replacen("delay = \"15ms\"", "delay = \"15ms\"\njitter = \"240us\"", 1);
    noisy.replacen("90s", "65s\"\nwarmup = \"5s", 1).replacen("cc = \"reno\"", &late, 1)
}

/// Goodput of the connection over that of the TCP flow, in one run.
fn ratio(controller: &str, setting: Setting, run: u64, seconds: u64) -> Result<f64, Failure> {
    let links = links(SCENARIO, run + 1)?;
    if setting == Setting::Packets {
        send_single_packets(&links)?;
    }
    let wish = |controller, multipath, port| Wish { multipath, port, ..Wish::of(controller, None) };
    let single = Flow::over(&links, SINGLE, &wish("reno", false, 5001))?;
    thread::sleep(Duration::from_millis(late_ms(run)));
    let multipath = Flow::over(&links, 0, &wish(controller, true, 5000))?;
    let [ours, theirs] = goodput([&multipath, &single], 5, seconds);
    Ok(ours / theirs)
}

pub(crate) fn measure(session: &mut Session, setting: Setting) -> Result<Outcome, Failure> {
    let part = setting.part();
    let loaded = Loaded::all(session, part)?;
    let ours = loaded.iter().map(|loaded| (loaded.title.clone(), loaded.name.as_str()));
    let builtin = BUILT_IN.into_iter().filter(|name| session.wants(name)).map(|name| (name.to_owned(), name));
    let all: Vec<(String, &str)> = builtin.chain(ours).collect();
    let seconds = session.seconds(60);
    let mut outcome = Outcome::default();
    writeln!(outcome.table, "| controller | runs | median | least | most |\n|---|---:|---:|---:|---:|")?;
    for (name, controller) in all {
        let repeated = REPEATED.contains(&name.as_str());
        if setting != Setting::Segments && !repeated {
            continue;
        }
        let runs = 0..if repeated { session.runs() } else { 1 };
        let ratios = runs.map(|run| {
            let measure = || Ok(vec![ratio(controller, setting, run, seconds)?]);
            session.results.get(&format!("{part}/{name}/{run}"), measure).map(|found| found[0])
        });
        let ratios = ratios.collect::<Result<Vec<_>, _>>()?;
        let middle = median(&ratios);
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        writeln!(outcome.table, "| {name} | {} | {middle:.2} | {least:.2} | {most:.2} |", ratios.len())?;
        if name == "mp_tccc" {
            let holds = (0.85..=1.15).contains(&middle);
            outcome.check(holds, format!("mp_tccc: {middle:.2} of the TCP flow, between 0.85 and 1.15"));
        }
    }
    Ok(outcome)
}
