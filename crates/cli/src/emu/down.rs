//! `emu down`.

use anyhow::Result;

use super::registry::{self, Name};
use crate::output;

/// End links that are up
///
/// Programs that run in their namespaces go on, without a network.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath emu down\n  manypath emu down --name two-links\n  manypath emu down --all"
)]
pub(super) struct Args {
    /// Which; not needed if only one is up
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,

    /// All of them; none is no error
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<()> {
    let names = if args.all { registry::all()? } else { vec![registry::choose(args.name.as_ref())?] };
    for name in names {
        registry::stop(&name).await?;
        output::line(&format!("{name} is down"))?;
    }
    Ok(())
}
