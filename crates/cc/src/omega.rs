//! Finding the weight that gives a connection a target rate at least cost (Uni-MPTCP algorithm 1): for two paths, the
//! second being the costly one.
//!
//! Three rates are measured, at weights 0.01, 100 and 1; a logistic curve through them is inverted at the target. Whoever
//! drives it calls [`OmegaSearch::poll`] when [`OmegaSearch::next_timer`] has come and gives the weights it returns to the
//! controller (`uni-mptcp`) as [`crate::Event::Weight`]: [`crate::targeted`] does, in any engine.

use manypath_core::{Bytes, Duration, Rate, Time};

/// Parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How long each weight is tried; the second half is measured (Uni-MPTCP s4.3.1: 20 s).
    pub epoch: Duration,
    /// Steepness of the logistic curve (Uni-MPTCP s4.2: "in double digits, e.g. 30"; spec: k).
    pub steepness: f64,
    /// Measured rates that differ by less, relative to the larger, are taken for equal. The paper states none; its Table II
    /// shows 12% between rates that its corollary 1 calls equal.
    pub tolerance: f64,
    /// Search again after this long (Uni-MPTCP s4.3.3: 300 s); `None`: on demand only (spec: T).
    pub period: Option<Duration>,
    /// Search again when a subflow's rate has changed by this share of the connection's rate since the search ended, in two
    /// measurements one after the other and from the mean of the first three: the rates of a few flows that share a link
    /// swing by as much for some seconds. Infinite: never.
    pub change: f64,
    /// Whether the weight held is corrected by what it gives, an epoch at a time, in place of a new search when rates change.
    /// Not of the paper, whose curve misses its target by up to 28% (Table III): see [`OmegaSearch`].
    pub correct: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            epoch: Duration::from_secs(20),
            steepness: 30.0,
            tolerance: 0.15,
            period: None,
            change: 0.3,
            correct: false,
        }
    }
}

/// The least weight of the costly path (Uni-MPTCP algorithm 1).
pub const MIN_OMEGA: f64 = 0.01;
/// The largest (Uni-MPTCP algorithm 1: omega is never above 1).
pub const MAX_OMEGA: f64 = 1.0;
/// A rate that misses the target by less is not corrected: means over half an epoch of a few flows that share a link swing as
/// much.
const ON_TARGET: f64 = 0.1;
/// A correction at most doubles or halves the weight.
const LARGEST_CORRECTION: f64 = 2.0;
/// The weights tried, in the order of the paper's text.
const TRIED: [f64; 3] = [0.01, 100.0, 1.0];

/// Rates of the connection at the weights tried. Any one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// At weight 0.01 (spec: `y_l`).
    pub least: f64,
    /// At weight 100 (spec: `y_r`).
    pub most: f64,
    /// At weight 1 (spec: `y_0`).
    pub even: f64,
}

impl Tried {
    /// Where the curve rises (Uni-MPTCP eq. 25; the division by three is of the whole sum, as Table II confirms; spec: beta).
    pub fn midpoint(&self) -> f64 {
        let r = self.least / self.most;
        let root = libm::sqrt(r);
        (root + 2.0 * (2.0 * r - root).max(0.0)) / 3.0
    }

    /// Uni-MPTCP eq. 24: the rate modelled at a weight.
    pub fn rate_at(&self, omega: f64, config: &Config) -> f64 {
        let rise = self.most - self.least;
        self.least + rise / (1.0 + libm::exp(-config.steepness * (omega - self.midpoint())))
    }

    /// Uni-MPTCP algorithm 1: the weight for a target rate.
    pub fn omega_for(&self, target: f64, config: &Config) -> f64 {
        let equal = |a: f64, b: f64| (a - b).abs() <= config.tolerance * a.max(b);
        // Corollary 1, case 3: more weight on the costly path gives less.
        if self.least > (1.0 + config.tolerance) * self.most && equal(self.even, self.least) {
            return MIN_OMEGA;
        }
        if target <= self.least {
            return MIN_OMEGA;
        }
        let rise = self.most - self.least;
        // Without a rise there is no curve; with a target above its end no weight is enough.
        if rise <= 0.0 || target > self.rate_at(1.0, config) {
            return MAX_OMEGA;
        }
        let omega = self.midpoint() - libm::log(rise / (target - self.least) - 1.0) / config.steepness;
        omega.clamp(MIN_OMEGA, MAX_OMEGA)
    }
}

/// What the search is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Trying the weight with this index.
    Trying(usize),
    /// Holding the weight found.
    Holding(Held),
}

/// The subflows' rates while a weight is held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Held {
    /// Sums of the first ones, bit/s, and how many they are.
    sums: [f64; 2],
    measured: u32,
    /// Whether the latest ones are others.
    apart: bool,
}

impl Held {
    /// What is compared with is the mean of so many measurements.
    const FIRST: u32 = 3;

    /// Takes a measurement, in bit/s; says whether it and the one before it are apart from the first by more than this share.
    fn is_changed(&mut self, rates: [f64; 2], share: f64) -> bool {
        if self.measured < Self::FIRST {
            self.sums = [self.sums[0] + rates[0], self.sums[1] + rates[1]];
            self.measured += 1;
            return false;
        }
        let first = self.sums.map(|sum| sum / f64::from(Self::FIRST));
        let most = share * (first[0] + first[1]);
        let before = self.apart;
        self.apart = (rates[0] - first[0]).abs() > most || (rates[1] - first[1]).abs() > most;
        self.apart && before
    }
}

