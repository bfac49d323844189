//! Equilibria in the simulator beside those of theory, as tables in Markdown.
//!
//! `cargo run --release -p manypath-sim --example equilibria -- TABLE [SEEDS [SECONDS [quic|tcp]]]`, where `TABLE` is
//! `mpcc`, `uni`, `uni-tail`, `coupled`, `tccc` or `omega`.
#![allow(clippy::print_stdout)] // it is what the program is for

mod compare;
mod settings;

use compare::{Effort, OnTwo, Pair};
use manypath_core::Rate;
use manypath_theory::uni::TwoPaths;
use settings::{Carrier, MPCC, TwoBottlenecks};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, usual: &str| args.get(index).map_or(usual, String::as_str).to_owned();
    let carrier = if argument(3, "tcp") == "quic" { Carrier::Quic } else { Carrier::Tcp };
    let number =
        |index: usize, usual: &str| argument(index, usual).parse::<u32>().expect("SEEDS and SECONDS are numbers");
    let effort = Effort { seeds: number(1, "5").into(), seconds: number(2, "200"), carrier };
    match argument(0, "").as_str() {
        "mpcc" => mpcc(effort),
        "uni" => uni(TwoBottlenecks::heard_by_all, effort),
        "uni-tail" => uni(TwoBottlenecks::heard_by_chance, effort),
        "coupled" => coupled(effort),
        "tccc" => tccc(effort),
        "omega" => omega(effort),
        _ => panic!("TABLE is mpcc, uni, uni-tail, coupled, tccc or omega"),
    }
}

fn both(pair: Pair) -> String {
    format!("{:.2} / {:.2}", pair.found, pair.theory)
}

/// MPCC on its five networks.
fn mpcc(effort: Effort) {
    println!("| network | connection | fair | mpcc-latency | part | mpcc-loss | part |\n|---|---|---|---|---|---|---|");
    for network in &MPCC {
        let latency = compare::mpcc(network, "mpcc-latency", effort);
        let loss = compare::mpcc(network, "mpcc-loss", effort);
        for ((name, _), (latency, loss)) in network.connections.iter().zip(latency.iter().zip(&loss)) {
            println!(
                "| {} | {name} | {:.2} | {:.2} | {:.3} | {:.2} | {:.3} |",
                network.name,
                latency.theory,
                latency.found,
                latency.ratio(),
                loss.found,
                loss.ratio()
            );
        }
    }
}

/// Numbers of TCP flows and rates in Mbit/s, chosen before anything was measured: few and many flows, equal and unequal
/// links, the costly path better and worse.
const UNI: [([u32; 2], [f64; 2]); 16] = [
    ([10, 1], [10.0, 10.0]),
    ([10, 2], [10.0, 10.0]),
    ([10, 4], [10.0, 10.0]),
    ([5, 1], [10.0, 10.0]),
    ([2, 1], [10.0, 10.0]),
    ([5, 5], [10.0, 10.0]),
    ([1, 10], [10.0, 10.0]),
    ([3, 9], [15.0, 15.0]),
    ([20, 5], [20.0, 20.0]),
    ([4, 2], [20.0, 40.0]),
    ([8, 2], [10.0, 20.0]),
    ([6, 3], [10.0, 30.0]),
    ([10, 10], [20.0, 40.0]),
    ([6, 2], [30.0, 10.0]),
    ([3, 3], [20.0, 10.0]),
    ([4, 8], [20.0, 10.0]),
];

