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
#[derive(Clone, Copy, Debug, Default)]
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

#[cfg(test)]
mod tests {
    use manypath_core::SubflowId;

    use super::*;

    const FLOW: FlowId = FlowId(3);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn data_waits_from_its_first_arrival_and_repairs_are_not_scheduling() {
        let mut meter = Meter::new(1);
        meter.on_packet(at(10), FLOW, 1_000, Bytes::new(1_000));
        // A subflow waits for a segment of its own from 12 to 20 ms and from 24 to 27 ms.
        for (now, waits) in [(12, true), (15, true), (20, false)] {
            meter.on_repairs(at(now), waits);
        }
        meter.on_packet(at(20), FLOW, 1_000, Bytes::new(1_000));
        meter.on_repairs(at(22), false);
        meter.on_repairs(at(24), true);
        meter.on_packet(at(25), FLOW, 2_000, Bytes::new(3_000));
        meter.on_repairs(at(27), false);
        meter.on_read(at(30), FLOW, 2_000);
        assert!(near(meter.out_of_order.mean(), 0.020), "{meter:?}");
        assert!(near(meter.scheduling.mean(), 0.020 - 0.011), "{meter:?}");
        assert!(near(meter.receive_buffer.max(), 3_000.0));
        // What begins where the reading ends was not read; of the second repair it has seen two milliseconds.
        meter.on_read(at(35), FLOW, 2_001);
        assert!(near(meter.out_of_order.mean(), (0.020 + 0.010) / 2.0), "{meter:?}");
        assert!(near(meter.scheduling.mean(), (0.009 + 0.008) / 2.0), "{meter:?}");
    }

    #[test]
    fn a_write_is_delivered_with_its_last_byte() {
        let mut meter = Meter::new(1);
        let written = |end, now| Written { flow: FLOW, end, at: at(now) };
        meter.on_written(&mut VecDeque::from([written(1_000, 5), written(2_000, 10)]));
        meter.on_read(at(20), FLOW, 999);
        assert!(meter.delay.mean().is_none());
        meter.on_read(at(25), FLOW, 1_000);
        assert!(near(meter.delay.mean(), 0.020));
        meter.on_read(at(30), FLOW, 2_000);
        assert!(near(meter.delay.mean(), 0.020) && near(meter.delay.max(), 0.020));
    }

    #[test]
    fn acknowledgements_that_were_overtaken_move_nothing_and_what_was_measured_before_the_warm_up_is_left_out() {
        let mut meter = Meter::new(1);
        let view = SubflowView {
            cwnd: Bytes::new(9_000),
            in_flight: Bytes::new(2_000),
            srtt: Some(Duration::from_millis(20)),
            pacing: Some(manypath_core::Rate::from_bps(8e6)),
            ..SubflowView::new(SubflowId(0), Bytes::new(1_000))
        };
        for left in [1_000, 500, 1_000, 1_500] {
            meter.on_ack(0, &view, left, Bytes::new(4_000));
        }
        assert!(near(meter.ack_jump.mean(), 750.0) && near(meter.ack_jump.max(), 1_000.0), "{meter:?}");
        assert!(near(meter.subflows[0].free_window.mean(), 7_000.0));
        meter.on_arrival(at(30), 0, SendTime(10_000));
        assert!(near(meter.subflows[0].one_way.mean(), 0.020));
        meter.on_written(&mut VecDeque::from([Written { flow: FLOW, end: 1_000, at: at(5) }]));
        meter.on_packet(at(10), FLOW, 0, Bytes::new(1_000));
        meter.on_read(at(20), FLOW, 1_000);
        let tallies = |meter: &Meter| {
            let SubflowMeter { one_way, free_window, cwnd, srtt, pacing } = meter.subflows[0];
            let Meter { out_of_order, scheduling, delay, ack_jump, send_buffer, receive_buffer, .. } = *meter;
            let all = [out_of_order, scheduling, delay, ack_jump, send_buffer, receive_buffer];
            all.into_iter()
                .chain([one_way, free_window, cwnd, srtt, pacing])
                .map(|tally| tally.mean().is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(tallies(&meter), [true; 11]);
        meter.restart();
        assert_eq!(tallies(&meter), [false; 11]);
        // The left edge stays where it was.
        meter.on_ack(0, &view, 1_600, Bytes::ZERO);
        assert!(near(meter.ack_jump.mean(), 100.0));
    }
}
