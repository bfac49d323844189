//! Network utility maximisation against closed forms and against its own optimality conditions.

use manypath_core::Rate;
use manypath_theory::num::{NumError, Optimum, Utility, maximise};
use manypath_theory::uni::TwoPaths;
use manypath_theory::{Connection, Network, SolveError};
use proptest::prelude::*;

fn network(mbps: &[f64], connections: Vec<Connection>) -> Network {
    Network::new(mbps.iter().map(|&rate| Rate::from_mbps(rate)).collect(), connections).unwrap()
}

fn totals(optimum: &Optimum) -> Vec<f64> {
    optimum.allocation.totals().iter().map(|rate| rate.as_mbps()).collect()
}

fn assert_near(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() <= tolerance), "{got:?} instead of {want:?}");
}

/// What a connection's weighted sum would be if it were alone, in Mbit/s.
fn alone(network: &Network, connection: &Connection, utility: &Utility) -> f64 {
    let rate =
        |links: &[usize]| links.iter().fold(f64::INFINITY, |least, &l| least.min(network.capacities()[l].as_mbps()));
    connection
        .subflows
        .iter()
        .zip(&utility.subflow_weights)
        .map(|(subflow, weight)| weight * rate(&subflow.links))
        .sum()
}

/// The largest violation of the Karush-Kuhn-Tucker conditions, relative; the slopes of connections that get less than a
/// millionth of what they could have are not looked at, unless they are the same everywhere.
fn kkt_violation(network: &Network, utilities: &[Utility], optimum: &Optimum) -> f64 {
    let mut worst = 0.0_f64;
    for ((capacity, load), price) in
        network.capacities().iter().zip(optimum.allocation.loads(network)).zip(&optimum.prices)
    {
        let scale: f64 = capacity.as_mbps();
        worst = worst.max(load.as_mbps() / scale - 1.0);
        // Complementary slackness: what the unused capacity would be worth, against what a connection is worth.
        let idle = price * (scale - load.as_mbps());
        let worth: f64 = utilities.iter().zip(optimum.weighted_sums(utilities)).map(|(u, z)| u.slope(z) * z).sum();
        worst = worst.max(idle.abs() / worth);
    }
    let sums = optimum.weighted_sums(utilities);
    for (index, (connection, utility)) in network.connections().iter().zip(utilities).enumerate() {
        let starves = sums[index] < 1e-6 * alone(network, connection, utility);
        if starves && utility.alpha > 0.0 {
            continue;
        }
        let slope = utility.slope(sums[index]);
        for ((subflow, weight), rate) in
            connection.subflows.iter().zip(&utility.subflow_weights).zip(optimum.allocation.subflows(index))
        {
            let price: f64 =
                subflow.links.iter().map(|&link| optimum.prices[link]).sum::<f64>() + optimum.limit_prices[index];
            // Stationarity: weight * U' <= price, with equality where the subflow carries something.
            worst = worst.max((weight * slope - price) / (weight * slope));
            let share = if starves { 0.0 } else { weight * rate.as_mbps() / sums[index] };
            worst = worst.max(share * (price - weight * slope).abs() / (weight * slope));
        }
    }
    worst
}

#[test]
fn proportional_fairness_on_a_line() {
    // One flow over both links, one on each: maximise ln a + ln b + ln c with a + b = a + c = 1: a = 1/3.
    let line =
        network(&[1.0, 1.0], vec![Connection::over(&[[0, 1]]), Connection::over(&[[0]]), Connection::over(&[[1]])]);
    let optimum = maximise(&line, &vec![Utility::proportional(1); 3]).unwrap();
    assert_near(&totals(&optimum), &[1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0], 1e-6);
    // Prices: U'(b) = 1.5 on each link, and U'(a) = 3 is their sum.
    assert_near(&optimum.prices, &[1.5, 1.5], 1e-5);
}

