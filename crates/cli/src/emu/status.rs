//! `emu status`: counters of links that are up.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use manypath_core::Duration;
use manypath_emu::tun::{LinkStats, PathPlan, PathStats, RouteStats, TunConfig, TunError, TunLinks};
use manypath_link::Count;
use serde::{Deserialize, Serialize};

use super::registry::{self, Name};
use crate::output::{self, rounded};

/// Show which links are up, and their counters
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath emu status\n  manypath emu status --name two-links --json")]
pub(super) struct Args {
    /// Which; all of them without it
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,

    /// Print JSON: a list
    #[arg(long)]
    json: bool,
}

/// Links that are up, as in the JSON output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) name: String,
    scenario: String,
    /// The process that holds them.
    pub(super) pid: u32,
    /// Whether they end with a command that runs in them, of `emu run` or `emu shell`.
    pub(super) for_command: bool,
    /// For `nsenter --net=FILE`.
    pub(super) client_namespace: PathBuf,
    pub(super) server_namespace: PathBuf,
    uptime_s: f64,
    cpu_s: f64,
    realtime: bool,
    memory_bytes: u64,
    paths: Vec<PathStatus>,
    links: Vec<LinkStatus>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PathStatus {
    device: String,
    client: String,
    server: String,
    mtu: u16,
    /// Whether Multipath TCP opens subflows on it.
    mptcp: bool,
    down: bool,
    forward: RouteStatus,
    backward: RouteStatus,
}

/// A path in one direction.
#[derive(Debug, Serialize, Deserialize)]
struct RouteStatus {
    links: Vec<String>,
    entered: Packets,
    delivered: Packets,
    held: Packets,
    dropped_down: Packets,
    dropped_memory: Packets,
    dropped_malformed: Packets,
    dropped_refused: Packets,
    kernel_drops: Option<u64>,
    late_ms: Late,
}

/// How late packets were delivered.
#[derive(Debug, Serialize, Deserialize)]
struct Late {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct LinkStatus {
    name: String,
    offered: Packets,
    delivered: Packets,
    dropped_queue: Packets,
    dropped_random: Packets,
    dropped_bursty: Packets,
    dropped_red: Packets,
    dropped_dead: Packets,
    marked_packets: u64,
    queue: Packets,
    peak_queue_bytes: u64,
    queueing_mean_ms: f64,
    queueing_max_ms: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Packets {
    packets: u64,
    bytes: u64,
}

impl From<Count> for Packets {
    fn from(count: Count) -> Self {
        Self { packets: count.packets, bytes: count.bytes.get() }
    }
}

/// What answers the question for the status.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    scenario: String,
    /// Names of links, by index.
    link_names: Vec<String>,
    mptcp_paths: Vec<usize>,
    links: Arc<TunLinks>,
    for_command: bool,
}

impl Source {
    pub(super) fn new(
        name: &Name,
        scenario: &str,
        config: &TunConfig,
        links: &Arc<TunLinks>,
        for_command: bool,
    ) -> Self {
        Self {
            name: name.to_string(),
            scenario: scenario.to_owned(),
            link_names: config.link_names().map(str::to_owned).collect(),
            mptcp_paths: if config.mptcp { config.mptcp_paths.clone() } else { Vec::new() },
            links: Arc::clone(links),
            for_command,
        }
    }

    /// The status as JSON.
    pub(super) fn status(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.read()?)?)
    }

    fn read(&self) -> Result<Status, TunError> {
        let stats = self.links.stats()?;
        let paths = self.links.paths().iter().zip(&stats.paths).enumerate();
        Ok(Status {
            name: self.name.clone(),
            scenario: self.scenario.clone(),
            pid: std::process::id(),
            for_command: self.for_command,
            client_namespace: self.links.client().path().to_owned(),
            server_namespace: self.links.server().path().to_owned(),
            uptime_s: rounded(stats.uptime.as_secs_f64(), 3),
            cpu_s: rounded(stats.cpu.as_secs_f64(), 3),
            realtime: stats.realtime,
            memory_bytes: stats.memory.get(),
            paths: paths.map(|(index, (plan, stats))| self.path(index, plan, stats)).collect(),
            links: stats.links.iter().map(link).collect(),
        })
    }

    fn path(&self, index: usize, plan: &PathPlan, stats: &PathStats) -> PathStatus {
        PathStatus {
            device: plan.device.clone(),
            client: plan.client.to_string(),
            server: plan.server.to_string(),
            mtu: plan.mtu,
            mptcp: self.mptcp_paths.contains(&index),
            down: stats.down,
            forward: self.route(&plan.forward, &stats.forward),
            backward: self.route(&plan.backward, &stats.backward),
        }
    }

    fn route(&self, links: &[usize], stats: &RouteStats) -> RouteStatus {
        let late = |quantile| millis(stats.scheduling_error.quantile(quantile));
        RouteStatus {
            links: links.iter().filter_map(|link| self.link_names.get(*link).cloned()).collect(),
            entered: stats.entered.into(),
            delivered: stats.delivered.into(),
            held: stats.held.into(),
            dropped_down: stats.dropped_down.into(),
            dropped_memory: stats.dropped_memory.into(),
            dropped_malformed: stats.dropped_malformed.into(),
            dropped_refused: stats.dropped_refused.into(),
            kernel_drops: stats.kernel_drops,
            late_ms: Late { p50: late(0.5), p99: late(0.99), max: millis(stats.scheduling_error.max()) },
        }
    }
}

