//! The demo's report: one HTML page with the table and a plot of every run, without anything from elsewhere.

use std::fmt::Write as _;

use super::outcome::{LINKS, Outcome, capacity_mbps, notes, versus_sum};

/// A plot's size and the room around it, in pixels.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 58.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 38.0;
/// Top of the vertical axis, Mbit/s.
const PEAK: f64 = 80.0;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #667; --grid: #ccd; --wifi: #0060b0; --lte: #b04a00; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ec; --soft: #9aa; --grid: #3a4048; --wifi: #6cb6ff; --lte: #ff9d57; --paper: #14171b; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 1360px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
h2 { font-size: 1rem; margin: 0 0 .2rem; font-weight: 600; }
p { margin: .2rem 0; color: var(--soft); max-width: 70rem; }
table { border-collapse: collapse; margin: 1.2rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th { font-weight: 600; }
th:nth-child(-n+3), td:nth-child(-n+3), th:last-child, td:last-child { text-align: left; }
tr.both td { font-weight: 600; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: 1.4rem; }
svg { width: 100%; height: auto; overflow: visible; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
.grid { stroke: var(--grid); stroke-width: 1; }
.limit { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 1 3; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.wifi { stroke: var(--wifi); }
.lte { stroke: var(--lte); stroke-dasharray: 6 3; }
.sum { stroke: var(--ink); stroke-width: 1.2; opacity: .75; }
";

/// The whole page.
pub(crate) fn page(outcomes: &[Outcome]) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\"><title>Manypath demo</title><style>{STYLE}</style></head><body>\
         <h1>One file over WiFi, over LTE, and over both</h1>{}",
        links_sentence()
    );
    table(&mut out, outcomes);
    for note in notes(outcomes) {
        let _ = write!(out, "<p>{}</p>", escape(&note));
    }
    out.push_str("<p>Plots: payload received per path, averaged over half a second. Dotted: payload capacity of the links used.</p><br><main>");
    for outcome in outcomes {
        plot(&mut out, outcome);
    }
    out.push_str("</main></body></html>\n");
    out
}

fn links_sentence() -> String {
    let describe = |link: &super::outcome::DemoLink| {
        format!(
            "{}: {} Mbit/s, {} ms round trip, {} kB queue, {}% loss",
            link.name,
            link.mbps,
            link.rtt_ms,
            link.queue_kb,
            link.loss * 100.0
        )
    };
    format!("<p>{}.</p>", LINKS.iter().map(describe).collect::<Vec<_>>().join("; "))
}

fn table(out: &mut String, outcomes: &[Outcome]) {
    out.push_str(
        "<table><thead><tr><th>controller<th>scheduler<th>paths<th>time s<th>goodput Mbit/s<th>of links\
         <th>vs sum<th>retransmitted<th>SHA-256</tr></thead><tbody>",
    );
    for o in outcomes {
        let versus = if o.is_both() { versus_sum(outcomes, o) } else { None };
        let _ = write!(
            out,
            "<tr{}><td>{}<td>{}<td>{}<td>{:.1}<td>{:.1}<td>{:.2}<td>{}<td>{:.2}%<td>{}</tr>",
            if o.is_both() { " class=\"both\"" } else { "" },
            escape(&o.cc),
            escape(&o.sched),
            o.path_names(),
            o.seconds,
            o.goodput_mbps,
            o.capacity_share,
            versus.map_or_else(String::new, |share| format!("{share:.2}")),
            100.0 * o.retransmitted_bytes as f64 / o.bytes.max(1) as f64,
            if o.sha256_ok { "ok" } else { "<b>WRONG</b>" },
        );
    }
    out.push_str("</tbody></table>");
}

/// One run: goodput of each path over time, lines told apart by dashes and by a label at their end.
fn plot(out: &mut String, outcome: &Outcome) {
    let end = outcome.samples.last().map_or(1.0, |sample| sample.at).max(1.0);
    let x = |seconds: f64| LEFT + (WIDTH - LEFT - RIGHT) * seconds / end;
    let y = |mbps: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * mbps.clamp(0.0, PEAK) / PEAK;
    let _ = write!(
        out,
        "<section><h2>{}, {}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"goodput over time\">",
        escape(&outcome.cc),
        outcome.path_names()
    );
    axes(out, end, &x, &y);
    let share = capacity_mbps() / LINKS.iter().map(|link| link.mbps).sum::<f64>();
    let capacity: f64 =
        LINKS.iter().filter(|link| outcome.paths.contains(&link.name)).map(|link| link.mbps * share).sum();
    let _ = write!(
        out,
        "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>",
        x(end),
        y(capacity)
    );
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (index, name) in outcome.paths.iter().enumerate() {
        let series = smooth(outcome, |mbps| mbps.get(index).copied().unwrap_or(0.0));
        line(out, name, &series, &x, &y);
        labels.extend(series.last().map(|(_, mbps)| (y(*mbps), (*name).to_owned())));
    }
    if outcome.is_both() {
        let series = smooth(outcome, |mbps| mbps.iter().sum());
        line(out, "sum", &series, &x, &y);
        labels.extend(series.last().map(|(_, mbps)| (y(*mbps), "both".to_owned())));
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = 0.0_f64;
    for (at, label) in labels {
        // Labels of lines that end near each other move apart.
        lowest = at.max(lowest + 13.0);
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{label}</text>", x(end) + 6.0, lowest + 4.0);
    }
    out.push_str("</svg></section>");
}

fn axes(out: &mut String, end: f64, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    for mbps in [0.0, 20.0, 40.0, 60.0, 80.0] {
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/><text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{mbps}</text>",
            x(end),
            y(mbps),
            LEFT - 6.0,
            y(mbps) + 4.0
        );
    }
    let mut seconds = 0.0;
    while seconds <= end {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds}</text>",
            x(seconds),
            HEIGHT - BOTTOM + 16.0
        );
        seconds += 2.0;
    }
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time (s)</text>\
         <text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">goodput (Mbit/s)</text>",
        x(end / 2.0),
        HEIGHT - 4.0,
        y(PEAK / 2.0)
    );
}

