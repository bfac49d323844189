//! What is measured packet by packet, where the scenario asks for time series. Measuring only reads: a run with it gives the
//! same results as one without.

use std::collections::{BTreeMap, VecDeque};

use manypath_core::{Bytes, FlowId, Time};

use crate::application::Written;

/// Mean and maximum of values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    count: u64,
    sum: f64,
    max: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }

    /// `None` before the first value.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// `None` before the first value.
    pub(crate) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }
}

/// The measures of one connection.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Arrived and not readable yet: offset and time, by flow.
    waiting: BTreeMap<(FlowId, u64), Time>,
    /// Written and not read, in order of writing.
    written: VecDeque<Written>,
    /// Seconds from a packet's arrival to its delivery in order (STMS s3: out-of-order delay).
    pub(crate) out_of_order: Tally,
    /// Seconds from a write to the delivery of its last byte.
    pub(crate) delay: Tally,
    /// Free window of the acknowledged subflow when an acknowledgement has come, bytes (STMS Fig. 11).
    pub(crate) free_window: Tally,
    /// How far a data acknowledgement moves the left edge, bytes (STMS Fig. 5).
    pub(crate) ack_jump: Tally,
    /// Bytes in the sender's buffer when an acknowledgement has come.
    pub(crate) send_buffer: Tally,
    /// Bytes in the receiver's buffer when a packet has come.
    pub(crate) receive_buffer: Tally,
    /// The left edge as of the last acknowledgement.
    left: u64,
}

impl Meter {
    pub(crate) fn on_written(&mut self, log: &mut VecDeque<Written>) {
        self.written.append(log);
    }

    pub(crate) fn on_packet(&mut self, now: Time, flow: FlowId, offset: u64, buffered: Bytes) {
        // Of data that comes twice the first arrival counts.
        self.waiting.entry((flow, offset)).or_insert(now);
        self.receive_buffer.add(buffered.as_f64());
    }

    /// Everything of the flow below `end` was read.
    pub(crate) fn on_read(&mut self, now: Time, flow: FlowId, end: u64) {
        while let Some(entry) = self.waiting.range((flow, 0)..(flow, end)).next().map(|(key, at)| (*key, *at)) {
            self.waiting.remove(&entry.0);
            self.out_of_order.add(now.since(entry.1).as_secs_f64());
        }
        let delay = &mut self.delay;
        self.written.retain(|written| {
            let read = written.flow == flow && written.end <= end;
            if read {
                delay.add(now.since(written.at).as_secs_f64());
            }
            !read
        });
    }

    pub(crate) fn on_ack(&mut self, left: u64, free: Bytes, held: Bytes) {
        // Acknowledgements of different paths overtake each other.
        let left = left.max(self.left);
        self.ack_jump.add((left - self.left) as f64);
        self.left = left;
        self.free_window.add(free.as_f64());
        self.send_buffer.add(held.as_f64());
    }

    /// Begins anew after the warm-up; what is under way stays.
    pub(crate) fn restart(&mut self) {
        let (waiting, written) = (core::mem::take(&mut self.waiting), core::mem::take(&mut self.written));
        *self = Self { waiting, written, left: self.left, ..Self::default() };
    }
}
