//! Uni-MPTCP on two paths in closed form: Table I of its paper, the optimum of its equations 14 and 15 for `n = 2`.
//!
//! Two bottlenecks; `n_1` TCP flows on the first, `n_2` on the second; one Uni-MPTCP connection with a subflow on each and
//! the weight `omega` on the second (the first has weight one). Every TCP flow of a link gets the same.

use manypath_core::Rate;

use crate::network::{Connection, MAX_CAPACITY_BPS, MAX_SUBFLOWS, MIN_CAPACITY_BPS, Network, NetworkError};
use crate::num::{MAX_WEIGHT, MIN_WEIGHT, Utility};

/// Two bottlenecks with TCP flows on each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPaths {
    /// TCP flows on each (spec: n_1, n_2).
    flows: [u32; 2],
    /// Capacity of each (spec: c_1, c_2).
    capacities: [Rate; 2],
}

/// Why there is no closed form.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UniError {
    /// Table I divides by the number of TCP flows on each link.
    #[error("each link needs at least one TCP flow")]
    NoFlows,
    /// A capacity that no link has.
    #[error("a capacity is {bps} bit/s; it must be from 1 to 1e15")]
    Capacity {
        /// The capacity in bit/s.
        bps: f64,
    },
    /// A weight from which no allocation follows.
    #[error("omega is {omega}; it must be from 1e-6 to 1e6")]
    Weight {
        /// The weight.
        omega: f64,
    },
    /// More flows than a network may have; the closed form has no such bound.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// The column of Table I.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// `omega < n_2 c_1 / ((n_1 + 1) c_2)`: all on the first path.
    First,
    /// Between the two bounds: both paths.
    Both,
    /// `omega > (n_2 + 1) c_1 / (n_1 c_2)`: all on the second path.
    Second,
}

/// Corollary I: where `omega = 1` lies, which three measured rates tell (`y_l`, `y_0`, `y_r`: the connection's rate at
/// omega near zero, one, and infinity).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Case 1, `y_0 = y_r > y_l`: in the right region.
    Right,
    /// Case 2, `y_0 > y_r` and `y_0 > y_l`: between the bounds.
    Middle,
    /// Case 3, `y_0 = y_l > y_r`: in the left region.
    Left,
}

/// A column of Table I with numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Which column.
    pub region: Region,
    /// The rate of each TCP flow, by link (spec: x_1, x_2).
    pub tcp: [Rate; 2],
    /// The rates of the connection's subflows (spec: y_1, y_2).
    pub subflows: [Rate; 2],
}

impl Shares {
    /// The connection's rate (spec: y).
    pub fn total(&self) -> Rate {
        self.subflows[0] + self.subflows[1]
    }
}

impl TwoPaths {
    /// `flows` TCP flows on links of these capacities.
    ///
    /// # Errors
    /// If a link has no TCP flow, or no reasonable capacity.
    pub fn new(flows: [u32; 2], capacities: [Rate; 2]) -> Result<Self, UniError> {
        if flows.contains(&0) {
            return Err(UniError::NoFlows);
        }
        let range = MIN_CAPACITY_BPS..=MAX_CAPACITY_BPS;
        match capacities.iter().map(|capacity| capacity.as_bps()).find(|bps| !range.contains(bps)) {
            Some(bps) => Err(UniError::Capacity { bps }),
            None => Ok(Self { flows, capacities }),
        }
    }

    /// The weights between which both paths are used: `n_2 c_1 / ((n_1 + 1) c_2)` and `(n_2 + 1) c_1 / (n_1 c_2)`.
    pub fn bounds(&self) -> [f64; 2] {
        let ([n1, n2], [c1, c2]) = self.numbers();
        [n2 * c1 / ((n1 + 1.0) * c2), (n2 + 1.0) * c1 / (n1 * c2)]
    }

    /// Table I at a weight.
    ///
    /// # Errors
    /// If the weight is out of range.
    pub fn shares(&self, omega: f64) -> Result<Shares, UniError> {
        check(omega)?;
        let ([n1, n2], [c1, c2]) = self.numbers();
        let [low, high] = self.bounds();
        let (region, tcp, subflows) = if omega < low {
            (Region::First, [c1 / (n1 + 1.0), c2 / n2], [c1 / (n1 + 1.0), 0.0])
        } else if omega > high {
            (Region::Second, [c1 / n1, c2 / (n2 + 1.0)], [0.0, c2 / (n2 + 1.0)])
        } else {
            let x1 = (c1 + omega * c2) / (n1 + n2 + 1.0);
            let x2 = x1 / omega;
            (Region::Both, [x1, x2], [c1 - n1 * x1, c2 - n2 * x2])
        };
        Ok(Shares { region, tcp: tcp.map(Rate::from_bps), subflows: subflows.map(Rate::from_bps) })
    }

