//! The subflows of a connection share one state: what one of them does next depends on what the entry in the map says of the
//! other, and changes with it. The other is a backup, which is idle, so that it does not write over what the test writes.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was found")]
#![allow(clippy::cast_precision_loss, reason = "counts of packets")]

mod lab;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab::{Loaded, Pair, is_hindered, link_and_backup, wait_until};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use manypath_emu::tun::TunLinks;
use manypath_kernel::status::SubflowStatus;
use manypath_kernel::{Connection, MAX_SUBFLOWS, objects};

/// Places of `struct mp_connection` in bytes: `group.member[i]`, of eight words each, of which the first four are used here.
const WORD: usize = 8;
const MEMBERS: usize = 8 * WORD;
const MEMBER: usize = 8 * WORD;

/// The words of a member that the other subflow reads: round-trip time, window, when it is idle, and the rate that paced
/// controllers publish.
#[derive(Clone, Copy)]
enum Field {
    Rtt,
    Window,
    Idle,
    Rate,
}

/// The connection's entry, as the test changes it.
struct Entry {
    map: MapHandle,
    token: u32,
    /// Places of the subflow that sends and of the idle one.
    sender: usize,
    idle: usize,
}

impl Entry {
    fn get(bytes: &[u8], place: usize, field: Field) -> u64 {
        let at = MEMBERS + place * MEMBER + field as usize * WORD;
        u64::from_ne_bytes(bytes[at..at + WORD].try_into().unwrap())
    }

    /// Makes the idle subflow look like the sender, but `2^doublings` times as fast.
    fn pretend(&self, doublings: i64) {
        let key = self.token.to_ne_bytes();
        let mut bytes = self.map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        assert_eq!(bytes.len(), size_of::<Connection>());
        for field in [Field::Rtt, Field::Window, Field::Idle, Field::Rate] {
            let word = Self::get(&bytes, self.sender, field);
            // The upper half of a `real` is its exponent (bpf/real.h).
            let scaled = if word == 0 { 0 } else { word.wrapping_add_signed(doublings << 32) };
            let word = match field {
                Field::Rtt => word,
                // Never: it counts.
                Field::Idle => i64::MAX.cast_unsigned(),
                Field::Window | Field::Rate => scaled,
            };
            let at = MEMBERS + self.idle * MEMBER + field as usize * WORD;
            bytes[at..at + WORD].copy_from_slice(&word.to_ne_bytes());
        }
        self.map.update(&key, &bytes, MapFlags::ANY).unwrap();
    }
}

/// Both subflows of the client, the sender's first.
fn subflows(loaded: &Loaded, pair: &Pair) -> Option<[SubflowStatus; 2]> {
    let mut subflows = loaded.connection_at(pair.ends()[0])?.subflows;
    subflows.sort_by_key(|subflow| subflow.local.ip());
    subflows.try_into().ok()
}

/// What the sender did meanwhile.
struct Steps {
    /// Packets that its window gained in a round trip.
    growth: f64,
    /// Its mean window in the second half.
    window: f64,
    /// Mean size of its intervals' utility.
    utility: f64,
}

/// Looks until the sender has delivered enough in congestion avoidance, without losses in between, while the other seems
/// `2^doublings` times as fast.
fn watch(name: &str, loaded: &Loaded, pair: &Pair, entry: &Entry, doublings: i64) -> Steps {
    // wVegas' window moves by a packet a round.
    let enough = if name == "wvegas" { 60.0 } else { 25.0 };
    let (mut gained, mut rounds, mut utility) = (0.0, 0.0, 0.0);
    let (mut windows, mut counted) = (0.0, 0.0);
    let mut before: Option<SubflowStatus> = None;
    let mut looks: u32 = 0;
    wait_until("the sender takes steps", || {
        // Window updates of the connection go on all subflows: a paced controller then publishes its own rate again.
        entry.pretend(doublings);
        let [sender, _] = subflows(loaded, pair)?;
        looks += 1;
        if let Some(before) = &before
            && before.phase == "avoidance"
            && sender.phase == "avoidance"
            && before.lost == sender.lost
            && before.delivered <= sender.delivered
        {
            gained += f64::from(sender.cwnd) - f64::from(before.cwnd);
            rounds += f64::from(sender.delivered - before.delivered) / f64::from(before.cwnd);
        }
        // Other rates are frozen while a gradient is estimated: not every interval sees the rate that the test writes.
        utility += sender.utility.abs();
        if rounds > enough / 2.0 {
            windows += f64::from(sender.cwnd);
            counted += 1.0;
        }
        before = Some(sender);
        if is_mpcc(name) { looks > 100 } else { rounds > enough }.then_some(())
    });
    let growth = if rounds > 0.0 { gained / rounds } else { 0.0 };
    Steps { growth, window: windows / f64::max(counted, 1.0), utility: utility / f64::from(looks) }
}