/// The search under way.
///
/// With [`Config::correct`], a search's end is where a control loop begins: after each epoch the weight is multiplied by the
/// target over the rate measured. That converges where the rate grows by less than the square of the weight, as it does in
/// the simulator: from 6.7 to 14.3 Mbit/s between weights 0.1 and 0.25, of two paths of 30 Mbit/s with four flows and one.
#[derive(Clone, Debug, PartialEq)]
pub struct OmegaSearch {
    config: Config,
    target: Rate,
    stage: Stage,
    /// Rates measured so far, bit/s, in the order of [`TRIED`].
    rates: [f64; 3],
    omega: f64,
    /// When the search began.
    began: Time,
    /// When the stage's measurement begins, and what was delivered then.
    from: Time,
    delivered: Option<[Bytes; 2]>,
    /// When the measurement ends.
    until: Time,
}

impl OmegaSearch {
    /// Begins a search.
    pub fn new(now: Time, config: Config, target: Rate) -> Self {
        let mut search = Self {
            config,
            target,
            stage: Stage::Trying(0),
            rates: [0.0; 3],
            omega: TRIED[0],
            began: now,
            from: now,
            delivered: None,
            until: now,
        };
        search.restart(now);
        search
    }

    /// A search that has ended with this weight of the costly path, by somebody before.
    pub fn found(now: Time, config: Config, target: Rate, omega: f64) -> Self {
        let mut search = Self::new(now, config, target);
        search.stage = Stage::Holding(Held::default());
        search.omega = omega.clamp(MIN_OMEGA, MAX_OMEGA);
        search
    }

    /// The weight of the costly path now, over that of the other.
    pub const fn omega(&self) -> f64 {
        self.omega
    }

    /// Sets a new target and searches anew.
    pub fn set_target(&mut self, now: Time, target: Rate) {
        self.target = target;
        self.restart(now);
    }

    fn restart(&mut self, now: Time) {
        self.began = now;
        self.stage = Stage::Trying(0);
        self.omega = TRIED[0];
        self.measure(now, self.config.epoch / 2);
    }

    /// Measures for half an epoch, after `settle`.
    fn measure(&mut self, now: Time, settle: Duration) {
        self.from = now + settle;
        self.until = self.from + self.config.epoch / 2;
        self.delivered = None;
    }

    /// When [`poll`](Self::poll) wants to be called.
    pub fn next_timer(&self) -> Time {
        if self.delivered.is_none() { self.from } else { self.until }
    }

    /// Whether the weight is found and held.
    pub const fn is_holding(&self) -> bool {
        matches!(self.stage, Stage::Holding(..))
    }

    /// Takes the time and what each path has delivered so far; returns the paths' weights, the larger being 1.
    pub fn poll(&mut self, now: Time, delivered: [Bytes; 2]) -> [f64; 2] {
        match self.delivered {
            None if now >= self.from => {
                self.delivered = Some(delivered);
                // Called late: measure as long all the same.
                self.until = self.until.max(now + self.config.epoch / 2);
                self.from = now;
            }
            Some(before) if now >= self.until => {
                let span = now.since(self.from);
                let rate = |path: usize| ((delivered[path] - before[path]) / span).as_bps();
                self.on_measured(now, [rate(0), rate(1)]);
            }
            _ => {}
        }
        self.weights()
    }

    /// The paths' weights, the larger being 1.
    pub fn weights(&self) -> [f64; 2] {
        let largest = self.omega.max(1.0);
        [1.0 / largest, self.omega / largest]
    }

    fn on_measured(&mut self, now: Time, rates: [f64; 2]) {
        let total = rates[0] + rates[1];
        match self.stage {
            Stage::Trying(index) => {
                self.rates[index] = total;
                if index + 1 < TRIED.len() {
                    self.stage = Stage::Trying(index + 1);
                    self.omega = TRIED[index + 1];
                } else {
                    let tried = Tried { least: self.rates[0], most: self.rates[1], even: self.rates[2] };
                    self.omega = tried.omega_for(self.target.as_bps(), &self.config);
                    self.stage = Stage::Holding(Held::default());
                }
                self.measure(now, self.config.epoch / 2);
            }
            Stage::Holding(mut held) => {
                let changed = !self.config.correct && held.is_changed(rates, self.config.change);
                let old = self.config.period.is_some_and(|period| now.since(self.began) >= period);
                if changed || old {
                    self.restart(now);
                    return;
                }
                let corrected = self.config.correct && self.correct(total);
                self.stage = Stage::Holding(held);
                self.measure(now, if corrected { self.config.epoch / 2 } else { Duration::ZERO });
            }
        }
    }

    /// Corrects the weight held by the rate that it gives, in bit/s; says whether that changes it.
    fn correct(&mut self, rate: f64) -> bool {
        let wanted = self.target.as_bps() / rate;
        // Nothing was sent: whatever the weight, that says nothing of it.
        if !wanted.is_finite() || (wanted - 1.0).abs() <= ON_TARGET {
            return false;
        }
        let before = self.omega;
        let factor = wanted.clamp(1.0 / LARGEST_CORRECTION, LARGEST_CORRECTION);
        self.omega = (before * factor).clamp(MIN_OMEGA, MAX_OMEGA);
        self.omega.total_cmp(&before).is_ne()
    }
}

#[cfg(test)]
#[path = "omega/tests.rs"]
mod tests;