    /// The weight at which the connection's rate is largest: `sqrt(c_1 n_2 / (c_2 n_1))` where that is between the
    /// bounds, else the bound next to it, beyond which the rate is constant.
    pub fn peak_omega(&self) -> f64 {
        let ([n1, n2], [c1, c2]) = self.numbers();
        let [low, high] = self.bounds();
        (c1 * n2 / (c2 * n1)).sqrt().clamp(low, high)
    }

    /// Corollary I.
    pub fn case(&self) -> Case {
        let [low, high] = self.bounds();
        if high <= 1.0 {
            Case::Right
        } else if low >= 1.0 {
            Case::Left
        } else {
            Case::Middle
        }
    }

    /// The same as a network with its utilities, for [`maximise`](crate::num::maximise): first the connection (link 0 and
    /// link 1), then the TCP flows of link 0, then those of link 1.
    ///
    /// # Errors
    /// If the weight is out of range or there are more flows than a network may have.
    pub fn problem(&self, omega: f64) -> Result<(Network, Vec<Utility>), UniError> {
        check(omega)?;
        let many = || NetworkError::TooLarge { what: "subflows", limit: MAX_SUBFLOWS };
        let flows = |link: usize| usize::try_from(self.flows[link]).ok().filter(|&count| count <= MAX_SUBFLOWS);
        let (first, second) = (flows(0).ok_or_else(many)?, flows(1).ok_or_else(many)?);
        let mut connections = vec![Connection::over(&[[0], [1]])];
        connections.extend(vec![Connection::over(&[[0]]); first]);
        connections.extend(vec![Connection::over(&[[1]]); second]);
        let mut utilities = vec![Utility { subflow_weights: vec![1.0, omega], ..Utility::proportional(2) }];
        utilities.extend(vec![Utility::proportional(1); first + second]);
        Ok((Network::new(self.capacities.to_vec(), connections)?, utilities))
    }

    /// Flows and capacities in bit/s as numbers.
    fn numbers(&self) -> ([f64; 2], [f64; 2]) {
        (self.flows.map(f64::from), self.capacities.map(Rate::as_bps))
    }
}

