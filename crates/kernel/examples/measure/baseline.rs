//! Goodput of one connection over two paths, one of which is bad in some way.

use std::fmt::Write as _;

use crate::flow::{Flow, Wish, goodput, links as start, median};
use crate::{BUILT_IN, Failure, Loaded, Outcome, Session, validation};

/// What is done to the first path.
const CHANGES: [(&str, &str); 6] = [
    ("none", "queue = \"375KB\""),
    ("queue 9 KB", "queue = \"9KB\""),
    ("queue 30 KB", "queue = \"30KB\""),
    ("loss 0.01%", "queue = \"375KB\"\nloss = \"0.01%\""),
    ("loss 0.1%", "queue = \"375KB\"\nloss = \"0.1%\""),
    ("loss 1%", "queue = \"375KB\"\nloss = \"1%\""),
];

/// Runs whose median counts, of a controller (its column) under a condition: one, but more where chance decides and where the
/// simulator's median is compared with it.
fn runs(condition: &str, column: &str) -> u64 {
    match (condition, column) {
        ("loss 1%", "mp_mpcc_lat") => 9,
        _ if validation::compares(column) => validation::RUNS,
        _ => 1,
    }
}

/// Buffers of the hosts.
const BUFFERS: [(&str, Option<usize>); 3] = [("default", None), ("512 KB", Some(512_000)), ("256 KB", Some(256_000))];

const CONNECTION: &str = "[[connection]]\nname = \"c\"\ncc = \"reno\"\n\
    path = [{ route = [\"link1\"] }, { route = [\"link2\"] }]\n";

/// Two links of 100 Mbit/s and a round trip of 30 ms.
fn alike(first: &str) -> String {
    let link =
        |name, more: &str| format!("[[link]]\nname = \"{name}\"\nrate = \"100Mbit\"\ndelay = \"15ms\"\n{more}\n");
    format!("duration = \"60s\"\n{}{}{CONNECTION}", link("link1", first), link("link2", "queue = \"375KB\""))
}

/// What is done to the first of them, and the scenario.
pub(crate) fn alike_links() -> impl Iterator<Item = (&'static str, String)> {
    CHANGES.iter().map(|(name, change)| (*name, alike(change)))
}

/// Two links of 30 Mbit/s, a quick one with a short queue and a slow one with a long queue.
fn unlike() -> String {
    let link = |name, delay, queue| {
        format!(
            "[[link]]\nname = \"{name}\"\nrate = \"30Mbit\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\nloss = \"0.01%\"\n"
        )
    };
    // 500 ms of queue.
    format!("duration = \"60s\"\n{}{}{CONNECTION}", link("link1", "10ms", "30KB"), link("link2", "100ms", "1875KB"))
}

/// A row for every condition, a column for every controller.
struct Table {
    columns: Vec<String>,
    rows: Vec<(&'static str, Vec<f64>)>,
}

impl Table {
    fn markdown(&self, title: &str) -> Result<String, Failure> {
        let mut text = String::new();
        writeln!(text, "| {title} | {} |", self.columns.join(" | "))?;
        writeln!(text, "|---{}|", "|---:".repeat(self.columns.len()))?;
        for (name, values) in &self.rows {
            let cells: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
            writeln!(text, "| {name} | {} |", cells.join(" | "))?;
        }
        Ok(text)
    }

    fn get(&self, row: &str, column: &str) -> Option<f64> {
        let column = self.columns.iter().position(|name| name == column)?;
        self.rows.iter().find(|(name, _)| *name == row).map(|(_, values)| values[column])
    }
}

/// Runs every controller under every condition.
fn table(
    session: &mut Session,
    part: &str,
    conditions: &[(&'static str, String, Option<usize>)],
    warmup: u64,
    seconds: u64,
) -> Result<Table, Failure> {
    let ours = Loaded::with_variant(session, part)?;
    let builtin = BUILT_IN.iter().filter(|name| session.wants(name)).map(|name| ((*name).to_owned(), *name));
    let ours = ours.iter().map(|loaded| (loaded.title.clone(), loaded.name.as_str()));
    let columns: Vec<(String, &str)> = builtin.chain(ours).collect();
    let mut rows = Vec::new();
    for (name, scenario, buffers) in conditions {
        if !session.has_row(name) {
            continue;
        }
        let mut values = Vec::new();
        for (column, controller) in &columns {
            let (warmup, seconds) = (session.seconds(warmup), session.seconds(seconds));
            let runs = if session.short || part != "baseline" { 1 } else { runs(name, column) };
            let measured = session.results.get(&format!("{part}/{name}/{column}"), || {
                let one = |_| {
                    let links = start(scenario, 1)?;
                    let wish = Wish::of(controller, *buffers);
                    let flow = Flow::over(&links, 0, &wish)?;
                    let [measured] = goodput([&flow], warmup, seconds);
                    Ok(measured)
                };
                (0..runs).map(one).collect()
            })?;
            values.push(median(&measured));
        }
        rows.push((*name, values));
    }
    Ok(Table { columns: columns.into_iter().map(|(name, _)| name).collect(), rows })
}

/// Two links alike, the first bad in some way.
pub(crate) fn links(session: &mut Session) -> Result<Outcome, Failure> {
    let conditions: Vec<_> = alike_links().map(|(name, scenario)| (name, scenario, None)).collect();
    let table = table(session, "baseline", &conditions, 5, 10)?;
    let mut outcome = Outcome { table: table.markdown("change on path 1")?, ..Outcome::default() };
    for (row, least) in [("loss 1%", 165.0), ("queue 9 KB", 150.0)] {
        if let Some(found) = table.get(row, "mp_mpcc_lat") {
            outcome.check(found >= least, format!("mp_mpcc_lat, {row}: {found:.1} Mbit/s, at least {least:.0}"));
        }
    }
    if let (Some(found), Some(cubic)) = (table.get("none", "mp_mpcc_lat"), table.get("none", "cubic")) {
        let words = format!("mp_mpcc_lat on clean links: {:.1}% of cubic's, at least 90%", 100.0 * found / cubic);
        outcome.check(found >= 0.9 * cubic, words);
    }
    Ok(outcome)
}

/// Two unlike links, and hosts of small memory.
pub(crate) fn buffers(session: &mut Session) -> Result<Outcome, Failure> {
    let conditions: Vec<_> = BUFFERS.iter().map(|(name, bytes)| (*name, unlike(), *bytes)).collect();
    let table = table(session, "buffers", &conditions, 5, 15)?;
    Ok(Outcome { table: table.markdown("buffers of the hosts")?, ..Outcome::default() })
}
