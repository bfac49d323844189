//! Bars, boxes, and how far values may be off.

use super::scale::Scale;
use super::styles::STYLES;
use super::svg::write;
use super::{Mark, Series};

/// The share of a place that its bars take.
const FILLED: f64 = 0.8;
/// Half the width of the ends of error bars, pixels.
pub(super) const CAP: f64 = 3.0;

impl Mark {
    /// Whether it takes room beside others.
    pub(super) fn is_broad(self) -> bool {
        matches!(self, Self::Bars | Self::Boxes)
    }
}

/// Which of the bars at a place.
pub(super) struct Place {
    pub(super) style: usize,
    /// Its number among those beside it, from zero.
    pub(super) number: usize,
    /// How many stand beside each other.
    pub(super) beside: usize,
}

/// What the styles fill bars with: lines and dots in a tile, so that they can be told apart without colour.
const HATCHES: [&str; STYLES.len()] = [
    "M0 0h6v6h-6z",
    "M-1 7L7-1M-1 1L1-1M5 7L7 5",
    "M1 1h2v2h-2zM4 4h2v2h-2z",
    "M-1-1L7 7M5-1L7 1M-1 5L1 7",
    "M0 3h6",
    "M3 0v6",
    "M0 3h6M3 0v6",
    "",
    "M0 1h6M0 3h6M0 5h6",
    "M-1-1L7 7M-1 7L7-1",
];

/// Writes the tiles.
pub(super) fn hatching(out: &mut String) {
    out.push_str("<defs>\n");
    for (index, tile) in HATCHES.iter().enumerate() {
        let filled = if tile.ends_with('z') { "currentColor" } else { "none" };
        write(
            out,
            format_args!(
                "<pattern id=\"hatch{index}\" class=\"h{index}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <path d=\"{tile}\" style=\"stroke: currentColor; stroke-width: 1; fill: {filled}; fill-opacity: .75\"/></pattern>\n"
            ),
        );
    }
    out.push_str("</defs>\n");
}

/// Draws bars or boxes.
pub(super) fn draw(out: &mut String, series: &Series, place: &Place, x: &Scale, y: &Scale) {
    let width = FILLED / place.beside.max(1) as f64;
    for (index, point) in series.points.iter().enumerate() {
        let left = point.0 - FILLED / 2.0 + width * place.number as f64;
        let (Some(from), Some(to)) = (x.place(left), x.place(left + width * 0.92)) else { continue };
        let (low, high) = match series.mark {
            Mark::Boxes => series.quartiles.get(index).copied().unwrap_or((point.1, point.1)),
            _ => (y.base(), point.1),
        };
        let (Some(one), Some(other)) = (y.place(low), y.place(high)) else { continue };
        write(
            out,
            format_args!(
                "<rect class=\"bar b{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\n",
                place.style,
                one.min(other),
                to - from,
                (one - other).abs()
            ),
        );
        let middle = y.place(point.1).filter(|_| series.mark == Mark::Boxes);
        if let Some(at) = middle {
            write(out, format_args!("<path class=\"middle\" d=\"M{from:.1} {at:.1}H{to:.1}\"/>\n"));
        }
        if let Some(reach) = series.spread.get(index) {
            one_spread(out, ((from + to) / 2.0, ""), *reach, y);
        }
    }
}

/// Draws how far the values of a line or of points may be off, so many pixels beside them.
pub(super) fn spread(out: &mut String, series: &Series, (style, beside): (usize, f64), x: &Scale, y: &Scale) {
    for (point, reach) in series.points.iter().zip(&series.spread) {
        let Some(at) = x.place(point.0) else { continue };
        one_spread(out, (at + beside, &format!(" p{style}")), *reach, y);
    }
}

fn one_spread(out: &mut String, (at, class): (f64, &str), (low, high): (f64, f64), y: &Scale) {
    let (Some(low), Some(high)) = (y.place(low), y.place(high)) else { return };
    if (low - high).abs() < 1.0 {
        return;
    }
    let (left, right) = (at - CAP, at + CAP);
    write(
        out,
        format_args!(
            "<path class=\"spread{class}\" d=\"M{left:.1} {low:.1}H{right:.1}M{at:.1} {low:.1}V{high:.1}M{left:.1} {high:.1}H{right:.1}\"/>\n"
        ),
    );
}

#[cfg(test)]
mod tests {
    use crate::figure::{Axis, Figure, Mark, Panel, Series};

    #[test]
    fn bars_stand_beside_each_other_and_boxes_have_a_middle() {
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let points = vec![(0.0, 1.0), (1.0, 3.0)];
        let one = |mark, label: &str| Series {
            label: label.to_owned(),
            mark,
            points: points.clone(),
            spread: vec![(0.5, 1.5), (2.5, 3.5)],
            quartiles: vec![(0.8, 1.2), (2.8, 3.2)],
            style: None,
        };
        let figure = |mark| Figure {
            title: "t".to_owned(),
            x: Axis { names: names.clone(), ..Axis::new("x") },
            panels: vec![Panel {
                y: Axis::new("y"),
                series: vec![one(mark, "first"), one(mark, "second")],
                ..Panel::default()
            }],
        };
        let bars = figure(Mark::Bars).to_svg();
        // Two series of two, and one of each as the label.
        assert_eq!(bars.matches("<rect class=\"bar b0\"").count(), 3);
        assert_eq!(bars.matches("<rect class=\"bar b1\"").count(), 3);
        assert_eq!(bars.matches("class=\"spread\"").count(), 4);
        assert!(bars.contains("id=\"hatch1\"") && !bars.contains("class=\"middle\""));
        assert_eq!(figure(Mark::Boxes).to_svg().matches("class=\"middle\"").count(), 4);
        let lines = figure(Mark::LineAndPoints).to_svg();
        assert!(lines.matches("class=\"spread p").count() == 4 && !lines.contains("hatch1\""));
    }
}
