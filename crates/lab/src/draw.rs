//! Draws a figure from what has been run.

use std::collections::BTreeMap;

use manypath_output::{Axis as OutAxis, Figure as OutFigure, Mark, Panel, Series};

use crate::axis::Axis;
use crate::claim::short;
use crate::error::Problem;
use crate::experiment::{Case, Experiment};
use crate::expression::{Array, Expr, deviation, evaluate, number, percentile};
use crate::figure::{ErrorBars, Figure, FigureKind};
use crate::plan::LabError;
use crate::results::Results;
use crate::table::{Seeds, Table, View};
use crate::template::fill;

/// The most points of a curve.
const MOST_POINTS: usize = 600;

/// A drawn figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// A picture.
    Picture(OutFigure),
    /// Numbers: a head and rows.
    Table {
        /// Names of the columns.
        head: Vec<String>,
        /// One row for each value of the axis, its label first.
        rows: Vec<Vec<String>>,
    },
}

/// Draws a figure of an experiment. What has not been run is left out.
///
/// # Errors
/// If an expression makes no sense for a case.
pub fn draw(figure: &Figure, results: &Results<'_>, table: &Table<'_>) -> Result<Drawn, LabError> {
    let painter = Painter { figure, experiment: table.experiment(), results, table };
    match figure.kind {
        FigureKind::Lines => painter.lines(),
        FigureKind::Bars | FigureKind::Box => painter.bars(),
        FigureKind::Table => painter.table(),
        FigureKind::Time | FigureKind::Cdf => painter.curves(),
    }
}

struct Painter<'a> {
    figure: &'a Figure,
    experiment: &'a Experiment,
    results: &'a Results<'a>,
    table: &'a Table<'a>,
}

/// Something that is drawn: an expression, and labels that choose from its array.
struct Subject {
    label: String,
    y: usize,
    chosen: Vec<(String, String)>,
}

