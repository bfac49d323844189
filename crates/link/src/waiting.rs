//! What has not left the queue.

use std::collections::VecDeque;

use manypath_core::{Bytes, Time};

use crate::counters::Backlog;
use crate::service::FineTime;

/// Packets of one size that leave at equal intervals.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// When the first of them leaves.
    next: FineTime,
    /// What lies between two of them, where there are two.
    step: u64,
    size: u32,
    packets: u32,
}

/// The packets in a queue, as runs. A busy link sends packets of one size back to back: then they are one run, however many
/// wait, and nobody writes down and reads again when each of them leaves. Times are exact: those that the service gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    runs: VecDeque<Run>,
    /// When the last of them leaves.
    last: FineTime,
    total: Backlog,
}

impl Waiting {
    /// All of them.
    #[inline]
    pub(crate) const fn total(&self) -> Backlog {
        self.total
    }

    /// Adds a packet that leaves at `departs`, which is not before those that wait.
    #[inline]
    pub(crate) fn push(&mut self, departs: FineTime, size: u32) {
        let step = departs.after(self.last);
        self.last = departs;
        self.total.add(size);
        if let (Some(run), Some(step)) = (self.runs.back_mut(), step)
            && run.size == size
            && (run.packets == 1 || run.step == step)
        {
            run.step = step;
            run.packets += 1;
            return;
        }
        self.runs.push_back(Run { next: departs, step: 0, size, packets: 1 });
    }

    /// Takes out what has left by `now`, or leaves within its nanosecond: a packet that arrives when the one before leaves has its time
    /// rounded, and must not find that one still there.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time) {
        while let Some(run) = self.runs.front_mut()
            && run.next.floor() <= now
        {
            self.total.packets -= 1;
            self.total.bytes -= Bytes::new(u64::from(run.size));
            run.packets -= 1;
            if run.packets == 0 {
                self.runs.pop_front();
            } else {
                run.next = run.next.plus(run.step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Runs hold what a list of the packets would.
        #[test]
        fn equals_a_list(packets in prop::collection::vec((0_u64..4, 1_u32..3, 0_u64..30), 1..200)) {
            let (mut waiting, mut list) = (Waiting::default(), Vec::new());
            let mut departs = FineTime::default();
            for (gap, size, now) in packets {
                departs = departs.plus(gap << 31);
                waiting.push(departs, size);
                list.push((departs.floor(), size));
                // Some nanoseconds before the last departure.
                let now = Time::from_nanos(departs.to_time().as_nanos().saturating_sub(now));
                waiting.settle(now);
                list.retain(|(departs, _)| *departs > now);
                prop_assert_eq!(waiting.total().packets, list.len() as u64);
                let bytes = list.iter().map(|(_, size)| u64::from(*size)).sum();
                prop_assert_eq!(waiting.total().bytes, Bytes::new(bytes));
            }
        }
    }

    #[test]
    fn equal_packets_back_to_back_are_one_run() {
        let mut waiting = Waiting::default();
        let mut departs = FineTime::default();
        for _ in 0..1000 {
            departs = departs.plus((118 << 32) + 12_345);
            waiting.push(departs, 1480);
        }
        waiting.settle(Time::from_micros(100));
        assert_eq!((waiting.runs.len(), waiting.total().packets), (1, 1000 - 847));
        waiting.push(departs.plus(1), 40);
        assert_eq!(waiting.runs.len(), 2);
    }
}
