//! Scenarios: checked descriptions of networks and of what runs over them.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manypath_scenario::{Document, Override};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyType};
use sha2::{Digest as _, Sha256};

use crate::simulate::code;
use crate::written::toml_of;
use crate::{error, quantity};

/// What errors call a scenario that comes from no file.
const UNNAMED: &str = "scenario";

/// A network, what runs over it, and for how long: checked, and never changed.
///
/// Made of TOML (`docs/guide.md` has the format), of a dictionary of the same shape, or of keyword arguments:
///
///     Scenario(duration="10s", topology="two-links", connection=[dict(name="phone", role="mp", cc="lia")])
#[pyclass(frozen, module = "manypath", weakref)]
#[derive(Debug)]
pub(crate) struct Scenario {
    /// Its TOML.
    #[pyo3(get)]
    text: String,
    /// What errors call it.
    #[pyo3(get)]
    file: String,
    /// Where relative paths in it begin: an absolute path, so that it is the same wherever a pickle is read.
    folder: PathBuf,
    overrides: Vec<Override>,
    checked: Arc<manypath_scenario::Scenario>,
}

impl Scenario {
    fn read(py: Python<'_>, text: String, file: String, folder: PathBuf, overrides: Vec<Override>) -> PyResult<Self> {
        // The folder of a bare file name is the empty path. Where there is no working directory, nothing relative can be read.
        let folder = std::path::absolute(Path::new(".").join(&folder)).unwrap_or(folder);
        let checked = manypath_scenario::parse_with(&text, &file, &folder, &overrides);
        let checked = Arc::new(checked.map_err(|refused| error::refused(py, &refused, &file, &text))?);
        Ok(Self { text, file, folder, overrides, checked })
    }

    /// What is run.
    pub(crate) fn checked(&self) -> &Arc<manypath_scenario::Scenario> {
        &self.checked
    }

    /// Where a connection is described, as `FILE:LINE`.
    pub(crate) fn place(&self, connection: &str) -> Option<String> {
        let found = self.checked.connections.iter().find(|held| held.name == connection && held.line > 0)?;
        Some(format!("{}:{}", self.file, found.line))
    }

