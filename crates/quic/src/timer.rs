//! A timer of the kernel's precision: the runtime's own timers are a millisecond coarse, 12.5 KB at 100 Mbit/s, more than a
//! shallow queue holds.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::fd;

/// A one-shot timer. Armed by one task and awaited by another.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    /// A timer that is not armed. Must be called in the runtime that awaits it.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { fd: fd::readable(timerfd_create(TimerfdClockId::Monotonic, flags)?)? })
    }

    /// Arms the timer, in place of what it was armed for. A time that has come already fires at once.
    pub(crate) fn arm(&self, after: Duration) -> io::Result<()> {
        // Zero would disarm.
        let after = after.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(after.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Waits until the timer fires.
    pub(crate) async fn fired(&self) -> io::Result<()> {
        loop {
            let mut ready = self.fd.readable().await?;
            let mut count = [0; 8];
            match read(self.fd.get_ref(), &mut count) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
