//! The table of several runs of one scenario: means, and the range over seeds.

use std::fmt::Write as _;

use anyhow::Result;
use manypath_sim::Report;

use crate::output::counted;

/// The mean of values and their range.
struct Spread {
    mean: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut sum, mut count) = (0.0, 0_u32);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (sum, count) = (sum + value, count + 1);
            (least, most) = (least.min(value), most.max(value));
        }
        Self { mean: sum / f64::from(count.max(1)), least, most }
    }

    fn write(&self, text: &mut String) -> Result<()> {
        write!(text, "{:>10.3} {:>22}", self.mean, format!("{:.3} .. {:.3}", self.least, self.most))?;
        Ok(())
    }
}

/// The table. All reports are of one scenario, and there is one at least.
pub(super) fn table(reports: &[Report]) -> Result<String> {
    let mut text = String::new();
    let [first, ..] = reports else { return Ok(text) };
    let runs = counted(reports.len(), "run", "runs");
    writeln!(text, "{}: {} s, {runs} from seed {}", first.scenario, first.duration_s, first.seed)?;
    writeln!(text, "{:32} {:>10} {:>22} {:>10}", "connection", "Mbit/s", "range over seeds", "resent")?;
    for (index, connection) in first.connections.iter().enumerate() {
        let each = || reports.iter().filter_map(|report| report.connections.get(index));
        write!(text, "{:32} ", format!("{} ({})", connection.name, connection.cc))?;
        Spread::of(each().map(|held| held.goodput_bps * 1e-6)).write(&mut text)?;
        let resent = each().map(|held| held.retransmitted_bytes as f64 / held.delivered_bytes.max(1) as f64);
        writeln!(text, " {:>9.3}%", Spread::of(resent).mean * 100.0)?;
        for number in 0..connection.subflows.len() {
            let each = each().filter_map(|held| held.subflows.get(number));
            write!(text, "{:32} ", format!("  subflow {number}"))?;
            Spread::of(each.map(|held| held.sending_bps * 1e-6)).write(&mut text)?;
            text.push('\n');
        }
    }
    writeln!(text, "{:32} {:>10} {:>22} {:>10}", "link", "used %", "range over seeds", "queue ms")?;
    for (index, link) in first.links.iter().enumerate() {
        let each = || reports.iter().filter_map(|report| report.links.get(index));
        write!(text, "{:32} ", link.name)?;
        Spread::of(each().map(|held| held.utilisation * 100.0)).write(&mut text)?;
        writeln!(text, " {:>10.3}", Spread::of(each().map(|held| held.queueing_mean_s.unwrap_or(0.0) * 1e3)).mean)?;
    }
    if first.connections.len() > 1 {
        write!(text, "{:32} ", "Jain's index")?;
        Spread::of(reports.iter().filter_map(|report| report.jain)).write(&mut text)?;
        text.push('\n');
    }
    Ok(text)
}
