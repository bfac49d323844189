//! The list of schedulers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Parameter, Params, SpecError, Status};

use crate::minrtt::MinRtt;
use crate::rate_based::{self, RateBased};
use crate::round_robin::RoundRobin;
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

static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "minrtt",
        parameters: &[],
        citation: "Linux MPTCP 0.95, mptcp_sched.c, without opportunistic retransmission",
        status: Status::Stable,
        build: |_| Ok(Box::new(MinRtt::new())),
    },
    Algorithm {
        name: "round-robin",
        parameters: &[],
        citation: "one segment on each subflow in turn",
        status: Status::Stable,
        build: |_| Ok(Box::new(RoundRobin::new())),
    },
    Algorithm {
        name: "rate-based",
        parameters: &[Parameter {
            name: "share",
            default: "0.1",
            range: "0..=1",
            meaning: "share of pacing rate x smoothed RTT from which on a subflow has enough queued (paper 000 s6)",
        }],
        citation: "MPCC (Gilad et al., CoNEXT 2020), section 6",
        status: Status::Stable,
        build: |params| Ok(Box::new(RateBased::new(rate_based::Config { share: params.number("share", 0.0, 1.0)? }))),
    },
];

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

#[cfg(test)]
mod tests {
    use super::*;

    fn built(text: &str) -> Result<(), SpecError> {
        text.parse().and_then(|spec| create(&spec)).map(drop)
    }

    #[test]
    fn every_row_builds_with_its_defaults_written_or_not() {
        for algorithm in algorithms() {
            assert_eq!(built(algorithm.name), Ok(()));
            for parameter in algorithm.parameters {
                assert_eq!(built(&format!("{}:{}={}", algorithm.name, parameter.name, parameter.default)), Ok(()));
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = algorithms().iter().map(|algorithm| algorithm.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), algorithms().len());
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        assert!(matches!(built("fastest"), Err(SpecError::UnknownName { .. })));
        assert!(matches!(built("minrtt:share=1"), Err(SpecError::UnknownParameter { .. })));
        assert!(matches!(built("rate-based:share=1.1"), Err(SpecError::BadValue { .. })));
        assert!(matches!(built("rate-based:share=x"), Err(SpecError::BadValue { .. })));
    }
}
