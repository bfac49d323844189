//! Where experiments and results are, and which experiments are meant.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use manypath_lab::{EngineKind, Experiment, Mode, Results, Store, engine};

/// The file among results that says how they were made.
const LOG: &str = "log.txt";

/// Where experiments and results are.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Place {
    /// The folder of experiments; without it the nearest folder `experiments`, here or above
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,

    /// The folder of results; without it `lab-results` beside the experiments
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

impl Place {
    /// The folder of experiments.
    pub(super) fn experiments(&self) -> Result<PathBuf> {
        if let Some(folder) = &self.experiments {
            return Ok(folder.clone());
        }
        let here = std::env::current_dir().context("the current folder is gone")?;
        manypath_lab::nearest(&here)
            .context("there is no folder 'experiments' here or above: go to the repository, or give --experiments DIR")
    }

    /// Every experiment.
    pub(super) fn load(&self) -> Result<Vec<Experiment>> {
        let folder = self.experiments()?;
        let experiments = manypath_lab::load(&folder)?;
        if experiments.is_empty() {
            bail!("{} has no experiments: give another folder with --experiments", folder.display());
        }
        Ok(experiments)
    }

    /// The folder of results.
    fn results(&self) -> Result<PathBuf> {
        match &self.results {
            Some(folder) => Ok(folder.clone()),
            None => Ok(self.experiments()?.join("../lab-results")),
        }
    }

    /// Where results are.
    pub(super) fn store(&self) -> Result<Store> {
        Ok(Store::new(self.results()?))
    }
}

/// What is remembered of how runs were made: a line for each command, its length first.
pub(super) fn log(place: &Place) -> Result<Vec<String>> {
    let path = place.results()?.join(LOG);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Remembers how runs were made.
pub(super) fn add_to_log(place: &Place, line: &str) -> Result<()> {
    use std::io::Write as _;
    let path = place.results()?.join(LOG);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let added = file.and_then(|mut file| writeln!(file, "{line}"));
    added.with_context(|| format!("cannot write {}", path.display()))
}

/// The experiments of these names, or of a paper; all of them if there are no names.
pub(super) fn chosen<'a>(all: &'a [Experiment], names: &[String]) -> Result<Vec<&'a Experiment>> {
    Ok(manypath_lab::chosen(all, names)?)
}

/// What AXIS=LABEL means: an axis and a value of it, by index.
pub(super) fn axis_value(experiment: &Experiment, text: &str) -> Result<(usize, usize)> {
    let Some((name, label)) = text.split_once('=') else { bail!("'{text}' is not AXIS=LABEL") };
    let Some(at) = experiment.axes.iter().position(|axis| axis.name == name) else {
        let axes = experiment.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
        bail!("{} has no axis '{name}'; there are {axes}", experiment.id);
    };
    let values = &experiment.axes[at].values;
    let Some(index) = values.iter().position(|value| value.label == label) else {
        let known = values.iter().map(|value| value.label.as_str()).collect::<Vec<_>>().join(", ");
        bail!("{} has no {name} '{label}'; there are {known}", experiment.id);
    };
    Ok((at, index))
}

/// How much is run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Length {
    /// Enough to see the shape: everything in a quarter of an hour on two cores
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// As much as the papers did
    #[arg(long)]
    full: bool,
}

impl Length {
    /// The mode that was asked for, if one was.
    pub(super) fn mode(self) -> Option<Mode> {
        match (self.quick, self.full) {
            (true, _) => Some(Mode::Quick),
            (_, true) => Some(Mode::Full),
            _ => None,
        }
    }
}

/// What an experiment is judged and compared by: full runs where all are there, else quick ones, unless the user says.
pub(super) fn results<'a>(
    length: Length,
    experiment: &'a Experiment,
    kind: EngineKind,
    store: &Store,
) -> Result<(Mode, Results<'a>)> {
    let engine = engine(kind);
    let read = |mode| Results::read(experiment, (mode, experiment.seeds(mode)), engine.as_ref(), store);
    if let Some(mode) = length.mode() {
        return Ok((mode, read(mode)?));
    }
    let full = read(Mode::Full)?;
    let (there, wanted) = full.count();
    if there == wanted { Ok((Mode::Full, full)) } else { Ok((Mode::Quick, read(Mode::Quick)?)) }
}

/// Reads the name of an engine.
pub(super) fn parse_engine(name: &str) -> Result<EngineKind, String> {
    EngineKind::named(name).ok_or_else(|| {
        let known = EngineKind::ALL.map(EngineKind::as_str).join(", ");
        format!("there is no engine '{name}'; there are {known}")
    })
}
