//! An answer as a table, for people.

use std::fmt::Write as _;

use anyhow::Result;

use super::answer::AnswerReport;

/// The table.
pub(super) fn table(report: &AnswerReport) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{}: {}", report.scenario, report.question)?;
    for note in &report.notes {
        writeln!(text, "note: {note}")?;
    }
    writeln!(text, "{:36} {:>10} {:>10}", "connection", "Mbit/s", "goodput")?;
    for connection in &report.connections {
        let name = format!("{} ({})", connection.name, connection.cc);
        writeln!(text, "{name:36} {:>10.3} {:>10.3}", connection.rate_bps * 1e-6, connection.goodput_bps * 1e-6)?;
        if connection.paths.len() > 1 {
            for path in &connection.paths {
                let name = format!("  subflow {}: {}", path.path, path.links.join(", "));
                writeln!(text, "{name:36} {:>10.3}", path.rate_bps * 1e-6)?;
            }
        }
    }
    writeln!(text, "{:36} {:>10} {:>10}  {}", "link", "Mbit/s", "used", report.price_unit.unwrap_or_default())?;
    let highest = report.links.iter().filter_map(|link| link.price).fold(0.0, f64::max);
    for link in &report.links {
        let used = link.load_bps / link.capacity_bps * 100.0;
        let price = link.price.map(|price| format!("  {}", digits(price, highest))).unwrap_or_default();
        writeln!(text, "{:36} {:>10.3} {used:>9.1}%{price}", link.name, link.capacity_bps * 1e-6)?;
    }
    Ok(text)
}

/// A price with four digits, whatever its size: those of one network may all be small. What is a billionth of the highest is
/// what the solver leaves of zero.
fn digits(price: f64, highest: f64) -> String {
    match price {
        _ if price <= highest * 1e-9 => "0".to_owned(),
        1e-3.. => format!("{price:.6}"),
        _ => format!("{price:.3e}"),
    }
}
