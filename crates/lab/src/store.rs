//! Results on disk: Parquet files in a folder for each experiment, two for each part.
//!
//! `runs-00001.parquet` has a row for each run: `key` (hash of scenario, code and seed), `experiment`, `engine`, `code`, `seed`,
//! `case`, `scenario`, and `kept` (patterns of the time series that were kept). `values-00001.parquet` has a row for each number:
//! `run` (row of the run, from zero), `quantity`, `index` (place in a list), `value`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use manypath_output::{Column, ReadError, Table, Values, WriteError, read_table, write_tables};

use crate::quantities::{Quantities, fits};

/// A run with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Hash of scenario, code and seed.
    pub key: String,
    /// Whose run it was made as.
    pub experiment: String,
    /// What carried it out.
    pub engine: String,
    /// The code that carried it out: version and hash of its sources, and of each algorithm in it.
    pub code: String,
    /// The seed.
    pub seed: u64,
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
#[non_exhaustive]
pub enum StoreError {
    /// The disk says so.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file is no Parquet file.
    #[error("{}: {}: delete it to have its runs made again", .0, .0.source)]
    Read(#[from] ReadError),
    /// A file has other columns.
    #[error("{} is no table of results: delete it to have its runs made again", .0.display())]
    Columns(PathBuf),
    /// There may be results, but nobody can see them.
    #[error("cannot look into {}: give another folder with --results, or make this one readable", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
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

    /// The tables of runs of an experiment, in order. A folder that is not there has none; one that cannot be read may have
    /// some, and whoever took it for empty would make all runs again, or judge without them.
    fn tables(&self, experiment: &str) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.folder.join(experiment);
        let list = || {
            let entries = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
            entries.collect::<io::Result<Vec<PathBuf>>>()
        };
        let mut tables = match list() {
            Ok(paths) => paths,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(StoreError::Folder { folder, source }),
        };
        tables.retain(|path| part_number(path).is_some());
        tables.sort();
        Ok(tables)
    }

