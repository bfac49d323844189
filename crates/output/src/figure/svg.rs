//! Drawing.

use core::fmt::Write as _;

use super::bars::{self, Place};
use super::lines::{MARKER, marker, one};
use super::scale::Scale;
use super::styles::{STYLES, styles};
use super::{Axis, Figure, Mark, Panel, Series};

/// Width of the figure, pixels.
const WIDTH: f64 = 820.0;
/// Height of a panel's field.
const HEIGHT: f64 = 190.0;
/// Height of the field where there is but one panel.
const TALL: f64 = 420.0;
/// Room to the left, for tick labels and the axis label.
const LEFT: f64 = 74.0;
/// Room above, for the title.
const TOP: f64 = 40.0;
/// Room between panels.
const GAP: f64 = 26.0;
/// Room above a panel for its title, where panels have one.
const HEADING: f64 = 16.0;
/// Room below, for tick labels and the axis label.
const BOTTOM: f64 = 46.0;
/// How far markers at the top or the bottom reach out of the field.
const MARGIN: f64 = 10.0;
/// How far error bars of two series are from each other.
const APART: f64 = 1.5;
/// How far from the frame's left and right marks stay.
const CLEAR: f64 = 2.0;
/// Length of the piece of line that goes with a label.
const SAMPLE: f64 = 22.0;
/// Height of a label.
const LINE: f64 = 14.0;
/// Mean width of a character.
const CHARACTER: f64 = 6.7;
/// The most characters of a label.
const LABEL: usize = 28;

/// The longest name that fits under its place, of the room there is.
const FITS: f64 = 0.95;
/// Height of names that do not fit and stand aslant, for each character.
const ASLANT: f64 = 4.4;
/// Width of such names, for each character.
const ASLANT_WIDTH: f64 = 5.6;

pub(super) fn draw(figure: &Figure) -> String {
    let field = if figure.panels.len() > 1 { HEIGHT } else { TALL };
    let right = right_margin(figure);
    let below = below(figure, WIDTH - right - LEFT);
    let heading = if figure.panels.iter().any(|panel| !panel.title.is_empty()) { HEADING } else { 0.0 };
    let gap = GAP + below - BOTTOM;
    // Panels are few.
    let count = figure.panels.len() as f64;
    let height = TOP + count * (heading + field) + (count - 1.0).max(0.0) * gap + below;
    let mut out = String::new();
    head(&mut out, figure, height);
    let all = || figure.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let ends = (LEFT, WIDTH - right);
    let inset = inset(figure);
    let x = Scale::new(&tight(&figure.x), all().map(|point| point.0), (ends.0 + inset, ends.1 - inset));
    for (index, panel) in figure.panels.iter().enumerate() {
        let top = TOP + heading + index as f64 * (heading + field + gap);
        let spread = panel.series.iter().flat_map(|series| &series.spread).flat_map(|(low, high)| [*low, *high]);
        let values = panel.series.iter().flat_map(|series| &series.points).map(|point| point.1).chain(spread);
        let y = Scale::new(&panel.y, values, (top + field, top));
        let frame = Frame { left: LEFT, right: ends.1, top, bottom: top + field };
        frame_and_ticks(&mut out, &frame, (&x, !figure.x.names.is_empty()), &y, &panel.y);
        if !panel.title.is_empty() {
            let (y, title) = (top - 7.0, escape(&panel.title));
            write(&mut out, format_args!("<text class=\"panel\" x=\"{LEFT}\" y=\"{y:.1}\">{title}</text>\n"));
        }
        names(&mut out, &figure.x.names, &frame, &x);
        // What is outside of the field is cut away.
        let (left, top) = (frame.left - MARGIN, frame.top - MARGIN);
        let (width, height) = (frame.right - left + MARGIN, frame.bottom - top + MARGIN);
        write(
            &mut out,
            format_args!(
                "<svg x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 viewBox=\"{left:.1} {top:.1} {width:.1} {height:.1}\">\n"
            ),
        );
        let beside = panel.series.iter().filter(|series| series.mark.is_broad()).count();
        let mut number = 0;
        for (place, series) in panel.series.iter().enumerate() {
            let style = style(series, place);
            if series.mark.is_broad() {
                bars::draw(&mut out, series, &Place { style, number, beside }, &x, &y);
                number += 1;
            } else {
                one(&mut out, series, style, &x, &y);
                bars::spread(&mut out, series, (style, apart(panel, place)), &x, &y);
            }
        }
        out.push_str("</svg>\n");
        labels(&mut out, panel, &frame, &y);
    }
    write(
        &mut out,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
            (ends.0 + ends.1) / 2.0,
            height - 10.0,
            escape(&figure.x.label)
        ),
    );
    out
}

