//! Two algorithms, metric by metric.

use std::collections::BTreeMap;

use crate::experiment::Case;
use crate::table::Table;

/// How two values of an axis compare in one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The axis.
    pub axis: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Means over all cases that both have.
    pub means: [f64; 2],
    /// In how many of them the first has the larger number.
    pub larger: usize,
    /// How many there are.
    pub cases: usize,
}

/// Compares the runs of two values of an axis, by label; nothing if no axis has both. Metrics that neither has are left out.
pub fn compare(table: &Table<'_>, first: &str, second: &str) -> Vec<Compared> {
    let experiment = table.experiment();
    let mut found = Vec::new();
    for (at, axis) in experiment.axes.iter().enumerate() {
        let index = |label: &str| axis.values.iter().position(|value| value.label == label);
        let (Some(one), Some(other)) = (index(first), index(second)) else { continue };
        for metric in &experiment.metrics {
            // The same case, but for the axis that is compared.
            let mut pairs: BTreeMap<Case, [Option<f64>; 2]> = BTreeMap::new();
            for case in experiment.cases(table.mode()) {
                let Some(side) = [one, other].iter().position(|index| *index == case.0[at]) else { continue };
                let runs: Vec<f64> = table.get(&metric.name, &case).iter().flatten().copied().collect();
                let mut key = case.clone();
                key.0[at] = 0;
                if !runs.is_empty() {
                    pairs.entry(key).or_default()[side] = Some(runs.iter().sum::<f64>() / runs.len() as f64);
                }
            }
            let pairs: Vec<[f64; 2]> = pairs.into_values().filter_map(|[one, other]| Some([one?, other?])).collect();
            if pairs.is_empty() {
                continue;
            }
            let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / pairs.len() as f64;
            found.push(Compared {
                axis: axis.name.clone(),
                metric: metric.name.clone(),
                unit: metric.unit.clone(),
                means: [mean(0), mean(1)],
                larger: pairs.iter().filter(|pair| pair[0] > pair[1]).count(),
                cases: pairs.len(),
            });
        }
    }
    found
}
