//! The fluid models against the tables and examples of TCCC and of the papers of the other laws.

use core::cmp::Ordering;

use manypath_core::{Bytes, Duration, Rate};
use manypath_theory::fluid::{Algorithm, Equilibrium, FluidError, MIN_WINDOW, State, System};
use manypath_theory::{Connection, Network, Subflow};
use proptest::prelude::*;

const PACKET: Bytes = Bytes::new(1500);

fn state(windows: &[f64], rtts: &[f64]) -> State {
    let subflow =
        |(window, rtt): (&f64, &f64)| (Rate::from_bps(window * 12_000.0 / rtt), Duration::from_secs_f64(*rtt));
    State::new(&windows.iter().zip(rtts).map(subflow).collect::<Vec<_>>(), PACKET).unwrap()
}

fn assert_near(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    let near = got.iter().zip(want).all(|(got, want)| (got - want).abs() <= tolerance * want.abs().max(1e-12));
    assert!(near, "{got:?} instead of {want:?}");
}

/// Packets per second of a TCP at this loss (eq. 14: phi = 2/(rtt^2 x^2) = p).
fn tcp(loss: f64, rtt: f64) -> f64 {
    (2.0 / loss).sqrt() / rtt
}

fn packets(rate: Rate) -> f64 {
    rate.as_bps() / 12_000.0
}

fn connection(routes: &[&[usize]], rtt_ms: &[u64]) -> Connection {
    let subflow = |(route, rtt): (&&[usize], &u64)| Subflow { links: route.to_vec(), rtt: Duration::from_millis(*rtt) };
    Connection { subflows: routes.iter().zip(rtt_ms).map(subflow).collect(), limit: None }
}

fn laws(subflows: usize) -> Vec<Algorithm> {
    let names =
        ["reno", "ewtcp", "coupled", "semicoupled", "lia", "olia", "balia", "nmcc", "e-nmcc", "tccc", "uni-mptcp"];
    let mut laws: Vec<Algorithm> = names.iter().map(|name| Algorithm::named(name, subflows).unwrap()).collect();
    laws.push(Algorithm::TcccHalving);
    laws
}

#[test]
fn with_one_subflow_every_law_is_newreno() {
    let one = state(&[37.0], &[0.05]);
    for law in laws(1) {
        // 1/37 a packet, half of 37 a loss.
        assert_near(&law.increase(&one).unwrap(), &[1.0 / 37.0], 1e-9);
        assert_near(&law.decrease(&one).unwrap(), &[18.5], 1e-9);
        assert_near(&law.friendliness(&one).unwrap(), &[1.0], 1e-9);
    }
}

#[test]
fn tccc_on_the_example_of_the_sheet() {
    // cwnd (40, 4), RTT (20, 100) ms: x = (2000, 40), S = sum x/rtt = 100,000 + 400;
    // increase per RTT: w/(rtt * 0.02 * S) = 0.996, 0.0199; decrease 0.02 * 2040^2/(2 rtt S) = 20.7, 4.145.
    let two = state(&[40.0, 4.0], &[0.02, 0.1]);
    let increase = Algorithm::Tccc.increase(&two).unwrap();
    assert_near(&[increase[0] * 40.0, increase[1] * 4.0], &[0.996_016, 0.019_92], 1e-4);
    assert_near(&Algorithm::Tccc.decrease(&two).unwrap(), &[20.725, 4.145], 1e-4);
}

#[test]
fn lia_and_uni_on_the_examples_of_the_sheet() {
    // Windows 20 and 5, RTT 30 and 80 ms: w/rtt^2 = 22222, 781; (sum x)^2 = (666.67 + 62.5)^2 = 531,684; I = 0.041797.
    let unequal = state(&[20.0, 5.0], &[0.03, 0.08]);
    assert_near(&Algorithm::Lia.increase(&unequal).unwrap(), &[0.041_796; 2], 1e-4);
    // Equal RTT: Uni-MPTCP 1/25, LIA alpha/25 with alpha = 20/25: 1.25 times less.
    let equal = state(&[20.0, 5.0], &[0.05; 2]);
    let uni = Algorithm::UniMptcp { weights: vec![1.0, 1.0] };
    assert_near(&uni.increase(&equal).unwrap(), &[0.04; 2], 1e-9);
    assert_near(&Algorithm::Lia.increase(&equal).unwrap(), &[0.032; 2], 1e-9);
    // Only the ratio of the weights counts.
    let (small, large) =
        (Algorithm::UniMptcp { weights: vec![1.0, 0.01] }, Algorithm::UniMptcp { weights: vec![100.0, 1.0] });
    assert_near(&small.increase(&unequal).unwrap(), &large.increase(&unequal).unwrap(), 1e-12);
}

