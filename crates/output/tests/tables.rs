//! The tables of a run, and what docs/output.md says about them.

use std::fmt::Write as _;
use std::path::Path;

use manypath_output::{Table, Values, run_figure, run_tables};
use manypath_sim::Report;

/// A run that has everything that tables tell of.
fn report(seed: u64) -> Report {
    let text = "duration = \"3s\"\nsample = \"100ms\"\ntopology = \"mpcc-3c\"\n\
                [[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"mpcc-loss\"\nscheduler = \"stms-a\"\n\
                [[connection]]\nname = \"files\"\nrole = \"sp\"\ncc = \"cubic\"\n\
                arrivals = { size = \"50kB\", every = \"200ms\" }\n";
    let scenario = manypath_scenario::parse(text, "tables", Path::new(".")).unwrap();
    manypath_sim::run(&scenario, seed).unwrap()
}

fn real<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match &table.column(name).unwrap().values {
        Values::Real(values) => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tables_have_what_reports_have() {
    let reports = [report(1), report(2)];
    let tables = run_tables(&reports);
    let table = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
    for table in &tables {
        assert!(table.columns.iter().all(|column| column.values.len() == table.rows()), "{}", table.name);
        assert!(table.rows() > 0, "{}", table.name);
    }
    assert_eq!(table("runs").column("seed").unwrap().values, Values::Whole(vec![1, 2]));
    let goodputs: Vec<f64> =
        reports.iter().flat_map(|run| &run.connections).map(|connection| connection.goodput_bps).collect();
    assert_eq!(real(table("connections"), "goodput_bps"), goodputs);
    assert_eq!(table("files").rows(), reports.iter().map(|run| run.connections[1].files.len()).sum::<usize>());
    // Two runs of thirty samples: two connections, three subflows, four links.
    for (name, each) in [("connection_series", 2), ("subflow_series", 3), ("link_series", 4)] {
        assert_eq!(table(name).rows(), 2 * 30 * each, "{name}");
    }
    assert!(real(table("internals"), "value").iter().all(|value| !value.is_nan()));
    let mut plain = report(1);
    plain.series = None;
    assert_eq!(run_tables(&[plain]).len(), 5, "no time series, no tables of them");
}

#[test]
fn a_figure_names_every_line() {
    let svg = run_figure(&report(1)).unwrap().to_svg();
    for label in [">mp 0<", ">mp 1<", ">files<", "goodput (Mbit/s)", "smoothed RTT (ms)", "link queue (kB)", "time (s)"]
    {
        assert!(svg.contains(label), "{label}");
    }
    let mut without = report(1);
    without.series = None;
    assert!(run_figure(&without).is_none());
}

/// The tables as docs/output.md shows them.
fn described() -> String {
    let mut text = String::new();
    for table in run_tables(&[report(1)]) {
        writeln!(text, "### `{}`\n\n{}\n\n| column | type | meaning |\n|---|---|---|", table.name, table.about)
            .unwrap();
        for column in &table.columns {
            let kind = match column.values {
                Values::Text(_) => "text",
                Values::Whole(_) => "whole",
                Values::Real(_) => "real",
                Values::Flag(_) => "yes/no",
            };
            writeln!(text, "| `{}` | {kind} | {} |", column.name, column.about).unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_documentation_has_every_column() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once("<!-- tables -->\n").unwrap();
    let (held, after) = rest.split_once("<!-- end of tables -->").unwrap();
    let described = format!("\n{}", described());
    if std::env::var_os("MANYPATH_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}<!-- tables -->\n{described}<!-- end of tables -->{after}")).unwrap();
    } else {
        assert!(held == described, "docs/output.md is not up to date: run this test with MANYPATH_UPDATE_DOCS=1");
    }
}
