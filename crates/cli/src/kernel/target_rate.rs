//! `kernel target-rate`: a wanted rate at least cost.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use manypath_cc::omega;
use manypath_core::{Duration as Span, Rate, Time};
use manypath_kernel::engine;
use manypath_kernel::interfaces;
use manypath_kernel::steering::{Addresses, Change, Found, Steering};
use serde::Serialize;

use crate::client::parse_span;
use crate::output::{self, rounded};

/// How often it looks at the connections.
const PERIOD: Duration = Duration::from_millis(250);

/// What was found, for whoever comes after; it goes with the next boot, as the connections do.
const STATE: &str = "/run/manypath/target-rate.json";

/// Held by the one that runs: two would overwrite each other's state, and the weights of the connections that both see.
const LOCK: &str = "/run/manypath/target-rate.lock";

/// Keep connections under `uni-mptcp` at a rate, with as little on the dear path as that takes
///
/// For every connection that has a subflow on each of the two paths, three weights of the dear path are tried, 20 s each; then
/// the weight that gives the target rate (Uni-MPTCP) is held, and corrected by what it gives. It runs until it is ended; then
/// weights stay as they are, and it goes on from there when it is started again. Run it where the data is sent from, as root.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel target-rate 20Mbit --cheap wlan0 --dear wwan0
  manypath kernel target-rate 8Mbit --cheap 192.0.2.7 --dear 198.51.100.7   on a server: the client's addresses
  manypath kernel target-rate 20Mbit --cheap wlan0 --dear wwan0 --search-only --period 300s   as its paper has it")]
pub(crate) struct Args {
    /// The rate that each connection wants
    #[arg(value_name = "RATE")]
    target: Rate,

    /// The cheap path: an interface, or an address at either end of its subflows
    #[arg(long, value_name = "PATH")]
    cheap: String,

    /// The dear path
    #[arg(long, value_name = "PATH")]
    dear: String,

    /// How long each weight is tried, and the least time between corrections; the second half is measured
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_span, allow_hyphen_values = true)]
    epoch: Span,

    /// Hold what a search found until the paths' rates change, then search again, in place of correcting it
    #[arg(long)]
    search_only: bool,

    /// Search again after this long in any case
    #[arg(long, value_name = "TIME", value_parser = parse_span, allow_hyphen_values = true)]
    period: Option<Span>,

    /// Print JSON, one line a change
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Line {
    time_s: f64,
    connection: String,
    omega: f64,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_cheap_mbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_dear_mbps: Option<f64>,
}

impl Line {
    fn new(time_s: f64, change: &Change) -> Self {
        let mbps = |side: usize| change.before.map(|rates| rounded(rates[side].as_bps() / 1e6, 3));
        Self {
            time_s: rounded(time_s, 1),
            connection: format!("{:08x}", change.token),
            omega: rounded(change.omega, 6),
            found: change.found,
            before_cheap_mbps: mbps(0),
            before_dear_mbps: mbps(1),
        }
    }

