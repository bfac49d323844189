//! Keeping processors awake, so that timers are in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use preempt_rt::sched::{Pid, Scheduler, SchedulerParams, set_scheduler};

/// How often a thread counts before it looks whether it is to end: some microseconds.
const TURNS: u32 = 10_000;

/// While it lives, no processor that this process may use goes to sleep.
///
/// A processor with nothing to do sleeps, and a virtual one gives itself back to its host, which may take milliseconds to return it:
/// whoever measures transports in real time then measures that. On each processor a thread of the class `SCHED_IDLE` (sched(7))
/// spins: it runs only where nothing else wants to, and whatever wakes up takes its place at once. The price is electricity: all
/// processors look busy.
#[derive(Debug)]
#[must_use = "processors are kept awake while it lives"]
pub struct Awake {
    ends: Arc<AtomicBool>,
}

impl Awake {
    /// Begins to keep them awake. Where the operating system refuses a thread or its class, they sleep as before.
    pub fn keep() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..processors {
            let ends = ends.clone();
            let named = thread::Builder::new().name("manypath-awake".to_owned());
            let _ = named.spawn(move || spin_until(&ends));
        }
        Self { ends }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // Nobody waits for the threads: where others want all processors they get to see it late.
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn spin_until(ends: &AtomicBool) {
    if set_scheduler(Pid::current_thread(), Scheduler::SCHED_IDLE, SchedulerParams { priority: 0 }).is_err() {
        return;
    }
    while !ends.load(Ordering::Relaxed) {
        for turn in 0..TURNS {
            std::hint::black_box(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many threads of this process spin in the class `SCHED_IDLE`, which is 5.
    fn spinning() -> usize {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).ok());
        // proc_pid_stat(5): after the name in brackets the 3rd field begins; the class is the 41st.
        let classed =
            |stat: &String| stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(38)) == Some("5");
        stats.filter(|stat| stat.contains("(manypath-awake)")).filter(classed).count()
    }

    #[test]
    fn one_thread_for_each_processor_spins_where_nothing_else_runs() {
        let processors = thread::available_parallelism().unwrap().get();
        // Beside other programs it may take a while until each has had its turn to join the class, and to end.
        let wait_for = |count| {
            let mut looks = (0..3000).inspect(|_| thread::sleep(std::time::Duration::from_millis(10)));
            assert!(looks.any(|_| spinning() == count), "{} of {count} threads spin", spinning());
        };
        let awake = Awake::keep();
        wait_for(processors);
        drop(awake);
        wait_for(0);
    }
}
