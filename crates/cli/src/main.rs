//! Manypath: the command line.
//!
//! Each command has a file of its name; `files` is the file service that they share, `demo` the demonstration.
//!
//! Dependencies: `clap` parses arguments and writes the help; `anyhow` carries errors with their causes to the user,
//! `thiserror` writes the code of the typed ones below; `rustix` locks, kills and detaches for `emu`; `tokio` drives the transport and the signals; `cap-std` and
//! `cap-fs-ext` open files beneath a folder and nowhere else; `sha2` verifies transfers; `indicatif` draws progress bars;
//! `serde` and `serde_json` write JSON; `tracing` and `tracing-subscriber` are the log; `rand_xoshiro` (with
//! `rand_core`) makes the demonstration's file, and `tempfile` the folder it lives in; `socket2` binds to a device.
//! The others are our own crates.

// It panics where standard error cannot be written to: `output::note` does not.
#![deny(clippy::print_stderr)]

mod algorithms;
mod client;
mod demo;
mod dial;
mod emu;
mod files;
mod get;
mod interrupt;
mod kernel;
mod lab;
mod output;
mod perf;
mod progress;
mod put;
mod schedule_trace;
mod serve;
mod service;
mod sim;
mod target;
mod theory;
mod transfer;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use rustix::process::Signal;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::interrupt::Interrupt;
use crate::output::ReaderGone;

/// The command ran, and what it checked is wrong.
const EXIT_CHECK_FAILED: u8 = 1;

/// The command could not do what it was asked to.
const EXIT_ERROR: u8 = 2;

/// Puts an option behind those of the command in its help; `--help` itself has 999.
const LAST_OPTION: usize = 998;

/// Move bytes over several network paths at once
#[derive(Debug, clap::Parser)]
#[command(
    name = "manypath",
    version,
    max_term_width = 110,
    after_help = "Exit codes: 0 success, 1 a check failed, 2 an error. Set SSLKEYLOGFILE to decrypt captured packets."
)]
struct Cli {
    /// Write log messages to standard error: a level (`debug`) or levels by module (`info,manypath_quic=trace`)
    #[arg(long, global = true, value_name = "FILTER", display_order = LAST_OPTION)]
    log: Option<Targets>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Serve(serve::Args),
    Get(get::Args),
    Put(put::Args),
    Perf(perf::Args),
    Demo(demo::Args),
    Sim(sim::Args),
    Emu(emu::Args),
    Theory(theory::Args),
    Lab(lab::Args),
    Algorithms(algorithms::Args),
    Kernel(kernel::Args),
}

/// A check on what was done has failed: exit code 1.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CheckFailed(String);

/// A command that was run has failed, with this exit code: it is ours, too, and the command has said why.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with exit code {0}")]
struct Exited(u8);

impl Exited {
    /// By a signal: 128 and its number, as shells have it.
    fn by(signal: Signal) -> Self {
        Self(u8::try_from(128 + signal.as_raw()).unwrap_or(EXIT_ERROR))
    }
}

impl From<ExitStatus> for Exited {
    fn from(status: ExitStatus) -> Self {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Self(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_ERROR))
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(mistake) if mistake.use_stderr() => {
            // Where standard error cannot be written to, the exit code says it alone.
            let _ = mistake.print();
            return ExitCode::from(EXIT_ERROR);
        }
        Err(answer) => output::answer(&answer),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ReaderGone>() => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(Exited(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            output::note(format_args!("manypath: {}", told(&error)));
            ExitCode::from(if error.is::<CheckFailed>() { EXIT_CHECK_FAILED } else { EXIT_ERROR })
        }
    }
}

/// An error and its causes. Some errors name their cause themselves: it is not said twice.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for said in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = said;
        } else if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}

fn run(cli: Cli) -> Result<()> {
    if let Some(filter) = cli.log {
        let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_filter(filter);
        tracing_subscriber::registry().with(layer).init();
    }
    match &cli.command {
        Command::Algorithms(args) => return algorithms::run(args),
        Command::Kernel(args) => return kernel::run(args),
        Command::Theory(args) => return theory::run(args),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        if let Command::Emu(args) = cli.command {
            // It leaves signals to the programs that it runs.
            return emu::run(args).await;
        }
        let interrupt = Interrupt::listen().context("cannot listen for signals")?;
        match cli.command {
            Command::Serve(args) => serve::run(&args, &interrupt).await,
            Command::Get(args) => get::run(&args, &interrupt).await,
            Command::Put(args) => put::run(&args, &interrupt).await,
            Command::Perf(args) => perf::run(&args, &interrupt).await,
            Command::Demo(args) => demo::run(&args, &interrupt).await,
            Command::Sim(args) => sim::run(args, &interrupt).await,
            Command::Emu(args) => emu::run(args).await,
            Command::Theory(args) => theory::run(&args),
            Command::Lab(args) => lab::run(args, &interrupt).await,
            Command::Algorithms(args) => algorithms::run(&args),
            Command::Kernel(args) => kernel::run(&args),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_every_command_are_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn causes_are_told_once() {
        let cause = || io::Error::other("the disk is full");
        let plain = anyhow::Error::new(cause()).context("cannot write x");
        assert_eq!(told(&plain), "cannot write x: the disk is full");
        let said = anyhow::Error::new(cause()).context("cannot write x: the disk is full, free some space");
        assert_eq!(told(&said), "cannot write x: the disk is full, free some space");
    }
}
