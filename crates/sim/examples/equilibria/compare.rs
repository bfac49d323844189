//! Simulated rates beside those of theory. All rates are those of whole packets, in Mbit/s.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use manypath_core::Rate;
use manypath_scenario::{Connection, Scenario};
use manypath_sim::{Job, Report, run_all};
use manypath_theory::lmmf;
use manypath_theory::scenario::Reading;
use manypath_theory::uni::TwoPaths;

use crate::settings::{Carrier, Mpcc, TwoBottlenecks, shared_bottleneck};

/// How long, how often, and over what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Simulated seconds, of which the second half is measured.
    pub(crate) seconds: u32,
    /// Runs with different seeds.
    pub(crate) seeds: u64,
    /// What carries the subflows.
    pub(crate) carrier: Carrier,
}

/// The runs of a scenario.
struct Runs {
    scenario: Scenario,
    reports: Vec<Report>,
}

impl Runs {
    fn of(text: &str, effort: Effort) -> Self {
        let scenario = manypath_scenario::parse(text, "equilibria.toml", Path::new("."));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let jobs: Vec<Job<'_>> = (1..=effort.seeds).map(|seed| Job { scenario: &scenario, seed }).collect();
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let reports = run_all(&jobs, threads, |_| ()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Self { scenario, reports }
    }

    /// The mean of a value over the runs.
    fn mean(&self, value: impl Fn(&Report) -> f64) -> f64 {
        self.reports.iter().map(value).sum::<f64>() / self.reports.len() as f64
    }

    /// What connections deliver, each on average.
    fn connections(&self, range: Range<usize>) -> f64 {
        let count = range.len() as f64;
        let rate = |index: usize| {
            let Connection { packet, overhead, record_header, .. } = &self.scenario.connections[index];
            let whole = packet.as_f64() / (packet.as_f64() - overhead.as_f64() - record_header.as_f64());
            self.mean(|report| report.connections[index].goodput_bps * whole * 1e-6)
        };
        range.map(rate).sum::<f64>() / count
    }

    /// What a subflow of the first connection delivers.
    fn subflow(&self, number: usize) -> f64 {
        let Connection { packet, overhead, .. } = &self.scenario.connections[0];
        let whole = packet.as_f64() / (packet.as_f64() - overhead.as_f64());
        self.mean(|report| report.connections[0].subflows[number].delivered_bps * whole * 1e-6)
    }

    /// The packets a round trip of a subflow of the first connection.
    fn packets_a_round_trip(&self, number: usize) -> f64 {
        let rtt = |report: &Report| {
            let measures = report.connections[0].subflows[number].measures.as_ref();
            measures.and_then(|measures| measures.srtt_s.mean).unwrap_or(f64::NAN)
        };
        let packet = self.scenario.connections[0].packet.as_f64() * 8.0;
        self.subflow(number) * 1e6 * self.mean(rtt) / packet
    }
}

/// A rate of theory and that of the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// What theory says.
    pub(crate) theory: f64,
    /// The mean over the runs.
    pub(crate) found: f64,
}

impl Pair {
    /// The simulated rate as a part of the theoretical one.
    pub(crate) fn ratio(self) -> f64 {
        self.found / self.theory
    }
}

/// MPCC on one of its networks beside lexicographic max-min fairness: a pair for each connection.
pub(crate) fn mpcc(network: &Mpcc, cc: &str, effort: Effort) -> Vec<Pair> {
    let runs = Runs::of(&network.scenario(cc, effort.seconds, effort.carrier), effort);
    let reading = Reading::new(&runs.scenario, 0.0).expect("the networks are readable");
    let fair = lmmf(&reading.network).expect("the networks are small").totals();
    let pair =
        |(index, fair): (usize, &Rate)| Pair { theory: fair.as_mbps(), found: runs.connections(index..index + 1) };
    fair.iter().enumerate().map(pair).collect()
}

/// Rates on two bottlenecks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnTwo {
    /// Of a TCP flow, by bottleneck.
    pub(crate) tcp: [Pair; 2],
    /// Of the connection's subflows.
    pub(crate) subflows: [Pair; 2],
    /// Packets a round trip of the connection's subflows.
    pub(crate) packets: [f64; 2],
}

impl OnTwo {
    fn new(setting: &TwoBottlenecks, runs: &Runs, tcp: [f64; 2], subflows: [f64; 2]) -> Self {
        let [first, second] = setting.flows.map(|count| count as usize);
        let pair = |theory: f64, found: f64| Pair { theory, found };
        Self {
            tcp: [
                pair(tcp[0], runs.connections(1..1 + first)),
                pair(tcp[1], runs.connections(1 + first..1 + first + second)),
            ],
            subflows: [pair(subflows[0], runs.subflow(0)), pair(subflows[1], runs.subflow(1))],
            packets: [runs.packets_a_round_trip(0), runs.packets_a_round_trip(1)],
        }
    }