/// Checks a weight.
fn check(omega: f64) -> Result<(), UniError> {
    if (MIN_WEIGHT..=MAX_WEIGHT).contains(&omega) { Ok(()) } else { Err(UniError::Weight { omega }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(n1: u32, n2: u32, c1: f64, c2: f64) -> TwoPaths {
        TwoPaths::new([n1, n2], [Rate::from_mbps(c1), Rate::from_mbps(c2)]).unwrap()
    }

    fn assert_shares(shares: &Shares, tcp: [f64; 2], subflows: [f64; 2]) {
        for (got, want) in shares.tcp.iter().chain(&shares.subflows).zip(tcp.iter().chain(&subflows)) {
            assert!((got.as_mbps() - want).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn table_one() {
        // n = (10, 1), c = 10 each: bounds 1*10/(11*10) = 1/11 and 2*10/(10*10) = 0.2; N = 12.
        let setting = paths(10, 1, 10.0, 10.0);
        let [low, high] = setting.bounds();
        assert!((low - 1.0 / 11.0).abs() < 1e-12 && (high - 0.2).abs() < 1e-12);
        let left = setting.shares(0.01).unwrap();
        assert_eq!(left.region, Region::First);
        assert_shares(&left, [10.0 / 11.0, 10.0], [10.0 / 11.0, 0.0]);
        // x1 = (10 + 1.5)/12 = 0.958333, x2 = x1/0.15 = 6.388889, y1 = 10 - 9.58333, y2 = 10 - 6.388889.
        let middle = setting.shares(0.15).unwrap();
        assert_eq!(middle.region, Region::Both);
        assert_shares(&middle, [11.5 / 12.0, 11.5 / 1.8], [10.0 - 115.0 / 12.0, 10.0 - 11.5 / 1.8]);
        let right = setting.shares(1.0).unwrap();
        assert_eq!(right.region, Region::Second);
        assert_shares(&right, [1.0, 5.0], [0.0, 5.0]);
        assert!((right.total().as_mbps() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn columns_meet_at_the_bounds() {
        let setting = paths(3, 5, 12.0, 7.0);
        for bound in setting.bounds() {
            let (below, above) =
                (setting.shares(bound * (1.0 - 1e-9)).unwrap(), setting.shares(bound * (1.0 + 1e-9)).unwrap());
            assert_ne!(below.region, above.region);
            assert!((below.total().as_mbps() - above.total().as_mbps()).abs() < 1e-6);
        }
    }

    #[test]
    fn corollary_one() {
        assert_eq!(paths(10, 1, 10.0, 10.0).case(), Case::Right);
        assert_eq!(paths(2, 2, 10.0, 10.0).case(), Case::Middle);
        assert_eq!(paths(1, 10, 10.0, 10.0).case(), Case::Left);
        for (n1, n2) in [(10, 1), (2, 2), (1, 10), (4, 3)] {
            let setting = paths(n1, n2, 10.0, 10.0);
            let [left, one, right] = [1e-6, 1.0, 1e6].map(|omega| setting.shares(omega).unwrap().total().as_mbps());
            match setting.case() {
                Case::Right => assert!((one - right).abs() < 1e-9 && one > left),
                Case::Middle => assert!(one > right && one > left),
                Case::Left => assert!((one - left).abs() < 1e-9 && one > right),
            }
        }
    }

    #[test]
    fn the_gain_of_the_peak_is_bounded_for_equal_capacities() {
        // Its s4.2: 8.7%. At c1 = c2 the largest gain over omega = 1 with a weight below one is 8.58%, at n = (2, 1).
        let gain = |n1, n2| {
            let setting = paths(n1, n2, 10.0, 10.0);
            let total = |omega: f64| setting.shares(omega).unwrap().total().as_mbps();
            total(setting.peak_omega().min(1.0)) / total(1.0) - 1.0
        };
        assert!((gain(2, 1) - 0.0858).abs() < 1e-4);
        let most = (1..60).flat_map(|n1| (1..60).map(move |n2| (n1, n2))).map(|(n1, n2)| gain(n1, n2));
        assert!(most.fold(0.0, f64::max) < 0.087);
    }

    #[test]
    fn the_gain_of_the_peak_is_larger_for_unequal_capacities() {
        // Not so for unlike capacities: 16.6% at n = (59, 1), c2/c1 = 0.034.
        let gain = |c2| {
            let setting = paths(59, 1, 1.0, c2);
            let total = |omega: f64| setting.shares(omega).unwrap().total().as_mbps();
            total(setting.peak_omega()) / total(1.0) - 1.0
        };
        let gains = (200..=500).map(|c2| f64::from(c2) * 1e-4).map(|c2| (gain(c2), c2));
        let (most, c2) = gains.fold((0.0, 0.0), |best, found| if found.0 > best.0 { found } else { best });
        assert!((most - 0.166).abs() < 1e-3 && (c2 - 0.034).abs() < 5e-4, "{most} {c2}");
    }

    #[test]
    fn no_weight_beats_the_peak() {
        for (n1, n2, c1, c2) in [(2, 1, 10.0, 10.0), (10, 1, 10.0, 10.0), (1, 7, 3.0, 40.0), (59, 1, 1.0, 0.034)] {
            let setting = paths(n1, n2, c1, c2);
            let total = |omega: f64| setting.shares(omega).unwrap().total().as_mbps();
            let peak = total(setting.peak_omega());
            let best = (-400..=400).map(|k| total(10.0_f64.powf(f64::from(k) / 100.0))).fold(0.0, f64::max);
            assert!(best <= peak + 1e-9 && best > peak * 0.999, "{best} {peak}");
        }
    }

    #[test]
    fn hostile_input_is_refused() {
        let rate = Rate::from_mbps(1.0);
        assert_eq!(TwoPaths::new([0, 1], [rate; 2]), Err(UniError::NoFlows));
        assert!(matches!(TwoPaths::new([1, 1], [rate, Rate::ZERO]), Err(UniError::Capacity { .. })));
        let setting = TwoPaths::new([u32::MAX, 1], [rate; 2]).unwrap();
        assert!(setting.shares(1.0).is_ok());
        assert!(matches!(setting.problem(1.0), Err(UniError::Network(NetworkError::TooLarge { .. }))));
        for omega in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(setting.shares(omega), Err(UniError::Weight { .. })));
        }
    }
}
