//! From text to a scenario, and the place of whatever is wrong.

use core::ops::Range;
use std::path::Path as FilePath;

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
        places.error(at..at, Problem::Syntax(error.message().to_owned()))
    };
    let mut document = DeTable::parse(text).map_err(|error| syntax(&error, 0))?;
    for (given, base) in overrides.iter().zip(&places.bases) {
        let changes = DeTable::parse(given.text()).map_err(|error| syntax(&error, *base))?;
        overrides::apply(document.get_mut(), changes.into_inner(), *base)
            .map_err(|(span, problem)| places.error(span, problem))?;
    }
    File::deserialize(Deserializer::from(document)).map_err(|error| syntax(&error, 0))
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

    fn error(&self, span: Range<usize>, problem: Problem) -> ScenarioError {
        let at = span.start;
        let after = self.bases.partition_point(|base| *base <= at);
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
