//! Quantities that users give as numbers or as texts with a unit.

use manypath_core::{ParseUnitError, Rate};
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