#[test]
fn alpha_fairness_on_a_line() {
    // With U = z^(1-alpha)/(1-alpha): a^-alpha = 2 b^-alpha, so b = 2^(1/alpha) a and a = 1/(1 + 2^(1/alpha)).
    let line =
        network(&[1.0, 1.0], vec![Connection::over(&[[0, 1]]), Connection::over(&[[0]]), Connection::over(&[[1]])]);
    for alpha in [0.25, 0.5, 0.9, 1.1, 2.0, 4.0, 8.0] {
        let utilities = vec![Utility { alpha, ..Utility::proportional(1) }; 3];
        let a = 1.0 / (1.0 + 2.0_f64.powf(1.0 / alpha));
        assert_near(&totals(&maximise(&line, &utilities).unwrap()), &[a, 1.0 - a, 1.0 - a], 1e-5);
    }
    // alpha = 0 is throughput: the long flow starves.
    let utilities = vec![Utility { alpha: 0.0, ..Utility::proportional(1) }; 3];
    assert_near(&totals(&maximise(&line, &utilities).unwrap()), &[0.0, 1.0, 1.0], 1e-6);
}

#[test]
fn what_starves_keeps_its_say_in_prices() {
    // A flow over both links is worth 4 a Mbit/s; one on each is worth 2, so the prices are 2 and 2 and no others, whoever of
    // them has nothing; and one that is worth 1 has nothing.
    let connections = [&[0, 1][..], &[0], &[1], &[1]].map(|route| Connection::over(&[route])).into();
    let line = network(&[20.0, 20.0], connections);
    let linear = |weights: &[f64]| -> Vec<Utility> {
        weights.iter().map(|&weight| Utility { alpha: 0.0, weight, ..Utility::proportional(1) }).collect()
    };
    let optimum = maximise(&line, &linear(&[4.0, 2.0, 2.0, 1.0])).unwrap();
    assert_near(&optimum.prices, &[2.0, 2.0], 1e-4);
    assert_near(&[totals(&optimum)[3]], &[0.0], 1e-6);
    // With a little fairness too: nobody who has next to nothing would pay less than its first megabit is worth.
    let utilities: Vec<Utility> =
        linear(&[3.0, 1.9, 0.5, 0.1]).into_iter().map(|utility| Utility { alpha: 1e-3, ..utility }).collect();
    let optimum = maximise(&line, &utilities).unwrap();
    assert!(optimum.prices[0] > 1.9 && optimum.prices[1] > 0.5, "{optimum:?}");
    // 3 * 20^-0.001 = 2.991.
    assert_near(&[optimum.prices.iter().sum()], &[3.0 * 20.0_f64.powf(-1e-3)], 1e-4);
}

#[test]
fn weights_divide_a_link() {
    let shared = network(&[12.0], vec![Connection::over(&[[0]]); 3]);
    let utilities: Vec<Utility> = [1.0, 2.0, 3.0].map(|weight| Utility { weight, ..Utility::proportional(1) }).into();
    assert_near(&totals(&maximise(&shared, &utilities).unwrap()), &[2.0, 4.0, 6.0], 1e-5);
}

#[test]
fn a_limit_frees_capacity_for_the_others_and_has_a_price() {
    let limited = Connection { limit: Some(Rate::from_mbps(1.0)), ..Connection::over(&[[0]]) };
    let shared = network(&[10.0], vec![limited, Connection::over(&[[0]])]);
    let optimum = maximise(&shared, &vec![Utility::proportional(1); 2]).unwrap();
    assert_near(&totals(&optimum), &[1.0, 9.0], 1e-6);
    // 1/1 = link price + limit price, with link price 1/9.
    assert_near(&optimum.prices, &[1.0 / 9.0], 1e-6);
    assert_near(&optimum.limit_prices, &[8.0 / 9.0, 0.0], 1e-6);
}

#[test]
fn a_subflow_of_weight_zero_carries_nothing() {
    let two = network(&[10.0, 10.0], vec![Connection::over(&[[0], [1]]), Connection::over(&[[1]])]);
    let utilities =
        vec![Utility { subflow_weights: vec![1.0, 0.0], ..Utility::proportional(2) }, Utility::proportional(1)];
    let optimum = maximise(&two, &utilities).unwrap();
    assert_near(&totals(&optimum), &[10.0, 10.0], 1e-6);
}

#[test]
fn hostile_utilities_are_refused() {
    let one = network(&[1.0], vec![Connection::over(&[[0]])]);
    let with =
        |alpha, weight, subflow_weights| maximise(&one, &[Utility { alpha, weight, subflow_weights }]).unwrap_err();
    assert_eq!(maximise(&one, &[]).unwrap_err(), NumError::Utilities { utilities: 0, connections: 1 });
    assert!(matches!(with(f64::NAN, 1.0, vec![1.0]), NumError::Alpha { .. }));
    assert!(matches!(with(-0.1, 1.0, vec![1.0]), NumError::Alpha { .. }));
    assert!(matches!(with(1.0, f64::NAN, vec![1.0]), NumError::Weight { .. }));
    assert!(matches!(with(1.0, 0.0, vec![1.0]), NumError::Weight { .. }));
    for weights in [vec![], vec![1.0, 1.0], vec![0.0], vec![-1.0], vec![f64::NAN], vec![f64::INFINITY]] {
        assert!(matches!(with(1.0, 1.0, weights), NumError::SubflowWeights { connection: 0 }));
    }
}

