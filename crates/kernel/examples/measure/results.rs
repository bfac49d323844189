//! What was measured, kept in a file, so that hours of measurements may be interrupted and go on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::Failure;
use crate::flow::median;

/// Numbers by what they are of.
#[derive(Debug)]
pub(crate) struct Results {
    /// Without one nothing is kept.
    file: Option<PathBuf>,
    held: BTreeMap<String, Vec<f64>>,
    /// No measurement begins after this.
    until: Option<Instant>,
}

impl Results {
    pub(crate) fn open(file: Option<PathBuf>, until: Option<Instant>) -> Result<Self, Failure> {
        let held = match &file {
            Some(file) if file.exists() => serde_json::from_slice(&std::fs::read(file)?)?,
            _ => BTreeMap::new(),
        };
        Ok(Self { file, held, until })
    }

    /// The middle one of the numbers held under this name.
    pub(crate) fn held(&self, name: &str) -> Option<f64> {
        self.held.get(name).map(|numbers| median(numbers))
    }

    /// Forgets what was measured of a part.
    pub(crate) fn forget(&mut self, part: &str) {
        self.held.retain(|name, _| !name.starts_with(&format!("{part}/")));
    }

    /// What is held under this name, or else what a measurement gives now.
    pub(crate) fn get(
        &mut self,
        name: &str,
        measure: impl FnOnce() -> Result<Vec<f64>, Failure>,
    ) -> Result<Vec<f64>, Failure> {
        if let Some(held) = self.held.get(name) {
            return Ok(held.clone());
        }
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err("the time is up: the same command goes on from here".into());
        }
        let numbers = measure()?;
        eprintln!("{name}: {numbers:.3?}");
        self.held.insert(name.to_owned(), numbers.clone());
        if let Some(file) = &self.file {
            std::fs::write(file, serde_json::to_vec_pretty(&self.held)?)?;
        }
        Ok(numbers)
    }
}
