//! Draws from named random streams.

use manypath_core::Duration;
use manypath_scenario::Draw;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A number in `0.0..1.0`, in steps of 2^-53.
pub(crate) fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// An exponential span of this mean, at least a nanosecond.
pub(crate) fn exponential(random: &mut Xoshiro256PlusPlus, mean: Duration) -> Duration {
    // 1 - u is in 0 < x <= 1.
    mean.mul_f64(-libm::log(1.0 - uniform(random))).max(Duration::from_nanos(1))
}

/// A value as the scenario says it is drawn, never negative.
pub(crate) fn draw(random: &mut Xoshiro256PlusPlus, how: &Draw) -> f64 {
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
        let mut random = manypath_link::generator(3, "draws");
        let mut mean = |how: &Draw| (0..20_000).map(|_| draw(&mut random, how)).sum::<f64>() / 20_000.0;
        // Standard errors: 0.29 * 90 / sqrt(20000) = 0.18; of the choice 0.07; of the normal 0.28. Four of each.
        assert!((mean(&Draw::Uniform(10.0, 100.0)) - 55.0).abs() < 0.8);
        assert!((mean(&Draw::Choice(vec![5.0, 10.0, 20.0, 30.0])) - 16.25).abs() < 0.3);
        assert!((mean(&Draw::Normal(100.0, 40.0)) - 100.0).abs() < 1.2);
        let mut random = manypath_link::generator(3, "spans");
        let sum: f64 = (0..20_000).map(|_| exponential(&mut random, Duration::from_secs(1)).as_secs_f64()).sum();
        assert!((sum / 20_000.0 - 1.0).abs() < 0.03);
    }
}
