//! What the kernel's scheduler hands to a slow subflow beside a fast one (`bpf/holding.h`).

#![cfg(feature = "kernel")]

mod lab;

use std::net::Ipv4Addr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lab::{Loaded, Pair, fast_link_and, is_hindered, lacks};
use manypath_emu::tun::TunLinks;

/// The rest of a piece that the scheduler may hand over beyond the bound, bytes.
const PIECE: u64 = 32_768;

/// Bytes that wait unsent in the subflow from this address.
fn unsent(links: &TunLinks, from: Ipv4Addr) -> u64 {
    let ss = move || Command::new("ss").args(["-tinHO", "src", &from.to_string()]).output().unwrap().stdout;
    let said = String::from_utf8(links.client().run(ss)).unwrap();
    let found = said.split_whitespace().find_map(|word| word.strip_prefix("notsent:"));
    found.map_or(0, |bytes| bytes.parse().unwrap())
}

/// What waits in the slow subflow in the second half of a transfer of so many bytes, when it has found its rate; in ascending order.
fn waiting(controller: &str, slow_link: &str, bytes: usize) -> Vec<u64> {
    let links = fast_link_and(slow_link);
    let loaded = Loaded::new(controller);
    let pair = Pair::connect(&links, &loaded.name);
    let slow = links.paths()[1].client;
    let mut waiting = Vec::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| pair.transfer(bytes, false));
        while !sending.is_finished() {
            waiting.push(unsent(&links, slow));
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut late = waiting.split_off(waiting.len() / 2);
    late.sort_unstable();
    late
}

/// Without a bound half of the time more than 140,000 bytes wait.
#[test]
fn a_slow_subflow_with_a_rate_is_handed_little() {
    if is_hindered() || lacks("ss") {
        return;
    }
    let waiting = waiting("mpcc-latency", "rate = \"3Mbit\"\ndelay = \"40ms\"\nqueue = \"30KB\"", 25_000_000);
    // What 3.75 Mbit/s, a quarter above the link's rate, send in the tenth of a second for which it may wait.
    let most = 46_875 + PIECE;
    let median = waiting[waiting.len() / 2];
    assert!(median > 0 && median <= most, "{waiting:?}");
}

/// Without a bound at times more than 75,000 bytes wait, which is a window that fills path and queue.
#[test]
fn a_slow_subflow_with_a_window_is_handed_less_than_a_window() {
    if is_hindered() || lacks("ss") {
        return;
    }
    let waiting = waiting("lia", "rate = \"1Mbit\"\ndelay = \"150ms\"\nqueue = \"37500B\"", 50_000_000);
    // What such a window, over a path whose queue is empty, sends in a tenth of a second, a third of the round trip.
    let most = 75_000 / 3 + PIECE;
    assert!(waiting.last().is_some_and(|waiting| *waiting > 0 && *waiting <= most), "{waiting:?}");
}
