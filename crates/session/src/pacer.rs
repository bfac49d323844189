//! Pacing: when may the next packet of a subflow leave?

use manypath_core::{Bytes, Duration, Rate, Time};

/// A token bucket in its equivalent form of a virtual clock: each packet moves the earliest next departure by its time at
/// the pacing rate, and the clock lags behind real time by at most the burst, so that a late timer can be caught up.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    burst: Duration,
    next: Time,
    /// The rate of a subflow that sends again after it was idle, until an acknowledgement clocks it.
    restart: Option<Rate>,
}

impl Pacer {
    pub(crate) fn new(burst: Duration) -> Self {
        Self { burst, next: Time::ZERO, restart: None }
    }

    /// When a packet may leave.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Whether packets leave by the clock: at the controller's rate, or at that of a restart.
    pub(crate) fn paces(&self, pacing: Option<Rate>) -> bool {
        pacing.is_some() || self.restart.is_some()
    }

    /// A flight begins with nothing under way: after an idle time, at this rate in place of a burst of a whole window that was
    /// measured long ago (RFC 9002 s7.7).
    pub(crate) fn on_flight(&mut self, restart: Option<Rate>) {
        self.restart = restart;
    }

    /// Acknowledgements clock the flight.
    pub(crate) fn on_acked(&mut self) {
        self.restart = None;
    }

    /// Records that a packet left; `pacing` is the controller's rate.
    pub(crate) fn on_sent(&mut self, now: Time, size: Bytes, pacing: Option<Rate>) {
        if let Some(rate) = pacing.or(self.restart) {
            self.next = self.next.max(now - self.burst) + size.time_at(rate);
        }
    }

    /// Forgets what was sent, when a rate no longer holds.
    pub(crate) fn reset(&mut self) {
        self.next = Time::ZERO;
        self.restart = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_at_the_rate() {
        let mut pacer = Pacer::new(Duration::ZERO);
        let start = Time::from_millis(5);
        // 1500 B at 12 Mbit/s take 1 ms each.
        pacer.on_sent(start, Bytes::new(1500), Some(Rate::from_mbps(12.0)));
        assert_eq!(pacer.next(), Time::from_millis(6));
        pacer.on_sent(Time::from_millis(6), Bytes::new(1500), Some(Rate::from_mbps(12.0)));
        assert_eq!(pacer.next(), Time::from_millis(7));
    }

    #[test]
    fn a_restart_is_paced_until_it_is_acknowledged() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.on_flight(Some(Rate::from_mbps(12.0)));
        pacer.on_sent(Time::from_millis(5), Bytes::new(1500), None);
        assert!(pacer.paces(None));
        assert_eq!(pacer.next(), Time::from_millis(6));
        pacer.on_acked();
        assert!(!pacer.paces(None));
    }

    #[test]
    fn a_late_timer_is_caught_up_within_the_burst() {
        let mut pacer = Pacer::new(Duration::from_millis(2));
        let rate = Some(Rate::from_mbps(12.0));
        pacer.on_sent(Time::from_millis(10), Bytes::new(1500), rate);
        // Three packets fit at once at 20 ms: two of the burst and the one that is due.
        let mut sent = 0;
        while pacer.next() <= Time::from_millis(20) {
            pacer.on_sent(Time::from_millis(20), Bytes::new(1500), rate);
            sent += 1;
        }
        assert_eq!(sent, 3);
    }
}
