//! MPCC's programs on a subflow that is slow beside the others: its monitor intervals, acknowledgement by acknowledgement.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

mod twin;

use twin::path::{Link, Path};
use twin::{AscentState, mp_mpcc_lat, real, value};

/// The base rate of a subflow after some seconds, which began to probe at `base`, beside 90 Mbit/s. Nothing is lost and nothing queues.
fn climbs_to(base: f64, seconds: u64) -> f64 {
    // SAFETY: nobody sets its tunables here.
    let controller = unsafe { &mp_mpcc_lat };
    let mut path = Path::new(controller, Link { capacity: 1e6, rtt_us: 30_000, queue_us: u64::MAX }, 90.0);
    (path.state.phase, path.state.base) = (AscentState::PROBING, real(base));
    path.run(seconds, |_| ());
    value(path.state.base)
}

#[test]
fn a_subflow_that_is_slow_beside_the_others_probes_too() {
    for base in [0.5, 1.0, 2.0, 4.0, 5.5, 7.0, 10.0, 12.0, 15.0, 30.0, 60.0] {
        let found = climbs_to(base, 20);
        assert!(found > 2.0 * base, "from {base} to {found} Mbit/s");
    }
}
