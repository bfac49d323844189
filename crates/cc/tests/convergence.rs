//! Controllers fill the links they are given.

mod testbed;

use manypath_cc::create;
use manypath_core::Time;
use testbed::{Link, Testbed, link};

/// Share of the links' capacity that a connection with one subflow a link delivers, second by second.
fn shares(algorithm: &str, links: &[Link], seed: u64, seconds: u64) -> Vec<f64> {
    let capacity: f64 = links.iter().map(|link| link.mbps).sum();
    let mut bed = Testbed::new(links.to_vec(), seed);
    let paths: Vec<_> = (0..links.len()).map(|index| (index, Time::ZERO)).collect();
    bed.connect(create(&algorithm.parse().unwrap(), seed).unwrap(), &paths);
    (1..=seconds)
        .map(|second| {
            let rates = bed.measure(Time::from_millis(second * 1000));
            rates[0].iter().sum::<f64>() / capacity
        })
        .collect()
}

/// Mean share of the capacity from the third second to the tenth, over three seeds.
fn steady_share(algorithm: &str, links: &[Link]) -> f64 {
    let share = |seed| shares(algorithm, links, seed, 10)[2..].iter().sum::<f64>() / 8.0;
    (1..=3).map(share).sum::<f64>() / 3.0
}

#[test]
fn mpcc_fills_wifi_and_lte() {
    let links = [link(50.0, 20, 64_000, 0.001), link(30.0, 80, 400_000, 0.0)];
    for algorithm in ["mpcc-loss", "mpcc-latency"] {
        let share = steady_share(algorithm, &links);
        assert!(share > 0.92, "{algorithm}: {share}");
    }
}

#[test]
fn mpcc_fills_links_with_deep_and_shallow_buffers() {
    for (algorithm, buffer, least) in
        [("mpcc-loss", 375_000, 0.93), ("mpcc-latency", 375_000, 0.92), ("mpcc-loss", 9_000, 0.90)]
    {
        let share = steady_share(algorithm, &[link(100.0, 30, buffer, 0.0), link(100.0, 30, buffer, 0.0)]);
        assert!(share > least, "{algorithm} with {buffer} bytes: {share}");
    }
}

#[test]
fn mpcc_bears_random_loss_that_window_based_controllers_do_not() {
    let links = [link(100.0, 30, 375_000, 0.01), link(100.0, 30, 375_000, 0.01)];
    let (mpcc, cubic) = (steady_share("mpcc-loss", &links), steady_share("cubic", &links));
    assert!(mpcc > 5.0 * cubic, "mpcc-loss {mpcc}, cubic {cubic}");
}

#[test]
fn window_based_controllers_fill_a_deep_buffer() {
    let links = [link(100.0, 30, 375_000, 0.0), link(100.0, 30, 375_000, 0.0)];
    for algorithm in ["reno", "cubic", "lia"] {
        let share = steady_share(algorithm, &links);
        assert!(share > 0.98, "{algorithm}: {share}");
    }
}

#[test]
fn every_controller_fills_a_single_link() {
    for algorithm in manypath_cc::algorithms() {
        let share = steady_share(algorithm.name, &[link(20.0, 30, 75_000, 0.0)]);
        // See the documentation of `wvegas` for why it does not.
        let least = if algorithm.name == "wvegas" { 0.15 } else { 0.9 };
        assert!(share > least, "{}: {share}", algorithm.name);
    }
}
