//! Claims, and the expressions in them.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::claim::{Claim, Kind, Statement, Tolerance};
use crate::error::{Fault, Problem};
use crate::experiment::{Experiment, Mode};
use crate::expression::{EvalError, Expr, number};
use crate::file::{ClaimTable, Level};
use crate::table::{Seeds, Table, View};

pub(super) fn parsed(text: &Spanned<String>) -> Result<Expr, Fault> {
    Expr::parse(text.get_ref())
        .map_err(|reason| (text.span().start, Problem::Expression { text: text.get_ref().clone(), reason }))
}

fn level(level: &Spanned<Level>) -> Result<Expr, Fault> {
    match level.get_ref() {
        Level::Number(number) => Ok(Expr::Number(*number)),
        Level::Text(text) => {
            Expr::parse(text).map_err(|reason| (level.span().start, Problem::Expression { text: text.clone(), reason }))
        }
    }
}

/// A plain number, or one with a unit.
pub(super) fn plain(level: &Spanned<Level>, what: &str) -> Result<f64, Fault> {
    let (found, text) = match level.get_ref() {
        Level::Number(number) => (Some(*number), number.to_string()),
        Level::Text(text) => (number(text), text.clone()),
    };
    found.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| {
        let range = "a number that is not negative, like 0.05 or \"5%\"";
        (level.span().start, Problem::OutOfRange { what: what.to_owned(), value: text, range })
    })
}

/// The slack of an order: a share, so it has no unit.
fn share(slack: &Spanned<Level>) -> Result<f64, Fault> {
    match slack.get_ref() {
        Level::Text(text) if text.trim().strip_suffix('%').unwrap_or(text).trim().parse::<f64>().is_err() => {
            let (what, range) = ("slack".to_owned(), "a share, like 0.02 or \"2%\"");
            Err((slack.span().start, Problem::OutOfRange { what, value: text.clone(), range }))
        }
        _ => plain(slack, "slack"),
    }
}

pub(super) fn claims(made: &Experiment, tables: &[Spanned<ClaimTable>]) -> Result<Vec<Claim>, Fault> {
    let mut claims: Vec<Claim> = Vec::new();
    for table in tables {
        let (at, file) = (table.span().start, table.get_ref());
        let id = file.id.get_ref();
        if claims.iter().any(|held| held.id == *id) {
            return Err((file.id.span().start, Problem::Twice { what: "the claim", name: id.clone() }));
        }
        check_wrong(made, file, at)?;
        let claim = Claim {
            id: id.clone(),
            says: file.says.clone(),
            place: file.place.clone(),
            number: file.number.clone(),
            unit: file.unit.clone(),
            statement: Statement(statement(file, at)?),
            wrong: file.wrong.clone(),
            analysis: file.analysis.clone(),
        };
        check_statement(made, &claim, at)?;
        claims.push(claim);
    }
    Ok(claims)
}

fn check_wrong(made: &Experiment, file: &ClaimTable, at: usize) -> Result<(), Fault> {
    if file.wrong.is_empty() {
        let remedy = "write wrong = { AXIS = { LABEL = \"OTHER\" } }: other runs, under which the claim must fail";
        let what = format!("the claim '{}'", file.id.get_ref());
        return Err((at, Problem::Missing { what, key: "wrong", remedy }));
    }
    for (name, labels) in &file.wrong {
        let known = made.axes.iter().map(|axis| axis.name.as_str());
        let axis = made.axes.iter().find(|axis| axis.name == *name);
        let axis = axis.ok_or_else(|| (at, Problem::unknown("axis", name, known)))?;
        for label in labels.iter().flat_map(|(label, other)| [label, other]) {
            let mut known = axis.values.iter().map(|value| value.label.as_str());
            if !known.clone().any(|held| held == label) {
                return Err((at, Problem::unknown("value", label, &mut known)));
            }
        }
    }
    Ok(())
}

fn statement(file: &ClaimTable, at: usize) -> Result<Kind, Fault> {
    let what = || format!("the claim '{}'", file.id.get_ref());
    let missing = |key, remedy| (at, Problem::Missing { what: what(), key, remedy });
    let both = |first, second| Err((at, Problem::Both { what: what(), first, second }));
    if file.within.is_some() && file.equals.is_none() {
        return Err(missing("equals", "write equals = NUMBER beside within, or leave within out"));
    }
    if let Some(order) = &file.order {
        if file.value.is_some() {
            return both("order", "value");
        }
        if file.least.is_some() || file.most.is_some() || file.equals.is_some() {
            return both("order", "least, most or equals");
        }
        if order.len() < 2 {
            let range = "two expressions or more";
            return Err((at, Problem::OutOfRange { what: "order".to_owned(), value: "shorter".to_owned(), range }));
        }
        let slack = file.slack.as_ref().map(share).transpose()?.unwrap_or(0.0);
        return Ok(Kind::Order(order.iter().map(parsed).collect::<Result<_, _>>()?, slack));
    }
    let remedy = "write value = \"EXPRESSION\", or order = [\"SMALLER\", \"LARGER\"]";
    let value = parsed(file.value.as_ref().ok_or_else(|| missing("value", remedy))?)?;
    if file.slack.is_some() {
        return both("value", "slack");
    }
    match (&file.least, &file.most, &file.equals) {
        (Some(least), None, None) => Ok(Kind::Least(value, level(least)?)),
        (None, Some(most), None) => Ok(Kind::Most(value, level(most)?)),
        (Some(least), Some(most), None) => Ok(Kind::Between(value, level(least)?, level(most)?)),
        (None, None, Some(equals)) => {
            let remedy = "write within = \"5%\" of it, or within = 0.02 in its unit";
            let within = file.within.as_ref().ok_or_else(|| missing("within", remedy))?;
            let room = plain(within, "within")?;
            let share = matches!(within.get_ref(), Level::Text(text) if text.trim_end().ends_with('%'));
            let within = if share { Tolerance::Share(room) } else { Tolerance::Absolute(room) };
            Ok(Kind::Equals { value, number: level(equals)?, within })
        }
        (None, None, None) => Err(missing("least", "write least, most, both, or equals with within")),
        _ => both("equals", "least or most"),
    }
}

/// The expressions of a claim make sense: with ones for all metrics they have a value.
fn check_statement(made: &Experiment, claim: &Claim, at: usize) -> Result<(), Fault> {
    let table = Table::of_ones(made, Mode::Full);
    let view = View { table: &table, seeds: Seeds::Mean, wrong: &BTreeMap::new(), lenient: false };
    match claim.statement.check(&view) {
        // Nothing may be missing where everything is there, but a run of ones need not reach a level.
        Ok(_) | Err(EvalError::Missing(_)) => Ok(()),
        Err(EvalError::Wrong(reason)) => {
            let text = format!("the claim '{}'", claim.id);
            Err((at, Problem::Expression { text, reason }))
        }
    }
}
