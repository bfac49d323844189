//! The rows of the registry, in the order of documentation.

use manypath_core::{Parameter, Params, SpecError, Status};

use super::{Algorithm, Controller};
use crate::aimd::{Aimd, Law};
use crate::balia::{self, Balia};
use crate::coupled::{self, Coupled};
use crate::cubic::{self, Cubic};
use crate::ewtcp::{self, Ewtcp};
use crate::lia::Lia;
use crate::lisa::Lisa;
use crate::mpcc::{self, Mpcc};
use crate::nmcc::Nmcc;
use crate::olia::{self, Olia};
use crate::reno::Reno;
use crate::sbd::Detector;
use crate::seeds::Seeds;
use crate::semicoupled::Semicoupled;
use crate::tccc::{self, Tccc};
use crate::uncoupled::Uncoupled;
use crate::uni_mptcp::{self, UniMptcp};
use crate::wvegas::Wvegas;

/// A row of the registry.
const fn row(
    name: &'static str,
    parameters: &'static [Parameter],
    citation: &'static str,
    status: Status,
    build: super::Build,
) -> Algorithm {
    Algorithm { name, parameters, citation, status, build }
}

/// A parameter.
const fn parameter(name: &'static str, default: &'static str, range: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, default, range, meaning }
}

const HYSTART: Parameter =
    parameter("hystart", "off", "on or off", "leave the first slow start when round trips lengthen (RFC 9406)");
const DETECTOR: Parameter = parameter(
    "detector",
    "rfc8382",
    "rfc8382 or ecn",
    "how shared bottlenecks are found: one-way delays (RFC 8382), or correlated congestion marks",
);
const ESTIMATE: Parameter = parameter(
    "estimate",
    "mean",
    "mean or largest",
    "slow-start threshold from one regression over the first window (Hoe 1996), or the largest over three packets",
);
const THRESHOLD: Parameter = parameter(
    "threshold",
    "largest",
    "largest or rate",
    "expected throughput: max(ssth)/min(rtt) (paper 001 s4.2), or max(ssth/rtt)",
);
const TOLERANCE: Parameter = parameter(
    "tolerance",
    "0.2",
    "a number in 0..1",
    "loss rates that differ by this share of the largest are the same (paper 001 gives no test)",
);

/// A coupled window-based controller with the option of HyStart++.
fn coupled(params: &Params<'_>, law: impl Law + 'static) -> Result<Controller, SpecError> {
    Ok(Box::new(Aimd::new(law, params.switch("hystart")?)))
}

fn build_tccc(params: &Params<'_>, decouple: bool) -> Result<Controller, SpecError> {
    // Its own estimate ends slow start.
    Ok(Box::new(Aimd::new(Tccc::new(tccc::Config::from_params(params, decouple)?), false)))
}

fn build_mpcc(params: &Params<'_>, seeds: Seeds) -> Result<Controller, SpecError> {
    Ok(Box::new(Mpcc::new(mpcc::config(params)?, seeds)))
}

