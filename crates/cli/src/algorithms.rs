//! `algorithms`: the registries.

use std::fmt::Write as _;

use anyhow::Result;
use manypath_core::{AlgorithmSpec, Parameter, Status};
use manypath_quic::TransportConfig;
use serde::Serialize;

use crate::output;

/// List the congestion controllers and packet schedulers, with their parameters and sources
///
/// Use a name with --cc or --sched, alone or with parameters: `mpcc-loss`, `mpcc-loss:KEY=VALUE,KEY=VALUE`. Defaults are those of
/// scenarios. Real connections have some others: `mpcc-loss` and `mpcc-latency` slow-start=tolerant, brake=lasting, queue=heeded,
/// bursts=heeded, low=near and min-rate=0.05, the scheduler chosen by default rescue=on. In the kernel, `manypath kernel status` shows them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath algorithms\n  manypath algorithms --json")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What an algorithm decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// How fast each path may send.
    Cc,
    /// Which data goes on which path.
    Sched,
}

/// One row, as in the JSON output.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    kind: Kind,
    parameters: Vec<ParameterRow>,
    citation: &'static str,
    status: &'static str,
}

#[derive(Debug, Serialize)]
struct ParameterRow {
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
}

fn row(
    kind: Kind,
    name: &'static str,
    parameters: &'static [Parameter],
    citation: &'static str,
    status: Status,
) -> Row {
    let parameters = parameters.iter().map(|p| ParameterRow {
        name: p.name,
        default: p.default,
        range: p.range,
        meaning: p.meaning,
    });
    Row { name, kind, parameters: parameters.collect(), citation, status: status.as_str() }
}

fn rows() -> Vec<Row> {
    let cc = manypath_cc::algorithms().iter().map(|a| row(Kind::Cc, a.name, a.parameters, a.citation, a.status));
    let sched = manypath_sched::algorithms();
    cc.chain(sched.iter().map(|a| row(Kind::Sched, a.name, a.parameters, a.citation, a.status))).collect()
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let rows = rows();
    if args.json {
        output::json(&rows)?;
        return Ok(());
    }
    let mut text = String::new();
    for kind in [Kind::Cc, Kind::Sched] {
        let title = if kind == Kind::Cc { "Congestion controllers (--cc)" } else { "\nSchedulers (--sched)" };
        writeln!(text, "{title}")?;
        for row in rows.iter().filter(|row| row.kind == kind) {
            writeln!(text, "  {:<16} {:<13} {}", row.name, row.status, row.citation)?;
            for p in &row.parameters {
                writeln!(text, "      {}={}  ({}) {}", p.name, p.default, p.range, p.meaning)?;
            }
        }
    }
    output::line(text.trim_end())?;
    Ok(())
}

/// Parses a controller's name and parameters, and checks that it can be made.
pub(crate) fn parse_cc(text: &str) -> Result<AlgorithmSpec, manypath_core::SpecError> {
    let spec = text.parse()?;
    manypath_cc::create(&spec, 0).map(|_| spec)
}

/// Parses a scheduler's name and parameters, and checks that it can be made.
pub(crate) fn parse_sched(text: &str) -> Result<AlgorithmSpec, manypath_core::SpecError> {
    let spec = text.parse()?;
    manypath_sched::create(&spec).map(|_| spec)
}

/// What real connections have in place of MPCC's defaults, where a controller has the parameter. Each has a page in docs/decisions/.
///
/// * Slow start tolerates chance losses: the paper's rule takes one or two for the end of a path's capacity (slow-start.md).
/// * An overload that lasts is braked: the paper's steps take half a minute down to a path that has come back thin (overload.md), but a moment
///   in which nothing arrives is none (moments.md).
/// * A queue that grows is heeded: it tells what losses tell too late where it is deep (deep-queue.md).
/// * So are bursts: those shorter than a round of probing would keep their rate for good (bursts.md).
/// * A slow path is probed by a quarter of its rate at most: by the paper's share of the connection's rate, most of what is tried is lost
///   (slow-beside-fast.md).
/// * A path of less than the release's smallest rate is not overrun (overload.md).
const FOR_REAL_PATHS: [(&str, &str); 6] = [
    ("slow-start", "tolerant"),
    ("brake", "lasting"),
    ("queue", "heeded"),
    ("bursts", "heeded"),
    ("low", "near"),
    ("min-rate", "0.05"),
];

/// A controller as real connections use it: [`FOR_REAL_PATHS`], but what is chosen.
pub(crate) fn for_real_paths(cc: AlgorithmSpec) -> AlgorithmSpec {
    let row = manypath_cc::algorithms().iter().find(|row| row.name == cc.name && row.name.starts_with("mpcc-"));
    let parameters = row.map_or(&[][..], |row| row.parameters);
    FOR_REAL_PATHS.iter().fold(cc, |cc, &(key, value)| {
        let is_known = parameters.iter().any(|parameter| parameter.name == key);
        if is_known { cc.with_default(key, value) } else { cc }
    })
}

/// The scheduler of real connections when none is chosen: data arrives in order (docs/decisions/arrival-order.md), and nobody waits
/// for a path that is far slower than another (docs/decisions/rescue.md). But a controller that weighs costs has its reasons to send
/// so little on the fast one, and keeps the scheduler of its paper.
pub(crate) fn default_sched(cc: &AlgorithmSpec) -> AlgorithmSpec {
    if cc.name == "uni-mptcp" { AlgorithmSpec::named("minrtt") } else { TransportConfig::default().sched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_made() {
        for row in rows() {
            match row.kind {
                Kind::Cc => {
                    let used = parse_cc(row.name).map(|cc| parse_cc(&for_real_paths(cc).to_string()));
                    assert!(used.is_ok_and(|used| used.is_ok()), "{}", row.name);
                }
                Kind::Sched => assert!(parse_sched(row.name).is_ok(), "{}", row.name),
            }
        }
    }

    #[test]
    fn unknown_names_say_what_exists() {
        assert!(parse_cc("nothing").unwrap_err().to_string().contains("cubic"));
        assert!(parse_sched("nothing").unwrap_err().to_string().contains("minrtt"));
    }

    #[test]
    fn every_default_scheduler_exists() {
        for algorithm in manypath_cc::algorithms() {
            let sched = default_sched(&AlgorithmSpec::named(algorithm.name));
            assert!(manypath_sched::create(&sched).is_ok(), "{}", algorithm.name);
        }
    }
}
