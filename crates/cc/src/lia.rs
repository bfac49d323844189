//! LIA, the Linked Increases Algorithm (RFC 6356).
//!
//! The windows of all subflows together grow as one TCP flow on the best path would; each subflow halves on its own.
//!
//! The increase is evaluated at every acknowledgement; RFC 6356 s4.1 permits computing `alpha` once a round trip to save
//! work that is not worth saving here.

use manypath_core::SubflowId;

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;

/// LIA's increase rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

/// RFC 6356 eq. 2 over the total window: `alpha / cwnd_total = max(w/rtt^2) / (sum w/rtt)^2`, packets per packet
/// acknowledged on any subflow.
fn linked_increase(windows: &Windows) -> f64 {
    let (mut best, mut sum) = (0.0_f64, 0.0);
    for (_, window) in windows.counting() {
        let rate = window.rate();
        best = best.max(rate / window.rtt);
        sum += rate;
    }
    best / (sum * sum)
}

/// RFC 6356 eq. 1: never faster than a single flow on this path.
pub(crate) fn increase(own: &Window, windows: &Windows) -> f64 {
    linked_increase(windows).min(1.0 / own.cwnd)
}

impl Law for Lia {
    fn increase(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        increase(own, windows)
    }

    fn inspect(&self, _id: SubflowId, windows: &Windows, out: &mut dyn Probe) {
        if windows.count() > 0 {
            out.value("alpha", linked_increase(windows) * windows.total_window());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, increases, windows};

    #[test]
    fn one_subflow_is_reno() {
        // (10/0.1^2) / (10/0.1)^2 = 1000/10000 = 1/10
        close(increases(&mut Lia, &windows(&[(10.0, 0.1)]))[0], 0.1);
    }

    #[test]
    fn equal_subflows_share_one_increase() {
        // w = 10 each, rtt 0.1: 1000 / 200^2 = 1/40; per round trip 10/40 each, 1/2 together (alpha = 1/n).
        let found = increases(&mut Lia, &windows(&[(10.0, 0.1), (10.0, 0.1)]));
        close(found[0], 0.025);
        close(found[1], 0.025);
    }

    #[test]
    fn unequal_round_trips() {
        // w = (10, 40), rtt = (0.02, 0.1): w/rtt^2 = (25000, 4000); w/rtt = (500, 400).
        // 25000 / 900^2 = 0.0308641975; caps 1/10 and 1/40 = 0.025: the second is capped.
        let found = increases(&mut Lia, &windows(&[(10.0, 0.02), (40.0, 0.1)]));
        close(found[0], 25_000.0 / 810_000.0);
        close(found[1], 0.025);
    }
}
