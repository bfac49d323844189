use super::*;

/// Uni-MPTCP Table II: rates in Mbit/s at weights 0.01, 100 and 1, and the weight found for a target of 2.5 Mbit/s.
/// The "long run" row (1.120801, 4.50132, 4.50132, 0.152217) is left out: its digits are inconsistent, 2.5 gives 0.15392.
const TABLE_2: [(f64, f64, f64, f64); 10] = [
    (2.72832, 3.24272, 3.463455, 0.01),
    (2.05799, 4.29819, 4.0166, 0.360981),
    (1.77797, 4.0276, 4.3877, 0.342145),
    (1.51796, 3.18734, 3.5483, 0.416855),
    (1.30549, 4.56857, 4.08284, 0.184515),
    (1.23795, 4.13308, 4.36794, 0.208344),
    (1.16627, 4.67518, 4.37245, 0.150182),
    (1.1489, 4.18582, 4.45983, 0.183954),
    (1.20071, 4.60178, 4.40733, 0.161596),
    (1.15639, 4.07374, 4.41856, 0.19562),
];

#[test]
fn the_paper_s_table_2() {
    for (least, most, even, omega) in TABLE_2 {
        let found = Tried { least, most, even }.omega_for(2.5, &Config::default());
        assert!((found - omega).abs() < 5e-4, "{least} {most}: {found} is not {omega}");
    }
    let long = Tried { least: 1.120801, most: 4.50132, even: 4.50132 };
    assert!((long.omega_for(2.5, &Config::default()) - 0.15392).abs() < 5e-5);
}

#[test]
fn equation_25() {
    // r = 1/4: (0.5 + 2 max(0.5 - 0.5, 0))/3 = 1/6; r = 0.64: (0.8 + 2 (1.28 - 0.8))/3 = 1.76/3.
    let at = |least| Tried { least, most: 1.0, even: 1.0 }.midpoint();
    assert!((at(0.25) - 1.0 / 6.0).abs() < 1e-12);
    assert!((at(0.64) - 1.76 / 3.0).abs() < 1e-12);
}

#[test]
fn the_curve_is_inverted() {
    let tried = Tried { least: 1.0, most: 5.0, even: 5.0 };
    let config = Config::default();
    for target in [1.5, 2.0, 3.0, 4.9] {
        let omega = tried.omega_for(target, &config);
        assert!((tried.rate_at(omega, &config) - target).abs() < 1e-9);
    }
}

#[test]
fn ends_and_cases() {
    let config = Config::default();
    let tried = Tried { least: 1.0, most: 5.0, even: 5.0 };
    assert!((tried.omega_for(0.5, &config) - 0.01).abs() < 1e-12);
    assert!((tried.omega_for(1.0, &config) - 0.01).abs() < 1e-12);
    assert!((tried.omega_for(6.0, &config) - 1.0).abs() < 1e-12);
    // Almost the least: 0.15 - ln(4e7)/30 is below zero.
    assert!((tried.omega_for(1.000_000_1, &config) - 0.01).abs() < 1e-12);
    // Case 3: 5 at 0.01 and at 1, 2 at 100.
    let falling = Tried { least: 5.0, most: 2.0, even: 5.0 };
    assert!((falling.omega_for(6.0, &config) - 0.01).abs() < 1e-12);
    // Falling but not case 3: the even weight gives most.
    let peaked = Tried { least: 3.0, most: 2.9, even: 5.0 };
    assert!((peaked.omega_for(4.0, &config) - 1.0).abs() < 1e-12);
    assert!((peaked.omega_for(2.0, &config) - 0.01).abs() < 1e-12);
}

/// Runs a search on paths whose rates depend on the weight; returns the weights over time.
fn run(search: &mut OmegaSearch, seconds: u64, rates: impl Fn(u64, f64) -> [u64; 2]) -> Vec<f64> {
    let mut delivered = [Bytes::ZERO; 2];
    let mut found = Vec::new();
    for second in 0..seconds {
        let weights = search.poll(Time::from_millis(second * 1000), delivered);
        let omega = weights[1] / weights[0];
        found.push(omega);
        for (path, rate) in rates(second, omega).into_iter().enumerate() {
            delivered[path] += Bytes::new(rate / 8);
        }
    }
    found
}

#[test]
fn a_search_tries_three_weights_and_holds_the_fourth() {
    let mut search = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    // 1 Mbit/s at 0.01, 5 at 1 and above.
    let path = |_: u64, omega: f64| if omega < 0.5 { [1_000_000, 0] } else { [500_000, 4_500_000] };
    let omegas = run(&mut search, 90, path);
    assert!((omegas[5] - 0.01).abs() < 1e-12 && (omegas[25] - 100.0).abs() < 1e-9 && (omegas[45] - 1.0).abs() < 1e-12);
    let expected = Tried { least: 1.0, most: 5.0, even: 5.0 }.omega_for(3.0, &Config::default());
    assert!((omegas[65] - expected).abs() < 1e-9, "{} {expected}", omegas[65]);
    assert!(search.is_holding());
}

