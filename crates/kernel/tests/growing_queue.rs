//! `queue=heeded` of MPCC's programs over a queue that is deeper than a round trip.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

mod twin;

use twin::path::{Link, Path};
use twin::{AscentState, mp_mpcc_loss, value};

const LINK: Link = Link { capacity: 30.0, rtt_us: 80_000, queue_us: 107_000 };

/// What a run shows.
#[derive(Debug, Default)]
struct Seen {
    /// The largest rate of slow start, and the last of it, Mbit/s.
    largest: f64,
    last: f64,
    /// Where slow start ends.
    base: f64,
    /// Shares of packets, in half a minute.
    lost: f64,
    used: f64,
}

fn run(heeded: bool) -> Seen {
    // SAFETY: its tunables are set by this test only, before any step.
    let controller = unsafe { &mp_mpcc_loss };
    controller.set("queue", u64::from(heeded));
    let mut path = Path::new(controller, LINK, 0.0);
    let mut seen = Seen::default();
    path.run(30, |path| {
        if path.state.phase == 0 {
            seen.last = value(path.state.rate);
            seen.largest = seen.largest.max(seen.last);
        } else if seen.base == 0.0 {
            seen.base = value(path.state.base);
            assert_eq!(path.state.phase, AscentState::PROBING);
        }
    });
    let sent = f64::from(path.view.segs_out);
    seen.lost = f64::from(path.view.lost) / sent;
    seen.used = f64::from(path.view.arrived * 1_428 * 8) / 30.0 / 1e6 / LINK.capacity;
    seen
}

#[test]
fn slow_start_waits_at_the_rate_before_and_ends_at_what_arrives_and_less_is_lost() {
    let (ignored, heeded) = (run(false), run(true));
    // Twice the capacity of 30 fills the queue: 64 Mbit/s are tried once and not kept up while results are on their way.
    assert_eq!((ignored.largest, ignored.last, ignored.base), (64.0, 64.0, 32.0));
    assert_eq!((heeded.largest, heeded.last), (64.0, 32.0));
    assert!((heeded.base / LINK.capacity - 1.0).abs() < 0.01, "{heeded:?}");
    assert!(heeded.lost < 0.5 * ignored.lost && ignored.lost > 0.05, "{heeded:?} {ignored:?}");
    assert!(heeded.used > 0.95 && ignored.used > 0.95, "{heeded:?} {ignored:?}");
}