#[test]
fn the_order_of_equation_17_has_an_exception() {
    // Equal rates, RTT 10 and 50 ms: TCCC has a quarter of TCP's phi on the short path and 6.25 times on the long one.
    let two = state(&[10.0, 50.0], &[0.01, 0.05]);
    assert_near(&Algorithm::Tccc.friendliness(&two).unwrap(), &[0.25, 6.25], 1e-9);
    assert_eq!(Algorithm::Tccc.compare(&Algorithm::Reno, &two).unwrap(), None);
    // With equal round-trip times the order holds.
    let even = state(&[10.0, 50.0], &[0.02, 0.02]);
    let root = Algorithm::Ewtcp { a: 0.5_f64.sqrt() };
    assert_eq!(Algorithm::Coupled.compare(&Algorithm::Tccc, &even).unwrap(), Some(Ordering::Equal));
    assert_eq!(Algorithm::Tccc.compare(&root, &even).unwrap(), Some(Ordering::Less));
    assert_eq!(root.compare(&Algorithm::Reno, &even).unwrap(), Some(Ordering::Less));
}

#[test]
fn totals_at_equal_loss() {
    // What n equal subflows take together, in units of one TCP at the same loss.
    let total = |law: Algorithm, n: usize| {
        let subflows = vec![(Duration::from_millis(60), 1e-3); n];
        let equilibrium = System::at_loss(law, &subflows, PACKET).unwrap().equilibrium().unwrap();
        packets(equilibrium.totals()[0]) / tcp(1e-3, 0.06)
    };
    for (n, size, root) in [(2, 2.0_f64, 1.682), (3, 3.0, 2.280), (4, 4.0, 2.828)] {
        assert_near(&[total(Algorithm::Reno, n)], &[size], 1e-6);
        assert_near(&[total(Algorithm::Ewtcp { a: 1.0 / (size * size) }, n)], &[1.0], 1e-6);
        assert_near(&[total(Algorithm::Ewtcp { a: 1.0 / size.sqrt() }, n)], &[root], 1e-3);
        let one_tcp =
            [Algorithm::Coupled, Algorithm::Olia, Algorithm::Lia, Algorithm::Balia, Algorithm::Tccc, Algorithm::ENmcc];
        for law in one_tcp {
            assert_near(&[total(law, n)], &[1.0], 1e-6);
        }
        let uni = Algorithm::UniMptcp { weights: vec![1.0; n] };
        for law in [Algorithm::Semicoupled { a: 1.0 }, Algorithm::TcccHalving, uni, Algorithm::Nmcc] {
            assert_near(&[total(law, n)], &[size.sqrt()], 1e-6);
        }
    }
}

#[test]
fn lia_takes_what_the_best_path_would_give_a_tcp() {
    // RFC 6356 s1: w_r ~ 1/p_r and a total of max_r sqrt(2/p_r)/rtt_r.
    let subflows = [(Duration::from_millis(40), 1e-3), (Duration::from_millis(90), 4e-4)];
    let equilibrium = System::at_loss(Algorithm::Lia, &subflows, PACKET).unwrap().equilibrium().unwrap();
    let rates: Vec<f64> = equilibrium.subflows(0).iter().map(|&rate| packets(rate)).collect();
    assert_near(&[rates[0] + rates[1]], &[tcp(1e-3, 0.04).max(tcp(4e-4, 0.09))], 1e-6);
    assert_near(&[rates[0] * 0.04 * 1e-3], &[rates[1] * 0.09 * 4e-4], 1e-6);
}

#[test]
fn coupled_and_olia_leave_the_worse_path() {
    let subflows = [(Duration::from_millis(50), 1e-4), (Duration::from_millis(50), 2e-4)];
    for law in [Algorithm::Coupled, Algorithm::Olia] {
        let equilibrium = System::at_loss(law, &subflows, PACKET).unwrap().equilibrium().unwrap();
        let rates: Vec<f64> = equilibrium.subflows(0).iter().map(|&rate| packets(rate)).collect();
        // One packet per round trip on the worse path, and together what a TCP has on the better one.
        assert_near(&rates, &[tcp(1e-4, 0.05) - MIN_WINDOW / 0.05, MIN_WINDOW / 0.05], 1e-6);
    }
}

