//! `sim new`: a scenario to begin with.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use manypath_scenario::{template, topologies, topology};

use crate::output;

/// Write a commented scenario to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath sim new > mine.toml\n  manypath sim new mine.toml --topology mpcc-3c")]
pub(crate) struct Args {
    /// The file to make; it must not exist. Standard output without it
    file: Option<PathBuf>,

    /// Over this network of a paper; `manypath sim topologies` lists them
    #[arg(long, value_name = "NAME")]
    topology: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let text = match &args.topology {
        None => template().to_owned(),
        Some(name) => find(name)?.template(),
    };
    let Some(path) = &args.file else {
        return output::line(text.trim_end());
    };
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        // There may be days of work in it.
        ErrorKind::AlreadyExists => anyhow!("{} is there already: choose another name, or delete it", path.display()),
        _ => anyhow::Error::new(error).context(format!("cannot make {}", path.display())),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // The half of it would be in the way of the next attempt.
        let _ = std::fs::remove_file(path);
        anyhow::Error::new(error).context(format!("cannot write {}", path.display()))
    })
}

/// The topology of this name.
pub(super) fn find(name: &str) -> Result<manypath_scenario::Topology> {
    topology(name).ok_or_else(|| {
        let known: Vec<_> = topologies().map(|topology| topology.name).collect();
        anyhow!("there is no topology '{name}'; there are {}", known.join(", "))
    })
}
