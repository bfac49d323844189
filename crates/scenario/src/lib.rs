//! Scenario files: networks, what runs over them, and for how long. The simulator, the emulator and theory read them.
//!
//! A scenario is TOML in which every quantity has its unit. Unknown keys and impossible values are errors that name file,
//! line and remedy; whatever a file says, reading it neither panics nor takes more memory than its size warrants.
//! [`json_schema`] describes the format for editors, [`template`] is a commented example, [`topologies`](topologies()) are
//! the networks of the papers.
//!
//! Dependencies: `toml` and `serde` read the file and know where each value stands; `schemars` and `serde_json` make the
//! JSON schema from the same tables that are read, so that the two cannot differ; `manypath-link` for the model of a link
//! and its checks; `rand_core` for the hash that places flows on equal paths; `thiserror` for error types.

mod error;
mod file;
mod model;
mod resolve;
mod topologies;
mod units;

use std::path::Path as FilePath;

pub use error::{Problem, ScenarioError};
pub use model::{Connection, Draw, Link, Path, Recovery, Redraw, Scenario, Source, Transport, Workload};
pub use topologies::{BACK_QUEUE, Role, Topology, topologies, topology};

/// The longest scenario file, bytes.
const MAX_FILE: usize = 16 << 20;

/// Reads a scenario. `file` is what errors call it; relative paths in it begin at `folder`.
///
/// # Errors
/// The first fault, with its place and what to do.
pub fn parse(text: &str, file: &str, folder: &FilePath) -> Result<Scenario, ScenarioError> {
    let fail = |at: usize, problem| {
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ScenarioError { file: file.to_owned(), line, column, problem: Box::new(problem) }
    };
    if text.len() > MAX_FILE {
        return Err(fail(0, Problem::TooLong(text.len())));
    }
    let tables: file::File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        fail(at, Problem::Syntax(error.message().to_owned()))
    })?;
    let stem = FilePath::new(file).file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    resolve::resolve(tables, &stem, folder).map_err(|(span, problem)| fail(span.start, problem))
}

/// The JSON schema of scenario files, for editors.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(file::File);
    // A schema is a JSON value: writing it cannot fail.
    serde_json::to_string_pretty(schema.as_value()).unwrap_or_default() + "\n"
}

/// A commented scenario to begin with: what `manypath sim new` writes.
pub fn template() -> &'static str {
    include_str!("template.toml")
}

/// The scenario that runs when none is given: one connection over two links.
pub fn built_in() -> &'static str {
    include_str!("built-in.toml")
}
