//! `kernel doctor`: what this kernel has and lacks.

use std::fmt::Write as _;

use anyhow::Result;
use manypath_kernel::doctor::{self, Check, State};

use crate::{CheckFailed, output};

/// Say what this kernel has and lacks, and what to do about it
///
/// Exit code 1 if something is missing without which nothing works.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath kernel doctor\n  sudo manypath kernel doctor --json")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn text(checks: &[Check]) -> Result<String> {
    let mut text = String::new();
    for check in checks {
        let state = match check.state {
            State::Good => "ok     ",
            State::Warning => "warning",
            State::Missing => "MISSING",
        };
        writeln!(text, "{state}  {}: {}", check.name, check.detail)?;
        if let Some(remedy) = &check.remedy {
            writeln!(text, "           remedy: {remedy}")?;
        }
    }
    Ok(text)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let checks = doctor::examine();
    if args.json {
        output::json(&checks)?;
    } else {
        output::line(text(&checks)?.trim_end())?;
    }
    match checks.iter().filter(|check| check.state == State::Missing).count() {
        0 => Ok(()),
        1 => Err(CheckFailed("one thing is missing".to_owned()).into()),
        count => Err(CheckFailed(format!("{count} things are missing")).into()),
    }
}
