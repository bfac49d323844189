//! When to acknowledge data, and with which ranges.

use manypath_core::{Bytes, DataRange, DataSeq, Duration, RangeSet, Time};

use crate::record::AckRanges;

/// Between the acknowledgements that a path carries for data of other paths lies at least this: a bound on their rate.
const SPREAD_INTERVAL: Duration = Duration::from_millis(1);

/// How many of the lowest ranges an acknowledgement lists besides those where records have landed since the last. Every further one
/// is 16 bytes in each acknowledgement, and says nothing new unless some were lost.
const LOWEST_LISTED: usize = 4;

/// The most runs of records that an acknowledgement waits for.
const MOST_RUNS: usize = 8;

/// How many scattered ranges a receiver keeps that offers this window: as many as packets of a kilobyte with holes of their
/// size between them. Of a peer that scatters more, what would add one is dropped unacknowledged.
pub(crate) fn most_ranges(window: Bytes) -> usize {
    usize::try_from(window.get() / 2048).unwrap_or(usize::MAX).max(8192)
}

/// When records are acknowledged on the path that they came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckPolicy {
    /// So many records have come, or more.
    pub(crate) every: u32,
    /// The last acknowledgement is as old.
    pub(crate) interval: Duration,
    /// A record waits no longer, even for others.
    pub(crate) max_delay: Duration,
}

/// Where records have landed: the beginnings of runs of them, each of which follows the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    starts: [DataSeq; MOST_RUNS],
    count: usize,
    /// Where the last of them ends.
    end: DataSeq,
}

impl Runs {
    /// Beyond the most there is no room.
    fn add(&mut self, range: DataRange) {
        if (self.count == 0 || range.start != self.end)
            && let Some(start) = self.starts.get_mut(self.count)
        {
            *start = range.start;
            self.count += 1;
        }
        self.end = range.end;
    }

    const fn is_full(&self) -> bool {
        self.count == MOST_RUNS
    }

    /// The latest first.
    fn iter(&self) -> impl Iterator<Item = DataSeq> {
        self.starts[..self.count].iter().rev().copied()
    }
}

/// What one path owes the peer in data acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckDuty {
    /// Records that came on the path and were not acknowledged.
    unacked: u32,
    /// When an acknowledgement must leave.
    pub(crate) due: Option<Time>,
    /// The left edge as last told on the path.
    told: DataSeq,
    last_sent: Option<Time>,
    /// Where they landed, to be told once at least, if not more come at a time than there is room for: what the peer's carrier says has
    /// arrived and the session does not is sent again.
    landed: Runs,
}

impl AckDuty {
    /// A data record came on this path. `at_once`: it was a duplicate, which says that the peer misses acknowledgements.
    pub(crate) fn on_record(&mut self, now: Time, range: DataRange, at_once: bool, policy: AckPolicy) {
        self.unacked += 1;
        self.landed.add(range);
        let deadline = if at_once {
            now
        } else if self.unacked < policy.every {
            now + policy.max_delay
        } else if self.landed.is_full() {
            now
        } else {
            self.last_sent.map_or(now, |last| now.max(last + policy.interval))
        };
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    /// Data moved the left edge on another path: tell it here too, soon, but no sooner than `interval` after the last time.
    pub(crate) fn on_left_edge(&mut self, now: Time, left: DataSeq, interval: Duration) {
        if left > self.told {
            let interval = interval.max(SPREAD_INTERVAL);
            let at = self.last_sent.map_or(now, |last| now.max(last + interval));
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// An acknowledgement is wanted now, whatever the rules say: a window opened, or the peer asked.
    pub(crate) fn want(&mut self, now: Time) {
        self.due = Some(now);
    }

    /// An acknowledgement leaves; returns where records have landed since the last.
    fn take(&mut self, now: Time, left: DataSeq) -> Runs {
        self.unacked = 0;
        self.due = None;
        self.told = left;
        self.last_sent = Some(now);
        core::mem::take(&mut self.landed)
    }
}

/// What has arrived, over all flows.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    left: DataSeq,
    above: RangeSet,
    most_ranges: usize,
}

/// What became of a record's sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// All of them had arrived before.
    Duplicate,
    /// At least one is new.
    New,
    /// They cannot be remembered: the record counts as lost.
    TooScattered,
}

impl Arrivals {
    /// Nothing, for a receiver that offers this window.
    pub(crate) fn new(window: Bytes) -> Self {
        Self { left: DataSeq::ZERO, above: RangeSet::new(), most_ranges: most_ranges(window) }
    }

