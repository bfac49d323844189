//! `brake=lasting` of MPCC's programs over a path on which nothing arrives for a moment, or which comes to carry little.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

mod twin;

use twin::path::{Link, Path, Pause};
use twin::{mp_mpcc_lat, value};

const LINK: Link = Link { capacity: 30.0, rtt_us: 80_000, queue_us: 80_000 };
const BRAKES: [(&str, u64); 2] = [("any", 1), ("lasting", 2)];

/// The least base rate in the second after ten, over that before it.
fn least(brake: u64, meets: impl Fn(&mut Path<'_>)) -> f64 {
    // SAFETY: its tunables are set by this test only, before any step.
    let controller = unsafe { &mp_mpcc_lat };
    controller.set("brake", brake);
    let mut path = Path::new(controller, LINK, 0.0);
    path.run(10, |_| {});
    let before = value(path.state.base);
    assert!((before / LINK.capacity - 1.0).abs() < 0.15, "{before}");
    meets(&mut path);
    let mut least = f64::INFINITY;
    path.run(1, |path| least = least.min(value(path.state.base)));
    least / before
}

#[test]
fn a_moment_leaves_the_rate_and_what_lasts_does_not() {
    // 100 ms are lost, as much as an interval has, or stand still for longer than an interval waits.
    for (loses, pause_us) in [(true, 100_000), (false, 400_000)] {
        // Wherever in an interval it begins.
        let [any, lasting] = BRAKES.map(|(_, brake)| {
            let begins = (0..20).map(|tens| 10_000 * tens);
            let left = begins.map(|after_us| {
                least(brake, |path| {
                    let from_us = path.view.now_us + after_us;
                    path.pause = Some(Pause { from_us, until_us: from_us + pause_us, loses });
                })
            });
            left.fold(f64::INFINITY, f64::min)
        });
        assert!(any < 0.3, "loses {loses}: {any}");
        assert!(lasting > 0.85, "loses {loses}: {lasting}");
    }
    // A tenth of the capacity from then on.
    for (name, brake) in BRAKES {
        let thin = least(brake, |path| path.link.capacity /= 10.0);
        assert!(thin < 0.25, "{name}: {thin}");
    }
}
