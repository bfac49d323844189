//! The Linux kernel's Multipath TCP, with our controllers as BPF programs, over links that are emulated in real time between
//! two network namespaces. It needs root and a kernel that `manypath kernel doctor` finds fit.
//!
//! The connection that has several paths is a Multipath TCP connection; the others are TCP flows with controllers of the
//! kernel's own. What a scenario says of acknowledgements, initial windows, recovery and joins does not apply: the kernel has
//! its own, and its controllers count packets, so that `count` of a controller does not apply either. Schedulers
//! that send on the best subflow that has room stand for the kernel's, which is one of these; others are refused. Counters of a
//! subflow are those of its path, where it has that path to itself.

mod application;
mod flow;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manypath_core::{AlgorithmSpec, Bytes, jain_index};
use manypath_emu::Awake;
use manypath_emu::tun::{Namespace, TunConfig, TunLinks, TunStats};
use manypath_kernel::doctor::{self, State};
use manypath_kernel::{Request, engine, kernel_name};
use manypath_scenario::{Connection, Scenario, Transport};

use super::{Engine, EngineError, Input, add_capacities, add_unfinished};
use crate::code::{self, Code};
use crate::experiment::EngineKind;
use crate::quantities::Quantities;
use application::Application;
use flow::{Flow, Wish};

/// Bytes that `tcp_mem` counts in, at least.
const PAGE: u64 = 4096;
/// Controllers that kernels have.
const BUILT_IN: [&str; 4] = ["bbr", "cubic", "reno", "vegas"];
/// Schedulers that the kernel's stands for: what has room and is best comes first, by round trip or by what is queued.
const SCHEDULERS: [&str; 4] = ["linux-default", "minrtt", "minrtt-pr", "rate-based"];
/// The port of the first connection's server.
const PORT: u16 = 5000;
/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The kernel's Multipath TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Engine for Kernel {
    fn kind(&self) -> EngineKind {
        EngineKind::Kernel
    }

    fn code(&self) -> &'static Code {
        &code::KERNEL
    }

    fn code_of(&self, input: &Input) -> String {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} linux:{}", self.code().of(input), release.trim())
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn obstacle(&self) -> Option<String> {
        let missing = doctor::examine().into_iter().find(|check| check.state == State::Missing)?;
        let remedy = missing.remedy.unwrap_or_else(|| "see `manypath kernel doctor`".to_owned());
        Some(format!("{}: {}: {remedy}", missing.name, missing.detail))
    }

    fn check(&self, input: &Input) -> Result<(), EngineError> {
        check(super::scenario(input)?)
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        self.check(input)?;
        run(&ordered(super::scenario(input)?), seed)
    }
}

fn failed(error: &dyn core::fmt::Display) -> EngineError {
    EngineError(error.to_string())
}

/// The scenario with the connection of several paths first: its paths are those of Multipath TCP.
fn ordered(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.connections.sort_by_key(|connection| connection.paths.len() < 2);
    scenario
}

/// Whether this engine can run a scenario.
fn check(scenario: &Scenario) -> Result<(), EngineError> {
    let refuse = |what: String| Err(EngineError(format!("the kernel engine cannot run this: {what}: use sim")));
    if scenario.connections.iter().filter(|connection| connection.paths.len() > 1).count() > 1 {
        return refuse("more than one connection has several paths".to_owned());
    }
    for connection in &scenario.connections {
        let Connection { name, cc, scheduler, .. } = connection;
        if !matches!(connection.transport, Transport::Tcp { .. }) {
            return refuse(format!("'{name}' is not transport = \"tcp\""));
        }
        let is_multipath = connection.paths.len() > 1;
        if let Some(scheduler) = scheduler.as_ref().filter(|_| is_multipath)
            && !SCHEDULERS.contains(&scheduler.name.as_str())
        {
            return refuse(format!("the kernel has no scheduler '{}'", scheduler.name));
        }
        let is_built_in = BUILT_IN.contains(&cc.name.as_str());
        if !(is_built_in || is_multipath && kernel_name(&cc.name) != cc.name) {
            let where_to = if is_multipath { "" } else { " for a connection of one path" };
            return refuse(format!("the kernel has no controller '{}'{where_to}", cc.name));
        }
        if is_built_in && cc.params.iter().any(|(key, _)| key != "count") {
            return refuse(format!("the kernel's '{}' has no parameters", cc.name));
        }
    }
    Ok(())
}

