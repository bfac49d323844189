//! Which claims held when someone last looked, in a file that is kept with the experiments: what held and no longer holds
//! is a regression.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use crate::claim::Verdict;
use crate::experiment::Mode;

/// The words for each mode, by experiment and claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status(BTreeMap<String, BTreeMap<String, Entry>>);

/// What was found in each mode.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    quick: Option<String>,
    full: Option<String>,
}

impl Entry {
    fn word(&mut self, mode: Mode) -> &mut Option<String> {
        match mode {
            Mode::Quick => &mut self.quick,
            Mode::Full => &mut self.full,
        }
    }
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}: repair it, or delete it and write it anew with `manypath lab check --update`")]
pub struct StatusError {
    file: String,
    reason: String,
}

impl Status {
    /// Reads the file; without one nothing has ever held.
    ///
    /// # Errors
    /// If there is a file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, StatusError> {
        let failed = |reason: String| StatusError { file: path.display().to_string(), reason };
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map(Self).map_err(|error| failed(error.message().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Whether a claim held in this mode.
    pub fn held(&self, experiment: &str, claim: &str, mode: Mode) -> bool {
        let entry = self.0.get(experiment).and_then(|claims| claims.get(claim)).cloned();
        entry.is_some_and(|mut entry| entry.word(mode).as_deref() == Some("holds"))
    }

    /// Notes a verdict. What was not run stays as it was.
    pub fn set(&mut self, experiment: &str, claim: &str, mode: Mode, verdict: &Verdict) {
        let entry = self.0.entry(experiment.to_owned()).or_default().entry(claim.to_owned()).or_default();
        if verdict.ours().is_some() {
            *entry.word(mode) = Some(verdict.as_str().to_owned());
        }
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("# Which claims hold. Written by `manypath lab check --update`.\n");
        for (experiment, claims) in &self.0 {
            // Writing to a string cannot fail. Names of files and claims may have dots, which mean something to TOML.
            let _ = write!(out, "\n[{experiment:?}]\n");
            for (claim, entry) in claims {
                let word = |mode: &str, word: &Option<String>| word.as_ref().map(|word| format!("{mode} = \"{word}\""));
                let words = [word("quick", &entry.quick), word("full", &entry.full)];
                let words: Vec<String> = words.into_iter().flatten().collect();
                let _ = writeln!(out, "{claim:?} = {{ {} }}", words.join(", "));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Ours;

    #[test]
    fn what_is_written_reads_back() {
        let mut status = Status::default();
        status.set("a-fig1", "order", Mode::Quick, &Verdict::Holds(Ours::default()));
        status.set("a-fig1", "order", Mode::Full, &Verdict::Fails(Ours::default()));
        status.set("a-fig1", "y-1.0", Mode::Quick, &Verdict::Holds(Ours::default()));
        status.set("a-fig1", "ratio", Mode::Full, &Verdict::NotRun(String::new()));
        // What held is not forgotten because it was not run again.
        status.set("a-fig1", "y-1.0", Mode::Quick, &Verdict::NotRun(String::new()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.toml");
        assert_eq!(Status::read(&path).unwrap(), Status::default());
        std::fs::write(&path, status.to_toml()).unwrap();
        let read = Status::read(&path).unwrap();
        assert_eq!(read, status);
        assert!(read.held("a-fig1", "y-1.0", Mode::Quick));
        assert!(read.held("a-fig1", "order", Mode::Quick) && !read.held("a-fig1", "order", Mode::Full));
        std::fs::write(&path, "[a]\nb = 1").unwrap();
        assert!(Status::read(&path).unwrap_err().to_string().contains("--update"));
    }
}
