//! A connection of two subflows beside one TCP Reno flow, all over one bottleneck.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use crate::flow::{Flow, Wish, goodput, links, median};
use crate::{Effort, Failure, Loaded, Outcome};

/// One link of 50 Mbit/s with a queue of one product of rate and round trip, 30 ms, for two subflows and a TCP flow.
const SCENARIO: &str = "duration = \"90s\"\n\
    [[link]]\nname = \"shared\"\nrate = \"50Mbit\"\ndelay = \"15ms\"\nqueue = \"187500B\"\n\
    [[connection]]\nname = \"multipath\"\ncc = \"reno\"\npath = [{ route = [\"shared\"] }, { route = [\"shared\"] }]\n\
    [[connection]]\nname = \"single\"\ncc = \"reno\"\npath = [{ route = [\"shared\"] }]\n";

/// Where the TCP flow is found: the paths of all connections over the same links are the same, so it has the first.
const SINGLE: usize = 0;

/// Goodput of the connection over that of the TCP flow, in one run.
fn ratio(controller: &str, run: u64, effort: Effort) -> Result<f64, Failure> {
    let links = links(SCENARIO, run + 1)?;
    let wish = |controller, multipath, port| Wish {
        controller,
        multipath,
        from: links.paths()[0].client,
        to: links.paths()[0].server,
        port,
        buffers: None,
    };
    let single = Flow::over(&links, SINGLE, &wish("reno", false, 5001))?;
    // Runs differ by when the second flow comes: there is no randomness on the links.
    thread::sleep(Duration::from_millis(500 + 70 * run));
    let multipath = Flow::over(&links, 0, &wish(controller, true, 5000))?;
    let [ours, theirs] = goodput([&multipath, &single], effort.seconds(5), effort.seconds(60));
    Ok(ours / theirs)
}

pub(crate) fn measure(effort: Effort) -> Result<Outcome, Failure> {
    let loaded = Loaded::all()?;
    let ours = loaded.iter().map(|(loaded, object)| (object.kernel_name.to_owned(), loaded.name.as_str()));
    let builtin = [("reno".to_owned(), "reno"), ("cubic".to_owned(), "cubic"), ("bbr".to_owned(), "bbr")];
    let mut outcome = Outcome::default();
    writeln!(outcome.table, "| controller | median | least | most |\n|---|---:|---:|---:|")?;
    for (name, controller) in builtin.into_iter().chain(ours) {
        let ratios = (0..effort.times(5)).map(|run| ratio(controller, run, effort)).collect::<Result<Vec<_>, _>>()?;
        let middle = median(&ratios);
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        eprintln!("{name}: {ratios:.2?}");
        writeln!(outcome.table, "| {name} | {middle:.2} | {least:.2} | {most:.2} |")?;
        if name == "mp_tccc" {
            let holds = (0.85..=1.15).contains(&middle);
            outcome.check(holds, format!("mp_tccc: {middle:.2} of the TCP flow, between 0.85 and 1.15"));
        }
    }
    Ok(outcome)
}