/// A controller of ours in the kernel, under a name of this run's own; unloaded when dropped.
///
/// No name is used twice: connections outlive a run by some seconds, and what they use keeps its name until they are gone.
#[derive(Debug)]
struct Loaded(String);

impl Loaded {
    fn new(cc: &AlgorithmSpec) -> Result<Self, EngineError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("lab{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let params = cc.params.iter().filter(|(key, _)| key != "count").cloned().collect();
        let controllers = vec![as_measured(AlgorithmSpec { name: cc.name.clone(), params })];
        let request = Request { controllers, name: Some(name.clone()), ..Request::default() };
        engine::load(&request).map_err(|error| failed(&error))?;
        Ok(Self(name))
    }
}

/// MPCC's parameters in runs of experiments, where the kernel's defaults are others (bpf/mpcc.h): those that scenarios have, but slow
/// start of the release, with which the paper was measured on Linux, and no probes at rates at which the kernel's pieces take seconds.
const AS_MEASURED: [(&str, &str); 6] = [
    ("slow-start", "release"),
    ("brake", "held"),
    ("queue", "ignored"),
    ("bursts", "ignored"),
    ("timeout", "halve"),
    ("low", "half"),
];

/// MPCC with [`AS_MEASURED`], but what is chosen; other controllers as they are.
fn as_measured(cc: AlgorithmSpec) -> AlgorithmSpec {
    if !cc.name.starts_with("mpcc-") {
        return cc;
    }
    AS_MEASURED.iter().fold(cc, |cc, (key, value)| cc.with_default(key, value))
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // The run has its results. What stays takes a name and some memory, and `manypath kernel status` shows it.
        let _ = engine::unload(core::slice::from_ref(&self.0));
    }
}

/// Where a run stands at a time, seconds from the beginning.
struct Counted {
    at: f64,
    /// Bytes that the servers have read, by connection.
    received: Vec<u64>,
    links: TunStats,
}

fn run(scenario: &Scenario, seed: u64) -> Result<Quantities, EngineError> {
    let first = scenario.connections.first().ok_or_else(|| failed(&"the scenario has no connection"))?;
    // The kernel says what it lacks before anything is set up.
    let ours = (!BUILT_IN.contains(&first.cc.name.as_str())).then(|| Loaded::new(&first.cc)).transpose()?;
    let config = TunConfig::from_scenario(scenario, seed).map_err(|error| failed(&error))?;
    let _awake = Awake::keep();
    let links = TunLinks::start(&config).map_err(|error| failed(&error))?;
    for side in [links.client(), links.server()] {
        set_buffers(side, scenario)?;
    }
    let begun = Instant::now();
    let paths = paths(scenario, &config);
    let mut flows = Vec::new();
    for (index, connection) in scenario.connections.iter().enumerate() {
        let path = &links.paths()[paths[index][0]];
        let controller = ours.as_ref().filter(|_| index == 0).map_or(connection.cc.name.as_str(), |ours| &ours.0);
        // A scenario has few connections.
        let port = PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
        flows.push(Flow::start(&Wish {
            client: links.client(),
            server: links.server(),
            controller,
            is_multipath: connection.paths.len() > 1,
            from: path.client,
            to: SocketAddr::from((path.server, port)),
            application: Application::new(scenario, connection, begun, seed),
            begun,
        })?);
    }
    let (warm, samples, end) = watch(scenario, &flows, &links, begun)?;
    let mut found = report(scenario, &paths, (&warm, &samples, &end));
    add_capacities(&mut found, scenario, seed);
    for (flow, connection) in flows.into_iter().zip(&scenario.connections) {
        let prefix = format!("connection.{}", connection.name);
        flow.stop()?.report(&mut found, &prefix, scenario.warmup.as_secs_f64());
    }
    add_unfinished(&mut found, scenario);
    drop(ours);
    Ok(found)
}

/// The paths of each connection, by index among those of the links.
fn paths(scenario: &Scenario, config: &TunConfig) -> Vec<Vec<usize>> {
    let others = scenario.connections.iter().skip(1).map(|connection| {
        let path = &connection.paths[0];
        let same = |held: &manypath_emu::tun::PathPlan| held.forward == path.forward && held.backward == path.backward;
        vec![config.paths.iter().position(same).unwrap_or(0)]
    });
    core::iter::once(config.mptcp_paths.clone()).chain(others).collect()
}

