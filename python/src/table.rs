//! Tables as Python sees them: columns that NumPy and Arrow look at where they are.
//!
//! A column of numbers is a vector that the simulator filled; it moves into a buffer with a count of its users and stays where
//! it is. A NumPy array is made by NumPy from the array interface, a dictionary with the address, and keeps the column alive;
//! an Arrow array shares the buffer. Both are for reading: whoever writes takes a copy first.
//!
//! A number that is not there is NaN to NumPy and null to Arrow, as in Parquet files: the same memory, and for Arrow a bit a
//! row beside it.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    StringArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use manypath_output::{Column as Given, Table as GivenTable, Values};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

/// The values of a column.
#[derive(Clone, Debug)]
enum Held {
    Real(ScalarBuffer<f64>),
    Whole(ScalarBuffer<u64>),
    Text(StringArray),
    Flag(BooleanArray),
}

impl Held {
    fn len(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// The word for its kind in pickles and to people.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Real(_) => "real",
            Self::Whole(_) => "whole",
            Self::Text(_) => "text",
            Self::Flag(_) => "flag",
        }
    }

    const fn data_type(&self) -> DataType {
        match self {
            Self::Real(_) => DataType::Float64,
            Self::Whole(_) => DataType::UInt64,
            Self::Text(_) => DataType::Utf8,
            Self::Flag(_) => DataType::Boolean,
        }
    }

    fn arrow(&self) -> ArrayRef {
        match self {
            Self::Real(values) => {
                let there = values.iter().any(|value| value.is_nan());
                let there = there.then(|| values.iter().map(|value| !value.is_nan()).collect::<NullBuffer>());
                Arc::new(Float64Array::new(values.clone(), there))
            }
            Self::Whole(values) => Arc::new(UInt64Array::new(values.clone(), None)),
            Self::Text(values) => Arc::new(values.clone()),
            Self::Flag(values) => Arc::new(values.clone()),
        }
    }

    /// The values as a vector of their own.
    fn values(&self) -> Values {
        match self {
            Self::Real(values) => Values::Real(values.to_vec()),
            Self::Whole(values) => Values::Whole(values.to_vec()),
            Self::Text(values) => Values::Text(values.iter().flatten().map(str::to_owned).collect()),
            Self::Flag(values) => Values::Flag(values.iter().flatten().collect()),
        }
    }
}

impl From<Values> for Held {
    fn from(values: Values) -> Self {
        match values {
            Values::Real(values) => Self::Real(values.into()),
            Values::Whole(values) => Self::Whole(values.into()),
            Values::Text(values) => Self::Text(StringArray::from_iter_values(values)),
            Values::Flag(values) => Self::Flag(values.into()),
        }
    }
}

/// A column of a table. `numpy.asarray(column)` is a view of it, and it is an Arrow array to whoever asks.
#[pyclass(frozen, module = "manypath", weakref)]
#[derive(Debug)]
pub(crate) struct Column {
    /// Its name, which ends with the unit where there is one.
    #[pyo3(get)]
    name: String,
    /// What it means.
    #[pyo3(get)]
    about: String,
    held: Held,
}

#[pymethods]
impl Column {
    /// `real`, `whole`, `text` or `flag`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.held.kind()
    }

    fn __len__(&self) -> usize {
        self.held.len()
    }

    fn __repr__(&self) -> String {
        format!("<Column {}: {} values, {}>", self.name, self.held.len(), self.held.kind())
    }

    /// NumPy's array interface, for numbers.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (address, kind) = match &self.held {
            Held::Real(values) => (values.as_ptr() as usize, "f8"),
            Held::Whole(values) => (values.as_ptr() as usize, "u8"),
            // NumPy asks `__array__` then.
            Held::Text(_) | Held::Flag(_) => return Err(PyAttributeError::new_err("__array_interface__")),
        };
        let order = if cfg!(target_endian = "big") { '>' } else { '<' };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.held.len(),))?;
        interface.set_item("typestr", format!("{order}{kind}"))?;
        // For reading only: Arrow arrays of the same memory must not change.
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }

    /// A NumPy array of texts or flags, which NumPy keeps in another way; numbers it finds by the array interface.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let numpy = py.import("numpy")?;
        let (values, usual) = match &slf.get().held {
            Held::Real(_) | Held::Whole(_) => {
                let view = numpy.call_method1("asarray", (slf, dtype))?;
                return if copy == Some(true) { view.call_method0("copy") } else { Ok(view) };
            }
            Held::Text(_) | Held::Flag(_) if copy == Some(false) => {
                return Err(PyValueError::new_err("NumPy keeps texts and flags in another way: they must be copied"));
            }
            Held::Text(values) => (PyList::new(py, values.iter().collect::<Vec<_>>())?, "object"),
            Held::Flag(values) => (PyList::new(py, values.iter().collect::<Vec<_>>())?, "bool"),
        };
        match dtype {
            Some(dtype) => numpy.call_method1("array", (values, dtype)),
            None => numpy.call_method1("array", (values, usual)),
        }
    }

    /// A NumPy array: a view for numbers, objects for texts.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Another type may be asked for; the protocol lets the producer ignore it.
        let _ = requested_schema;
        let array = self.held.arrow();
        let schema = FFI_ArrowSchema::try_from(&self.field()).map_err(arrow)?;
        let data = FFI_ArrowArray::new(&array.to_data());
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, data, c"arrow_array")?,
        ))
    }

    /// Arrow's C interface: the type.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&self.field()).map_err(arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

