//! Tables as Parquet files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::file::{WriteError, write_with};
use crate::table::{Column, Table, Values};

/// Rows of a row group: readers hold one in memory.
const GROUP: usize = 1 << 20;

/// The key of the file's metadata under which the table is described.
const ABOUT: &str = "manypath.table";
/// The key under which the columns are described, as a JSON object.
const COLUMNS: &str = "manypath.columns";

/// Writes each table to `FOLDER/NAME.parquet`, making the folder if it is not there, and says which files these are.
/// `facts` go along in each file, as key and value. Columns and facts are all that a file depends on.
///
/// # Errors
/// If a file cannot be written; those before it are there. Numbers of 2^63 and more are refused, and so are columns of
/// unequal length.
pub fn write_tables(folder: &Path, tables: &[Table], facts: &[(String, String)]) -> Result<Vec<PathBuf>, WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError { path: folder.to_owned(), source })?;
    let mut paths = Vec::new();
    for table in tables {
        let path = folder.join(format!("{}.parquet", table.name));
        write_with(&path, |file| write_table(file, table, facts).map_err(io_error))?;
        paths.push(path);
    }
    Ok(paths)
}

/// What the disk says, where it is the disk that says it.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

fn write_table(file: &mut File, table: &Table, facts: &[(String, String)]) -> Result<(), ParquetError> {
    let rows = table.rows();
    if let Some(column) = table.columns.iter().find(|column| column.values.len() != rows) {
        let lengths = format!("column {} has {} values, not {rows}", column.name, column.values.len());
        return Err(ParquetError::General(lengths));
    }
    let properties = WriterProperties::builder()
        .set_created_by(format!("manypath {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata(table, facts)?))
        .build();
    let mut writer = SerializedFileWriter::new(file, schema(table)?, Arc::new(properties))?;
    for first in (0..rows).step_by(GROUP) {
        let end = rows.min(first + GROUP);
        let mut group = writer.next_row_group()?;
        for column in &table.columns {
            // The schema has this very column next.
            let Some(mut place) = group.next_column()? else { break };
            write_column(&mut place, column, first, end)?;
            place.close()?;
        }
        group.close()?;
    }
    writer.close().map(drop)
}

fn metadata(table: &Table, facts: &[(String, String)]) -> Result<Vec<KeyValue>, ParquetError> {
    let about: BTreeMap<_, _> = table.columns.iter().map(|column| (&column.name, &column.about)).collect();
    let columns = serde_json::to_string(&about).map_err(|error| ParquetError::External(Box::new(error)))?;
    let own = [KeyValue::new(ABOUT.to_owned(), table.about.clone()), KeyValue::new(COLUMNS.to_owned(), columns)];
    let facts = facts.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Ok(own.into_iter().chain(facts).collect())
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let fields = table.columns.iter().map(|column| {
        let (physical, logical, repetition) = match &column.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Values::Whole(_) => (Physical::INT64, None, Repetition::REQUIRED),
            Values::Real(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Values::Flag(_) => (Physical::BOOLEAN, None, Repetition::REQUIRED),
        };
        let field = Type::primitive_type_builder(&column.name, physical);
        field.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<_, _>>()?;
    Type::group_type_builder(&table.name).with_fields(fields).build().map(Arc::new)
}

fn write_column(
    place: &mut SerializedColumnWriter<'_>,
    column: &Column,
    first: usize,
    end: usize,
) -> Result<(), ParquetError> {
    match &column.values {
        Values::Text(values) => {
            let values: Vec<ByteArray> = values[first..end].iter().map(|text| text.as_str().into()).collect();
            place.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
        Values::Whole(values) => {
            let signed = values[first..end].iter().map(|value| i64::try_from(*value));
            let signed: Vec<i64> = signed
                .collect::<Result<_, _>>()
                .map_err(|_| ParquetError::General(format!("column {} has a number of 2^63 or more", column.name)))?;
            place.typed::<Int64Type>().write_batch(&signed, None, None)?;
        }
        Values::Real(values) => {
            let there: Vec<i16> = values[first..end].iter().map(|value| i16::from(!value.is_nan())).collect();
            let values: Vec<f64> = values[first..end].iter().copied().filter(|value| !value.is_nan()).collect();
            place.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
        }
        Values::Flag(values) => {
            place.typed::<BoolType>().write_batch(&values[first..end], None, None)?;
        }
    }
    Ok(())
}

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: ParquetError,
}

/// Reads a file that [`write_tables`] wrote: the table, and the facts that went along.
///
/// # Errors
/// If it cannot be read, or is of someone else and has columns of other kinds.
pub fn read_table(path: &Path) -> Result<(Table, Vec<(String, String)>), ReadError> {
    read(path).map_err(|source| ReadError { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<(Table, Vec<(String, String)>), ParquetError> {
    let file = File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    let file = reader.metadata().file_metadata();
    let pairs = file.key_value_metadata().into_iter().flatten();
    let mut facts: Vec<_> = pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect();
    let mut take = |key: &str| {
        let at = facts.iter().position(|(held, _)| held == key);
        at.map_or_else(String::new, |at| facts.remove(at).1)
    };
    let about = take(ABOUT);
    let columns: BTreeMap<String, String> = serde_json::from_str(&take(COLUMNS)).unwrap_or_default();
    facts.retain(|(key, _)| key != "ARROW:schema");
    let mut table = Table::new(file.schema().name(), &about);
    for (index, field) in file.schema_descr().columns().iter().enumerate() {
        let mut values = match field.physical_type() {
            Physical::BYTE_ARRAY => Values::Text(Vec::new()),
            Physical::INT64 => Values::Whole(Vec::new()),
            Physical::DOUBLE => Values::Real(Vec::new()),
            Physical::BOOLEAN => Values::Flag(Vec::new()),
            other => return Err(ParquetError::NYI(format!("column {} has the type {other}", field.name()))),
        };
        for group in 0..reader.num_row_groups() {
            read_column(reader.get_row_group(group)?.as_ref(), index, &mut values)?;
        }
        let about = columns.get(field.name()).map_or("", String::as_str);
        table = table.with(field.name(), about, values);
    }
    Ok((table, facts))
}

fn read_column(group: &dyn RowGroupReader, index: usize, values: &mut Values) -> Result<(), ParquetError> {
    match (group.get_column_reader(index)?, values) {
        (ColumnReader::ByteArrayColumnReader(reader), Values::Text(values)) => {
            for text in records::<ByteArrayType>(reader)?.1 {
                values.push(text.as_utf8()?.to_owned());
            }
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Whole(values)) => {
            for number in records::<Int64Type>(reader)?.1 {
                let number = u64::try_from(number);
                values.push(number.map_err(|_| ParquetError::NYI("a negative number".to_owned()))?);
            }
        }
        (ColumnReader::DoubleColumnReader(reader), Values::Real(values)) => {
            let (there, numbers) = records::<DoubleType>(reader)?;
            let mut numbers = numbers.into_iter();
            values.extend(there.into_iter().map(|there| match there {
                0 => f64::NAN,
                _ => numbers.next().unwrap_or(f64::NAN),
            }));
        }
        (ColumnReader::BoolColumnReader(reader), Values::Flag(values)) => {
            values.extend(records::<BoolType>(reader)?.1);
        }
        _ => return Err(ParquetError::General("a column's type changed".to_owned())),
    }
    Ok(())
}

/// All of a column of a row group: which values are there, where some are not, and those that are.
fn records<T: DataType>(
    mut reader: parquet::column::reader::ColumnReaderImpl<T>,
) -> Result<(Vec<i16>, Vec<T::T>), ParquetError> {
    let (mut there, mut values) = (Vec::new(), Vec::new());
    loop {
        let (records, _, _) = reader.read_records(GROUP, Some(&mut there), None, &mut values)?;
        if records == 0 {
            return Ok((there, values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new("things", "One row a thing.")
            .with("name", "what it is called", Values::Text(vec!["a".into(), "b ü".into(), String::new()]))
            .with("count", "how many", Values::Whole(vec![0, 7, i64::MAX as u64]))
            .with("srtt_s", "seconds", Values::Real(vec![0.5, f64::NAN, -1e300]))
            .with("late", "whether late", Values::Flag(vec![true, false, true]))
    }

    #[test]
    fn what_is_written_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let facts = vec![("manypath.seed".to_owned(), "7".to_owned())];
        let inner = folder.path().join("a/b");
        let paths = write_tables(&inner, &[table()], &facts).unwrap();
        assert_eq!(paths, [inner.join("things.parquet")]);
        let (read, read_facts) = read_table(&paths[0]).unwrap();
        assert_eq!(read_facts, facts);
        // NaN is not equal to itself.
        assert_eq!(format!("{read:?}"), format!("{:?}", table()));
        let before = fs::read(&paths[0]).unwrap();
        write_tables(&inner, &[table()], &facts).unwrap();
        assert_eq!(fs::read(&paths[0]).unwrap(), before, "the same bytes");
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn tables_of_many_rows_have_several_groups() {
        let folder = tempfile::tempdir().unwrap();
        let count = GROUP as u64 + 10;
        let whole = Table::new("long", "").with("n", "", Values::Whole((0..count).collect()));
        let nothing = Table::new("empty", "").with("n", "", Values::Real(Vec::new()));
        let paths = write_tables(folder.path(), &[whole.clone(), nothing.clone()], &[]).unwrap();
        assert_eq!(read_table(&paths[0]).unwrap().0, whole);
        assert_eq!(read_table(&paths[1]).unwrap().0, nothing);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let uneven = table().with("more", "", Values::Flag(vec![true]));
        let large = Table::new("large", "").with("n", "", Values::Whole(vec![u64::MAX]));
        for (bad, message) in [(uneven, "has 1 values, not 3"), (large, "2^63")] {
            let error = write_tables(folder.path(), &[bad], &[]).unwrap_err();
            assert!(error.source.to_string().contains(message), "{error:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(folder.path().join("file"), "x").unwrap();
        assert!(write_tables(&folder.path().join("file"), &[table()], &[]).is_err());
        assert!(read_table(&folder.path().join("file")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let error = write_with(Path::new("/dev/full"), |file| write_table(file, &table(), &[]).map_err(io_error));
        assert_eq!(error.unwrap_err().source.kind(), io::ErrorKind::StorageFull);
    }
}
