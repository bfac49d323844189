//! The subflows of a connection share one state: what one of them does next depends on what the entry in the map says of the
//! other, and changes with it. The other is a backup, which is idle, so that it does not write over what the test writes.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was skipped and what was found")]
#![allow(clippy::cast_precision_loss, reason = "counts of packets")]

mod lab;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use lab::{Loaded, Pair, obstacle, two_links, wait_until};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use manypath_kernel::status::SubflowStatus;
use manypath_kernel::{Connection, MAX_SUBFLOWS, objects};

/// Places of `struct mp_connection` in bytes: `group.member[i]`, of eight words each, of which the first three are used here.
const WORD: usize = 8;
const MEMBERS: usize = 8 * WORD;
const MEMBER: usize = 8 * WORD;

/// The words of a member that the other subflow reads: round-trip time, window, and the rate that paced controllers publish.
#[derive(Clone, Copy)]
enum Field {
    Rtt,
    Window,
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
        for field in [Field::Rtt, Field::Window, Field::Rate] {
            let word = Self::get(&bytes, self.sender, field);
            // The upper half of a `real` is its exponent (bpf/real.h).
            let scaled = if word == 0 { 0 } else { word.wrapping_add_signed(doublings << 32) };
            let word = if matches!(field, Field::Rtt) { word } else { scaled };
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

/// What the sender did meanwhile: packets that a window gains in a round trip, and the mean size of its intervals' utility.
struct Steps {
    growth: f64,
    utility: f64,
}

/// Looks until the sender has delivered enough in congestion avoidance, without losses in between, while the other seems
/// `2^doublings` times as fast.
fn watch(loaded: &Loaded, pair: &Pair, entry: &Entry, doublings: i64) -> Steps {
    let (mut gained, mut rounds, mut utility) = (0.0, 0.0, 0.0);
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
            && before.cwnd <= sender.cwnd
            && before.delivered <= sender.delivered
        {
            gained += f64::from(sender.cwnd) - f64::from(before.cwnd);
            rounds += f64::from(sender.delivered - before.delivered) / f64::from(before.cwnd);
        }
        // Other rates are frozen while a gradient is estimated: not every interval sees the rate that the test writes.
        utility += sender.utility.abs();
        before = Some(sender);
        // Paced controllers are in other phases.
        (rounds > 25.0 || (rounds == 0.0 && looks > 100)).then_some(())
    });
    Steps { growth: if rounds > 0.0 { gained / rounds } else { 0.0 }, utility: utility / f64::from(looks) }
}

fn check(name: &str) {
    let links = two_links(true);
    let loaded = Loaded::new(name);
    let pair = Pair::connect(&links, &loaded.name);
    thread::scope(|scope| {
        let (mut from, mut to) = (&pair.client, &pair.server);
        scope.spawn(move || {
            let chunk = vec![7; 1 << 16];
            // Until the test has seen enough.
            while from.write_all(&chunk).is_ok() {}
        });
        scope.spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while to.read(&mut chunk).is_ok_and(|read| read > 0) {}
        });
        let connection = wait_until("both subflows are there", || {
            let connection = loaded.connection_at(pair.ends()[0])?;
            let sender = connection.subflows.iter().find(|subflow| subflow.local == pair.ends()[0])?;
            // Past slow start.
            (connection.subflows.len() == 2 && sender.lost > 0).then_some(connection)
        });
        let place = |is_sender: bool| {
            let found = connection.subflows.iter().find(|subflow| (subflow.local == pair.ends()[0]) == is_sender);
            found.unwrap().place
        };
        let map = MapHandle::from_pinned_path(loaded.pin("connections")).unwrap();
        let entry = Entry { map, token: connection.token, sender: place(true), idle: place(false) };
        assert!(entry.sender < MAX_SUBFLOWS && entry.sender != entry.idle);
        thread::sleep(Duration::from_millis(500));

        let slow = watch(&loaded, &pair, &entry, -10);
        let fast = watch(&loaded, &pair, &entry, 10);
        println!(
            "{name}: beside a slow subflow {:.2} packets a round trip, utility {:.1}; beside a fast one {:.2}, {:.1}",
            slow.growth, slow.utility, fast.growth, fast.utility
        );
        pair.client.shutdown(Shutdown::Both).unwrap();
        pair.server.shutdown(Shutdown::Both).unwrap();
        match name {
            "reno" => assert!((slow.growth - fast.growth).abs() < 0.15, "reno is coupled to nothing"),
            // Reward and penalties are of the total rate (MPCC eq. 2).
            name if name.starts_with("mp") => {
                assert!(fast.utility > 3.0 * slow.utility, "utility does not depend on the other's rate");
            }
            _ => assert!((slow.growth - fast.growth).abs() > 0.25, "the step does not depend on the other's window"),
        }
    });
}

#[test]
fn a_subflow_steps_by_what_the_other_does() {
    if let Some(why) = obstacle() {
        println!("skipped: {why}");
        return;
    }
    for object in objects() {
        check(object.name);
    }
}
