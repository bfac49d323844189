//! The list of schedulers: the command line, scenario files, documentation and tests read it.

use manypath_core::{AlgorithmSpec, Duration, Parameter, Params, SpecError, Status};

use crate::arrival_order::{self, ArrivalOrder};
use crate::backup::{self, Backup};
use crate::blest::{self, Blest};
use crate::daps::{self, Daps};
use crate::ecf::{self, Ecf};
use crate::linux_default::LinuxDefault;
use crate::minrtt::{self, MinRtt};
use crate::minrtt_pr::{self, MinRttPr};
use crate::rate_based::{self, RateBased};
use crate::redundant::Redundant;
use crate::round_robin::RoundRobin;
use crate::scheduler::Scheduler;
use crate::stms::{Stms, adaptation};

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

/// The largest gap that may be given, in segments: more than any window holds.
const MAX_GAP: f64 = 1e9;

const RESCUE: Parameter = Parameter {
    name: "rescue",
    default: "off",
    range: "on or off",
    meaning: "copy what a silent subflow holds and, with nothing else to send, what takes another more than four round trips",
};

static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "minrtt",
        parameters: &[RESCUE],
        citation: "Linux MPTCP 0.95, mptcp_sched.c, without opportunistic retransmission",
        status: Status::Stable,
        build: |params| Ok(Box::new(MinRtt::new(minrtt::Config { rescue: params.switch("rescue")? }))),
    },
    Algorithm {
        name: "minrtt-pr",
        parameters: &[Parameter {
            name: "ratio",
            default: "4",
            range: "a number from 1 to 100",
            meaning: "a copy is sent if the holder's RTT is more than this many times the idle subflow's (kernel 4)",
        }],
        citation: "Raiciu et al., NSDI 2012, mechanisms 1 and 2; Linux MPTCP 0.95, mptcp_sched.c; the Default of STMS",
        status: Status::Stable,
        build: |params| Ok(Box::new(MinRttPr::new(minrtt_pr::Config { ratio: params.number("ratio", 1.0, 100.0)? }))),
    },
    Algorithm {
        name: "linux-default",
        parameters: &[],
        citation: "upstream Linux, net/mptcp/protocol.c, mptcp_subflow_get_send (5.18 and later)",
        status: Status::Stable,
        build: |_| Ok(Box::new(LinuxDefault::new())),
    },
    Algorithm {
        name: "rate-based",
        parameters: &[
            Parameter {
                name: "share",
                default: "0.1",
                range: "a number from 0 to 1",
                meaning: "share of pacing rate x smoothed RTT from which on a subflow has enough queued (MPCC s6)",
            },
            RESCUE,
        ],
        citation: "MPCC (Gilad et al., CoNEXT 2020), section 6",
        status: Status::Stable,
        build: |params| {
            let (share, rescue) = (params.number("share", 0.0, 1.0)?, params.switch("rescue")?);
            Ok(Box::new(RateBased::new(rate_based::Config { share, rescue })))
        },
    },
    Algorithm {
        name: "round-robin",
        parameters: &[],
        citation: "one segment on each subflow in turn",
        status: Status::Stable,
        build: |_| Ok(Box::new(RoundRobin::new())),
    },
    Algorithm {
        name: "redundant",
        parameters: &[],
        citation: "every subflow carries everything the receiver lacks",
        status: Status::Stable,
        build: |_| Ok(Box::new(Redundant::new())),
    },
    Algorithm {
        name: "stms-a",
        parameters: &[
            Parameter {
                name: "gap",
                default: "0",
                range: "a number from 0 to 1e9",
                meaning: "gap of every slow subflow to begin with, in segments (the paper states none)",
            },
            Parameter {
                name: "weight",
                default: "1",
                range: "a number from 0 to 1",
                meaning: "weight of an interval in the moving average over intervals (the paper states none)",
            },
            Parameter {
                name: "gain",
                default: "0.0625",
                range: "a number from 0 to 1",
                meaning: "share of each sample that is added to the gap: more learns sooner and overshoots further (ours)",
            },
        ],
        citation: "STMS (Shi et al., ATC 2018), algorithms 1 and 2",
        status: Status::Stable,
        build: |params| {
            let config = adaptation::Config {
                gap: params.number("gap", 0.0, MAX_GAP)?,
                weight: params.number("weight", 0.0, 1.0)?,
                gain: params.number("gain", 0.0, 1.0)?,
            };
            Ok(Box::new(Stms::adapted(config)))
        },
    },
    Algorithm {
        name: "stms-c",
        parameters: &[],
        citation: "STMS (Shi et al., ATC 2018), algorithm 1 and equation 2",
        status: Status::Stable,
        build: |_| Ok(Box::new(Stms::calculated())),
    },
    Algorithm {
        name: "arrival-order",
        parameters: &[RESCUE],
        citation: "Manypath; STMS algorithm 1 with predicted arrivals",
        status: Status::Stable,
        build: |params| Ok(Box::new(ArrivalOrder::new(arrival_order::Config { rescue: params.switch("rescue")? }))),
    },
    Algorithm {
        name: "blest",
        parameters: &[Parameter {
            name: "lambda",
            default: "1.2",
            range: "a number from 1 to 1.3",
            meaning: "factor on the estimate of what the fast subflow sends, to begin with (kernel 1.2, paper 1)",
        }],
        citation: "Ferlin et al., IFIP Networking 2016; Linux MPTCP, mptcp_blest.c (4e10ec5)",
        status: Status::Stable,
        build: |params| Ok(Box::new(Blest::new(blest::Config { lambda: params.number("lambda", 1.0, 1.3)? }))),
    },
    Algorithm {
        name: "ecf",
        parameters: &[Parameter {
            name: "beta",
            default: "0.25",
            range: "a number from 0 to 10",
            meaning: "hysteresis: how much longer waiting may take once begun (Lim et al. 0.25)",
        }],
        citation: "Lim et al., CoNEXT 2017; Linux MPTCP, mptcp_ecf.c (5563404)",
        status: Status::Stable,
        build: |params| Ok(Box::new(Ecf::new(ecf::Config { beta: params.number("beta", 0.0, 10.0)? }))),
    },
    Algorithm {
        name: "daps",
        parameters: &[Parameter {
            name: "max-period",
            default: "1s",
            range: "a time such as 1s",
            meaning: "longest time for which a plan holds (ours)",
        }],
        citation: "Kuhn et al., ICC 2014, after its description in STMS and general knowledge",
        status: Status::Experimental,
        build: |params| Ok(Box::new(Daps::new(daps::Config { max_period: span(params, "max-period")? }))),
    },
    Algorithm {
        name: "backup",
        parameters: &[
            Parameter {
                name: "engage",
                default: "500ms",
                range: "a time such as 500ms",
                meaning: "how long a backlog must last before dearer subflows are used",
            },
            Parameter {
                name: "release",
                default: "2s",
                range: "a time such as 2s",
                meaning: "how long dearer subflows must have sent nothing before they are given up",
            },
        ],
        citation: "this project's own: cost order with hysteresis",
        status: Status::Experimental,
        build: |params| {
            let config = backup::Config { engage: span(params, "engage")?, release: span(params, "release")? };
            Ok(Box::new(Backup::new(config)))
        },
    },
];

/// A parameter that is a time with its unit.
fn span(params: &Params<'_>, key: &str) -> Result<Duration, SpecError> {
    params.text(key).parse().map_err(|_| params.bad_value(key))
}

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
        assert!(matches!(built("backup:engage=5"), Err(SpecError::BadValue { .. })));
        assert!(matches!(built("rate-based:share=x"), Err(SpecError::BadValue { .. })));
    }
}
