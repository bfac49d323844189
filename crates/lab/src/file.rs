//! The tables of an experiment file, as they are written. `docs/experiments.md` explains them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    pub(crate) title: String,
    pub(crate) paper: Spanned<String>,
    pub(crate) place: String,
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) deviations: Vec<String>,
    /// Why claims do not hold, where they do not.
    pub(crate) analysis: Option<String>,
    /// Another experiment whose runs are used: axes, setup and lengths are its.
    pub(crate) like: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) engines: Vec<Spanned<String>>,
    pub(crate) seeds: Option<Spanned<PerMode<u32>>>,
    pub(crate) duration: Option<Spanned<PerMode<String>>>,
    pub(crate) warmup: Option<Spanned<PerMode<String>>>,
    #[serde(default)]
    pub(crate) axis: Vec<Spanned<AxisTable>>,
    /// Read again with the place of every value.
    pub(crate) scenario: Option<Spanned<Value>>,
    /// Read again with the place of every value.
    pub(crate) theory: Option<Spanned<Value>>,
    #[serde(default)]
    pub(crate) metric: BTreeMap<String, Spanned<MetricTable>>,
    #[serde(default)]
    pub(crate) claim: Vec<Spanned<ClaimTable>>,
    #[serde(default)]
    pub(crate) figure: Vec<Spanned<FigureTable>>,
}

/// One value for both lengths of a run, or one for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a number or text of the wrong kind: write seeds = 3, duration = \"60s\", or { quick = ..., full = ... }"
)]
pub(crate) enum PerMode<T> {
    Both(T),
    Each { quick: T, full: T },
}

impl<T> PerMode<T> {
    pub(crate) fn quick(&self) -> &T {
        match self {
            Self::Both(value) | Self::Each { quick: value, .. } => value,
        }
    }

    pub(crate) fn full(&self) -> &T {
        match self {
            Self::Both(value) | Self::Each { full: value, .. } => value,
        }
    }
}

/// An axis of the sweep. Its values are read again with their places.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct AxisTable {
    pub(crate) name: Spanned<String>,
    /// What it is called in figures.
    pub(crate) title: Option<String>,
    pub(crate) of: Option<Spanned<String>>,
    pub(crate) values: Option<Vec<Value>>,
    /// Axes of their own whose combinations are the values.
    pub(crate) product: Option<BTreeMap<String, Vec<Value>>>,
    /// What is bound where a value does not bind it.
    pub(crate) default: Option<BTreeMap<String, Value>>,
    /// Labels of the values that quick runs take, or how many of them.
    pub(crate) quick: Option<Spanned<Part>>,
}

/// A part of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "quick is a list of labels, or how many of the values are taken")]
pub(crate) enum Part {
    Some(Vec<String>),
    Count(usize),
}

/// A metric: a number of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MetricTable {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) unit: String,
    pub(crate) value: Spanned<String>,
}

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ClaimTable {
    pub(crate) id: Spanned<String>,
    pub(crate) says: String,
    pub(crate) place: String,
    pub(crate) number: String,
    pub(crate) value: Option<Spanned<String>>,
    pub(crate) order: Option<Vec<Spanned<String>>>,
    pub(crate) least: Option<Spanned<Level>>,
    pub(crate) most: Option<Spanned<Level>>,
    pub(crate) equals: Option<Spanned<Level>>,
    pub(crate) within: Option<Spanned<Level>>,
    pub(crate) slack: Option<Spanned<Level>>,
    #[serde(default)]
    pub(crate) unit: String,
    /// Axis, and labels that take the place of others: under them the claim must fail.
    #[serde(default)]
    pub(crate) wrong: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) analysis: Option<String>,
}

/// A number, or an expression for one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a level is a number, or a text with an expression")]
pub(crate) enum Level {
    Number(f64),
    Text(String),
}

/// A figure, as the paper draws it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FigureTable {
    pub(crate) title: String,
    pub(crate) kind: Spanned<String>,
    /// Axis along x (lines, bars, box, table); time series have time there.
    pub(crate) x: Option<Spanned<String>>,
    pub(crate) x_label: Option<String>,
    /// By what the numbers of the axis are divided for its unit, 1000 for kB say.
    pub(crate) x_unit: Option<Spanned<Level>>,
    #[serde(default)]
    pub(crate) x_log: bool,
    /// Expressions; more than one make a series each.
    pub(crate) y: Vec<Spanned<String>>,
    /// What the expressions are called in the legend; needed for more than one.
    #[serde(default)]
    pub(crate) y_names: Vec<String>,
    pub(crate) y_label: String,
    #[serde(default)]
    pub(crate) y_log: bool,
    /// Axis with a line, bar or curve for each value.
    pub(crate) series: Option<Spanned<String>>,
    /// Axis with a panel for each value.
    pub(crate) panel: Option<Spanned<String>>,
    /// `min-max` or `std` over seeds.
    pub(crate) error: Option<Spanned<String>>,
    /// Values of axes that are shown; others are averaged.
    #[serde(default)]
    pub(crate) only: BTreeMap<String, Vec<String>>,
}
