//! What the operating system refused, and the thread's use of the processor.

use std::io;

use manypath_core::Duration;
use rustix::time::{ClockId, clock_gettime};

/// The operating system refused something.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {reason}")]
pub struct SystemError {
    /// What was tried.
    pub action: &'static str,
    /// What it said. It is part of the message.
    pub reason: io::Error,
}

/// Names what was tried when an operation fails.
pub(crate) trait During<T> {
    fn during(self, action: &'static str) -> Result<T, SystemError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, action: &'static str) -> Result<T, SystemError> {
        self.map_err(|error| SystemError { action, reason: error.into() })
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(spent.tv_sec)) + Duration::from_nanos(part(spent.tv_nsec))
}
