//! From text to a scenario, and the place of whatever is wrong.

use core::ops::Range;
use std::io::Read as _;
use std::path::{Path as FilePath, PathBuf};
use std::{fs, io};

use serde::Deserialize as _;
use toml::de::{DeTable, Deserializer};

use crate::error::{Problem, ScenarioError};
use crate::file::File;
use crate::model::Scenario;
use crate::overrides::{self, Override};
use crate::resolve;

/// The longest scenario file, bytes.
pub(crate) const MAX_FILE: usize = 16 << 20;

/// Reads a scenario. `file` is what errors call it; relative paths in it begin at `folder`.
///
/// # Errors
/// The first fault, with its place and what to do.
pub fn parse(text: &str, file: &str, folder: &FilePath) -> Result<Scenario, ScenarioError> {
    parse_with(text, file, folder, &[])
}

/// Reads a scenario of which some values are replaced, the first override first.
///
/// # Errors
/// The first fault, with its place (in the file or in an override) and what to do.
pub fn parse_with(
    text: &str,
    file: &str,
    folder: &FilePath,
    overrides: &[Override],
) -> Result<Scenario, ScenarioError> {
    let places = Places::new(text, file, overrides);
    if text.len() > MAX_FILE {
        return Err(places.error(0..0, Problem::TooLong(text.len())));
    }
    let tables = tables(text, &places, overrides)?;
    let stem = FilePath::new(file).file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    let mut scenario =
        resolve::resolve(tables, &stem, folder).map_err(|(span, problem)| places.error(span, problem))?;
    for connection in &mut scenario.connections {
        // The resolver leaves an offset.
        connection.line = places.line_of(connection.line);
    }
    Ok(scenario)
}

fn tables(text: &str, places: &Places<'_>, overrides: &[Override]) -> Result<File, ScenarioError> {
    let syntax = |error: &toml::de::Error, base: usize| {
        let at = error.span().map_or(0, |span| span.start) + base;
        places.error(at..at, Problem::Syntax(explained(error.message())))
    };
    let mut document = DeTable::parse(text).map_err(|error| syntax(&error, 0))?;
    for (given, base) in overrides.iter().zip(&places.bases) {
        let changes = DeTable::parse(given.text()).map_err(|error| syntax(&error, *base))?;
        overrides::apply(document.get_mut(), changes.into_inner(), *base)
            .map_err(|(span, problem)| places.error(span, problem))?;
    }
    File::deserialize(Deserializer::from(document)).map_err(|error| syntax(&error, 0))
}

/// What the TOML reader says, with a remedy where it has none.
fn explained(message: &str) -> String {
    match message {
        "duplicate key" => "the key is given twice: keep one".to_owned(),
        deep if deep.contains("recursion limit") || deep.contains("cannot recurse") => {
            "nested too deeply: nothing in a scenario is more than four levels deep".to_owned()
        }
        other => match example_of_missing(other) {
            Some(example) => format!("{other}: write {example}"),
            None => other.to_owned(),
        },
    }
}

/// How a field that is needed and missing may be written, and where if not in the table that the error's place shows.
fn example_of_missing(message: &str) -> Option<&'static str> {
    let field = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(match field {
        "duration" => "duration = \"30s\" above the first table",
        "name" => "name = \"video\"",
        "route" => "route = [\"link1\"]",
        "rate" => "rate = \"5Mbit\"",
        "at" => "at = \"10s\"",
        "every" => "every = \"1s\"",
        "size" => "size = \"1MB\"",
        "on" => "on = \"5s\"",
        "off" => "off = \"5s\"",
        "min" => "min = \"30packets\"",
        "max" => "max = \"90packets\"",
        "max-probability" => "max-probability = \"10%\"",
        _ => return None,
    })
}

/// Where bytes stand: those of the file, then those of the overrides.
struct Places<'a> {
    text: &'a str,
    file: &'a str,
    overrides: &'a [Override],
    /// Offsets of line ends of the file.
    ends: Vec<usize>,
    /// Offsets at which the overrides are taken to begin.
    bases: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str, file: &'a str, overrides: &'a [Override]) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        let mut next = text.len() + 1;
        let mut bases = Vec::new();
        for given in overrides {
            bases.push(next);
            next += given.text().len() + 1;
        }
        Self { text, file, overrides, ends, bases }
    }

    /// The line of an offset, from one; zero in an override.
    fn line_of(&self, at: usize) -> usize {
        if at > self.text.len() { 0 } else { self.ends.partition_point(|end| *end < at) + 1 }
    }

    fn error(&self, span: Range<usize>, mut problem: Problem) -> ScenarioError {
        if let Problem::SameLink { line, .. } = &mut problem {
            // The resolver leaves an offset.
            *line = self.line_of(*line);
        }
        let at = span.start;
        let after = self.bases.partition_point(|base| *base <= at);
        if let Problem::NewLink { name, known, .. } = &problem
            && after > 0
            && !known.is_empty()
        {
            // Nobody describes a new link by single values.
            problem = Problem::UnknownTable { kind: "link".to_owned(), name: name.clone(), known: known.clone() };
        }
        let (file, line, before) = match after.checked_sub(1) {
            Some(index) => {
                let given = &self.overrides[index];
                (given.to_string(), 1, given.text().get(..at - self.bases[index]))
            }
            None => {
                let line = self.line_of(at);
                let begin = if line > 1 { self.ends[line - 2] + 1 } else { 0 };
                (self.file.to_owned(), line, self.text.get(begin..at))
            }
        };
        let column = before.unwrap_or_default().chars().count() + 1;
        ScenarioError { file, line, column, problem: Box::new(problem) }
    }
}

/// A scenario's text, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What errors call it.
    name: String,
    text: String,
    folder: PathBuf,
}

impl Document {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read, is no text, or is longer than a scenario can be.
    pub fn read(path: &FilePath) -> Result<Self, ReadError> {
        let fail = |source| ReadError { path: path.to_owned(), source };
        if path == FilePath::new("-") {
            let text = read_bounded(io::stdin().lock(), MAX_FILE).map_err(fail)?;
            return Ok(Self { name: "standard input".to_owned(), text, folder: PathBuf::from(".") });
        }
        let text = read_file(path, MAX_FILE).map_err(fail)?;
        let folder = path.parent().unwrap_or(FilePath::new(".")).to_owned();
        Ok(Self { name: path.display().to_string(), text, folder })
    }

    /// The scenario that runs when none is given.
    pub fn built_in() -> Self {
        Self { name: "built-in.toml".to_owned(), text: crate::built_in().to_owned(), folder: PathBuf::from(".") }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scenario, with some values replaced.
    ///
    /// # Errors
    /// As [`parse_with`].
    pub fn parse(&self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        parse_with(&self.text, &self.name, &self.folder, overrides)
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", called(path))]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A file as errors call it.
fn called(path: &FilePath) -> String {
    if path == FilePath::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// The text of a file of at most `limit` bytes. What is no ordinary file is refused: it may have no end.
pub(crate) fn read_file(path: &FilePath, limit: usize) -> io::Result<String> {
    // Asked before it is opened: to open a FIFO waits for somebody who writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    read_bounded(fs::File::open(path)?, limit)
}

fn read_bounded(from: impl io::Read, limit: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    // What fits into memory counts in 64 bits.
    from.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("it is longer than {} MiB", limit >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text (UTF-8)"))
}
