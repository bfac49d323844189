//! The lab: the papers' experiments, as `manypath lab` runs them.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use manypath_lab::{
    Case, Engine, EngineKind, Experiment, Failure, LabError as Refused, Mode, Plan, Results, Run, Store, Verdict,
    chosen, engine, nearest, runs_needed, short,
};
use manypath_output::{Table as GivenTable, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{LabError, raise, told};
use crate::simulate::LOOK_EVERY;
use crate::table::Table;

/// What became of runs.
#[pyclass(frozen, get_all, module = "manypath.lab")]
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Runs that were made.
    made: usize,
    /// Runs that were there already.
    held: usize,
    /// Runs that the engine cannot make, and why.
    skipped: Vec<(String, String)>,
    /// Runs that failed, and why.
    failures: Vec<(String, String)>,
}

#[pymethods]
impl Outcome {
    fn __repr__(&self) -> String {
        let (skipped, failed) = (self.skipped.len(), self.failures.len());
        format!("<Outcome: {} made, {} there already, {skipped} skipped, {failed} failed>", self.made, self.held)
    }
}

/// Where experiments and results are.
struct Place {
    experiments: PathBuf,
    results: PathBuf,
}

impl Place {
    /// As on the command line: the nearest folder `experiments`, here or above, and `lab-results` beside it.
    fn new(experiments: Option<PathBuf>, results: Option<PathBuf>) -> PyResult<Self> {
        let experiments = match experiments {
            Some(folder) => folder,
            None => nearest(&std::env::current_dir()?).ok_or_else(|| {
                raise::<LabError>("there is no folder 'experiments' here or above: give experiments=FOLDER")
            })?,
        };
        let results = results.unwrap_or_else(|| experiments.join("../lab-results"));
        Ok(Self { experiments, results })
    }

    fn load(&self) -> PyResult<Vec<Experiment>> {
        manypath_lab::load(&self.experiments).map_err(raise::<LabError>)
    }

    fn store(&self) -> Store {
        Store::new(self.results.clone())
    }
}

const fn mode(full: bool) -> Mode {
    if full { Mode::Full } else { Mode::Quick }
}

fn kind(name: Option<&str>) -> PyResult<Option<EngineKind>> {
    let unknown = |name| {
        let known = EngineKind::ALL.map(EngineKind::as_str).join(", ");
        PyValueError::new_err(format!("there is no engine '{name}'; there are {known}"))
    };
    name.map(|name| EngineKind::named(name).ok_or_else(|| unknown(name))).transpose()
}

/// The experiments: a table with a row each.
#[pyfunction]
#[pyo3(signature = (*names, experiments=None))]
pub(crate) fn lab_list(py: Python<'_>, names: Vec<String>, experiments: Option<PathBuf>) -> PyResult<Table> {
    let all = Place::new(experiments, None)?.load()?;
    let found = chosen(&all, &names).map_err(raise::<LabError>)?;
    let text = |pick: fn(&Experiment) -> String| Values::Text(found.iter().map(|held| pick(held)).collect());
    let whole = |pick: fn(&Experiment) -> usize| Values::Whole(found.iter().map(|held| pick(held) as u64).collect());
    let engines = |held: &Experiment| held.engines.iter().map(|engine| engine.as_str()).collect::<Vec<_>>().join(" ");
    let table = GivenTable::new("experiments", "One row an experiment.")
        .with("experiment", "Its name.", text(|held| held.id.clone()))
        .with("paper", "The paper.", text(|held| held.paper.clone()))
        .with("place", "Where in the paper.", text(|held| held.place.clone()))
        .with("title", "What it shows.", text(|held| held.title.clone()))
        .with("engines", "What it runs on; the first one judges its claims.", text(engines))
        .with("claims", "Claims of the paper.", whole(|held| held.claims.len()))
        .with("quick_runs", "Runs of quick length.", whole(|held| count(held, Mode::Quick)))
        .with("full_runs", "Runs of full length.", whole(|held| count(held, Mode::Full)));
    Table::new(py, table)
}

fn count(experiment: &Experiment, mode: Mode) -> usize {
    experiment.cases(mode).len() * experiment.seeds(mode) as usize
}