    /// The scenario as it was understood: what is written differently is the same, a changed trace is not.
    fn identity(&self) -> String {
        let mut same = manypath_scenario::Scenario::clone(&self.checked);
        same.connections.iter_mut().for_each(|connection| connection.line = 0);
        format!("{same:?}")
    }
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (description=None, /, *, folder=None, **tables))]
    fn new(
        py: Python<'_>,
        description: Option<&Bound<'_, PyAny>>,
        folder: Option<PathBuf>,
        tables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let text = match (description, tables) {
            (Some(given), None) => match given.cast::<PyMapping>() {
                Ok(mapping) => toml_of(mapping)?,
                Err(_) => given.extract().map_err(|_| PyTypeError::new_err("a scenario is TOML or a dictionary"))?,
            },
            (None, Some(tables)) => toml_of(tables.as_mapping())?,
            (Some(_), Some(_)) => return Err(PyTypeError::new_err("give a description or keywords, not both")),
            (None, None) => {
                return Err(PyTypeError::new_err("describe the scenario: with TOML, a dictionary or keywords"));
            }
        };
        let folder = folder.unwrap_or_else(|| PathBuf::from("."));
        Self::read(py, text, UNNAMED.to_owned(), folder, Vec::new())
    }

    /// Reads a TOML file; relative paths in it begin at its folder.
    #[classmethod]
    fn from_file(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        if path == Path::new("-") {
            return Err(PyValueError::new_err("'-' is no file: read sys.stdin and give its text"));
        }
        let document = Document::read(&path).map_err(error::unreadable)?;
        let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        Self::read(py, document.text().to_owned(), document.name().to_owned(), folder, Vec::new())
    }

    /// The scenario that `manypath sim` runs when it is given none: one connection over two links.
    #[classmethod]
    fn built_in(_class: &Bound<'_, PyType>, py: Python<'_>) -> PyResult<Self> {
        let document = Document::built_in();
        Self::read(py, document.text().to_owned(), document.name().to_owned(), PathBuf::from("."), Vec::new())
    }

    /// The scenario with some values replaced. Keys are those of the command line's `--set`: `duration`,
    /// `link.NAME.KEY`, `connection.NAME.KEY`, or without the name, in all of these tables, `connection.KEY`.
    fn replace(&self, py: Python<'_>, values: &Bound<'_, PyMapping>) -> PyResult<Self> {
        let mut overrides = self.overrides.clone();
        for item in values.items()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            // Python writes truth values with capitals.
            let value = match value.extract::<bool>() {
                Ok(flag) => flag.to_string(),
                Err(_) => value.str()?.to_string(),
            };
            let given: Result<Override, String> = format!("{key}={value}").parse();
            overrides.push(given.map_err(error::raise::<error::ScenarioError>)?);
        }
        Self::read(py, self.text.clone(), self.file.clone(), self.folder.clone(), overrides)
    }

    /// Values that were replaced, as `KEY=VALUE`.
    #[getter]
    fn replaced(&self) -> Vec<String> {
        self.overrides.iter().map(Override::to_string).collect()
    }

    /// What it is called in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.checked.name
    }

    /// Simulated time, s.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.checked.duration.as_secs_f64()
    }

    /// Time at the start that summaries leave out, s.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.checked.warmup.as_secs_f64()
    }

    /// Interval of time series, s; `None`: none are recorded.
    #[getter]
    fn sample_s(&self) -> Option<f64> {
        self.checked.sample.map(manypath_core::Duration::as_secs_f64)
    }

    /// Names of the connections.
    #[getter]
    fn connections(&self) -> Vec<String> {
        self.checked.connections.iter().map(|connection| connection.name.clone()).collect()
    }

    /// Names of the links, one direction each.
    #[getter]
    fn links(&self) -> Vec<String> {
        self.checked.links.iter().map(|link| link.name.clone()).collect()
    }

    /// A name for the result of a run with this seed: a hash of the scenario as it was understood, the seed, and the code
    /// that simulates. Equal keys have equal results.
    fn key(&self, #[pyo3(from_py_with = quantity::seed)] seed: u64) -> String {
        let mut hash = Sha256::new();
        for part in [&code(), &seed.to_string(), &self.identity()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.identity().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {}: {} s, {} connections>", self.name(), self.duration_s(), self.checked.connections.len())
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    /// For pickles: the same text is read again, and traces that it names have to be where they were.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Written)> {
        let restore = py.import("manypath._native")?.getattr("_restore_scenario")?;
        Ok((restore, (self.text.clone(), self.file.clone(), self.folder.clone(), self.replaced())))
    }
}

/// A scenario's text, what errors call it, where its relative paths begin, and what was replaced.
type Written = (String, String, PathBuf, Vec<String>);

/// A scenario from a pickle.
#[pyfunction]
#[pyo3(name = "_restore_scenario")]
pub(crate) fn restore_scenario(
    py: Python<'_>,
    text: String,
    file: String,
    folder: PathBuf,
    replaced: Vec<String>,
) -> PyResult<Scenario> {
    let overrides: Result<Vec<Override>, String> = replaced.iter().map(|given| given.parse()).collect();
    let overrides = overrides.map_err(error::raise::<error::ScenarioError>)?;
    Scenario::read(py, text, file, folder, overrides)
}

/// A commented scenario to begin with; with the name of a topology one over that network.
#[pyfunction]
#[pyo3(signature = (topology=None))]
pub(crate) fn template(topology: Option<&str>) -> PyResult<String> {
    let Some(name) = topology else { return Ok(manypath_scenario::template().to_owned()) };
    let found = manypath_scenario::topology(name).ok_or_else(|| {
        let known: Vec<_> = manypath_scenario::topologies().map(|topology| topology.name).collect();
        error::raise::<error::ScenarioError>(format!("there is no topology '{name}'; there are {}", known.join(", ")))
    })?;
    Ok(found.template())
}
