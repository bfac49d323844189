//! `lab report`: every figure redrawn, the claims under it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use manypath_lab::{Engine, Experiment, Facts, Mode, Section, Store, engine, html, markdown, section};
use manypath_output::write_file;

use super::place::{Length, Place, chosen, log};
use crate::output::{self, counted};

/// Draw the figures and write a page
///
/// The page needs nothing else: figures are in it. With --docs the same goes to DIR/results.md with pictures in DIR/results/.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath lab report\n  manypath lab report mpcc-fig5a --html fig5a.html\n  \
    manypath lab report --full --docs docs")]
pub(super) struct Args {
    /// Experiments or papers; all without it
    names: Vec<String>,

    #[command(flatten)]
    length: Length,

    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "lab-report.html")]
    html: PathBuf,

    /// Write results.md and its pictures to this folder too
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    let all = args.place.load()?;
    let store = args.place.store()?;
    let mut sections = Vec::new();
    for experiment in chosen(&all, &args.names)? {
        sections.push(one(args, experiment, &store)?);
    }
    let facts = facts(args, &sections)?;
    write_file(&args.html, html(&sections, &facts).as_bytes())?;
    output::line(&format!("{}: {}", args.html.display(), counted(sections.len(), "experiment", "experiments")))?;
    if let Some(docs) = &args.docs {
        let (text, pictures) = markdown(&sections, &facts, "results");
        let folder = docs.join("results");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, svg) in &pictures {
            write_file(&folder.join(name), svg.as_bytes())?;
        }
        let path = docs.join("results.md");
        write_file(&path, text.as_bytes())?;
        output::line(&format!("{}: {}", path.display(), counted(pictures.len(), "picture", "pictures")))?;
    }
    Ok(())
}

/// The section of full runs where all are there, else of quick ones, unless the user says.
fn one<'a>(args: &Args, experiment: &'a Experiment, store: &Store) -> Result<Section<'a>> {
    let engines: Vec<Box<dyn Engine>> = experiment.engines.iter().map(|kind| engine(*kind)).collect();
    let made = |mode| section(experiment, (mode, experiment.seeds(mode)), &engines, store);
    if let Some(mode) = args.length.mode() {
        return Ok(made(mode)?);
    }
    let full = made(Mode::Full)?;
    if full.runs.0 == full.runs.1 { Ok(full) } else { Ok(made(Mode::Quick)?) }
}

/// What the report says about itself.
fn facts(args: &Args, sections: &[Section<'_>]) -> Result<Facts> {
    let mut engines: Vec<_> = sections.iter().flat_map(|section| section.experiment.engines.clone()).collect();
    engines.sort_unstable();
    engines.dedup();
    let codes = engines.into_iter().map(|kind| format!("{} {}", kind.as_str(), engine(kind).code().version()));
    let codes: Vec<String> = codes.collect();
    let modes: Vec<&str> = sections.iter().map(|section| section.mode.as_str()).collect();
    let made = log(&args.place)?.into_iter().filter(|line| modes.iter().any(|mode| line.starts_with(mode)));
    let shown = |line: &String| args.names.is_empty() || sections.iter().any(|section| is_of(line, section.experiment));
    Ok(Facts {
        versions: format!("manypath {}; code: {}.", env!("CARGO_PKG_VERSION"), codes.join(", ")),
        made: made.filter(shown).collect(),
    })
}

/// Whether a line of the log is of a command that ran this experiment.
fn is_of(line: &str, experiment: &Experiment) -> bool {
    // The length first; at the end what came of it.
    let command = line.split(": ").nth(1).unwrap_or_default();
    let names = [&experiment.id, &experiment.paper, &experiment.runs_of].map(String::as_str);
    command.split_whitespace().any(|word| word == "--all" || names.contains(&word))
}
