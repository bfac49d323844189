//! The list of schedulers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Parameter, Params, SpecError, Status};

use crate::minrtt::MinRtt;
use crate::scheduler::Scheduler;

/// Makes a scheduler from checked parameters.
type Build = fn(&Params<'_>) -> Result<Box<dyn Scheduler>, SpecError>;

/// One row of the registry.
#[derive(Debug)]
pub struct Algorithm {
    /// The name users write.
    pub name: &'static str,
    /// Its parameters with their defaults.
    pub parameters: &'static [Parameter],
    /// Paper or source, with section.
    pub citation: &'static str,
    /// How far it can be trusted.
    pub status: Status,
    /// Its constructor.
    build: Build,
}

static ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "minrtt",
    parameters: &[],
    citation: "Linux MPTCP 0.95, mptcp_sched.c, without opportunistic retransmission",
    status: Status::Stable,
    build: |_| Ok(Box::new(MinRtt::new())),
}];

/// Every scheduler, in the order of documentation.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// Makes the scheduler that `spec` names.
///
/// # Errors
/// If no scheduler has the name, or a parameter is unknown or out of range.
pub fn create(spec: &AlgorithmSpec) -> Result<Box<dyn Scheduler>, SpecError> {
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == spec.name) else {
        let known = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ");
        return Err(SpecError::UnknownName { name: spec.name.clone(), known });
    };
    (algorithm.build)(&Params::new(spec, algorithm.parameters)?)
}
