//! Pacing: when may the next packet of a subflow leave?

use manypath_core::{Bytes, Duration, Rate, SubflowView, Time};

/// A window that may leave at once (RFC 6928, RFC 9002 s7.7), packets.
const INITIAL_WINDOW: u64 = 10;

/// A token bucket in its equivalent form of a virtual clock: each packet moves the earliest next departure by its time at
/// the pacing rate, and the clock lags behind real time by at most the burst, so that a late timer can be caught up.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    burst: Duration,
    paces_windows: bool,
    next: Time,
    /// The rate at which a window leaves that the controller does not pace; at once: `None`.
    spread: Option<Rate>,
}

impl Pacer {
    pub(crate) fn new(burst: Duration, paces_windows: bool) -> Self {
        Self { burst, paces_windows, next: Time::ZERO, spread: None }
    }

    /// When a packet may leave.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Whether packets leave by the clock: at the controller's rate, or at that of a window.
    pub(crate) fn paces(&self, pacing: Option<Rate>) -> bool {
        pacing.is_some() || self.spread.is_some()
    }

    /// A packet is about to leave. A window that the controller does not pace is spread: always, or where acknowledgements clock it
    /// only the first flight after an idle time, since its window was measured long ago (RFC 9002 s7.7).
    pub(crate) fn on_sending(&mut self, now: Time, view: &SubflowView) {
        if self.paces_windows {
            self.spread = window_rate(view);
        } else if view.in_flight.is_zero() {
            self.spread = window_rate(view).filter(|_| view.is_idle(now));
        }
    }

    /// An acknowledgement clocks the flight, unless windows are paced.
    pub(crate) fn on_acked(&mut self) {
        if !self.paces_windows {
            self.spread = None;
        }
    }

    /// Records that a packet left; `pacing` is the controller's rate.
    pub(crate) fn on_sent(&mut self, now: Time, size: Bytes, pacing: Option<Rate>) {
        if let Some(rate) = pacing.or(self.spread) {
            self.next = self.next.max(now - self.burst) + size.time_at(rate);
        }
    }

    /// Forgets what was sent, when a rate no longer holds.
    pub(crate) fn reset(&mut self) {
        self.next = Time::ZERO;
        self.spread = None;
    }
}

/// How fast a window leaves that is spread: 1.25 of it a round trip (RFC 9002 s7.7). `None` if the controller paces, if there is no
/// round trip to spread it over, or if all of it may leave at once.
fn window_rate(view: &SubflowView) -> Option<Rate> {
    let clocked = view.pacing.is_none() && view.cwnd > view.mss * INITIAL_WINDOW;
    let srtt = view.srtt.filter(|srtt| clocked && !srtt.is_zero())?;
    Some(Rate::from_bytes_per(view.cwnd, srtt * 4 / 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use manypath_core::SubflowId;

    #[test]
    fn packets_leave_at_the_rate() {
        let mut pacer = Pacer::new(Duration::ZERO, false);
        let start = Time::from_millis(5);
        // 1500 B at 12 Mbit/s take 1 ms each.
        pacer.on_sent(start, Bytes::new(1500), Some(Rate::from_mbps(12.0)));
        assert_eq!(pacer.next(), Time::from_millis(6));
        pacer.on_sent(Time::from_millis(6), Bytes::new(1500), Some(Rate::from_mbps(12.0)));
        assert_eq!(pacer.next(), Time::from_millis(7));
    }

    #[test]
    fn a_late_timer_is_caught_up_within_the_burst() {
        let mut pacer = Pacer::new(Duration::from_millis(2), false);
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

    #[test]
    fn the_whole_first_flight_after_an_idle_time_is_spread_until_an_acknowledgement_clocks_it() {
        let mut view = SubflowView::new(SubflowId(0), Bytes::new(1000));
        view.srtt = Some(Duration::from_millis(100));
        view.cwnd = Bytes::new(20_000);
        view.last_sent = Some(Time::ZERO);
        let now = Time::from_millis(2_000);
        // RFC 9002 s7.7: 1.25 windows a round trip, 20 kB in 80 ms, is a kilobyte in 4 ms.
        for paces_windows in [false, true] {
            let mut pacer = Pacer::new(Duration::ZERO, paces_windows);
            view.in_flight = Bytes::ZERO;
            for sent in 1..=3 {
                pacer.on_sending(now, &view);
                pacer.on_sent(now, view.mss, None);
                view.in_flight += view.mss;
                assert_eq!(pacer.next(), now + Duration::from_millis(4 * sent));
            }
            pacer.on_acked();
            assert_eq!(pacer.paces(None), paces_windows);
            // A rate that no longer holds keeps nothing waiting.
            pacer.reset();
            assert!(!pacer.paces(None) && pacer.next() <= now);
        }
    }
}
