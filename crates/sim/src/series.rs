//! Time series: values at equal intervals.

use std::collections::BTreeMap;

use manypath_cc::Probe;
use manypath_core::{Duration, SubflowId};
use manypath_scenario::Scenario;
use serde::Serialize;

use crate::engine::Simulation;
use crate::snapshot::Snapshot;

/// Time series of a run. Every list has one value for each of `time_s`; rates are means over the interval that ends there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// When, seconds.
    pub time_s: Vec<f64>,
    /// By connection.
    pub connections: Vec<ConnectionSeries>,
    /// By link.
    pub links: Vec<LinkSeries>,
}

/// Time series of a connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConnectionSeries {
    /// Its name.
    pub name: String,
    /// Payload delivered in order, bits per second.
    pub goodput_bps: Vec<f64>,
    /// Bytes in the sender's buffer.
    pub send_buffer_bytes: Vec<u64>,
    /// Bytes in the receiver's buffer.
    pub receive_buffer_bytes: Vec<u64>,
    /// By subflow.
    pub subflows: Vec<SubflowSeries>,
}

/// Time series of a subflow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SubflowSeries {
    /// Bytes on the wire of data packets, bits per second.
    pub sending_bps: Vec<f64>,
    /// Congestion window.
    pub cwnd_bytes: Vec<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Pacing rate; zero where there is none.
    pub pacing_bps: Vec<f64>,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt_s: Vec<f64>,
    /// Data packets declared lost in the interval.
    pub lost_packets: Vec<u64>,
    /// What the controller and the scheduler report by name; shorter than the others where a value is not always there.
    pub inspected: BTreeMap<String, Vec<f64>>,
}

/// Time series of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkSeries {
    /// Its name.
    pub name: String,
    /// Bytes in the queue.
    pub queue_bytes: Vec<u64>,
    /// What left the queue, bits per second.
    pub throughput_bps: Vec<f64>,
    /// Packets dropped in the interval, for whatever cause.
    pub dropped_packets: Vec<u64>,
}

/// Writes time series.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    before: Snapshot,
    pub(crate) series: Series,
}

struct Inspector<'a>(&'a mut BTreeMap<String, Vec<f64>>);

impl Probe for Inspector<'_> {
    fn value(&mut self, name: &'static str, value: f64) {
        match self.0.get_mut(name) {
            Some(values) => values.push(value),
            None => {
                self.0.insert(name.to_owned(), vec![value]);
            }
        }
    }
}

impl Recorder {
    pub(crate) fn new(interval: Duration, scenario: &Scenario) -> Self {
        let mut series = Series::default();
        for connection in &scenario.connections {
            let subflows = vec![SubflowSeries::default(); connection.paths.len()];
            let name = connection.name.clone();
            series.connections.push(ConnectionSeries { name, subflows, ..ConnectionSeries::default() });
        }
        for link in &scenario.links {
            series.links.push(LinkSeries { name: link.name.clone(), ..LinkSeries::default() });
        }
        Self { interval, before: Snapshot::default(), series }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn sample(&mut self, simulation: &mut Simulation) {
        let now = Snapshot::take(simulation);
        let seconds = self.interval.as_secs_f64();
        self.series.time_s.push(now.at.as_secs_f64());
        for (index, series) in self.series.connections.iter_mut().enumerate() {
            let (sender, receiver) = (&simulation.ends[index * 2].session, &simulation.ends[index * 2 + 1].session);
            let (counts, before) = (&now.connections[index], self.before.connections.get(index));
            let read = before.map_or(counts.read, |before| counts.read - before.read);
            series.goodput_bps.push(read.as_f64() * 8.0 / seconds);
            series.send_buffer_bytes.push(sender.queue().held().get());
            series.receive_buffer_bytes.push(receiver.receive_buffered().get());
            for (number, series) in series.subflows.iter_mut().enumerate() {
                let held = before.and_then(|before| before.subflows.get(number)).copied().unwrap_or_default();
                let counts = &counts.subflows[number];
                let view = &sender.view().subflows[number];
                series.sending_bps.push((counts.sent.bytes - held.sent.bytes) as f64 * 8.0 / seconds);
                series.cwnd_bytes.push(view.cwnd.get());
                series.in_flight_bytes.push(view.in_flight.get());
                series.pacing_bps.push(view.pacing.map_or(0.0, manypath_core::Rate::as_bps));
                series.srtt_s.push(view.srtt.map_or(0.0, Duration::as_secs_f64));
                series.lost_packets.push(counts.lost - held.lost);
                // Paths are at most 64.
                let id = SubflowId(u32::try_from(number).unwrap_or(u32::MAX));
                let mut inspector = Inspector(&mut series.inspected);
                sender.controller().inspect(id, &mut inspector);
                sender.scheduler().inspect(id, &mut |name, value| inspector.value(name, value));
            }
        }
        for (index, series) in self.series.links.iter_mut().enumerate() {
            let (counters, before) = (now.links[index], self.before.links.get(index).copied().unwrap_or_default());
            series.queue_bytes.push(counters.backlog.bytes.get());
            let left = counters.delivered.bytes - before.delivered.bytes;
            series.throughput_bps.push(left.as_f64() * 8.0 / seconds);
            series.dropped_packets.push(counters.dropped.total().packets - before.dropped.total().packets);
        }
        self.before = now;
    }
}
