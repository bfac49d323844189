//! Waiting for datagrams, commands and the time, precisely.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use manypath_core::{Duration, Time};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::clock::Clock;
use crate::system::{During, SystemError};

/// Marks of the two descriptors that are not sockets.
const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Sockets reported per wait; the others are reported by the next one.
const EVENTS: usize = 64;

/// The earliest that the timer fires before a deadline, and the longest that the thread spins.
const LONGEST_LEAD: Duration = Duration::from_micros(100);

/// How long before a deadline the timer fires, so that the thread is awake at the deadline: the rest is spun away.
///
/// Waking up takes from microseconds on a busy processor to 80 us on an idle virtual one, so it is learned, as TCP learns its
/// timeout (RFC 6298 s2): mean and mean deviation with the gains 1/8 and 1/4. One
/// deviation on top of the mean gave the best 99th percentile for the processor time that it cost.
#[derive(Clone, Copy, Debug)]
struct Lead {
    mean: f64,
    deviation: f64,
}

impl Lead {
    const fn new() -> Self {
        // Nanoseconds. Learned anew within some ten wakes, so the start does not matter much.
        Self { mean: 30_000.0, deviation: 10_000.0 }
    }

    /// Learns from a wake this long after the timer was to fire. One that is late because the processor was taken away counts as
    /// the longest lead: spinning could not have helped.
    fn on_wake(&mut self, late: Duration) {
        let error = late.min(LONGEST_LEAD).as_nanos() as f64 - self.mean;
        self.mean += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
    }

    fn get(&self) -> Duration {
        Duration::from_secs_f64((self.mean + self.deviation) * 1e-9).min(LONGEST_LEAD)
    }
}

/// Wakes a [`Waiter`] from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn wake(&self) {
        // It fails only if the counter is full, and then the other side is awake anyway.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Waits for readable sockets, a waker, and a deadline.
#[derive(Debug)]
pub(crate) struct Waiter {
    clock: Clock,
    epoll: OwnedFd,
    timer: OwnedFd,
    waker: Waker,
    /// `None`: the timer fires at the deadline.
    lead: Option<Lead>,
    /// When the timer fires; `None` if it has fired.
    armed: Option<Time>,
}

impl Waiter {
    /// A waiter that is awake at its deadlines, for which it spins a little before each.
    pub(crate) fn exact(clock: Clock) -> Result<Self, SystemError> {
        Self::new(clock, Some(Lead::new()))
    }

    /// A waiter that is woken at its deadlines, and so is later by what waking takes, but never spins.
    pub(crate) fn thrifty(clock: Clock) -> Result<Self, SystemError> {
        Self::new(clock, None)
    }

    fn new(clock: Clock, lead: Option<Lead>) -> Result<Self, SystemError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).during("make an epoll instance")?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).during("make a timer")?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let waker = eventfd(0, flags).during("make an event descriptor")?;
        let waiter = Self { clock, epoll, timer, waker: Waker(Arc::new(waker)), lead, armed: None };
        waiter.watch(&waiter.timer, TIMER)?;
        waiter.watch(&*waiter.waker.0, WAKER)?;
        Ok(waiter)
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Reports `mark` when `socket` is readable, until it is closed. Marks of sockets are below 2^32.
    pub(crate) fn watch(&self, socket: impl AsFd, mark: u64) -> Result<(), SystemError> {
        let mark = epoll::EventData::new_u64(mark);
        epoll::add(&self.epoll, socket, mark, epoll::EventFlags::IN).during("watch a socket")
    }

    /// Reports the mark of `socket` no more.
    pub(crate) fn unwatch(&self, socket: impl AsFd) {
        // It fails only for a descriptor that is not watched.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until `deadline` (`None`: for ever) or until something is readable, and puts the marks of readable sockets into
    /// `ready`. With none of them, the deadline has come or the waker was used.
    pub(crate) fn wait(&mut self, deadline: Option<Time>, ready: &mut Vec<u64>) -> Result<(), SystemError> {
        ready.clear();
        let Some(deadline) = deadline else {
            return self.poll(false, ready);
        };
        let wake = deadline - self.lead.as_ref().map_or(Duration::ZERO, Lead::get);
        let remaining = wake.since(self.clock.now());
        if !remaining.is_zero() && self.armed != Some(wake) {
            self.arm(wake, remaining)?;
        }
        self.poll(remaining.is_zero(), ready)?;
        // Awake with nothing to read: either it is nearly time, or the waker was used and commands come first.
        if ready.is_empty() && self.clock.now() >= wake {
            while self.clock.now() < deadline {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Sets the timer to `wake`, which is `after` from now.
    fn arm(&mut self, wake: Time, after: Duration) -> Result<(), SystemError> {
        self.armed = Some(wake);
        let after = std::time::Duration::from(after);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Delays are hours at most, and nanoseconds below a billion.
        let it_value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(after.subsec_nanos()),
        };
        let spec = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec).during("set a timer")?;
        Ok(())
    }

    fn poll(&mut self, at_once: bool, ready: &mut Vec<u64>) -> Result<(), SystemError> {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS];
        let timeout = at_once.then_some(&NOW);
        let (events, _) = match epoll::wait(&self.epoll, &mut buffer, timeout) {
            // A signal interrupts the wait; the caller waits again.
            Err(Errno::INTR) => return Ok(()),
            result => result.during("wait for datagrams")?,
        };
        let mut counter = [0; 8];
        for event in events {
            let mark = event.data;
            match mark.u64() {
                // Both are non-blocking; reading makes them unreadable until the next time.
                TIMER => {
                    let _ = rustix::io::read(&self.timer, &mut counter);
                    if let (Some(armed), Some(lead)) = (self.armed.take(), &mut self.lead) {
                        lead.on_wake(self.clock.now().since(armed));
                    }
                }
                WAKER => {
                    let _ = rustix::io::read(&*self.waker.0, &mut counter);
                }
                mark => ready.push(mark),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_what_waking_takes_and_stays_bounded() {
        let mut lead = Lead::new();
        for _ in 0..100 {
            lead.on_wake(Duration::from_micros(60));
        }
        assert_eq!(lead.get().as_micros(), 60);
        for _ in 0..100 {
            lead.on_wake(Duration::from_secs(1));
        }
        assert_eq!(lead.get(), LONGEST_LEAD);
        for _ in 0..100 {
            lead.on_wake(Duration::ZERO);
        }
        assert!(lead.get() < Duration::from_micros(1));
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let clock = Clock::start();
        for make in [Waiter::exact, Waiter::thrifty] {
            let mut waiter = make(clock).unwrap();
            let mut ready = vec![7];
            for micros in [0, 50, 3_000] {
                let deadline = clock.now() + Duration::from_micros(micros);
                waiter.wait(Some(deadline), &mut ready).unwrap();
                assert!(clock.now() >= deadline && ready.is_empty());
            }
        }
    }

    #[test]
    fn a_waker_ends_a_wait_without_deadline() {
        let mut waiter = Waiter::exact(Clock::start()).unwrap();
        let waker = waiter.waker();
        let other = std::thread::spawn(move || waker.wake());
        waiter.wait(None, &mut Vec::new()).unwrap();
        other.join().unwrap();
    }
}
