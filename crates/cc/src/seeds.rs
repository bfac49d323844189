//! Where controllers' randomness comes from: one seed a connection, one generator a subflow.

use manypath_core::SubflowId;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seeds of a connection's subflows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seeds {
    root: u64,
    /// `labels[id]` takes the place of the id, where given.
    labels: Vec<u32>,
}

impl Seeds {
    /// Seeds that follow from one number and the subflow's id.
    pub const fn new(root: u64) -> Self {
        Self { root, labels: Vec::new() }
    }

    /// As [`new`](Self::new), but the subflow with id `i` draws as if its id were `labels[i]`. With it a test permutes
    /// subflows together with their randomness.
    pub const fn relabelled(root: u64, labels: Vec<u32>) -> Self {
        Self { root, labels }
    }

    /// The generator of a subflow.
    pub fn generator(&self, id: SubflowId) -> Xoshiro256PlusPlus {
        let label = self.labels.get(id.index()).copied().unwrap_or(id.0);
        // `seed_from_u64` expands through SplitMix64, so that seeds that differ by one give unrelated generators.
        Xoshiro256PlusPlus::seed_from_u64(self.root.rotate_left(32) ^ u64::from(label))
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    #[test]
    fn labels_permute_generators() {
        let plain = Seeds::new(7);
        let swapped = Seeds::relabelled(7, vec![1, 0]);
        let draw = |seeds: &Seeds, id| seeds.generator(SubflowId(id)).next_u64();
        assert_eq!(draw(&plain, 0), draw(&swapped, 1));
        assert_eq!(draw(&plain, 2), draw(&swapped, 2));
        assert_ne!(draw(&plain, 0), draw(&plain, 1));
    }
}
