//! How large the steps of the ascent are (MPCC s5.2, Vivace s4.3): an amplifier and a bound that grow while the direction stays.

use super::config::{Config, Low, NEAR, Steps};

/// A step is at most this share of the own rate, so that rates stay positive (MPCC's release).
const MAX_STEP: f64 = 0.5;

/// What step sizes remember of earlier decisions. A decision is a move of the base rate, or to stay where probing found none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Momentum {
    /// Sign of the last decision: +1, -1, or 0 for staying; `None` before the first.
    direction: Option<f64>,
    /// Steps in one direction (Vivace's paper), or the release's amplifier.
    amplifier: u32,
    /// How often the bound was widened.
    bound: u32,
    /// Changes of direction not yet worked off.
    swing: u32,
}

impl Momentum {
    /// Steps in one direction (Vivace's paper), or the release's amplifier.
    pub(super) const fn amplifier(&self) -> u32 {
        self.amplifier
    }

    /// Whether a gradient points where the last decision went.
    pub(super) fn agrees(&self, gradient: f64) -> bool {
        self.direction.is_some_and(|direction| direction * gradient > 0.0)
    }

    /// A gradient points elsewhere than the last decision: steps begin small again.
    pub(super) fn turn(&mut self, config: &Config) {
        self.calm();
        if self.direction.is_some() {
            self.swing = (self.swing + 1).min(config.swing);
        }
    }

    /// A queue takes what is sent too fast: the next step is as if it were the first.
    pub(super) fn calm(&mut self) {
        self.amplifier = 0;
        self.bound = 0;
    }

    /// Probing found no direction.
    pub(super) fn stay(&mut self) {
        self.direction = Some(0.0);
    }

    /// Decides to follow a gradient: the step, Mbit/s, at own rate `own` and total rate `total`.
    pub(super) fn step(&mut self, config: &Config, gradient: f64, own: f64, total: f64) -> f64 {
        let goes_on = self.agrees(gradient);
        if !goes_on {
            self.turn(config);
        }
        self.direction = Some(gradient.signum());
        let wanted = config.theta * gradient.abs() * self.amplified(config.steps, goes_on);
        let share = if config.low == Low::Near && gradient < 0.0 { NEAR } else { MAX_STEP };
        // The release's order: the smallest step may exceed the bound.
        let size = self.bounded(config, wanted, total, goes_on).max(config.min_step).min(share * own);
        size.copysign(gradient)
    }

    /// The factor of this step; it grows while the direction stays and no swing is held.
    fn amplified(&mut self, steps: Steps, goes_on: bool) -> f64 {
        let before = self.amplifier;
        let swings = goes_on && self.swing > 0;
        self.swing -= u32::from(swings);
        match steps {
            Steps::Release => {
                if goes_on && !swings {
                    self.amplifier = before.saturating_add(2);
                }
                1.0 + f64::from(before)
            }
            // Vivace s4.3: m(n) = n up to 3, 2n - 3 beyond; n counts this decision.
            Steps::Paper => {
                self.amplifier = if swings { before.max(1) } else { before.saturating_add(1) };
                match f64::from(self.amplifier) {
                    n if n <= 3.0 => n,
                    n => 2.0 * n - 3.0,
                }
            }
        }
    }