impl Painter<'_> {
    /// The labels of an axis that are shown.
    fn shown(&self, name: &str) -> Vec<String> {
        let Some(axis) = self.axis(name) else { return Vec::new() };
        let part = axis.part(self.table.mode()).into_iter().map(|index| &axis.values[index]);
        let only = self.figure.only.get(name);
        let wanted = part.filter(|value| match only {
            Some(labels) => labels.contains(&value.label),
            None => !value.hidden,
        });
        wanted.map(|value| value.label.clone()).collect()
    }

    fn axis(&self, name: &str) -> Option<&Axis> {
        self.experiment.axes.iter().find(|axis| axis.name == name)
    }

    /// What a value is called where its axis is not in sight: a bare number says nothing alone.
    fn named(&self, axis: &str, label: &str) -> String {
        if label.starts_with(|c: char| c.is_ascii_digit()) { format!("{axis} {label}") } else { label.to_owned() }
    }

    /// The panels: what each is called and what it chooses.
    fn panels(&self) -> Vec<(String, Vec<(String, String)>)> {
        match &self.figure.panel {
            None => vec![(String::new(), Vec::new())],
            Some(axis) => {
                let labels = self.shown(axis).into_iter();
                labels.map(|label| (self.named(axis, &label), vec![(axis.clone(), label)])).collect()
            }
        }
    }

    /// What is drawn in a panel.
    fn subjects(&self, panel: &[(String, String)]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (y, (_, name)) in self.figure.y.iter().enumerate() {
            let Some(axis) = &self.figure.series else {
                subjects.push(Subject { label: name.clone(), y, chosen: panel.to_vec() });
                continue;
            };
            for label in self.shown(axis) {
                let mut chosen = panel.to_vec();
                chosen.push((axis.clone(), label.clone()));
                let label = self.named(axis, &label);
                let label = if name.is_empty() { label } else { format!("{label}, {name}") };
                subjects.push(Subject { label, y, chosen });
            }
        }
        subjects
    }

    /// The value of each expression over some seeds.
    fn arrays(&self, seeds: Seeds) -> Vec<Option<Array>> {
        let view = View { table: self.table, seeds, wrong: &BTreeMap::new(), lenient: true };
        self.figure.parsed.iter().map(|expr| evaluate(expr, &view).ok()).collect()
    }

    /// All numbers of a subject at a place of the x axis, other axes as far as they are shown; NaN where a case has none.
    fn numbers(&self, arrays: &[Option<Array>], subject: &Subject, x: Option<(&str, &str)>) -> Vec<f64> {
        let Some(array) = arrays.get(subject.y).and_then(Option::as_ref) else { return Vec::new() };
        let mut array = array.clone();
        let chosen = subject.chosen.iter().map(|(axis, label)| (axis.as_str(), label.as_str()));
        for (axis, label) in chosen.chain(x) {
            array = array.at(axis, |held| held == label);
        }
        for (axis, labels) in &self.figure.only {
            array = array.at(axis, |held| labels.iter().any(|label| label == held));
        }
        array.data
    }

    /// The places along x: labels, and numbers where all labels are such.
    fn places(&self) -> (Vec<String>, Option<Vec<f64>>) {
        let Some(axis) = &self.figure.x else { return (Vec::new(), None) };
        let labels = self.shown(axis);
        let numbers: Option<Vec<f64>> =
            labels.iter().map(|label| number(label).map(|number| number / self.figure.x_unit)).collect();
        (labels, numbers)
    }

    /// Names of places without the unit that the axis names: `20packets` of `buffer (packets)` is `20`.
    fn without_unit(&self, labels: Vec<String>) -> Vec<String> {
        let unit = self.figure.x_label.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let Some(unit) = unit else { return labels };
        let bare = |label: &String| Some(label.strip_suffix(unit)?.to_owned()).filter(|bare| number(bare).is_some());
        let bare: Option<Vec<String>> = labels.iter().map(bare).collect();
        bare.unwrap_or(labels)
    }

    fn picture(&self, names: Vec<String>, panels: Vec<Panel>) -> Drawn {
        // Of a distribution the numbers lie along x, and their share along y.
        let is_cdf = self.figure.kind == FigureKind::Cdf;
        let label = if is_cdf { &self.figure.y_label } else { &self.figure.x_label };
        let x = OutAxis { log: self.figure.x_log, names: self.without_unit(names), ..OutAxis::new(label) };
        Drawn::Picture(OutFigure { title: self.figure.title.clone(), x, panels })
    }

    fn y_axis(&self) -> OutAxis {
        let label = if self.figure.kind == FigureKind::Cdf { "share" } else { self.figure.y_label.as_str() };
        OutAxis { log: self.figure.y_log, ..OutAxis::new(label) }
    }

    /// What is drawn at a place: the mean of all cases there. Nothing where one of them has no number, or an infinite one: the
    /// mean of the rest would be another quantity.
    fn point(&self, means: &[Option<Array>], subject: &Subject, x: Option<(&str, &str)>) -> f64 {
        let value = mean(&self.numbers(means, subject, x));
        if value.is_finite() { value } else { f64::NAN }
    }

    /// The mean of each seed that has one.
    fn each(&self, runs: &[Vec<Option<Array>>], subject: &Subject, x: Option<(&str, &str)>) -> Vec<f64> {
        let means = runs.iter().map(|arrays| mean(&self.numbers(arrays, subject, x)));
        means.filter(|value| value.is_finite()).collect()
    }

    /// How far single seeds are from the mean.
    fn spread(&self, means: &[f64]) -> Option<(f64, f64)> {
        match self.figure.error? {
            _ if means.len() < 2 => None,
            ErrorBars::MinMax => Some(extent(means)),
            ErrorBars::Deviation => {
                let (middle, off) = (mean(means), deviation(means));
                Some((middle - off, middle + off))
            }
        }
    }

    /// The ends of a bar or a line at a place that show the spread. They are no further than any seed was, as a deviation
    /// may reach what cannot be: an index above one, a time below zero.
    fn ends(&self, runs: &[Vec<Option<Array>>], subject: &Subject, x: Option<(&str, &str)>) -> Option<(f64, f64)> {
        let means = self.each(runs, subject, x);
        let (least, most) = extent(&means);
        self.spread(&means).map(|(low, high)| (low.max(least), high.min(most)))
    }

    fn seeds(&self) -> Vec<Vec<Option<Array>>> {
        (0..self.table.seeds()).map(|seed| self.arrays(Seeds::One(seed))).collect()
    }

    fn lines(&self) -> Result<Drawn, LabError> {
        let (labels, numbers) = self.places();
        let axis = self.figure.x.clone().unwrap_or_default();
        let (means, runs) = (self.arrays(Seeds::Mean), self.seeds());
        let panels = self.panels().into_iter().map(|(name, chosen)| {
            let series = self.subjects(&chosen).into_iter().map(|subject| {
                let mut series =
                    Series { label: subject.label.clone(), mark: Mark::LineAndPoints, ..Series::default() };
                for (place, label) in labels.iter().enumerate() {
                    let x = Some((axis.as_str(), label.as_str()));
                    let value = self.point(&means, &subject, x);
                    let at = numbers.as_ref().map_or(place as f64, |numbers| numbers[place]);
                    series.points.push((at, value));
                    series.spread.push(self.ends(&runs, &subject, x).unwrap_or((value, value)));
                }
                series
            });
            Panel { title: name, y: self.y_axis(), series: series.collect() }
        });
        let panels = panels.collect();
        let names = if numbers.is_some() { Vec::new() } else { labels };
        Ok(self.picture(names, panels))
    }

    fn bars(&self) -> Result<Drawn, LabError> {
        let (means, runs) = (self.arrays(Seeds::Mean), self.seeds());
        let (labels, _) = self.places();
        let axis = self.figure.x.clone().unwrap_or_default();
        let mut names = labels.clone();
        let mut panels = Vec::new();
        for (name, chosen) in self.panels() {
            let mut subjects = self.subjects(&chosen);
            let mut all = Vec::new();
            if labels.is_empty() {
                // Without an axis each subject is a place of its own.
                names = subjects.iter().map(|subject| subject.label.clone()).collect();
                let mut series = self.broad(String::new());
                for (place, subject) in subjects.drain(..).enumerate() {
                    self.add_broad(&mut series, (place, None), &subject, (&means, &runs));
                }
                all.push(series);
            }
            for subject in subjects {
                let mut series = self.broad(subject.label.clone());
                for (place, label) in labels.iter().enumerate() {
                    self.add_broad(&mut series, (place, Some((&axis, label))), &subject, (&means, &runs));
                }
                all.push(series);
            }
            panels.push(Panel { title: name, y: self.y_axis(), series: all });
        }
        Ok(self.picture(names, panels))
    }

    fn broad(&self, label: String) -> Series {
        let mark = if self.figure.kind == FigureKind::Box { Mark::Boxes } else { Mark::Bars };
        Series { label, mark, ..Series::default() }
    }

    /// Adds a bar or a box.
    fn add_broad(
        &self,
        series: &mut Series,
        (place, x): (usize, Option<(&str, &str)>),
        subject: &Subject,
        (means, runs): (&[Option<Array>], &[Vec<Option<Array>>]),
    ) {
        if series.mark == Mark::Bars {
            let value = self.point(means, subject, x);
            series.points.push((place as f64, value));
            series.spread.push(self.ends(runs, subject, x).unwrap_or((value, value)));
            return;
        }
        // As distributions, boxes are of the numbers that are there.
        let all = runs.iter().flat_map(|arrays| self.numbers(arrays, subject, x)).filter(|value| value.is_finite());
        let all: Vec<f64> = all.collect();
        let at = |share| percentile(&all, share);
        series.points.push((place as f64, at(0.5)));
        series.quartiles.push((at(0.25), at(0.75)));
        series.spread.push((at(0.05), at(0.95)));
    }

    fn table(&self) -> Result<Drawn, LabError> {
        let (labels, _) = self.places();
        let axis = self.figure.x.clone().unwrap_or_default();
        let (means, runs) = (self.arrays(Seeds::Mean), self.seeds());
        let subjects = self.subjects(&[]);
        let head = core::iter::once(self.figure.x_label.clone());
        let head = head.chain(subjects.iter().map(|subject| subject.label.clone())).collect();
        let row = |label: &String| {
            let x = Some((axis.as_str(), label.as_str()));
            let cells = subjects.iter().map(|subject| {
                let value = mean(&self.numbers(&means, subject, x));
                let off = self.spread(&self.each(&runs, subject, x)).map(|(low, high)| (high - low) / 2.0);
                match off {
                    Some(off) => format!("{} ± {}", short(value), short(off)),
                    None => short(value),
                }
            });
            core::iter::once(label.clone()).chain(cells).collect()
        };
        Ok(Drawn::Table { head, rows: labels.iter().map(row).collect() })
    }

    fn curves(&self) -> Result<Drawn, LabError> {
        let mut panels = Vec::new();
        for (name, chosen) in self.panels() {
            let mut series = Vec::new();
            for subject in self.subjects(&chosen) {
                let points = match self.figure.kind {
                    FigureKind::Time => self.over_time(&subject)?,
                    _ => self.distribution(&subject)?,
                };
                let mark = if self.figure.kind == FigureKind::Cdf { Mark::Steps } else { Mark::Line };
                series.push(Series { label: subject.label, points, mark, ..Series::default() });
            }
            panels.push(Panel { title: name, y: self.y_axis(), series });
        }
        Ok(self.picture(Vec::new(), panels))
    }

    /// The cases of a subject: its choices, and what is shown of other axes.
    fn cases(&self, subject: &Subject) -> Vec<Case> {
        let fits = |case: &Case| {
            self.experiment.axes.iter().zip(&case.0).all(|(axis, index)| {
                let label = &axis.values[*index].label;
                match subject.chosen.iter().find(|(name, _)| *name == axis.name) {
                    Some((_, wanted)) => label == wanted,
                    None => self.shown(&axis.name).contains(label),
                }
            })
        };
        self.experiment.cases(self.table.mode()).into_iter().filter(fits).collect()
    }

    /// The list that an expression gives for a run.
    fn list(&self, subject: &Subject, case: &Case, seed: u32) -> Result<Option<Array>, LabError> {
        let Some(quantities) = self.results.quantities(case, seed) else { return Ok(None) };
        let text = &self.figure.y[subject.y].0;
        let wrong = |problem| self.experiment.source.error((self.figure.at, problem));
        let text = fill(text, &self.experiment.bindings(case)).map_err(wrong)?;
        let expr = Expr::parse(&text).map_err(|reason| wrong(Problem::Expression { text: text.clone(), reason }))?;
        Ok(evaluate(&expr, quantities).ok())
    }

    /// The first seed of the first case, over time.
    fn over_time(&self, subject: &Subject) -> Result<Vec<(f64, f64)>, LabError> {
        let Some(case) = self.cases(subject).into_iter().next() else { return Ok(Vec::new()) };
        let Some(list) = self.list(subject, &case, 1)? else { return Ok(Vec::new()) };
        let times = self.results.quantities(&case, 1).and_then(|quantities| quantities.0.get("series.time_s"));
        let times = times.map_or(&[][..], Vec::as_slice);
        if times.len() != list.data.len() {
            let (text, count) = (self.figure.y[subject.y].0.clone(), list.data.len());
            let reason = format!(
                "it gives {count} of {} times a number: write one of series.NAME as a whole, without between or a '*' that \
                 fits several, and sample in the scenario",
                times.len()
            );
            return Err(self.experiment.source.error((self.figure.at, Problem::Expression { text, reason })).into());
        }
        Ok(times.iter().copied().zip(list.data).collect())
    }

    /// The share of numbers that are not larger, over all cases and seeds.
    fn distribution(&self, subject: &Subject) -> Result<Vec<(f64, f64)>, LabError> {
        let mut all = Vec::new();
        for case in self.cases(subject) {
            for seed in 1..=self.table.seeds() {
                all.extend(self.list(subject, &case, seed)?.into_iter().flat_map(|list| list.data));
            }
        }
        all.retain(|value| value.is_finite());
        all.sort_unstable_by(f64::total_cmp);
        let count = all.len();
        let every = count.div_ceil(MOST_POINTS).max(1);
        let shown = all.iter().enumerate().filter(|(index, _)| index % every == 0 || index + 1 == count);
        Ok(shown.map(|(index, value)| (value / self.figure.x_unit, (index + 1) as f64 / count as f64)).collect())
    }
}

/// The mean; NaN of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The least and the most.
fn extent(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)))
}
