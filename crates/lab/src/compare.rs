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
    /// Means over all cases in which both have a number.
    pub means: [f64; 2],
    /// In how many of them the first has the larger number.
    pub larger: usize,
    /// How many there are.
    pub cases: usize,
    /// How many more there should be, in which one of the two was not run or gave no number.
    pub missing: usize,
}

/// Compares the runs of two values of an axis, by label; nothing if no axis has both. Metrics that neither has are left out, and
/// so are runs that exist only to show that a claim can fail.
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
                let mut others = experiment.axes.iter().zip(&case.0).enumerate().filter(|(place, _)| *place != at);
                if others.any(|(_, (axis, index))| axis.values[*index].hidden) {
                    continue;
                }
                let runs: Vec<f64> = table.get(&metric.name, &case).iter().flatten().copied().collect();
                let mut key = case.clone();
                key.0[at] = 0;
                let mean = runs.iter().sum::<f64>() / runs.len() as f64;
                pairs.entry(key).or_default()[side] = Some(mean).filter(|mean| !mean.is_nan());
            }
            let wanted = pairs.len();
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
                missing: wanted - pairs.len(),
            });
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::Mode;
    use crate::load::experiments;

    const EXPERIMENT: &str = r#"title = "t"
paper = "mpcc"
place = "p"
about = "a"
duration = "1s"
seeds = { quick = 2, full = 2 }
[[axis]]
name = "cc"
of = "controllers"
values = ["mpcc-loss", "lia", { label = "greedy", cc = "reno", hidden = true }]
[[axis]]
name = "rate"
values = ["1Mbit", "2Mbit", { label = "broken", rate = "3Mbit", hidden = true }]
[scenario]
topology = "two-links"
[[scenario.connection]]
name = "mp"
role = "mp"
cc = "{cc}"
rate-limit = "{rate}"
[metric.jain]
title = "Jain's index"
value = "jain"
"#;

    /// A table with these values by case: the mean of two seeds, one below and one above it.
    fn compared(first: &str, second: &str, value: impl Fn(&Case) -> Option<f64>) -> Vec<Compared> {
        let texts = [("x-fig1".to_owned(), "x-fig1.toml".to_owned(), EXPERIMENT.to_owned())];
        let experiment = experiments(&texts, Path::new(".")).unwrap().remove(0);
        let mut table = Table::new(&experiment, Mode::Quick, 2);
        for case in experiment.cases(Mode::Quick) {
            let Some(value) = value(&case) else { continue };
            table.set("jain", &case, 0, value - 0.5);
            table.set("jain", &case, 1, value + 0.5);
        }
        compare(&table, first, second)
    }

    #[test]
    fn runs_of_wrong_variations_do_not_count() {
        // 10 and 20 for the first, 11 and 19 for the second; what is hidden is far away.
        let value = |case: &Case| Some([[10.0, 20.0, 1e6], [11.0, 19.0, 1e7], [1.0, 2.0, 3.0]][case.0[0]][case.0[1]]);
        let found = compared("mpcc-loss", "lia", value).remove(0);
        assert_eq!((found.means, found.larger, found.cases, found.missing), ([15.0, 15.0], 1, 2, 0));
        // One that is named counts: these are runs like others.
        assert_eq!(compared("greedy", "lia", value).remove(0).means, [1.5, 15.0]);
    }

    #[test]
    fn cases_without_a_number_are_counted_and_not_averaged() {
        let value = |case: &Case| match case.0[..] {
            [0, 1] => Some(f64::NAN),
            _ => Some(4.0),
        };
        let found = compared("mpcc-loss", "lia", value).remove(0);
        assert_eq!((found.means, found.cases, found.missing), ([4.0, 4.0], 1, 1));
        let found = compared("mpcc-loss", "lia", |case| (case.0 != [1, 0]).then_some(4.0)).remove(0);
        assert_eq!((found.cases, found.missing), (1, 1));
        assert!(compared("mpcc-loss", "lia", |_| None).is_empty());
    }
}
