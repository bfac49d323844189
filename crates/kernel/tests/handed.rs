//! What the kernel's scheduler hands to a slow subflow of MPCC beside a fast one.

#![cfg(feature = "kernel")]

mod lab;

use std::net::Ipv4Addr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lab::{Loaded, Pair, fast_and_slow_link, is_hindered, lacks};
use manypath_emu::tun::TunLinks;

/// 4 s at 50 Mbit/s.
const BYTES: usize = 25_000_000;
/// What 3.75 Mbit/s, a quarter above the slow link's rate, send in the tenth of a second for which it may wait (`bpf/holding.h`), and the rest of a
/// piece that the scheduler may hand over beyond it, bytes. Without a bound half of the time more than 140,000 wait.
const MOST: u64 = 46_875 + 32_768;

/// Bytes that wait unsent in the subflow from this address.
fn unsent(links: &TunLinks, from: Ipv4Addr) -> u64 {
    let ss = move || Command::new("ss").args(["-tinHO", "src", &from.to_string()]).output().unwrap().stdout;
    let said = String::from_utf8(links.client().run(ss)).unwrap();
    let found = said.split_whitespace().find_map(|word| word.strip_prefix("notsent:"));
    found.map_or(0, |bytes| bytes.parse().unwrap())
}

#[test]
fn a_slow_subflow_is_handed_little() {
    if is_hindered() || lacks("ss") {
        return;
    }
    let links = fast_and_slow_link();
    let loaded = Loaded::new("mpcc-latency");
    let pair = Pair::connect(&links, &loaded.name);
    let slow = links.paths()[1].client;
    let mut waiting = Vec::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| pair.transfer(BYTES, false));
        while !sending.is_finished() {
            waiting.push(unsent(&links, slow));
            thread::sleep(Duration::from_millis(20));
        }
    });
    // In the first half the slow subflow may still look for its rate.
    let mut late = waiting.split_off(waiting.len() / 2);
    late.sort_unstable();
    let median = late[late.len() / 2];
    assert!(median > 0 && median <= MOST, "{late:?}");
}