/// Lets the kernel's own sizing of buffers go as far as the scenario's; it counts about as much for its own structures.
///
/// Senders fill what they may, and what they leave stays for a minute. A sixteenth each of what all sockets may have before the
/// kernel stops growing buffers is above all that links here can use, and leaves the next run's enough.
fn set_buffers(side: &Namespace, scenario: &Scenario) -> Result<(), EngineError> {
    let largest = |pick: fn(&Connection) -> Bytes| scenario.connections.iter().map(pick).max().unwrap_or(Bytes::ZERO);
    let unpressed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok().and_then(|text| first_number(&text));
    let share = unpressed.map_or(i32::MAX.unsigned_abs().into(), |pages| pages * PAGE / 16).max(1 << 20);
    let most = [largest(|held| held.receive_buffer), largest(|held| held.send_buffer)];
    let [read, write] = most.map(|bytes| (2 * bytes.get()).clamp(1 << 17, i32::MAX.unsigned_abs().into()).min(share));
    let set = side.run(move || {
        std::fs::write("/proc/sys/net/ipv4/tcp_rmem", format!("4096 131072 {read}"))?;
        std::fs::write("/proc/sys/net/ipv4/tcp_wmem", format!("4096 65536 {write}"))
    });
    set.map_err(|error| failed(&format_args!("cannot set the kernel's buffers: {error}")))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Lets the scenario's time pass: counts when summaries begin, at each sample, and at the end.
fn watch(
    scenario: &Scenario,
    flows: &[Flow],
    links: &TunLinks,
    begun: Instant,
) -> Result<(Counted, Vec<Counted>, Counted), EngineError> {
    let count = |at: f64| {
        let links = links.stats().map_err(|error| failed(&error))?;
        Ok(Counted { at, received: flows.iter().map(Flow::received).collect(), links })
    };
    let sleep_until = |at: Duration| {
        thread::sleep((begun + at).saturating_duration_since(Instant::now()));
        begun.elapsed().as_secs_f64()
    };
    let (warmup, duration) = (Duration::from(scenario.warmup), Duration::from(scenario.duration));
    let every = scenario.sample.map_or(LOOK, Duration::from);
    let (mut warm, mut samples, mut next) = (None, Vec::new(), every);
    loop {
        if warm.is_none() && next > warmup {
            warm = Some(count(sleep_until(warmup))?);
        }
        if next >= duration {
            break;
        }
        let at = sleep_until(next);
        next += every;
        if let Some(error) = flows.iter().find_map(Flow::error) {
            return Err(failed(&error));
        }
        if scenario.sample.is_some() {
            samples.push(count(at)?);
        } else if warm.is_some() && flows.iter().all(Flow::is_done) {
            // Nothing is sent in the time that is left.
            let end = count(duration.as_secs_f64())?;
            return Ok((warm.unwrap_or(count(0.0)?), samples, end));
        }
    }
    let end = count(sleep_until(duration))?;
    let warm = warm.ok_or_else(|| failed(&"the warm-up is longer than the run"))?;
    Ok((warm, samples, end))
}

/// The quantities of a run, with the names of the simulator's.
fn report(
    scenario: &Scenario,
    paths: &[Vec<usize>],
    (warm, samples, end): (&Counted, &[Counted], &Counted),
) -> Quantities {
    let mut found = Quantities::default();
    let mut users: BTreeMap<usize, usize> = BTreeMap::new();
    paths.iter().flatten().for_each(|path| *users.entry(*path).or_default() += 1);
    if !samples.is_empty() {
        found.0.insert("series.time_s".to_owned(), samples.iter().map(|sample| sample.at).collect());
    }
    let seconds = end.at - warm.at;
    let mut goodputs = Vec::new();
    for (index, (connection, own)) in scenario.connections.iter().zip(paths).enumerate() {
        let name = format!("connection.{}", connection.name);
        let received = |counted: &Counted| counted.received[index];
        let delivered = (received(end) - received(warm)) as f64;
        goodputs.push(delivered * 8.0 / seconds);
        found.set(&format!("{name}.goodput_bps"), delivered * 8.0 / seconds);
        found.set(&format!("{name}.delivered_bytes"), delivered);
        add_series(&mut found, &format!("{name}.goodput_bps"), samples, &received);
        for (number, path) in own.iter().enumerate().filter(|(_, path)| users[path] == 1) {
            let sent = |counted: &Counted| counted.links.paths[*path].forward.entered.bytes.get();
            let bytes = (sent(end) - sent(warm)) as f64;
            found.set(&format!("{name}.subflow.{number}.sent_bytes"), bytes);
            found.set(&format!("{name}.subflow.{number}.sending_bps"), bytes * 8.0 / seconds);
            add_series(&mut found, &format!("{name}.subflow.{number}.sending_bps"), samples, &sent);
        }
    }
    found.set("goodput_bps", goodputs.iter().sum());
    if let Some(jain) = jain_index(&goodputs) {
        found.set("jain", jain);
    }
    for link in &end.links.links {
        let key = |key: &str| format!("link.{}.{key}", link.name);
        found.set(&key("delivered_bytes"), link.counters.delivered.bytes.as_f64());
        found.set(&key("dropped_queue_full"), link.counters.dropped.queue_full.packets as f64);
        found.set(&key("dropped_random"), (link.counters.dropped.random + link.counters.dropped.bursty).packets as f64);
        found.set(&key("queueing_max_s"), link.counters.queueing_max.as_secs_f64());
    }
    found
}

/// A rate over time from a count of bytes: each value is about the time since the sample before it.
fn add_series(found: &mut Quantities, name: &str, samples: &[Counted], count: &dyn Fn(&Counted) -> u64) {
    if samples.is_empty() {
        return;
    }
    let (mut at, mut total) = (0.0, 0);
    let each = samples.iter().map(|sample| {
        let now = count(sample);
        let rate = (now - total) as f64 * 8.0 / (sample.at - at);
        (at, total) = (sample.at, now);
        rate
    });
    found.0.insert(format!("series.{name}"), each.collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrived::workloads;

    fn scenario(connections: &str) -> Input {
        let text = format!(
            "duration = \"2s\"\nwarmup = \"500ms\"\nsample = \"250ms\"\ntopology = \"two-links\"\n[[link]]\nname = \"link1\"\n\
             rate = \"10Mbit\"\n[[link]]\nname = \"link2\"\nrate = \"5Mbit\"\n{connections}"
        );
        Input::Scenario(Box::new(manypath_scenario::parse(&text, "x", std::path::Path::new(".")).unwrap()))
    }

    fn multipath(more: &str) -> String {
        format!("[[connection]]\nname = \"mp\"\nrole = \"mp\"\ntransport = \"tcp\"\n{more}")
    }

    #[test]
    fn mpcc_has_the_parameters_of_experiments_unless_chosen() {
        let as_loaded = |text: &str| as_measured(text.parse().unwrap()).to_string();
        assert_eq!(
            as_loaded("mpcc-loss:queue=heeded"),
            "mpcc-loss:queue=heeded,slow-start=release,brake=held,bursts=ignored,timeout=halve,low=half"
        );
        assert_eq!(as_loaded("lia"), "lia");
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let single = |cc: &str| {
            let path = "path = [{ route = [\"link1\"] }]\ntransport = \"tcp\"\n";
            format!("[[connection]]\nname = \"sp\"\ncc = \"{cc}\"\n{path}")
        };
        for (connections, words) in [
            (multipath("cc = \"lia\"\nscheduler = \"stms-a\"\n"), "no scheduler 'stms-a'"),
            (multipath("cc = \"ewtcp\"\n"), "no controller 'ewtcp'"),
            (multipath("cc = \"cubic:fast-convergence=off\"\n"), "'cubic' has no parameters"),
            (multipath("cc = \"lia\"\n").replace("tcp", "quic"), "is not transport"),
            (
                multipath("cc = \"lia\"\n") + &multipath("cc = \"lia\"\n").replace("\"mp\"\nrole", "\"mp2\"\nrole"),
                "more than one",
            ),
            (multipath("cc = \"lia\"\n") + &single("lia"), "no controller 'lia' for a connection of one path"),
        ] {
            let error = Kernel.run(&scenario(&connections), 1).unwrap_err().to_string();
            assert!(error.contains(words) && error.ends_with("use sim"), "{error}");
        }
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "what was skipped")]
    fn applications_write_what_and_when_they_are_to() {
        if let Some(obstacle) = Kernel.obstacle() {
            println!("skipped: {obstacle}");
            return;
        }
        let scenario = workloads::scenario("transport = \"tcp\"");
        workloads::are_as_told(&Kernel.run(&Input::Scenario(Box::new(scenario)), 1).unwrap());
    }

    #[test]
    fn the_code_names_the_running_kernel() {
        let code = Kernel.code_of(&scenario(&multipath("cc = \"lia\"\n")));
        assert!(code.contains(" linux:"), "{code}");
    }
}
