//! NewReno congestion control (RFC 5681, with the recovery rules of RFC 9002 s7 that the session applies).
//!
//! Slow start grows the window by what is acknowledged, congestion avoidance by one packet per window; a recovery episode
//! halves it. Windows are kept in bytes; remainders of the congestion-avoidance increase are carried, not dropped.

use manypath_core::{Bytes, SubflowView, Time};

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::hystart::Growth;
use crate::penalty::penalised;
use crate::slow_start::{Early, SlowStart};

/// The smallest window after a loss, in packets (RFC 5681 eq. 4).
const MIN_WINDOW_PACKETS: f64 = 2.0;

/// NewReno for one subflow.
#[derive(Clone, Debug)]
pub struct Reno {
    /// Largest packet, bytes.
    mss: f64,
    /// Congestion window, bytes.
    cwnd: f64,
    /// Slow-start threshold, bytes; infinite before the first loss.
    ssthresh: f64,
    /// What ends slow start early.
    slow_start: SlowStart,
}

impl Reno {
    /// A controller at its initial window; `hystart` says how slow start ends before a loss.
    pub fn new(init: SubflowInit, hystart: Early) -> Self {
        // A window of less than one packet would send nothing.
        let mss = init.mss.as_f64().max(1.0);
        let cwnd = init.initial_window.as_f64().max(mss);
        Self { mss, cwnd, ssthresh: init.threshold(), slow_start: SlowStart::new(hystart) }
    }

    fn on_ack(&mut self, now: Time, packet: &Acked, view: &SubflowView) {
        let acked = packet.bytes.as_f64();
        if self.cwnd < self.ssthresh {
            match self.slow_start.on_ack(now, packet, view, self.cwnd / self.mss) {
                // RFC 5681 eq. 2 with the byte counting of RFC 3465; RFC 9002 s7.3.1.
                Growth::Grow(share) => {
                    self.cwnd += share * acked;
                    return;
                }
                Growth::Exit => self.ssthresh = self.cwnd,
            }
        }
        // RFC 5681 eq. 3: one packet per window.
        self.cwnd += self.mss * acked / self.cwnd;
    }

    fn on_congestion(&mut self) {
        // RFC 9002 s7.3.2 halves the window; RFC 5681 eq. 4 would halve the amount in flight.
        self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW_PACKETS * self.mss);
        self.cwnd = self.ssthresh;
        self.slow_start.ended();
    }

    fn on_penalty(&mut self) {
        (self.cwnd, self.ssthresh) = penalised(self.cwnd, self.ssthresh, self.mss);
    }

    fn on_timeout(&mut self, repeated: bool) {
        if !repeated {
            self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW_PACKETS * self.mss);
        }
        // RFC 5681 s3.1: the loss window is one packet.
        self.cwnd = self.mss;
        self.slow_start.ended();
    }
}

impl PathController for Reno {
    const ANSWERS_MARKS: bool = true;

    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Acked(acked) if !acked.in_recovery && !acked.app_limited => self.on_ack(now, acked, view),
            Event::Congestion { .. } | Event::Ecn { .. } => self.on_congestion(),
            Event::Penalised => self.on_penalty(),
            Event::Timeout { repeated } => self.on_timeout(*repeated),
            _ => {}
        }
    }

    fn limits(&self) -> Limits {
        let ssthresh = self.ssthresh.is_finite().then(|| Bytes::from_f64(self.ssthresh));
        Limits { cwnd: Bytes::from_f64(self.cwnd), pacing: None, ssthresh }
    }

    fn inspect(&self, out: &mut dyn Probe) {
        out.value("cwnd_bytes", self.cwnd);
        out.value("ssthresh_bytes", self.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, SubflowId};

    use super::*;

    const INIT: SubflowInit = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));

    /// The window in bytes and the slow-start threshold after these events.
    fn after(events: &[Event]) -> (f64, f64) {
        let (mut reno, view) = (Reno::new(INIT, Early::Never), SubflowView::new(SubflowId(0), INIT.mss));
        events.iter().for_each(|event| reno.on_event(Time::ZERO, event, &view));
        (reno.cwnd, reno.ssthresh)
    }

    fn acked(bytes: u64, in_recovery: bool, app_limited: bool) -> Event {
        Event::Acked(Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(bytes),
            sent_at: Time::ZERO,
            rtt: Duration::from_millis(100),
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery,
            app_limited,
        })
    }

    const LOSS: Event = Event::Congestion { sent_at: Time::ZERO };

    fn close((cwnd, ssthresh): (f64, f64), want: (f64, f64)) {
        assert!((cwnd - want.0).abs() < 1e-9 && (ssthresh - want.1).abs() < 1e-9, "{cwnd} {ssthresh}");
    }

    #[test]
    fn slow_start_adds_what_is_acknowledged_and_avoidance_a_packet_a_window() {
        // 10,000 + 1000.
        assert!((after(&[acked(1000, false, false)]).0 - 11_000.0).abs() < 1e-9);
        // 10,000 / 2 = 5000; 5000 + 1000 * 1000 / 5000 = 5200; 5200 + 1000 * 500 / 5200 = 5296.153846.
        let [whole, half] = [1000, 500].map(|bytes| acked(bytes, false, false));
        close(after(&[LOSS, whole, half]), (5200.0 + 5e5 / 5200.0, 5000.0));
    }

    #[test]
    fn congestion_halves_down_to_two_packets_and_a_timeout_leaves_one() {
        // 10,000, 5000, 2500, then 1250 < 2000.
        let mark = Event::Ecn { sent_at: Time::ZERO };
        close(after(&[LOSS, mark, mark]), (2000.0, 2000.0));
        let [first, again] = [false, true].map(|repeated| Event::Timeout { repeated });
        close(after(&[first, again]), (1000.0, 5000.0));
        close(after(&[LOSS, mark, mark, first]), (1000.0, 2000.0));
    }

    #[test]
    fn a_penalty_halves_the_window_and_the_threshold_only_after_slow_start() {
        close(after(&[LOSS, Event::Penalised]), (2500.0, 2500.0));
        let (cwnd, ssthresh) = after(&[Event::Penalised]);
        assert!((cwnd - 5000.0).abs() < 1e-9 && ssthresh.is_infinite(), "{cwnd} {ssthresh}");
    }

    #[test]
    fn recovery_and_applications_that_send_little_grow_nothing() {
        close(after(&[LOSS, acked(1000, true, false), acked(1000, false, true)]), (5000.0, 5000.0));
    }
}