/// Writing to a string cannot fail.
pub(super) fn write(out: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// The horizontal axis begins and ends with the data; one with names has half a place to spare on both sides.
fn tight(axis: &Axis) -> Axis {
    let places = axis.names.len() as f64;
    let range = if axis.names.is_empty() { axis.range } else { Some((-0.5, places - 0.5)) };
    Axis { tight: true, range, ..axis.clone() }
}

/// How far the error bars of a series are from its values, pixels: those of series at the same place stand a little apart.
fn apart(panel: &Panel, place: usize) -> f64 {
    APART * (place as f64 - (panel.series.len() as f64 - 1.0) / 2.0)
}

/// How far from the ends of the field the first and the last number of a horizontal axis are, pixels: a little more than
/// marks reach from their values, so that none lies over the frame or outside. Lines alone go from end to end.
fn inset(figure: &Figure) -> f64 {
    let reach = |panel: &Panel, place: usize| {
        let series = &panel.series[place];
        let uncertain = !series.mark.is_broad() && series.spread.iter().any(|(low, high)| low < high);
        let bars = if uncertain { apart(panel, place).abs() + bars::CAP } else { 0.0 };
        if matches!(series.mark, Mark::Points | Mark::LineAndPoints) { bars.max(MARKER) } else { bars }
    };
    let panels = figure.panels.iter().filter(|_| figure.x.names.is_empty());
    let most =
        panels.flat_map(|panel| (0..panel.series.len()).map(move |place| reach(panel, place))).fold(0.0, f64::max);
    if most > 0.0 { most + CLEAR } else { 0.0 }
}

/// Whether all names fit under their places.
fn names_fit(names: &[String], room: f64) -> bool {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    longest as f64 * CHARACTER <= room / names.len().max(1) as f64 * FITS
}

/// Room below a field, for tick labels or names and the axis label.
fn below(figure: &Figure, room: f64) -> f64 {
    let names = &figure.x.names;
    if names_fit(names, room) {
        return BOTTOM;
    }
    let longest = names.iter().map(|name| name.chars().count().min(LABEL)).max().unwrap_or(0);
    BOTTOM + longest as f64 * ASLANT
}

/// The names under the places of a horizontal axis.
fn names(out: &mut String, names: &[String], frame: &Frame, x: &Scale) {
    let fit = names_fit(names, frame.right - frame.left);
    for (place, name) in names.iter().enumerate() {
        let Some(at) = x.place(place as f64) else { continue };
        // What stands aslant reaches to the left, and must not leave the figure.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places are positive; casts saturate
        let most = if fit { LABEL } else { ((at - MARGIN) / ASLANT_WIDTH) as usize };
        let (y, name) = (frame.bottom + 17.0, escape(&shortened_to(name, most.min(LABEL))));
        if fit {
            write(
                out,
                format_args!("<text class=\"tick\" x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{name}</text>\n"),
            );
        } else {
            let y = y - 4.0;
            write(
                out,
                format_args!(
                    "<text class=\"tick\" transform=\"translate({at:.1} {y:.1}) rotate(-35)\" text-anchor=\"end\">{name}</text>\n"
                ),
            );
        }
    }
}

/// The style of a series: what it asks for, or its place.
fn style(series: &Series, place: usize) -> usize {
    series.style.unwrap_or(place) % STYLES.len()
}

/// Room for the longest label.
fn right_margin(figure: &Figure) -> f64 {
    let labels = figure.panels.iter().flat_map(|panel| &panel.series).map(|series| shortened(&series.label));
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    // Series without labels need no room for samples.
    if longest == 0 { 16.0 } else { 16.0 + SAMPLE + 6.0 + longest as f64 * CHARACTER }
}

fn shortened(label: &str) -> String {
    shortened_to(label, LABEL)
}

fn shortened_to(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        label.to_owned()
    } else {
        label.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

fn head(out: &mut String, figure: &Figure, height: f64) {
    write(
        out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\" class=\"figure\">\n<title>{}</title>\n<style>\n",
            escape(&figure.title)
        ),
    );
    styles(out);
    out.push_str("</style>\n");
    if figure.panels.iter().flat_map(|panel| &panel.series).any(|series| series.mark.is_broad()) {
        bars::hatching(out);
    }
    write(
        out,
        format_args!(
            "<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"24\">{}</text>\n",
            escape(&figure.title)
        ),
    );
}

/// The field of a panel, pixels.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn frame_and_ticks(out: &mut String, frame: &Frame, (x, named): (&Scale, bool), y: &Scale, axis: &Axis) {
    let Frame { left, right, top, bottom } = *frame;
    for tick in y.ticks(((bottom - top) / 34.0).round()) {
        let (at, label) = (tick.at, tick.label);
        write(
            out,
            format_args!(
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
                left - 6.0,
                at + 4.0
            ),
        );
    }
    let ticks = if named { Vec::new() } else { x.ticks(((right - left) / 75.0).round()) };
    for tick in ticks {
        let (at, label) = (tick.at, tick.label);
        write(
            out,
            format_args!(
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>\n",
                bottom + 4.0,
                bottom + 17.0
            ),
        );
    }
    write(
        out,
        format_args!(
            "<path class=\"frame\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/>\
             <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            (top + bottom) / 2.0,
            escape(&axis.label)
        ),
    );
}

