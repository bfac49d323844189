//! Draws from named random streams.

use manypath_core::Duration;
use manypath_link::uniform;
use rand_xoshiro::Xoshiro256PlusPlus;

/// An exponential span of this mean, at least a nanosecond.
pub(crate) fn exponential(random: &mut Xoshiro256PlusPlus, mean: Duration) -> Duration {
    // 1 - u is in 0 < x <= 1.
    mean.mul_f64(-libm::log(1.0 - uniform(random))).max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_their_mean() {
        let mut random = manypath_link::generator(3, "spans");
        let sum: f64 = (0..20_000).map(|_| exponential(&mut random, Duration::from_secs(1)).as_secs_f64()).sum();
        assert!((sum / 20_000.0 - 1.0).abs() < 0.03);
    }
}
