//! Random loss: independent (Bernoulli) and in bursts (Gilbert-Elliott).

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::uniform;

/// How packets are lost at random, before they reach the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each packet on its own, with this probability, in 0..=1.
    Random(f64),
    /// In bursts.
    Bursty(GilbertElliott),
}

/// A two-state loss process (Gilbert 1960, Elliott 1963): one step per packet, starting in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet to go from the good to the bad state, in 0..=1.
    pub enter_bad: f64,
    /// Probability per packet to go from the bad to the good state, in 0..=1.
    pub leave_bad: f64,
    /// Probability to lose a packet in the good state, in 0..=1; Gilbert's model has 0.
    pub loss_good: f64,
    /// Probability to lose a packet in the bad state, in 0..=1.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// The simple Gilbert process (all lost in the bad state, none in the good one) with a mean loss in `0.0..1.0` and a
    /// mean burst length of `burst` packets, at least 1.
    ///
    /// A burst lasts `1 / leave_bad` packets, and the share of bad packets is `enter_bad / (enter_bad + leave_bad)`; both
    /// are solved for the transition probabilities. Arguments out of range give probabilities out of range, which
    /// [`Link::new`](crate::Link::new) refuses.
    pub fn simple(mean_loss: f64, burst: f64) -> Self {
        let leave_bad = 1.0 / burst;
        Self { enter_bad: leave_bad * mean_loss / (1.0 - mean_loss), leave_bad, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// The share of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let turnover = self.enter_bad + self.leave_bad;
        let bad = if turnover > 0.0 { self.enter_bad / turnover } else { 0.0 };
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    /// The four probabilities.
    pub(crate) const fn probabilities(&self) -> [f64; 4] {
        [self.enter_bad, self.leave_bad, self.loss_good, self.loss_bad]
    }
}

/// The running process.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    random: Xoshiro256PlusPlus,
    bad: bool,
}

impl LossProcess {
    pub(crate) const fn new(random: Xoshiro256PlusPlus) -> Self {
        Self { random, bad: false }
    }

    /// Whether the next packet is lost under `loss`. The number of draws depends on the kind of loss, never on outcomes.
    pub(crate) fn loses(&mut self, loss: &Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Random(probability) => uniform(&mut self.random) < *probability,
            Loss::Bursty(model) => {
                let (loss, turn) =
                    if self.bad { (model.loss_bad, model.leave_bad) } else { (model.loss_good, model.enter_bad) };
                let lost = uniform(&mut self.random) < loss;
                self.bad ^= uniform(&mut self.random) < turn;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    fn outcomes(loss: &Loss, packets: usize) -> Vec<bool> {
        let mut process = LossProcess::new(generator(11, "loss"));
        (0..packets).map(|_| process.loses(loss)).collect()
    }

    fn share(outcomes: &[bool]) -> f64 {
        outcomes.iter().filter(|lost| **lost).count() as f64 / outcomes.len() as f64
    }

    #[test]
    fn certain_and_impossible_loss_are_exact() {
        assert!(outcomes(&Loss::Random(1.0), 10_000).iter().all(|lost| *lost));
        assert!(!outcomes(&Loss::Random(0.0), 10_000).iter().any(|lost| *lost));
        assert!(!outcomes(&Loss::None, 10).iter().any(|lost| *lost));
    }

    #[test]
    fn random_loss_stays_within_four_standard_deviations() {
        // n = 1e6, p = 0.01: sd = sqrt(p (1 - p) / n) = 9.95e-5
        assert!((share(&outcomes(&Loss::Random(0.01), 1_000_000)) - 0.01).abs() < 4.0 * 9.95e-5);
    }

    #[test]
    fn bursts_have_the_asked_mean_and_length() {
        let model = GilbertElliott::simple(0.02, 5.0);
        assert!((model.leave_bad - 0.2).abs() < 1e-12 && (model.mean_loss() - 0.02).abs() < 1e-12);
        let lost = outcomes(&Loss::Bursty(model), 2_000_000);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // About 8000 geometric bursts of mean 5 and sd sqrt(20) = 4.47: the mean's sd is 4.47 / sqrt(8000) = 0.05, and that of
        // the loss share is about 0.02 * sqrt((20 + 25) / 8000) / 5 = 3e-4. Four of each:
        assert!((share(&lost) * 2e6 / bursts - 5.0).abs() < 0.2);
        assert!((share(&lost) - 0.02).abs() < 1.2e-3);
    }

    #[test]
    fn what_is_lost_does_not_disturb_the_states() {
        let bad = GilbertElliott { enter_bad: 0.1, leave_bad: 0.3, loss_good: 0.0, loss_bad: 1.0 };
        let good = GilbertElliott { loss_good: 1.0, loss_bad: 0.0, ..bad };
        let opposite: Vec<_> = outcomes(&Loss::Bursty(good), 1000).into_iter().map(|lost| !lost).collect();
        assert_eq!(outcomes(&Loss::Bursty(bad), 1000), opposite);
    }

    #[test]
    fn elliott_loses_in_both_states() {
        let model = GilbertElliott { enter_bad: 0.1, leave_bad: 0.3, loss_good: 0.01, loss_bad: 0.5 };
        // bad share 0.1 / 0.4 = 0.25; mean 0.25 * 0.5 + 0.75 * 0.01 = 0.1325
        assert!((model.mean_loss() - 0.1325).abs() < 1e-12);
        assert!((share(&outcomes(&Loss::Bursty(model), 1_000_000)) - 0.1325).abs() < 0.003);
        let frozen = GilbertElliott { enter_bad: 0.0, leave_bad: 0.0, loss_good: 0.25, loss_bad: 1.0 };
        assert!((frozen.mean_loss() - 0.25).abs() < 1e-12);
    }
}
