//! Quantities that users give as numbers or as texts with a unit. What makes no sense is refused with the argument's name.

use core::fmt::Display;

use manypath_core::{Duration, ParseUnitError, Rate, Time};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use crate::error;

/// A rate: bits per second, or a text such as `20Mbit`.
#[derive(Debug, FromPyObject)]
pub(crate) enum GivenRate {
    Number(f64),
    Text(String),
}

impl GivenRate {
    pub(crate) fn rate(&self) -> PyResult<Rate> {
        match self {
            Self::Number(bps) => Ok(Rate::from_bps(*bps)),
            Self::Text(text) => text.parse().map_err(|source: ParseUnitError| error::unit(&source)),
        }
    }
}

/// The longest time that is taken, s: 31 years.
const MOST_SECONDS: f64 = 1e9;

/// A span in seconds, which the caller gave as `name`.
pub(crate) fn span(name: &str, seconds: f64) -> PyResult<Duration> {
    // What rounds to zero nanoseconds is what differences of times leave.
    if (-0.5e-9..=MOST_SECONDS).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds.max(0.0)))
    } else {
        Err(PyValueError::new_err(format!("{name} is {seconds}: it is a number of seconds from 0 to 1e9")))
    }
}

/// A time in seconds.
pub(crate) fn time(name: &str, seconds: f64) -> PyResult<Time> {
    span(name, seconds).map(|since| Time::ZERO + since)
}

/// A number that is not below zero.
pub(crate) fn not_negative(name: &str, number: f64) -> PyResult<f64> {
    if number >= 0.0 { Ok(number) } else { Err(PyValueError::new_err(format!("{name} is {number}: it is 0 or more"))) }
}

/// A number with an end.
pub(crate) fn finite(name: &str, number: f64) -> PyResult<f64> {
    if number.is_finite() {
        Ok(number)
    } else {
        Err(PyValueError::new_err(format!("{name} is {number}: it is finite")))
    }
}

/// The argument `seed`.
pub(crate) fn seed(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    given.extract().map_err(
        |error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(given.py()) { no_seed(given) } else { error }
        },
    )
}

/// Seeds of runs fit a signed number, which is what tables have.
pub(crate) fn seed_of_run(seed: u64) -> PyResult<()> {
    if i64::try_from(seed).is_ok() { Ok(()) } else { Err(no_seed(seed)) }
}

fn no_seed(given: impl Display) -> PyErr {
    PyValueError::new_err(format!("seed is {given}: it is a whole number from 0 to 2^63 - 1"))
}
