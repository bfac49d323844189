//! One direction of a relay: a link model, and the datagrams that are on it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use manypath_core::{Bytes, Duration, Time};
use manypath_link::{Count, Ecn, Link, Verdict};

use crate::buffer::{self, memory};
use crate::clients::ClientKey;
use crate::stats::{DirectionStats, MeasuredRate, SchedulingError};

/// Backlogged periods that are due to take less are not measured: a scheduling error of 100 us would be more than a percent of
/// them. What they took does not matter, or else short ones that a busy processor delayed would count and punctual ones not.
const SHORTEST_RUN: Duration = Duration::from_millis(10);

/// A backlogged period: datagrams that each waited for the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// When the latest datagram was sent; `None` before the first.
    last: Option<Time>,
    /// When the first was due.
    first_due: Time,
    so_far: MeasuredRate,
    /// Whether it is long enough and part of the total.
    counts: bool,
}

/// A datagram on the link.
#[derive(Debug)]
pub(crate) struct Held {
    due: Time,
    /// Order among datagrams that are due at the same time.
    sequence: u64,
    /// Whether it waited behind the one before it.
    waited: bool,
    pub(crate) client: ClientKey,
    pub(crate) ecn: Ecn,
    pub(crate) payload: Vec<u8>,
}

impl Held {
    fn order(&self) -> (Time, u64) {
        (self.due, self.sequence)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// What became of a datagram that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The kernel took it at this time.
    Sent(Time),
    /// The relay is down.
    Down,
    /// Its client is gone or the kernel refused it.
    Unsendable,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Direction {
    link: Link,
    /// Bytes of headers per datagram.
    overhead: u64,
    memory_limit: Bytes,
    /// What is held, bookkeeping included.
    memory: Bytes,
    heap: BinaryHeap<Reverse<Held>>,
    /// Buffers to be used again, and their capacity. With what is held they stay within the limit.
    spare: Vec<Vec<u8>>,
    spare_memory: Bytes,
    sequence: u64,
    sent: Count,
    dropped_down: Count,
    dropped_memory: Count,
    dropped_unsendable: Count,
    held: Count,
    /// The backlogged period at present.
    run: Run,
    /// Backlogged periods that were long enough, the present one included.
    measured: MeasuredRate,
    scheduling_error: SchedulingError,
}

impl Direction {
    pub(crate) fn new(link: Link, overhead: u64, memory_limit: Bytes) -> Self {
        Self {
            link,
            overhead,
            memory_limit,
            memory: Bytes::ZERO,
            heap: BinaryHeap::new(),
            spare: Vec::new(),
            spare_memory: Bytes::ZERO,
            sequence: 0,
            sent: Count::default(),
            dropped_down: Count::default(),
            dropped_memory: Count::default(),
            dropped_unsendable: Count::default(),
            held: Count::default(),
            run: Run::default(),
            measured: MeasuredRate::default(),
            scheduling_error: SchedulingError::new(),
        }
    }

    /// Puts a datagram on the link at `now`.
    pub(crate) fn accept(&mut self, now: Time, client: ClientKey, ecn: Ecn, payload: &[u8]) {
        let wire = self.wire(payload);
        let reused = self.spare.last().map(Vec::capacity).filter(|capacity| buffer::fits(*capacity, payload.len()));
        let need = memory(reused.unwrap_or_default().max(payload.len()));
        if self.memory + need > self.memory_limit {
            add(&mut self.dropped_memory, wire);
            return;
        }
        let Verdict::Deliver { at, queueing, ecn, .. } = self.link.enqueue(now, wire, ecn) else {
            return;
        };
        let spare = self.spare.pop();
        self.spare_memory -= Bytes::new(spare.as_ref().map_or(0, Vec::capacity) as u64);
        if self.memory + self.spare_memory + need > self.memory_limit {
            self.spare = Vec::new();
            self.spare_memory = Bytes::ZERO;
        }
        let buffer = buffer::filled(spare, payload);
        self.memory += memory(buffer.capacity());
        add(&mut self.held, wire);
        self.sequence += 1;
        let waited = queueing > Duration::ZERO;
        let held = Held { due: at, sequence: self.sequence, waited, client, ecn, payload: buffer };
        self.heap.push(Reverse(held));
    }

    /// Counts a datagram that came while the relay was down.
    pub(crate) fn refuse_down(&mut self, payload: &[u8]) {
        let wire = self.wire(payload);
        add(&mut self.dropped_down, wire);
    }

    /// When the next datagram is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(held)| held.due)
    }

    /// The next datagram; [`Self::finish`] wants it back.
    pub(crate) fn pop(&mut self) -> Option<Held> {
        self.heap.pop().map(|Reverse(held)| held)
    }

    /// Takes back a datagram from [`Self::pop`] and counts what became of it.
    pub(crate) fn finish(&mut self, held: Held, fate: Fate) {
        let wire = self.wire(&held.payload);
        let capacity = held.payload.capacity();
        self.memory -= memory(capacity);
        self.held.packets -= 1;
        self.held.bytes -= wire;
        match fate {
            Fate::Sent(at) => {
                add(&mut self.sent, wire);
                self.scheduling_error.record(held.due, at);
                self.measure(&held, at, wire);
            }
            Fate::Down => add(&mut self.dropped_down, wire),
            Fate::Unsendable => add(&mut self.dropped_unsendable, wire),
        }
        if !matches!(fate, Fate::Sent(_)) {
            self.run = Run::default();
        }
        let spare_memory = self.spare_memory + Bytes::new(capacity as u64);
        if buffer::is_reused(capacity) && self.memory + spare_memory <= self.memory_limit {
            self.spare.push(held.payload);
            self.spare_memory = spare_memory;
        }
    }

    /// Adds a datagram, sent `at`, to the present backlogged period if it waited for the one before it, or starts the next.
    fn measure(&mut self, held: &Held, at: Time, wire: Bytes) {
        let Some(last) = self.run.last.filter(|_| held.waited) else {
            self.run = Run { last: Some(at), first_due: held.due, ..Run::default() };
            return;
        };
        // Reordering may make a datagram earlier than the one before it; the next one then makes up for it.
        let last = last.max(at);
        let step = MeasuredRate { bytes: wire, time: last.since(self.run.last.unwrap_or(last)) };
        self.run.last = Some(last);
        self.run.so_far = self.run.so_far.and(step);
        if self.run.counts {
            self.measured = self.measured.and(step);
        } else if held.due.since(self.run.first_due) >= SHORTEST_RUN {
            self.run.counts = true;
            self.measured = self.measured.and(self.run.so_far);
        }
    }

    pub(crate) fn stats(&mut self, now: Time) -> DirectionStats {
        DirectionStats {
            link: self.link.counters(now),
            sent: self.sent,
            dropped_down: self.dropped_down,
            dropped_memory: self.dropped_memory,
            dropped_unsendable: self.dropped_unsendable,
            held: self.held,
            measured: self.measured,
            scheduling_error: self.scheduling_error.clone(),
        }
    }

    /// The size of a datagram on the wire.
    pub(crate) fn wire(&self, payload: &[u8]) -> Bytes {
        Bytes::new(payload.len() as u64 + self.overhead)
    }
}

pub(crate) fn add(count: &mut Count, size: Bytes) {
    count.packets += 1;
    count.bytes += size;
}

#[cfg(test)]
mod tests {
    use manypath_core::Rate;
    use manypath_link::{LinkConfig, QueueLimit};

