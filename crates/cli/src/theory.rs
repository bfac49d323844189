//! `theory`: what a scenario's connections should get, and what their controllers would give them.

mod answer;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use manypath_scenario::{Document, Override, Scenario};
use manypath_theory::num::MAX_ALPHA;
use manypath_theory::scenario::Reading;

use crate::output;

use answer::{Answer, fluid, lmmf, num};

/// Calculate what a scenario's connections should get: to be laid beside a simulation of the same file
///
/// Theory knows connections that always have data, on links that do not change. What a scenario has besides is simplified,
/// and the output says how. Rates count whole packets, as links do; goodput is the payload in them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath theory lmmf mine.toml\n  manypath theory num mine.toml --alpha 2\n  \
    manypath theory fluid mine.toml --set connection.cc=olia\n  \
    manypath sim new --topology mpcc-3c | manypath theory lmmf -")]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

/// What can be asked.
#[derive(Debug, clap::Subcommand)]
enum Question {
    /// The lexicographic max-min fair allocation, which MPCC steers for (s4)
    ///
    /// No connection can get more without one that has as much or less losing. A connection counts with the sum over its
    /// paths, however many they are.
    #[command(after_help = "Examples:\n  manypath theory lmmf mine.toml\n  manypath theory lmmf mine.toml --json\n  \
        manypath theory lmmf mine.toml --set link.lte.rate=10Mbit")]
    Lmmf(FileArgs),

    /// The allocation of the largest sum of utilities, and the prices of the links
    ///
    /// Proportional fairness without --alpha. The paths of a `uni-mptcp` connection have its weights, which makes it
    /// equations 14 and 15 of Uni-MPTCP.
    #[command(after_help = "Examples:\n  manypath theory num mine.toml\n  manypath theory num mine.toml --alpha 0\n  \
        manypath theory num mine.toml --set connection.phone.cc=uni-mptcp:weights=1/0.2")]
    Num(NumArgs),

    /// Where the fluid models of the controllers come to rest (TCCC s4)
    ///
    /// Models: reno, ewtcp, coupled (in its form of rates), semicoupled, lia, lisa, olia (without the term that moves
    /// windows), balia, nmcc, e-nmcc, tccc, uni-mptcp. Sends are counted, lost packets too.
    #[command(after_help = "Examples:\n  manypath theory fluid mine.toml --set connection.cc=lia\n  \
        manypath theory fluid mine.toml --set connection.cc=lia --queues 100%")]
    Fluid(FluidArgs),
}

/// Which scenario, and how to print.
#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The scenario; `-` reads standard input, and without it the built-in one is taken
    file: Option<PathBuf>,

    /// Replace a value of the file: KEY, link.NAME.KEY, connection.NAME.KEY, source.NAME.KEY; without NAME in all of them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct NumArgs {
    /// How much fairness counts, from 0 to 8: 0 is throughput, 1 proportional fairness, large ones come near to max-min fairness
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = parse_alpha)]
    alpha: f64,

    #[command(flatten)]
    file: FileArgs,
}

#[derive(Debug, clap::Args)]
struct FluidArgs {
    /// How full the drop-tail queues are, for round-trip times
    #[arg(long, value_name = "SHARE", default_value = "50%", allow_hyphen_values = true, value_parser = parse_share)]
    queues: f64,

    #[command(flatten)]
    file: FileArgs,
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    let alpha = text.parse().ok().filter(|alpha| (0.0..=MAX_ALPHA).contains(alpha));
    alpha.ok_or_else(|| format!("alpha is a number from 0 to {MAX_ALPHA}"))
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok()).map(|percent| percent / 100.0);
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "write a share from 0% to 100%".to_owned())
}

impl FileArgs {
    fn scenario(&self) -> Result<Scenario> {
        let document = self.file.as_deref().map_or_else(|| Ok(Document::built_in()), Document::read)?;
        Ok(document.parse(&self.set)?)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.question {
        Question::Lmmf(args) => answer(args, 0.0, lmmf),
        Question::Num(NumArgs { alpha, file }) => answer(file, 0.0, |reading| num(reading, *alpha)),
        Question::Fluid(FluidArgs { queues, file }) => answer(file, *queues, fluid),
    }
}

/// Reads the scenario, answers the question, prints.
fn answer(args: &FileArgs, queues: f64, solve: impl Fn(&Reading) -> Result<Answer>) -> Result<()> {
    let scenario = args.scenario()?;
    let reading = Reading::new(&scenario, queues)?;
    let answer = solve(&reading)?;
    if args.json {
        output::json(&answer.report(&scenario, &reading))?;
    } else {
        output::text(&table::table(&answer.report(&scenario, &reading))?)?;
    }
    Ok(())
}