#[test]
fn who_is_called_late_measures_as_long() {
    let mut search = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    // Asked for at 10 s.
    search.poll(Time::from_millis(19_000), [Bytes::ZERO; 2]);
    assert_eq!(search.next_timer(), Time::from_millis(29_000));
}

#[test]
fn a_change_of_a_subflow_s_rate_searches_again() {
    let path = |second: u64, _: f64| if second < 150 { [1_000_000, 1_000_000] } else { [1_000_000, 200_000] };
    let mut search = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    run(&mut search, 149, path);
    assert!(search.is_holding());
    let mut changed = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    run(&mut changed, 185, path);
    assert!(!changed.is_holding());
}

#[test]
fn one_of_the_first_measurements_alone_is_not_what_others_are_compared_with() {
    // The first one, of the eighth ten seconds, is of a path whose window still grows.
    let path = |second: u64, _: f64| if second < 80 { [1_000_000, 200_000] } else { [1_000_000, 1_000_000] };
    let mut search = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    run(&mut search, 230, path);
    assert!(search.is_holding());
}

#[test]
fn a_rate_that_is_another_for_one_measurement_changes_nothing() {
    // Measurements are 10 s long, a second apart, and begin with that of 70 s to 80 s.
    let odd = 147..157;
    let path = |second: u64, _: f64| if odd.contains(&second) { [1_000_000, 200_000] } else { [1_000_000, 1_000_000] };
    let mut search = OmegaSearch::new(Time::ZERO, Config::default(), Rate::from_mbps(3.0));
    // Before a search that began then would be over.
    run(&mut search, 200, path);
    assert!(search.is_holding());
}

#[test]
fn a_period_searches_again() {
    let config = Config { period: Some(Duration::from_secs(300)), ..Config::default() };
    let mut search = OmegaSearch::new(Time::ZERO, config, Rate::from_mbps(3.0));
    run(&mut search, 299, |_, _| [1_000_000, 1_000_000]);
    assert!(search.is_holding());
    let mut search = OmegaSearch::new(Time::ZERO, config, Rate::from_mbps(3.0));
    run(&mut search, 315, |_, _| [1_000_000, 1_000_000]);
    assert!(!search.is_holding());
}

#[test]
fn a_weight_found_before_is_held() {
    let mut search = OmegaSearch::found(Time::ZERO, Config::default(), Rate::from_mbps(3.0), 0.2);
    assert!(search.is_holding());
    let omegas = run(&mut search, 100, |_, _| [1_000_000, 1_000_000]);
    assert!(omegas.iter().all(|omega| (omega - 0.2).abs() < 1e-12) && (search.omega() - 0.2).abs() < 1e-12);
}

#[test]
fn a_weight_is_corrected_by_what_it_gives() {
    // 2 Mbit/s on the cheap path, and up to 10 in proportion to the weight on the other: 6 at 0.4. The curve finds 0.12.
    let dear = |omega: f64| Rate::from_mbps(10.0 * omega.min(1.0));
    let path = |_: u64, omega: f64| [2_000_000, (dear(omega) * Duration::from_secs(8)).get()];
    let config = Config { correct: true, ..Config::default() };
    let mut search = OmegaSearch::new(Time::ZERO, config, Rate::from_mbps(6.0));
    let omegas = run(&mut search, 200, path);
    assert!(omegas[65] < 0.2, "{}", omegas[65]);
    let share = (2e6 + dear(omegas[199]).as_bps()) / 6e6;
    assert!((share - 1.0).abs() < ON_TARGET, "{share} of the target");
    // An epoch for each correction, half of it for the weight to act.
    let changes: Vec<usize> = (61..200).filter(|&at| omegas[at].total_cmp(&omegas[at - 1]).is_ne()).collect();
    assert!(changes.windows(2).all(|pair| pair[1] - pair[0] >= 20), "{changes:?}");
    // Near the target it stays as it is.
    assert!(omegas[160..].windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq()));
}

#[test]
fn a_weight_that_gives_nothing_is_not_corrected() {
    let config = Config { correct: true, ..Config::default() };
    let mut search = OmegaSearch::found(Time::ZERO, config, Rate::from_mbps(3.0), 0.2);
    let omegas = run(&mut search, 100, |_, _| [0, 0]);
    assert!(omegas.iter().all(|omega| (omega - 0.2).abs() < 1e-12));
    // It ends at one, and goes no further than twice at once.
    let mut search = OmegaSearch::found(Time::ZERO, config, Rate::from_mbps(3.0), 0.2);
    let omegas = run(&mut search, 200, |_, _| [100_000, 0]);
    assert!((omegas[25] - 0.4).abs() < 1e-12 && (omegas[199] - 1.0).abs() < 1e-12, "{} {}", omegas[25], omegas[199]);
}

#[test]
fn a_period_searches_again_in_place_of_correcting() {
    let config = Config { period: Some(Duration::from_secs(300)), correct: true, ..Config::default() };
    let mut search = OmegaSearch::new(Time::ZERO, config, Rate::from_mbps(3.0));
    run(&mut search, 330, |_, _| [1_000_000, 1_000_000]);
    assert!(!search.is_holding());
}
