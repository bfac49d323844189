//! How much buffer two paths need: equations 1 to 4 of STMS (s3).
//!
//! Bandwidths are what the paths carry when both are full. One-way delays are from sender to receiver; the paper takes
//! data acknowledgements to come back on the faster path.

use manypath_core::{Bytes, Duration, Rate};

/// One of two paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// What it carries (spec: B).
    pub bandwidth: Rate,
    /// Round-trip time with queueing delay (spec: RTT).
    pub rtt: Duration,
    /// Delay from sender to receiver (spec: OWD).
    pub one_way: Duration,
}

impl Path {
    /// A path whose delay is the same in both directions.
    pub fn symmetric(bandwidth: Rate, rtt: Duration) -> Self {
        Self { bandwidth, rtt, one_way: rtt.mul_f64(0.5) }
    }
}

/// A fast and a slow path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The one with the shorter round trip (spec: f).
    fast: Path,
    /// The one with the longer round trip (spec: s).
    slow: Path,
}

/// What a host buffer of some size allows (STMS s3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regime {
    /// Below equation 4: not even the fast path and the gap fit; STMS falls back to the fast path alone.
    FastOnly,
    /// Between equations 4 and 3: the fast path is full, the slow path partly used.
    FastPreferred,
    /// Between equations 3 and 1: STMS fills both paths, the default scheduler does not.
    Limited,
    /// From equation 1: every scheduler fills both paths.
    Ample,
}

impl Pair {
    /// Two paths in any order; the one with the shorter round trip is the fast one.
    pub fn new(one: Path, other: Path) -> Self {
        let (fast, slow) = if one.rtt <= other.rtt { (one, other) } else { (other, one) };
        Self { fast, slow }
    }

    /// Equation 1: what the default scheduler needs without penalisation and retransmission,
    /// `(B_f + B_s) RTT_s`.
    pub fn default_scheduler(&self) -> Bytes {
        (self.fast.bandwidth + self.slow.bandwidth) * self.slow.rtt
    }

    /// Equation 2: the data that the fast path sends while a packet on the slow path is behind,
    /// `B_f (OWD_s - OWD_f)`; zero if the slow path's one-way delay is the shorter one.
    ///
    /// Divided by the packet size it is the gap in packets by which STMS sends ahead.
    pub fn true_gap(&self) -> Bytes {
        self.fast.bandwidth * (self.slow.one_way - self.fast.one_way)
    }

    /// Equation 3: what STMS needs to fill both paths, `(B_f + B_s)(OWD_s + OWD_f)`.
    pub fn stms(&self) -> Bytes {
        (self.fast.bandwidth + self.slow.bandwidth) * (self.slow.one_way + self.fast.one_way)
    }

    /// Equation 4: below this STMS uses the fast path alone, `B_f (OWD_s + OWD_f)`.
    pub fn fallback(&self) -> Bytes {
        self.fast.bandwidth * (self.slow.one_way + self.fast.one_way)
    }

    /// What a host buffer of this size allows. Where delays differ so much by direction that the thresholds are not in
    /// the paper's order, the better regime counts.
    pub fn regime(&self, buffer: Bytes) -> Regime {
        if buffer >= self.default_scheduler() {
            Regime::Ample
        } else if buffer >= self.stms() {
            Regime::Limited
        } else if buffer >= self.fallback() {
            Regime::FastPreferred
        } else {
            Regime::FastOnly
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1500;

    /// An example: 2.5 packets/ms on each path, one-way delays 10 and 50 ms.
    fn example() -> Pair {
        let rate = Bytes::new(5 * PACKET) / Duration::from_millis(2);
        let slow = Path::symmetric(rate, Duration::from_millis(100));
        Pair::new(slow, Path::symmetric(rate, Duration::from_millis(20)))
    }

    #[test]
    fn the_equations_of_the_paper() {
        let pair = example();
        // 5 packets/ms * 100 ms = 500; 2.5 * (50 - 10) = 100; 5 * (50 + 10) = 300; 2.5 * (50 + 10) = 150.
        assert_eq!(pair.default_scheduler(), Bytes::new(500 * PACKET));
        assert_eq!(pair.true_gap(), Bytes::new(100 * PACKET));
        assert_eq!(pair.stms(), Bytes::new(300 * PACKET));
        assert_eq!(pair.fallback(), Bytes::new(150 * PACKET));
        // Equation 4's first form: RTT_f B_f + gap = 20 * 2.5 + 100 = 150.
        assert_eq!(pair.fast.bandwidth * pair.fast.rtt + pair.true_gap(), pair.fallback());
        // Equation 3's parts (s3.3): in flight on the fast path 2.5 * 20, on the slow one with the acknowledgement on the
        // fast one 2.5 * (50 + 10), and the gap 100: 50 + 150 + 100.
        let slow = pair.slow.bandwidth * (pair.slow.one_way + pair.fast.one_way);
        assert_eq!(pair.fast.bandwidth * pair.fast.rtt + slow + pair.true_gap(), pair.stms());
    }

    #[test]
    fn at_three_times_the_round_trip_the_gap_is_the_fast_window() {
        // Figure 9: RTT_s = 3 RTT_f, symmetric: B_f (1.5 - 0.5) RTT_f = CWND_f.
        let rate = Rate::from_mbps(30.0);
        let fast = Path::symmetric(rate, Duration::from_millis(20));
        let pair = Pair::new(fast, Path::symmetric(Rate::from_mbps(7.0), Duration::from_millis(60)));
        assert_eq!(pair.true_gap(), rate * Duration::from_millis(20));
    }

    #[test]
    fn regimes_follow_the_thresholds() {
        let pair = example();
        let regime = |packets| pair.regime(Bytes::new(packets * PACKET));
        assert_eq!(regime(500), Regime::Ample);
        assert_eq!(regime(499), Regime::Limited);
        assert_eq!(regime(300), Regime::Limited);
        assert_eq!(regime(299), Regime::FastPreferred);
        assert_eq!(regime(150), Regime::FastPreferred);
        assert_eq!(regime(149), Regime::FastOnly);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let path = Path::symmetric(Rate::from_bps(f64::MAX), Duration::MAX);
        let pair = Pair::new(path, path);
        assert_eq!(pair.default_scheduler(), Bytes::MAX);
        assert_eq!(pair.true_gap(), Bytes::ZERO);
    }
}