fn link(stats: &LinkStats) -> LinkStatus {
    let counters = &stats.counters;
    LinkStatus {
        name: stats.name.clone(),
        offered: counters.offered.into(),
        delivered: counters.delivered.into(),
        dropped_queue: counters.dropped.queue_full.into(),
        dropped_random: counters.dropped.random.into(),
        dropped_bursty: counters.dropped.bursty.into(),
        dropped_red: counters.dropped.red.into(),
        dropped_dead: counters.dropped.dead.into(),
        marked_packets: counters.marked,
        queue: counters.backlog.into(),
        peak_queue_bytes: counters.peak_backlog.get(),
        queueing_mean_ms: counters.queueing_mean().map_or(0.0, millis),
        queueing_max_ms: millis(counters.queueing_max),
    }
}

fn millis(span: Duration) -> f64 {
    rounded(span.as_secs_f64() * 1e3, 3)
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<()> {
    let names = match &args.name {
        Some(name) => vec![registry::choose(Some(name))?],
        None => registry::all()?,
    };
    let mut all = Vec::new();
    for name in names {
        match registry::status(&name).await.and_then(|text| parsed(&text)) {
            Ok(status) => all.push(status),
            // They have just ended.
            Err(_) if !registry::all()?.contains(&name) => {}
            Err(error) if args.name.is_some() => return Err(error),
            Err(error) => output::note(format_args!("manypath: warning: {name}: {error:#}")),
        }
    }
    if args.json {
        return output::json(&all);
    }
    if all.is_empty() {
        return output::line("no links are up");
    }
    for status in &all {
        output::text(&written(status)?)?;
    }
    Ok(())
}

/// A status that links have sent.
pub(super) fn parsed(text: &str) -> Result<Status> {
    serde_json::from_str(text).context("the links gave an answer that is none: another version holds them")
}

/// A status that links have sent, for people.
pub(super) fn table(text: &str) -> Result<String> {
    Ok(written(&parsed(text)?)?)
}

fn written(status: &Status) -> Result<String, std::fmt::Error> {
    let Status { name, scenario, pid, uptime_s, cpu_s, .. } = status;
    let mut text = String::new();
    let realtime = if status.realtime { "" } else { ", without real-time priority" };
    writeln!(
        text,
        "{name}: scenario {scenario}, up for {uptime_s:.1} s, {cpu_s:.2} s of CPU time{realtime}, process {pid}"
    )?;
    writeln!(
        text,
        "  {:<8} {:<24} {:>10} {:>12} {:>8} {:>8} {:>8}  links",
        "path", "from > to", "packets", "bytes", "lost", "held", "late ms"
    )?;
    for path in &status.paths {
        for (from, to, route) in
            [(&path.client, &path.server, &path.forward), (&path.server, &path.client, &path.backward)]
        {
            let ends = format!("{from} > {to}");
            let lost = route.entered.packets - route.delivered.packets - route.held.packets;
            let (RouteStatus { delivered, held, late_ms, links, .. }, device) = (route, &path.device);
            let links = links.join(", ");
            let down = if path.down { "  CUT" } else { "" };
            writeln!(
                text,
                "  {device:<8} {ends:<24} {:>10} {:>12} {lost:>8} {:>8} {:>8.3}  {links}{down}",
                delivered.packets, delivered.bytes, held.packets, late_ms.p99
            )?;
        }
    }
    Ok(text)
}