impl Column {
    fn field(&self) -> Field {
        let nullable = matches!(self.held, Held::Real(_));
        Field::new(&self.name, self.held.data_type(), nullable).with_metadata([("about", self.about.as_str())])
    }

    fn given(&self) -> Given {
        Given { name: self.name.clone(), about: self.about.clone(), values: self.held.values() }
    }
}

/// What Arrow refuses; it has no reason to refuse what is made here.
fn arrow(error: ArrowError) -> PyErr {
    crate::error::raise::<crate::error::InternalError>(error)
}

/// Named columns of equal length. pandas, polars and whatever else reads Arrow take it as it is: `polars.DataFrame(table)`.
#[pyclass(frozen, module = "manypath", mapping, weakref)]
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name.
    #[pyo3(get)]
    name: String,
    /// What a row is.
    #[pyo3(get)]
    about: String,
    columns: Vec<Py<Column>>,
    rows: usize,
}

impl Table {
    /// Takes a table over.
    pub(crate) fn new(py: Python<'_>, table: GivenTable) -> PyResult<Self> {
        let rows = table.rows();
        let columns = table.columns.into_iter().map(|column| {
            let Given { name, about, values } = column;
            Py::new(py, Column { name, about, held: values.into() })
        });
        Ok(Self { name: table.name, about: table.about, columns: columns.collect::<PyResult<_>>()?, rows })
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The table as the other crates have it; values are copied.
    pub(crate) fn given(&self) -> GivenTable {
        let columns = self.columns.iter().map(|column| column.get().given());
        GivenTable { name: self.name.clone(), about: self.about.clone(), columns: columns.collect() }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn column(&self, name: &str) -> PyResult<&Py<Column>> {
        self.columns.iter().find(|column| column.get().name == name).ok_or_else(|| {
            let known: Vec<_> = self.columns.iter().map(|column| column.get().name.as_str()).collect();
            PyKeyError::new_err(format!(
                "the table '{}' has no column '{name}'; it has {}",
                self.name,
                known.join(", ")
            ))
        })
    }

    fn schema(&self) -> Schema {
        let fields: Vec<Field> = self.columns.iter().map(|column| column.get().field()).collect();
        Schema::new(fields).with_metadata([("name", self.name.as_str()), ("about", self.about.as_str())])
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.get().name.as_str()).collect()
    }

    /// The column of this name, with what it means.
    #[pyo3(name = "column")]
    fn py_column(&self, py: Python<'_>, name: &str) -> PyResult<Py<Column>> {
        Ok(self.column(name)?.clone_ref(py))
    }

    /// The values of the column of this name as a NumPy array: a view of the numbers, not a copy.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Column::to_numpy(self.column(name)?.bind(py))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.column(name).is_ok()
    }

    /// How many rows there are.
    fn __len__(&self) -> usize {
        self.rows
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.columns())?.try_iter()?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<Table {}: {} rows of {} columns>", self.name, self.rows, self.columns.len())
    }

    /// Names and NumPy arrays.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for column in &self.columns {
            dict.set_item(&column.get().name, Column::to_numpy(column.bind(py))?)?;
        }
        Ok(dict)
    }

    /// A pandas data frame over the same numbers.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(py);
        options.set_item("copy", false)?;
        py.import("pandas")?.call_method("DataFrame", (self.to_dict(py)?,), Some(&options))
    }

    /// A polars data frame over the same numbers.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// A pyarrow table over the same numbers.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Writes `FOLDER/NAME.parquet`, which is whole or not there, and gives its path.
    fn to_parquet(&self, py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
        let table = self.given();
        let written = py.detach(|| manypath_output::write_tables(&folder, &[table], &[]));
        written.map(|mut paths| paths.remove(0)).map_err(crate::error::unwritable)
    }

    /// Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Other types may be asked for; the protocol lets the producer ignore them.
        let _ = requested_schema;
        let schema = Arc::new(self.schema());
        let columns = self.columns.iter().map(|column| column.get().held.arrow()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).map_err(arrow)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// For pickles.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PackedTable)> {
        let restore = py.import("manypath._native")?.getattr("_restore_table")?;
        let columns = self.columns.iter().map(|column| packed(py, column.get()));
        Ok((restore, (self.name.clone(), self.about.clone(), columns.collect::<PyResult<_>>()?)))
    }
}