    fn text(&self) -> String {
        let before = match (self.before_cheap_mbps, self.before_dear_mbps) {
            (Some(cheap), Some(dear)) => format!(" (before: {cheap:.2} Mbit/s cheap, {dear:.2} dear)"),
            _ => String::new(),
        };
        let what = if self.found { "holds" } else { "tries" };
        format!("{:8.1} s  {}  {what} weight {:.4}{before}", self.time_s, self.connection, self.omega)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    ensure!(args.target.as_bps() > 0.0, "the target rate is zero");
    ensure!(args.epoch >= Span::from_secs(1), "an epoch of less than a second measures nothing");
    // Errors of spelling and of set-up are said at once.
    ensure_apart(&addresses(&args.cheap)?, &addresses(&args.dear)?)?;
    engine::weighted_connections()?;
    let _lock = lock(Path::new(LOCK))?;
    let config = omega::Config {
        epoch: args.epoch,
        period: args.period,
        correct: !args.search_only,
        ..omega::Config::default()
    };
    let mut steering = Steering::new(config, args.target, read_state());
    let mut written = Vec::new();
    let began = Instant::now();
    loop {
        let now = Time::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let connections = engine::weighted_connections()?;
        // An interface may be down for a while.
        let [cheap, dear] = [&args.cheap, &args.dear].map(|path| addresses(path).unwrap_or_default());
        for change in steering.step(now, &connections, &cheap, &dear) {
            match engine::set_weights(Some(change.token), &change.weights) {
                // The connection has ended meanwhile.
                Err(manypath_kernel::Error::NoConnection { .. }) => continue,
                result => result?,
            }
            let line = Line::new(began.elapsed().as_secs_f64(), &change);
            output::line(&if args.json { serde_json::to_string(&line)? } else { line.text() })?;
        }
        let found = steering.found();
        if found != written {
            write_state(&found).with_context(|| format!("cannot write {STATE}"))?;
            written = found;
        }
        thread::sleep(PERIOD);
    }
}

/// The addresses that a path is known by: those of an interface, or itself.
fn addresses(path: &str) -> Result<Addresses> {
    if let Ok(address) = path.parse::<IpAddr>() {
        return Ok(vec![address.to_canonical()]);
    }
    let paths = interfaces::paths().context("cannot list the interfaces")?;
    let found: Addresses = paths.iter().filter(|one| one.interface == path).map(|one| one.address).collect();
    let known: BTreeSet<&str> = paths.iter().map(|one| one.interface.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { Vec::from_iter(known).join(", ") };
    ensure!(!found.is_empty(), "'{path}' is neither an address nor an interface that is up; there are: {known}");
    Ok(found)
}

/// Fails for one path under two names, as an interface and its address are.
fn ensure_apart(cheap: &Addresses, dear: &Addresses) -> Result<()> {
    if let Some(shared) = cheap.iter().find(|address| dear.contains(address)) {
        bail!("the cheap and the dear path are the same, both have {shared}: name two");
    }
    Ok(())
}

/// Takes the lock; who holds what it returns has it.
fn lock(path: &Path) -> Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/run"))).with_context(cannot)?;
    let file = File::create(path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another target-rate steers this machine's connections already: end it first; `pgrep -af target-rate` finds it"
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

/// What was found before; nothing if there is no such file, or it is not ours.
fn read_state() -> Vec<Found> {
    fs::read(STATE).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn write_state(found: &[Found]) -> io::Result<()> {
    let folder = Path::new(STATE).parent().unwrap_or(Path::new("/run"));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(found)?)?;
    file.persist(STATE)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_said_in_a_line() {
        let change = Change {
            token: 0x5b9a_ddec,
            weights: vec![1.0, 0.2],
            omega: 0.2,
            found: true,
            before: Some([Rate::from_mbps(7.0), Rate::from_mbps(3.5)]),
        };
        let line = Line::new(61.04, &change);
        assert_eq!(line.text(), "    61.0 s  5b9addec  holds weight 0.2000 (before: 7.00 Mbit/s cheap, 3.50 dear)");
        assert_eq!(serde_json::to_value(&line).unwrap()["before_dear_mbps"], 3.5);
    }

    #[test]
    fn one_runs_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/lock");
        let first = lock(&path).unwrap();
        let said = lock(&path).unwrap_err().to_string();
        assert!(said.contains("another target-rate") && said.contains("end it first"), "{said}");
        drop(first);
        lock(&path).unwrap();
    }

    #[test]
    fn a_path_is_an_interface_or_an_address() {
        for text in ["192.0.2.7", "::ffff:192.0.2.7"] {
            assert_eq!(addresses(text).unwrap(), [IpAddr::from([192, 0, 2, 7])]);
        }
        let same = ["10.0.0.1", "::ffff:10.0.0.1"].map(|text| addresses(text).unwrap());
        let said = ensure_apart(&same[0], &same[1]).unwrap_err().to_string();
        assert!(said.contains("both have 10.0.0.1: name two"), "{said}");
        ensure_apart(&same[0], &addresses("10.0.0.2").unwrap()).unwrap();
        assert!(addresses("no-such").unwrap_err().to_string().contains("neither an address"));
    }
}
