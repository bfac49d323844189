//! A connection that wants a rate, over a cheap path with four TCP Reno flows on it and a dear path with one.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use manypath_emu::tun::TunLinks;

use crate::flow::{Flow, Wish, goodput, links, median};
use crate::{Failure, Outcome, Session};
use manypath_core::AlgorithmSpec;
use manypath_kernel::status::{ConnectionStatus, SubflowStatus};
use manypath_kernel::{Request, engine};

/// Two links of 30 Mbit/s.
const SCENARIO: &str = "duration = \"300s\"\n\
    [[link]]\nname = \"cheap\"\nrate = \"30Mbit\"\ndelay = \"15ms\"\nqueue = \"112500B\"\n\
    [[link]]\nname = \"dear\"\nrate = \"30Mbit\"\ndelay = \"15ms\"\nqueue = \"112500B\"\n\
    [[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{ route = [\"cheap\"] }, { route = [\"dear\"] }]\n";

/// The client's addresses on them.
const CHEAP: &str = "10.1.0.1";
const DEAR: &str = "10.2.0.1";

/// How many seconds each weight is tried if nothing is said, as by the daemon.
pub(crate) const EPOCH: u64 = 20;

/// What the connection wants.
const TARGET_MBPS: f64 = 10.0;

/// The binary beside this one's folder, or of the environment.
pub(crate) fn manypath() -> Result<PathBuf, Failure> {
    if let Some(program) = std::env::var_os("MANYPATH") {
        return Ok(program.into());
    }
    // target/release/examples/measure, target/release/manypath
    let own = std::env::current_exe()?;
    let beside = own.ancestors().nth(2).map(|folder| folder.join("manypath")).filter(|file| file.exists());
    beside.ok_or_else(|| "build it first: cargo build --release --features kernel --bin manypath".into())
}

