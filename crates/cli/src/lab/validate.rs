//! `lab validate`: whether the simulator and the transport agree.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use manypath_lab::{Agreement, Effort, VALIDATION_TITLE, comparisons, validate, validation_markdown};
use manypath_output::write_file;

use crate::interrupt::Interrupt;
use crate::{CheckFailed, output};

/// Compare the simulator with the QUIC transport over emulated links
///
/// Five scenarios (clean, 1% loss, shallow queue, unequal round trips, reordering) with the same controller and scheduler in
/// both; in real time, so it takes as long as the runs and needs an idle machine. Ends with 1 if goodputs differ by more than a tenth.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath lab validate\n  manypath lab validate --seconds 30 --seeds 3 --docs docs/validation.md"
)]
pub(super) struct Args {
    /// Length of each run in seconds
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(4..=600))]
    seconds: u32,

    /// Runs of each scenario
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,

    /// Write the table to this file too, in the place of its section there
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
}

/// Runs the command.
pub(super) async fn run(args: Args, interrupt: &Interrupt) -> Result<()> {
    let work = tokio::task::spawn_blocking(move || work(&args));
    tokio::select! {
        done = work => done?,
        // The runs' threads end with the process.
        () = interrupt.wait() => {
            output::note("manypath: interrupted");
            std::process::exit(crate::EXIT_ERROR.into())
        }
    }
}

fn work(args: &Args) -> Result<()> {
    // Before the runs, which take minutes.
    args.docs.as_deref().map_or(Ok(()), |path| output::check_folder_of(path, "--docs"))?;
    let bar = ProgressBar::new(comparisons() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len}  {elapsed} so far, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let effort = Effort { seconds: args.seconds, seeds: args.seeds };
    let found = validate(effort, &mut |_| bar.inc(1))?;
    bar.finish_and_clear();
    let command: Vec<String> = std::env::args().skip(1).collect();
    let text = validation_markdown(&found, &format!("manypath {}", command.join(" ")));
    output::line(text.trim_end())?;
    if let Some(path) = &args.docs {
        let page = match std::fs::read_to_string(path) {
            Ok(page) => with_section(&page, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => format!("# Do the engines agree?\n\n{text}"),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        write_file(path, page.as_bytes())?;
    }
    let apart = found.iter().filter(|row| !row.agrees()).count();
    let named = |row: &Agreement| format!("{} with {}", row.scenario, row.algorithms.0);
    let names: Vec<String> = found.iter().filter(|row| !row.agrees()).map(named).collect();
    if apart == 0 { Ok(()) } else { Err(CheckFailed(format!("the engines differ: {}", names.join(", "))).into()) }
}

/// A page with its section replaced, or added at its end.
fn with_section(page: &str, section: &str) -> String {
    let Some(begin) = page.find(VALIDATION_TITLE) else { return format!("{}\n\n{section}", page.trim_end()) };
    let behind = &page[begin + VALIDATION_TITLE.len()..];
    let rest = behind.find("\n## ").map_or("", |end| &behind[end..]);
    format!("{}{}\n{rest}", &page[..begin], section.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_replaced_and_others_stay() {
        let section = format!("{VALIDATION_TITLE}\n\nnew\n");
        assert_eq!(with_section("# Page\n", &section), format!("# Page\n\n{section}"));
        let page = format!("# Page\n\n{VALIDATION_TITLE}\n\nold\n\n## Other\n\ntext\n");
        assert_eq!(with_section(&page, &section), format!("# Page\n\n{section}\n## Other\n\ntext\n"));
        let last = format!("# Page\n\n## Other\n\ntext\n\n{VALIDATION_TITLE}\n\nold\n");
        assert_eq!(with_section(&last, &section), format!("# Page\n\n## Other\n\ntext\n\n{section}"));
    }
}