/// A run's samples, averaged over half a second so that single packets do not show.
fn smooth(outcome: &Outcome, pick: impl Fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
    let samples = &outcome.samples;
    (0..samples.len())
        .map(|index| {
            let from = samples[..=index].iter().rposition(|sample| samples[index].at - sample.at >= 0.45).unwrap_or(0);
            let window = &samples[from..=index];
            let mean = window.iter().map(|sample| pick(&sample.mbps)).sum::<f64>() / window.len() as f64;
            (samples[index].at, mean)
        })
        .collect()
}

fn line(out: &mut String, class: &str, series: &[(f64, f64)], x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let _ = write!(out, "<polyline class=\"line {class}\" points=\"");
    for (seconds, mbps) in series {
        let _ = write!(out, "{:.1},{:.1} ", x(*seconds), y(*mbps));
    }
    out.push_str("\"/>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_has_a_plot_a_run() {
        let runs = [outcome("lia", vec!["wifi"], 40.0), outcome("mpcc-loss", vec!["wifi", "lte"], 70.0)];
        let page = page(&runs);
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(!page.contains("http"), "no address of anything");
        assert!(page.contains("time (s)") && page.contains("goodput (Mbit/s)"));
        if let Ok(path) = std::env::var("MANYPATH_DEMO_PAGE") {
            std::fs::write(path, &page).unwrap();
        }
    }

    #[test]
    fn labels_that_would_overlap_move_apart() {
        let mut run = outcome("lia", vec!["wifi", "lte"], 40.0);
        run.samples.iter_mut().for_each(|sample| sample.mbps = vec![20.0, 20.0]);
        let mut out = String::new();
        plot(&mut out, &run);
        assert!(out.contains(">wifi</text>") && out.contains(">lte</text>") && out.contains(">both</text>"));
    }
}
