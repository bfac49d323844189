//! What carries out runs.

use manypath_scenario::Scenario;

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

    /// Version and hash of the code that decides its results.
    fn code(&self) -> &'static str;

    /// How many runs may go on at once, given what the user allows.
    fn parallel(&self, jobs: usize) -> usize {
        jobs
    }

    /// Carries out a run.
    ///
    /// # Errors
    /// If the input is not for this engine, or the run fails.
    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError>;
}

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn kind(&self) -> EngineKind {
        EngineKind::Sim
    }

    fn code(&self) -> &'static str {
        concat!(env!("CARGO_PKG_VERSION"), "+", env!("MANYPATH_CODE_SIM"))
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        let Input::Scenario(scenario) = input else { return Err(EngineError("no scenario to simulate".to_owned())) };
        let report = manypath_sim::run(scenario, seed).map_err(|error| EngineError(error.to_string()))?;
        let json = serde_json::to_value(&report).map_err(|error| EngineError(error.to_string()))?;
        Ok(Quantities::of_json(&json))
    }
}
