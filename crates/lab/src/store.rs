//! Results on disk: Parquet files, a folder of parts for each experiment, a row for each quantity of each run.
//!
//! A run is known by its key, a hash of scenario, code and seed, so that finished runs are found again, in whatever part
//! they are. Columns: `key`, `experiment`, `engine`, `code`, `seed`, `case`, `scenario`, `kept` (patterns of the time series
//! that were kept), `quantity`, `values` (a list).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::quantities::{Quantities, fits};

/// The columns, in this order.
const SCHEMA: &str = "message run {
    required binary key (UTF8);
    required binary experiment (UTF8);
    required binary engine (UTF8);
    required binary code (UTF8);
    required binary seed (UTF8);
    required binary case (UTF8);
    required binary scenario (UTF8);
    required binary kept (UTF8);
    required binary quantity (UTF8);
    required group values (LIST) { repeated group list { required double element; } }
}";
/// The columns of text before the quantity's name.
const ABOUT: usize = 8;

/// A run with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Hash of scenario, code and seed.
    pub key: String,
    /// Whose run it was made as.
    pub experiment: String,
    /// What carried it out.
    pub engine: String,
    /// The code that carried it out: version and hash of its sources.
    pub code: String,
    /// The seed.
    pub seed: String,
    /// Axes and labels.
    pub case: String,
    /// The scenario, or a model's arguments.
    pub scenario: String,
    /// Patterns of the time series that were kept, separated by spaces.
    pub kept: String,
    /// What was found.
    pub quantities: Quantities,
}

/// Why results cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}: delete it to have its runs made again")]
pub struct StoreError {
    path: PathBuf,
    source: ParquetError,
}

/// The folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Results in a folder that need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn parts(&self, experiment: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder.join(experiment)) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut parts: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect();
        parts.sort();
        parts
    }

    /// Writes runs of an experiment as a new part.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn add(&self, experiment: &str, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let folder = self.folder.join(experiment);
        let number = self.parts(experiment).last().and_then(|path| part_number(path)).map_or(1, |number| number + 1);
        let path = folder.join(format!("part-{number:05}.parquet"));
        let failed = |source| StoreError { path: path.clone(), source };
        std::fs::create_dir_all(&folder).map_err(|error| failed(error.into()))?;
        // A reader never sees half a part.
        let unfinished = path.with_extension("unfinished");
        write(&unfinished, records).map_err(failed)?;
        std::fs::rename(&unfinished, &path).map_err(|error| failed(error.into()))
    }

    /// The keys of an experiment's runs, each with the time series that were kept.
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn keys(&self, experiment: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let mut keys = BTreeMap::new();
        for path in self.parts(experiment) {
            let found = read_keys(&path).map_err(|source| StoreError { path, source })?;
            keys.extend(found);
        }
        Ok(keys)
    }

    /// The quantities of an experiment's runs by key, those that a pattern fits.
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn quantities(
        &self,
        experiment: &str,
        patterns: &[String],
    ) -> Result<BTreeMap<String, Quantities>, StoreError> {
        let mut runs = BTreeMap::new();
        for path in self.parts(experiment) {
            read(&path, patterns, &mut runs).map_err(|source| StoreError { path, source })?;
        }
        Ok(runs)
    }
}

fn part_number(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.strip_prefix("part-")?.parse().ok()
}

fn write(path: &Path, records: &[Record]) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let mut file = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    let about: [fn(&Record) -> &str; ABOUT] = [
        |record| &record.key,
        |record| &record.experiment,
        |record| &record.engine,
        |record| &record.code,
        |record| &record.seed,
        |record| &record.case,
        |record| &record.scenario,
        |record| &record.kept,
    ];
    for field in about {
        let text = records.iter().flat_map(|record| {
            let text = ByteArray::from(field(record));
            core::iter::repeat_n(text, record.quantities.0.len())
        });
        write_text(&mut group, &text.collect::<Vec<_>>())?;
    }
    let names = records.iter().flat_map(|record| record.quantities.0.keys().map(|name| ByteArray::from(name.as_str())));
    write_text(&mut group, &names.collect::<Vec<_>>())?;
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    for list in records.iter().flat_map(|record| record.quantities.0.values()) {
        values.extend_from_slice(list);
        // Levels of a required list of required elements: 0 is an empty list, and where a list begins.
        definition.extend(if list.is_empty() { vec![0] } else { vec![1; list.len()] });
        repetition.push(0);
        repetition.extend(core::iter::repeat_n(1, list.len().saturating_sub(1)));
    }
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<DoubleType>().write_batch(&values, Some(&definition), Some(&repetition))?;
    column.close()?;
    group.close()?;
    file.close()?;
    Ok(())
}

