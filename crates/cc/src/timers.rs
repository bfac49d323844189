//! The earliest of the subflows' timers, kept up to date so that asking for it costs nothing.

use manypath_core::{SubflowId, Time};

/// One timer a subflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// By subflow id.
    each: Vec<Option<Time>>,
    next: Option<Time>,
}

impl Timers {
    /// Sets or clears a subflow's timer.
    pub fn set(&mut self, id: SubflowId, at: Option<Time>) {
        if self.each.len() <= id.index() {
            self.each.resize(id.index() + 1, None);
        }
        let held = &mut self.each[id.index()];
        if *held != at {
            *held = at;
            self.next = self.each.iter().flatten().min().copied();
        }
    }

    /// A subflow's timer.
    pub fn get(&self, id: SubflowId) -> Option<Time> {
        self.each.get(id.index()).copied().flatten()
    }

    /// The earliest.
    pub const fn next(&self) -> Option<Time> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_follows_every_change() {
        let mut timers = Timers::default();
        let at = |millis| Some(Time::from_millis(millis));
        assert_eq!(timers.next(), None);
        timers.set(SubflowId(2), at(30));
        timers.set(SubflowId(0), at(20));
        assert_eq!(timers.next(), at(20));
        timers.set(SubflowId(0), at(40));
        assert_eq!((timers.next(), timers.get(SubflowId(0))), (at(30), at(40)));
        timers.set(SubflowId(2), None);
        assert_eq!(timers.next(), at(40));
    }
}