    use super::*;
    use crate::config::memory_need;

    /// The smallest datagrams there are fill a queue in bytes before they fill the memory, also after large ones.
    #[test]
    fn memory_that_fits_the_links_holds_a_full_queue_of_any_datagrams() {
        let queue = QueueLimit::Bytes(Bytes::new(1_000_000));
        let config = LinkConfig::new(Rate::from_mbps(1.0), Duration::from_millis(10), queue);
        let mut direction = Direction::new(Link::new(&config, 1, "test").unwrap(), 28, memory_need(&config));
        let mut now = Time::ZERO;
        for size in [1472, 60_000, 20, 1472, 0] {
            for _ in 0..1_000_000 / (size + 28) + 10 {
                direction.accept(now, ClientKey::default(), Ecn::NotEct, &vec![7; size]);
                assert!(direction.memory + direction.spare_memory <= direction.memory_limit);
            }
            check_spare(&direction);
            let stats = direction.stats(now);
            assert_eq!((stats.dropped_memory.packets, stats.link.dropped.queue_full.packets > 0), (0, true), "{size}");
            while let Some(held) = direction.pop() {
                now = held.due;
                direction.finish(held, Fate::Sent(now));
                assert!(direction.memory + direction.spare_memory <= direction.memory_limit);
            }
            check_spare(&direction);
            assert!(direction.memory == Bytes::ZERO);
        }
    }

