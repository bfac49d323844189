//! The rows of the registry, in the order of documentation.

use manypath_core::{Parameter, Params, SpecError, Status};

use super::{Algorithm, Controller};
use crate::aimd::{Aimd, Law};
use crate::ascent;
use crate::balia::{self, Balia};
use crate::bbr::Bbr;
use crate::bbr3::Bbr3;
use crate::coupled::{self, Coupled};
use crate::cubic::{self, Cubic};
use crate::ewtcp::{self, Ewtcp};
use crate::lia::Lia;
use crate::lisa::Lisa;
use crate::mp_ol::{self, MpOl};
use crate::mpcc::{self, Mpcc};
use crate::mpcc_connection::{self, MpccConnection};
use crate::nmcc::Nmcc;
use crate::olia::{self, Olia};
use crate::per_ack::PerAck;
use crate::reno::Reno;
use crate::sbd::Detector;
use crate::seeds::Seeds;
use crate::semicoupled::Semicoupled;
use crate::slow_start::Early;
use crate::targeted::{self, Targeted};
use crate::tccc::{self, Tccc};
use crate::uncoupled::Uncoupled;
use crate::uni_mptcp::{self, UniMptcp};
use crate::vegas::{self, Vegas};
use crate::vivace::{self, Vivace};
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
/// How slow start ends before a loss.
const fn early(default: &'static str) -> Parameter {
    let meaning = "leave slow start when round trips lengthen: the first one slowly (RFC 9406), or every one at once (Linux CUBIC)";
    parameter("hystart", default, "off, on or classic", meaning)
}
const DETECTOR: Parameter = parameter(
    "detector",
    "rfc8382",
    "rfc8382 or ecn",
    "how shared bottlenecks are found: one-way delays (RFC 8382), or correlated congestion marks",
);
const COUNT: Parameter = parameter(
    "count",
    "packets",
    "packets or acks",
    "growth for each packet acknowledged, or once an acknowledgement (Linux MPTCP 0.9x)",
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
    "expected throughput: max(ssth)/min(rtt) (TCCC s3.2), or max(ssth/rtt)",
);
const TOLERANCE: Parameter = parameter(
    "tolerance",
    "0.2",
    "a number from 0 to 1",
    "loss rates that differ by this share of the largest are the same (TCCC gives no test)",
);
const DEVIATIONS: Parameter = parameter(
    "deviations",
    "0",
    "a number from 0 to 10",
    "so are those that differ by so many standard deviations of what the losses counted can tell",
);

/// A coupled window-based controller with the option of HyStart++.
fn coupled(params: &Params<'_>, law: impl Law + 'static) -> Result<Controller, SpecError> {
    Ok(Box::new(Aimd::new(law, params.switch("hystart")?)))
}

/// A law that may count acknowledgements, with HyStart++ or without.
fn counted(params: &Params<'_>, law: impl Law + 'static, hystart: bool) -> Result<Controller, SpecError> {
    if params.choice("count", &[("packets", false), ("acks", true)])? {
        return Ok(Box::new(Aimd::new(PerAck::new(law), hystart)));
    }
    Ok(Box::new(Aimd::new(law, hystart)))
}

fn build_tccc(params: &Params<'_>, decouple: bool) -> Result<Controller, SpecError> {
    // Its own estimate ends slow start.
    Ok(Box::new(Aimd::new(Tccc::new(tccc::Config::from_params(params, decouple)?), false)))
}

fn build_mpcc(params: &Params<'_>, seeds: Seeds) -> Result<Controller, SpecError> {
    Ok(Box::new(Mpcc::new(ascent::config(params)?, seeds)))
}

fn build_uni_mptcp(params: &Params<'_>, _: Seeds) -> Result<Controller, SpecError> {
    let controller = Aimd::new(UniMptcp::new(uni_mptcp::Config::from_params(params)?), params.switch("hystart")?);
    Ok(match targeted::from_params(params)? {
        None => Box::new(controller),
        Some((config, target)) => Box::new(Targeted::new(controller, config, target)),
    })
}

