//! Which runs an experiment needs, which of them are there, and how the others are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use manypath_scenario::{Scenario, Workload};
use sha2::{Digest, Sha256};

use crate::engine::{Engine, Input};
use crate::error::FileError;
use crate::experiment::{Case, EngineKind, Experiment, Mode};
use crate::models::Arguments;
use crate::store::{Record, Store, StoreError};

/// How often results are written at least, while runs go on.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// How many runs wait to be written at most.
const WRITE_AT: usize = 200;

/// A run that an experiment needs.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of which case.
    pub case: Case,
    /// Its seed, from one.
    pub seed: u32,
    /// Hash of scenario, code and seed.
    pub key: String,
    /// The code that decides its result.
    pub code: String,
    /// What is run, as text.
    pub text: String,
    /// How much work it is, in units of its own.
    pub cost: f64,
    input: Input,
}

impl Run {
    /// Its simulated time, which is how long it takes in real time.
    pub fn duration(&self) -> Duration {
        match &self.input {
            Input::Scenario(scenario) => scenario.duration.into(),
            Input::Theory(_) => Duration::ZERO,
        }
    }
}

/// Why runs cannot be planned or carried out.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An experiment file makes no sense.
    #[error(transparent)]
    File(#[from] FileError),
    /// Results cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Experiment, case and seed.
    pub run: String,
    /// Why.
    pub reason: String,
}

/// What became of the runs of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Runs that were there already.
    pub held: usize,
    /// Runs that were made.
    pub made: usize,
    /// Runs that the engine cannot make.
    pub skipped: Vec<Failure>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// Whether the user stopped it.
    pub stopped: bool,
}

/// All runs of an experiment.
///
/// # Errors
/// If a case makes no scenario, or there are more runs than memory holds.
pub fn runs(experiment: &Experiment, mode: Mode, seeds: u32, engine: &dyn Engine) -> Result<Vec<Run>, FileError> {
    experiment.check_runs(mode, seeds).map_err(|problem| experiment.source.error((0, problem)))?;
    let mut runs = Vec::new();
    for case in experiment.cases(mode) {
        let (text, input, cost, identity) = if let Some((text, scenario)) = experiment.scenario(&case, mode)? {
            let cost = cost(&scenario);
            // The scenario as it was understood: what is written differently is the same, a changed trace is not.
            let mut same = Scenario { name: String::new(), ..scenario.clone() };
            same.connections.iter_mut().for_each(|connection| connection.line = 0);
            let identity = format!("{same:?}");
            (text, Input::Scenario(Box::new(scenario)), cost, identity)
        } else if let Some(node) = experiment.theory(&case)? {
            let arguments = Arguments(node);
            let text = arguments.written();
            (text.clone(), Input::Theory(arguments), 1e5, text)
        } else {
            continue;
        };
        let code = engine.code_of(&input);
        for seed in 1..=seeds {
            let key = key(engine.kind(), &code, &identity, seed);
            let code = code.clone();
            runs.push(Run { case: case.clone(), seed, key, code, text: text.clone(), cost, input: input.clone() });
        }
    }
    Ok(runs)
}

fn key(engine: EngineKind, code: &str, identity: &str, seed: u32) -> String {
    let mut hash = Sha256::new();
    for part in [engine.as_str(), code, &seed.to_string(), identity] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The work of a run in bits that may be sent: what the slowest link of each path can carry.
fn cost(scenario: &Scenario) -> f64 {
    let rate = |link: usize| scenario.links[link].config.peak_rate().as_bps();
    let paths = scenario.connections.iter().flat_map(|connection| &connection.paths);
    let slowest = paths.filter_map(|path| path.forward.iter().copied().min_by(|a, b| rate(*a).total_cmp(&rate(*b))));
    let distinct: BTreeSet<usize> = slowest.collect();
    let capacity: f64 = distinct.into_iter().map(rate).sum();
    let files = scenario.connections.iter().map(|connection| match connection.workload {
        Workload::File(size) => Some(size.as_f64() * 8.0),
        _ => None,
    });
    let most = capacity * scenario.duration.as_secs_f64();
    files.sum::<Option<f64>>().map_or(most, |bits| bits.min(most)) + 1e6
}

/// The patterns of time series that an experiment reads.
pub(crate) fn series(experiments: &[&Experiment]) -> Vec<String> {
    let mut patterns = Vec::new();
    for experiment in experiments {
        patterns.extend(experiment.needs().into_iter().filter(|name| name.starts_with("series.")));
    }
    patterns.sort();
    patterns.dedup();
    patterns
}

/// Whether a run that kept these time series has all that is needed now.
pub(crate) fn has(kept: &str, needed: &[String]) -> bool {
    needed.iter().all(|pattern| kept.split(' ').any(|held| held == pattern))
}

/// Runs of an experiment and of all that are like it.
#[derive(Debug)]
pub struct Plan<'a> {
    experiment: &'a Experiment,
    missing: Vec<Run>,
    /// Runs that the engine cannot make, and why.
    skipped: Vec<(Run, String)>,
    /// The keys of the runs that are there already.
    held: BTreeSet<String>,
    /// The cases of each run, by its key: several may share one.
    cases: BTreeMap<String, Vec<Case>>,
    kept: Vec<String>,
}