/// Two bottlenecks of these capacities with `flows` TCPs each, and one connection over both with `law`; RTT of 1 s
/// everywhere, so that windows are large.
fn two_bottlenecks(mbps: [f64; 2], flows: [usize; 2], law: Algorithm) -> (Network, Vec<Algorithm>) {
    let mut connections = vec![connection(&[&[0], &[1]], &[1000, 1000])];
    connections.extend(vec![connection(&[&[0]], &[1000]); flows[0]]);
    connections.extend(vec![connection(&[&[1]], &[1000]); flows[1]]);
    let mut laws = vec![law];
    laws.extend(vec![Algorithm::Reno; flows[0] + flows[1]]);
    (Network::new(mbps.map(Rate::from_mbps).to_vec(), connections).unwrap(), laws)
}

fn rest(network: &Network, laws: Vec<Algorithm>) -> Equilibrium {
    System::new(network, laws, PACKET).unwrap().equilibrium().unwrap()
}

#[test]
fn uni_mptcp_under_loss_in_proportion_to_packets() {
    // At rest y_1 S = x_1^2, y_2 S = omega x_2^2 with S = y_1 + omega y_2.
    let uni = [(1.0, [0.187_300, 4.953_610]), (0.5, [0.338_600, 4.836_245]), (0.15, [0.675_327, 4.081_270])];
    for (omega, want) in uni.into_iter().chain([(0.01, [0.904_988, 0.904_988])]) {
        let (network, laws) = two_bottlenecks([10.0, 10.0], [10, 1], Algorithm::UniMptcp { weights: vec![1.0, omega] });
        let equilibrium = rest(&network, laws);
        let rates: Vec<f64> = equilibrium.subflows(0).iter().map(|rate| rate.as_mbps()).collect();
        assert_near(&rates, &want, 1e-4);
    }
}

/// Uni-MPTCP eq. 17 as printed: the subflow of weight 0.01 takes more than a TCP of its link, and most of it.
#[test]
fn uni_mptcp_as_printed() {
    let law = Algorithm::UniMptcpPrinted { weights: vec![1.0, 0.01] };
    let (network, laws) = two_bottlenecks([10.0, 10.0], [10, 1], law);
    let rates: Vec<f64> = rest(&network, laws).subflows(0).iter().map(|rate| rate.as_mbps()).collect();
    assert_near(&rates, &[0.876, 7.36], 1e-3);
}

#[test]
fn the_two_bottleneck_network() {
    // Both links alike: LIA, OLIA, BALIA and TCCC share 20 with two TCPs as if all were one pool: each gets 20/3.
    // With q the same on both links, S = sqrt(2/q)/rtt = x: y = 2 (10 - x) = x.
    for law in [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia, Algorithm::Tccc, Algorithm::ENmcc] {
        let (network, laws) = two_bottlenecks([10.0, 10.0], [1, 1], law);
        let totals: Vec<f64> = rest(&network, laws).totals().iter().map(|rate| rate.as_mbps()).collect();
        assert_near(&totals, &[20.0 / 3.0; 3], 1e-6);
    }
    // 12 and 6 with one TCP each: the optimal law puts everything on the better link until both are equally good.
    // OLIA: x_1 = x_2 = S, S = 18 - 2 S: 6 each, y = (6, 0) but for one packet (0.012 Mbit/s) a round trip.
    let (network, laws) = two_bottlenecks([12.0, 6.0], [1, 1], Algorithm::Olia);
    let equilibrium = rest(&network, laws);
    let rates: Vec<f64> = equilibrium.subflows(0).iter().map(|rate| rate.as_mbps()).collect();
    assert!((rates[0] - 6.0).abs() < 0.02 && rates[1] < 0.02, "{rates:?}");
    // LIA keeps some on the worse link: y_r S = x_r^2 max(y)/S, that is y_1/y_2 = (x_1/x_2)^2 and S = x_1 (better path).
    let (network, laws) = two_bottlenecks([12.0, 6.0], [1, 1], Algorithm::Lia);
    let rates: Vec<f64> = rest(&network, laws).subflows(0).iter().map(|rate| rate.as_mbps()).collect();
    let (x1, x2) = (12.0 - rates[0], 6.0 - rates[1]);
    assert_near(&[rates[0] / rates[1], rates[0] + rates[1]], &[(x1 / x2).powi(2), x1], 1e-6);
    assert!(rates[1] > 1.0);
}

