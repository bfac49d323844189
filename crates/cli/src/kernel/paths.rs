//! `kernel paths`: one subflow a path.

use std::fmt::Write as _;
use std::io;

use anyhow::{Context as _, Result};
use manypath_kernel::interfaces::Path;
use manypath_kernel::path_manager::{Endpoint, Limits, MAX_ENDPOINTS, PathManager};
use manypath_kernel::paths::{Finding, Paths, Plan};
use serde::Serialize;

use crate::output::{self, counted};

/// Show or set which paths the kernel's Multipath TCP uses
///
/// Without a command, shows this host's addresses, the path manager's endpoints and limits, and what keeps connections
/// from having exactly one subflow a path. It works on the network namespace that it runs in; settings last until the
/// next boot.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel paths
  manypath kernel paths set                 every interface with a default route
  manypath kernel paths set wlan0 wwan0     these two
  manypath kernel paths accept 4            on a server: up to four paths a connection
  manypath kernel paths clear")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Set(Set),
    Accept(Accept),
    Clear(Clear),
}

/// Open one subflow on each of these paths, and on no others
#[derive(Debug, clap::Args)]
struct Set {
    /// Interfaces or their addresses [default: every interface with a default route]
    #[arg(value_name = "INTERFACE")]
    paths: Vec<String>,

    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

/// On a server: let each connection have up to this many paths
#[derive(Debug, clap::Args)]
struct Accept {
    /// Paths a connection, 1 to 9
    #[arg(value_parser = clap::value_parser!(u32).range(1..=9))]
    paths: u32,
}

/// Delete all endpoints: connections have one path again
#[derive(Debug, clap::Args)]
struct Clear {}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        None => show(args.json),
        Some(Command::Set(set)) => {
            let state = read()?;
            let plan = state.plan(&state.select(&set.paths)?);
            change(&plan, set.dry_run)
        }
        Some(Command::Accept(accept)) => {
            let limits = Limits { subflows: accept.paths - 1, ..read()?.limits };
            let set = PathManager::open().and_then(|mut manager| manager.set_limits(limits));
            set.map_err(refused)?;
            output::line(&describe_limits(limits))
        }
        Some(Command::Clear(_)) => change(&Plan { delete: read()?.endpoints, ..Plan::default() }, false),
    }
}

fn read() -> Result<Paths> {
    Paths::read().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("this kernel has no Multipath TCP: see `manypath kernel doctor`"),
        _ => anyhow::Error::new(error).context("cannot read the path manager's state"),
    })
}

/// The kernel's refusal, with what to do.
fn refused(error: io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "run it as root".to_owned(),
        io::ErrorKind::InvalidInput => format!("the kernel takes {MAX_ENDPOINTS} endpoints; see `ip mptcp endpoint`"),
        _ => "see `ip mptcp endpoint`".to_owned(),
    };
    anyhow::Error::new(error).context(format!("the kernel does not change its paths: {advice}"))
}

fn change(plan: &Plan, dry_run: bool) -> Result<()> {
    if !dry_run {
        plan.apply().map_err(refused)?;
    }
    let mut text = String::new();
    for endpoint in &plan.delete {
        writeln!(text, "- {}", describe(endpoint))?;
    }
    for endpoint in &plan.add {
        writeln!(text, "+ {}", describe(endpoint))?;
    }
    if let Some(limits) = plan.limits {
        writeln!(text, "{}", describe_limits(limits))?;
    }
    output::line(if plan.is_empty() { "nothing to change" } else { text.trim_end() })
}

fn describe(endpoint: &Endpoint) -> String {
    let interface = endpoint.interface_name().map(|name| format!(" on {name}")).unwrap_or_default();
    format!("{}{interface} ({})", endpoint.address, endpoint.flags)
}

fn describe_limits(limits: Limits) -> String {
    let subflows = counted(limits.subflows, "extra subflow", "extra subflows");
    let addresses = counted(limits.accepted_addresses, "announced address", "announced addresses");
    format!("limits: {subflows} a connection, {addresses} accepted")
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    state: &'a Paths,
    findings: &'a [Finding],
}

fn show(json: bool) -> Result<()> {
    let state = read()?;
    let findings = state.findings();
    if json {
        return output::json(&Report { state: &state, findings: &findings });
    }
    output::line(table(&state, &findings).context("cannot print")?.trim_end())?;
    Ok(())
}

fn table(state: &Paths, findings: &[Finding]) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{:<12} {:<28} {:<14} endpoint", "interface", "address", "default route")?;
    for path in &state.paths {
        let Path { interface, address, default_route, .. } = path;
        let route = if *default_route { "yes" } else { "no" };
        let endpoint =
            state.endpoint_of(*address).map_or("-".to_owned(), |held| format!("{} (id {})", held.flags, held.id));
        writeln!(text, "{interface:<12} {:<28} {route:<14} {endpoint}", address.to_string())?;
    }
    for endpoint in state.endpoints.iter().filter(|held| !state.paths.iter().any(|path| path.address == held.address)) {
        writeln!(text, "{:<12} {:<28} {:<14} {}", "-", endpoint.address.to_string(), "-", endpoint.flags)?;
    }
    writeln!(text, "\n{}", describe_limits(state.limits))?;
    if findings.is_empty() {
        writeln!(text, "connections have one subflow a path")?;
    }
    for finding in findings {
        writeln!(text, "\nwarning: {}\n  remedy: {}", finding.what, finding.remedy)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_subflow_is_not_counted_as_many() {
        let said = |subflows, accepted_addresses| describe_limits(Limits { subflows, accepted_addresses });
        assert_eq!(said(1, 1), "limits: 1 extra subflow a connection, 1 announced address accepted");
        assert_eq!(said(2, 0), "limits: 2 extra subflows a connection, 0 announced addresses accepted");
    }
}
