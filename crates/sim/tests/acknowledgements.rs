//! Acknowledgements cost bandwidth too.

use std::path::Path;

use manypath_sim::{Report, run};

fn report(links: &str, connection: &str) -> Report {
    let text = format!("duration = \"20s\"\n{links}\n[[connection]]\nname = \"c\"\n{connection}\n");
    let scenario =
        manypath_scenario::parse(&text, "acknowledgements.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap()
}

/// Two fat paths deliver what a thin one, whose round trip is between theirs, tells too: at most once in each of its round trips.
#[test]
fn data_of_fat_paths_leaves_a_thin_way_back_free() {
    let link = |name: &str, rate: &str, delay: &str, queue: &str| {
        format!("[[link]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n")
    };
    let links = link("fast", "20Mbit", "5ms", "50packets")
        + &link("thin", "1Mbit", "10ms", "10packets")
        + &link("long", "10Mbit", "100ms", "100packets");
    let paths = "path = [{ route = [\"fast\"] }, { route = [\"thin\"] }, { route = [\"long\"] }]";
    let report = report(&links, &format!("cc = \"lia\"\n{paths}"));
    let back = report.links.iter().find(|link| link.name == "thin/back").unwrap();
    assert!(back.utilisation < 0.4, "{}", back.utilisation);
}

/// DSL of 16 and 1 Mbit/s beside LTE of 20 and 5: without losses an acknowledgement of what came out of order is small.
#[test]
fn a_narrow_way_back_does_not_choke_its_path() {
    let links = "[[link]]\nname = \"dsl\"\nrate = \"16Mbit\"\ndelay = \"15ms\"\nqueue = \"100kB\"\nback = { rate = \"1Mbit\" }\n\
                 [[link]]\nname = \"lte\"\nrate = \"20Mbit\"\ndelay = \"35ms\"\nqueue = \"200kB\"\nback = { rate = \"5Mbit\" }";
    let report = report(links, "cc = \"lia\"\npath = [{ route = [\"dsl\"] }, { route = [\"lte\"] }]");
    assert!(report.goodput_bps > 0.85 * 36e6 * 0.94, "{}", report.goodput_bps);
}
