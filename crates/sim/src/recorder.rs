//! Takes the values of time series.

use std::collections::BTreeMap;

use manypath_cc::Probe;
use manypath_core::{Bytes, Duration, Rate, SubflowId, SubflowView, Time, jain_index};
use manypath_scenario::Scenario;
use manypath_session::Session;

use crate::causes::Causes;
use crate::engine::Simulation;
use crate::meter::Meter;
use crate::report::summary::seconds;
use crate::series::{ConnectionSeries, DropSeries, LinkSeries, Series, SubflowSeries};
use crate::snapshot::{ConnectionCounts, Snapshot, SubflowCounts};
use crate::tally::{Sum, Tally};

/// Writes time series.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    before: Snapshot,
    /// Sums of what is measured packet by packet, as of the last sample; by connection.
    sums: Vec<Sums>,
    /// By link.
    peak_rates: Vec<Rate>,
    pub(crate) series: Series,
}

/// Sums of one connection.
#[derive(Clone, Debug, Default)]
struct Sums {
    out_of_order: Sum,
    delay: Sum,
    ack_jump: Sum,
    /// Free window and one-way delay, by subflow.
    subflows: Vec<(Sum, Sum)>,
}

impl Recorder {
    pub(crate) fn new(interval: Duration, scenario: &Scenario, seed: u64) -> Self {
        let connections = scenario.connections.iter().map(|connection| ConnectionSeries {
            name: connection.name.clone(),
            subflows: vec![SubflowSeries::default(); connection.paths.len()],
            ..ConnectionSeries::default()
        });
        let links = scenario.links.iter().map(|link| LinkSeries { name: link.name.clone(), ..LinkSeries::default() });
        let sums = scenario
            .connections
            .iter()
            .map(|connection| Sums { subflows: vec![Default::default(); connection.paths.len()], ..Sums::default() });
        Self {
            interval,
            before: Snapshot::default(),
            sums: sums.collect(),
            peak_rates: scenario.links.iter().map(|link| link.peak_rate(scenario.duration, seed)).collect(),
            series: Series { connections: connections.collect(), links: links.collect(), ..Series::default() },
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn sample(&mut self, simulation: &mut Simulation) {
        let now = Snapshot::take(simulation);
        let held = self.series.time_s.len();
        self.series.time_s.push(seconds(now.at.since(Time::ZERO)));
        let mut goodputs = Vec::new();
        for (index, series) in self.series.connections.iter_mut().enumerate() {
            let (counts, none) = (&now.connections[index], ConnectionCounts::default());
            let before = self.before.connections.get(index).unwrap_or(&none);
            let goodput = per_second(counts.read - before.read, self.interval);
            goodputs.push(goodput);
            series.goodput_bps.push(goodput);
            series.retransmitted_bytes.push((counts.totals.retransmitted - before.totals.retransmitted).get());
            let (sender, receiver) = (&simulation.ends[index * 2], &simulation.ends[index * 2 + 1]);
            series.send_buffer_bytes.push(sender.session.queue().held().get());
            series.receive_buffer_bytes.push(receiver.buffered().get());
            subflows(series, counts, before, &sender.session, held, self.interval);
            if let Some(meter) = simulation.world.meters.get(index) {
                self.sums[index].sample(series, meter);
            }
        }
        self.series.jain.push(jain_index(&goodputs).unwrap_or(f64::NAN));
        for (index, series) in self.series.links.iter_mut().enumerate() {
            let before = self.before.links.get(index).copied().unwrap_or_default();
            link(series, &now.links[index], &before, self.peak_rates[index], self.interval);
        }
        self.before = now;
    }
}

/// What a throughput is of a link's peak rate. A link that is never up used nothing.
pub(crate) fn used(throughput: f64, peak: Rate) -> f64 {
    throughput / peak.as_bps().max(manypath_link::MIN_RATE_BPS)
}

fn per_second(bytes: Bytes, interval: Duration) -> f64 {
    (bytes / interval).as_bps()
}

/// Takes the values of a connection's subflows, and what the connection has of their sums. `held`: how many samples there
/// were before.
fn subflows(
    series: &mut ConnectionSeries,
    counts: &ConnectionCounts,
    before: &ConnectionCounts,
    sender: &Session,
    held: usize,
    interval: Duration,
) {
    let (mut sent, mut cost) = (Bytes::ZERO, 0.0);
    for (number, series) in series.subflows.iter_mut().enumerate() {
        let earlier = before.subflows.get(number).copied().unwrap_or_default();
        let now = &counts.subflows[number];
        // Paths are at most 64.
        let id = SubflowId(u32::try_from(number).unwrap_or(u32::MAX));
        let absent = SubflowView::new(id, Bytes::ZERO);
        let joined = sender.view().subflows.get(number);
        let view = joined.unwrap_or(&absent);
        let bytes = Bytes::new(now.sent.bytes - earlier.sent.bytes);
        sent += bytes;
        cost += bytes.as_f64() * view.cost;
        subflow(series, now, &earlier, interval);
        series.cwnd_bytes.push(view.cwnd.get());
        series.in_flight_bytes.push(view.in_flight.get());
        series.pacing_bps.push(view.pacing.map_or(f64::NAN, Rate::as_bps));
        series.srtt_s.push(view.srtt.map_or(f64::NAN, Duration::as_secs_f64));
        let mut inspector = Inspector { values: &mut series.inspected, held };
        if joined.is_some() {
            sender.controller().inspect(id, &mut inspector);
            sender.scheduler().inspect(id, &mut |name, value| inspector.value(name, value));
        }
        inspector.finish();
    }
    series.sending_bps.push(per_second(sent, interval));
    series.cost_per_s.push(cost / interval.as_secs_f64());
}

fn subflow(series: &mut SubflowSeries, now: &SubflowCounts, before: &SubflowCounts, interval: Duration) {
    series.sending_bps.push(per_second(Bytes::new(now.sent.bytes - before.sent.bytes), interval));
    series.delivered_bps.push(per_second(now.delivered - before.delivered, interval));
    series.repeated_packets.push(now.sent.repeated - before.sent.repeated);
    series.lost_packets.push(now.lost - before.lost);
    drops(&mut series.dropped, now.dropped - before.dropped);
}

fn link(
    series: &mut LinkSeries,
    now: &manypath_link::Counters,
    before: &manypath_link::Counters,
    peak: Rate,
    interval: Duration,
) {
    series.queue_bytes.push(now.backlog.bytes.get());
    let accepted = |counters: &manypath_link::Counters| counters.delivered.packets + counters.backlog.packets;
    let (packets, waited) = (accepted(now) - accepted(before), now.queueing_sum - before.queueing_sum);
    series.queueing_s.push(if packets > 0 { waited.as_secs_f64() / packets as f64 } else { f64::NAN });
    let throughput = per_second(now.delivered.bytes - before.delivered.bytes, interval);
    series.throughput_bps.push(throughput);
    series.utilisation.push(used(throughput, peak));
    series.marked.push(now.marked - before.marked);
    drops(&mut series.dropped, Causes::from(&now.dropped) - Causes::from(&before.dropped));
}

fn drops(series: &mut DropSeries, causes: Causes) {
    series.queue_full.push(causes.queue_full);
    series.random.push(causes.random);
    series.early.push(causes.early);
    series.dead.push(causes.dead);
}

impl Sums {
    /// Takes the means of what was measured since the last time.
    fn sample(&mut self, series: &mut ConnectionSeries, meter: &Meter) {
        series.out_of_order_delay_s.push(since(&mut self.out_of_order, &meter.out_of_order));
        series.write_to_delivery_s.push(since(&mut self.delay, &meter.delay));
        series.data_ack_jump_bytes.push(since(&mut self.ack_jump, &meter.ack_jump));
        for ((sums, meter), series) in self.subflows.iter_mut().zip(&meter.subflows).zip(&mut series.subflows) {
            series.free_window_bytes.push(since(&mut sums.0, &meter.free_window));
            series.one_way_delay_s.push(since(&mut sums.1, &meter.one_way));
        }
    }
}

/// The mean since the last time, or NaN.
fn since(before: &mut Sum, tally: &Tally) -> f64 {
    let now = tally.total();
    let earlier = core::mem::replace(before, now);
    now.mean_since(earlier).unwrap_or(f64::NAN)
}

/// Takes values by name. One that comes late or not always has NaN where it was not there.
struct Inspector<'a> {
    values: &'a mut BTreeMap<String, Vec<f64>>,
    /// How many samples there were before.
    held: usize,
}

impl Inspector<'_> {
    /// Fills up what was not there this time.
    fn finish(self) {
        self.values.values_mut().for_each(|values| values.resize(self.held + 1, f64::NAN));
    }
}

