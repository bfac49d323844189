//! Descriptions given as dictionaries, as the text that the parser of scenarios reads: there is one parser, and one set of
//! errors.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use toml::{Table, Value};

/// How deep lists and dictionaries may lie in each other; nothing in a scenario is deeper than four levels.
const DEEPEST: usize = 16;

/// A dictionary as TOML. Underscores in keys become dashes, so that keys can be Python's names; what is `None` is left out.
pub(crate) fn toml_of(description: &Bound<'_, PyMapping>) -> PyResult<String> {
    let table = table(description, 0)?;
    toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn table(mapping: &Bound<'_, PyMapping>, depth: usize) -> PyResult<Table> {
    let mut table = Table::new();
    for item in mapping.items()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        if !value.is_none() {
            let key: String = key.extract().map_err(|_| PyTypeError::new_err("keys of a scenario are strings"))?;
            table.insert(key.replace('_', "-"), written(&value, depth + 1)?);
        }
    }
    Ok(table)
}

fn written(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(PyValueError::new_err("nothing in a scenario is nested so deeply"));
    }
    // Truth values are integers to Python.
    if let Ok(flag) = value.cast::<PyBool>() {
        Ok(Value::Boolean(flag.is_true()))
    } else if let Ok(number) = value.cast::<PyInt>() {
        Ok(Value::Integer(number.extract()?))
    } else if let Ok(number) = value.cast::<PyFloat>() {
        Ok(Value::Float(number.extract()?))
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Value::String(text.extract()?))
    } else if let Ok(mapping) = value.cast::<PyMapping>() {
        Ok(Value::Table(table(mapping, depth)?))
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| written(&item?, depth + 1));
        Ok(Value::Array(items.collect::<PyResult<_>>()?))
    } else {
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!("a scenario holds strings, numbers, lists and dictionaries, not {kind}")))
    }
}
