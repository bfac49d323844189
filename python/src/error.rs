//! Exceptions: one for each kind of error of the crates, with their words.

use manypath_core::{ParseUnitError, SpecError};
use manypath_output::WriteError;
use manypath_scenario::{ReadError, ScenarioError as Refused};
use manypath_sim::RunError as Run;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, create_exception};

create_exception!(manypath, ManypathError, PyException, "What went wrong; the others are kinds of it.");
create_exception!(
    manypath,
    ScenarioError,
    ManypathError,
    "A scenario was refused. `file`, `line` and `column` say where, `problem` says what is wrong and what to do."
);
create_exception!(manypath, AlgorithmError, ManypathError, "No algorithm has this name, or a parameter is wrong.");
create_exception!(manypath, UnitError, ManypathError, "A quantity cannot be read.");
create_exception!(manypath, RunError, ManypathError, "A scenario cannot be run.");
create_exception!(manypath, TheoryError, ManypathError, "Theory cannot say anything about it.");
create_exception!(manypath, LabError, ManypathError, "An experiment makes no sense, or its results cannot be read.");
create_exception!(manypath, InternalError, ManypathError, "A bug of Manypath: please report it.");

/// An exception of this kind with the words of `error`.
pub(crate) fn raise<E: PyTypeInfo>(error: impl core::fmt::Display) -> PyErr {
    PyErr::new::<E, _>(error.to_string())
}

/// What an error says, and its causes. Some errors name their cause themselves: it is not said twice.
pub(crate) fn told(error: &dyn core::error::Error) -> String {
    let mut text = error.to_string();
    for cause in core::iter::successors(error.source(), |cause| cause.source()) {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}

/// A refused scenario. `text` is what was read from `file`, for the line in question.
pub(crate) fn refused(py: Python<'_>, error: &Refused, file: &str, text: &str) -> PyErr {
    let raised = raise::<ScenarioError>(error);
    let value = raised.value(py);
    let described = || {
        value.setattr("file", &error.file)?;
        value.setattr("line", error.line)?;
        value.setattr("column", error.column)?;
        value.setattr("problem", error.problem.to_string())?;
        // Python 3.11 and later print notes below the message.
        match text.lines().nth(error.line.wrapping_sub(1)) {
            // A value that was replaced is told in full as its place.
            Some(_) if error.file != file => Ok(()),
            Some(line) => value.setattr("__notes__", [format!("{:>5} | {}", error.line, short(line))]),
            None => Ok(()),
        }
    };
    match described() {
        Ok(()) => raised,
        Err(other) => other,
    }
}

/// A line as far as it fits.
fn short(line: &str) -> String {
    line.chars().take(200).collect()
}

/// A run that cannot start or go on; `place` is that of the connection that it is about.
pub(crate) fn run(error: &Run, place: Option<String>) -> PyErr {
    let said = place.map_or_else(|| error.to_string(), |place| format!("{place}: {error}"));
    match error {
        Run::Algorithm { .. } => raise::<AlgorithmError>(said),
        bug if bug.is_bug() => raise::<InternalError>(said),
        _ => raise::<RunError>(said),
    }
}

/// A file that cannot be read: `FileNotFoundError` and its kin.
pub(crate) fn unreadable(error: ReadError) -> PyErr {
    let said = format!("{error}: {}", error.source);
    std::io::Error::new(error.source.kind(), said).into()
}

/// A file that cannot be written: `PermissionError` and its kin.
pub(crate) fn unwritable(error: WriteError) -> PyErr {
    let said = format!("{error}: {}", error.source);
    std::io::Error::new(error.source.kind(), said).into()
}

/// A name or parameter that no algorithm has.
pub(crate) fn algorithm(error: &SpecError) -> PyErr {
    raise::<AlgorithmError>(error)
}

/// A quantity that is none.
pub(crate) fn unit(error: &ParseUnitError) -> PyErr {
    raise::<UnitError>(error)
}
