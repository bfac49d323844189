//! What a transfer costs: processor time of the whole machine a gigabyte, over two pairs of virtual Ethernet devices.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use manypath_emu::tun::Namespace;

use crate::flow::{Flow, Wish, ip, median};
use crate::{Failure, Loaded, Outcome, Session};

/// What others are measured by.
const REFERENCE: &str = "cubic";

/// The kernel's own controller that is paced, for comparison with ours that are: pacing has its price.
const PACED: &str = "bbr";

/// Two namespaces with two pairs of devices between them; they go with their last user.
struct Pairs {
    client: Namespace,
    server: Namespace,
}

impl Pairs {
    fn new() -> Result<Self, Failure> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        let other = server.path().display().to_string();
        for path in 1..=2 {
            ip(&client, format!("link add veth{path} type veth peer name veth{path} netns {other}"))?;
            for (namespace, host) in [(&client, 1), (&server, 2)] {
                ip(namespace, format!("addr add 10.{path}.0.{host}/24 dev veth{path}"))?;
                ip(namespace, format!("link set veth{path} up"))?;
            }
        }
        ip(&server, "mptcp limits set subflows 1".to_owned())?;
        ip(&client, "mptcp limits set subflows 1".to_owned())?;
        // A subflow from the second address to the server's first: by the second pair.
        ip(&client, "mptcp endpoint add 10.2.0.1 dev veth2 subflow".to_owned())?;
        ip(&client, "route add 10.1.0.2 dev veth2 metric 10".to_owned())?;
        Ok(Self { client, server })
    }
}

/// Seconds that the machine's processors have spent in the kernel, and this process outside of it. What other programs spent does
/// not count, nor would it on an idle machine.
fn busy() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or("/proc/stat is empty")?;
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq
    let [_, _, system, _, _, irq, softirq, ..] = ticks.as_slice() else {
        return Err("no such /proc/stat".into());
    };
    let own = Ticks::of(&fs::read_to_string("/proc/self/stat")?).ok_or("no such /proc/self/stat")?;
    Ok((own.user + system + irq + softirq - others_in_kernel()?) / 100.0)
}

/// Hundredths of seconds of a process.
struct Ticks {
    user: f64,
    /// In the kernel: its own, and that of its children that have ended.
    kernel: f64,
    /// Whether it is a thread of the kernel.
    is_kernel: bool,
}

impl Ticks {
    /// Reads `/proc/PID/stat`.
    fn of(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(' ')?;
        // The name ends with the last parenthesis; state, parent and more follow.
        let words: Vec<&str> = rest.rsplit(')').next()?.split_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse::<f64>().ok();
        let is_kernel = pid == "2" || *words.get(1)? == "2";
        Some(Self { user: number(11)?, kernel: number(12)? + number(14)?, is_kernel })
    }
}

/// What other programs have spent in the kernel. A child that ends adds its time to its parent's, so that the sum only grows.
fn others_in_kernel() -> Result<f64, Failure> {
    let own = std::process::id().to_string();
    let mut sum = 0.0;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name();
        let is_other = name.to_str().is_some_and(|name| name.parse::<u32>().is_ok() && name != own);
        // It may have ended meanwhile.
        if is_other && let Ok(text) = fs::read_to_string(entry.path().join("stat")) {
            sum += Ticks::of(&text).filter(|ticks| !ticks.is_kernel).map_or(0.0, |ticks| ticks.kernel);
        }
    }
    Ok(sum)
}

/// What one transfer took.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Processor seconds a gigabyte.
    seconds: f64,
    /// Goodput in Gbit/s.
    rate: f64,
}

/// One transfer after the other, so that both see the same machine.
#[derive(Clone, Copy, Debug)]
struct Round {
    ours: Cost,
    reference: Cost,
}

impl Round {
    fn measure(session: &mut Session, name: &str, controller: &str, round: u64) -> Result<Self, Failure> {
        let seconds = session.seconds(5);
        let numbers = session.results.get(&format!("cpu/{name}/{round}"), || {
            let (ours, reference) = (cost(controller, seconds)?, cost(REFERENCE, seconds)?);
            Ok(vec![ours.seconds, ours.rate, reference.seconds, reference.rate])
        })?;
        let at = |place: usize| Cost { seconds: numbers[place], rate: numbers[place + 1] };
        Ok(Self { ours: at(0), reference: at(2) })
    }
}

fn cost(controller: &str, seconds: u64) -> Result<Cost, Failure> {
    let pairs = Pairs::new()?;
    let (from, to) = (Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2));
    let wish = Wish { from, to, ..Wish::of(controller, None) };
    let flow = Flow::start(&pairs.client, &pairs.server, &wish)?;
    thread::sleep(Duration::from_secs(1));
    let (busy_before, bytes_before) = (busy()?, flow.received());
    thread::sleep(Duration::from_secs(seconds));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let bytes = (flow.received() - bytes_before) as f64;
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = seconds as f64;
    Ok(Cost { seconds: (busy()? - busy_before) / (bytes / 1e9), rate: bytes * 8.0 / 1e9 / seconds })
}

pub(crate) fn measure(session: &mut Session) -> Result<Outcome, Failure> {
    let loaded = Loaded::all(session, "cpu")?;
    let mut outcome = Outcome::default();
    writeln!(
        outcome.table,
        "| controller | CPU s/GB | Gbit/s | {REFERENCE} beside it, CPU s/GB | ratio (median of rounds) |\n\
         |---|---:|---:|---:|---:|"
    )?;
    let ours = loaded.iter().map(|loaded| (loaded.title.as_str(), loaded.name.as_str(), true));
    let paced = session.wants(PACED).then_some((PACED, PACED, false));
    for (title, controller, ours) in ours.chain(paced) {
        let rounds = (0..session.runs()).map(|round| Round::measure(session, title, controller, round));
        let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
        let middle = |value: fn(&Round) -> f64| median(&rounds.iter().map(value).collect::<Vec<_>>());
        let (cost, rate) = (middle(|round| round.ours.seconds), middle(|round| round.ours.rate));
        let reference = middle(|round| round.reference.seconds);
        let ratio = middle(|round| round.ours.seconds / round.reference.seconds);
        eprintln!("{title}: {cost:.3} s/GB at {rate:.1} Gbit/s, {ratio:.3} of {REFERENCE}");
        writeln!(outcome.table, "| {title} | {cost:.3} | {rate:.1} | {reference:.3} | {ratio:.2} |")?;
        if ours {
            outcome.check(ratio <= 1.10, format!("{title}: {ratio:.2} of {REFERENCE}'s processor time, at most 1.10"));
        }
    }
    Ok(outcome)
}
