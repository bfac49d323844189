//! `lab`: the papers' experiments, and what they claim.

mod check;
mod compare;
mod list;
mod place;
mod report;
mod run;
mod show;
mod validate;

use anyhow::Result;

use crate::interrupt::Interrupt;

/// Reproduce the papers' figures and tables, and judge their claims
///
/// Every figure and table of the five papers is a file in `experiments/`. `run` makes what has not been run yet, `check`
/// prints one line for each claim: the paper's number, ours, and whether the claim holds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath lab list\n  manypath lab run mpcc-fig5a\n  manypath lab run --all --quick\n  \
    manypath lab check\n  manypath lab report\n  manypath lab compare mpcc-loss lia\n  \
    manypath lab show mpcc-fig5a"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Run(run::Args),
    Check(check::Args),
    Report(report::Args),
    Compare(compare::Args),
    Validate(validate::Args),
}

/// Runs the command.
pub(crate) async fn run(args: Args, interrupt: &Interrupt) -> Result<()> {
    match args.command {
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Run(args) => run::run(args, interrupt).await,
        Command::Check(args) => check::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Validate(args) => validate::run(args, interrupt).await,
    }
}
