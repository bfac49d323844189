//! The metrics of all cases of an experiment, as claims and figures see them.

use std::collections::BTreeMap;

use crate::experiment::{Case, Experiment, Mode};
use crate::expression::{Array, Dim, EvalError, Lookup, Selection};

/// Metrics by name, case and seed; what was not run is absent.
#[derive(Debug)]
pub struct Table<'a> {
    experiment: &'a Experiment,
    mode: Mode,
    seeds: u32,
    values: BTreeMap<(String, Case), Vec<Option<f64>>>,
}

/// Which runs of a case count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seeds {
    /// The mean over all.
    Mean,
    /// The one with this index.
    One(u32),
}

/// A table as one claim sees it: over which seeds, and with which labels exchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) table: &'a Table<'a>,
    pub(crate) seeds: Seeds,
    pub(crate) wrong: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// Whether what is missing is NaN in place of an error: figures show what there is.
    pub(crate) lenient: bool,
}

impl<'a> Table<'a> {
    /// A table without values.
    pub fn new(experiment: &'a Experiment, mode: Mode, seeds: u32) -> Self {
        Self { experiment, mode, seeds, values: BTreeMap::new() }
    }

    /// A table in which every metric is one: what expressions are checked with.
    pub(crate) fn of_ones(experiment: &'a Experiment, mode: Mode) -> Self {
        let mut table = Self::new(experiment, mode, 1);
        for case in experiment.cases(mode) {
            for metric in &experiment.metrics {
                table.set(&metric.name, &case, 0, 1.0);
            }
        }
        table
    }

    /// Sets the metric of the run of a case with the seed of this index; others stay as they are.
    pub fn set(&mut self, metric: &str, case: &Case, seed: u32, value: f64) {
        let runs = self.values.entry((metric.to_owned(), case.clone())).or_default();
        let index = seed as usize;
        if runs.len() <= index {
            runs.resize(index + 1, None);
        }
        runs[index] = Some(value);
    }

    /// The metric of every run of a case, by seed.
    pub fn get(&self, metric: &str, case: &Case) -> &[Option<f64>] {
        self.values.get(&(metric.to_owned(), case.clone())).map_or(&[], Vec::as_slice)
    }

    /// Which runs there should be.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many seeds there should be.
    pub fn seeds(&self) -> u32 {
        self.seeds
    }

    /// What it is a table of.
    pub fn experiment(&self) -> &'a Experiment {
        self.experiment
    }

    /// A metric of a case over seeds.
    fn value(&self, metric: &str, case: &Case, seeds: Seeds, lenient: bool) -> Result<f64, EvalError> {
        let runs = self.get(metric, case);
        let missing = || EvalError::Missing(format!("{metric} with {}", self.experiment.describe(case)));
        let at = |index: u32| runs.get(index as usize).copied().flatten().ok_or_else(missing);
        match seeds {
            Seeds::One(index) if lenient => Ok(at(index).unwrap_or(f64::NAN)),
            Seeds::One(index) => at(index),
            Seeds::Mean if lenient => {
                let values: Vec<f64> = runs.iter().flatten().copied().collect();
                Ok(values.iter().sum::<f64>() / values.len() as f64)
            }
            Seeds::Mean => {
                let values = (0..self.seeds).map(at).collect::<Result<Vec<f64>, _>>()?;
                if values.is_empty() { Err(missing()) } else { Ok(values.iter().sum::<f64>() / values.len() as f64) }
            }
        }
    }
}

