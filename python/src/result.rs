//! What a run found.

use manypath_output::run_tables;
use manypath_sim::Report;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::table::Table;

/// What a run found: its tables, and its summary.
#[pyclass(frozen, name = "Result", module = "manypath", mapping, weakref)]
#[derive(Debug)]
pub(crate) struct RunResult {
    /// Name of the scenario.
    #[pyo3(get)]
    scenario: String,
    /// Seed of the run.
    #[pyo3(get)]
    seed: u64,
    /// Goodput of all connections after the warm-up, bit/s.
    #[pyo3(get)]
    goodput_bps: f64,
    /// Jain's index of the connections' goodputs; `None` if nothing arrived.
    #[pyo3(get)]
    jain: Option<f64>,
    /// The summary as JSON: what `manypath sim run --json` prints, without time series.
    #[pyo3(get)]
    json: String,
    /// The summary for people.
    text: String,
    tables: Vec<Py<Table>>,
}

impl RunResult {
    /// Takes a report over: its series move into tables.
    pub(crate) fn new(py: Python<'_>, mut report: Report) -> PyResult<Self> {
        let tables = run_tables(core::slice::from_ref(&report)).into_iter();
        let tables = tables.map(|table| Py::new(py, Table::new(py, table)?)).collect::<PyResult<_>>()?;
        report.series = None;
        Ok(Self {
            json: report.to_json(),
            text: report.to_table(),
            scenario: report.scenario,
            seed: report.seed,
            goodput_bps: report.goodput_bps,
            jain: report.jain,
            tables,
        })
    }
}

#[pymethods]
impl RunResult {
    /// Names of the tables; `docs/output.md` describes them. Those of time series are there if the scenario asks for them.
    #[getter]
    fn tables(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.get().name().to_owned()).collect()
    }

    /// The table of this name.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let found = self.tables.iter().find(|table| table.get().name() == name);
        found.map(|table| table.clone_ref(py)).ok_or_else(|| {
            let remedy = if name.ends_with("_series") || name == "internals" {
                ": give the scenario a 'sample' interval for time series"
            } else {
                ""
            };
            PyKeyError::new_err(format!("there is no table '{name}'; there are {}{remedy}", self.tables().join(", ")))
        })
    }

    fn __contains__(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.get().name() == name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pyo3::types::PyList::new(py, self.tables())?.try_iter()?.into_any())
    }

    fn __len__(&self) -> usize {
        self.tables.len()
    }

    /// The summary as dictionaries and lists.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Result of {}, seed {}: {:.3} Mbit/s>", self.scenario, self.seed, self.goodput_bps * 1e-6)
    }

    /// For pickles.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Packed)> {
        let restore = py.import("manypath._native")?.getattr("_restore_result")?;
        let tables = self.tables.iter().map(|table| table.clone_ref(py)).collect();
        let names = (self.scenario.clone(), self.seed, self.goodput_bps, self.jain);
        Ok((restore, (names, self.json.clone(), self.text.clone(), tables)))
    }
}

/// A result in a pickle: scenario, seed, goodput and fairness, the summaries, and the tables.
type Packed = ((String, u64, f64, Option<f64>), String, String, Vec<Py<Table>>);

/// A result from a pickle.
#[pyfunction]
#[pyo3(name = "_restore_result")]
pub(crate) fn restore_result(
    names: (String, u64, f64, Option<f64>),
    json: String,
    text: String,
    tables: Vec<Py<Table>>,
) -> RunResult {
    let (scenario, seed, goodput_bps, jain) = names;
    RunResult { scenario, seed, goodput_bps, jain, json, text, tables }
}