    /// Those of them that count: one whose values were deleted does not.
    fn parts(&self, experiment: &str) -> Result<impl Iterator<Item = PathBuf>, StoreError> {
        Ok(self.tables(experiment)?.into_iter().filter(|path| values_of(path).try_exists().unwrap_or(true)))
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
        let _lock = lock(&folder)?;
        // After a table without values too: beside its keys no other values may stand, not even for a moment.
        let number = self.tables(experiment)?.last().and_then(|path| part_number(path)).map_or(1, |number| number + 1);
        let facts = [("manypath.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        // The runs come last: a part counts when they are there.
        let tables = [values(number, records), runs(number, records)];
        write_tables(&folder, &tables, &facts)?;
        Ok(())
    }

    /// The keys of an experiment's runs, each with the time series that were kept.
    ///
    /// # Errors
    /// If the folder or a part cannot be read.
    pub fn keys(&self, experiment: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let mut keys = BTreeMap::new();
        for path in self.parts(experiment)? {
            let (table, _) = read_table(&path)?;
            let (held, kept) = (texts(&table, "key", &path)?, texts(&table, "kept", &path)?);
            keys.extend(held.iter().cloned().zip(kept.iter().cloned()));
        }
        Ok(keys)
    }

    /// The quantities of an experiment's runs by key, those that a pattern fits.
    ///
    /// # Errors
    /// If the folder or a part cannot be read.
    pub fn quantities(
        &self,
        experiment: &str,
        patterns: &[String],
    ) -> Result<BTreeMap<String, Quantities>, StoreError> {
        let mut found = BTreeMap::new();
        for path in self.parts(experiment)? {
            let (table, _) = read_table(&path)?;
            let keys = texts(&table, "key", &path)?;
            let mut runs = vec![Quantities::default(); keys.len()];
            fill(&mut runs, &values_of(&path), patterns)?;
            found.extend(keys.iter().cloned().zip(runs));
        }
        Ok(found)
    }
}

/// Waits until nobody else adds to a folder, and keeps others from it while it lives: two that take the same number for a part
/// would leave the keys of one beside the values of the other.
fn lock(folder: &Path) -> Result<File, WriteError> {
    let path = folder.join(".lock");
    let open = || {
        std::fs::create_dir_all(folder)?;
        // Not the folder itself: network file systems lock only what is open for writing.
        let file = File::options().create(true).write(true).truncate(false).open(&path)?;
        file.lock().map(|()| file)
    };
    open().map_err(|source| WriteError { path: path.clone(), source })
}

/// The number of a part, if the file is a table of runs.
fn part_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("runs-")?.strip_suffix(".parquet")?.parse().ok()
}

/// The table of values that belongs to a table of runs.
fn values_of(path: &Path) -> PathBuf {
    path.with_file_name(format!("values-{:05}.parquet", part_number(path).unwrap_or(0)))
}

fn runs(number: u32, records: &[Record]) -> Table {
    let text =
        |field: fn(&Record) -> &String| Values::Text(records.iter().map(|record| field(record).clone()).collect());
    let seeds = Values::Whole(records.iter().map(|record| record.seed).collect());
    Table::new(&format!("runs-{number:05}"), "One row a run.")
        .with("key", "hash of engine, code, scenario and seed", text(|record| &record.key))
        .with("experiment", "whose run it was made as", text(|record| &record.experiment))
        .with("engine", "what carried it out", text(|record| &record.engine))
        .with(
            "code",
            "version and hash of the sources that decide the result, with the algorithms in it",
            text(|record| &record.code),
        )
        .with("seed", "the seed", seeds)
        .with("case", "axes and labels", text(|record| &record.case))
        .with("scenario", "what was run: a scenario or a model's arguments, as TOML", text(|record| &record.scenario))
        .with("kept", "patterns of the time series that were kept", text(|record| &record.kept))
}

fn values(number: u32, records: &[Record]) -> Table {
    let (mut run, mut name, mut index, mut value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, record) in records.iter().enumerate() {
        for (quantity, list) in &record.quantities.0 {
            for (place, number) in list.iter().enumerate() {
                run.push(row as u64);
                name.push(quantity.clone());
                index.push(place as u64);
                value.push(*number);
            }
        }
    }
    Table::new(&format!("values-{number:05}"), "One row a number that a run gave.")
        .with("run", "row of the run in the table of runs with the same number, from zero", Values::Whole(run))
        .with("quantity", "what it is", Values::Text(name))
        .with("index", "place in a list, from zero", Values::Whole(index))
        .with("value", "the number, in the unit that the quantity's name ends with", Values::Real(value))
}

fn texts<'a>(table: &'a Table, name: &str, path: &Path) -> Result<&'a [String], StoreError> {
    match table.column(name) {
        Some(Column { values: Values::Text(values), .. }) => Ok(values),
        _ => Err(StoreError::Columns(path.to_owned())),
    }
}

fn wholes<'a>(table: &'a Table, name: &str, path: &Path) -> Result<&'a [u64], StoreError> {
    match table.column(name) {
        Some(Column { values: Values::Whole(values), .. }) => Ok(values),
        _ => Err(StoreError::Columns(path.to_owned())),
    }
}