/// The daemon, killed when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(links: &TunLinks, epoch: u64) -> Result<Self, Failure> {
        let target = format!("{TARGET_MBPS}Mbit");
        let epoch = format!("{epoch}s");
        let mut command = Command::new(manypath()?);
        command.args(["kernel", "target-rate", &target, "--cheap", CHEAP, "--dear", DEAR, "--epoch", &epoch]);
        Ok(Self(links.client().spawn({
            command.stdout(Stdio::inherit());
            command
        })?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A controller under its usual name: the daemon knows it by that.
struct Named(&'static str);

impl Named {
    fn load(name: &str, kernel_name: &'static str) -> Result<Self, Failure> {
        engine::load(&Request { controllers: vec![AlgorithmSpec::named(name)], ..Request::default() })?;
        Ok(Self(kernel_name))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Err(error) = engine::unload(&[self.0.to_owned()]) {
            eprintln!("{}: {error}", self.0);
        }
    }
}

/// The links with their TCP flows and the connection.
struct Run {
    links: TunLinks,
    connection: Flow,
    _others: Vec<Flow>,
}

impl Run {
    fn start(controller: &str) -> Result<Self, Failure> {
        let links = links(SCENARIO, 1)?;
        let wish = |controller, multipath, port| Wish { multipath, port, ..Wish::of(controller, None) };
        let mut others = Vec::new();
        for (number, path) in [0, 0, 0, 0, 1].into_iter().enumerate() {
            others.push(Flow::over(&links, path, &wish("reno", false, 5001 + u16::try_from(number)?))?);
        }
        let connection = Flow::over(&links, 0, &wish(controller, true, 5000))?;
        Ok(Self { links, connection, _others: others })
    }

    /// Goodput of the connection, and what its subflow on the dear path delivered, in Mbit/s.
    fn measure(&self, controller: &str, seconds: u64) -> Result<(f64, f64), Failure> {
        let before = dear_packets(controller)?;
        let [goodput] = goodput([&self.connection], 0, seconds);
        let after = dear_packets(controller)?;
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let megabits = f64::from(after.0.wrapping_sub(before.0)) * f64::from(after.1) * 8.0 / 1e6 / seconds as f64;
        Ok((goodput, megabits))
    }
}

/// The connection under a controller that has a subflow from the client's address on the dear path.
fn dear_connection(controller: &str) -> Result<ConnectionStatus, Failure> {
    let controllers = engine::status()?;
    let ours = controllers.into_iter().find(|held| held.kernel_name == controller).ok_or("the controller is gone")?;
    let mut connections = ours.connections.into_iter();
    Ok(connections.find(|one| one.subflows.iter().any(is_dear)).ok_or("no connection on the dear path")?)
}

fn is_dear(subflow: &SubflowStatus) -> bool {
    subflow.local.ip().to_string() == DEAR
}

/// Packets that the client's subflow on the dear path has delivered, and bytes of one.
fn dear_packets(controller: &str) -> Result<(u32, u32), Failure> {
    let connection = dear_connection(controller)?;
    let dear = connection.subflows.iter().find(|subflow| is_dear(subflow)).ok_or("no dear subflow")?;
    Ok((dear.delivered, dear.mss))
}

/// Goodput under LIA, and what of it the dear path carried.
fn lia(settle: u64, seconds: u64) -> Result<Vec<f64>, Failure> {
    let _loaded = Named::load("lia", "mp_lia")?;
    let run = Run::start("mp_lia")?;
    thread::sleep(Duration::from_secs(settle));
    let (goodput, dear) = run.measure("mp_lia", seconds)?;
    Ok(vec![goodput, dear])
}

/// The weights of the connection over both paths.
fn weights() -> Result<Vec<f64>, Failure> {
    Ok(engine::weights(dear_connection("mp_uni")?.token)?[..2].to_vec())
}

/// The same under Uni-MPTCP with the daemon, before and after it was started again; then the weights it left behind, and those
/// after it was started again.
fn steered(epoch: u64, seconds: u64) -> Result<Vec<f64>, Failure> {
    let _loaded = Named::load("uni-mptcp", "mp_uni")?;
    let run = Run::start("mp_uni")?;
    // As under LIA: what is measured first is not slow start.
    thread::sleep(Duration::from_secs(epoch));
    let daemon = Daemon::start(&run.links, epoch)?;
    // Three weights, and the time for a dozen corrections of what is found.
    thread::sleep(Duration::from_secs(15 * epoch));
    let (goodput, dear) = run.measure("mp_uni", seconds)?;
    drop(daemon);
    let left = weights()?;
    let _daemon = Daemon::start(&run.links, epoch)?;
    // It corrects nothing before it has measured for half an epoch.
    thread::sleep(Duration::from_secs(epoch / 4));
    let again = weights()?;
    let (goodput_after, dear_after) = run.measure("mp_uni", seconds)?;
    Ok([vec![goodput, dear, goodput_after, dear_after], left, again].concat())
}

/// What one run found: goodput and what of it the dear path carried, in Mbit/s, under LIA, steered, and after the daemon's restart.
struct Found {
    lia: [f64; 2],
    steered: [f64; 2],
    after: [f64; 2],
    weights: Vec<f64>,
    /// Whether the restart left the weights as they were.
    same: bool,
}

impl Found {
    fn in_run(session: &mut Session, run: u64) -> Result<Self, Failure> {
        let (settle, epoch, seconds) = (session.seconds(EPOCH), session.seconds(session.epoch), session.seconds(60));
        let lia = session.results.get(&format!("target-rate/mp_lia/{run}"), || lia(settle, seconds))?;
        let name = if session.epoch == EPOCH { "mp_uni".to_owned() } else { format!("mp_uni, {}s", session.epoch) };
        let uni = session.results.get(&format!("target-rate/{name}/{run}"), || steered(epoch, seconds))?;
        let weights = uni[4..6].to_vec();
        let same = weights.iter().zip(&uni[6..]).all(|(a, b)| (a - b).abs() < 1e-6);
        Ok(Self { lia: [lia[0], lia[1]], steered: [uni[0], uni[1]], after: [uni[2], uni[3]], weights, same })
    }
}

pub(crate) fn measure(session: &mut Session) -> Result<Outcome, Failure> {
    let runs = (0..session.runs()).map(|run| Found::in_run(session, run)).collect::<Result<Vec<_>, _>>()?;
    let mut outcome = Outcome::default();
    writeln!(
        outcome.table,
        "| run | mp_lia, Mbit/s | of it dear | mp_uni with target-rate, Mbit/s | of it dear | after the restart | of it dear | \
         weights |\n|---:|---:|---:|---:|---:|---:|---:|---|"
    )?;
    for (number, Found { lia, steered, after, weights, .. }) in runs.iter().enumerate() {
        let rates: Vec<String> = [lia, steered, after].into_iter().flatten().map(|rate| format!("{rate:.2}")).collect();
        writeln!(outcome.table, "| {} | {} | {weights:.3?} |", number + 1, rates.join(" | "))?;
    }
    let middle = |value: fn(&Found) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>());
    let miss = middle(|found| (found.steered[0] - TARGET_MBPS).abs() / TARGET_MBPS);
    outcome.check(miss <= 0.3, format!("the rate misses the target by {:.0}%, at most 30%", 100.0 * miss));
    let share = middle(|found| found.steered[1] / found.lia[1]);
    outcome.check(share <= 0.75, format!("bytes on the dear path: {share:.2} of mp_lia's, at most 0.75"));
    outcome
        .check(runs.iter().all(|found| found.same), "the daemon's restart leaves the weights as they were".to_owned());
    Ok(outcome)
}