    /// What is spare is what it is taken for.
    fn check_spare(direction: &Direction) {
        let spare: usize = direction.spare.iter().map(Vec::capacity).sum();
        assert_eq!(direction.spare_memory, Bytes::new(spare as u64));
        assert!(direction.spare.iter().all(|spare| spare.capacity() <= 4096), "large ones are given back");
    }

    /// A link of 12 Mbit/s on which `packets` of 1 ms each arrive, one each `gap`, and what becomes of each, by its place.
    fn measured(packets: u64, gap: Duration, fate: impl Fn(u64, Time) -> Fate) -> MeasuredRate {
        let config = LinkConfig::new(Rate::from_mbps(12.0), Duration::ZERO, QueueLimit::Bytes(Bytes::new(1_000_000)));
        let mut direction = Direction::new(Link::new(&config, 1, "test").unwrap(), 28, memory_need(&config));
        for place in 0..packets {
            direction.accept(Time::ZERO + gap * place, ClientKey::default(), Ecn::NotEct, &[7; 1472]);
        }
        for place in 0..packets {
            let held = direction.pop().unwrap();
            let fate = fate(place, held.due);
            direction.finish(held, fate);
        }
        direction.stats(Time::ZERO).measured
    }

    /// All arrive at once, and the last is sent late.
    fn backlog(packets: u64, late: Duration) -> MeasuredRate {
        measured(packets, Duration::ZERO, |place, due| {
            Fate::Sent(due + if place + 1 == packets { late } else { Duration::ZERO })
        })
    }

    #[test]
    fn which_periods_are_measured_is_decided_by_when_they_were_due() {
        let late = Duration::from_millis(20);
        assert_eq!(backlog(10, late), MeasuredRate::default(), "9 ms, however long it took");
        let counted = MeasuredRate { bytes: Bytes::new(10 * 1500), time: Duration::from_millis(10) };
        assert_eq!(backlog(11, Duration::ZERO), counted);
        assert_eq!(backlog(11, late), MeasuredRate { time: counted.time + late, ..counted });
    }

    #[test]
    fn all_of_a_period_counts_once_and_only_while_it_lasts() {
        let twenty = MeasuredRate { bytes: Bytes::new(20 * 1500), time: Duration::from_millis(20) };
        assert_eq!(backlog(21, Duration::ZERO), twenty);
        // One that was late makes those after it no earlier.
        let late = |place, due| Fate::Sent(if place == 5 { due + Duration::from_millis(5) } else { due });
        assert_eq!(measured(21, Duration::ZERO, late), twenty);
        let down = |place, due| if place == 10 { Fate::Down } else { Fate::Sent(due) };
        assert_eq!(measured(21, Duration::ZERO, down), MeasuredRate::default(), "two of 9 ms");
        let idle = measured(21, Duration::from_millis(2), |_, due| Fate::Sent(due));
        assert_eq!(idle, MeasuredRate::default(), "none waits for another");
    }

    #[test]
    fn datagrams_that_are_due_at_one_time_leave_as_they_came() {
        let config = LinkConfig::new(Rate::from_bps(1e12), Duration::from_millis(1), QueueLimit::Packets(99));
        let mut direction = Direction::new(Link::new(&config, 1, "test").unwrap(), 0, Bytes::new(1 << 20));
        (0..50).for_each(|number| direction.accept(Time::ZERO, ClientKey::default(), Ecn::NotEct, &[number]));
        let popped: Vec<_> = core::iter::from_fn(|| direction.pop()).collect();
        assert!(popped[0].due == popped[49].due && popped.iter().map(|held| held.payload[0]).eq(0..50));
    }
}