#[test]
fn a_shared_bottleneck_is_shared_evenly_with_a_tcp() {
    for law in [Algorithm::Tccc, Algorithm::Lia, Algorithm::Balia, Algorithm::Coupled] {
        let connections = vec![connection(&[&[0], &[0]], &[100, 100]), connection(&[&[0]], &[100])];
        let network = Network::new(vec![Rate::from_mbps(5.0)], connections).unwrap();
        let totals: Vec<f64> =
            rest(&network, vec![law, Algorithm::Reno]).totals().iter().map(|rate| rate.as_mbps()).collect();
        assert_near(&totals, &[2.5, 2.5], 1e-6);
    }
    // TCCC does so by the shortest round trip: with 50 and 100 ms it gets what a TCP of 50 ms would, twice a TCP of 100 ms.
    let connections = vec![connection(&[&[0], &[0]], &[50, 100]), connection(&[&[0]], &[100])];
    let network = Network::new(vec![Rate::from_mbps(6.0)], connections).unwrap();
    let totals: Vec<f64> =
        rest(&network, vec![Algorithm::Tccc, Algorithm::Reno]).totals().iter().map(|rate| rate.as_mbps()).collect();
    assert_near(&totals, &[4.0, 2.0], 1e-6);
}

#[test]
fn a_hundred_flows_on_two_links() {
    // 60 TCPs on 60 Mbit/s, 40 on 20: y_1 S = x_1^2 max(y)/S as above; all TCPs of a link get the same.
    let (network, laws) = two_bottlenecks([60.0, 20.0], [60, 40], Algorithm::Lia);
    let equilibrium = rest(&network, laws);
    let totals: Vec<f64> = equilibrium.totals().iter().map(|rate| rate.as_mbps()).collect();
    let own: Vec<f64> = equilibrium.subflows(0).iter().map(|rate| rate.as_mbps()).collect();
    assert_near(&totals[1..=60], &[(60.0 - own[0]) / 60.0; 60], 1e-6);
    assert_near(&totals[61..], &[(20.0 - own[1]) / 40.0; 40], 1e-6);
    assert_near(&[totals[0], own[0] / own[1]], &[totals[1], (totals[1] / totals[61]).powi(2)], 1e-6);
}

#[test]
fn links_that_are_not_full_have_no_price_and_random_loss_counts() {
    // 10 Mbit/s access before a bottleneck of 2; and a loss of 1% that leaves a path half empty.
    let connections = vec![connection(&[&[0, 1]], &[100]), connection(&[&[2]], &[100])];
    let network = Network::new([10.0, 2.0, 10.0].map(Rate::from_mbps).to_vec(), connections).unwrap();
    let system = System::new(&network, vec![Algorithm::Reno; 2], PACKET).unwrap().with_loss(&[0.0, 0.01]).unwrap();
    let equilibrium = system.equilibrium().unwrap();
    assert_near(&[packets(equilibrium.totals()[0])], &[2e6 / 12_000.0], 1e-6);
    assert_near(&[packets(equilibrium.totals()[1])], &[tcp(0.01, 0.1)], 1e-6);
    assert_eq!((equilibrium.prices()[0], equilibrium.prices()[2]), (0.0, 0.0));
    assert_near(equilibrium.losses(), &[equilibrium.prices()[1], 0.01], 1e-9);
}

#[test]
fn eigenvalues_of_one_flow_on_one_link() {
    // dx/dt = x^2/2 (2/(rtt x)^2 - p), dp/dt = gamma (x - c): at rest J = ((-2/(rtt^2 c), -c^2/2), (gamma, 0)):
    // lambda^2 + b lambda + gamma c^2/2 = 0 with b = 2/(rtt^2 c).
    let network = Network::new(vec![Rate::from_mbps(12.0)], vec![connection(&[&[0]], &[100])]).unwrap();
    let system = System::new(&network, vec![Algorithm::Reno], PACKET).unwrap();
    let equilibrium = system.equilibrium().unwrap();
    let (c, b) = (1000.0_f64, 2.0 / (0.01 * 1000.0));
    for gamma in [1e-9, 1e-6] {
        let root = b * b / 4.0 - gamma * c * c / 2.0;
        let want = if root > 0.0 { root.sqrt() - b / 2.0 } else { -b / 2.0 };
        let response = system.response(&equilibrium, gamma).unwrap();
        assert_near(&[response.slowest()], &[want], 1e-4);
        assert_eq!(response.eigenvalues.len(), 2);
        assert_near(&[response.eigenvalues[0].1.abs()], &[(-root).max(0.0).sqrt()], 1e-4);
    }
}

