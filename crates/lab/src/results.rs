//! From stored runs to the metrics of an experiment.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::experiment::{Case, Experiment, Mode};
use crate::expression::{Array, EvalError, Expr, evaluate};
use crate::plan::{LabError, has, runs, series};
use crate::quantities::Quantities;
use crate::store::Store;
use crate::table::Table;

/// The runs of an experiment that are there, with the quantities that it reads.
#[derive(Debug)]
pub struct Results<'a> {
    experiment: &'a Experiment,
    mode: Mode,
    seeds: u32,
    runs: BTreeMap<(Case, u32), Quantities>,
    /// How many there should be.
    wanted: usize,
    /// Whether they are of the engine that judges, which measures all that the experiment reads.
    judges: bool,
}

impl<'a> Results<'a> {
    /// Reads what is there.
    ///
    /// # Errors
    /// If the experiment makes no sense or results cannot be read.
    pub fn read(
        experiment: &'a Experiment,
        (mode, seeds): (Mode, u32),
        engine: &dyn Engine,
        store: &Store,
    ) -> Result<Self, LabError> {
        let mut patterns = experiment.needs();
        patterns.push("series.time_s".to_owned());
        let stored = store.quantities(&experiment.runs_of, &patterns)?;
        // A run from when other time series were asked for is not the one that is: `Plan` makes it again.
        let (kept, needed) = (store.keys(&experiment.runs_of)?, series(&[experiment]));
        let wanted = runs(experiment, mode, seeds, engine)?;
        let count = wanted.len();
        let mut found = BTreeMap::new();
        for run in wanted {
            // Cases may share a run, so it is not taken out.
            if let Some(quantities) =
                stored.get(&run.key).filter(|_| kept.get(&run.key).is_some_and(|kept| has(kept, &needed)))
            {
                found.insert((run.case, run.seed), quantities.clone());
            }
        }
        let judges = experiment.engines.first() == Some(&engine.kind());
        Ok(Self { experiment, mode, seeds, runs: found, wanted: count, judges })
    }

    /// How many runs are there, and how many there should be.
    pub fn count(&self) -> (usize, usize) {
        (self.runs.len(), self.wanted)
    }

    /// The most runs of a case; `None` if there are none at all.
    pub fn seeds(&self) -> Option<u32> {
        self.runs.keys().map(|(_, seed)| *seed).max()
    }

    /// The metrics of all runs.
    ///
    /// # Errors
    /// If an expression makes no sense for a case.
    pub fn table(&self) -> Result<Table<'a>, LabError> {
        let mut table = Table::new(self.experiment, self.mode, self.seeds);
        let mut parsed: Option<(Case, Vec<Expr>)> = None;
        for ((case, seed), quantities) in &self.runs {
            if parsed.as_ref().is_none_or(|(held, _)| held != case) {
                let each = self.experiment.metrics.iter().map(|metric| self.experiment.expression(metric, case));
                parsed = Some((case.clone(), each.collect::<Result<_, _>>()?));
            }
            let expressions = parsed.iter().flat_map(|(_, expressions)| expressions);
            for (metric, expr) in self.experiment.metrics.iter().zip(expressions) {
                let one = |array: Array| match array.data[..] {
                    [] => Ok(f64::NAN),
                    [value] => Ok(value),
                    _ => Err(EvalError::Wrong(format!("a metric is one number, not {}", array.data.len()))),
                };
                match evaluate(expr, quantities).and_then(one) {
                    Ok(value) => table.set(&metric.name, case, seed - 1, value),
                    // What an engine that measures everything did not find is not there: no number, and no claim on it holds.
                    Err(EvalError::Missing(_)) if self.judges => table.set(&metric.name, case, seed - 1, f64::NAN),
                    // Another engine may not measure it: then it is missing where a claim asks for it.
                    Err(EvalError::Missing(_)) => {}
                    Err(EvalError::Wrong(reason)) => {
                        let text = metric.value.clone();
                        let problem = crate::error::Problem::Expression { text, reason };
                        return Err(self.experiment.metric_error(metric, problem).into());
                    }
                }
            }
        }
        Ok(table)
    }

    /// The quantities of a run.
    pub fn quantities(&self, case: &Case, seed: u32) -> Option<&Quantities> {
        self.runs.get(&(case.clone(), seed))
    }
}

impl Experiment {
    /// The patterns of quantities that metrics and figures read.
    pub(crate) fn needs(&self) -> Vec<String> {
        let mut patterns = Vec::new();
        let mut add = |expr: &Expr| {
            expr.names(&mut |name, _| {
                if !patterns.iter().any(|held| held == name) {
                    patterns.push(name.to_owned());
                }
            });
        };
        let cases = self.cases(Mode::Full);
        let of_runs = self.figures.iter().filter(|figure| figure.kind.is_of_runs()).flat_map(|figure| &figure.y);
        let figures: Vec<Expr> = of_runs.filter_map(|(text, _)| Expr::parse(text).ok()).collect();
        figures.iter().for_each(&mut add);
        for metric in &self.metrics {
            // Placeholders in names make names that differ from case to case.
            let named = cases.iter().filter(|_| metric.value.contains('{'));
            let each = named.chain(cases.first().filter(|_| !metric.value.contains('{')));
            for case in each {
                if let Ok(expr) = self.expression(metric, case) {
                    add(&expr);
                }
            }
        }
        patterns.sort();
        patterns
    }
}
