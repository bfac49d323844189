//! Standard output and the notes on standard error: the only place that writes to them. A reader that goes away is not a
//! failure. And where figures go.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde::Serialize;

/// Standard output has lost its reader, as under `head`. A type of its own: other pipes and flows break too, and then what
/// was asked for was not done.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
pub(crate) struct ReaderGone;

/// Writes `text` and a line end.
pub(crate) fn line(text: &str) -> Result<()> {
    write(&[text, "\n"])
}

/// Writes `text`, which has its line ends.
pub(crate) fn text(text: &str) -> Result<()> {
    write(&[text])
}

/// Writes `value` as indented JSON and a line end.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes help or the version, which the parser of arguments answers with in place of arguments.
pub(crate) fn answer(answer: &clap::Error) -> Result<()> {
    written(answer.print().and_then(|()| io::stdout().flush()))
}

/// Tells the user, on standard error, and goes on where that cannot be written to: what was asked for is more than what is
/// said about it, and the exit code remains.
pub(crate) fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn write(parts: &[&str]) -> Result<()> {
    let mut out = io::stdout().lock();
    written(parts.iter().try_for_each(|part| out.write_all(part.as_bytes())).and_then(|()| out.flush()))
}

fn written(outcome: io::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        outcome => outcome.context("cannot write to standard output"),
    }
}

/// Checks that a file of the user's could be made, before time is spent on what it is to hold.
pub(crate) fn check_folder_of(path: &Path, option: &str) -> Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => bail!("there is no folder {}: choose another place with {option}", folder.display()),
        None => Ok(()),
    }
}

/// Reads the place of a figure. A name without an ending says nothing against SVG.
pub(crate) fn svg_place() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => {
            let path = path.display();
            Err(format!("'{path}' is no place for an SVG figure, which is what is drawn: write FILE.svg"))
        }
        _ => Ok(path),
    })
}

/// A name that others may have chosen, for people: control characters would steer a terminal.
pub(crate) fn shown(name: impl fmt::Display) -> String {
    let name = name.to_string();
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escaped).collect()
}

/// A number with what it counts: `1 run`, `2 runs`.
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8>>(number: N, one: &str, more: &str) -> String {
    let what = if number == N::from(1) { one } else { more };
    format!("{number} {what}")
}

/// A number rounded to `digits` decimals: JSON readers need not see the noise of floating point.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_is_a_reader_gone() {
        let error = |kind| written(Err(io::Error::from(kind))).unwrap_err();
        assert!(error(io::ErrorKind::BrokenPipe).is::<ReaderGone>());
        assert!(!error(io::ErrorKind::StorageFull).is::<ReaderGone>());
    }

    #[test]
    fn names_do_not_steer_a_terminal() {
        assert_eq!(shown("a \u{1b}[31m\nb\u{9b}ä"), r"a \u{1b}[31m\nb\u{9b}ä");
    }

    #[test]
    fn only_one_is_singular() {
        let counted = [0_usize, 1, 2, 101].map(|number| counted(number, "run", "runs"));
        assert_eq!(counted, ["0 runs", "1 run", "2 runs", "101 runs"]);
    }
}