#[test]
fn capacities_seven_orders_of_magnitude_apart() {
    // A connection on 10 kbit/s and 100 Gbit/s with a flow on each link: everything is on the large link.
    let wide =
        network(&[0.01, 1e5], vec![Connection::over(&[[0], [1]]), Connection::over(&[[0]]), Connection::over(&[[1]])]);
    let utilities = vec![Utility::proportional(2), Utility::proportional(1), Utility::proportional(1)];
    let optimum = maximise(&wide, &utilities).unwrap();
    assert_near(&totals(&optimum), &[5e4, 0.01, 5e4], 1.0);
    assert!((totals(&optimum)[1] - 0.01).abs() < 1e-5);
}

#[test]
fn utilities_too_far_apart_are_no_answer() {
    // Two connections that share nothing: each has its link, whatever alpha is. Their slopes are 10^18 apart at 6.
    let apart = network(&[0.1, 100.0], vec![Connection::over(&[[0]]), Connection::over(&[[1]])]);
    for alpha in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0] {
        match maximise(&apart, &vec![Utility { alpha, ..Utility::proportional(1) }; 2]) {
            Ok(optimum) => assert_near(&totals(&optimum), &[0.1, 100.0], 0.1),
            Err(error) => assert!(alpha > 4.0 && error == NumError::Solve(SolveError::Inaccurate), "{alpha}: {error}"),
        }
    }
}

#[test]
fn throughput_on_links_too_far_apart_is_no_answer() {
    // Whoever has the narrow link to himself could send more on it, and who needs both starves: a price of one each.
    for narrow in [10.0, 0.1, 1e-3] {
        let routes = [vec![vec![0], vec![1]], vec![vec![0]], vec![vec![0, 1]]];
        let apart = network(&[narrow, 1e5], routes.iter().map(|routes| Connection::over(routes)).collect());
        match maximise(&apart, &[2, 1, 1].map(|count| Utility { alpha: 0.0, ..Utility::proportional(count) })) {
            Ok(optimum) => {
                assert_near(&optimum.prices, &[1.0, 1.0], 1e-2);
                assert!(optimum.allocation.loads(&apart)[0].as_mbps() > 0.99 * narrow);
            }
            Err(error) => assert!(narrow < 0.01 && error == NumError::Solve(SolveError::Inaccurate), "{error}"),
        }
    }
}

/// A random network of up to four links and five connections of up to three subflows, with utilities.
fn problem() -> impl Strategy<Value = (Network, Vec<Utility>)> {
    problem_of(prop_oneof![Just(1.0), 0.3..3.0_f64])
}

/// The same with an `alpha` of one's own.
fn problem_of(alpha: impl Strategy<Value = f64> + Clone + 'static) -> impl Strategy<Value = (Network, Vec<Utility>)> {
    let links = proptest::collection::vec(0.5..50.0_f64, 1..5);
    links.prop_flat_map(move |capacities| {
        let count = capacities.len();
        let route = proptest::sample::subsequence((0..count).collect::<Vec<_>>(), 1..=count.min(2));
        let weight = (-1.0..1.0_f64).prop_map(|power| 10.0_f64.powf(power));
        let connection = proptest::collection::vec((route, weight.clone()), 1..4);
        let connections = proptest::collection::vec((connection, weight, alpha.clone()), 1..6);
        (Just(capacities), connections).prop_map(|(capacities, connections)| {
            let build = |(subflows, weight, alpha): (Vec<(Vec<usize>, f64)>, f64, f64)| {
                let (routes, subflow_weights): (Vec<_>, Vec<_>) = subflows.into_iter().unzip();
                (Connection::over(&routes), Utility { alpha, weight, subflow_weights })
            };
            let (connections, utilities): (Vec<_>, Vec<_>) = connections.into_iter().map(build).unzip();
            (network(&capacities, connections), utilities)
        })
    })
}

