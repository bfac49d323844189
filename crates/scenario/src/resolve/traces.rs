//! Mahimahi traces: each file is read once.

use std::collections::BTreeMap;
use std::path::Path as FilePath;

use manypath_link::Trace;

use crate::error::Problem;
use crate::read::read_file;

/// The most bytes of all traces together.
const MAX_TRACES: usize = 64 << 20;

/// The traces of a scenario.
pub(super) struct Traces<'a> {
    folder: &'a FilePath,
    known: BTreeMap<String, Trace>,
    /// How much may still be read.
    left: usize,
}

impl<'a> Traces<'a> {
    /// `folder` is where relative paths begin.
    pub(super) fn new(folder: &'a FilePath) -> Self {
        Self { folder, known: BTreeMap::new(), left: MAX_TRACES }
    }

    pub(super) fn read(&mut self, path: &str) -> Result<Trace, Problem> {
        if let Some(trace) = self.known.get(path) {
            return Ok(trace.clone());
        }
        let text = read_file(&self.folder.join(path), self.left)
            .map_err(|error| Problem::TraceFile { path: path.to_owned(), reason: error.to_string() })?;
        self.left -= text.len();
        let trace: Trace = text.parse().map_err(|source| Problem::Trace { path: path.to_owned(), source })?;
        self.known.insert(path.to_owned(), trace.clone());
        Ok(trace)
    }
}
