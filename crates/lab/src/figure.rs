//! How the paper draws a result.

use std::collections::BTreeMap;

use crate::expression::Expr;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What it is.
    pub kind: FigureKind,
    /// The axis along x.
    pub x: Option<String>,
    /// What stands under x, with unit.
    pub x_label: String,
    /// By what the axis's numbers are divided.
    pub x_unit: f64,
    /// Whether x is logarithmic.
    pub x_log: bool,
    /// What is drawn: text of the expression and name in the legend.
    pub y: Vec<(String, String)>,
    /// What stands beside y, with unit.
    pub y_label: String,
    /// Whether y is logarithmic.
    pub y_log: bool,
    /// The axis whose values have a line, bar or curve each.
    pub series: Option<String>,
    /// The axis whose values have a panel each.
    pub panel: Option<String>,
    /// What bars at the points show.
    pub error: Option<ErrorBars>,
    /// Values of axes that are shown; of others the mean is.
    pub only: BTreeMap<String, Vec<String>>,
    /// Over metrics; empty for time series and distributions, whose expressions are over quantities and depend on the case.
    pub(crate) parsed: Vec<Expr>,
    pub(crate) at: usize,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Points joined by lines.
    Lines,
    /// Bars in groups.
    Bars,
    /// Median, quartiles, 5th and 95th percentile over all other axes and seeds.
    Box,
    /// A distribution function of a list of quantities.
    Cdf,
    /// A time series of the first seed.
    Time,
    /// Numbers.
    Table,
}

impl FigureKind {
    /// All kinds with their names in files.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("lines", Self::Lines),
        ("bars", Self::Bars),
        ("box", Self::Box),
        ("cdf", Self::Cdf),
        ("time", Self::Time),
        ("table", Self::Table),
    ];

    /// Whether its expressions are over the quantities of single runs.
    pub(crate) const fn is_of_runs(self) -> bool {
        matches!(self, Self::Cdf | Self::Time)
    }
}

/// What bars at the points show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorBars {
    /// Smallest and largest of the seeds.
    MinMax,
    /// Standard deviation over seeds.
    Deviation,
}