/// Reads the numbers of a part into its runs.
fn fill(runs: &mut [Quantities], path: &Path, patterns: &[String]) -> Result<(), StoreError> {
    let (table, _) = read_table(path)?;
    let wrong = || StoreError::Columns(path.to_owned());
    let names = texts(&table, "quantity", path)?;
    let Some(Column { values: Values::Real(values), .. }) = table.column("value") else { return Err(wrong()) };
    let mut wanted: BTreeMap<&str, bool> = BTreeMap::new();
    for ((run, name), value) in wholes(&table, "run", path)?.iter().zip(names).zip(values) {
        let wanted = *wanted.entry(name).or_insert_with(|| patterns.iter().any(|pattern| fits(pattern, name)));
        if wanted {
            let run = usize::try_from(*run).ok().and_then(|run| runs.get_mut(run)).ok_or_else(wrong)?;
            run.0.entry(name.clone()).or_default().push(*value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn record(key: &str) -> Record {
        let mut quantities = Quantities::default();
        quantities.0.insert("a".to_owned(), vec![1.5]);
        quantities.0.insert("list".to_owned(), vec![1.0, f64::NAN, 3.0]);
        let text = |text: &str| text.to_owned();
        Record {
            key: text(key),
            experiment: text("x"),
            engine: text("sim"),
            code: text("0"),
            seed: 1,
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
        // NaN is not equal to itself.
        assert_eq!(format!("{:?}", runs["two"]), format!("{:?}", record("two").quantities));
        let runs = store.quantities("x", &["l*".to_owned()]).unwrap();
        assert_eq!(runs["three"].0.len(), 1);
    }

    #[test]
    fn a_part_that_lost_one_of_its_files_is_made_again_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        for key in ["one", "two"] {
            store.add("x", &[record(key)]).unwrap();
        }
        std::fs::remove_file(folder.path().join("x/values-00002.parquet")).unwrap();
        assert_eq!(store.keys("x").unwrap().into_keys().collect::<Vec<_>>(), ["one"]);
        assert_eq!(store.quantities("x", &["*".to_owned()]).unwrap().len(), 1);
        // Not as part 2: a crash between its two files would set new numbers beside old keys.
        store.add("x", &[record("three")]).unwrap();
        assert!(folder.path().join("x/runs-00003.parquet").exists());
        assert_eq!(store.keys("x").unwrap().into_keys().collect::<Vec<_>>(), ["one", "three"]);
        assert_eq!(store.quantities("x", &["*".to_owned()]).unwrap().len(), 2);
    }

    #[test]
    fn several_that_write_at_once_lose_nothing() {
        const WRITERS: usize = 4;
        const PARTS: usize = 10;
        let folder = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(WRITERS);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (store, barrier) = (Store::new(folder.path()), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    for part in 0..PARTS {
                        let mut record = record(&format!("{writer} {part}"));
                        record.quantities.0.insert("writer".to_owned(), vec![writer as f64]);
                        store.add("x", &[record]).unwrap();
                    }
                });
            }
        });
        let found = Store::new(folder.path()).quantities("x", &["writer".to_owned()]).unwrap();
        assert_eq!(found.len(), WRITERS * PARTS);
        for (key, quantities) in found {
            assert!(key.starts_with(&format!("{} ", quantities.0["writer"][0])), "{key}: {quantities:?}");
        }
    }

    #[test]
    fn what_cannot_be_looked_into_is_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results");
        std::fs::write(&file, "").unwrap();
        // The results are a file, an experiment's folder is one, a name leads in a circle (which stops root too).
        std::fs::write(folder.path().join("x"), "").unwrap();
        std::os::unix::fs::symlink("circle", folder.path().join("circle")).unwrap();
        for (results, experiment) in [(file.as_path(), "x"), (folder.path(), "x"), (folder.path(), "circle")] {
            let store = Store::new(results);
            let named = results.join(experiment).display().to_string();
            for error in [store.keys(experiment).unwrap_err(), store.quantities(experiment, &[]).unwrap_err()] {
                assert!(error.to_string().contains(&named) && error.source().is_some(), "{error:?}");
            }
            assert!(store.add(experiment, &[record("one")]).is_err());
        }
        assert!(Store::new(folder.path().join("none")).keys("x").unwrap().is_empty());
    }

    #[test]
    fn a_broken_part_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.add("x", &[record("one")]).unwrap();
        let part = folder.path().join("x/runs-00001.parquet");
        let bytes = std::fs::read(&part).unwrap();
        for len in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&part, &bytes[..len]).unwrap();
            assert!(store.keys("x").unwrap_err().to_string().contains("runs-00001.parquet"));
        }
        std::fs::copy(folder.path().join("x/values-00001.parquet"), &part).unwrap();
        assert!(store.keys("x").unwrap_err().to_string().contains("delete it"));
    }
}
