//! The list of controllers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Parameter, Params, SpecError, Status};

use crate::controller::CongestionControl;
use crate::reno::Reno;
use crate::uncoupled::Uncoupled;

/// Makes a controller from checked parameters and a seed for its randomness.
type Build = fn(&Params<'_>, u64) -> Result<Box<dyn CongestionControl>, SpecError>;

/// One row of the registry.
#[derive(Debug)]
pub struct Algorithm {
    /// The name users write.
    pub name: &'static str,
    /// Its parameters with their defaults.
    pub parameters: &'static [Parameter],
    /// Paper or RFC, with section.
    pub citation: &'static str,
    /// How far it can be trusted.
    pub status: Status,
    /// Its constructor.
    build: Build,
}

static ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "reno",
    parameters: &[],
    citation: "RFC 5681; RFC 9002 s7",
    status: Status::Stable,
    build: |_, _| Ok(Box::new(Uncoupled::new(|_, _, init| Reno::new(init)))),
}];

/// Every controller, in the order of documentation.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// Makes the controller that `spec` names. Equal seeds and equal events give equal behaviour.
///
/// # Errors
/// If no controller has the name, or a parameter is unknown or out of range.
pub fn create(spec: &AlgorithmSpec, seed: u64) -> Result<Box<dyn CongestionControl>, SpecError> {
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == spec.name) else {
        let known = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ");
        return Err(SpecError::UnknownName { name: spec.name.clone(), known });
    };
    (algorithm.build)(&Params::new(spec, algorithm.parameters)?, seed)
}
