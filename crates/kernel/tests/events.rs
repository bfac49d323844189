//! What the kernel tells a controller, and what it does not: timeouts in a recovery, connections that are plain TCP after all, and
//! sockets that have no memory for a controller's state.

#![cfg(feature = "kernel")]

mod lab;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Loaded, Pair, is_hindered, one_link, two_links, wait_until};
use manypath_emu::tun::TunLinks;
use socket2::Protocol;

/// A recovery lasts a fifth of a second at least, and slow start ends with many losses.
const LONG: &str = "rate = \"20Mbit\"\ndelay = \"100ms\"\nqueue = \"30KB\"";

/// Waits for a loss, and cuts the link while its recovery lasts; a timeout is counted, once.
fn time_out_in_a_recovery(loaded: &Loaded, links: &TunLinks) {
    let pair = Pair::connect(links, &loaded.name);
    // Whatever happens here, both threads end.
    pair.client.set_write_timeout(Some(Duration::from_secs(6))).unwrap();
    pair.server.set_read_timeout(Some(Duration::from_secs(6))).unwrap();
    let counted = thread::scope(|scope| {
        scope.spawn(|| while { &pair.client }.write_all(&[0; 4096]).is_ok() {});
        scope.spawn(|| while { &pair.server }.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {});
        wait_until("a loss", || (loaded.counter("losses") > 0).then_some(()));
        links.set_down(0, true);
        thread::sleep(Duration::from_secs(4));
        loaded.counter("timeouts")
    });
    assert_eq!(counted, 1, "{}: timeouts while the link was down", loaded.status().unwrap().name);
}

#[test]
fn a_timeout_in_a_recovery_is_heard_once() {
    if is_hindered() {
        return;
    }
    for name in ["lia", "mpcc-loss", "mp-ol"] {
        time_out_in_a_recovery(&Loaded::new(name), &one_link(LONG));
    }
}

#[test]
fn a_timeout_without_a_recovery_is_heard_once() {
    if is_hindered() {
        return;
    }
    for name in ["lia", "mpcc-loss"] {
        let (loaded, links) = (Loaded::new(name), one_link(LONG));
        let pair = Pair::connect(&links, &loaded.name);
        pair.transfer(10_000, false);
        thread::sleep(Duration::from_secs(1));
        links.set_down(0, true);
        { &pair.client }.write_all(&[0; 100]).unwrap();
        thread::sleep(Duration::from_secs(3));
        assert_eq!((loaded.counter("timeouts"), loaded.counter("losses")), (1, 1), "{name}");
    }
}

#[test]
fn a_connection_whose_other_end_knows_tcp_only_is_none() {
    if is_hindered() {
        return;
    }
    let (loaded, links) = (Loaded::new("lia"), two_links());
    for (protocols, plain) in [([Protocol::MPTCP, Protocol::TCP], 2), ([Protocol::TCP, Protocol::MPTCP], 4)] {
        let pair = Pair::of(&links, &loaded.name, protocols);
        pair.transfer(100_000, false);
        let status = loaded.status().unwrap();
        assert_eq!(status.connections, [], "{protocols:?}");
        assert_eq!((status.counters["plain"], status.counters["subflows"]), (plain, 0), "{protocols:?}");
    }
}

#[test]
fn monitor_intervals_are_counted() {
    if is_hindered() {
        return;
    }
    for name in ["mpcc-latency", "mp-ol"] {
        let (loaded, links) = (Loaded::new(name), two_links());
        let pair = Pair::connect(&links, &loaded.name);
        thread::scope(|scope| {
            let transfer = scope.spawn(|| pair.transfer(5 << 20, false));
            while !transfer.is_finished() {
                assert_counted(&loaded);
            }
        });
        let (shown, counters) = assert_counted(&loaded);
        assert!(
            shown > 10 && counters["intervals"] > counters["unfair_intervals"],
            "{name}: {counters:?}, shown {shown}"
        );
    }
}

/// Every interval that is shown of a subflow has been counted, also while they go on; returns how many are shown, and the counters.
fn assert_counted(loaded: &Loaded) -> (u32, BTreeMap<&'static str, u64>) {
    let status = loaded.status().unwrap();
    let shown: u32 = status.connections.iter().flat_map(|one| &one.subflows).map(|subflow| subflow.intervals).sum();
    assert!(status.counters["intervals"] >= u64::from(shown), "{}: {shown} of {:?}", status.name, status.counters);
    (shown, status.counters)
}

#[test]
fn sockets_without_memory_for_their_state_do_as_reno() {
    if is_hindered() {
        return;
    }
    let links = one_link("rate = \"50Mbit\"\ndelay = \"10ms\"\nqueue = \"120KB\"");
    let limit = |bytes: &'static str| std::fs::write("/proc/sys/net/core/optmem_max", bytes);
    // Before Linux 6.8 the setting is the whole machine's.
    if links.server().run(move || limit("512")).is_err() {
        return;
    }
    for name in ["mpcc-loss", "mp-ol", "lia"] {
        let loaded = Loaded::new(name);
        let pair = Pair::of(&links, &loaded.name, [Protocol::TCP; 2]);
        let began = Instant::now();
        pair.transfer(12 << 20, true);
        // Ten packets a round trip would take 17 s.
        assert!(began.elapsed() < Duration::from_secs(8), "{name}: {:?}", began.elapsed());
        assert_eq!(loaded.counter("no_memory"), 1, "{name}: the server's end");
    }
}
