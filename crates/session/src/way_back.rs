//! How much of a round trip is the way back of acknowledgements, by the one-way delays that the peer reports.
//!
//! Between two hosts all paths have the same two clocks. A packet's round trip less its one-way delay is the time of its acknowledgement
//! less the offset of the clocks, and without the queues that it met on its way. So what the ways back of two paths differ by is known
//! within a report's interval, too short for clocks to drift; how long they are is not, and is chosen so that the paths
//! together take half of their round trips.

use manypath_core::{Duration, SubflowView, Time};

use crate::path::Path;
use crate::session::Session;

/// One path's way back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WayBack {
    /// The smallest round trip since the last report.
    round_trip: Option<Duration>,
    measured: Option<Measured>,
    /// When the path was heard again after it had failed: what had been given up arrived before.
    restored: Option<Time>,
}

/// What a report and the round trips of its interval tell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// The smallest round trip. It has become longer than the smallest of all if the way has.
    round_trip: Duration,
    /// The way back less the clocks' offset, microseconds modulo 2^32.
    raw: u32,
}

impl WayBack {
    pub(crate) fn on_round_trip(&mut self, rtt: Duration) {
        self.round_trip = Some(self.round_trip.map_or(rtt, |least| least.min(rtt)));
    }

    pub(crate) fn on_restored(&mut self, now: Time) {
        (self.round_trip, self.restored) = (None, Some(now));
    }

    /// Takes the smallest one-way delay of an interval that is over. Whether the way back was measured.
    pub(crate) fn on_report(&mut self, now: Time, interval: Duration, least_us: Option<u32>) -> bool {
        // Both are of packets that arrived after the last report had left, since reports and acknowledgements come the same way.
        let round_trip = self.round_trip.take();
        if self.restored.is_some_and(|restored| now < restored + interval) {
            // The delays may be of packets that were given up, whose round trips nobody measured.
            return false;
        }
        let (Some(round_trip), Some(least)) = (round_trip, least_us) else { return false };
        let raw = u32::try_from(round_trip.as_micros()).unwrap_or(u32::MAX).wrapping_sub(least);
        self.measured = Some(Measured { round_trip, raw });
        true
    }
}

/// A path's round trip, microseconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    /// The smallest of all.
    smallest: f64,
    /// The one that `back` is a part of.
    latest: f64,
    /// The way back, but for what is added to all of them.
    back: f64,
}

/// What must be added to all ways back, which are known but for that: so much that they are half of the round trips together, and that
/// nothing takes less than no time there or back, as far as that can be. Microseconds.
fn common(round_trips: impl Iterator<Item = RoundTrip>) -> f64 {
    let (mut count, mut halves) = (0.0, 0.0);
    let (mut lowest, mut highest) = (f64::NEG_INFINITY, f64::INFINITY);
    for RoundTrip { smallest, latest, back } in round_trips {
        count += 1.0;
        halves += smallest / 2.0 - back;
        lowest = lowest.max(-back);
        highest = highest.min(latest - back);
    }
    if lowest <= highest { (halves / count).clamp(lowest, highest) } else { f64::midpoint(lowest, highest) }
}

impl Session {
    /// Says of each path what part of its round trips is the way back.
    pub(crate) fn split_round_trips(&mut self) {
        let Self { paths, view, .. } = self;
        let Some(reference) = paths.iter().flatten().find_map(|path| path.way_back.measured) else { return };
        let micros = |span: Duration| span.as_secs_f64() * 1e6;
        let split = |path: &Path, view: &SubflowView| {
            let Measured { round_trip, raw } = path.way_back.measured?;
            let back = f64::from(raw.wrapping_sub(reference.raw).cast_signed());
            Some(RoundTrip { smallest: micros(view.min_rtt), latest: micros(round_trip), back })
        };
        let common = common(paths.iter().flatten().filter_map(|path| split(path, view.get(path.id)?)));
        for path in paths.iter().flatten() {
            let view = &mut view.subflows[path.id.index()];
            if let Some(RoundTrip { latest, back, .. }) = split(path, view) {
                view.way_back = Some(Duration::from_secs_f64((back + common).clamp(0.0, latest) * 1e-6));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of round trips as long as ever, and their ways back.
    fn assert_common<const N: usize>(ways: [(f64, f64); N], wanted: f64) {
        let round_trip = |(smallest, back)| RoundTrip { smallest, latest: smallest, back };
        let found = common(ways.into_iter().map(round_trip));
        assert!((found - wanted).abs() < 1e-9, "{found} for {wanted}");
    }

    #[test]
    fn paths_take_half_of_their_round_trips_together() {
        assert_common([(20_000.0, 0.0)], 10_000.0);
        // Equal both ways: 10 and 100 ms back.
        assert_common([(20_000.0, 0.0), (200_000.0, 90_000.0)], 10_000.0);
        // 10 and 70 ms back, of 220 together.
        assert_common([(20_000.0, 0.0), (200_000.0, 60_000.0)], 20_000.0);
    }

    #[test]
    fn no_way_is_less_than_nothing() {
        // The second takes 150 ms longer back: at least 130 of its 200, as the first takes at most its 20.
        assert_common([(20_000.0, 0.0), (200_000.0, 150_000.0)], 0.0);
        assert_common([(20_000.0, 0.0), (200_000.0, -10_000.0)], 20_000.0);
        // What cannot be is off by the same on both ends.
        assert_common([(20_000.0, 0.0), (20_000.0, 100_000.0)], -40_000.0);
        // It can if that round trip takes longer than it did.
        let longer = RoundTrip { smallest: 20_000.0, latest: 150_000.0, back: 100_000.0 };
        let found = common([RoundTrip { smallest: 20_000.0, latest: 20_000.0, back: 0.0 }, longer].into_iter());
        assert!(found.abs() < 1e-9, "{found}");
    }

    #[test]
    fn a_report_is_compared_with_the_round_trips_since_the_last_one() {
        let ms = Duration::from_millis;
        let mut way = WayBack::default();
        assert!(!way.on_report(Time::ZERO, ms(350), Some(5_000)), "no round trip");
        [30, 20, 25].into_iter().for_each(|rtt| way.on_round_trip(ms(rtt)));
        assert!(way.on_report(Time::ZERO, ms(350), Some(15_000)));
        assert_eq!(way.measured, Some(Measured { round_trip: ms(20), raw: 5_000 }));
        way.on_round_trip(ms(40));
        assert!(!way.on_report(Time::ZERO, ms(350), None), "not told");
        assert!(!way.on_report(Time::ZERO, ms(350), Some(0)), "those are of another interval");
        // The receiver's clock is a second ahead.
        way.on_round_trip(ms(60));
        assert!(way.on_report(Time::ZERO, ms(350), Some(1_050_000)));
        assert_eq!(way.measured, Some(Measured { round_trip: ms(60), raw: 10_000_u32.wrapping_sub(1_000_000) }));
    }

    #[test]
    fn delays_of_what_was_given_up_are_compared_with_nothing() {
        let (ms, at) = (Duration::from_millis, Time::from_millis);
        let mut way = WayBack::default();
        way.on_round_trip(ms(20));
        way.on_restored(at(1_000));
        assert!(!way.on_report(at(1_500), ms(400), Some(10_000)), "of before it had failed");
        way.on_round_trip(ms(20));
        assert!(!way.on_report(at(1_500), ms(501), Some(700_000)), "it began before the path was heard");
        way.on_round_trip(ms(20));
        assert!(way.on_report(at(1_500), ms(500), Some(10_000)));
    }
}
