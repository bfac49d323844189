//! `kernel status`: what controllers that are loaded are doing.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use manypath_kernel::engine;
use manypath_kernel::status::{ConnectionStatus, Controller};

use crate::output;

/// How often `--watch` looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Clears the terminal and goes to its first place (ECMA-48).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show the loaded controllers, their connections and subflows
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath kernel status\n  manypath kernel status --watch\n  manypath kernel status --json"
)]
pub(crate) struct Args {
    /// Show it again every second, until interrupted
    #[arg(long)]
    watch: bool,

    /// Print JSON; with --watch one line a second
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    loop {
        let status = engine::status()?;
        match (args.json, args.watch) {
            (true, true) => output::line(&serde_json::to_string(&status)?)?,
            (true, false) => output::json(&status)?,
            (false, _) => {
                let clear = if args.watch && std::io::stdout().is_terminal() { CLEAR } else { "" };
                output::line(&format!("{clear}{}", text(&status)?.trim_end()))?;
            }
        }
        if !args.watch {
            return Ok(());
        }
        thread::sleep(PERIOD);
    }
}

fn text(status: &[Controller]) -> Result<String> {
    let mut text = String::new();
    if status.is_empty() {
        writeln!(text, "no controller is loaded: `manypath kernel load` loads one")?;
    }
    for controller in status {
        let default = if controller.default { " (default)" } else { "" };
        writeln!(text, "{}{default}", controller.kernel_name)?;
        list(
            &mut text,
            "parameters",
            controller.parameters.iter().map(|(name, value)| (name.as_str(), value.clone())),
        )?;
        let counted = controller.counters.iter().filter(|(_, count)| **count > 0);
        list(&mut text, "counted", counted.map(|(name, count)| (*name, count.to_string())))?;
        for connection in &controller.connections {
            table(&mut text, connection)?;
        }
        writeln!(text)?;
    }
    Ok(text)
}

fn list<'a>(text: &mut String, title: &str, pairs: impl Iterator<Item = (&'a str, String)>) -> Result<()> {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
    if !pairs.is_empty() {
        writeln!(text, "  {title}: {}", pairs.join(" "))?;
    }
    Ok(())
}

fn table(text: &mut String, connection: &ConnectionStatus) -> Result<()> {
    writeln!(text, "  connection {:08x}", connection.token)?;
    writeln!(
        text,
        "    {:<5} {:<44} {:>6} {:>9} {:>9} {:>7} {:<11} {:>7} {:>9}",
        "place", "addresses", "cwnd", "Mbit/s", "srtt ms", "lost %", "phase", "weight", "utility"
    )?;
    for subflow in &connection.subflows {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = subflow.rate_bps as f64 / 1e6;
        writeln!(
            text,
            "    {:<5} {:<44} {:>6} {rate:>9.2} {:>9.2} {:>7.3} {:<11} {:>7.3} {:>9.2}",
            subflow.place,
            format!("{} > {}", subflow.local, subflow.remote),
            subflow.cwnd,
            f64::from(subflow.srtt_us) / 1e3,
            subflow.loss() * 100.0,
            subflow.phase,
            subflow.weight,
            subflow.utility,
        )?;
    }
    Ok(())
}
