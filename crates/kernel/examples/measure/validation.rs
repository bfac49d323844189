//! The simulator's Multipath TCP beside the kernel's: the same links, the same controllers.

use std::fmt::Write as _;
use std::process::Command;

use crate::fairness::Setting;
use crate::target_rate::manypath;
use crate::{Failure, Outcome, Session, baseline, fairness};

/// Controllers with their names in the kernel. MPCC has the kernel's defaults.
const COMPARED: [(&str, &str); 4] = [
    ("lia", "mp_lia"),
    ("balia", "mp_balia"),
    (
        "mpcc-latency:slow-start=tolerant,brake=lasting,queue=heeded,bursts=heeded,timeout=backoff,low=near",
        "mp_mpcc_lat",
    ),
    ("uni-mptcp", "mp_uni"),
];

/// Runs of goodput on either side; their medians are compared.
pub(crate) const RUNS: u64 = 5;

/// How far apart they may be, as a share of the simulator's.
const TOLERANCE: f64 = 0.15;

/// Whether the simulator's numbers are put beside those of this controller, by its name in the kernel.
pub(crate) fn compares(kernel_name: &str) -> bool {
    COMPARED.iter().any(|(_, name)| *name == kernel_name)
}

/// Goodput of each connection in the simulator, Mbit/s.
fn simulate(scenario: &str, controller: &str, run: u64) -> Result<Vec<f64>, Failure> {
    let file = std::env::temp_dir().join(format!("manypath-measure-{}.toml", std::process::id()));
    // The first connection is the one that is looked at. Its subflows are paced in the kernel; TCP beside it is not.
    let controller = format!("cc = \"{controller}\"\npace-windows = true");
    std::fs::write(&file, scenario.replacen("cc = \"reno\"", &controller, 1))?;
    let mut command = Command::new(manypath()?);
    command.args(["sim", "run", "--json", "--seed", &(run + 1).to_string()]).arg(&file);
    command.args(["--set", "connection.transport=tcp"]);
    let output = command.output()?;
    std::fs::remove_file(&file)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let runs: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let run = runs.get(0).unwrap_or(&runs);
    let connections = run["connections"].as_array().ok_or("the simulator's output has no connections")?;
    connections.iter().map(|one| Ok(one["goodput_bps"].as_f64().ok_or("no goodput")? / 1e6)).collect()
}

/// A row of the table, and whether both are alike.
fn row(outcome: &mut Outcome, what: &str, controller: &str, [simulated, kernel]: [f64; 2]) -> Result<(), Failure> {
    let apart = kernel / simulated - 1.0;
    writeln!(
        outcome.table,
        "| {what} | {controller} | {simulated:.2} | {kernel:.2} | {:+.0}% | {} |",
        100.0 * apart,
        if apart.abs() <= TOLERANCE { "yes" } else { "**no**" }
    )?;
    Ok(())
}

/// Compares what the parts `baseline`, `fairness` and `per-packet` measured with what the simulator says.
pub(crate) fn measure(session: &mut Session) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    writeln!(
        outcome.table,
        "| what | controller | simulator | kernel | kernel is | within 15% |\n|---|---|---:|---:|---:|---|"
    )?;
    for (name, scenario) in baseline::alike_links() {
        let scenario = scenario.replacen("60s", "15s\"\nwarmup = \"5s", 1);
        for (controller, kernel_name) in COMPARED {
            let Some(kernel) = session.results.held(&format!("baseline/{name}/{kernel_name}")) else { continue };
            let simulated: Result<Vec<f64>, Failure> =
                (0..RUNS).map(|run| Ok(simulate(&scenario, controller, run)?[0])).collect();
            let simulated = crate::flow::median(&simulated?);
            row(&mut outcome, &format!("goodput, Mbit/s: {name}"), controller, [simulated, kernel])?;
        }
    }
    for (controller, kernel_name) in COMPARED {
        for setting in Setting::ALL {
            shares(session, &mut outcome, setting, controller, kernel_name)?;
        }
    }
    Ok(outcome)
}

/// Compares shares beside a TCP Reno flow, if they were measured.
fn shares(
    session: &Session,
    outcome: &mut Outcome,
    setting: Setting,
    controller: &str,
    kernel_name: &str,
) -> Result<(), Failure> {
    let (mut simulated, mut kernel) = (Vec::new(), Vec::new());
    for run in 0.. {
        let Some(ratio) = session.results.held(&format!("{}/{kernel_name}/{run}", setting.part())) else { break };
        kernel.push(ratio / (1.0 + ratio));
        let rates = simulate(&fairness::simulated(run), controller, run)?;
        simulated.push(rates[0] / (rates[0] + rates[1]));
    }
    if kernel.is_empty() {
        return Ok(());
    }
    let how = match setting {
        Setting::Segments => "",
        Setting::Packets => ", without segmentation offload",
    };
    let what = format!("share beside a TCP Reno flow{how}, median of {}", kernel.len());
    row(outcome, &what, controller, [crate::flow::median(&simulated), crate::flow::median(&kernel)])
}
