//! `sim`: the simulator, from scenario files.

mod new;
mod plot_schedule;
mod run;
mod summary;
mod topologies;

use anyhow::Result;

pub(crate) use run::parse_seed;

use crate::interrupt::Interrupt;
use crate::output;

/// Simulate: the same controllers and schedulers in virtual time, over modelled links
///
/// Without a command it runs a built-in scenario, one connection over two links, and prints its table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim\n  manypath sim new > mine.toml\n  manypath sim run mine.toml\n  \
    manypath sim run mine.toml --seeds 10 --set connection.phone.cc=olia\n  \
    manypath sim new --topology mpcc-3c | manypath sim run - --plot 3c.svg")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<run::Args>),
    New(new::Args),
    Topologies(topologies::Args),
    PlotSchedule(plot_schedule::Args),
    /// Print the JSON schema of scenario files, for editors
    #[command(after_help = "Examples:\n  manypath sim schema > scenario.schema.json")]
    Schema,
}

/// Runs the command.
pub(crate) async fn run(args: Args, interrupt: &Interrupt) -> Result<()> {
    match args.command {
        None => run::run(run::Args::built_in(), interrupt).await,
        Some(Command::Run(args)) => run::run(*args, interrupt).await,
        Some(Command::New(args)) => new::run(&args),
        Some(Command::Topologies(args)) => topologies::run(&args),
        Some(Command::PlotSchedule(args)) => plot_schedule::run(&args),
        Some(Command::Schema) => output::line(manypath_scenario::json_schema().trim_end()),
    }
}
