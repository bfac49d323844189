//! TCCC algorithm 1 in the kernel: what ends slow start on one subflow ends it on all.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was found")]

mod lab;

use lab::{Loaded, Pair, is_hindered, shallow_and_deep_link, wait_until};

/// The kernel's threshold of a socket whose slow start has not ended (`TCP_INFINITE_SSTHRESH`).
const NONE: u32 = 0x7fff_ffff;

#[test]
fn the_loss_of_one_subflow_ends_slow_start_on_both() {
    if is_hindered() {
        return;
    }
    let links = shallow_and_deep_link();
    // Not paced, four packets leave for two that are acknowledged, so that the shallow queue overflows early. Paced, it sometimes does
    // not before the windows together reach the threshold that TCCC estimates, which ends slow start on both without a loss.
    let loaded = Loaded::new("tccc:pacing=off");
    let pair = Pair::connect(&links, &loaded.name);
    pair.transfer(2 << 20, false);
    let deep = links.paths()[1].client;
    let [shallow, deep] = wait_until("both subflows are in congestion avoidance", || {
        let mut subflows = loaded.connection_at(pair.ends()[0])?.subflows;
        subflows.sort_by_key(|subflow| subflow.local.ip() == std::net::IpAddr::from(deep));
        subflows.try_into().ok()
    });
    println!("windows and thresholds: {}, {}; {}, {}", shallow.cwnd, shallow.ssthresh, deep.cwnd, deep.ssthresh);
    assert!(shallow.lost > 0 && shallow.ssthresh < NONE, "{shallow:?}");
    assert!(deep.lost == 0 && deep.ssthresh < NONE && deep.ssthresh <= deep.cwnd, "{deep:?}");
}