#[test]
fn eigenvalues_at_given_loss() {
    // Prices given: J = K dPhi/dx. Reno: k phi' = -2/(rtt^2 x) on each subflow.
    // TCCC, equal subflows: phi' = -4/(rtt^2 S^3) in every entry, k = x S/2: eigenvalues 0 (the split is open) and
    // -2 * k * 4/(rtt^2 S^3) = -4 x/(rtt^2 S^2) = -2/(rtt^2 S). Equation 20 puts TCCC between BALIA and TCP, which holds
    // for the total, not for the split.
    let subflows = [(Duration::from_millis(100), 2e-4); 2];
    let slow = |law: Algorithm| {
        let system = System::at_loss(law, &subflows, PACKET).unwrap();
        system.response(&system.equilibrium().unwrap(), 1.0).unwrap()
    };
    // At p = 2e-4 and 100 ms a TCP has 100/0.1 = 1000 packets/s.
    assert_near(&[slow(Algorithm::Reno).slowest()], &[-0.2], 1e-4);
    let tccc = slow(Algorithm::Tccc);
    assert!(tccc.slowest().abs() < 1e-6);
    assert_near(&[tccc.eigenvalues[1].0], &[-0.2], 1e-4);
}

#[test]
fn balia_prefers_an_uneven_split_at_equal_loss() {
    // phi = (4 + 5 a + a^2)/(10 a) * Coupled's for a <= 1.5: at a = 1 it falls with a, so that a subflow which lags lags
    // more, until (4 + 5 a + a^2)/15 = 1: a = (sqrt(69) - 5)/2 = 1.653.
    let subflows = [(Duration::from_millis(100), 2e-4); 2];
    let system = System::at_loss(Algorithm::Balia, &subflows, PACKET).unwrap();
    let even = system.equilibrium().unwrap();
    assert!(system.response(&even, 1.0).unwrap().slowest() > 0.01);
    let start = [vec![Rate::from_mbps(6.0), Rate::from_mbps(5.9)]];
    let seconds = Duration::from_secs;
    let samples = system.integrate(&start, 1.0, seconds(3000), seconds(1000)).unwrap();
    let last = &samples.last().unwrap().rates[0];
    assert_near(&[last[0].as_bps() / last[1].as_bps()], &[(69.0_f64.sqrt() - 5.0) / 2.0], 1e-3);
    // The total is one TCP's all the same.
    assert_near(&[packets(last[0]) + packets(last[1])], &[tcp(2e-4, 0.1)], 1e-3);
}

#[test]
fn responsiveness_in_the_order_of_equation_20() {
    // Two links with a TCP each, the same round-trip time everywhere. Equation 20 orders the eigenvalues as
    // BALIA <= TCCC <= TCP, which can only mean their distance from zero, as the text ("does not exceed TCP") says.
    let slowest = |law: Algorithm| {
        let connections =
            vec![connection(&[&[0], &[1]], &[100, 100]), connection(&[&[0]], &[100]), connection(&[&[1]], &[100])];
        let network = Network::new(vec![Rate::from_mbps(10.0); 2], connections).unwrap();
        let system = System::new(&network, vec![law, Algorithm::Reno, Algorithm::Reno], PACKET).unwrap();
        system.response(&system.equilibrium().unwrap(), 1e-6).unwrap().slowest()
    };
    let (balia, tccc, tcp) = (slowest(Algorithm::Balia), slowest(Algorithm::Tccc), slowest(Algorithm::Reno));
    assert!(tcp < tccc && tccc < balia && balia < 0.0, "{tcp} {tccc} {balia}");
    assert!(tccc < slowest(Algorithm::Coupled));
}

#[test]
fn connections_that_are_exactly_alike_have_eigenvalues_too() {
    // Two subflows and two TCPs of the same law and price: every eigenvalue is there twice, and the search over this very
    // system goes round in circles.
    let connections =
        vec![connection(&[&[0], &[1]], &[100, 100]), connection(&[&[0]], &[100]), connection(&[&[1]], &[100])];
    let network = Network::new(vec![Rate::from_mbps(10.0); 2], connections).unwrap();
    let system = System::new(&network, vec![Algorithm::Reno; 3], Bytes::new(1400)).unwrap();
    let response = system.response(&system.equilibrium().unwrap(), 1e-6).unwrap();
    assert_eq!(response.eigenvalues.len(), 6);
    assert_near(&[response.slowest()], &[-0.224], 1e-3);
}

