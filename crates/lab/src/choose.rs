//! Which experiments are meant, whose runs they need, and what carries those out.

use std::path::{Path, PathBuf};

use crate::engine::{Engine, Kernel, Quic, Simulator};
use crate::experiment::{EngineKind, Experiment};
use crate::models::Theory;

/// Why a choice makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// No experiment and no paper has this name.
    #[error("there is no experiment '{0}': `manypath lab list` names them, and a paper's name takes all of it")]
    Experiment(String),
}

/// The nearest folder `experiments`, here or above.
pub fn nearest(here: &Path) -> Option<PathBuf> {
    here.ancestors().map(|folder| folder.join("experiments")).find(|folder| folder.is_dir())
}

/// The experiments of these names, or of a paper, each once; all of them if there are no names.
///
/// # Errors
/// If nothing has one of the names.
pub fn chosen<'a>(all: &'a [Experiment], names: &[String]) -> Result<Vec<&'a Experiment>, ChoiceError> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let mut found: Vec<&Experiment> = Vec::new();
    for name in names {
        let meant = || all.iter().filter(|experiment| experiment.id == *name || experiment.paper == *name);
        if meant().next().is_none() {
            return Err(ChoiceError::Experiment(name.clone()));
        }
        for experiment in meant() {
            if !found.iter().any(|held| held.id == experiment.id) {
                found.push(experiment);
            }
        }
    }
    Ok(found)
}

/// Whose runs are needed for these experiments: each once.
pub fn runs_needed<'a>(all: &'a [Experiment], chosen: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let mut sources: Vec<&Experiment> = Vec::new();
    for experiment in chosen {
        let source = all.iter().find(|source| source.id == experiment.runs_of).unwrap_or(experiment);
        if !sources.iter().any(|held| held.id == source.id) {
            sources.push(source);
        }
    }
    sources
}

/// What carries out runs.
pub fn engine(kind: EngineKind) -> Box<dyn Engine> {
    match kind {
        EngineKind::Sim => Box::new(Simulator),
        EngineKind::Theory => Box::new(Theory),
        EngineKind::Quic => Box::new(Quic),
        EngineKind::Kernel => Box::new(Kernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::experiments;

    const FIRST: &str = "title = \"t\"\npaper = \"mpcc\"\nplace = \"p\"\nabout = \"a\"\nduration = \"1s\"\n\
        seeds = { quick = 1, full = 1 }\n[scenario]\ntopology = \"two-links\"\n\
        [[scenario.connection]]\nname = \"mp\"\ncc = \"lia\"\n[metric.x]\ntitle = \"x\"\nvalue = \"jain\"\n";

    #[test]
    fn runs_of_another_experiment_are_made_as_its_and_once() {
        let second = "title = \"t\"\npaper = \"mpcc\"\nplace = \"p\"\nabout = \"a\"\nlike = \"x-fig1\"\n";
        let texts = [("x-fig1", FIRST), ("x-fig2", second), ("x-fig3", &FIRST.replace("lia", "olia"))];
        let texts = texts.map(|(id, text)| (id.to_owned(), format!("{id}.toml"), text.to_owned()));
        let all = experiments(&texts, Path::new(".")).unwrap();
        let needed = |ids: &[&str]| {
            let names: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            let needed = runs_needed(&all, &chosen(&all, &names).unwrap());
            needed.into_iter().map(|experiment| experiment.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(needed(&["x-fig2"]), ["x-fig1"]);
        assert_eq!(needed(&["x-fig2", "x-fig1"]), ["x-fig1"]);
        assert_eq!(needed(&["x-fig3", "x-fig2"]), ["x-fig3", "x-fig1"]);
    }

    #[test]
    fn the_nearest_folder_of_experiments_is_one_and_no_file() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::create_dir(top.path().join("experiments")).unwrap();
        std::fs::write(below.join("experiments"), "").unwrap();
        assert_eq!(nearest(&below), Some(top.path().join("experiments")));
    }
}
