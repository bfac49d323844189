//! What runs leave behind: tables as Parquet files, figures as SVG, traces of scheduling decisions.
//!
//! [`Table`] and [`write_tables`] are for any table, [`run_tables`] makes those of simulator runs; [`Figure`] is for any
//! figure, [`run_figure`] draws a run; [`TraceFile`] takes the decisions of schedulers, [`schedule_figure`] draws them. Tables and
//! figures are whole or not there: they get their names when everything is written.
//! `docs/output.md` describes every table and column.
//!
//! # Dependencies
//!
//! `parquet` writes and reads Parquet, without Arrow: tables here are columns of four kinds, and Arrow would triple the
//! build for nothing. `serde_json` writes the descriptions of columns that go along, `tempfile` makes files that are not
//! there yet, `thiserror` error types. Figures are drawn here: `plotters` rounds to whole pixels, makes every dash an element
//! of its own, has no colours that follow the page and one release in two years; `charming` brings a JavaScript engine to
//! write SVG. What is needed is an axis, lines and labels.

mod column;
mod figure;
mod file;
mod parquet_file;
mod run_figure;
mod run_tables;
mod schedule_figure;
mod table;
mod trace;

pub use figure::{Axis, Figure, Mark, Panel, Series};
pub use file::{WriteError, write_file};
pub use parquet_file::{ReadError, read_table, write_tables};
pub use run_figure::run_figure;
pub use run_tables::run_tables;
pub use schedule_figure::{ScheduleFigureError, ScheduleView, schedule_figure};
pub use table::{Column, Table, Values};
pub use trace::{Backpressure, Decided, TraceFile, TraceReadError, TraceRow, read_trace};
