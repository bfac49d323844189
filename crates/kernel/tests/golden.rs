//! The golden traces of `manypath-cc`: what its window-based controllers did with one series of events, and what the programs'
//! arithmetic, compiled for the host, does with the same. Prints the deviation of windows.
//!
//! One step from equal states agrees to 2e-7 (windows.rs). Along a trace differences add up: the programs count packets where Rust
//! counts bytes, and their smallest window is two packets. A branch may flip, and the two go different ways from there: TCCC's at
//! event 504, where the kernel has counted the loss that begins a recovery and the loss rates are no longer the same; wVegas' at
//! event 455, where the acknowledgement of a packet that left just before a mark ends a round in Rust.

#![allow(clippy::print_stdout, reason = "the deviations found")]
#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

mod twin;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use twin::{Twin, WindowController, mp_balia, mp_lia, mp_olia, mp_reno, mp_tccc, mp_uni, mp_wvegas, real};

/// Bytes of a packet, and packets of the initial window (crates/cc/tests/golden/README.md).
const MSS: f64 = 1250.0;
const INITIAL: u32 = 10;
/// The smallest window of the programs (bpf/group.h), packets.
const LEAST_WINDOW: f64 = 2.0;
/// What the programs share with the simulator: the equality of one step.
const EQUAL: f64 = 0.005;
/// `CWND` and `SSTHRESH` of a snapshot, packets.
type Held = (f64, Option<f64>);

/// So many words of a law's state.
#[derive(Clone, Copy, Debug)]
struct Words<const N: usize>([u64; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

type State<const N: usize> = Twin<Words<N>>;

fn read(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/tests/golden").join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// What Rust held after each event, by number and subflow.
fn snapshot(name: &str) -> BTreeMap<(usize, usize), Held> {
    let text = read(&format!("{name}.txt"));
    let packets = |word: &str| word.parse::<f64>().ok().map(|bytes| bytes / MSS);
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let key = (words[0].parse().unwrap(), words[1].parse().unwrap());
        (key, (packets(words[2]).unwrap(), packets(words[4])))
    });
    lines.collect()
}

/// What an event asks of the programs.
enum Effect {
    /// Windows are compared after it.
    Step,
    /// The kernel has no such event: the window is taken over from Rust.
    Unknown,
    /// Nothing changes.
    None,
}

/// Does in the twin what an event says. `now`: nanoseconds. `counted`: whether the next loss has been counted, because it began a
/// recovery: the kernel counts it before, the trace says it after.
fn apply<const N: usize>(
    twin: &mut State<N>,
    controller: &WindowController,
    now: u64,
    own: usize,
    line: &str,
    counted: &mut bool,
) -> Effect {
    let (what, view) = line.split_once(" | ").unwrap_or((line, ""));
    let words: Vec<&str> = what.split(' ').skip(2).collect();
    let whole = |index: usize| words[index].parse::<u64>().unwrap();
    let socket = &mut twin.sockets[own];
    socket.now_us = now / 1000;
    if let Some(srtt) = view.split(' ').next().and_then(|word| word.parse::<u64>().ok()) {
        socket.srtt = (srtt / 125) as u32;
    }
    match words[0] {
        "add" => {
            socket.cwnd = INITIAL;
            twin.join(controller, own);
        }
        "remove" => twin.group.used &= !(1 << own),
        "sent" => {
            socket.nxt = whole(1) as u32 + 1;
            return Effect::None;
        }
        "lost" => {
            socket.lost += u32::from(!core::mem::take(counted));
            return Effect::None;
        }
        "acked" => {
            socket.delivered += 1;
            socket.una = whole(1) as u32 + 1;
            socket.recovering = whole(7) as u32;
            twin.sample(controller, own, (whole(4) / 1000) as u32);
            // The kernel asks only outside of recovery.
            if whole(7) == 0 {
                twin.ack(controller, own, 1, whole(8) == 0);
            }
        }
        "congestion" => {
            socket.lost += 1;
            *counted = true;
            twin.loss(controller, own);
        }
        "ecn" => twin.loss(controller, own),
        "timeout" => twin.timeout(controller, own),
        // The kernel's program says so with the next acknowledgement.
        "restored" => return Effect::None,
        "weight" => twin.group.members[own].law[0] = real(words[1].parse().unwrap()),
        _ => return Effect::Unknown,
    }
    Effect::Step
}

/// Deviations of windows along the trace, in order; compared where Rust's is not below the programs' least.
fn deviations<const N: usize>(name: &str, controller: &WindowController) -> Vec<f64> {
    let mut twin = State::<N>::new();
    if name == "uni-mptcp" {
        for member in &mut twin.group.members {
            member.law[0] = real(1.0);
        }
    }
    let held = snapshot(name);
    let mut rust: [Option<Held>; 2] = [None; 2];
    let (mut found, mut counted) = (Vec::new(), false);
    for (number, line) in read("events.txt").lines().enumerate() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap().parse::<u64>().unwrap();
        let (now, own) = (word(), word() as usize);
        let joins = line.ends_with("add");
        let effect = apply(&mut twin, controller, now, own, line, &mut counted);
        if joins && name == "uni-mptcp" {
            twin.group.members[own].law[0] = real(1.0);
        }
        rust[own] = held.get(&(number, own)).copied().or(rust[own]);
        let Some((window, threshold)) = rust[own] else { continue };
        match effect {
            Effect::None => {}
            Effect::Unknown => {
                let q32 = |packets: f64| (packets.max(LEAST_WINDOW) * 4_294_967_296.0) as u64;
                twin.set_window(own, q32(window));
                if let Some(threshold) = threshold {
                    twin.set_threshold(own, q32(threshold));
                }
            }
            Effect::Step if window >= LEAST_WINDOW => found.push((twin.window(own) / window - 1.0).abs()),
            Effect::Step => {}
        }
    }
    found
}

/// Prints a row of the table and returns the median deviation.
fn row<const N: usize>(name: &str, controller: &WindowController) -> f64 {
    let found = deviations::<N>(name, controller);
    let first = found.iter().position(|deviation| *deviation > EQUAL);
    let mut sorted = found.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| sorted[(sorted.len() - 1) * share / 100];
    let apart = found.iter().filter(|deviation| **deviation > EQUAL).count();
    println!(
        "| {name} | {} | {:.1e} | {:.1e} | {:.1e} | {apart} | {} |",
        found.len(),
        at(50),
        at(95),
        at(100),
        first.map_or("-".to_owned(), |first| (first + 1).to_string())
    );
    at(50)
}

#[test]
fn deviation_along_the_golden_traces() {
    println!("| controller | windows compared | median | 95% | largest | beyond 0.5% | the first |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    // SAFETY: never written by this test binary.
    let medians = unsafe {
        [
            ("reno", row::<0>("reno", &mp_reno)),
            ("lia", row::<0>("lia", &mp_lia)),
            ("olia", row::<1>("olia", &mp_olia)),
            ("balia", row::<0>("balia", &mp_balia)),
            ("uni-mptcp", row::<0>("uni-mptcp", &mp_uni)),
            ("tccc", row::<20>("tccc", &mp_tccc)),
        ]
    };
    // SAFETY: as above.
    unsafe { row::<6>("wvegas", &mp_wvegas) };
    for (name, median) in medians {
        assert!(median <= EQUAL, "{name}: half of the windows deviate by more than {median}");
    }
}
