//! TCCC algorithm 1 in the kernel: what ends slow start on one subflow ends it on all.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was found")]

mod lab;

use lab::{Loaded, Pair, is_hindered, shallow_and_deep_link, wait_until};
use manypath_kernel::status::SubflowStatus;

/// The kernel's threshold of a socket whose slow start has not ended (`TCP_INFINITE_SSTHRESH`).
const NONE: u32 = 0x7fff_ffff;

/// The subflows over a shallow and a deep queue when both have left slow start.
fn after_slow_start() -> [SubflowStatus; 2] {
    let links = shallow_and_deep_link();
    let loaded = Loaded::new("tccc");
    let pair = Pair::connect(&links, &loaded.name);
    pair.transfer(4 << 20, false);
    let deep = links.paths()[1].client;
    let found: [SubflowStatus; 2] = wait_until("both subflows are in congestion avoidance", || {
        let mut subflows = loaded.connection_at(pair.ends()[0])?.subflows;
        subflows.sort_by_key(|subflow| subflow.local.ip() == std::net::IpAddr::from(deep));
        subflows.try_into().ok()
    });
    let [shallow, deep] = &found;
    println!("windows and thresholds: {}, {}; {}, {}", shallow.cwnd, shallow.ssthresh, deep.cwnd, deep.ssthresh);
    found
}

#[test]
fn the_loss_of_one_subflow_ends_slow_start_on_both() {
    if is_hindered() {
        return;
    }
    // Where the machine was away for a moment other queues overflow: then it shows nothing, and another time does.
    let only_shallow_lost = |[shallow, deep]: &[SubflowStatus; 2]| shallow.lost > 0 && deep.lost == 0;
    let found = (0..3).map(|_| after_slow_start()).find(only_shallow_lost);
    let [shallow, deep] = found.expect("three times not only the subflow over the shallow queue lost");
    assert!(shallow.ssthresh < NONE, "{shallow:?}");
    assert!(deep.ssthresh < NONE && deep.ssthresh <= deep.cwnd, "{deep:?}");
}