impl Probe for Inspector<'_> {
    fn value(&mut self, name: &'static str, value: f64) {
        match self.values.get_mut(name) {
            // A name that is reported twice counts once.
            Some(values) if values.len() <= self.held => values.push(value),
            Some(_) => {}
            None => {
                let mut values = vec![f64::NAN; self.held];
                values.push(value);
                self.values.insert(name.to_owned(), values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_wait_is_of_the_packets_that_came_in_the_interval_and_some_still_wait() {
        let mut before = manypath_link::Counters::default();
        (before.delivered.packets, before.backlog.packets) = (10, 4);
        before.queueing_sum = Duration::from_millis(50);
        let mut now = before;
        // Twelve left, and one fewer waits: eleven came.
        (now.delivered.packets, now.backlog.packets) = (22, 3);
        now.queueing_sum = Duration::from_millis(83);
        let mut series = LinkSeries::default();
        link(&mut series, &now, &before, Rate::from_mbps(1.0), Duration::from_secs(1));
        link(&mut series, &now, &now, Rate::from_mbps(1.0), Duration::from_secs(1));
        assert!((series.queueing_s[0] - 0.003).abs() < 1e-12 && series.queueing_s[1].is_nan(), "{series:?}");
    }

    #[test]
    fn drops_are_told_by_their_causes() {
        let mut series = DropSeries::default();
        drops(&mut series, Causes { queue_full: 1, random: 2, early: 3, dead: 4 });
        let DropSeries { queue_full, random, early, dead } = series;
        assert_eq!([queue_full, random, early, dead], [[1], [2], [3], [4]]);
    }

    #[test]
    fn a_value_that_comes_late_twice_or_not_has_one_entry_a_sample() {
        let mut values = BTreeMap::new();
        for (held, names) in [&["a"][..], &["a", "b", "b"], &["b"]].into_iter().enumerate() {
            let mut inspector = Inspector { values: &mut values, held };
            names.iter().for_each(|name| inspector.value(name, 1.0));
            inspector.finish();
        }
        let there = |name: &str| values[name].iter().map(|value| !value.is_nan()).collect::<Vec<_>>();
        assert_eq!(there("a"), [true, true, false]);
        assert_eq!(there("b"), [false, true, true]);
    }
}
