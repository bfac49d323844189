//! What other engines gave, beside the one that judges.

use super::either;
use crate::claim::Verdict;
use crate::draw::{Drawn, draw};
use crate::engine::Engine;
use crate::experiment::{Case, EngineKind, Experiment, Mode};
use crate::plan::LabError;
use crate::results::Results;
use crate::store::Store;
use crate::table::Table;

/// An experiment on another engine than the one that judges its claims, as far as it has been run there.
#[derive(Debug)]
pub struct Other {
    /// Which.
    pub engine: EngineKind,
    /// Which runs these are: full ones, unless there are more quick ones.
    pub mode: Mode,
    /// How many runs there are.
    pub runs: usize,
    /// How many of each case, at most.
    pub seeds: u32,
    /// The claims by these runs.
    pub verdicts: Vec<Verdict>,
    /// Its figures, if all cases have been run: title and picture.
    pub figures: Vec<(String, Drawn)>,
    /// What both engines ran.
    pub beside: Vec<Beside>,
}

/// A metric of a case on two engines, each the mean of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Axes and labels.
    pub case: String,
    /// What the metric is.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// By the engine that judges, if it ran the case.
    pub first: Option<f64>,
    /// By the other one.
    pub other: f64,
}

/// What has been run on `engine`, beside `first`; `None` if nothing has.
pub(super) fn other(
    experiment: &Experiment,
    engine: &dyn Engine,
    first: &dyn Engine,
    store: &Store,
) -> Result<Option<Other>, LabError> {
    let read = |mode, seeds| Results::read(experiment, (mode, seeds), engine, store);
    let [full, quick] = [Mode::Full, Mode::Quick].map(|mode| read(mode, experiment.seeds(mode)));
    let (full, quick) = (full?, quick?);
    let (mode, most) = if full.count().0 >= quick.count().0 { (Mode::Full, full) } else { (Mode::Quick, quick) };
    let Some(seeds) = most.seeds() else { return Ok(None) };
    // Real time is dear: as many seeds count as have been run.
    let results = read(mode, seeds)?;
    let table = results.table()?;
    let judging = Results::read(experiment, (mode, experiment.seeds(mode)), first, store)?.table()?;
    let (runs, wanted) = results.count();
    let mut figures = Vec::new();
    for figure in experiment.figures.iter().filter(|_| runs == wanted) {
        figures.push((format!("{} ({})", figure.title, engine.kind().as_str()), draw(figure, &results, &table)?));
    }
    Ok(Some(Other {
        engine: engine.kind(),
        mode,
        runs,
        seeds,
        verdicts: experiment.claims.iter().map(|claim| claim.judge(&table)).collect(),
        figures,
        beside: beside(experiment, mode, &judging, &table),
    }))
}

fn beside(experiment: &Experiment, mode: Mode, first: &Table<'_>, other: &Table<'_>) -> Vec<Beside> {
    let mean = |table: &Table<'_>, metric: &str, case: &Case| {
        let runs: Vec<f64> = table.get(metric, case).iter().flatten().copied().collect();
        (!runs.is_empty()).then(|| runs.iter().sum::<f64>() / runs.len() as f64)
    };
    let mut rows = Vec::new();
    for case in experiment.cases(mode) {
        for metric in &experiment.metrics {
            let Some(other) = mean(other, &metric.name, &case) else { continue };
            rows.push(Beside {
                case: experiment.describe(&case),
                title: metric.title.clone(),
                unit: metric.unit.clone(),
                first: mean(first, &metric.name, &case),
                other,
            });
        }
    }
    rows
}

impl Other {
    /// The words above its numbers.
    pub(super) fn title(&self) -> String {
        let each = if self.seeds == 1 { "one seed".to_owned() } else { format!("up to {} seeds", self.seeds) };
        let runs = either(self.runs, "run", "runs");
        format!("On {}: {} {} {runs}, {each}.", self.engine.as_str(), self.runs, self.mode.as_str())
    }

    /// Its numbers beside those of the engine that judges: a head and rows.
    pub(super) fn table(&self, first: EngineKind) -> (Vec<String>, Vec<Vec<String>>) {
        let engine = self.engine.as_str();
        let head = ["case", "what", first.as_str(), engine, &format!("{engine} is")].map(str::to_owned).to_vec();
        let row = |row: &Beside| {
            let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
            let apart = row.first.filter(|first| *first != 0.0).map(|first| 100.0 * (row.other / first - 1.0));
            vec![
                row.case.clone(),
                format!("{}{unit}", row.title),
                row.first.map_or("–".to_owned(), crate::claim::short),
                crate::claim::short(row.other),
                apart.filter(|apart| apart.is_finite()).map_or("–".to_owned(), |apart| format!("{apart:+.1}%")),
            ]
        };
        (head, self.beside.iter().map(row).collect())
    }
}