/// A label for each series that has one beside the field, at the height of its last value if there is room.
fn labels(out: &mut String, panel: &Panel, frame: &Frame, y: &Scale) {
    let mut wanted: Vec<(f64, usize)> = Vec::new();
    for (index, series) in panel.series.iter().enumerate().filter(|(_, series)| !series.label.is_empty()) {
        let last = series.points.iter().rev().find_map(|point| y.place(point.1));
        // Bars have no end to point to: their labels stand in order, from the top.
        let last = if series.mark.is_broad() { Some(frame.top + LINE * index as f64) } else { last };
        wanted.push((last.unwrap_or(frame.bottom).clamp(frame.top, frame.bottom), index));
    }
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let heights: Vec<f64> = wanted.iter().map(|(at, _)| *at).collect();
    for ((end, index), at) in wanted.iter().zip(spread(&heights, frame.bottom)) {
        let series = &panel.series[*index];
        let style = style(series, *index);
        let from = frame.right + 10.0;
        if series.mark.is_broad() {
            let up = at - 5.0;
            write(
                out,
                format_args!(
                    "<rect class=\"bar b{style}\" x=\"{from:.1}\" y=\"{up:.1}\" width=\"{SAMPLE}\" height=\"10\"/>"
                ),
            );
        } else {
            write(
                out,
                format_args!("<path class=\"lead\" d=\"M{:.1} {end:.1}L{from:.1} {at:.1}\"/>", frame.right + 2.0),
            );
        }
        if matches!(series.mark, Mark::Line | Mark::Steps | Mark::LineAndPoints) {
            write(out, format_args!("<path class=\"line l{style}\" d=\"M{from:.1} {at:.1}h{SAMPLE}\"/>"));
        }
        if matches!(series.mark, Mark::Points | Mark::LineAndPoints) {
            write(out, format_args!("<path class=\"point p{style}\" d=\""));
            marker(out, style, from + SAMPLE / 2.0, at);
            out.push_str("\"/>");
        }
        write(
            out,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                from + SAMPLE + 5.0,
                at + 4.0,
                escape(&shortened(&series.label))
            ),
        );
    }
}

