//! Runs of the simulator, with the interpreter lock released.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use manypath_cc::CongestionControl;
use manypath_core::Time;
use manypath_lab::{Engine as _, Simulator};
use manypath_scenario::Connection;
use manypath_sim::Observer;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::cc::written::{Failure, Written};
use crate::error;
use crate::quantity;
use crate::result::RunResult;
use crate::scenario::Scenario;

/// How often a run looks whether the user has pressed Ctrl-C.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Version and hash of the sources that decide what a run gives.
#[pyfunction]
pub(crate) fn code() -> String {
    Simulator.code().version()
}

/// Simulates a scenario. The same scenario and seed give the same result, whatever else runs.
///
/// `controllers` gives connections, by name, controllers written in Python: each a callable that makes one, such as a
/// subclass of `manypath.cc.CongestionControl`. What it raises ends the run and is raised here.
#[pyfunction]
#[pyo3(signature = (scenario, seed=1, *, controllers=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: &Scenario,
    #[pyo3(from_py_with = quantity::seed)] seed: u64,
    controllers: Option<&Bound<'_, PyMapping>>,
) -> PyResult<RunResult> {
    quantity::seed_of_run(seed)?;
    let checked = scenario.checked().as_ref();
    let given = match controllers {
        Some(mapping) => mapping.items()?.iter().map(|item| item.extract()).collect::<PyResult<_>>()?,
        None => HashMap::new(),
    };
    let failure = Failure::default();
    let (mut made, names) = made(py, &given, checked, &failure)?;
    let mut watch = Watch { failure: failure.clone(), looked: Instant::now() };
    let outcome = py.detach(|| {
        let mut controllers = |connection: &Connection| made.remove(&connection.name);
        manypath_sim::run_with(checked, seed, &mut watch, &mut controllers)
    });
    // What Python raised has ended the run: that is what is to be said.
    if let Some(raised) = failure.take() {
        return Err(raised);
    }
    let mut report =
        outcome.map_err(|error| error::run(&error, error.connection().and_then(|name| scenario.place(name))))?;
    for connection in &mut report.connections {
        if let Some(name) = names.get(&connection.name) {
            connection.cc.clone_from(name);
        }
    }
    RunResult::new(py, report)
}

/// Controllers by the names of their connections, and what reports call them.
type Made = (HashMap<String, Box<dyn CongestionControl>>, HashMap<String, String>);

/// Makes the controllers that are written in Python.
fn made(
    py: Python<'_>,
    factories: &HashMap<String, Py<PyAny>>,
    scenario: &manypath_scenario::Scenario,
    failure: &Failure,
) -> PyResult<Made> {
    let (mut made, mut names): Made = Default::default();
    for (connection, factory) in factories {
        if !scenario.connections.iter().any(|held| held.name == *connection) {
            let known: Vec<_> = scenario.connections.iter().map(|held| held.name.as_str()).collect();
            let known = known.join(", ");
            let said = format!("the scenario has no connection '{connection}'; it has {known}");
            return Err(error::raise::<error::RunError>(said));
        }
        let object = factory.bind(py).call0()?;
        let name = object.getattr("name").or_else(|_| object.get_type().getattr("__name__"))?;
        names.insert(connection.clone(), name.str()?.to_string());
        made.insert(connection.clone(), Box::new(Written::new(object, failure.clone())?));
    }
    Ok((made, names))
}

/// Ends a run when a controller has raised something, or the user presses Ctrl-C.
struct Watch {
    failure: Failure,
    looked: Instant,
}

impl Observer for Watch {
    fn on_progress(&mut self, _now: Time) -> ControlFlow<()> {
        if self.failure.is_set() {
            return ControlFlow::Break(());
        }
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if let Err(interrupted) = Python::attach(|py| py.check_signals()) {
                self.failure.set(interrupted);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
