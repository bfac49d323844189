//! Reports for people.

use core::fmt::Write as _;

use super::Report;

impl Report {
    /// The report as a table, for people.
    pub fn to_table(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}: {} s, seed {}", self.scenario, self.duration_s, self.seed);
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "connection", "Mbit/s", "MB", "resent", "lost", "srtt ms"
        );
        for connection in &self.connections {
            let name = format!("{} ({})", connection.name, connection.cc);
            let (mbps, mb) = (connection.goodput_bps * 1e-6, connection.delivered_bytes as f64 * 1e-6);
            let resent = connection.retransmitted_bytes as f64 / connection.delivered_bytes.max(1) as f64;
            let _ = writeln!(out, "{name:24} {mbps:10.3} {mb:10.3} {:8.3}%", resent * 100.0);
            for (index, subflow) in connection.subflows.iter().enumerate() {
                let label = format!("  subflow {index}");
                let (mbps, mb) = (subflow.sending_bps * 1e-6, subflow.sent_bytes as f64 * 1e-6);
                let srtt = subflow.srtt_s.unwrap_or(0.0) * 1e3;
                let _ =
                    writeln!(out, "{label:24} {mbps:10.3} {mb:10.3} {:>9} {:9} {srtt:9.2}", "", subflow.lost_packets);
            }
        }
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "link", "used", "MB", "dropped", "marked", "queue ms"
        );
        for link in &self.links {
            let dropped = link.dropped_queue_full + link.dropped_random + link.dropped_early + link.dropped_dead;
            let queue = link.queueing_mean_s.unwrap_or(0.0) * 1e3;
            let (used, mb) = (link.utilisation * 100.0, link.delivered_bytes as f64 * 1e-6);
            let _ = writeln!(out, "{:24} {used:9.1}% {mb:10.3} {dropped:9} {:9} {queue:9.3}", link.name, link.marked);
        }
        if let Some(jain) = self.jain.filter(|_| self.connections.len() > 1) {
            let _ = writeln!(out, "Jain's index {jain:.4}");
        }
        out
    }
}
