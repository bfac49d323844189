//! Lines and the markers of their points.

use std::collections::BTreeSet;

use super::scale::Scale;
use super::svg::write;
use super::{Mark, Series};

/// Half the width of a marker, pixels.
pub(super) const MARKER: f64 = 3.0;

/// Draws a series.
pub(super) fn one(out: &mut String, series: &Series, style: usize, x: &Scale, y: &Scale) {
    let place = |point: &(f64, f64)| x.place(point.0).zip(y.place(point.1));
    if series.mark != Mark::Points {
        write(out, format_args!("<path class=\"line l{style}\" d=\""));
        for piece in series.points.split(|point| place(point).is_none()) {
            let pixels = thinned(piece.iter().filter_map(place));
            line(out, &pixels, series.mark == Mark::Steps);
        }
        out.push_str("\"/>\n");
    }
    if matches!(series.mark, Mark::Points | Mark::LineAndPoints) {
        write(out, format_args!("<path class=\"point p{style}\" d=\""));
        let mut drawn = BTreeSet::new();
        for (px, py) in series.points.iter().filter_map(place) {
            // Markers on the same pixel are one.
            #[allow(clippy::cast_possible_truncation)] // ten times the figure at most
            if drawn.insert((px.round() as i32, py.round() as i32)) {
                marker(out, style, px, py);
            }
        }
        out.push_str("\"/>\n");
    }
}

/// What of a line can be seen: of the points over a pixel the first, the lowest, the highest and the last.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut over: Vec<(f64, f64)> = Vec::new();
    let mut column = f64::NAN;
    let mut flush = |over: &mut Vec<(f64, f64)>| {
        if over.len() > 4 {
            let by = |pick: fn(f64, f64) -> bool| {
                let found = over.iter().enumerate().reduce(|a, b| if pick(b.1.1, a.1.1) { b } else { a });
                found.map_or(0, |(index, _)| index)
            };
            let mut indices = [0, by(|a, b| a < b), by(|a, b| a > b), over.len() - 1];
            indices.sort_unstable();
            let mut last = usize::MAX;
            for index in indices {
                if index != last {
                    kept.push(over[index]);
                }
                last = index;
            }
        } else {
            kept.extend_from_slice(over);
        }
        over.clear();
    };
    for point in points {
        // The same pixel: whole numbers compare well.
        if (point.0.floor() - column).abs() > 0.5 || column.is_nan() {
            flush(&mut over);
            column = point.0.floor();
        }
        over.push(point);
    }
    flush(&mut over);
    kept
}

fn line(out: &mut String, points: &[(f64, f64)], steps: bool) {
    for (index, (px, py)) in points.iter().enumerate() {
        if index == 0 {
            write(out, format_args!("M{px:.1} {py:.1}"));
        } else if steps {
            write(out, format_args!("H{px:.1}V{py:.1}"));
        } else {
            write(out, format_args!("L{px:.1} {py:.1}"));
        }
    }
    if let [(px, _)] = points {
        // A single point would not be seen.
        write(out, format_args!("H{:.1}", px + 1.5));
    }
}

/// A marker of about 6 pixels, a shape for each style.
pub(super) fn marker(out: &mut String, style: usize, x: f64, y: f64) {
    let (left, up) = (x - MARKER, y - MARKER);
    match style {
        0 => write(out, format_args!("M{left:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0-6 0")),
        1 => write(out, format_args!("M{left:.1} {up:.1}l6 6m0-6l-6 6")),
        2 => write(out, format_args!("M{left:.1} {up:.1}h6v6h-6z")),
        3 => write(out, format_args!("M{left:.1} {:.1}h6l-3-5.4z", y + 2.4)),
        4 => write(out, format_args!("M{left:.1} {y:.1}h6m-3-3v6")),
        5 => write(out, format_args!("M{left:.1} {y:.1}l3-3.6l3 3.6l-3 3.6z")),
        6 => write(out, format_args!("M{left:.1} {:.1}h6l-3 5.4z", y - 2.4)),
        7 => write(out, format_args!("M{left:.1} {up:.1}h6v6h-6zl6 6m0-6l-6 6")),
        8 => write(out, format_args!("M{left:.1} {up:.1}l3 3l3-3m-3 3v4")),
        _ => write(out, format_args!("M{left:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0-6 0m0 0h6m-3-3v6")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_thinned_without_losing_a_peak() {
        let points = (0..100_000).map(|i| (f64::from(i) * 0.001, if i == 77_777 { 1000.0 } else { f64::from(i % 2) }));
        let kept = thinned(points);
        assert!(kept.len() <= 400, "{}", kept.len());
        assert!(kept.iter().any(|point| point.1 > 999.0));
        let few: Vec<_> = (0..50).map(|i| (f64::from(i), 1.0)).collect();
        assert_eq!(thinned(few.iter().copied()), few);
    }
}
