//! The registries.

use manypath_core::Status;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A parameter of an algorithm.
#[pyclass(frozen, get_all, module = "manypath")]
#[derive(Debug)]
pub(crate) struct Parameter {
    /// The key in `name:key=value`.
    name: &'static str,
    /// The value without it.
    default: &'static str,
    /// What values are allowed.
    range: &'static str,
    /// What it means, with unit and source.
    meaning: &'static str,
}

#[pymethods]
impl Parameter {
    fn __repr__(&self) -> String {
        format!("<Parameter {}={} ({})>", self.name, self.default, self.range)
    }
}

/// A congestion controller or a packet scheduler.
#[pyclass(frozen, get_all, module = "manypath")]
#[derive(Debug)]
pub(crate) struct Algorithm {
    /// What to write in scenarios.
    name: &'static str,
    /// `cc`: how fast each path may send; `sched`: which data goes on which path.
    kind: &'static str,
    /// Its parameters.
    parameters: Vec<Py<Parameter>>,
    /// Paper or RFC, with section.
    citation: &'static str,
    /// `stable` or `experimental`.
    status: &'static str,
}

#[pymethods]
impl Algorithm {
    fn __repr__(&self) -> String {
        format!("<Algorithm {} ({}): {}>", self.name, self.kind, self.citation)
    }
}

/// A row of a registry.
struct Row(&'static str, &'static str, &'static [manypath_core::Parameter], &'static str, Status);

/// All controllers and schedulers, or those of a kind: `cc` or `sched`.
#[pyfunction]
#[pyo3(signature = (kind=None))]
pub(crate) fn algorithms(py: Python<'_>, kind: Option<&str>) -> PyResult<Vec<Algorithm>> {
    if let Some(unknown) = kind.filter(|kind| !["cc", "sched"].contains(kind)) {
        return Err(PyValueError::new_err(format!("there is no kind '{unknown}'; there are cc, sched")));
    }
    let cc = manypath_cc::algorithms().iter();
    let cc = cc.map(|found| Row("cc", found.name, found.parameters, found.citation, found.status));
    let sched = manypath_sched::algorithms().iter();
    let sched = sched.map(|found| Row("sched", found.name, found.parameters, found.citation, found.status));
    let rows = cc.chain(sched).filter(|row| kind.is_none_or(|kind| row.0 == kind));
    rows.map(|Row(kind, name, parameters, citation, status)| {
        let parameters = parameters.iter().map(|found| {
            let manypath_core::Parameter { name, default, range, meaning } = *found;
            Py::new(py, Parameter { name, default, range, meaning })
        });
        let parameters = parameters.collect::<PyResult<_>>()?;
        Ok(Algorithm { name, kind, parameters, citation, status: status.as_str() })
    })
    .collect()
}

/// The named networks that scenarios can be over: name and what it looks like.
#[pyfunction]
pub(crate) fn topologies() -> Vec<(&'static str, String)> {
    manypath_scenario::topologies().map(|found| (found.name, format!("{}: {}", found.source, found.about))).collect()
}
