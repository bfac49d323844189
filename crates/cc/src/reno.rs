//! NewReno congestion control (RFC 5681, with the recovery rules of RFC 9002 s7 that the session applies).
//!
//! Slow start grows the window by what is acknowledged, congestion avoidance by one packet per window; a recovery episode
//! halves it. Windows are kept in bytes; remainders of the congestion-avoidance increase are carried, not dropped.

use manypath_core::{Bytes, SubflowView, Time};

use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::hystart::{Growth, HyStart};

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
    /// HyStart++ of the first slow start, where it is wanted.
    hystart: Option<HyStart>,
}

impl Reno {
    /// A controller at its initial window; `hystart` says whether its first slow start ends by HyStart++.
    pub fn new(init: SubflowInit, hystart: bool) -> Self {
        // A window of less than one packet would send nothing.
        let mss = init.mss.as_f64().max(1.0);
        let cwnd = init.initial_window.as_f64().max(mss);
        Self { mss, cwnd, ssthresh: f64::INFINITY, hystart: hystart.then(HyStart::default) }
    }

    fn on_ack(&mut self, packet: &Acked, delivered: Bytes) {
        let acked = packet.bytes.as_f64();
        let mut share = 1.0;
        if self.cwnd < self.ssthresh
            && let Some(hystart) = &mut self.hystart
        {
            match hystart.on_ack(packet, delivered) {
                Growth::Grow(of) => share = of,
                Growth::Exit => {
                    self.ssthresh = self.cwnd;
                    self.hystart = None;
                }
            }
        }
        if self.cwnd < self.ssthresh {
            // RFC 5681 eq. 2 with the byte counting of RFC 3465; RFC 9002 s7.3.1.
            self.cwnd += share * acked;
        } else {
            // RFC 5681 eq. 3: one packet per window.
            self.cwnd += self.mss * acked / self.cwnd;
        }
    }

    fn on_congestion(&mut self) {
        // RFC 9002 s7.3.2 halves the window; RFC 5681 eq. 4 would halve the amount in flight.
        self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW_PACKETS * self.mss);
        self.cwnd = self.ssthresh;
        // RFC 9406 s4.2: only for the first slow start.
        self.hystart = None;
    }

    fn on_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW_PACKETS * self.mss);
        // RFC 5681 s3.1: the loss window is one packet.
        self.cwnd = self.mss;
        self.hystart = None;
    }
}

impl PathController for Reno {
    fn on_event(&mut self, _now: Time, event: &Event, view: &SubflowView) {
        match event {
            Event::Acked(acked) if !acked.in_recovery && !acked.app_limited => self.on_ack(acked, view.delivered),
            Event::Congestion { .. } | Event::Ecn { .. } | Event::Penalised => self.on_congestion(),
            Event::Timeout => self.on_timeout(),
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
