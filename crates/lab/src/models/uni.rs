//! `uni`: what a weight buys on two paths (Uni-MPTCP, Table I).
//!
//! Arguments `n1`, `n2` (TCP flows on each link), `c1`, `c2` (rates), `omega`, and `rule`: `optimum`, or `printed` for where
//! equations 17 and 20 come to rest as they are printed, with a decrease by the weight. Quantities: `x1`, `x2`, `y1`, `y2`, `y` (bit/s,
//! Table I), `low`, `high` (the weights between which both paths are used), `peak_omega`, `peak` (the largest `y`), and `num_y1`, `num_y2`, `num_x1`,
//! `num_x2` from maximising the utilities of equations 14 and 15.

use manypath_core::Rate;
use manypath_theory::num::maximise;
use manypath_theory::uni::{Shares, TwoPaths};

use super::arguments::Arguments;
use crate::engine::EngineError;
use crate::quantities::Quantities;

pub(super) fn uni(arguments: &Arguments) -> Result<Quantities, EngineError> {
    arguments.only(&["model", "n1", "n2", "c1", "c2", "omega", "rule"])?;
    let failed = |error: &dyn core::fmt::Display| EngineError(error.to_string());
    let flows = [arguments.count("n1")?, arguments.count("n2")?];
    let capacities = [arguments.rate("c1")?, arguments.rate("c2")?];
    let paths = TwoPaths::new(flows, capacities).map_err(|error| failed(&error))?;
    let omega = arguments.number("omega")?;
    let mut shares = paths.shares(omega).map_err(|error| failed(&error))?;
    match if arguments.has("rule") { arguments.text("rule")? } else { "optimum" } {
        "optimum" => {}
        "printed" => printed(&mut shares, flows, capacities, omega),
        other => return Err(EngineError(format!("rule is '{other}': it must be optimum or printed"))),
    }
    let [low, high] = paths.bounds();
    let best = paths.shares(paths.peak_omega()).map_err(|error| failed(&error))?;
    let (network, utilities) = paths.problem(omega).map_err(|error| failed(&error))?;
    let optimum = maximise(&network, &utilities).map_err(|error| failed(&error))?;
    let rate = |connection: usize, subflow: usize| {
        optimum.allocation.subflows(connection).get(subflow).map_or(f64::NAN, |rate| rate.as_bps())
    };
    let first = 1;
    let second = first + flows[0] as usize;
    let mut found = Quantities::default();
    let values = [
        ("x1", shares.tcp[0].as_bps()),
        ("x2", shares.tcp[1].as_bps()),
        ("y1", shares.subflows[0].as_bps()),
        ("y2", shares.subflows[1].as_bps()),
        ("y", shares.total().as_bps()),
        ("low", low),
        ("high", high),
        ("peak_omega", paths.peak_omega()),
        ("peak", best.total().as_bps()),
        ("num_y1", rate(0, 0)),
        ("num_y2", rate(0, 1)),
        ("num_x1", rate(first, 0)),
        ("num_x2", rate(second, 0)),
    ];
    for (name, value) in values {
        found.set(name, value);
    }
    Ok(found)
}

/// Where the printed rule rests: increase and decrease have the same weight, so that all TCP flows get what the weighted sum
/// of the connection's rates is, `x_1 = x_2 = y_1 + omega y_2` (a link's TCP flows share what the subflow leaves).
fn printed(shares: &mut Shares, flows: [u32; 2], capacities: [Rate; 2], omega: f64) {
    let [n1, n2] = flows.map(f64::from);
    let [c1, c2] = capacities.map(Rate::as_bps);
    let share = (c1 + omega * c2) / (1.0 + n1 + omega * n2);
    let subflow = |capacity: f64, flows: f64| (capacity - flows * share).max(0.0);
    let rates = [subflow(c1, n1), subflow(c2, n2)];
    shares.subflows = rates.map(Rate::from_bps);
    shares.tcp = [Rate::from_bps((c1 - rates[0]) / n1), Rate::from_bps((c2 - rates[1]) / n2)];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eq. 17: n = (10, 1), c = (10, 10), omega = 0.01. The subflow of the small weight takes ten times a TCP.
    #[test]
    fn the_printed_rule_does_not_heed_the_weight() {
        let (flows, capacities) = ([10, 1], [Rate::from_mbps(10.0); 2]);
        let mut shares = TwoPaths::new(flows, capacities).unwrap().shares(0.01).unwrap();
        printed(&mut shares, flows, capacities, 0.01);
        let found: Vec<f64> = shares.tcp.iter().chain(&shares.subflows).map(|rate| rate.as_mbps()).collect();
        for (found, wanted) in found.iter().zip([0.92, 0.92, 0.83, 9.08]) {
            assert!((found - wanted).abs() < 0.005, "{shares:?}");
        }
    }
}
