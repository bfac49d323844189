//! A target rate at least cost (Uni-MPTCP): a cheap path with four TCP flows beside a dear one with one.

use std::path::Path;

use manypath_sim::run;

/// Goodput from 120 s on, and what of it the dear path delivered, in Mbit/s.
fn rates(cc: &str, seed: u64) -> (f64, f64) {
    let tcp = |name, count, link| {
        format!(
            "[[connection]]\nname = \"{name}\"\ncount = {count}\ncc = \"reno\"\ntransport = \"tcp\"\nstart-spread = \"1s\"\n\
             path = [{{ route = [\"{link}\"] }}]\n"
        )
    };
    let link = |name| format!("[[link]]\nname = \"{name}\"\nrate = \"6Mbit\"\ndelay = \"15ms\"\nqueue = \"22500B\"\n");
    let text = format!(
        "duration = \"400s\"\nwarmup = \"120s\"\n{}{}[[connection]]\nname = \"mp\"\ncc = \"{cc}\"\ntransport = \"tcp\"\n\
         start-spread = \"1s\"\n\
         path = [{{ route = [\"cheap\"], cost = 0.1 }}, {{ route = [\"dear\"], cost = 10.0 }}]\n{}{}",
        link("cheap"),
        link("dear"),
        tcp("cheap-tcp", 4, "cheap"),
        tcp("dear-tcp", 1, "dear"),
    );
    let scenario =
        manypath_scenario::parse(&text, "target-rate.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    let report = run(&scenario, seed).unwrap();
    let connection = &report.connections[0];
    (connection.goodput_bps / 1e6, connection.subflows[1].delivered_bps / 1e6)
}

#[test]
fn a_corrected_weight_keeps_the_target_with_half_of_what_lia_has_on_the_dear_path() {
    let (mut on_dear, mut of_lia) = (0.0, 0.0);
    for seed in 1..=10 {
        let (goodput, dear) = rates("uni-mptcp:target=2Mbit,correct=on", seed);
        assert!((goodput / 2.0 - 1.0).abs() < 0.15, "seed {seed}: {goodput:.2} Mbit/s");
        on_dear += dear;
        of_lia += rates("lia", seed).1;
    }
    // Single runs have 0.34 to 0.51 of it, 0.43 in the mean: few flows decide what a weight gives.
    assert!(on_dear < 0.45 * of_lia, "{:.2} of LIA's share of the dear path", on_dear / of_lia);
}
