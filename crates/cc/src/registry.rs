//! The list of controllers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Parameter, Params, SpecError, Status};

use crate::aimd::Aimd;
use crate::controller::CongestionControl;
use crate::cubic::{self, Cubic};
use crate::lia::Lia;
use crate::mpcc::{self, Mpcc};
use crate::reno::Reno;
use crate::seeds::Seeds;
use crate::uncoupled::Uncoupled;

/// A controller, whatever its type.
type Controller = Box<dyn CongestionControl>;
/// Makes a controller from checked parameters and the seeds of its randomness.
type Build = fn(&Params<'_>, Seeds) -> Result<Controller, SpecError>;

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

static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "reno",
        parameters: &[],
        citation: "RFC 5681; RFC 9002 s7",
        status: Status::Stable,
        build: |_, _| Ok(Box::new(Uncoupled::new(|_, _, init| Reno::new(init)))),
    },
    Algorithm {
        name: "cubic",
        parameters: &[Parameter {
            name: "fast-convergence",
            default: "on",
            range: "on or off",
            meaning: "give way faster to new flows (RFC 9438 s4.7)",
        }],
        citation: "RFC 9438",
        status: Status::Stable,
        build: |params, _| {
            let config = cubic::Config::from_params(params)?;
            Ok(Box::new(Uncoupled::new(move |_, _, init| Cubic::new(config, init))))
        },
    },
    Algorithm {
        name: "lia",
        parameters: &[],
        citation: "RFC 6356",
        status: Status::Stable,
        build: |_, _| Ok(Box::new(Aimd::new(Lia))),
    },
    Algorithm {
        name: "mpcc-loss",
        parameters: &mpcc::parameters(mpcc::LOSS_LATENCY_WEIGHT),
        citation: "Gilad et al., CoNEXT 2020, s4-5 (gamma = 0)",
        status: Status::Stable,
        build: build_mpcc,
    },
    Algorithm {
        name: "mpcc-latency",
        parameters: &mpcc::parameters(mpcc::LATENCY_LATENCY_WEIGHT),
        citation: "Gilad et al., CoNEXT 2020, s4-5 (gamma = 1)",
        status: Status::Stable,
        build: build_mpcc,
    },
];

fn build_mpcc(params: &Params<'_>, seeds: Seeds) -> Result<Controller, SpecError> {
    Ok(Box::new(Mpcc::new(mpcc::config(params)?, seeds)))
}

/// Every controller, in the order of documentation.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// Makes the controller that `spec` names. Equal seeds and equal events give equal behaviour.
///
/// # Errors
/// If no controller has the name, or a parameter is unknown or out of range.
pub fn create(spec: &AlgorithmSpec, seed: u64) -> Result<Controller, SpecError> {
    create_seeded(spec, Seeds::new(seed))
}

/// As [`create`], with the seeds of subflows given one by one.
///
/// # Errors
/// As [`create`].
pub fn create_seeded(spec: &AlgorithmSpec, seeds: Seeds) -> Result<Controller, SpecError> {
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == spec.name) else {
        let known = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ");
        return Err(SpecError::UnknownName { name: spec.name.clone(), known });
    };
    (algorithm.build)(&Params::new(spec, algorithm.parameters)?, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_builds_with_its_defaults_and_names_are_unique() {
        for (index, algorithm) in ALGORITHMS.iter().enumerate() {
            create(&AlgorithmSpec::named(algorithm.name), 1).unwrap();
            assert!(ALGORITHMS[..index].iter().all(|other| other.name != algorithm.name), "{}", algorithm.name);
            assert!(!algorithm.citation.is_empty());
        }
    }

    #[test]
    fn every_documented_parameter_is_read() {
        // A value that no parameter takes must be refused: a parameter that is listed but not read would accept it.
        for algorithm in ALGORITHMS {
            for parameter in algorithm.parameters {
                let mut spec = AlgorithmSpec::named(algorithm.name);
                spec.params.push((parameter.name.to_owned(), "nonsense".to_owned()));
                let error = create(&spec, 1).map(|_| ()).unwrap_err();
                assert!(matches!(error, SpecError::BadValue { .. }), "{spec}: {error}");
                // And its default, written out, is accepted.
                spec.params[0].1 = parameter.default.to_owned();
                create(&spec, 1).unwrap();
            }
        }
    }

    #[test]
    fn unknown_names_and_parameters_are_refused() {
        let error = create(&AlgorithmSpec::named("none"), 1).map(|_| ()).unwrap_err();
        assert!(matches!(error, SpecError::UnknownName { .. }));
        let spec = "reno:x=1".parse().unwrap();
        let error = create(&spec, 1).map(|_| ()).unwrap_err();
        assert!(matches!(error, SpecError::UnknownParameter { .. }));
    }
}
