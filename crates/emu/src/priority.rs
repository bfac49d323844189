//! How the operating system treats the relay's thread.

use std::num::NonZeroU64;

use preempt_rt::sched::{Pid, Scheduler, SchedulerParams, set_scheduler};

/// Makes the calling thread's timers exact: by default they may be 50 us late.
pub(crate) fn sharpen_timers() {
    // A kernel that refuses leaves a relay that is late but right.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Asks that the calling thread runs whenever it is ready, before all ordinary threads, as the hardware it stands for would. Says
/// whether it was granted, which takes `CAP_SYS_NICE` or a limit `RLIMIT_RTPRIO` above zero.
///
/// The lowest real-time priority is enough: all ordinary threads come after it.
pub(crate) fn become_realtime() -> bool {
    set_scheduler(Pid::current_thread(), Scheduler::SCHED_FIFO, SchedulerParams { priority: 1 }).is_ok()
}
