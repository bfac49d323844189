//! What carries out runs.

mod kernel;
mod quic;

pub use kernel::Kernel;
pub use quic::Quic;

use manypath_core::{Rate, Time};
use manypath_link::{Capacity, LinkConfig};
use manypath_scenario::{Scenario, Workload};

use crate::code::{self, Code};
use crate::experiment::EngineKind;
use crate::models::Arguments;
use crate::quantities::Quantities;

/// What a run needs.
#[derive(Clone, Debug)]
pub enum Input {
    /// A scenario.
    Scenario(Box<Scenario>),
    /// A model's arguments.
    Theory(Arguments),
}

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);

/// Something that carries out runs.
pub trait Engine: Sync {
    /// Which one it is.
    fn kind(&self) -> EngineKind;

    /// The code that decides its results.
    fn code(&self) -> &'static Code;

    /// The code that decides the result of a run, in words.
    fn code_of(&self, input: &Input) -> String {
        self.code().of(input)
    }

    /// Whether a run takes as long as its scenario says. Such runs would disturb each other: one goes on at a time.
    fn is_real_time(&self) -> bool {
        false
    }

    /// What keeps it from running anything here, and what to do about it.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Whether it can run this.
    ///
    /// # Errors
    /// With what it cannot do.
    fn check(&self, input: &Input) -> Result<(), EngineError> {
        let _ = input;
        Ok(())
    }

    /// Carries out a run.
    ///
    /// # Errors
    /// If the input is not for this engine, or the run fails.
    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError>;
}

/// The scenario that is to be run.
fn scenario(input: &Input) -> Result<&Scenario, EngineError> {
    match input {
        Input::Scenario(scenario) => Ok(scenario),
        Input::Theory(_) => Err(EngineError("no scenario to run".to_owned())),
    }
}

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn kind(&self) -> EngineKind {
        EngineKind::Sim
    }

    fn code(&self) -> &'static Code {
        &code::SIM
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        let scenario = scenario(input)?;
        let report = manypath_sim::run(scenario, seed).map_err(|error| EngineError(error.to_string()))?;
        let json = serde_json::to_value(&report).map_err(|error| EngineError(error.to_string()))?;
        let mut found = Quantities::of_json(&json);
        add_capacities(&mut found, scenario, seed);
        add_unfinished(&mut found, scenario);
        Ok(found)
    }
}

/// Adds what files that have not arrived took: no number, lest a mean be of the faster ones only.
pub(crate) fn add_unfinished(found: &mut Quantities, scenario: &Scenario) {
    for connection in scenario.connections.iter().filter(|held| matches!(held.workload, Workload::File(_))) {
        let name = format!("connection.{}.file.completion_s", connection.name);
        found.0.entry(name).or_insert_with(|| vec![f64::NAN]);
    }
}

/// Adds what each link could carry at the times of time series: `series.link.NAME.capacity_bps`. Links with traces are left
/// out.
pub(crate) fn add_capacities(found: &mut Quantities, scenario: &Scenario, seed: u64) {
    let Some(times) = found.0.get("series.time_s").cloned() else { return };
    for link in &scenario.links {
        let config = link.drawn(scenario.duration, seed);
        let at = |seconds: &f64| capacity(&config, *seconds).map(Rate::as_bps);
        if let Some(values) = times.iter().map(at).collect::<Option<Vec<f64>>>() {
            found.0.insert(format!("series.link.{}.capacity_bps", link.name), values);
        }
    }
}

/// The rate in force just before a time.
fn capacity(config: &LinkConfig, seconds: f64) -> Option<Rate> {
    let Capacity::Rate(first) = config.capacity else { return None };
    let time = Time::ZERO + manypath_core::Duration::from_secs_f64(seconds);
    let changes = config.schedule.iter().take_while(|change| change.at < time);
    Some(changes.filter_map(|change| change.rate).last().unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Expr, evaluate};

    #[test]
    #[allow(clippy::float_cmp)] // the numbers are exact
    fn capacities_follow_the_schedule() {
        let text = "duration = \"4s\"\nsample = \"1s\"\ntopology = \"two-links\"\n[[link]]\nname = \"link1\"\n\
            schedule = [{ at = \"2s\", rate = \"10Mbit\" }]\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
        let scenario = manypath_scenario::parse(text, "x", std::path::Path::new(".")).unwrap();
        let found = Simulator.run(&Input::Scenario(Box::new(scenario)), 1).unwrap();
        // A sample is about the second before it.
        assert_eq!(found.0["series.link.link1.capacity_bps"], [100e6, 100e6, 10e6, 10e6]);
        assert_eq!(found.0["series.link.link2.capacity_bps"], [100e6; 4]);
    }

    #[test]
    #[allow(clippy::float_cmp)] // the numbers are exact
    fn what_has_not_arrived_or_sent_is_no_number() {
        let text = "duration = \"1s\"\ntopology = \"two-links\"\n\
            [[connection]]\nname = \"f1\"\nrole = \"sp1\"\ncc = \"reno\"\nfile = \"10kB\"\n\
            [[connection]]\nname = \"f2\"\nrole = \"sp1\"\ncc = \"reno\"\nfile = \"1GB\"\n\
            [[connection]]\nname = \"late\"\nrole = \"sp1\"\ncc = \"reno\"\nstart = \"2s\"\n";
        let scenario = manypath_scenario::parse(text, "x", std::path::Path::new(".")).unwrap();
        let found = Simulator.run(&Input::Scenario(Box::new(scenario)), 1).unwrap();
        assert!(found.0["connection.f1.file.completion_s"][0] > 0.0);
        assert!(found.0["connection.f2.file.completion_s"][0].is_nan());
        assert!(!found.0.contains_key("connection.late.file.completion_s"), "it has no file");
        let of = |text: &str| evaluate(&Expr::parse(text).unwrap(), &found).unwrap().data;
        assert!(of("mean(connection.f*.file.completion_s)")[0].is_nan());
        assert_eq!(of("count(connection.f*.file.completion_s)"), [1.0]);
        assert!(found.0["connection.late.subflow.0.max_rtt_s"][0].is_nan());
        // Lists of the same connections go together.
        let rtts = of("connection.*.subflow.0.srtt_s * 0 + connection.*.goodput_bps");
        assert!(rtts.len() == 3 && rtts[2].is_nan() && rtts[0] > 0.0, "{rtts:?}");
    }
}
