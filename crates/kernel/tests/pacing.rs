//! Subflows of window-based controllers are paced, unless `pacing=off`: what the window lets leave does not leave at once.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was found")]

mod lab;

use lab::{Loaded, Pair, is_hindered, shallow_and_deep_link, wait_until};

/// The slow start threshold that a subflow finds over a shallow queue, in packets.
fn threshold(controller: &str) -> u32 {
    let links = shallow_and_deep_link();
    let loaded = Loaded::new(controller);
    let pair = Pair::connect(&links, &loaded.name);
    pair.transfer(2 << 20, false);
    let shallow = links.paths()[0].client;
    let subflow = wait_until("the subflow over the shallow queue", || {
        let subflows = loaded.connection_at(pair.ends()[0])?.subflows;
        subflows.into_iter().find(|subflow| subflow.local.ip() == std::net::IpAddr::from(shallow))
    });
    println!("threshold of {controller}: {}", subflow.ssthresh);
    assert!(subflow.lost > 0, "{subflow:?}");
    subflow.ssthresh
}

#[test]
fn slow_start_outgrows_a_shallow_queue() {
    if is_hindered() {
        return;
    }
    // In slow start two packets acknowledged let four leave at once, half of which must wait: ten packets of queue are full when the
    // window has some forty. Spread over half a round trip, in which the link carries 42 packets, none wait until the window has
    // those. Thresholds found, half of the window at the first loss: 19 packets without pacing, 32 with it.
    let paced = threshold("lia");
    assert!(paced > 24, "{paced}");
    let at_once = threshold("lia:pacing=off");
    assert!(at_once < 24, "{at_once}");
}