/// Networks of equal links with equal or twice as heavy connections, for throughput: optima are many, and prices too.
fn tied() -> impl Strategy<Value = (Network, Vec<Utility>)> {
    problem_of(Just(0.0)).prop_map(|(tied, utilities)| {
        let capacities: Vec<f64> =
            tied.capacities().iter().map(|rate| if rate.as_mbps() < 25.0 { 10.0 } else { 20.0 }).collect();
        let whole = |weight: f64| if weight < 1.0 { 1.0 } else { 2.0 };
        let even = |utility: Utility| Utility {
            weight: whole(utility.weight),
            subflow_weights: utility.subflow_weights.into_iter().map(whole).collect(),
            ..utility
        };
        (network(&capacities, tied.connections().to_vec()), utilities.into_iter().map(even).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn optima_satisfy_their_conditions((network, utilities) in problem()) {
        let optimum = maximise(&network, &utilities).unwrap();
        let violation = kkt_violation(&network, &utilities, &optimum);
        prop_assert!(violation < 1e-4, "{violation}: {optimum:?}");
    }

    #[test]
    fn throughput_has_prices_too((network, utilities) in problem_of(prop_oneof![Just(0.0), 1e-3..1.0_f64])) {
        let optimum = maximise(&network, &utilities).unwrap();
        let violation = kkt_violation(&network, &utilities, &optimum);
        prop_assert!(violation < 1e-4, "{violation}: {optimum:?}");
    }

    #[test]
    fn ties_have_prices_too((network, utilities) in tied()) {
        let optimum = maximise(&network, &utilities).unwrap();
        let violation = kkt_violation(&network, &utilities, &optimum);
        prop_assert!(violation < 1e-4, "{violation}: {optimum:?}");
    }

    #[test]
    fn order_does_not_matter((network, utilities) in problem()) {
        let connections: Vec<_> = network.connections().iter().rev().cloned().collect();
        let reversed = Network::new(network.capacities().to_vec(), connections).unwrap();
        let reversed_utilities: Vec<_> = utilities.iter().rev().cloned().collect();
        let sums = maximise(&network, &utilities).unwrap().weighted_sums(&utilities);
        let mut other = maximise(&reversed, &reversed_utilities).unwrap().weighted_sums(&reversed_utilities);
        other.reverse();
        prop_assert!(sums.iter().zip(&other).all(|(one, other)| (one - other).abs() < 1e-6 * one + 1e-7), "{sums:?} {other:?}");
    }

    /// Uni-MPTCP, Table I against equations 14 and 15 solved numerically.
    #[test]
    fn table_one_is_the_optimum(n1 in 1..15_u32, n2 in 1..15_u32, c1 in 1.0..50.0_f64, c2 in 1.0..50.0_f64, power in -2.0..2.0_f64) {
        let omega = 10.0_f64.powf(power);
        let setting = TwoPaths::new([n1, n2], [Rate::from_mbps(c1), Rate::from_mbps(c2)]).unwrap();
        let shares = setting.shares(omega).unwrap();
        let (network, utilities) = setting.problem(omega).unwrap();
        let optimum = maximise(&network, &utilities).unwrap();
        let subflows: Vec<f64> = optimum.allocation.subflows(0).iter().map(|rate| rate.as_mbps()).collect();
        let first = optimum.allocation.subflows(1)[0].as_mbps();
        let second = optimum.allocation.subflows(1 + n1 as usize)[0].as_mbps();
        for (got, (want, capacity)) in [(subflows[0], (shares.subflows[0], c1)), (subflows[1], (shares.subflows[1], c2)),
            (first, (shares.tcp[0], c1)), (second, (shares.tcp[1], c2))]
        {
            prop_assert!((got - want.as_mbps()).abs() < 1e-4 * capacity, "{shares:?} {subflows:?} {first} {second}");
        }
        // Principle P2: no subflow takes more than the TCP flows beside it.
        prop_assert!(shares.subflows.iter().zip(&shares.tcp).all(|(own, tcp)| own.as_bps() <= tcp.as_bps() * (1.0 + 1e-9)));
        // Appendix: at omega = 1 the connection gets what the better TCP gets.
        let even = setting.shares(1.0).unwrap();
        let best = even.tcp[0].as_mbps().max(even.tcp[1].as_mbps());
        prop_assert!((even.total().as_mbps() - best).abs() < 1e-9 * best);
    }
}
