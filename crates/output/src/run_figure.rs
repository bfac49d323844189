//! The figure of a run: what each connection, subflow and link did over time.

use manypath_sim::{Report, Series as Recorded};

use crate::figure::{Axis, Figure, Panel, Series};

/// The most lines of a panel: more cannot be told apart.
const MOST: usize = 6;

/// What is smaller than this share of the largest is not drawn.
const FAINT: f64 = 0.003;

/// Draws the time series of a run: goodput, windows, round-trip times and queues. `None` if none were recorded.
pub fn run_figure(report: &Report) -> Option<Figure> {
    let series = report.series.as_ref()?;
    let subflow = |pick: &dyn Fn(&manypath_sim::SubflowSeries) -> Vec<f64>| {
        let each = series.connections.iter().flat_map(|connection| {
            let one = connection.subflows.len() == 1;
            connection.subflows.iter().enumerate().map(move |(number, subflow)| {
                let label = if one { connection.name.clone() } else { format!("{} {number}", connection.name) };
                (label, subflow)
            })
        });
        each.map(|(label, subflow)| line(label, series, pick(subflow))).collect::<Vec<_>>()
    };
    let goodput =
        series.connections.iter().map(|held| line(held.name.clone(), series, scaled(&held.goodput_bps, 1e-6)));
    let queues = series.links.iter().map(|held| line(held.name.clone(), series, whole(&held.queue_bytes, 1e-3)));
    let panels = [
        panel("goodput (Mbit/s)", goodput.collect()),
        panel("sending rate (Mbit/s)", subflow(&|held| scaled(&held.sending_bps, 1e-6))),
        panel("congestion window (kB)", subflow(&|held| whole(&held.cwnd_bytes, 1e-3))),
        panel("smoothed RTT (ms)", subflow(&|held| held.srtt_s.iter().map(|srtt| positive(*srtt * 1e3)).collect())),
        panel("link queue (kB)", queues.collect()),
    ];
    Some(Figure {
        title: format!("{}, seed {}", report.scenario, report.seed),
        x: Axis { range: Some((0.0, report.duration_s)), ..Axis::new("time (s)") },
        panels: panels.into_iter().filter(|panel| !panel.series.is_empty()).collect(),
    })
}

fn line(label: String, series: &Recorded, values: Vec<f64>) -> Series {
    Series { label, points: series.time_s.iter().copied().zip(values).collect(), ..Series::default() }
}

fn scaled(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|value| value * by).collect()
}

fn whole(values: &[u64], by: f64) -> Vec<f64> {
    values.iter().map(|value| *value as f64 * by).collect()
}

/// Zero stands for nothing yet.
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { f64::NAN }
}

/// A panel of the lines that reach highest, in their own order; the axis says when some are left out.
fn panel(label: &str, lines: Vec<Series>) -> Panel {
    let height = |line: &Series| line.points.iter().map(|point| point.1).filter(|value| value.is_finite()).sum::<f64>();
    let all = lines.len();
    let highest = lines.iter().map(height).fold(0.0, f64::max);
    // Links on which hardly anything waits are not worth a line.
    let mut ranked: Vec<(usize, f64)> =
        lines.iter().map(height).enumerate().filter(|(_, sum)| *sum > highest * FAINT).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(MOST);
    let mut lines: Vec<Option<Series>> = lines.into_iter().map(Some).collect();
    ranked.sort_unstable_by_key(|(index, _)| *index);
    let series: Vec<_> = ranked.iter().filter_map(|(index, _)| lines.get_mut(*index)?.take()).collect();
    let label = if series.len() == MOST && all > MOST { format!("{label}, largest {MOST}") } else { label.to_owned() };
    Panel { y: Axis::new(&label), series, ..Panel::default() }
}
