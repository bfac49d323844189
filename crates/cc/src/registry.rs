//! The list of controllers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Parameter, Params, SpecError, Status};

use crate::controller::CongestionControl;
use crate::seeds::Seeds;

mod rows;

use rows::ALGORITHMS;

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

/// Every controller, in the order of documentation.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// Whether the controller of this name sends by rates of its own, and not by windows: what it is given waits for its pacer.
pub fn sends_by_rate(name: &str) -> bool {
    const OTHERS: [&str; 4] = ["vivace", "bbr", "bbr3", "mp-ol"];
    name.starts_with("mpcc") || OTHERS.contains(&name)
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
