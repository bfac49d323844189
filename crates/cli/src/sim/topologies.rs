//! `sim topologies`: the networks of the papers.

use std::fmt::Write as _;

use anyhow::Result;
use manypath_link::QueueLimit;
use manypath_scenario::Topology;
use serde::Serialize;

use crate::output::{self, rounded};

/// How many roles the list shows of each.
const SHOWN_ROLES: usize = 6;

/// List the networks of the papers, or show one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim topologies\n  manypath sim topologies mpcc-3c\n  \
    manypath sim topologies --json")]
pub(crate) struct Args {
    /// Show the links and roles of this one
    name: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A topology, as in the JSON output.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    source: &'static str,
    about: &'static str,
    links: Vec<LinkRow>,
    roles: Vec<RoleRow>,
}

#[derive(Debug, Serialize)]
struct LinkRow {
    name: String,
    rate_bps: f64,
    delay_s: f64,
}

#[derive(Debug, Serialize)]
struct RoleRow {
    name: String,
    /// Names of links, path by path.
    paths: Vec<Vec<String>>,
}

fn row(topology: Topology) -> Row {
    let links = topology.links.into_iter().map(|link| LinkRow {
        rate_bps: link.config.peak_rate().as_bps(),
        delay_s: rounded(link.config.delay.as_secs_f64(), 9),
        name: link.name,
    });
    let roles = topology.roles.into_iter().map(|role| RoleRow { name: role.name, paths: role.paths });
    let Topology { name, source, about, .. } = topology;
    Row { name, source, about, links: links.collect(), roles: roles.collect() }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen = match &args.name {
        Some(name) => vec![super::new::find(name)?],
        None => manypath_scenario::topologies().collect(),
    };
    if args.json {
        output::json(&chosen.into_iter().map(row).collect::<Vec<_>>())?;
        return Ok(());
    }
    let text = match (&args.name, chosen.as_slice()) {
        (Some(_), [one]) => shown(one)?,
        _ => list(&chosen)?,
    };
    output::line(text.trim_end())?;
    Ok(())
}

fn list(all: &[Topology]) -> Result<String> {
    let mut text = String::new();
    for topology in all {
        let roles: Vec<_> = topology.roles.iter().map(|role| role.name.as_str()).take(SHOWN_ROLES).collect();
        let more = if topology.roles.len() > roles.len() { ", ..." } else { "" };
        writeln!(text, "{:<10} {:<16} {}", topology.name, topology.source, topology.about)?;
        writeln!(text, "{:<10} {:<16} roles: {}{more}", "", "", roles.join(", "))?;
    }
    Ok(text)
}

fn shown(topology: &Topology) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{}, {}: {}\n\nlinks, each with a way back", topology.name, topology.source, topology.about)?;
    for link in topology.links.iter().filter(|link| !link.name.ends_with("/back")) {
        let config = &link.config;
        let queue = match config.queue {
            QueueLimit::Packets(packets) => format!("{packets} packets"),
            QueueLimit::Bytes(bytes) => bytes.to_string(),
            QueueLimit::Wait(wait) => wait.to_string(),
        };
        let ends = if link.from.is_empty() { String::new() } else { format!(", {} to {}", link.from, link.to) };
        writeln!(text, "  {:<14} {}, {}, queue {queue}{ends}", link.name, config.peak_rate(), config.delay)?;
    }
    writeln!(text, "\nroles for connections, with their paths")?;
    for role in &topology.roles {
        let paths: Vec<_> = role.paths.iter().map(|path| path.join(" ")).collect();
        writeln!(text, "  {:<14} {}", role.name, paths.join(" | "))?;
    }
    Ok(text)
}
