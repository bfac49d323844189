//! Lexicographic max-min fairness: the examples of the papers, and its definition on random networks.

use std::collections::VecDeque;

use manypath_core::Rate;
use manypath_theory::{Connection, Network, lmmf};
use proptest::prelude::*;

fn network(mbps: &[f64], connections: Vec<Connection>) -> Network {
    Network::new(mbps.iter().map(|&rate| Rate::from_mbps(rate)).collect(), connections).unwrap()
}

fn totals(network: &Network) -> Vec<f64> {
    lmmf(network).unwrap().totals().iter().map(|rate| rate.as_mbps()).collect()
}

fn assert_totals(network: &Network, want: &[f64]) {
    let got = totals(network);
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5 * want), "{got:?} instead of {want:?}");
}

#[test]
fn the_networks_of_mpcc() {
    // Expected totals: linear programs, one after the other, by another program.
    let over = |routes: &[[usize; 1]]| Connection::over(routes);
    // Figure 1: three links of 100, MPCC_1 on the first, MPCC_3 on all.
    assert_totals(&network(&[100.0; 3], vec![over(&[[0]]), over(&[[0], [1], [2]])]), &[100.0, 200.0]);
    // Figure 3c.
    assert_totals(&network(&[100.0; 2], vec![over(&[[0], [1]]), over(&[[1]])]), &[100.0, 100.0]);
    assert_totals(
        &network(&[100.0, 50.0, 20.0], vec![over(&[[0], [1]]), over(&[[1], [2]]), over(&[[2]])]),
        &[100.0, 50.0, 20.0],
    );
    // Figure 3d: 200 among three.
    assert_totals(&network(&[100.0; 2], vec![over(&[[0], [1]]), over(&[[0]]), over(&[[1]])]), &[200.0 / 3.0; 3]);
    assert_totals(&network(&[500.0, 50.0], vec![over(&[[0], [1]]), over(&[[1]])]), &[500.0, 50.0]);
}

#[test]
fn several_levels_and_routes_of_several_links() {
    // The classical single-path example: 0-1 long, one on each; link 0 has 1, link 1 has 2.
    // All rise to 1/2, where link 0 is full; the flow on link 1 alone goes on to 3/2.
    let line =
        network(&[1.0, 2.0], vec![Connection::over(&[[0, 1]]), Connection::over(&[[0]]), Connection::over(&[[1]])]);
    assert_totals(&line, &[0.5, 0.5, 1.5]);
}

#[test]
fn a_limit_is_a_level() {
    let limited = Connection { limit: Some(Rate::from_mbps(1.0)), ..Connection::over(&[[0]]) };
    assert_totals(
        &network(&[10.0], vec![limited, Connection::over(&[[0]]), Connection::over(&[[0]])]),
        &[1.0, 4.5, 4.5],
    );
}

#[test]
fn capacities_nine_orders_of_magnitude_apart() {
    let wide =
        network(&[1e-3, 1e6], vec![Connection::over(&[[0], [1]]), Connection::over(&[[0]]), Connection::over(&[[1]])]);
    assert_totals(&wide, &[5e5, 1e-3, 5e5]);
}

#[test]
fn a_hundred_levels_in_a_network_of_a_thousand_links() {
    let mbps: Vec<f64> = (0..1000_u32).map(|link| f64::from(1 + link / 10)).collect();
    let connections = (0..1000).map(|link| Connection::over(&[[link]])).collect();
    assert_totals(&network(&mbps, connections), &mbps);
}

#[test]
fn more_subflows_do_not_buy_more() {
    // Five subflows over the same link count as one connection.
    assert_totals(&network(&[10.0], vec![Connection::over(&[[0]; 5]), Connection::over(&[[0]])]), &[5.0, 5.0]);
}

/// Capacities, and routes by connection and subflow, of up to `hops` links each.
fn topology(hops: usize) -> impl Strategy<Value = (Vec<f64>, Vec<Vec<Vec<usize>>>)> {
    sized(hops, 6, 7)
}

/// The same with fewer than so many links and connections.
fn sized(hops: usize, links: usize, connections: usize) -> impl Strategy<Value = (Vec<f64>, Vec<Vec<Vec<usize>>>)> {
    proptest::collection::vec((1..40_u32).prop_map(f64::from), 1..links).prop_flat_map(move |capacities| {
        let all: Vec<usize> = (0..capacities.len()).collect();
        let route = proptest::sample::subsequence(all, 1..=capacities.len().min(hops));
        let connections = proptest::collection::vec(proptest::collection::vec(route, 1..4), 1..connections);
        (Just(capacities), connections)
    })
}

fn build(capacities: &[f64], routes: &[Vec<Vec<usize>>]) -> Network {
    network(capacities, routes.iter().map(|subflows| Connection::over(subflows)).collect())
}