#[test]
fn in_time_a_system_comes_to_rest_where_the_equilibrium_is() {
    for law in [Algorithm::Lia, Algorithm::Balia, Algorithm::Tccc, Algorithm::UniMptcp { weights: vec![1.0, 0.5] }] {
        let connections = vec![
            connection(&[&[0], &[1]], &[100, 100]),
            connection(&[&[0]], &[100]),
            connection(&[&[1]], &[100]),
            connection(&[&[1]], &[100]),
        ];
        let network = Network::new([5.0, 8.0].map(Rate::from_mbps).to_vec(), connections).unwrap();
        let laws = vec![law, Algorithm::Reno, Algorithm::Reno, Algorithm::Reno];
        let system = System::new(&network, laws, PACKET).unwrap();
        let start: Vec<Vec<Rate>> =
            network.connections().iter().map(|one| vec![Rate::from_mbps(1.0); one.subflows.len()]).collect();
        let seconds = Duration::from_secs;
        let samples = system.integrate(&start, 1e-6, seconds(600), seconds(10)).unwrap();
        assert_eq!(samples.len(), 61);
        assert_near(&[samples[0].rates[0][0].as_mbps()], &[1.0], 1e-9);
        let (last, equilibrium) = (samples.last().unwrap(), system.equilibrium().unwrap());
        for (index, rates) in last.rates.iter().enumerate() {
            for (rate, want) in rates.iter().zip(equilibrium.subflows(index)) {
                assert_near(&[rate.as_mbps()], &[want.as_mbps()], 1e-3);
            }
        }
        assert_near(&last.prices, equilibrium.prices(), 1e-3);
    }
}

#[test]
fn hostile_input_is_refused() {
    let second = Duration::from_secs(1);
    assert_eq!(State::new(&[], PACKET), Err(FluidError::Empty));
    assert_eq!(State::new(&[(Rate::from_mbps(1.0), second)], Bytes::ZERO), Err(FluidError::PacketSize));
    assert!(matches!(State::new(&[(Rate::ZERO, second)], PACKET), Err(FluidError::Standstill { .. })));
    let at = |law, subflows: &[(Duration, f64)]| System::at_loss(law, subflows, PACKET).unwrap_err();
    for loss in [0.0, 1.0, -0.5, f64::NAN] {
        assert_eq!(at(Algorithm::Reno, &[(second, loss)]), FluidError::Loss);
    }
    assert_eq!(at(Algorithm::Ewtcp { a: f64::NAN }, &[(second, 0.1)]), FluidError::Parameter { connection: 0 });
    assert_eq!(at(Algorithm::Semicoupled { a: 1e300 }, &[(second, 0.1)]), FluidError::Parameter { connection: 0 });
    assert_eq!(at(Algorithm::UniMptcp { weights: vec![] }, &[(second, 0.1)]), FluidError::Parameter { connection: 0 });
    assert_eq!(at(Algorithm::Reno, &[]), FluidError::Empty);
    assert!(matches!(at(Algorithm::Reno, &vec![(second, 0.1); 1000]), FluidError::TooLarge { .. }));
    assert_eq!(Algorithm::named("cubic", 2), None);

    let network = Network::new(vec![Rate::from_mbps(1.0)], vec![connection(&[&[0]], &[100])]).unwrap();
    let refused = |laws| System::new(&network, laws, PACKET).unwrap_err();
    assert!(matches!(refused(vec![]), FluidError::Algorithms { .. }));
    let system = System::new(&network, vec![Algorithm::Reno], PACKET).unwrap();
    let start = [vec![Rate::from_mbps(1.0)]];
    assert!(matches!(system.integrate(&start, f64::NAN, second, second), Err(FluidError::Gamma { .. })));
    assert_eq!(system.integrate(&[], 1e-6, second, second).unwrap_err(), FluidError::Start);
    assert_eq!(system.integrate(&start, 1e-6, second, Duration::ZERO).unwrap_err(), FluidError::Interval);
    assert_eq!(system.integrate(&start, 1e-6, second, Duration::from_nanos(1)).unwrap_err(), FluidError::Interval);
    // Two packets a round trip on a link that takes one: no loss rate makes them fit.
    let crowd = Network::new(vec![Rate::from_bps(12_000.0)], vec![connection(&[&[0]], &[1000]); 2]).unwrap();
    let system = System::new(&crowd, vec![Algorithm::Reno; 2], PACKET).unwrap();
    assert!(matches!(system.equilibrium(), Err(FluidError::NoEquilibrium { .. })));
}

