//! Nine subflows of one connection: eight are coupled, which is all that a connection's state has room for; the ninth goes its own
//! way in one-path form.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was done")]

mod lab;

use std::fmt::Write as _;
use std::path::Path;

use lab::{Loaded, Pair, is_hindered, wait_until};
use manypath_emu::tun::{TunConfig, TunLinks};
use manypath_kernel::MAX_SUBFLOWS;

/// Subflows that Linux gives a connection at most: one, and eight more.
const SUBFLOWS: usize = 9;
const BYTES: usize = 8 << 20;

/// So many links of 10 Mbit/s.
fn links(number: usize) -> TunLinks {
    let mut text = "duration = \"10s\"\n".to_owned();
    for link in 1..=number {
        writeln!(text, "[[link]]\nname = \"link{link}\"\nrate = \"10Mbit\"\ndelay = \"5ms\"\nqueue = \"40KB\"")
            .unwrap();
    }
    text += "[[connection]]\nname = \"c\"\ncc = \"reno\"\n";
    for link in 1..=number {
        writeln!(text, "[[connection.path]]\nroute = [\"link{link}\"]").unwrap();
    }
    let scenario = manypath_scenario::parse(&text, "test.toml", Path::new(".")).unwrap();
    TunLinks::start(&TunConfig::from_scenario(&scenario, 7).unwrap()).unwrap()
}

fn check(name: &str, links: &TunLinks) {
    let loaded = Loaded::new(name);
    let pair = Pair::connect(links, &loaded.name);
    pair.transfer(BYTES, false);
    let [client, _] = pair.ends();
    let crowded = |loaded: &Loaded| loaded.status().unwrap().counters.get("crowded").copied().unwrap_or(0);
    let subflows = wait_until("all subflows are there", || {
        let subflows = loaded.connection_at(client)?.subflows;
        // At both ends.
        (subflows.len() == MAX_SUBFLOWS && crowded(&loaded) >= 2).then_some(subflows)
    });
    let mut places: Vec<usize> = subflows.iter().map(|subflow| subflow.place).collect();
    places.sort_unstable();
    assert_eq!(places, (0..MAX_SUBFLOWS).collect::<Vec<_>>(), "each has a place of its own");
    pair.transfer(BYTES, true);
    let delivering = subflows.iter().filter(|subflow| subflow.delivered > 10).count();
    assert!(delivering >= MAX_SUBFLOWS - 1, "only {delivering} of them carry data");
    println!("{name}: {} subflows coupled, {} ends in one-path form", subflows.len(), crowded(&loaded));
}

#[test]
fn eight_subflows_are_coupled_and_a_ninth_is_not() {
    if is_hindered() {
        return;
    }
    let links = links(SUBFLOWS);
    for name in ["lia", "tccc", "mpcc-latency"] {
        check(name, &links);
    }
}
