//! Figures: panels one below the other over one horizontal axis, as SVG.
//!
//! Lines are told apart by dashes and by labels at their ends, points by their shapes, bars by their hatching; colours only
//! help, and follow the page from light to dark.

mod bars;
mod lines;
mod scale;
mod styles;
mod svg;

/// A figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The horizontal axis of all panels.
    pub x: Axis,
    /// Its panels, from the top.
    pub panels: Vec<Panel>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures, with the unit: `time (s)`.
    pub label: String,
    /// Whether it is logarithmic. Values that are not positive are then not drawn.
    pub log: bool,
    /// The range; without it that of the data, and zero for a linear axis that is not `tight`.
    pub range: Option<(f64, f64)>,
    /// Whether the axis begins where the data do rather than at zero.
    pub tight: bool,
    /// For the horizontal axis: what the places 0, 1, 2, ... are called. None for numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis for all data.
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }
}

/// A panel: a vertical axis and what is drawn over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What sets it apart from the others; empty if there is nothing.
    pub title: String,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Data that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What they are called.
    pub label: String,
    /// Horizontal and vertical values; NaN interrupts a line.
    pub points: Vec<(f64, f64)>,
    /// How far each value may be off, lowest and highest: a bar at the point. Of boxes it is what the whiskers reach.
    pub spread: Vec<(f64, f64)>,
    /// The lower and the upper end of each box.
    pub quartiles: Vec<(f64, f64)>,
    /// How they are drawn.
    pub mark: Mark,
    /// The style: series of one style look the same, in whatever panel. Without it, the place in the panel.
    pub style: Option<usize>,
}

/// How data are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// A line from point to point.
    #[default]
    Line,
    /// A line that keeps its height until the next point.
    Steps,
    /// A line through markers.
    LineAndPoints,
    /// Markers.
    Points,
    /// Bars from zero, beside those of the panel's other series.
    Bars,
    /// Boxes with a line at the value, beside those of the panel's other series.
    Boxes,
}

impl Series {
    /// A line.
    pub fn line(label: &str, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.to_owned(), points, ..Self::default() }
    }
}

impl Figure {
    /// The figure as an SVG file.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
}
