//! Figures.

use std::collections::BTreeMap;

use toml::Spanned;

use super::claims::{parsed, plain};
use crate::axis::Axis;
use crate::error::{Fault, Problem};
use crate::experiment::{Experiment, Mode};
use crate::expression::{EvalError, Expr, evaluate};
use crate::figure::{ErrorBars, Figure, FigureKind};
use crate::file::FigureTable;
use crate::table::{Seeds, Table, View};

pub(super) fn figure(made: &Experiment, table: &Spanned<FigureTable>) -> Result<Figure, Fault> {
    let (at, file) = (table.span().start, table.get_ref());
    let kinds = FigureKind::ALL.iter().map(|(name, _)| *name);
    let unknown = || (file.kind.span().start, Problem::unknown("kind of figure", file.kind.get_ref(), kinds));
    let (_, kind) = FigureKind::ALL.iter().find(|(name, _)| name == file.kind.get_ref()).ok_or_else(unknown)?;
    for name in [&file.x, &file.series, &file.panel].into_iter().flatten() {
        check_axis(made, name.get_ref(), name.span().start)?;
    }
    for (name, labels) in &file.only {
        let axis = check_axis(made, name, at)?;
        for label in labels {
            let known = || axis.values.iter().map(|value| value.label.as_str());
            if !known().any(|held| held == label) {
                return Err((at, Problem::unknown("value", label, known())));
            }
        }
    }
    let error = match file.error.as_ref().map(|error| (error.span().start, error.get_ref().as_str())) {
        None => None,
        Some((_, "min-max")) => Some(ErrorBars::MinMax),
        Some((_, "std")) => Some(ErrorBars::Deviation),
        Some((at, other)) => {
            return Err((at, Problem::unknown("kind of error bar", other, ["min-max", "std"].into_iter())));
        }
    };
    if file.y.is_empty() || (file.y.len() > 1 || !file.y_names.is_empty()) && file.y_names.len() != file.y.len() {
        let remedy = "give every expression of y its name in y-names";
        return Err((at, Problem::Missing { what: format!("the figure '{}'", file.title), key: "y-names", remedy }));
    }
    if matches!(kind, FigureKind::Lines | FigureKind::Table) && file.x.is_none() {
        let remedy = "write x = \"AXIS\"";
        return Err((at, Problem::Missing { what: format!("the figure '{}'", file.title), key: "x", remedy }));
    }
    if let (FigureKind::Table, Some(panel)) = (kind, &file.panel) {
        let what = format!("the figure '{}'", file.title);
        return Err((panel.span().start, Problem::Both { what, first: "panel", second: "kind = \"table\"" }));
    }
    let names = file
        .y
        .iter()
        .enumerate()
        .map(|(index, text)| (text.get_ref().clone(), file.y_names.get(index).cloned().unwrap_or_default()));
    let x_unit = file.x_unit.as_ref().map(|unit| plain(unit, "x-unit")).transpose()?.unwrap_or(1.0);
    let x_title = file.x.as_ref().and_then(|x| made.axes.iter().find(|axis| axis.name == *x.get_ref()));
    let time = if *kind == FigureKind::Time { "time (s)" } else { "" };
    let made_figure = Figure {
        title: file.title.clone(),
        kind: *kind,
        x: file.x.as_ref().map(|x| x.get_ref().clone()),
        x_label: file.x_label.clone().unwrap_or_else(|| x_title.map_or(time, |axis| &axis.title).to_owned()),
        x_unit,
        x_log: file.x_log,
        y: names.collect(),
        y_label: file.y_label.clone(),
        y_log: file.y_log,
        series: file.series.as_ref().map(|series| series.get_ref().clone()),
        panel: file.panel.as_ref().map(|panel| panel.get_ref().clone()),
        error,
        only: file.only.clone(),
        parsed: if kind.is_of_runs() { Vec::new() } else { file.y.iter().map(parsed).collect::<Result<_, _>>()? },
        at,
    };
    check_figure(made, &made_figure)?;
    Ok(made_figure)
}

fn check_axis<'a>(made: &'a Experiment, name: &str, at: usize) -> Result<&'a Axis, Fault> {
    let known = made.axes.iter().map(|axis| axis.name.as_str());
    made.axes.iter().find(|axis| axis.name == name).ok_or_else(|| (at, Problem::unknown("axis", name, known)))
}

/// The expressions of a figure make sense.
fn check_figure(made: &Experiment, figure: &Figure) -> Result<(), Fault> {
    let wrong = |text: &str, reason| (figure.at, Problem::Expression { text: text.to_owned(), reason });
    if figure.kind.is_of_runs() {
        for (text, _) in &figure.y {
            Expr::parse(text).map_err(|reason| wrong(text, reason))?;
        }
        return Ok(());
    }
    let table = Table::of_ones(made, Mode::Full);
    let view = View { table: &table, seeds: Seeds::Mean, wrong: &BTreeMap::new(), lenient: false };
    for (expr, (text, _)) in figure.parsed.iter().zip(&figure.y) {
        if let Err(EvalError::Wrong(reason)) = evaluate(expr, &view) {
            return Err(wrong(text, reason));
        }
    }
    Ok(())
}