    /// The connection.
    pub(crate) fn total(&self) -> Pair {
        let [first, second] = self.subflows;
        Pair { theory: first.theory + second.theory, found: first.found + second.found }
    }

    /// The largest deviation of a rate, as a part of the theoretical one. A subflow that theory gives nothing deviates if
    /// it has more than two packets a round trip, by what it has more.
    pub(crate) fn deviation(&self) -> f64 {
        let subflows = self.subflows.iter().zip(self.packets).map(|(pair, packets)| {
            if pair.theory > 0.0 { (pair.ratio() - 1.0).abs() } else { (packets / 2.0 - 1.0).max(0.0) }
        });
        self.tcp.iter().map(|pair| (pair.ratio() - 1.0).abs()).chain(subflows).fold(0.0, f64::max)
    }

    /// The largest rate of a subflow as a part of the TCP flows' beside it (principle P2 of Uni-MPTCP: at most 1).
    pub(crate) fn greed(&self) -> f64 {
        let part = |(own, tcp): (&Pair, &Pair)| own.found / tcp.found;
        self.subflows.iter().zip(&self.tcp).map(part).fold(0.0, f64::max)
    }
}

/// Uni-MPTCP with a weight beside Table I of its paper.
pub(crate) fn uni(setting: &TwoBottlenecks, omega: f64, effort: Effort) -> OnTwo {
    let table = TwoPaths::new(setting.flows, setting.mbps.map(Rate::from_mbps)).expect("there are flows on both");
    let shares = table.shares(omega).expect("the weight is in range");
    let cc = format!("uni-mptcp:weights=1/{omega}");
    let runs = Runs::of(&setting.scenario(&cc, effort.seconds, effort.carrier), effort);
    OnTwo::new(setting, &runs, shares.tcp.map(Rate::as_mbps), shares.subflows.map(Rate::as_mbps))
}

/// What a connection of Uni-MPTCP gets and costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bought {
    /// Rates of the cheap path and the costly one.
    pub(crate) rates: [f64; 2],
}

impl Bought {
    /// The connection's rate.
    pub(crate) fn rate(&self) -> f64 {
        self.rates[0] + self.rates[1]
    }

    /// Uni-MPTCP eq. 26: 0.1 a Mbit/s on the cheap path, 10 on the costly one.
    pub(crate) fn cost(&self) -> f64 {
        0.1 * self.rates[0] + 10.0 * self.rates[1]
    }
}

/// A controller in the simulations of Uni-MPTCP.
pub(crate) fn bought(cc: &str, effort: Effort) -> Bought {
    let runs = Runs::of(&TwoBottlenecks::of_paper_004().scenario(cc, effort.seconds, effort.carrier), effort);
    Bought { rates: [runs.subflow(0), runs.subflow(1)] }
}

/// The controller that searches once for the weight with which it gets this rate. The paper's rates are those of whole
/// packets, since they add up to the links'; controllers count what packets carry.
pub(crate) fn aiming_at(target: f64) -> String {
    let text = TwoBottlenecks::of_paper_004().scenario("reno", 2, Carrier::Tcp);
    let scenario = manypath_scenario::parse(&text, "equilibria.toml", Path::new(".")).expect("the setting is good");
    let Connection { packet, overhead, .. } = &scenario.connections[0];
    format!("uni-mptcp:target={:.6}Mbit,change=inf", target * (1.0 - overhead.as_f64() / packet.as_f64()))
}

/// A controller beside the equilibrium of its fluid model.
pub(crate) fn fluid(setting: &TwoBottlenecks, cc: &str, effort: Effort) -> OnTwo {
    let runs = Runs::of(&setting.scenario(cc, effort.seconds, effort.carrier), effort);
    // Both queues are as long in time: how full they are makes no difference.
    let reading = Reading::new(&runs.scenario, 0.5).expect("the networks are readable");
    let system = reading.system().expect("there is a model");
    let rest = system.equilibrium().expect("there is an equilibrium");
    let rate = |connection: u32, subflow: usize| rest.subflows(connection as usize)[subflow].as_mbps();
    let tcp = [rate(1, 0), rate(1 + setting.flows[0], 0)];
    OnTwo::new(setting, &runs, tcp, [rate(0, 0), rate(0, 1)])
}

/// What a connection with two subflows gets on a shared bottleneck, as a part of what a TCP gets beside it.
pub(crate) fn shared(cc: &str, effort: Effort) -> f64 {
    let runs = Runs::of(&shared_bottleneck(cc, effort.seconds, effort.carrier), effort);
    runs.connections(0..1) / runs.connections(1..2)
}