fn write_text(
    group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
    texts: &[ByteArray],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<ByteArrayType>().write_batch(texts, None, None)?;
    column.close()
}

fn missing() -> ParquetError {
    ParquetError::General("the columns are not those of results".to_owned())
}

fn read_text(group: &dyn RowGroupReader, column: usize) -> Result<Vec<ByteArray>, ParquetError> {
    let ColumnReader::ByteArrayColumnReader(mut reader) = group.get_column_reader(column)? else {
        return Err(missing());
    };
    let mut texts = Vec::new();
    reader.read_records(usize::MAX, None, None, &mut texts)?;
    Ok(texts)
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, ParquetError> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    if file.metadata().file_metadata().schema_descr().num_columns() == ABOUT + 2 { Ok(file) } else { Err(missing()) }
}

fn read_keys(path: &Path) -> Result<BTreeMap<String, String>, ParquetError> {
    let file = open(path)?;
    let mut keys = BTreeMap::new();
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index)?;
        let (names, kept) = (read_text(group.as_ref(), 0)?, read_text(group.as_ref(), ABOUT - 1)?);
        let mut last = None;
        for (name, kept) in names.into_iter().zip(kept) {
            if last.as_ref() != Some(&name) {
                keys.insert(name.as_utf8()?.to_owned(), kept.as_utf8()?.to_owned());
                last = Some(name);
            }
        }
    }
    Ok(keys)
}

fn read(path: &Path, patterns: &[String], runs: &mut BTreeMap<String, Quantities>) -> Result<(), ParquetError> {
    let file = open(path)?;
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index)?;
        let (keys, names) = (read_text(group.as_ref(), 0)?, read_text(group.as_ref(), ABOUT)?);
        let ColumnReader::DoubleColumnReader(mut reader) = group.get_column_reader(ABOUT + 1)? else {
            return Err(missing());
        };
        let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
        reader.read_records(usize::MAX, Some(&mut definition), Some(&mut repetition), &mut values)?;
        let mut lists: Vec<Vec<f64>> = Vec::with_capacity(names.len());
        let mut values = values.into_iter();
        for (level, begins) in definition.iter().zip(&repetition) {
            if *begins == 0 {
                lists.push(Vec::new());
            }
            if *level == 1 {
                let value = values.next().ok_or_else(missing)?;
                lists.last_mut().ok_or_else(missing)?.push(value);
            }
        }
        for ((key, name), list) in keys.iter().zip(&names).zip(lists) {
            let name = name.as_utf8()?;
            if patterns.iter().any(|pattern| fits(pattern, name)) {
                runs.entry(key.as_utf8()?.to_owned()).or_default().0.insert(name.to_owned(), list);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str) -> Record {
        let mut quantities = Quantities::default();
        quantities.0.insert("a".to_owned(), vec![1.5]);
        quantities.0.insert("empty".to_owned(), Vec::new());
        quantities.0.insert("list".to_owned(), vec![1.0, f64::NAN, 3.0]);
        let text = |text: &str| text.to_owned();
        Record {
            key: text(key),
            experiment: text("x"),
            engine: text("sim"),
            code: text("0"),
            seed: text("1"),
            case: text("cc = lia"),
            scenario: text("duration = \"1s\""),
            kept: text("series.*"),
            quantities,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert!(store.keys("x").unwrap().is_empty());
        store.add("x", &[record("one"), record("two")]).unwrap();
        store.add("x", &[record("three")]).unwrap();
        let keys: Vec<_> = store.keys("x").unwrap().into_iter().collect();
        assert_eq!(keys.len(), 3);
        assert_eq!(keys[0], ("one".to_owned(), "series.*".to_owned()));
        let runs = store.quantities("x", &["*".to_owned()]).unwrap();
        assert_eq!(format!("{:?}", runs["two"]), format!("{:?}", record("two").quantities));
        let runs = store.quantities("x", &["l*".to_owned()]).unwrap();
        assert_eq!(runs["three"].0.len(), 1);
    }

    #[test]
    fn a_broken_part_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.add("x", &[record("one")]).unwrap();
        let part = folder.path().join("x/part-00001.parquet");
        let bytes = std::fs::read(&part).unwrap();
        for len in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&part, &bytes[..len]).unwrap();
            assert!(store.keys("x").unwrap_err().to_string().contains("part-00001.parquet"));
        }
    }
}