pub(super) static ALGORITHMS: &[Algorithm] = &[
    row("reno", &[early("off")], "RFC 5681; RFC 9002 s7", Status::Stable, |params, _| {
        let hystart = Early::from_params(params)?;
        Ok(Box::new(Uncoupled::new(move |_, _, init| Reno::new(init, hystart))))
    }),
    row(
        "cubic",
        &[
            parameter("fast-convergence", "on", "on or off", "give way faster to new flows (RFC 9438 s4.7)"),
            early("on"),
        ],
        "RFC 9438",
        Status::Stable,
        |params, _| {
            let config = cubic::Config::from_params(params)?;
            Ok(Box::new(Uncoupled::new(move |_, _, init| Cubic::new(config, init))))
        },
    ),
    row(
        "vegas",
        &[
            parameter("alpha", "2", "a number from 0 to 1000", "packets queued below which the window grows (Linux)"),
            parameter("beta", "4", "a number from alpha to 1000", "packets queued above which it shrinks (Linux)"),
            parameter("gamma", "1", "a number from 0 to 1000", "packets queued that end slow start (Linux)"),
        ],
        "Brakmo and Peterson, JSAC 1995; Linux tcp_vegas",
        Status::Stable,
        |params, _| {
            let config = vegas::Config::from_params(params)?;
            Ok(Box::new(Uncoupled::new(move |_, _, init| Vegas::new(config, init))))
        },
    ),
    row("bbr", &[], "draft-cardwell-iccrg-bbr-congestion-control-00", Status::Stable, |_, seeds| {
        Ok(Box::new(Uncoupled::new(move |_, id, init| Bbr::new(seeds.generator(id), init))))
    }),
    row("bbr3", &[], "draft-ietf-ccwg-bbr-06", Status::Stable, |_, seeds| {
        Ok(Box::new(Uncoupled::new(move |_, id, init| Bbr3::new(seeds.generator(id), init))))
    }),
    row(
        "vivace",
        &ascent::parameters(vivace::DEFAULTS),
        "Dong et al., NSDI 2018 s4",
        Status::Stable,
        |params, seeds| {
            let config = ascent::config(params)?;
            Ok(Box::new(Uncoupled::new(move |_, id, init| Vivace::new(config, seeds.generator(id), init))))
        },
    ),
    row("lia", &[COUNT, HYSTART], "RFC 6356", Status::Stable, |params, _| {
        counted(params, Lia, params.switch("hystart")?)
    }),
    row(
        "olia",
        &[
            parameter(
                "quality",
                "rate",
                "rate or printed",
                "path quality from bytes l between losses: l/rtt^2 (kernel), or l^2/rtt as the draft prints",
            ),
            COUNT,
            HYSTART,
        ],
        "draft-khalili-mptcp-congestion-control-05",
        Status::Stable,
        |params, _| counted(params, Olia::new(olia::Quality::from_params(params)?), params.switch("hystart")?),
    ),
    row(
        "balia",
        &[
            parameter("alpha", "exact", "exact or integer", "as the draft, or rounded down as the Linux kernel does"),
            COUNT,
            HYSTART,
        ],
        "draft-walid-mptcp-congestion-control-04",
        Status::Stable,
        |params, _| counted(params, Balia::new(balia::Alpha::from_params(params)?), params.switch("hystart")?),
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
        &[parameter("a", "1", "a number from 0.001 to 100", "aggressiveness (Wischik et al. 2011 s2.4)"), HYSTART],
        "Wischik et al., NSDI 2011 s2.4",
        Status::Stable,
        |params, _| coupled(params, Semicoupled::new(params.number("a", 0.001, 100.0)?)),
    ),
    row("lisa", &[COUNT], "draft-barik-mptcp-lisa-01, over RFC 6356", Status::Stable, |params, _| {
        counted(params, Lisa::default(), false)
    }),
    row("nmcc", &[HYSTART], "Thomas et al., ToN 2020, after TCCC Table II", Status::Experimental, |params, _| {
        coupled(params, Nmcc::plain())
    }),
    row(
        "e-nmcc",
        &[HYSTART],
        "Thomas et al., ToN 2020, fluid model of TCCC Table II",
        Status::Experimental,
        |params, _| coupled(params, Nmcc::extended(None)),
    ),
    row(
        "e-nmcc+",
        &[DETECTOR, HYSTART],
        "TCCC s5.2: e-nmcc, decoupled without a shared bottleneck",
        Status::Experimental,
        |params, _| coupled(params, Nmcc::extended(Some(Detector::from_params(params)?))),
    ),
    row(
        "tccc",
        &[ESTIMATE, THRESHOLD, TOLERANCE, DEVIATIONS, DETECTOR],
        "TCCC (Yang et al., TNSM 2023) s3",
        Status::Stable,
        |params, _| build_tccc(params, false),
    ),
    row(
        "tccc+",
        &[ESTIMATE, THRESHOLD, TOLERANCE, DEVIATIONS, DETECTOR],
        "TCCC (Yang et al., TNSM 2023) s4.4: tccc, decoupled without a shared bottleneck",
        Status::Stable,
        |params, _| build_tccc(params, true),
    ),
    row(
        "uni-mptcp",
        &[
            parameter(
                "weights",
                "1",
                "numbers from 0.001 to 1000 separated by /",
                "weights of the subflows by id, 1 for the rest (Uni-MPTCP s3.3)",
            ),
            parameter(
                "decrease",
                "unweighted",
                "unweighted or printed",
                "a loss takes half of the window, or half times the weight as eq. 20 prints",
            ),
            targeted::PARAMETERS[0],
            targeted::PARAMETERS[1],
            targeted::PARAMETERS[2],
            targeted::PARAMETERS[3],
            targeted::PARAMETERS[4],
            HYSTART,
        ],
        "Uni-MPTCP (Wang et al.) s3-4",
        Status::Stable,
        build_uni_mptcp,
    ),
    row(
        "mpcc-loss",
        &ascent::parameters(mpcc::LOSS),
        "MPCC (Gilad et al., CoNEXT 2020) s4-5, gamma = 0",
        Status::Stable,
        build_mpcc,
    ),
    row(
        "mpcc-latency",
        &ascent::parameters(mpcc::LATENCY),
        "MPCC (Gilad et al., CoNEXT 2020) s4-5, gamma = 1",
        Status::Stable,
        build_mpcc,
    ),
    row(
        "mpcc-connection",
        &[
            parameter("loss-weight", "11.35", "a number from 3 to 1000", "weight of the loss rate (MPCC s7.1 beta)"),
            parameter("latency-weight", "0", "a number from 0 to 1e6", "weight of the RTT gradient (MPCC s7.1 gamma)"),
            parameter(
                "omega",
                "0.05",
                "a number from 0.001 to 0.5",
                "probing distance and largest step, share of the total",
            ),
            parameter("theta", "1", "a number from 0.001 to 1000", "step in Mbit/s per unit of gradient"),
            parameter("initial", "4", "Mbit/s from 0.2 to 1e5", "rate of a new subflow"),
        ],
        "MPCC (Gilad et al., CoNEXT 2020) s4.1-4.2, eq. 1",
        Status::Experimental,
        |params, _| Ok(Box::new(MpccConnection::new(mpcc_connection::Config::from_params(params)?))),
    ),
    row(
        "mp-ol",
        &[
            parameter("n", "5", "an integer from 1 to 100", "monitor intervals in a monitoring period (MP-OL s5)"),
            parameter("d", "0.5", "a number from 0 to 2", "distance of centroids that is a change (MP-OL s5)"),
            parameter(
                "epsilon",
                "0.05",
                "a number from 0.001 to 0.5",
                "probing distance, share of the own rate (MP-OL s5)",
            ),
            parameter(
                "beta",
                "1",
                "a number from 0.0001 to 10000",
                "step in Mbit/s per unit of gradient (not in the paper)",
            ),
            parameter("guard", "off", "on or off", "variation below 5% of the RTT and 0.1% of loss is none (ours)"),
            parameter("initial", "4", "Mbit/s from 0.2 to 1e5", "rate of a new subflow (MPCC's release)"),
        ],
        "MP-OL (Zhuang et al., TNSM 2023) s4",
        Status::Stable,
        |params, _| Ok(Box::new(MpOl::new(mp_ol::Config::from_params(params)?))),
    ),
];
