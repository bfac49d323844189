//! Small statistics: windowed extremes, smoothing, and Jain's fairness index.

use std::collections::VecDeque;

use crate::time::{Duration, Time};

/// The candidates that can still become the extreme of a sliding time window, best first.
#[derive(Clone, Debug)]
struct Window<T> {
    span: Duration,
    candidates: VecDeque<(Time, T)>,
}

impl<T: Copy> Window<T> {
    fn new(span: Duration) -> Self {
        Self { span, candidates: VecDeque::new() }
    }

    /// Adds a sample; `beats(a, b)` says that `a` makes the older `b` useless.
    fn update(&mut self, now: Time, sample: T, beats: impl Fn(&T, &T) -> bool) -> T {
        while self.candidates.back().is_some_and(|(_, held)| beats(&sample, held)) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((now, sample));
        while self.candidates.front().is_some_and(|(at, _)| now.since(*at) > self.span) {
            self.candidates.pop_front();
        }
        self.candidates.front().map_or(sample, |(_, best)| *best)
    }

    fn best(&self) -> Option<T> {
        self.candidates.front().map(|(_, best)| *best)
    }
}

/// The smallest sample of a sliding time window.
#[derive(Clone, Debug)]
pub struct WindowedMin<T>(Window<T>);

/// The largest sample of a sliding time window.
#[derive(Clone, Debug)]
pub struct WindowedMax<T>(Window<T>);

impl<T: Copy + PartialOrd> WindowedMin<T> {
    /// A filter over the last `span`.
    pub fn new(span: Duration) -> Self {
        Self(Window::new(span))
    }

    /// Adds a sample and returns the smallest of the window.
    pub fn update(&mut self, now: Time, sample: T) -> T {
        self.0.update(now, sample, |new, held| new <= held)
    }

    /// The smallest sample of the window as of the last update.
    pub fn get(&self) -> Option<T> {
        self.0.best()
    }
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    /// A filter over the last `span`.
    pub fn new(span: Duration) -> Self {
        Self(Window::new(span))
    }

    /// Adds a sample and returns the largest of the window.
    pub fn update(&mut self, now: Time, sample: T) -> T {
        self.0.update(now, sample, |new, held| new >= held)
    }

    /// The largest sample of the window as of the last update.
    pub fn get(&self) -> Option<T> {
        self.0.best()
    }
}

/// Exponentially weighted moving average. The first sample is taken as it is.
#[derive(Clone, Copy, Debug)]
pub struct Ewma {
    weight: f64,
    mean: Option<f64>,
}

impl Ewma {
    /// An average in which a new sample counts `weight`, in 0..=1.
    pub const fn new(weight: f64) -> Self {
        Self { weight, mean: None }
    }

    /// Adds a sample and returns the average.
    pub fn update(&mut self, sample: f64) -> f64 {
        let mean = self.mean.map_or(sample, |mean| mean + self.weight * (sample - mean));
        // Decayed below the normal numbers it is zero: processors take many times as long over the others.
        let mean = if mean.abs() < f64::MIN_POSITIVE { 0.0 } else { mean };
        self.mean = Some(mean);
        mean
    }

    /// The average; `None` before the first sample.
    pub const fn get(&self) -> Option<f64> {
        self.mean
    }
}

/// Jain's fairness index `(sum x)^2 / (n sum x^2)`, in `1/n..=1`; `None` when there is nothing to divide.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windowed_minimum_forgets() {
        let mut min = WindowedMin::new(Duration::from_secs(10));
        assert_eq!(min.update(Time::from_millis(0), 5), 5);
        assert_eq!(min.update(Time::from_millis(4_000), 7), 5);
        assert_eq!(min.update(Time::from_millis(10_000), 9), 5);
        assert_eq!(min.update(Time::from_millis(10_001), 9), 7);
        assert_eq!(min.update(Time::from_millis(10_002), 1), 1);
    }

    #[test]
    fn a_windowed_maximum_mirrors_it() {
        let mut max = WindowedMax::new(Duration::from_secs(1));
        assert_eq!(max.update(Time::from_millis(0), 5), 5);
        assert_eq!(max.update(Time::from_millis(500), 3), 5);
        assert_eq!(max.update(Time::from_millis(1_001), 2), 3);
        assert_eq!(max.get(), Some(3));
    }

    #[test]
    fn equal_samples_are_held_once() {
        let (mut min, mut max) = (WindowedMin::new(Duration::from_secs(1)), WindowedMax::new(Duration::from_secs(1)));
        for millis in 0..100 {
            min.update(Time::from_millis(millis), 5);
            max.update(Time::from_millis(millis), 5);
        }
        assert_eq!((min.0.candidates.len(), max.0.candidates.len()), (1, 1));
    }

    #[test]
    fn ewma_starts_at_the_first_sample() {
        let mut mean = Ewma::new(0.25);
        assert!((mean.update(8.0) - 8.0).abs() < 1e-12);
        // 8 + 0.25 * (0 - 8) = 6
        assert!((mean.update(0.0) - 6.0).abs() < 1e-12);
    }

    #[test]
    fn ewma_ends_at_zero() {
        let mut mean = Ewma::new(0.5);
        mean.update(f64::MIN_POSITIVE);
        mean.update(0.0);
        assert_eq!(mean.get().map(f64::to_bits), Some(0));
    }

    #[test]
    fn jain_index_of_known_shares() {
        // (1+3)^2 / (2 * (1+9)) = 0.8
        assert!((jain_index(&[1.0, 3.0]).unwrap() - 0.8).abs() < 1e-12);
        assert!((jain_index(&[2.0, 2.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0]), None);
    }
}