    /// The change bound cuts a step, and widens or narrows.
    fn bounded(&mut self, config: &Config, wanted: f64, total: f64, goes_on: bool) -> f64 {
        let bound = config.bound_at(self.bound) * total;
        self.bound = match config.steps {
            // MPCC's release begins again without a notch after a turn that was cut.
            Steps::Release if wanted > bound => self.bound.saturating_add(u32::from(goes_on)),
            Steps::Release => self.bound.saturating_sub(1),
            Steps::Paper if wanted > bound => self.bound.saturating_add(1),
            Steps::Paper => {
                (0..self.bound).find(|notch| wanted <= config.bound_at(*notch) * total).unwrap_or(self.bound)
            }
        };
        wanted.min(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{close, config};
    use super::*;

    #[test]
    fn steps_are_amplified_after_the_swing_buffer() {
        let config = config();
        let mut momentum = Momentum::default();
        // amp = 0, and still 0 while the second step is made: it grows by two after that, and again.
        for (factor, amplifier) in [(1.0, 0), (1.0, 2), (3.0, 4), (5.0, 6)] {
            close(momentum.step(&config, 0.6, 50.0, 100.0), 0.6 * factor);
            assert_eq!(momentum.amplifier, amplifier);
        }
        // Turned: one swing, which the next step works off.
        for (factor, amplifier, swing) in [(1.0, 0, 1), (1.0, 0, 0), (1.0, 2, 0), (3.0, 4, 0)] {
            close(momentum.step(&config, -0.6, 50.0, 100.0), -0.6 * factor);
            assert_eq!((momentum.amplifier, momentum.swing), (amplifier, swing));
        }
        // Twice at most.
        for gradient in [0.6, -0.6, 0.6] {
            close(momentum.step(&config, gradient, 50.0, 100.0), gradient);
        }
        assert_eq!(momentum.swing, 2);
    }

    #[test]
    fn steps_are_bounded() {
        let config = config();
        let mut momentum = Momentum::default();
        // 5% of 100; a first step and a turn leave no notch, a cut step that goes on leaves one.
        for (gradient, step, bound) in [(8.0, 5.0, 0), (8.0, 5.0, 1), (8.0, 10.0, 2), (-8.0, -5.0, 0), (-8.0, -5.0, 1)]
        {
            close(momentum.step(&config, gradient, 50.0, 100.0), step);
            assert_eq!(momentum.bound, bound, "{gradient}");
        }
        // Not cut: one less.
        close(momentum.step(&config, -2.0, 50.0, 100.0), -2.0);
        assert_eq!(momentum.bound, 0);
        // Never less than the smallest step, even where the bound is less; never more than half of the own rate.
        close(momentum.step(&config, 0.01, 50.0, 100.0), 0.5);
        close(momentum.step(&config, -8.0, 2.0, 4.0), -0.5);
        close(momentum.step(&config, 4.0, 5.0, 100.0), 2.5);
        close(momentum.step(&config, 0.01, 0.4, 100.0), 0.2);
        // Down by a quarter at most where a subflow probes no farther than that, and up as before.
        let near = Config { low: Low::Near, ..config };
        close(momentum.step(&near, -8.0, 2.0, 100.0), -0.5);
        close(momentum.step(&near, -8.0, 16.0, 100.0), -4.0);
        close(momentum.step(&near, 8.0, 2.0, 100.0), 1.0);
    }

    #[test]
    fn what_is_no_move_has_no_direction() {
        let config = config();
        let mut momentum = Momentum::default();
        for _ in 0..3 {
            momentum.step(&config, 0.6, 50.0, 100.0);
        }
        // Moving ended because the utility fell, but probing says up: the direction of the last move.
        momentum.turn(&config);
        assert_eq!((momentum.amplifier, momentum.swing), (0, 1));
        assert!(momentum.agrees(0.6));
        close(momentum.step(&config, 0.6, 50.0, 100.0), 0.6);
        assert_eq!((momentum.amplifier, momentum.swing), (0, 0));
        // Probing found none: whatever comes next is a turn.
        momentum.stay();
        assert!(!momentum.agrees(0.6));
        close(momentum.step(&config, 0.6, 50.0, 100.0), 0.6);
        assert_eq!(momentum.swing, 1);
    }

    #[test]
    fn the_amplifier_of_the_paper() {
        let config = Config { steps: Steps::Paper, swing: 0, min_step: 0.0, bound: 1.0, ..config() };
        let mut momentum = Momentum::default();
        // m = 1, 2, 3, 2*4 - 3 = 5, 7.
        for m in [1.0, 2.0, 3.0, 5.0, 7.0] {
            close(momentum.step(&config, 0.5, 100.0, 100.0), 0.5 * m);
        }
        // Moving ended: the count begins anew, whichever way probing points.
        momentum.turn(&config);
        for m in [1.0, 2.0] {
            close(momentum.step(&config, 0.5, 100.0, 100.0), 0.5 * m);
        }
    }

    #[test]
    fn the_bound_of_the_paper_narrows_at_once() {
        let config = Config { steps: Steps::Paper, swing: 9, min_step: 0.0, bound_step: 0.1, ..config() };
        // The swing buffer keeps the amplifier out of this.
        let mut momentum = Momentum { direction: Some(1.0), bound: 3, swing: 9, ..Momentum::default() };
        // 35% of 100 allowed; 12 needs 5% + 1 notch of 10%.
        close(momentum.step(&config, 12.0, 100.0, 100.0), 12.0);
        assert_eq!(momentum.bound, 1);
        // 20 exceeds 15%.
        close(momentum.step(&config, 20.0, 100.0, 100.0), 15.0);
        assert_eq!(momentum.bound, 2);
    }
}
