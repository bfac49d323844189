//! Named random streams: the same seed and name give the same numbers, different names unrelated ones.

use manypath_core::Duration;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator called `name` under `seed`.
///
/// Adding, removing or renaming one stream leaves all others as they were. The name is hashed with FNV-1a (64 bits, the
/// offset basis mixed with the seed) and expanded by SplitMix64, as the authors of xoshiro advise.
pub fn generator(seed: u64, name: &str) -> Xoshiro256PlusPlus {
    // Offset basis and prime of 64-bit FNV-1a (draft-eastlake-fnv s5).
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let start = BASIS ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    Xoshiro256PlusPlus::seed_from_u64(hash)
}

/// A number in `0.0..1.0`, in steps of 2^-53.
pub fn uniform(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// An exponential span of this mean, at least a nanosecond.
pub fn exponential(random: &mut impl Rng, mean: Duration) -> Duration {
    // 1 - u is in 0 < x <= 1.
    mean.mul_f64(-libm::log(1.0 - uniform(random))).max(Duration::from_nanos(1))
}

/// A span in `0..=most`, to the nanosecond.
#[allow(clippy::cast_possible_truncation)] // the product of two 64-bit numbers, shifted by 64, fits in 64
pub(crate) fn uniform_span(random: &mut Xoshiro256PlusPlus, most: Duration) -> Duration {
    let scaled = (u128::from(random.next_u64()) * (u128::from(most.as_nanos()) + 1)) >> 64;
    Duration::from_nanos(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_alone() {
        let first = |seed, name| generator(seed, name).next_u64();
        assert_eq!(first(1, "wifi/loss"), first(1, "wifi/loss"));
        assert_ne!(first(1, "wifi/loss"), first(1, "wifi/jitter"));
        assert_ne!(first(1, "wifi/loss"), first(2, "wifi/loss"));
        assert_ne!(first(0, ""), first(1, ""));
    }

    #[test]
    fn exponential_spans_have_their_mean() {
        let mut random = generator(3, "spans");
        let sum: f64 = (0..20_000).map(|_| exponential(&mut random, Duration::from_secs(1)).as_secs_f64()).sum();
        assert!((sum / 20_000.0 - 1.0).abs() < 0.03);
        assert_eq!(exponential(&mut random, Duration::ZERO), Duration::from_nanos(1), "no loop stands still");
    }

    #[test]
    fn spans_cover_both_ends() {
        let mut random = generator(7, "spans");
        let draws: Vec<_> = (0..200).map(|_| uniform_span(&mut random, Duration::from_nanos(3)).as_nanos()).collect();
        assert!((0..=3).all(|value| draws.contains(&value)) && draws.iter().all(|value| *value <= 3));
        assert_eq!(uniform_span(&mut random, Duration::ZERO), Duration::ZERO);
    }
}
