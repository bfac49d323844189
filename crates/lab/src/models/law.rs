//! `law`: a control law in one state (TCCC equations 12 to 19, Table II).
//!
//! Arguments `law` (a controller's name; `ewtcp:a=0.7` and `semicoupled:a=1` with their weight), `packet`, and either `subflows` (a list of tables with `rate` and `rtt`) or `state`
//! (a number that a random state is drawn by) with `paths` (how many) and `rtts` (`equal` or `random`, 10 to 200 ms). Quantities for each subflow from
//! 0: `phi.N`, `k.N`, `increase.N`, `decrease.N`, and `tcp_phi.N`, `tcp_k.N` of NewReno in the same state.

use manypath_core::{AlgorithmSpec, Duration, Rate, SpecError};
use manypath_theory::fluid::{Algorithm, State};
use rand_core::Rng;

use super::arguments::Arguments;
use crate::engine::EngineError;
use crate::quantities::Quantities;

/// The most subflows of a random state.
const MAX_PATHS: u32 = 64;

pub(super) fn law(arguments: &Arguments) -> Result<Quantities, EngineError> {
    let failed = |error: &dyn core::fmt::Display| EngineError(error.to_string());
    arguments.only(&["model", "law", "packet", "subflows", "state", "paths", "rtts"])?;
    let subflows = if arguments.has("state") { drawn(arguments)? } else { given(arguments)? };
    let state = State::new(&subflows, arguments.size("packet")?).map_err(|error| failed(&error))?;
    let name = arguments.text("law")?;
    let law = named(name, subflows.len())?;
    let mut found = Quantities::default();
    let mut lists = Vec::new();
    for (prefix, law) in [("", &law), ("tcp_", &Algorithm::Reno)] {
        lists.push((format!("{prefix}phi"), law.phi(&state)));
        lists.push((format!("{prefix}k"), law.k(&state)));
        lists.push((format!("{prefix}increase"), law.increase(&state)));
        lists.push((format!("{prefix}decrease"), law.decrease(&state)));
    }
    for (name, list) in lists {
        for (index, value) in list.map_err(|error| failed(&error))?.into_iter().enumerate() {
            found.set(&format!("{name}.{index}"), value);
        }
    }
    Ok(found)
}

/// The law of this name.
pub(super) fn named(text: &str, subflows: usize) -> Result<Algorithm, EngineError> {
    let spec: AlgorithmSpec = text.parse().map_err(|error: SpecError| EngineError(error.to_string()))?;
    let wrong = || EngineError(format!("'{text}': only ewtcp and semicoupled have a weight, like ewtcp:a=0.7"));
    let law = Algorithm::named(&spec.name, subflows);
    let law = law.ok_or_else(|| EngineError(format!("there is no fluid model of '{text}'")))?;
    match (law, spec.params.as_slice()) {
        (law, []) => Ok(law),
        (Algorithm::Ewtcp { .. }, [(key, value)]) if key == "a" => {
            Ok(Algorithm::Ewtcp { a: value.parse().map_err(|_| wrong())? })
        }
        (Algorithm::Semicoupled { .. }, [(key, value)]) if key == "a" => {
            Ok(Algorithm::Semicoupled { a: value.parse().map_err(|_| wrong())? })
        }
        _ => Err(wrong()),
    }
}

fn given(arguments: &Arguments) -> Result<Vec<(Rate, Duration)>, EngineError> {
    let subflow = |table: &Arguments| {
        table.only(&["rate", "rtt"])?;
        Ok((table.rate("rate")?, table.span("rtt")?))
    };
    arguments.tables("subflows")?.iter().map(subflow).collect()
}

/// A random state: windows of 2 to 100 packets, round trips of 10 to 200 ms.
fn drawn(arguments: &Arguments) -> Result<Vec<(Rate, Duration)>, EngineError> {
    let paths = arguments.count("paths")?;
    if !(1..=MAX_PATHS).contains(&paths) {
        return Err(EngineError(format!("paths is {paths}: it must be 1 to {MAX_PATHS}")));
    }
    let mut random = manypath_link::generator(u64::from(arguments.count("state")?), "law/state");
    let mut uniform =
        |low: f64, high: f64| low + (high - low) * (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let equal = match arguments.text("rtts")? {
        "equal" => Some(uniform(0.01, 0.2)),
        "random" => None,
        other => return Err(EngineError(format!("rtts is '{other}': it must be equal or random"))),
    };
    let packet = arguments.size("packet")?.as_f64();
    let subflow = |_| {
        let rtt = equal.unwrap_or_else(|| uniform(0.01, 0.2));
        let window = uniform(2.0, 100.0) * packet;
        (Rate::from_bps(window * 8.0 / rtt), Duration::from_secs_f64(rtt))
    };
    Ok((0..paths).map(subflow).collect())
}
