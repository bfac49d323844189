//! How far a measurement writes ahead of what arrives. What it has written when its time is over is delivered all the same: a sender's
//! memory of 16 MiB takes another 67 s over 2 Mbit/s.

use std::time::{Duration, Instant};

use manypath_core::Bytes;
use manypath_quic::ConnectionStats;

/// So much is written however slow the paths are: enough for a slow start to begin with.
const LEAST: Bytes = Bytes::new(256 * 1024);
/// How long what is delivered is counted for, at least.
const PERIOD: Duration = Duration::from_secs(1);
/// Round trips a period takes at least. A window that doubles every round trip has been delivered by three quarters in the two before.
const ROUND_TRIPS: u32 = 2;
/// So many times what was delivered of late may be under way or wait: more than a window that doubles.
const TIMES: u64 = 2;

/// What was delivered of late.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// When this period began, and what had been delivered by then.
    since: Option<(Instant, Bytes)>,
    /// What the one before delivered.
    before: Bytes,
}

impl Ahead {
    /// Whether there is not yet enough under way and waiting.
    pub(super) fn has_room(&mut self, stats: &ConnectionStats) -> bool {
        let longest = stats.paths.iter().filter_map(|path| path.srtt).max().map_or(Duration::ZERO, Duration::from);
        // Not the memory that is held, which goes in pieces: sixteen flows with a rest of one each hold too much.
        self.wants_more(Instant::now(), stats.delivered, stats.written - stats.delivered, longest)
    }

    /// The same of `held`, where `delivered` was delivered so far and the longest round trip of a path is `round_trip`.
    fn wants_more(&mut self, now: Instant, delivered: Bytes, held: Bytes, round_trip: Duration) -> bool {
        let (began, then) = *self.since.get_or_insert((now, delivered));
        let recent = self.before + (delivered - then);
        if now.duration_since(began) >= PERIOD.max(round_trip * ROUND_TRIPS) {
            (self.since, self.before) = (Some((now, delivered)), delivered - then);
        }
        held < LEAST.max(recent * TIMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: Bytes = Bytes::new(64 * 1024);

    /// What is left after ten seconds over a path of so many bytes a second, 50 ms long, in steps of 10 ms, and what was delivered.
    fn after_ten_seconds(rate: u64) -> (Bytes, Bytes) {
        let (mut ahead, began) = (Ahead::default(), Instant::now());
        let (mut held, mut delivered) = (Bytes::ZERO, Bytes::ZERO);
        for step in 0..1_000 {
            let now = began + Duration::from_millis(10 * step);
            while ahead.wants_more(now, delivered, held, Duration::from_millis(50)) {
                held += PIECE;
            }
            let sent = held.min(Bytes::new(rate / 100));
            held -= sent;
            delivered += sent;
        }
        (held, delivered)
    }

    #[test]
    fn little_is_left_when_the_time_is_over_and_nothing_is_lost_by_that() {
        for rate in [40_000, 1_000_000, 20_000_000] {
            let (left, delivered) = after_ten_seconds(rate);
            assert!(left <= Bytes::new(4 * rate).max(LEAST) + PIECE, "{left:?} at {rate}");
            assert_eq!(delivered, Bytes::new(10 * rate), "{left:?}");
        }
    }

    #[test]
    fn a_window_that_doubles_is_never_short_of_data() {
        for round_trip in [100, 700, 3_000].map(Duration::from_millis) {
            let (mut ahead, mut now) = (Ahead::default(), Instant::now());
            let (mut held, mut delivered) = (Bytes::ZERO, Bytes::ZERO);
            for doublings in 0..14 {
                let window = Bytes::new(14_000 << doublings);
                while ahead.wants_more(now, delivered, held, round_trip) {
                    held += PIECE;
                }
                assert!(held >= window, "{held:?} of {window:?} in {round_trip:?}");
                held -= window;
                delivered += window;
                now += round_trip;
            }
        }
    }
}
