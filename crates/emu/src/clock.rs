//! The relay's clock: [`Time`] since the relay started, so that the links' schedules start with the relay.

use std::time::Instant;

use manypath_core::{Duration, Time};

/// Monotonic time since the relay started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + Duration::from(self.start.elapsed())
    }
}
