//! A value that changes at known times.

use manypath_core::Time;

/// A step function of time, read at times that never go back. Each step is passed once, so a read costs one comparison.
#[derive(Clone, Debug)]
pub(crate) struct Steps<T> {
    current: T,
    next_at: Time,
    rest: std::vec::IntoIter<(Time, T)>,
}

impl<T: Copy> Steps<T> {
    /// `initial`, then each of `changes` (in order of time) from its time on.
    pub(crate) fn new(initial: T, changes: Vec<(Time, T)>) -> Self {
        let rest = changes.into_iter();
        Self { current: initial, next_at: next_of(&rest), rest }
    }

    /// The value in force at `now`; a change counts from its very time on.
    pub(crate) fn at(&mut self, now: Time) -> T {
        while self.next_at <= now {
            let Some((_, value)) = self.rest.next() else { break };
            self.current = value;
            self.next_at = next_of(&self.rest);
        }
        self.current
    }

    /// The value as of the last read.
    pub(crate) const fn current(&self) -> T {
        self.current
    }

    /// The value that will be in force at `time`, which is not before the last read.
    pub(crate) fn then(&self, time: Time) -> T {
        let passed = self.upcoming().partition_point(|(at, _)| *at <= time);
        passed.checked_sub(1).map_or(self.current, |last| self.upcoming()[last].1)
    }

    /// When the current value ends; [`Time::MAX`] for never.
    pub(crate) const fn ends(&self) -> Time {
        self.next_at
    }

    /// The steps after the current one.
    pub(crate) fn upcoming(&self) -> &[(Time, T)] {
        self.rest.as_slice()
    }
}

fn next_of<T>(rest: &std::vec::IntoIter<(Time, T)>) -> Time {
    rest.as_slice().first().map_or(Time::MAX, |(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_from_its_time_on() {
        let ms = Time::from_millis;
        let mut steps = Steps::new('a', vec![(ms(10), 'b'), (ms(20), 'c')]);
        assert_eq!(steps.at(ms(9)), 'a');
        assert_eq!([9, 10, 19, 20, 99].map(|time| steps.then(ms(time))), ['a', 'b', 'b', 'c', 'c']);
        assert_eq!(steps.ends(), ms(10));
        assert_eq!(steps.at(ms(10)), 'b');
        assert_eq!(steps.upcoming(), [(ms(20), 'c')]);
        assert_eq!(steps.at(Time::MAX), 'c');
        assert_eq!(steps.at(Time::MAX), 'c');
        assert_eq!(steps.ends(), Time::MAX);
    }
}