    /// Everything below has arrived.
    pub(crate) fn left(&self) -> DataSeq {
        self.left
    }

    /// How many sequence numbers have arrived.
    #[cfg(test)]
    pub(crate) fn total(&self) -> u64 {
        self.left.0 + self.above.total()
    }

    /// What inserting `range` would mean.
    pub(crate) fn classify(&self, range: DataRange) -> Arrival {
        if range.end <= self.left || self.above.covers(range) {
            Arrival::Duplicate
        } else if self.above.range_count() >= self.most_ranges && range.start > self.left && !self.above.touches(range)
        {
            Arrival::TooScattered
        } else {
            Arrival::New
        }
    }

    /// Adds a range; returns how many sequence numbers were new.
    pub(crate) fn insert(&mut self, range: DataRange) -> u64 {
        let range = DataRange::between(range.start.max(self.left), range.end);
        if range.start == self.left && self.above.first().is_none_or(|first| range.end < first.start) {
            let new = range.len();
            self.left = range.end;
            return new;
        }
        let new = self.above.insert(range);
        if let Some(first) = self.above.first().filter(|first| first.start <= self.left) {
            self.left = first.end;
            self.above.remove_below(first.end);
        }
        new
    }

    /// The ranges an acknowledgement on a path lists: those that its records have landed in since the last, then the lowest.
    pub(crate) fn list_for(&self, now: Time, duty: &mut AckDuty, ranges: &mut AckRanges) {
        ranges.clear();
        let landed = duty.take(now, self.left);
        if self.above.is_empty() {
            return;
        }
        for seq in landed.iter() {
            if let Some(range) = self.above.range_at(seq) {
                ranges.push(range);
            }
        }
        ranges.extend(self.above.iter().take(LOWEST_LISTED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> DataRange {
        DataRange::between(DataSeq(start), DataSeq(end))
    }

    const DELAY: Duration = Duration::from_millis(5);

    fn every(every: u32) -> AckPolicy {
        AckPolicy { every, interval: Duration::ZERO, max_delay: DELAY }
    }

    #[test]
    fn every_second_record_is_acknowledged_at_once_and_the_first_after_a_delay() {
        let mut duty = AckDuty::default();
        let now = Time::from_millis(10);
        duty.on_record(now, range(0, 1), false, every(2));
        assert_eq!(duty.due, Some(Time::from_millis(15)));
        duty.on_record(now, range(1, 2), false, every(2));
        assert_eq!(duty.due, Some(now));
        // And after that the count begins anew.
        duty.take(now, DataSeq(2));
        duty.on_record(now, range(2, 3), false, every(2));
        assert_eq!(duty.due, Some(Time::from_millis(15)));
    }

    #[test]
    fn a_duplicate_is_acknowledged_at_once() {
        let mut duty = AckDuty::default();
        duty.take(Time::from_millis(9), DataSeq(0));
        let policy = AckPolicy { interval: Duration::from_millis(2), ..every(2) };
        duty.on_record(Time::from_millis(10), range(0, 1), true, policy);
        assert_eq!(duty.due, Some(Time::from_millis(10)));
    }

    #[test]
    fn many_records_are_acknowledged_once_in_an_interval() {
        let policy = AckPolicy { interval: Duration::from_millis(2), ..every(2) };
        let (mut duty, mut acks) = (AckDuty::default(), Vec::new());
        for record in 0..100 {
            let now = Time::from_micros(record * 100);
            if duty.due.is_some_and(|due| due <= now) {
                acks.push(record);
                duty.take(now, DataSeq(record));
            }
            duty.on_record(now, range(record, record + 1), false, policy);
        }
        assert_eq!(acks, [2, 22, 42, 62, 82]);
    }

    #[test]
    fn records_that_land_in_many_places_are_acknowledged_before_one_is_left_out() {
        let policy = AckPolicy { interval: Duration::from_millis(2), ..every(2) };
        let (mut duty, now) = (AckDuty::default(), Time::from_millis(1));
        duty.take(now, DataSeq(0));
        for run in 0..MOST_RUNS as u64 {
            assert!(duty.due.is_none_or(|due| due > now), "{run}");
            // Two records each.
            duty.on_record(now, range(10 * run, 10 * run + 1), false, policy);
            duty.on_record(now, range(10 * run + 1, 10 * run + 2), false, policy);
        }
        assert_eq!(duty.due, Some(now));
        let landed: Vec<_> = duty.take(now, DataSeq(0)).iter().map(|start| start.0).collect();
        assert_eq!(landed, [70, 60, 50, 40, 30, 20, 10, 0]);
    }

    #[test]
    fn acknowledgements_for_other_paths_are_spread() {
        let mut duty = AckDuty::default();
        duty.on_left_edge(Time::from_millis(10), DataSeq(5), Duration::ZERO);
        assert_eq!(duty.due, Some(Time::from_millis(10)));
        duty.take(Time::from_millis(10), DataSeq(5));
        duty.on_left_edge(Time::from_millis(10), DataSeq(5), Duration::ZERO);
        assert_eq!(duty.due, None);
        duty.on_left_edge(Time::from_millis(10), DataSeq(6), Duration::ZERO);
        assert_eq!(duty.due, Some(Time::from_millis(11)));
        duty.take(Time::from_millis(11), DataSeq(6));
        duty.on_left_edge(Time::from_millis(12), DataSeq(7), Duration::from_millis(40));
        assert_eq!(duty.due, Some(Time::from_millis(51)));
    }

    #[test]
    fn as_many_records_as_asked_for_are_acknowledged_at_once() {
        for count in 1..=4 {
            let mut duty = AckDuty::default();
            for record in 1..count {
                duty.on_record(Time::ZERO, range(0, 1), false, every(count));
                assert_eq!(duty.due, Some(Time::from_millis(5)), "{record} of {count}");
            }
            duty.on_record(Time::from_millis(1), range(0, 1), false, every(count));
            assert_eq!(duty.due, Some(Time::from_millis(1)), "{count}");
        }
    }

    #[test]
    fn what_other_paths_carried_postpones_nothing() {
        // A record's acknowledgement is due at 15 ms; the left edge alone would wait until 10 + 40.
        let mut duty = AckDuty::default();
        duty.take(Time::from_millis(10), DataSeq(0));
        duty.on_record(Time::from_millis(10), range(5, 6), false, every(2));
        duty.on_left_edge(Time::from_millis(11), DataSeq(6), Duration::from_millis(40));
        assert_eq!(duty.due, Some(Time::from_millis(15)));
    }

    #[test]
    fn a_full_store_refuses_only_what_would_add_a_range() {
        let mut arrivals = Arrivals::new(Bytes::ZERO);
        for i in 1..=most_ranges(Bytes::ZERO) as u64 {
            assert_eq!(arrivals.classify(range(10 * i, 10 * i + 5)), Arrival::New);
            arrivals.insert(range(10 * i, 10 * i + 5));
        }
        assert_eq!(arrivals.classify(range(16, 18)), Arrival::TooScattered);
        assert_eq!(arrivals.classify(range(15, 18)), Arrival::New, "it lengthens one");
        assert_eq!(arrivals.classify(range(0, 3)), Arrival::New, "it moves the left edge");
    }

    #[test]
    fn the_latest_ranges_come_first() {
        let mut arrivals = Arrivals::new(Bytes::ZERO);
        for start in [10, 20, 30, 40, 50, 60, 70] {
            assert_eq!(arrivals.insert(range(start, start + 5)), 5);
        }
        let mut duty = AckDuty::default();
        duty.on_record(Time::ZERO, range(20, 25), false, every(2));
        duty.on_record(Time::ZERO, range(60, 65), false, every(2));
        let mut ranges = AckRanges::new();
        arrivals.list_for(Time::ZERO, &mut duty, &mut ranges);
        let listed = [60, 20, 10, 30, 40].map(|start| range(start, start + 5));
        assert_eq!(ranges.as_slice(), listed, "and of the lowest no more than four");
    }

    #[test]
    fn the_left_edge_passes_what_had_arrived_early() {
        let mut arrivals = Arrivals::new(Bytes::ZERO);
        arrivals.insert(range(5, 10));
        assert_eq!(arrivals.classify(range(6, 9)), Arrival::Duplicate);
        assert_eq!(arrivals.insert(range(0, 7)), 5);
        assert_eq!(arrivals.left(), DataSeq(10));
        assert_eq!(arrivals.classify(range(0, 10)), Arrival::Duplicate);
        assert_eq!(arrivals.classify(range(9, 11)), Arrival::New);
    }
}