pub(super) static ALGORITHMS: &[Algorithm] = &[
    row("reno", &[HYSTART], "RFC 5681; RFC 9002 s7", Status::Stable, |params, _| {
        let hystart = params.switch("hystart")?;
        Ok(Box::new(Uncoupled::new(move |_, _, init| Reno::new(init, hystart))))
    }),
    row(
        "cubic",
        &[parameter("fast-convergence", "on", "on or off", "give way faster to new flows (RFC 9438 s4.7)"), HYSTART],
        "RFC 9438",
        Status::Stable,
        |params, _| {
            let config = cubic::Config::from_params(params)?;
            Ok(Box::new(Uncoupled::new(move |_, _, init| Cubic::new(config, init))))
        },
    ),
    row("lia", &[HYSTART], "RFC 6356", Status::Stable, |params, _| coupled(params, Lia)),
    row(
        "olia",
        &[
            parameter(
                "quality",
                "rate",
                "rate or printed",
                "path quality from bytes l between losses: l/rtt^2 (kernel), or l^2/rtt as the draft prints",
            ),
            HYSTART,
        ],
        "draft-khalili-mptcp-congestion-control-05",
        Status::Stable,
        |params, _| coupled(params, Olia::new(olia::Quality::from_params(params)?)),
    ),
    row(
        "balia",
        &[
            parameter("alpha", "exact", "exact or integer", "as the draft, or rounded down as the Linux kernel does"),
            HYSTART,
        ],
        "draft-walid-mptcp-congestion-control-04",
        Status::Stable,
        |params, _| coupled(params, Balia::new(balia::Alpha::from_params(params)?)),
    ),
    row("wvegas", &[], "draft-xu-mptcp-congestion-control-05", Status::Stable, |_, _| {
        Ok(Box::new(Aimd::new(Wvegas::default(), false)))
    }),
    row(
        "ewtcp",
        &[
            parameter(
                "weight",
                "square",
                "square or root",
                "increase of each of n subflows: 1/n^2 (one TCP in all), or 1/sqrt(n) (Wischik et al. 2011)",
            ),
            HYSTART,
        ],
        "Honda et al., PFLDNeT 2009",
        Status::Stable,
        |params, _| coupled(params, Ewtcp::new(ewtcp::Weight::from_params(params)?)),
    ),
    row(
        "coupled",
        &[
            parameter(
                "form",
                "windows",
                "windows or rates",
                "1/w_total and w_total/2 (Wischik et al. 2011), or the rates of fluid analyses (Peng et al. 2016)",
            ),
            HYSTART,
        ],
        "Kelly and Voice 2005; Wischik et al., NSDI 2011 s2",
        Status::Stable,
        |params, _| coupled(params, Coupled::new(coupled::Form::from_params(params)?)),
    ),
    row(
        "semicoupled",
        &[parameter("a", "1", "a number in 0.001..100", "aggressiveness (Wischik et al. 2011 s2.4)"), HYSTART],
        "Wischik et al., NSDI 2011 s2.4",
        Status::Stable,
        |params, _| coupled(params, Semicoupled::new(params.number("a", 0.001, 100.0)?)),
    ),
    row("lisa", &[], "draft-barik-mptcp-lisa-01, over RFC 6356", Status::Stable, |_, _| {
        Ok(Box::new(Aimd::new(Lisa::default(), false)))
    }),
    row("nmcc", &[HYSTART], "Thomas et al., ToN 2020, after paper 001 Table II", Status::Experimental, |params, _| {
        coupled(params, Nmcc::plain())
    }),
    row(
        "e-nmcc",
        &[HYSTART],
        "Thomas et al., ToN 2020, fluid model of paper 001 Table II",
        Status::Experimental,
        |params, _| coupled(params, Nmcc::extended(None)),
    ),
    row(
        "e-nmcc+",
        &[DETECTOR, HYSTART],
        "paper 001 s5.2: e-nmcc, decoupled without a shared bottleneck",
        Status::Experimental,
        |params, _| coupled(params, Nmcc::extended(Some(Detector::from_params(params)?))),
    ),
    row(
        "tccc",
        &[ESTIMATE, THRESHOLD, TOLERANCE, DETECTOR],
        "Yang et al. (paper 001) s4",
        Status::Stable,
        |params, _| build_tccc(params, false),
    ),
    row(
        "tccc+",
        &[ESTIMATE, THRESHOLD, TOLERANCE, DETECTOR],
        "Yang et al. (paper 001) s4.4: tccc, decoupled without a shared bottleneck",
        Status::Stable,
        |params, _| build_tccc(params, true),
    ),
    row(
        "uni-mptcp",
        &[
            parameter(
                "weights",
                "1",
                "numbers in 0.001..1000 separated by /",
                "weights of the subflows by id, 1 for the rest (paper 004 s4)",
            ),
            parameter(
                "decrease",
                "unweighted",
                "unweighted or printed",
                "a loss takes half of the window, or half times the weight as eq. 20 prints",
            ),
            HYSTART,
        ],
        "Wang et al. (paper 004) s4",
        Status::Stable,
        |params, _| coupled(params, UniMptcp::new(uni_mptcp::Config::from_params(params)?)),
    ),
    row(
        "mpcc-loss",
        &mpcc::parameters(mpcc::LOSS_LATENCY_WEIGHT),
        "Gilad et al., CoNEXT 2020 (paper 000) s4-5, gamma = 0",
        Status::Stable,
        build_mpcc,
    ),
    row(
        "mpcc-latency",
        &mpcc::parameters(mpcc::LATENCY_LATENCY_WEIGHT),
        "Gilad et al., CoNEXT 2020 (paper 000) s4-5, gamma = 1",
        Status::Stable,
        build_mpcc,
    ),
];
