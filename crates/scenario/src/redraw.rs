//! Values of links that are drawn anew at intervals, written out as a schedule: every engine draws the same.

use manypath_core::{Duration, Rate, Time};
use manypath_link::{Change, LinkConfig, Loss, MAX_DELAY, MAX_RATE_BPS, MIN_RATE_BPS, generator, uniform};
use rand_core::Rng;

use crate::model::{Draw, Link, Redraw};

impl Link {
    /// The model for a run of this `duration`, with the values that are drawn anew in its schedule. They come from the stream named
    /// after the link.
    pub fn drawn(&self, duration: Duration, seed: u64) -> LinkConfig {
        let mut config = self.config.clone();
        if let Some(redraw) = &self.redraw {
            // A link and its way back draw the same: the delays of both are those of one path.
            let name = self.name.strip_suffix("/back").unwrap_or(&self.name);
            let mut random = generator(seed, &format!("{name}/redraw"));
            config.schedule = schedule(redraw, &config, duration, &mut random);
        }
        config
    }

    /// The highest rate that the link has in such a run: what its schedule has for later is never in force.
    pub fn peak_rate(&self, duration: Duration, seed: u64) -> Rate {
        let mut config = self.drawn(duration, seed);
        config.schedule.retain(|change| change.at < Time::ZERO + duration);
        config.peak_rate()
    }
}

fn schedule(redraw: &Redraw, config: &LinkConfig, duration: Duration, random: &mut impl Rng) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut at = Time::ZERO;
    while at < Time::ZERO + duration {
        let mut value = |how: &Option<_>| how.as_ref().map(|how| draw(random, how));
        let rate = value(&redraw.rate).map(|bps| Rate::from_bps(bps.clamp(MIN_RATE_BPS, MAX_RATE_BPS)));
        let delay = value(&redraw.delay).map(|secs| Duration::from_secs_f64(secs).min(MAX_DELAY));
        let loss = value(&redraw.loss).map(|share| Loss::Random(share.min(1.0)));
        changes.push(Change { at, rate, delay, jitter: Some(config.jitter), loss });
        at += redraw.every;
    }
    changes
}

/// A value as the scenario says it is drawn, never negative.
fn draw(random: &mut impl Rng, how: &Draw) -> f64 {
    match how {
        Draw::Uniform(low, high) => low + (high - low) * uniform(random),
        Draw::Choice(values) => {
            let index = usize::try_from(random.next_u64() % values.len().max(1) as u64).unwrap_or(0);
            values.get(index).copied().unwrap_or(0.0)
        }
        Draw::Normal(mean, deviation) => {
            // Box and Muller 1958; the second value is not kept, so that a draw always takes two numbers.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - uniform(random)));
            let angle = 2.0 * core::f64::consts::PI * uniform(random);
            (mean + deviation * radius * libm::cos(angle)).max(0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means() {
        let mut random = generator(3, "draws");
        let mut mean = |how: &Draw| (0..20_000).map(|_| draw(&mut random, how)).sum::<f64>() / 20_000.0;
        // Standard errors: 0.29 * 90 / sqrt(20000) = 0.18; of the choice 0.07; of the normal 0.28. Four of each.
        assert!((mean(&Draw::Uniform(10.0, 100.0)) - 55.0).abs() < 0.8);
        assert!((mean(&Draw::Choice(vec![5.0, 10.0, 20.0, 30.0])) - 16.25).abs() < 0.3);
        assert!((mean(&Draw::Normal(100.0, 40.0)) - 100.0).abs() < 1.2);
    }

    #[test]
    fn normal_draws_have_their_deviation_and_are_never_negative() {
        let mut random = generator(3, "draws");
        let mut draws = |mean, deviation| -> Vec<f64> {
            (0..20_000).map(|_| draw(&mut random, &Draw::Normal(mean, deviation))).collect()
        };
        let square = draws(1_000.0, 40.0).iter().map(|value| (value - 1_000.0).powi(2)).sum::<f64>() / 20_000.0;
        // Standard error: 1600 * sqrt(2 / 20000) = 16. Four of them.
        assert!((square - 1_600.0).abs() < 64.0, "{square}");
        let low = draws(0.0, 1.0);
        assert!(low.iter().all(|value| *value >= 0.0) && low.iter().any(|value| *value > 1.0));
    }

    #[test]
    fn what_is_drawn_keeps_to_the_bounds_of_links_and_their_jitter() {
        let (rate, delay) = (Rate::from_mbps(1.0), Duration::from_millis(9));
        let mut config = LinkConfig::new(rate, delay, manypath_link::QueueLimit::Packets(9));
        config.jitter = Duration::from_millis(3);
        let one = |value| Some(Draw::Choice(vec![value]));
        let every = Duration::from_secs(1);
        for (drawn, expected) in [(0.0, MIN_RATE_BPS), (1e15, MAX_RATE_BPS)] {
            let redraw = Redraw { every, rate: one(drawn), delay: one(1e6), loss: one(7.0) };
            let changes = schedule(&redraw, &config, Duration::from_secs(2), &mut generator(1, "draws"));
            let change = |at| Change {
                at: Time::from_millis(at),
                rate: Some(Rate::from_bps(expected)),
                delay: Some(MAX_DELAY),
                jitter: Some(config.jitter),
                loss: Some(Loss::Random(1.0)),
            };
            // None at the end of the run.
            assert_eq!(changes, [change(0), change(1_000)]);
        }
    }

    #[test]
    fn the_peak_of_a_run_is_of_changes_before_its_end() {
        let text = "duration = \"2s\"\n[[link]]\nname = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = \"9packets\"\n\
                    schedule = [{ at = \"2s\", rate = \"9Mbit\" }]\n[[connection]]\nname = \"c\"\ncc = \"lia\"\n\
                    path = [{ route = [\"a\"] }]\n";
        let link = crate::parse(text, "peak.toml", std::path::Path::new(".")).unwrap().links.remove(0);
        assert_eq!(link.peak_rate(Duration::from_secs(2), 1), Rate::from_mbps(1.0));
        assert_eq!(link.peak_rate(Duration::from_millis(2_001), 1), Rate::from_mbps(9.0));
    }
}