/// The largest flow from connections that want `demands` into links of these capacities, where each subflow crosses one
/// link: an answer about feasibility that no linear program was asked for.
fn largest_flow(capacities: &[f64], routes: &[Vec<Vec<usize>>], demands: &[f64]) -> f64 {
    let (connections, links) = (routes.len(), capacities.len());
    let (source, sink) = (connections + links, connections + links + 1);
    let mut room = vec![vec![0.0; sink + 1]; sink + 1];
    for (connection, subflows) in routes.iter().enumerate() {
        room[source][connection] = demands[connection];
        for route in subflows {
            room[connection][connections + route[0]] = f64::INFINITY;
        }
    }
    for (link, capacity) in capacities.iter().enumerate() {
        room[connections + link][sink] = *capacity;
    }
    let mut flow = 0.0;
    loop {
        let mut from = vec![None; sink + 1];
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for next in 0..=sink {
                if next != source && from[next].is_none() && room[node][next] > 1e-12 {
                    from[next] = Some(node);
                    queue.push_back(next);
                }
            }
        }
        if from[sink].is_none() {
            return flow;
        }
        let steps = || std::iter::successors(Some(sink), |&node| from[node]).take_while(|&node| node != source);
        let push = steps().map(|node| room[from[node].unwrap()][node]).fold(f64::INFINITY, f64::min);
        for node in steps() {
            let before = from[node].unwrap();
            room[before][node] -= push;
            room[node][before] += push;
        }
        flow += push;
    }
}

/// Progressive filling of single-path flows, the textbook way: the exact answer.
fn water_filling(capacities: &[f64], routes: &[Vec<usize>]) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; routes.len()];
    while rates.iter().any(Option::is_none) {
        let share = |link: usize| {
            let on = || routes.iter().zip(&rates).filter(move |(route, _)| route.contains(&link));
            let used: f64 = on().filter_map(|(_, rate)| *rate).sum();
            let free = on().filter(|(_, rate)| rate.is_none()).count();
            (free > 0).then(|| (capacities[link] - used) / free as f64)
        };
        let (tightest, level) = (0..capacities.len())
            .filter_map(|link| Some((link, share(link)?)))
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .unwrap();
        for (rate, route) in rates.iter_mut().zip(routes) {
            if rate.is_none() && route.contains(&tightest) {
                *rate = Some(level);
            }
        }
    }
    rates.into_iter().flatten().collect()
}

/// The definition: no connection can gain unless one that has as much or less loses.
fn assert_fair(capacities: &[f64], routes: &[Vec<Vec<usize>>]) {
    let totals = totals(&build(capacities, routes));
    for (index, own) in totals.iter().enumerate() {
        let demand = |(other, total): (usize, &f64)| match () {
            () if other == index => own * 1.001,
            () if *total <= own * (1.0 + 1e-6) => total * (1.0 - 1e-6),
            () => 0.0,
        };
        let demands: Vec<f64> = totals.iter().enumerate().map(demand).collect();
        let wanted: f64 = demands.iter().sum();
        assert!(largest_flow(capacities, routes, &demands) < wanted - 1e-4 * own, "{index}: {totals:?}");
    }
}

/// On single-path networks, routes of several links, the answer is known exactly.
fn assert_filled(capacities: &[f64], routes: &[Vec<Vec<usize>>]) {
    let single: Vec<Vec<Vec<usize>>> = routes.iter().map(|subflows| vec![subflows[0].clone()]).collect();
    let flat: Vec<Vec<usize>> = routes.iter().map(|subflows| subflows[0].clone()).collect();
    let (got, want) = (totals(&build(capacities, &single)), water_filling(capacities, &flat));
    assert!(got.iter().zip(&want).all(|(got, want)| (got / want - 1.0).abs() < 1e-6), "{got:?} {want:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn allocations_fit((capacities, routes) in topology(3)) {
        let network = build(&capacities, &routes);
        let allocation = lmmf(&network).unwrap();
        for (load, capacity) in allocation.loads(&network).iter().zip(&capacities) {
            prop_assert!(load.as_mbps() <= capacity * (1.0 + 1e-12));
        }
    }

    #[test]
    fn nobody_gains_without_a_poorer_one_losing((capacities, routes) in topology(1)) {
        assert_fair(&capacities, &routes);
    }

    #[test]
    fn single_path_flows_fill_like_water((capacities, routes) in topology(3)) {
        assert_filled(&capacities, &routes);
    }

    #[test]
    fn order_does_not_matter((capacities, routes) in topology(3)) {
        let links = capacities.len();
        let reversed: Vec<Vec<Vec<usize>>> = routes.iter().rev()
            .map(|subflows| subflows.iter().rev().map(|route| route.iter().map(|link| links - 1 - link).collect()).collect())
            .collect();
        let backwards: Vec<f64> = capacities.iter().rev().copied().collect();
        let (one, mut other) = (totals(&build(&capacities, &routes)), totals(&build(&backwards, &reversed)));
        other.reverse();
        prop_assert!(one.iter().zip(&other).all(|(one, other)| (one / other - 1.0).abs() < 1e-6), "{one:?} {other:?}");
    }

    #[test]
    fn capacity_scales_rates((capacities, routes) in topology(2), power in -4.0..5.0_f64) {
        let factor = 10.0_f64.powf(power);
        let scaled: Vec<f64> = capacities.iter().map(|capacity| capacity * factor).collect();
        let (one, other) = (totals(&build(&capacities, &routes)), totals(&build(&scaled, &routes)));
        prop_assert!(one.iter().zip(&other).all(|(one, other)| (one * factor / other - 1.0).abs() < 1e-6));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn large_networks_are_fair((capacities, routes) in sized(1, 60, 80)) {
        assert_fair(&capacities, &routes);
    }

    #[test]
    fn large_single_path_networks_fill_like_water((capacities, routes) in sized(3, 60, 80)) {
        assert_filled(&capacities, &routes);
    }
}
