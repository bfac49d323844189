//! `emu down`.

use anyhow::{Result, bail};

use super::registry::{self, Name};
use super::status::{self, Status};
use crate::output;

/// End links that are up
///
/// Programs that run in their namespaces go on, without a network.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath emu down\n  manypath emu down --name two-links\n  manypath emu down --all"
)]
pub(super) struct Args {
    /// Which; not needed if only one is up that `emu run` or `emu shell` does not hold
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,

    /// All of them; none is no error
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<()> {
    let names = if args.all { registry::all()? } else { vec![one(args.name.as_ref()).await?] };
    for name in names {
        registry::stop(&name).await?;
        output::line(&format!("{name} is down"))?;
    }
    Ok(())
}

/// The links of this name; without one the only ones there are, if they are not a running command's own.
async fn one(name: Option<&Name>) -> Result<Name> {
    let chosen = registry::choose(name)?;
    // Links that give no answer are ended all the same.
    let status = registry::status(&chosen).await.and_then(|text| status::parsed(&text));
    if let (None, Ok(Status { for_command: true, pid, .. })) = (name, status) {
        bail!("only {chosen} is up, for a command that runs (process {pid}): end that, or say --name {chosen}");
    }
    Ok(chosen)
}