impl<'a> Plan<'a> {
    /// What is to be done for an experiment. `users` are the experiments that read its runs, itself among them.
    ///
    /// # Errors
    /// If the experiment makes no sense or results cannot be read.
    pub fn new(
        experiment: &'a Experiment,
        users: &[&Experiment],
        (mode, seeds): (Mode, u32),
        engine: &dyn Engine,
        store: &Store,
    ) -> Result<Self, LabError> {
        let kept = series(users);
        let keys = store.keys(&experiment.runs_of)?;
        let mut missing: BTreeMap<String, Run> = BTreeMap::new();
        let (mut held, mut cases) = (BTreeSet::new(), BTreeMap::<_, Vec<_>>::new());
        for run in runs(experiment, mode, seeds, engine)? {
            cases.entry(run.key.clone()).or_default().push(run.case.clone());
            if keys.get(&run.key).is_some_and(|held| has(held, &kept)) {
                held.insert(run.key);
            } else {
                missing.entry(run.key.clone()).or_insert(run);
            }
        }
        let mut missing: Vec<Run> = missing.into_values().collect();
        let mut skipped = Vec::new();
        missing.retain(|run| match engine.check(&run.input) {
            Ok(()) => true,
            Err(error) => {
                skipped.push((run.clone(), error.to_string()));
                false
            }
        });
        // Long runs first: at the end no thread waits for one.
        missing.sort_by(|a, b| b.cost.total_cmp(&a.cost).then_with(|| (&a.case, a.seed).cmp(&(&b.case, b.seed))));
        Ok(Self { experiment, missing, skipped, held, cases, kept })
    }

    /// The experiment.
    pub fn experiment(&self) -> &'a Experiment {
        self.experiment
    }

    /// How many runs are to be made.
    pub fn len(&self) -> usize {
        self.missing.len()
    }

    /// Whether all runs are there.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    /// The work of all runs that are to be made.
    pub fn cost(&self) -> f64 {
        // From zero: an empty sum is minus zero.
        self.missing.iter().fold(0.0, |sum, run| sum + run.cost)
    }

    /// The simulated time of all runs that are to be made.
    pub fn duration(&self) -> Duration {
        self.missing.iter().map(Run::duration).sum()
    }

    /// Leaves out the runs of other cases than these: the values of each axis, by index, or none to take all of an axis.
    pub fn select(&mut self, values: &[Vec<usize>]) {
        let is_meant = |case: &Case| case.0.iter().zip(values).all(|(own, some)| some.is_empty() || some.contains(own));
        let fits = |key: &str| self.cases.get(key).is_some_and(|cases| cases.iter().any(is_meant));
        self.missing.retain(|run| fits(&run.key));
        self.skipped.retain(|(run, _)| fits(&run.key));
        self.held.retain(|key| fits(key));
    }

    /// Makes the missing runs that the engine can make, on `jobs` threads, or one where they run in real time; `progress`
    /// hears of each that is done. Results are written while it goes on; when `stop` becomes true, runs under way
    /// are finished and written.
    ///
    /// # Errors
    /// If results cannot be written.
    pub fn carry_out(
        &self,
        engine: &dyn Engine,
        jobs: usize,
        store: &Store,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&Run),
    ) -> Result<Outcome, LabError> {
        let next = AtomicUsize::new(0);
        let threads = if engine.is_real_time() { 1 } else { jobs };
        let (sender, receiver) = mpsc::channel();
        let skipped = self.skipped.iter().map(|(run, reason)| self.failure(run, reason.clone())).collect();
        let mut outcome = Outcome { held: self.held.len(), skipped, ..Outcome::default() };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, self.missing.len().max(1)) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(run) = self.missing.get(index) else { break };
                        let result = engine.run(&run.input, u64::from(run.seed));
                        if sender.send((index, result)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let (mut waiting, mut written) = (Vec::new(), Instant::now());
            for (index, result) in receiver {
                let run = &self.missing[index];
                match result {
                    Ok(quantities) => waiting.push(self.record(run, engine, quantities)),
                    Err(error) => outcome.failures.push(self.failure(run, error.to_string())),
                }
                progress(run);
                if waiting.len() >= WRITE_AT || written.elapsed() >= WRITE_EVERY {
                    store.add(&self.experiment.runs_of, &waiting)?;
                    outcome.made += waiting.len();
                    waiting.clear();
                    written = Instant::now();
                }
            }
            store.add(&self.experiment.runs_of, &waiting)?;
            outcome.made += waiting.len();
            Ok::<(), LabError>(())
        })?;
        outcome.stopped = outcome.made + outcome.failures.len() < self.missing.len();
        Ok(outcome)
    }

    fn record(&self, run: &Run, engine: &dyn Engine, mut quantities: crate::quantities::Quantities) -> Record {
        quantities.keep(&self.kept);
        Record {
            key: run.key.clone(),
            experiment: self.experiment.runs_of.clone(),
            engine: engine.kind().as_str().to_owned(),
            code: run.code.clone(),
            seed: run.seed.into(),
            case: self.experiment.describe(&run.case),
            scenario: run.text.clone(),
            kept: self.kept.join(" "),
            quantities,
        }
    }

    fn failure(&self, run: &Run, reason: String) -> Failure {
        let case = self.experiment.describe(&run.case);
        Failure { run: format!("{} with {case}, seed {}", self.experiment.id, run.seed), reason }
    }
}