/// Whether a controller takes no steps in congestion avoidance, but climbs a utility of all subflows' rates.
fn is_mpcc(name: &str) -> bool {
    name.starts_with("mpcc")
}

/// Sends all the time from the client to the server. Ends with its guard, so that a test that fails ends as well.
struct Stream<'a> {
    pair: &'a Pair,
    threads: Vec<JoinHandle<()>>,
}

impl<'a> Stream<'a> {
    fn start(pair: &'a Pair) -> Self {
        let [mut from, mut to] = [&pair.client, &pair.server].map(|socket| socket.try_clone().unwrap());
        let threads = vec![
            thread::spawn(move || {
                let chunk = vec![7; 1 << 16];
                while from.write_all(&chunk).is_ok() {}
            }),
            thread::spawn(move || {
                let mut chunk = vec![0; 1 << 16];
                while to.read(&mut chunk).is_ok_and(|read| read > 0) {}
            }),
        ];
        Self { pair, threads }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        for socket in [&self.pair.client, &self.pair.server] {
            // It may have been reset.
            let _ = socket.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // A panic in it has been printed.
            let _ = thread.join();
        }
    }
}

/// The links that a controller is watched on. wVegas shares a queue, and left to itself backs off long before there is one: the
/// first link's delay grows, which it takes for a queue that stands.
fn links(name: &str) -> TunLinks {
    link_and_backup(if name == "wvegas" { "schedule = [{ at = \"2s\", delay = \"30ms\" }]" } else { "" })
}

fn check(name: &str) {
    // Loading takes a while, and the links' schedule runs from their start.
    let loaded = Loaded::new(name);
    let links = links(name);
    let pair = Pair::connect(&links, &loaded.name);
    let stream = Stream::start(&pair);
    let connection = wait_until("both subflows are there", || {
        let connection = loaded.connection_at(pair.ends()[0])?;
        let sender = connection.subflows.iter().find(|subflow| subflow.local == pair.ends()[0])?;
        // Not both as fast as they can.
        let slow_enough = name != "wvegas" || sender.srtt_us > 35_000;
        (connection.subflows.len() == 2 && sender.phase != "slow start" && slow_enough).then_some(connection)
    });
    let place = |is_sender: bool| {
        let found = connection.subflows.iter().find(|subflow| (subflow.local == pair.ends()[0]) == is_sender);
        found.unwrap().place
    };
    let map = MapHandle::from_pinned_path(loaded.pin("connections")).unwrap();
    let entry = Entry { map, token: connection.token, sender: place(true), idle: place(false) };
    assert!(entry.sender < MAX_SUBFLOWS && entry.sender != entry.idle);
    thread::sleep(Duration::from_millis(500));

    let slow = watch(name, &loaded, &pair, &entry, -10);
    let fast = watch(name, &loaded, &pair, &entry, 10);
    drop(stream);
    println!(
        "{name}: beside a slow subflow {:.2} packets a round trip, window {:.0}, utility {:.1}; beside a fast one {:.2}, {:.0}, {:.1}",
        slow.growth, slow.window, slow.utility, fast.growth, fast.window, fast.utility
    );
    match name {
        "reno" => assert!((slow.growth - fast.growth).abs() < 0.15, "reno is coupled to nothing"),
        // Reward and penalties are of the total rate (MPCC eq. 2).
        name if is_mpcc(name) => {
            assert!(fast.utility > 3.0 * slow.utility, "utility does not depend on the other's rate");
        }
        // Of ten packets in a queue that is half of the window, its share by rate: nearly all, or the least, two.
        "wvegas" => assert!(slow.window > 2.0 * fast.window, "the window does not depend on the other's rate"),
        _ => assert!((slow.growth - fast.growth).abs() > 0.25, "the step does not depend on the other's window"),
    }
}

#[test]
fn a_subflow_steps_by_what_the_other_does() {
    if is_hindered() {
        return;
    }
    for object in objects() {
        check(object.name);
    }
}