impl View<'_> {
    /// For each axis the selected values: which there are, and whose runs stand for them.
    fn selected(&self, select: &[Selection]) -> Result<Vec<Vec<(usize, usize)>>, EvalError> {
        let experiment = self.table.experiment;
        for (place, (key, _)) in select.iter().enumerate() {
            if select[..place].iter().any(|(held, _)| held == key) {
                return Err(EvalError::Wrong(format!(
                    "'{key}' is selected twice: write [{key}=ONE|OTHER] for several"
                )));
            }
            let bound = |value: &crate::axis::AxisValue| value.bindings.contains_key(key);
            if !experiment.axes.iter().any(|axis| axis.name == *key || axis.values.iter().any(bound)) {
                let known = experiment.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(EvalError::Wrong(format!("there is no axis '{key}'; there are {known}")));
            }
        }
        let mut all = Vec::new();
        for axis in &experiment.axes {
            let part = axis.part(self.table.mode);
            let named = select.iter().find(|(key, _)| *key == axis.name);
            let mut values: Vec<usize> = match named {
                Some((_, labels)) => {
                    let mut found = Vec::new();
                    for label in labels {
                        let Some(index) = axis.values.iter().position(|value| value.label == *label) else {
                            let known = axis.values.iter().map(|value| value.label.as_str()).collect::<Vec<_>>();
                            let known = known.join(", ");
                            let wrong = format!("there is no {} '{label}'; there are {known}", axis.name);
                            return Err(EvalError::Wrong(wrong));
                        };
                        found.push(index);
                    }
                    found
                }
                None => part.iter().copied().filter(|index| !axis.values[*index].hidden).collect(),
            };
            for (key, labels) in select.iter().filter(|(key, _)| *key != axis.name) {
                if axis.values.iter().any(|value| value.bindings.contains_key(key)) {
                    values.retain(|index| {
                        axis.values[*index].bound(key).is_some_and(|held| labels.iter().any(|label| label == held))
                    });
                }
            }
            if let Some(index) = values.iter().find(|index| !part.contains(index)) {
                let label = &axis.values[*index].label;
                return Err(EvalError::Missing(format!("{} {label} is not part of a quick run", axis.name)));
            }
            if values.is_empty() {
                return Err(EvalError::Missing(format!("no {} that is selected is part of this run", axis.name)));
            }
            all.push(values.into_iter().map(|index| (index, self.stand_in(axis, index))).collect());
        }
        Ok(all)
    }

    /// Whose runs stand for a value: its own, unless the view is of a wrong variation.
    fn stand_in(&self, axis: &crate::axis::Axis, index: usize) -> usize {
        let other = self.wrong.get(&axis.name).and_then(|labels| labels.get(&axis.values[index].label));
        let found = other.and_then(|label| axis.values.iter().position(|value| value.label == *label));
        found.unwrap_or(index)
    }
}

impl Lookup for View<'_> {
    fn get(&self, name: &str, select: &[Selection]) -> Result<Array, EvalError> {
        let experiment = self.table.experiment;
        if experiment.metric(name).is_none() {
            let known = experiment.metrics.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(EvalError::Wrong(format!("there is no metric '{name}'; there are {known}")));
        }
        let selected = self.selected(select)?;
        let mut cases = vec![Vec::new()];
        for values in &selected {
            cases = cases
                .into_iter()
                .flat_map(|case| values.iter().map(move |(_, runs)| [case.as_slice(), &[*runs]].concat()))
                .collect();
        }
        let data = cases.into_iter().map(|case| self.table.value(name, &Case(case), self.seeds, self.lenient));
        let data = data.collect::<Result<Vec<f64>, _>>()?;
        // An axis of which one value was named is no dimension.
        let named =
            |axis: &crate::axis::Axis| select.iter().any(|(key, labels)| *key == axis.name && labels.len() == 1);
        let dims = experiment.axes.iter().zip(&selected).filter(|(axis, _)| !named(axis));
        let dim = |(axis, values): (&crate::axis::Axis, &Vec<(usize, usize)>)| Dim {
            name: axis.name.clone(),
            len: values.len(),
            labels: values.iter().map(|(index, _)| axis.values[*index].label.clone()).collect(),
            numbers: values.iter().map(|(index, _)| axis.values[*index].number).collect(),
        };
        Ok(Array { dims: dims.map(dim).collect(), data })
    }
}
