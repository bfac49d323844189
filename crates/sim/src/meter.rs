//! What is measured packet by packet, where the scenario asks for time series. Measuring only reads: a run with it gives the
//! same results as one without.

use std::collections::{BTreeMap, VecDeque};

use manypath_core::{Bytes, Duration, FlowId, SubflowView, Time};
use manypath_session::record::SendTime;

use crate::application::Written;
use crate::tally::Tally;

/// When something arrived, and what the stopwatch showed then.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Time,
    repairs: Duration,
}

/// Adds up the time for which something is the case.
#[derive(Clone, Copy, Debug, Default)]
struct Stopwatch {
    sum: Duration,
    since: Option<Time>,
}

impl Stopwatch {
    fn set(&mut self, now: Time, runs: bool) {
        self.sum = self.at(now);
        self.since = runs.then_some(now);
    }

    fn at(&self, now: Time) -> Duration {
        self.sum + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// The measures of one connection.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Arrived and not readable yet, by flow and offset.
    waiting: BTreeMap<(FlowId, u64), Arrived>,
    /// When a TCP subflow waits for a segment of its own.
    repairs: Stopwatch,
    /// Written and not read: ends of writes and their times, by flow.
    written: BTreeMap<(FlowId, u64), Time>,
    /// Seconds from a packet's arrival to its delivery in order (STMS s3: out-of-order delay).
    pub(crate) out_of_order: Tally,
    /// The same without the time in which a subflow waited for a segment of its own: what scheduling causes.
    pub(crate) scheduling: Tally,
    /// Seconds from a write to the delivery of its last byte.
    pub(crate) delay: Tally,
    /// How far a data acknowledgement moves the left edge if it does, bytes (STMS Fig. 5).
    pub(crate) ack_jump: Tally,
    /// Bytes in the sender's buffer when an acknowledgement has come.
    pub(crate) send_buffer: Tally,
    /// Bytes in the receiver's buffer when a packet has come.
    pub(crate) receive_buffer: Tally,
    /// By subflow.
    pub(crate) subflows: Vec<SubflowMeter>,
    /// The left edge as of the last acknowledgement.
    left: u64,
}

/// The measures of one subflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubflowMeter {
    /// Seconds from a data packet's departure to its arrival.
    pub(crate) one_way: Tally,
    /// When an acknowledgement has come: window less what is in flight, bytes (STMS Fig. 11).
    pub(crate) free_window: Tally,
    /// When an acknowledgement has come: congestion window, bytes.
    pub(crate) cwnd: Tally,
    /// When an acknowledgement has come: smoothed round-trip time, seconds.
    pub(crate) srtt: Tally,
    /// When an acknowledgement has come: pacing rate where there is one, bit/s.
    pub(crate) pacing: Tally,
}

impl Meter {
    pub(crate) fn new(subflows: usize) -> Self {
        Self { subflows: vec![SubflowMeter::default(); subflows], ..Self::default() }
    }

    pub(crate) fn on_written(&mut self, log: &mut VecDeque<Written>) {
        self.written.extend(log.drain(..).map(|written| ((written.flow, written.end), written.at)));
    }

    /// A data packet has arrived, whatever it brought.
    pub(crate) fn on_arrival(&mut self, now: Time, subflow: usize, sent: SendTime) {
        // Send times are microseconds that wrap around.
        #[allow(clippy::cast_possible_truncation)]
        let elapsed = ((now.as_nanos() / 1000) as u32).wrapping_sub(sent.0);
        if let Some(subflow) = self.subflows.get_mut(subflow) {
            subflow.one_way.add(f64::from(elapsed) * 1e-6);
        }
    }

    /// Something new has arrived, and waits until it can be read.
    pub(crate) fn on_packet(&mut self, now: Time, flow: FlowId, offset: u64, buffered: Bytes) {
        // Of data that comes twice the first arrival counts.
        self.waiting.entry((flow, offset)).or_insert(Arrived { at: now, repairs: self.repairs.at(now) });
        self.receive_buffer.add(buffered.as_f64());
    }

    /// Says whether a subflow waits for a segment of its own from now on.
    pub(crate) fn on_repairs(&mut self, now: Time, wait: bool) {
        self.repairs.set(now, wait);
    }

    /// Everything of the flow below `end` was read.
    pub(crate) fn on_read(&mut self, now: Time, flow: FlowId, end: u64) {
        while let Some(entry) = first_in(&self.waiting, (flow, 0)..(flow, end)) {
            self.waiting.remove(&entry.0);
            let (waited, repairs) = (now.since(entry.1.at), self.repairs.at(now) - entry.1.repairs);
            self.out_of_order.add(waited.as_secs_f64());
            self.scheduling.add((waited - repairs).as_secs_f64());
        }
        while let Some(entry) = first_in(&self.written, (flow, 0)..=(flow, end)) {
            self.written.remove(&entry.0);
            self.delay.add(now.since(entry.1).as_secs_f64());
        }
    }

    /// An acknowledgement has come on a subflow, which is in this state now.
    pub(crate) fn on_ack(&mut self, subflow: usize, view: &SubflowView, left: u64, held: Bytes) {
        // Acknowledgements of different paths overtake each other.
        let left = left.max(self.left);
        if left > self.left {
            // With those that move nothing the mean would be what is acknowledged over the number of acknowledgements, however
            // it is acknowledged.
            self.ack_jump.add((left - self.left) as f64);
        }
        self.left = left;
        self.send_buffer.add(held.as_f64());
        let Some(subflow) = self.subflows.get_mut(subflow) else { return };
        subflow.free_window.add((view.cwnd - view.in_flight).as_f64());
        subflow.cwnd.add(view.cwnd.as_f64());
        if let Some(srtt) = view.srtt {
            subflow.srtt.add(srtt.as_secs_f64());
        }
        if let Some(pacing) = view.pacing {
            subflow.pacing.add(pacing.as_bps());
        }
    }

    /// Summaries begin anew after the warm-up; what is under way stays.
    pub(crate) fn restart(&mut self) {
        let Self { out_of_order, scheduling, delay, ack_jump, send_buffer, receive_buffer, subflows, .. } = self;
        [out_of_order, scheduling, delay, ack_jump, send_buffer, receive_buffer].into_iter().for_each(Tally::restart);
        for SubflowMeter { one_way, free_window, cwnd, srtt, pacing } in subflows {
            [one_way, free_window, cwnd, srtt, pacing].into_iter().for_each(Tally::restart);
        }
    }
}

/// The first entry of a range.
fn first_in<T: Copy>(
    map: &BTreeMap<(FlowId, u64), T>,
    range: impl core::ops::RangeBounds<(FlowId, u64)>,
) -> Option<((FlowId, u64), T)> {
    map.range(range).next().map(|(key, value)| (*key, *value))
}
