//! Event queues on the simulator's load: packets on links, each followed by another one on the same link a fixed delay later.
//! docs/decisions/event-queue.md says what came of it.

#![allow(clippy::print_stdout)] // a benchmark's result

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

/// Events per measurement.
const EVENTS: u64 = 4_000_000;
/// A packet's time at 100 Mbit/s, nanoseconds.
const GAP: u64 = 120_000;

/// An event: time, number, and link; a packet's worth of other data is not carried by any of the queues.
type Event = (u64, u64, u32);

trait Queue {
    fn push(&mut self, event: Event);
    fn pop(&mut self) -> Option<Event>;
}

/// A binary heap of everything.
#[derive(Default)]
struct Heap(BinaryHeap<Reverse<Event>>);

impl Queue for Heap {
    fn push(&mut self, event: Event) {
        self.0.push(Reverse(event));
    }

    fn pop(&mut self) -> Option<Event> {
        self.0.pop().map(|Reverse(event)| event)
    }
}

/// A calendar of days as long as the mean gap between events; a year is as many days as there are events.
struct Calendar {
    days: Vec<Vec<Event>>,
    day: u64,
    held: usize,
    width: u64,
}

impl Calendar {
    fn new(events: usize, width: u64) -> Self {
        Self { days: vec![Vec::new(); events.next_power_of_two()], day: 0, held: 0, width }
    }

    fn slot(&self, day: u64) -> usize {
        usize::try_from(day).unwrap_or(0) & (self.days.len() - 1)
    }
}

impl Queue for Calendar {
    fn push(&mut self, event: Event) {
        let slot = self.slot(event.0 / self.width);
        self.days[slot].push(event);
        self.held += 1;
    }

    fn pop(&mut self) -> Option<Event> {
        if self.held == 0 {
            return None;
        }
        loop {
            let (slot, end) = (self.slot(self.day), (self.day + 1) * self.width);
            let today = self.days[slot].iter().enumerate().filter(|(_, event)| event.0 < end);
            if let Some((index, _)) = today.min_by_key(|(_, event)| **event) {
                self.held -= 1;
                return Some(self.days[slot].swap_remove(index));
            }
            self.day += 1;
        }
    }
}

/// A timing wheel: ticks of about a microsecond, 65,536 of them; a tick's events are sorted when it comes.
struct Wheel {
    ticks: Vec<Vec<Event>>,
    tick: u64,
    due: Vec<Event>,
    held: usize,
}

impl Wheel {
    const SHIFT: u32 = 10;
    const TICKS: u64 = 1 << 16;

    fn new() -> Self {
        Self { ticks: vec![Vec::new(); 1 << 16], tick: 0, due: Vec::new(), held: 0 }
    }
}

impl Queue for Wheel {
    fn push(&mut self, event: Event) {
        let slot = usize::try_from((event.0 >> Self::SHIFT) % Self::TICKS).unwrap_or(0);
        self.ticks[slot].push(event);
        self.held += 1;
    }

    fn pop(&mut self) -> Option<Event> {
        if self.held == 0 {
            return None;
        }
        while self.due.is_empty() {
            let slot = usize::try_from(self.tick % Self::TICKS).unwrap_or(0);
            std::mem::swap(&mut self.due, &mut self.ticks[slot]);
            self.due.sort_unstable_by(|a, b| b.cmp(a));
            self.tick += 1;
        }
        self.held -= 1;
        self.due.pop()
    }
}

/// A ring for each link, and a heap of the first of each.
struct Rings {
    rings: Vec<VecDeque<(u64, u64)>>,
    heads: BinaryHeap<Reverse<Event>>,
}

impl Queue for Rings {
    fn push(&mut self, (at, seq, link): Event) {
        let ring = &mut self.rings[link as usize];
        if ring.is_empty() {
            self.heads.push(Reverse((at, seq, link)));
        }
        ring.push_back((at, seq));
    }

    fn pop(&mut self) -> Option<Event> {
        let mut head = self.heads.peek_mut()?;
        let Reverse(event) = *head;
        let ring = &mut self.rings[event.2 as usize];
        ring.pop_front();
        match ring.front() {
            Some((at, seq)) => *head = Reverse((*at, *seq, event.2)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Some(event)
    }
}

/// A ring for each link, and a tournament of the first of each: every node of a binary tree holds the earlier child.
struct Tournament {
    rings: Vec<VecDeque<(u64, u64)>>,
    /// Time, number and link in one number; the root at 1.
    nodes: Vec<u128>,
}

impl Tournament {
    /// Bits for the link.
    const LINK: u32 = 24;

    fn new(links: u32) -> Self {
        let rings = vec![VecDeque::new(); links as usize];
        Self { nodes: vec![u128::MAX; rings.len().next_power_of_two() * 2], rings }
    }

    fn set(&mut self, link: u32, first: Option<(u64, u64)>) {
        let key = |(at, seq)| u128::from(at) << 64 | u128::from(seq << Self::LINK) | u128::from(link);
        let mut node = self.nodes.len() / 2 + link as usize;
        let mut winner = first.map_or(u128::MAX, key);
        self.nodes[node] = winner;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = winner;
        }
    }
}

impl Queue for Tournament {
    fn push(&mut self, (at, seq, link): Event) {
        if self.rings[link as usize].is_empty() {
            self.set(link, Some((at, seq)));
        }
        self.rings[link as usize].push_back((at, seq));
    }

    #[allow(clippy::cast_possible_truncation)] // parts of 128 bits
    fn pop(&mut self) -> Option<Event> {
        let link = self.nodes[1] as u32 % (1 << Self::LINK);
        let ring = &mut self.rings[link as usize];
        let (at, seq) = ring.pop_front()?;
        let next = ring.front().copied();
        self.set(link, next);
        Some((at, seq, link))
    }
}

/// Nanoseconds an event, with `packets` on each of `links`.
fn measure(mut queue: impl Queue, links: u32, packets: u64) -> f64 {
    let mut seq = 0;
    for packet in 0..packets {
        for link in 0..links {
            queue.push((packet * GAP + u64::from(link) * 7_919, seq, link));
            seq += 1;
        }
    }
    let started = Instant::now();
    for _ in 0..EVENTS {
        let Some((at, _, link)) = queue.pop() else { break };
        seq += 1;
        queue.push((at + packets * GAP, seq, link));
    }
    started.elapsed().as_secs_f64() * 1e9 / EVENTS as f64
}

fn main() {
    println!(
        "{:>6} {:>8} {:>8} {:>9} {:>8} {:>8} {:>10}",
        "links", "packets", "heap", "calendar", "wheel", "rings", "tournament"
    );
    for (links, packets) in [(4, 150), (4, 2_000), (100, 150), (2_000, 20)] {
        let events = usize::try_from(u64::from(links) * packets).unwrap_or(1);
        let heap = measure(Heap::default(), links, packets);
        let calendar = measure(Calendar::new(events, (GAP / u64::from(links)).max(1)), links, packets);
        let wheel = measure(Wheel::new(), links, packets);
        let rings = vec![VecDeque::new(); links as usize];
        let rings = measure(Rings { rings, heads: BinaryHeap::new() }, links, packets);
        let tournament = measure(Tournament::new(links), links, packets);
        println!("{links:6} {packets:8} {heap:8.1} {calendar:9.1} {wheel:8.1} {rings:8.1} {tournament:10.1}");
    }
}