/// Heights in ascending order, moved apart so that labels do not overlap, and up again where they would leave the field.
fn spread(heights: &[f64], bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for height in heights {
        let least = places.last().map_or(f64::NEG_INFINITY, |above| above + LINE);
        places.push(height.max(least));
    }
    let mut most = bottom + LINE / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE;
    }
    places
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write most of these.
            control if control.is_control() => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_where_there_is_no_room() {
        assert_eq!(shortened_to("50Mbit 5ms", 10), "50Mbit 5ms");
        assert_eq!(shortened_to("50Mbit 5ms", 5), "50Mb…");
        assert_eq!(shortened_to("50Mbit 5ms", 0), "…");
    }

    #[test]
    fn labels_keep_apart_and_inside() {
        let expected = [100.0, 114.0, 128.0];
        assert_eq!(spread(&[100.0, 100.0, 101.0], 300.0), expected);
        let places = spread(&[290.0, 299.0, 300.0], 300.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9) && places[2] <= 307.0, "{places:?}");
    }

    #[test]
    fn texts_cannot_break_the_file() {
        let series = Series::line("<b>&\"\u{7}", vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]);
        let panel = Panel { title: "<i>".into(), y: Axis::new("rate (Mbit/s)"), series: vec![series] };
        let figure = Figure { title: "</svg>".into(), x: Axis::new("time (s)"), panels: vec![panel] };
        let svg = figure.to_svg();
        assert!(
            svg.contains("&lt;b&gt;&amp;&quot; </text>")
                && svg.contains(">&lt;i&gt;</text>")
                && svg.contains("&lt;/svg&gt;")
        );
        assert!(svg.contains("time (s)") && svg.contains("rate (Mbit/s)"));
        assert!(!svg.contains("var("), "viewers outside of browsers draw it black");
        assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (2, 2));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn names_that_do_not_fit_stand_aslant() {
        let bars = Series { mark: Mark::Bars, points: vec![(0.0, 1.0), (1.0, 2.0)], ..Series::default() };
        let panel = Panel { y: Axis::new("y"), series: vec![bars], ..Panel::default() };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let figure = |list: &[&str]| Figure {
            x: Axis { names: names(list), ..Axis::new("x") },
            panels: vec![panel.clone()],
            ..Figure::default()
        };
        let short = figure(&["one", "two"]).to_svg();
        assert!(short.contains(">one</text>") && !short.contains("rotate(-35)"));
        let long = "a very long name that is cut";
        assert_eq!(figure(&[long; 12]).to_svg().matches("rotate(-35)").count(), 12);
    }

    /// The left and the right end of the frame, and of the marks in it: error bars, markers and lines. Markers are circles, as
    /// all series have the first style.
    fn ends(svg: &str) -> ((f64, f64), (f64, f64)) {
        let numbers = |text: &str| -> Vec<f64> {
            let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|part| !part.is_empty());
            parts.map(|part| part.parse().unwrap()).collect()
        };
        let paths = |class: &str| -> Vec<Vec<f64>> {
            let (inner, class) = (svg.split("<svg").nth(2).unwrap(), format!("<path class=\"{class}"));
            let inner = inner.split("</svg>").next().unwrap();
            let starts = inner.split(&class).skip(1).map(|rest| rest.split(" d=\"").nth(1).unwrap());
            starts.map(|path| numbers(path.split('"').next().unwrap())).collect()
        };
        let frame = svg.split("class=\"frame\" d=\"").nth(1).unwrap();
        let frame = numbers(frame.split('"').next().unwrap());
        let bars = paths("spread").into_iter().flat_map(|bar| [bar[0], bar[2]]);
        let lines = paths("line").into_iter().flat_map(|line| line.into_iter().step_by(2).collect::<Vec<_>>());
        // A circle is `M left y a3 3 0 1 0 6 0 a3 3 0 1 0-6 0`.
        let circles = paths("point").into_iter().flat_map(|points| {
            let circles: Vec<f64> = points.chunks(16).flat_map(|circle| [circle[0], circle[0] + 6.0]).collect();
            circles
        });
        let marks = bars
            .chain(lines)
            .chain(circles)
            .fold((f64::INFINITY, 0.0), |held: (f64, f64), at| (held.0.min(at), held.1.max(at)));
        ((frame[0], frame[3]), marks)
    }

    #[test]
    fn no_mark_lies_beside_the_field() {
        let series = |mark, off: f64| Series {
            mark,
            points: vec![(3.0, 88.0), (30.0, 89.0), (375.0, 90.0)],
            spread: vec![(88.0 - off, 88.0 + off), (89.0, 89.0), (90.0 - off, 90.0 + off)],
            style: Some(0),
            ..Series::default()
        };
        let figure = |mark, off, log| Figure {
            x: Axis { log, ..Axis::new("x") },
            panels: vec![Panel { y: Axis::new("y"), series: vec![series(mark, off); 8], ..Panel::default() }],
            ..Figure::default()
        };
        for (mark, off) in
            [(Mark::LineAndPoints, 2.0), (Mark::LineAndPoints, 0.0), (Mark::Points, 2.0), (Mark::Line, 2.0)]
        {
            for log in [false, true] {
                let (frame, marks) = ends(&figure(mark, off, log).to_svg());
                // Coordinates are rounded to tenths.
                let spare = [marks.0 - frame.0, frame.1 - marks.1];
                assert!(spare.iter().all(|spare| (spare - CLEAR).abs() < 0.15), "{mark:?} {off}: {spare:?}");
            }
        }
        let (frame, marks) = ends(&figure(Mark::Line, 0.0, false).to_svg());
        assert_eq!(marks, frame, "lines alone go from end to end");
    }

    #[test]
    fn an_empty_figure_is_one() {
        let svg = Figure::default().to_svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