/// Runs experiments by name or paper, all without a name. What has been run with the same scenario, seed and code is not run
/// again. `progress` hears the share of the work that is done.
#[pyfunction]
#[pyo3(signature = (*names, full=false, jobs=None, seeds=None, engine=None, experiments=None, results=None, progress=None))]
#[allow(clippy::too_many_arguments)] // they are keywords
pub(crate) fn lab_run(
    py: Python<'_>,
    names: Vec<String>,
    full: bool,
    jobs: Option<NonZeroUsize>,
    seeds: Option<NonZeroU32>,
    engine: Option<&str>,
    experiments: Option<PathBuf>,
    results: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let (place, mode, wanted) = (Place::new(experiments, results)?, mode(full), kind(engine)?);
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let all = place.load()?;
    let found = chosen(&all, &names).map_err(raise::<LabError>)?;
    let store = place.store();
    let mut plans = Vec::new();
    for experiment in runs_needed(&all, &found) {
        let Some(carrier) = carrier(experiment, wanted) else { continue };
        if let Some(obstacle) = carrier.obstacle() {
            return Err(raise::<LabError>(format!(
                "the engine {} cannot run here: {obstacle}",
                carrier.kind().as_str()
            )));
        }
        let seeds = seeds.map_or_else(|| experiment.seeds(mode), NonZeroU32::get);
        let users: Vec<&Experiment> = all.iter().filter(|user| user.runs_of == experiment.id).collect();
        let plan = Plan::new(experiment, &users, (mode, seeds), carrier.as_ref(), &store).map_err(lab)?;
        plans.push((plan, carrier));
    }
    if plans.is_empty() {
        return Err(raise::<LabError>("none of these runs on that engine: manypath.lab.list() says which do"));
    }
    let (stop, total) = (AtomicBool::new(false), plans.iter().map(|(plan, _)| plan.cost()).sum::<f64>());
    let mut outcome = Outcome { made: 0, held: 0, skipped: Vec::new(), failures: Vec::new() };
    let (mut raised, mut done) = (None, 0.0);
    for (plan, carrier) in &plans {
        let mut hear = |share: Option<f64>| {
            let said = Python::attach(|py| {
                py.check_signals()?;
                let Some((progress, share)) = progress.as_ref().zip(share) else { return Ok(()) };
                progress.call1(py, (share,)).map(drop)
            });
            if let Err(error) = said {
                raised.get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let (store, stop) = (&store, &stop);
        // Only the thread that Python began with hears Ctrl-C: it listens, and another waits for runs.
        let part = py.detach(|| {
            let (sender, costs) = mpsc::channel();
            std::thread::scope(|scope| {
                let making = scope.spawn(move || {
                    let mut tell = |run: &Run| {
                        // Someone listens until this thread ends.
                        let _ = sender.send(run.cost);
                    };
                    plan.carry_out(carrier.as_ref(), jobs, store, stop, &mut tell)
                });
                loop {
                    match costs.recv_timeout(LOOK_EVERY) {
                        Ok(cost) => {
                            done += cost;
                            hear(Some(done / total));
                        }
                        Err(RecvTimeoutError::Timeout) => hear(None),
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                }
                making.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        // An interruption is what is to be said, even where results could not be written then.
        if let Some(raised) = raised {
            return Err(raised);
        }
        let part = part.map_err(lab)?;
        outcome.made += part.made;
        outcome.held += part.held;
        let pair = |failure: Failure| (failure.run, failure.reason);
        outcome.skipped.extend(part.skipped.into_iter().map(pair));
        outcome.failures.extend(part.failures.into_iter().map(pair));
    }
    Ok(outcome)
}

/// What carries out an experiment's runs; `None` if it does not run on the engine that is wanted.
fn carrier(experiment: &Experiment, wanted: Option<EngineKind>) -> Option<Box<dyn Engine>> {
    let kind = wanted.unwrap_or(experiment.engines[0]);
    experiment.engines.contains(&kind).then(|| engine(kind))
}

fn lab(error: Refused) -> PyErr {
    raise::<LabError>(told(&error))
}

/// The papers' claims and whether they hold by the runs that are there: a table with a row each. With `wrong` every claim's
/// wrong variation is in place, under which it should not hold.
#[pyfunction]
#[pyo3(signature = (*names, full=false, engine=None, wrong=false, experiments=None, results=None))]
pub(crate) fn lab_check(
    py: Python<'_>,
    names: Vec<String>,
    full: bool,
    engine: Option<&str>,
    wrong: bool,
    experiments: Option<PathBuf>,
    results: Option<PathBuf>,
) -> PyResult<Table> {
    let (place, mode, wanted) = (Place::new(experiments, results)?, mode(full), kind(engine)?);
    let all = place.load()?;
    let mut rows: Vec<[String; 7]> = Vec::new();
    for experiment in chosen(&all, &names).map_err(raise::<LabError>)? {
        let Some(carrier) = carrier(experiment, wanted) else { continue };
        let read = || Results::read(experiment, (mode, experiment.seeds(mode)), carrier.as_ref(), &place.store());
        let results = py.detach(read).map_err(lab)?;
        let table = results.table().map_err(lab)?;
        for claim in &experiment.claims {
            let verdict = if wrong { claim.judge_wrong(&table) } else { Some(claim.judge(&table)) };
            let Some(verdict) = verdict else { continue };
            let row = [
                &experiment.id,
                &claim.id,
                verdict.as_str(),
                &claim.says,
                &claim.place,
                &claim.number,
                &ours(&verdict),
            ];
            rows.push(row.map(str::to_owned));
        }
    }
    let column = |index: usize| Values::Text(rows.iter().map(|row| row[index].clone()).collect());
    let table = GivenTable::new("claims", "One row a claim.")
        .with("experiment", "Whose claim.", column(0))
        .with("claim", "Its name.", column(1))
        .with("verdict", "holds, does not hold, or not run.", column(2))
        .with("says", "The paper's words in short.", column(3))
        .with("place", "Where the paper says so.", column(4))
        .with("paper", "The paper's number.", column(5))
        .with("ours", "Our numbers, or what is missing.", column(6));
    Table::new(py, table)
}

fn ours(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NotRun(reason) => reason.clone(),
        Verdict::Holds(ours) | Verdict::Fails(ours) => {
            ours.values.iter().map(|value| short(*value)).collect::<Vec<_>>().join(" < ")
        }
    }
}

/// The metrics of an experiment's runs that are there: a table with a row for each case and seed, a column for each axis, and
/// one for each metric.
#[pyfunction]
#[pyo3(signature = (name, *, full=false, engine=None, experiments=None, results=None))]
pub(crate) fn lab_metrics(
    py: Python<'_>,
    name: &str,
    full: bool,
    engine: Option<&str>,
    experiments: Option<PathBuf>,
    results: Option<PathBuf>,
) -> PyResult<Table> {
    let (place, mode, wanted) = (Place::new(experiments, results)?, mode(full), kind(engine)?);
    let all = place.load()?;
    let experiment = all.iter().find(|held| held.id == name);
    let experiment = experiment.ok_or_else(|| raise::<LabError>(format!("there is no experiment '{name}'")))?;
    let Some(carrier) = carrier(experiment, wanted) else {
        return Err(raise::<LabError>(format!("'{name}' does not run on that engine")));
    };
    let read = || Results::read(experiment, (mode, experiment.seeds(mode)), carrier.as_ref(), &place.store());
    let results = py.detach(read).map_err(lab)?;
    let metrics = results.table().map_err(lab)?;
    let each = |case: &Case| (1..=experiment.seeds(mode)).map(|seed| (case.clone(), seed)).collect::<Vec<_>>();
    let rows = experiment.cases(mode).iter().flat_map(each).collect::<Vec<_>>().into_iter();
    let rows: Vec<(Case, u32)> = rows.filter(|(case, seed)| results.quantities(case, *seed).is_some()).collect();
    let mut table = GivenTable::new(name, &experiment.title);
    for (place, axis) in experiment.axes.iter().enumerate() {
        let labels = rows.iter().map(|(case, _)| axis.values[case.0[place]].label.clone()).collect();
        table = table.with(&axis.name, &axis.title, Values::Text(labels));
    }
    table = table.with("seed", "Seed of the run.", Values::Whole(rows.iter().map(|row| u64::from(row.1)).collect()));
    for metric in &experiment.metrics {
        let value = |(case, seed): &(Case, u32)| {
            metrics.get(&metric.name, case).get(*seed as usize - 1).copied().flatten().unwrap_or(f64::NAN)
        };
        let about =
            if metric.unit.is_empty() { metric.title.clone() } else { format!("{}, {}", metric.title, metric.unit) };
        table = table.with(&metric.name, &about, Values::Real(rows.iter().map(value).collect()));
    }
    Table::new(py, table)
}