/// Windows and round-trip times in seconds of two to five subflows.
fn subflows() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    proptest::collection::vec((2.0..200.0_f64, 5..300_u32), 2..6)
        .prop_map(|subflows| subflows.into_iter().map(|(window, ms)| (window, f64::from(ms) / 1e3)).unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn table_two((windows, rtts) in subflows()) {
        let state = state(&windows, &rtts);
        let x: Vec<f64> = windows.iter().zip(&rtts).map(|(window, rtt)| window / rtt).collect();
        let (total, squares): (f64, f64) = (x.iter().sum(), x.iter().map(|x| x * x).sum());
        let min_rtt = rtts.iter().copied().fold(f64::INFINITY, f64::min);
        let over_rtt: f64 = x.iter().zip(&rtts).map(|(x, rtt)| x / rtt).sum();
        let inverse: f64 = rtts.iter().map(|rtt| rtt.powi(-2)).sum();
        let most = x.iter().copied().fold(0.0, f64::max);
        let each = |part: &dyn Fn(f64, f64) -> f64| x.iter().zip(&rtts).map(|(&x, &rtt)| part(x, rtt)).collect::<Vec<f64>>();
        let half = each(&|x, _| x * x / 2.0);
        let a = 0.7;
        let rows: Vec<(Algorithm, Vec<f64>, Vec<f64>)> = vec![
            (Algorithm::Reno, half.clone(), each(&|x, rtt| 2.0 / (rtt * x).powi(2))),
            (Algorithm::Ewtcp { a }, half.clone(), each(&|x, rtt| 2.0 * a / (rtt * x).powi(2))),
            (Algorithm::Coupled, half, each(&|_, rtt| 2.0 / (rtt * total).powi(2))),
            (Algorithm::Balia, each(&|x, _| x * x * (most / x).min(1.5) / 2.0), each(&|x, rtt| {
                let alpha = most / x;
                2.0 / (rtt * total).powi(2) * (4.0 + 5.0 * alpha + alpha * alpha) / (10.0 * alpha.min(1.5))
            })),
            (Algorithm::ENmcc, each(&|x, _| x * x * total * total / (2.0 * squares)), each(&|x, rtt| {
                2.0 / (min_rtt * min_rtt) * squares / ((x * rtt).powi(2) * inverse * total * total)
            })),
            // Equation 16; in k the windows of the printed sum are rates (cwnd_k/rtt_k^2 = x_k/rtt_k).
            (Algorithm::Tccc, each(&|x, rtt| x * min_rtt * total * total / (2.0 * rtt * rtt * over_rtt)),
                each(&|_, _| 2.0 / (min_rtt * total).powi(2))),
        ];
        for (law, k, phi) in rows {
            assert_near(&law.k(&state).unwrap(), &k, 1e-7);
            assert_near(&law.phi(&state).unwrap(), &phi, 1e-7);
        }
    }

    /// Equations 3 and 6: the total rate grows as one TCP's on the path with the shortest round trip.
    #[test]
    fn tccc_grows_like_one_tcp((windows, rtts) in subflows()) {
        let state = state(&windows, &rtts);
        let min_rtt = rtts.iter().copied().fold(f64::INFINITY, f64::min);
        let increase = Algorithm::Tccc.increase(&state).unwrap();
        // eps_r = I_r w_r per RTT; sum of eps_r/rtt_r = 1/min_rtt.
        let growth: f64 = increase.iter().zip(&windows).zip(&rtts).map(|((step, window), rtt)| step * window / rtt).sum();
        prop_assert!((growth * min_rtt - 1.0).abs() < 1e-7, "{growth}");
    }

    /// e-NMCC: the throughput lost per loss event, with losses in proportion to rates, is half of the total.
    #[test]
    fn e_nmcc_loses_half_in_the_mean((windows, rtts) in subflows()) {
        let state = state(&windows, &rtts);
        let x: Vec<f64> = windows.iter().zip(&rtts).map(|(window, rtt)| window / rtt).collect();
        let total: f64 = x.iter().sum();
        let decrease = Algorithm::ENmcc.decrease(&state).unwrap();
        let lost: f64 = x.iter().zip(&decrease).zip(&rtts).map(|((x, step), rtt)| x / total * step / rtt).sum();
        prop_assert!((lost / (total / 2.0) - 1.0).abs() < 1e-7);
    }

    /// Equation 17 where it holds for all round-trip times, and BALIA, for which it does not: a subflow whose rate is
    /// between 1/1.653 of the largest and the largest has less than Coupled's phi.
    #[test]
    fn coupled_is_the_friendliest((windows, rtts) in subflows()) {
        let state = state(&windows, &rtts);
        for law in [Algorithm::Tccc, Algorithm::Reno] {
            let order = Algorithm::Coupled.compare(&law, &state).unwrap();
            prop_assert!(matches!(order, Some(Ordering::Less | Ordering::Equal)), "{law:?} {order:?}");
        }
        let x: Vec<f64> = windows.iter().zip(&rtts).map(|(window, rtt)| window / rtt).collect();
        let most = x.iter().copied().fold(0.0, f64::max);
        let (coupled, balia) = (Algorithm::Coupled.phi(&state).unwrap(), Algorithm::Balia.phi(&state).unwrap());
        for ((x, coupled), balia) in x.iter().zip(&coupled).zip(&balia) {
            let alpha = most / x;
            prop_assert!((alpha - 1.653_312).abs() < 1e-4 || alpha < 1.0 + 1e-9 || (balia < coupled) == (alpha < 1.653_312));
        }
    }

    #[test]
    fn subflows_may_be_permuted((windows, rtts) in subflows()) {
        let forward = state(&windows, &rtts);
        let reversed = |values: &[f64]| values.iter().rev().copied().collect::<Vec<f64>>();
        let backward = state(&reversed(&windows), &reversed(&rtts));
        for law in laws(windows.len()) {
            assert_near(&reversed(&law.phi(&backward).unwrap()), &law.phi(&forward).unwrap(), 1e-12);
        }
    }

    /// At rest every subflow above its floor has its loss, every link is at most full, and full ones alone have a price.
    #[test]
    fn equilibria_satisfy_the_equations(
        mbps in proptest::collection::vec((0.7..3.0_f64).prop_map(|power| 10.0_f64.powf(power)), 2..5),
        picks in proptest::collection::vec((0..12_usize, proptest::collection::vec(((0..4_usize, 0..4_usize), 20..200_u64), 1..4)), 1..5),
    ) {
        let route = |((first, second), _): &((usize, usize), u64)| {
            let (first, second) = (first % mbps.len(), second % mbps.len());
            if first == second { vec![first] } else { vec![first, second] }
        };
        let connections: Vec<Connection> = picks.iter().map(|(_, subflows)| {
            let routes: Vec<Vec<usize>> = subflows.iter().map(route).collect();
            let borrowed: Vec<&[usize]> = routes.iter().map(Vec::as_slice).collect();
            connection(&borrowed, &subflows.iter().map(|(_, ms)| *ms).collect::<Vec<_>>())
        }).collect();
        let algorithms: Vec<Algorithm> = picks.iter().map(|(law, subflows)| laws(subflows.len())[*law].clone()).collect();
        let network = Network::new(mbps.iter().map(|&rate| Rate::from_mbps(rate)).collect(), connections).unwrap();
        let equilibrium = System::new(&network, algorithms.clone(), PACKET).unwrap().equilibrium().unwrap();
        let mut loads = vec![0.0; mbps.len()];
        let mut losses = equilibrium.losses().iter();
        for (index, one) in network.connections().iter().enumerate() {
            let rates = equilibrium.subflows(index);
            let point: Vec<(Rate, Duration)> = rates.iter().zip(&one.subflows).map(|(rate, subflow)| (*rate, subflow.rtt)).collect();
            let phi = algorithms[index].phi(&State::new(&point, PACKET).unwrap()).unwrap();
            for ((rate, subflow), phi) in rates.iter().zip(&one.subflows).zip(phi) {
                let loss = losses.next().unwrap();
                for &link in &subflow.links {
                    loads[link] += rate.as_mbps();
                }
                let floor = packets(*rate) * subflow.rtt.as_secs_f64() < MIN_WINDOW * (1.0 + 1e-9);
                prop_assert!((phi / loss - 1.0).abs() < 1e-6 || (floor && phi < *loss), "{phi} {loss}: {equilibrium:?}");
            }
        }
        for ((load, capacity), price) in loads.iter().zip(&mbps).zip(equilibrium.prices()) {
            prop_assert!(*load < capacity * (1.0 + 1e-6));
            prop_assert!(*price <= 0.0 || *load > capacity * (1.0 - 1e-6), "{equilibrium:?}");
        }
    }
}
