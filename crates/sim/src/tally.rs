//! Sums of values, from which means over any stretch of time follow.

/// Values since the beginning and since the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Since the beginning.
    total: Sum,
    /// Before the warm-up.
    before: Sum,
    /// The largest value after the warm-up.
    max: f64,
}

/// A number of values and their sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    count: u64,
    sum: f64,
}

impl Sum {
    /// The mean of the values since an earlier sum; `None` if there are none.
    pub(crate) fn mean_since(self, earlier: Self) -> Option<f64> {
        (self.count > earlier.count).then(|| (self.sum - earlier.sum) / (self.count - earlier.count) as f64)
    }
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.total.count += 1;
        self.total.sum += value;
        self.max = self.max.max(value);
    }

    /// The warm-up is over.
    pub(crate) fn restart(&mut self) {
        self.before = self.total;
        self.max = 0.0;
    }

    /// All values since the beginning.
    pub(crate) fn total(&self) -> Sum {
        self.total
    }

    /// The mean after the warm-up; `None` before the first value.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.total.mean_since(self.before)
    }

    /// The maximum after the warm-up; `None` before the first value.
    pub(crate) fn max(&self) -> Option<f64> {
        (self.total.count > self.before.count).then_some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-12)
    }

    #[test]
    fn means_are_of_what_came_since() {
        let mut tally = Tally::default();
        assert!(tally.mean().is_none() && tally.max().is_none());
        [1.0, 9.0].into_iter().for_each(|value| tally.add(value));
        assert!(near(tally.mean(), 5.0) && near(tally.max(), 9.0));
        let earlier = tally.total();
        assert!(tally.total().mean_since(earlier).is_none());
        tally.restart();
        assert!(tally.mean().is_none() && tally.max().is_none());
        [2.0, 4.0].into_iter().for_each(|value| tally.add(value));
        assert!(near(tally.mean(), 3.0) && near(tally.max(), 4.0));
        assert!(near(tally.total().mean_since(earlier), 3.0));
        assert!(near(tally.total().mean_since(Sum::default()), 4.0));
    }
}