/// A table in a pickle: name, what a row is, and the columns.
type PackedTable = (String, String, Vec<Packed>);

/// A column in a pickle: kind, name, what it means, and the values: bytes of numbers, or a list.
type Packed = (String, String, String, Py<PyAny>);

fn packed(py: Python<'_>, column: &Column) -> PyResult<Packed> {
    let values = match &column.held {
        Held::Real(values) => bytes(py, values.iter().map(|value| value.to_le_bytes())),
        Held::Whole(values) => bytes(py, values.iter().map(|value| value.to_le_bytes())),
        Held::Text(values) => PyList::new(py, values.iter().collect::<Vec<_>>())?.into_any().unbind(),
        Held::Flag(values) => PyList::new(py, values.iter().collect::<Vec<_>>())?.into_any().unbind(),
    };
    Ok((column.held.kind().to_owned(), column.name.clone(), column.about.clone(), values))
}

fn bytes(py: Python<'_>, numbers: impl Iterator<Item = [u8; 8]>) -> Py<PyAny> {
    PyBytes::new(py, &numbers.flatten().collect::<Vec<u8>>()).into_any().unbind()
}

/// A table from a pickle.
#[pyfunction]
#[pyo3(name = "_restore_table")]
pub(crate) fn restore_table(py: Python<'_>, name: String, about: String, columns: Vec<Packed>) -> PyResult<Table> {
    let mut table = GivenTable::new(&name, &about);
    for (kind, name, about, values) in columns {
        table = table.with(&name, &about, unpacked(&kind, values.bind(py))?);
    }
    if table.columns.iter().any(|column| column.values.len() != table.rows()) {
        return Err(PyValueError::new_err("columns of unequal length"));
    }
    Table::new(py, table)
}

fn unpacked(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<Values> {
    let eights = || -> PyResult<Vec<[u8; 8]>> {
        let (eights, rest) = values.extract::<&[u8]>()?.as_chunks::<8>();
        if rest.is_empty() { Ok(eights.to_vec()) } else { Err(PyValueError::new_err("half a number")) }
    };
    match kind {
        "real" => Ok(Values::Real(eights()?.into_iter().map(f64::from_le_bytes).collect())),
        "whole" => Ok(Values::Whole(eights()?.into_iter().map(u64::from_le_bytes).collect())),
        "text" => Ok(Values::Text(values.extract()?)),
        "flag" => Ok(Values::Flag(values.extract()?)),
        other => Err(PyValueError::new_err(format!("there is no kind of column '{other}'"))),
    }
}

/// Tables below each other, with a first column that says which of them a row comes from. Columns that one of them has not
/// are left out.
#[pyfunction]
pub(crate) fn concat(py: Python<'_>, tables: Vec<PyRef<'_, Table>>, labels: Vec<String>, by: &str) -> PyResult<Table> {
    let Some(first) = tables.first() else { return Err(PyValueError::new_err("there are no tables")) };
    if labels.len() != tables.len() {
        return Err(PyValueError::new_err(format!("{} labels for {} tables", labels.len(), tables.len())));
    }
    let names = tables.iter().zip(&labels).flat_map(|(table, label)| core::iter::repeat_n(label.clone(), table.rows));
    let mut whole =
        GivenTable::new(&first.name, &first.about).with(by, "Which of the tables.", Values::Text(names.collect()));
    for column in &first.columns {
        let column = column.get();
        let parts: Option<Vec<&Held>> =
            tables.iter().map(|table| Some(&table.column(&column.name).ok()?.get().held)).collect();
        if let Some(values) = parts.and_then(|parts| joined(&parts)) {
            whole = whole.with(&column.name, &column.about, values);
        }
    }
    Table::new(py, whole)
}

/// The values of columns of one kind after each other; `None` if the kinds differ.
fn joined(parts: &[&Held]) -> Option<Values> {
    let mut parts = parts.iter();
    let mut whole = parts.next()?.values();
    for part in parts {
        match (&mut whole, part.values()) {
            (Values::Real(whole), Values::Real(part)) => whole.extend(part),
            (Values::Whole(whole), Values::Whole(part)) => whole.extend(part),
            (Values::Text(whole), Values::Text(part)) => whole.extend(part),
            (Values::Flag(whole), Values::Flag(part)) => whole.extend(part),
            _ => return None,
        }
    }
    Some(whole)
}