/// Uni-MPTCP beside Table I.
fn uni(network: fn([u32; 2], [f64; 2]) -> TwoBottlenecks, effort: Effort) {
    println!(
        "| n | c | omega | x1 | x2 | y1 | y2 | packets a round trip | deviation | y/x |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    let (mut within, mut greed) = (0, 0.0_f64);
    for (flows, mbps) in UNI {
        let setting = network(flows, mbps);
        let table = TwoPaths::new(flows, mbps.map(Rate::from_mbps)).expect("there are flows on both");
        let [low, high] = table.bounds();
        let inside = |omega: f64| low < omega && omega < high;
        let row = |omega: f64| {
            let rates = compare::uni(&setting, omega, effort);
            let OnTwo { tcp, subflows, packets, .. } = rates;
            println!(
                "| {}, {} | {}, {} | {omega:.3}{} | {} | {} | {} | {} | {:.1}, {:.1} | {:.0}% | {:.2} |",
                flows[0],
                flows[1],
                mbps[0],
                mbps[1],
                if inside(omega) { " (inside)" } else { "" },
                both(tcp[0]),
                both(tcp[1]),
                both(subflows[0]),
                both(subflows[1]),
                packets[0],
                packets[1],
                rates.deviation() * 100.0,
                rates.greed()
            );
            rates
        };
        let ends = [0.01, 1.0, 100.0].map(|omega| (inside(omega), row(omega)));
        let middle = row((low * high).sqrt());
        // Between the bounds rates are reported only.
        within += u32::from(ends.iter().all(|(inside, rates)| *inside || rates.deviation() <= 0.15));
        greed = ends.iter().map(|(_, rates)| rates.greed()).fold(greed.max(middle.greed()), f64::max);
    }
    println!("\n{within} of {} settings within 15% at all three weights; largest y/x {greed:.3}", UNI.len());
}

/// LIA, OLIA and BALIA beside their fluid models.
fn coupled(effort: Effort) {
    println!(
        "| cc | n | c | connection | a TCP on 1 | a TCP on 2 | subflow 1 | subflow 2 | worst total |\n|---|---|---|---|---|---|---|---|---|"
    );
    let settings = [
        ([1, 1], [20.0, 20.0]),
        ([1, 1], [12.0, 6.0]),
        ([5, 5], [30.0, 30.0]),
        ([5, 5], [30.0, 15.0]),
        ([10, 5], [30.0, 30.0]),
    ];
    for cc in ["lia", "olia", "balia"] {
        for (flows, mbps) in settings {
            let rates = compare::fluid(&TwoBottlenecks::random(flows, mbps), cc, effort);
            let worst = [rates.total(), rates.tcp[0], rates.tcp[1]].map(|pair| (pair.ratio() - 1.0).abs());
            println!(
                "| {cc} | {}, {} | {}, {} | {} | {} | {} | {} | {} | {:.0}% |",
                flows[0],
                flows[1],
                mbps[0],
                mbps[1],
                both(rates.total()),
                both(rates.tcp[0]),
                both(rates.tcp[1]),
                both(rates.subflows[0]),
                both(rates.subflows[1]),
                worst.into_iter().fold(0.0, f64::max) * 100.0
            );
        }
    }
}

/// TCCC and others on a shared bottleneck beside one TCP.
fn tccc(effort: Effort) {
    println!("| cc | part of the TCP beside it |\n|---|---|");
    let all = [
        "tccc",
        "lia",
        "lia:count=acks",
        "balia",
        "balia:count=acks",
        "e-nmcc",
        "olia",
        "ewtcp",
        "semicoupled",
        "uni-mptcp",
    ];
    for cc in all {
        println!("| {cc} | {:.3} |", compare::shared(cc, effort));
    }
}

/// The omega adaptation of Uni-MPTCP, beside its Table III.
fn omega(effort: Effort) {
    println!("| controller | rate | cheap | costly | cost | Uni-MPTCP |\n|---|---|---|---|---|---|");
    let row = |name: &str, cc: &str, paper: &str| {
        let bought = compare::bought(cc, effort);
        let [cheap, costly] = bought.rates;
        println!("| {name} | {:.3} | {cheap:.3} | {costly:.3} | {:.2} | {paper} |", bought.rate(), bought.cost());
    };
    row("LIA", "lia", "0.143 + 4.729");
    row("weight 0.01", "uni-mptcp:weights=1/0.01", "0.909 + 0.190");
    row("weight 1", "uni-mptcp:weights=1/1", "0.144 + 4.751");
    for (target, paper) in [(1.0, "0.909 + 0.190"), (2.5, "0.843 + 0.955"), (3.8, "0.342 + 3.175")] {
        row(&format!("for {target} Mbit/s"), &compare::aiming_at(target), paper);
    }
}
