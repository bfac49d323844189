//! The figure of a trace: which data went on which subflow when, as in STMS Figures 4 and 9.

use std::collections::BTreeMap;
use std::path::Path;

use crate::figure::{Axis, Figure, Mark, Panel, Series};
use crate::trace::{Decided, TraceReadError, TraceRow, read_trace};

/// The most decisions that are drawn: a figure of more says nothing, and takes memory.
const MOST: usize = 2_000_000;

/// What of a trace is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleView {
    /// The connection; the first in the trace without it.
    pub connection: Option<String>,
    /// From when on, seconds.
    pub from_s: f64,
    /// Until when, seconds.
    pub to_s: f64,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleFigureError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// Nothing was sent.
    #[error("nothing was sent in that time{}", others(connections))]
    Nothing {
        /// Connections that the trace has.
        connections: Vec<String>,
    },
    /// There is too much.
    #[error("more than {MOST} decisions: draw less at once, with --from and --to")]
    TooMany,
}

fn others(connections: &[String]) -> String {
    if connections.is_empty() {
        String::new()
    } else {
        format!(" on that connection; the trace has {}", connections.join(", "))
    }
}

/// Draws what a trace says.
///
/// # Errors
/// If the trace cannot be read, or has nothing to draw or too much.
pub fn schedule_figure(path: &Path, view: &ScheduleView) -> Result<Figure, ScheduleFigureError> {
    let mut collected = Collected { chosen: view.connection.clone(), ..Collected::default() };
    read_trace(path, |row| collected.take(&row, view))?;
    if collected.count > MOST {
        return Err(ScheduleFigureError::TooMany);
    }
    if collected.lines.is_empty() {
        let known = collected.connections;
        let unknown = view.connection.as_ref().is_some_and(|chosen| !known.contains(chosen));
        return Err(ScheduleFigureError::Nothing { connections: if unknown { known } else { Vec::new() } });
    }
    Ok(collected.figure())
}

/// What is drawn of a subflow, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    First,
    Again,
    Copy,
}

#[derive(Debug, Default)]
struct Collected {
    chosen: Option<String>,
    /// The first few connections of the trace.
    connections: Vec<String>,
    lines: BTreeMap<(u32, Kind), Vec<(f64, f64)>>,
    count: usize,
}

impl Collected {
    fn take(&mut self, row: &TraceRow<'_>, view: &ScheduleView) {
        if self.connections.len() < 20 && !self.connections.iter().any(|held| held == row.connection) {
            self.connections.push(row.connection.to_owned());
        }
        let chosen = self.chosen.get_or_insert_with(|| row.connection.to_owned());
        let (Some(subflow), Some((first, _))) = (row.subflow, row.range) else { return };
        if chosen != row.connection || !(view.from_s..=view.to_s).contains(&row.time_s) {
            return;
        }
        let kind = match row.decided {
            Decided::Send => Kind::First,
            Decided::Resend => Kind::Again,
            Decided::Duplicate => Kind::Copy,
            Decided::Penalise | Decided::Wait => return,
        };
        self.count += 1;
        if self.count <= MOST {
            self.lines.entry((subflow, kind)).or_default().push((row.time_s, first as f64 * 1e-3));
        }
    }

    fn figure(self) -> Figure {
        let series = self.lines.into_iter().enumerate().map(|(style, ((subflow, kind), points))| {
            let label = match kind {
                Kind::First => format!("subflow {subflow}"),
                Kind::Again => format!("subflow {subflow}, again"),
                Kind::Copy => format!("subflow {subflow}, copies"),
            };
            Series { label, points, mark: Mark::Points, style: Some(style), ..Series::default() }
        });
        let y = Axis { tight: true, ..Axis::new("data sequence number (kB)") };
        let connection = self.chosen.unwrap_or_default();
        Figure {
            title: format!("Scheduling decisions of {connection}"),
            x: Axis::new("time (s)"),
            panels: vec![Panel { y, series: series.collect(), ..Panel::default() }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ScheduleView = ScheduleView { connection: None, from_s: 0.0, to_s: f64::INFINITY };

    fn trace() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "time_s\tconnection\tdecision\tsubflow\tfirst\tend\tpenalised\treason\n\
                    0.1\ta\tsend\t0\t0\t1000\t-\tx\n0.2\ta\tsend\t1\t5000\t6000\t-\tx\n0.3\ta\twait\t-\t-\t-\t-\tx\n\
                    0.4\tb\tsend\t0\t0\t9\t-\tx\n0.5\ta\tresend\t0\t5000\t6000\t-\tx\n";
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn subflows_and_what_is_sent_again_are_told_apart() {
        let file = trace();
        let figure = schedule_figure(file.path(), &ALL).unwrap();
        let labels: Vec<&str> = figure.panels[0].series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["subflow 0", "subflow 0, again", "subflow 1"]);
        assert_eq!(figure.panels[0].series[2].points, [(0.2, 5.0)]);
        let late = ScheduleView { from_s: 0.45, ..ALL };
        assert_eq!(schedule_figure(file.path(), &late).unwrap().panels[0].series.len(), 1);
        let b = ScheduleView { connection: Some("b".into()), ..ALL };
        assert!(schedule_figure(file.path(), &b).unwrap().title.ends_with(" b"));
    }

    #[test]
    fn nothing_to_draw_is_an_error_that_says_what_there_is() {
        let file = trace();
        let fails = |view| schedule_figure(file.path(), &view).map(drop).unwrap_err().to_string();
        let unknown = fails(ScheduleView { connection: Some("c".into()), ..ALL });
        assert!(unknown.ends_with("the trace has a, b"), "{unknown}");
        assert_eq!(fails(ScheduleView { from_s: 7.0, ..ALL }), "nothing was sent in that time");
    }
}
