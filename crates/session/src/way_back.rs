//! How much of a round trip is the way back of acknowledgements, by the one-way delays that the peer reports.
//!
//! Between two hosts all paths have the same two clocks. A packet's round trip less its one-way delay is the time of its acknowledgement
//! less the offset of the clocks, and without the queues that it met on its way. So what the ways back of two paths differ by is known
//! within a report's interval, too short for clocks to drift; how long they are is not, and is chosen so that the paths
//! together take half of their round trips.

use manypath_core::{Duration, SubflowView};

use crate::path::Path;
use crate::session::Session;

/// One path's way back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WayBack {
    /// The smallest round trip since the last report.
    round_trip: Option<Duration>,
    /// The way back less the clocks' offset, microseconds modulo 2^32.
    raw: Option<u32>,
}

impl WayBack {
    pub(crate) fn on_round_trip(&mut self, rtt: Duration) {
        self.round_trip = Some(self.round_trip.map_or(rtt, |least| least.min(rtt)));
    }

    /// Takes the smallest one-way delay since the report before. Whether the way back was measured.
    pub(crate) fn on_report(&mut self, least_us: Option<u32>) -> bool {
        // Both are of packets that arrived after the last report had left, since reports and acknowledgements come the same way.
        let round_trip = self.round_trip.take();
        let (Some(round_trip), Some(least)) = (round_trip, least_us) else { return false };
        self.raw = Some(u32::try_from(round_trip.as_micros()).unwrap_or(u32::MAX).wrapping_sub(least));
        true
    }
}

/// What must be added to all ways back, which are known but for that: so much that they are half of the round trips together, and that
/// nothing takes less than no time there or back, as far as that can be. Of each path the smallest round trip and the way back, microseconds.
fn common(ways: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut count, mut halves) = (0.0, 0.0);
    let (mut lowest, mut highest) = (f64::NEG_INFINITY, f64::INFINITY);
    for (round_trip, back) in ways {
        count += 1.0;
        halves += round_trip / 2.0 - back;
        lowest = lowest.max(-back);
        highest = highest.min(round_trip - back);
    }
    if lowest <= highest { (halves / count).clamp(lowest, highest) } else { f64::midpoint(lowest, highest) }
}

impl Session {
    /// Says of each path what part of its smallest round trip is the way back.
    pub(crate) fn split_round_trips(&mut self) {
        let Self { paths, view, .. } = self;
        let Some(reference) = paths.iter().flatten().find_map(|path| path.way_back.raw) else { return };
        let way = |path: &Path, view: &SubflowView| {
            let back = path.way_back.raw?.wrapping_sub(reference).cast_signed();
            Some((view.min_rtt.as_secs_f64() * 1e6, f64::from(back)))
        };
        let common = common(paths.iter().flatten().filter_map(|path| way(path, view.get(path.id)?)));
        for path in paths.iter().flatten() {
            let view = &mut view.subflows[path.id.index()];
            if let Some((round_trip, back)) = way(path, view) {
                view.way_back = Some(Duration::from_secs_f64((back + common).clamp(0.0, round_trip) * 1e-6));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_common<const N: usize>(ways: [(f64, f64); N], wanted: f64) {
        let found = common(ways.into_iter());
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
    }

    #[test]
    fn a_report_is_compared_with_the_round_trips_since_the_last_one() {
        let ms = Duration::from_millis;
        let mut way = WayBack::default();
        assert!(!way.on_report(Some(5_000)), "no round trip");
        [30, 20, 25].into_iter().for_each(|rtt| way.on_round_trip(ms(rtt)));
        assert!(way.on_report(Some(15_000)));
        assert_eq!(way.raw, Some(5_000));
        way.on_round_trip(ms(40));
        assert!(!way.on_report(None), "not told");
        assert!(!way.on_report(Some(0)), "those are of another interval");
        // The receiver's clock is a second ahead.
        way.on_round_trip(ms(60));
        assert!(way.on_report(Some(1_050_000)));
        assert_eq!(way.raw, Some(10_000_u32.wrapping_sub(1_000_000)));
    }
}
