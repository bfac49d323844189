//! The tables of simulator runs.

use manypath_sim::{
    ConnectionReport, ConnectionSeries, DropSeries, FileReport, FileSummary, LinkReport, LinkSeries, Report, Series,
    SubflowMeasures, SubflowReport, SubflowSeries,
};

use crate::column::Rows;
use crate::table::Table;

/// The tables of some runs, a row of each table for each run and whatever it is about: `runs`, `connections`, `subflows`,
/// `links`, `files`, and with time series `run_series`, `connection_series`, `subflow_series`, `link_series` and `internals`.
pub fn run_tables(reports: &[Report]) -> Vec<Table> {
    let mut tables = vec![runs(reports), connections(reports), subflows(reports), links(reports), files(reports)];
    if reports.iter().any(|report| report.series.is_some()) {
        tables.extend([
            run_series(reports),
            connection_series(reports),
            subflow_series(reports),
            link_series(reports),
            internals(reports),
        ]);
    }
    tables
}

const SEED: &str = "Seed of the run.";
const CONNECTION: &str = "Name of the connection.";
const SUBFLOW: &str = "Number of the subflow in the connection, from 0.";
const TIME: &str = "End of the sampling interval, s of simulated time.";

fn runs(reports: &[Report]) -> Table {
    Rows::new("runs", "One row a run.", reports)
        .whole("seed", SEED, |run| run.seed)
        .text("scenario", "Name of the scenario.", |run| &run.scenario)
        .real("duration_s", "Simulated time, s.", |run| run.duration_s)
        .real("warmup_s", "Time at the start that summaries leave out, s.", |run| run.warmup_s)
        .whole("events", "Events that happened.", |run| run.events)
        .real("goodput_bps", "Goodput of all connections, bit/s.", |run| run.goodput_bps)
        .maybe("jain", "Jain's index of the connections' goodputs, 1/n to 1.", |run| run.jain)
        .table()
}

fn connections(reports: &[Report]) -> Table {
    let rows: Vec<(u64, &ConnectionReport)> =
        reports.iter().flat_map(|run| run.connections.iter().map(|held| (run.seed, held))).collect();
    let measure = |pick: fn(&manypath_sim::Measures) -> Option<f64>| {
        move |(_, held): &(u64, &ConnectionReport)| held.measures.as_ref().and_then(pick)
    };
    Rows::new("connections", "One row a run and connection: what came of it after the warm-up.", &rows)
        .whole("seed", SEED, |row| row.0)
        .text("connection", CONNECTION, |row| &row.1.name)
        .text("cc", "Congestion controller.", |row| &row.1.cc)
        .text("scheduler", "Packet scheduler.", |row| &row.1.scheduler)
        .real("goodput_bps", "Payload delivered in order, bit/s.", |row| row.1.goodput_bps)
        .real("sending_bps", "Bytes on the wire of data packets, bit/s.", |row| row.1.sending_bps)
        .whole("delivered_packets", "Data packets that brought something new.", |row| row.1.delivered_packets)
        .whole("delivered_bytes", "Payload delivered in order, bytes.", |row| row.1.delivered_bytes)
        .whole("retransmitted_bytes", "Payload sent again, because it was lost or as a copy, bytes.", |row| {
            row.1.retransmitted_bytes
        })
        .whole("duplicated_bytes", "Payload sent as copies the scheduler wished for, bytes.", |row| {
            row.1.duplicated_bytes
        })
        .whole("received_again_bytes", "Payload that arrived a second time, bytes.", |row| row.1.received_again_bytes)
        .real("cost", "Bytes sent times cost a byte, summed over subflows.", |row| row.1.cost)
        .real("cost_per_s", "The same a second (Uni-MPTCP eq. 26).", |row| row.1.cost_per_s)
        .whole("files", "Files that began after the warm-up and arrived.", |row| {
            file(row, |held| held.count).unwrap_or(0)
        })
        .maybe("completion_mean_s", "Their time from beginning to completion, mean, s.", |row| {
            file(row, |held| held.completion_mean_s)
        })
        .maybe("completion_p50_s", "The same, median, s, right to 1%.", |row| file(row, |held| held.completion_p50_s))
        .maybe("completion_p95_s", "The same, 95th percentile, s.", |row| file(row, |held| held.completion_p95_s))
        .maybe("completion_p99_s", "The same, 99th percentile, s.", |row| file(row, |held| held.completion_p99_s))
        .maybe("completion_max_s", "The same, maximum, s.", |row| file(row, |held| held.completion_max_s))
        .whole("files_refused", "Files of the whole run that no flow could be opened for.", |row| row.1.files_refused)
        .maybe(
            "out_of_order_delay_mean_s",
            "Time from a packet's arrival to its delivery in order, mean, s.",
            measure(|held| held.out_of_order_delay_s.mean),
        )
        .maybe("out_of_order_delay_max_s", "The same, maximum, s.", measure(|held| held.out_of_order_delay_s.max))
        .maybe(
            "scheduling_delay_mean_s",
            "The part of it in which no `tcp` subflow waited for a lost segment of its own, mean, s.",
            measure(|held| held.scheduling_delay_s.mean),
        )
        .maybe(
            "write_to_delivery_mean_s",
            "Time from a write to the delivery of its last byte, mean, s.",
            measure(|held| held.write_to_delivery_s.mean),
        )
        .maybe("write_to_delivery_max_s", "The same, maximum, s.", measure(|held| held.write_to_delivery_s.max))
        .maybe(
            "data_ack_jump_mean_bytes",
            "How far an acknowledgement moves the left edge if it does, mean, bytes.",
            measure(|held| held.data_ack_jump_bytes.mean),
        )
        .maybe("data_ack_jump_max_bytes", "The same, maximum, bytes.", measure(|held| held.data_ack_jump_bytes.max))
        .maybe(
            "send_buffer_mean_bytes",
            "Bytes in the sender's buffer when an acknowledgement has come, mean.",
            measure(|held| held.send_buffer_bytes.mean),
        )
        .maybe("send_buffer_max_bytes", "The same, maximum.", measure(|held| held.send_buffer_bytes.max))
        .maybe(
            "receive_buffer_mean_bytes",
            "Bytes in the receiver's buffer when a packet has come, mean.",
            measure(|held| held.receive_buffer_bytes.mean),
        )
        .maybe("receive_buffer_max_bytes", "The same, maximum.", measure(|held| held.receive_buffer_bytes.max))
        .table()
}

/// A value of a connection's file summary.
fn file<V>(row: &(u64, &ConnectionReport), pick: fn(&FileSummary) -> V) -> Option<V> {
    row.1.file_summary.as_ref().map(pick)
}

/// A subflow's summary: the run's seed, the connection, the number of the subflow, and the summary.
type OneSubflow<'a> = (u64, &'a ConnectionReport, u64, &'a SubflowReport);

fn subflows(reports: &[Report]) -> Table {
    let rows: Vec<OneSubflow<'_>> = reports
        .iter()
        .flat_map(|run| run.connections.iter().map(|connection| (run.seed, connection)))
        .flat_map(|(seed, connection)| {
            let each = (0..).zip(&connection.subflows);
            each.map(move |(number, subflow)| (seed, connection, number, subflow))
        })
        .collect();
    let measure =
        |pick: fn(&SubflowMeasures) -> Option<f64>| move |row: &OneSubflow<'_>| row.3.measures.as_ref().and_then(pick);
    Rows::new("subflows", "One row a run, connection and subflow: what came of it after the warm-up.", &rows)
        .whole("seed", SEED, |row| row.0)
        .text("connection", CONNECTION, |row| &row.1.name)
        .whole("subflow", SUBFLOW, |row| row.2)
        .whole("sent_packets", "Data packets sent, copies included.", |row| row.3.sent_packets)
        .whole("sent_bytes", "Their bytes on the wire.", |row| row.3.sent_bytes)
        .real("sending_bps", "Those, bit/s.", |row| row.3.sending_bps)
        .real("delivered_bps", "Record bytes acknowledged, bit/s.", |row| row.3.delivered_bps)
        .whole("repeated_packets", "Data packets whose data had been sent before.", |row| row.3.repeated_packets)
        .whole("lost_packets", "Data packets that the sender declared lost, rightly or not.", |row| row.3.lost_packets)
        .whole("dropped_queue_full", "Data packets dropped because a queue was full.", |row| row.3.dropped_queue_full)
        .whole("dropped_random", "Data packets lost at random, in bursts or not.", |row| row.3.dropped_random)
        .whole("dropped_early", "Data packets dropped early (RED).", |row| row.3.dropped_early)
        .whole("dropped_dead", "Data packets dropped because a link was dead for good.", |row| row.3.dropped_dead)
        .maybe("srtt_s", "Smoothed round-trip time at the end, s.", |row| row.3.srtt_s)
        .maybe("min_rtt_s", "Least round-trip time of the whole run, s.", |row| row.3.min_rtt_s)
        .maybe("max_rtt_s", "Largest round-trip time of the whole run, s.", |row| row.3.max_rtt_s)
        .whole("cwnd_bytes", "Congestion window at the end, bytes.", |row| row.3.cwnd_bytes)
        .real("cost", "Relative cost of a byte.", |row| row.3.cost)
        .maybe(
            "one_way_delay_mean_s",
            "Time from a data packet's departure to its arrival, mean, s.",
            measure(|held| held.one_way_delay_s.mean),
        )
        .maybe("one_way_delay_max_s", "The same, maximum, s.", measure(|held| held.one_way_delay_s.max))
        .maybe(
            "free_window_mean_bytes",
            "The window's free part when an acknowledgement has come, mean, bytes.",
            measure(|held| held.free_window_bytes.mean),
        )
        .maybe("free_window_max_bytes", "The same, maximum, bytes.", measure(|held| held.free_window_bytes.max))
        .maybe(
            "cwnd_mean_bytes",
            "Congestion window when an acknowledgement has come, mean, bytes.",
            measure(|held| held.cwnd_bytes.mean),
        )
        .maybe("cwnd_max_bytes", "The same, maximum, bytes.", measure(|held| held.cwnd_bytes.max))
        .maybe(
            "srtt_mean_s",
            "Smoothed round-trip time when an acknowledgement has come, mean, s.",
            measure(|held| held.srtt_s.mean),
        )
        .maybe("srtt_max_s", "The same, maximum, s.", measure(|held| held.srtt_s.max))
        .maybe(
            "pacing_mean_bps",
            "Pacing rate when an acknowledgement has come, mean, bit/s.",
            measure(|held| held.pacing_bps.mean),
        )
        .maybe("pacing_max_bps", "The same, maximum, bit/s.", measure(|held| held.pacing_bps.max))
        .table()
}

fn links(reports: &[Report]) -> Table {
    let rows: Vec<(u64, &LinkReport)> =
        reports.iter().flat_map(|run| run.links.iter().map(|held| (run.seed, held))).collect();
    Rows::new("links", "One row a run and link (one direction): what came of it after the warm-up.", &rows)
        .whole("seed", SEED, |row| row.0)
        .text("link", "Name of the link.", |row| &row.1.name)
        .whole("offered_packets", "Packets that were to be sent over it.", |row| row.1.offered_packets)
        .whole("delivered_bytes", "Bytes that left its queue.", |row| row.1.delivered_bytes)
        .real("utilisation", "Share of its peak rate, or of its trace's mean, that was used.", |row| row.1.utilisation)
        .whole("dropped_queue_full", "Packets dropped because the queue was full.", |row| row.1.dropped_queue_full)
        .whole("dropped_random", "Packets lost at random, in bursts or not.", |row| row.1.dropped_random)
        .whole("dropped_early", "Packets dropped early (RED).", |row| row.1.dropped_early)
        .whole("dropped_dead", "Packets dropped because the link was dead for good.", |row| row.1.dropped_dead)
        .whole("marked", "Packets marked (ECN).", |row| row.1.marked)
        .maybe("queueing_mean_s", "Wait of a packet behind others, mean, s.", |row| row.1.queueing_mean_s)
        .real("queueing_max_s", "The longest such wait of the whole run, s.", |row| row.1.queueing_max_s)
        .whole("peak_queue_bytes", "The largest queue of the whole run, bytes.", |row| row.1.peak_queue_bytes)
        .table()
}

fn files(reports: &[Report]) -> Table {
    let rows: Vec<(u64, &ConnectionReport, &FileReport)> = reports
        .iter()
        .flat_map(|run| run.connections.iter().map(|connection| (run.seed, connection)))
        .flat_map(|(seed, connection)| connection.files.iter().map(move |file| (seed, connection, file)))
        .collect();
    let about = "One row a file that arrived, the first ten thousand of a connection, in the order of arrival.";
    Rows::new("files", about, &rows)
        .whole("seed", SEED, |row| row.0)
        .text("connection", CONNECTION, |row| &row.1.name)
        .real("start_s", "When it began, s of simulated time.", |row| row.2.start_s)
        .real("completion_s", "Time until the receiver had all of it, s.", |row| row.2.completion_s)
        .whole("bytes", "Its size, bytes.", |row| row.2.bytes)
        .table()
}

/// A row of a time series: the seed, when, the values, and which of them.
type At<'a, S> = (u64, f64, &'a S, usize);

/// The rows of one list of values.
fn samples<'a, S>(seed: u64, times: &'a [f64], series: &'a S) -> impl Iterator<Item = At<'a, S>> {
    times.iter().enumerate().map(move |(index, time)| (seed, *time, series, index))
}

/// A value of a list, or NaN.
fn at(values: &[f64], index: usize) -> f64 {
    values.get(index).copied().unwrap_or(f64::NAN)
}

fn count(values: &[u64], index: usize) -> u64 {
    values.get(index).copied().unwrap_or(0)
}

fn run_series(reports: &[Report]) -> Table {
    let mut rows: Vec<At<'_, Series>> = Vec::new();
    for (run, series) in reports.iter().filter_map(|run| Some((run, run.series.as_ref()?))) {
        rows.extend(samples(run.seed, &series.time_s, series));
    }
    Rows::new("run_series", "One row a run and sampling interval.", &rows)
        .whole("seed", SEED, |row| row.0)
        .real("time_s", TIME, |row| row.1)
        .real("goodput_bps", "Goodput of all connections in the interval, bit/s.", |row| {
            row.2.connections.iter().map(|held| at(&held.goodput_bps, row.3)).sum()
        })
        .real("jain", "Jain's index of the connections' goodputs in the interval, 1/n to 1.", |row| {
            at(&row.2.jain, row.3)
        })
        .table()
}

fn connection_series(reports: &[Report]) -> Table {
    let mut rows: Vec<At<'_, ConnectionSeries>> = Vec::new();
    for (run, series) in reports.iter().filter_map(|run| Some((run, run.series.as_ref()?))) {
        series.connections.iter().for_each(|held| rows.extend(samples(run.seed, &series.time_s, held)));
    }
    Rows::new("connection_series", "One row a run, connection and sampling interval.", &rows)
        .whole("seed", SEED, |row| row.0)
        .real("time_s", TIME, |row| row.1)
        .text("connection", CONNECTION, |row| &row.2.name)
        .real("goodput_bps", "Payload delivered in order in the interval, bit/s.", |row| at(&row.2.goodput_bps, row.3))
        .real("sending_bps", "Bytes on the wire of data packets in the interval, bit/s.", |row| {
            at(&row.2.sending_bps, row.3)
        })
        .whole(
            "retransmitted_bytes",
            "Payload sent again in the interval, because it was lost or as a copy, bytes.",
            |row| count(&row.2.retransmitted_bytes, row.3),
        )
        .real("cost_per_s", "Bytes sent a second times cost a byte, summed over subflows.", |row| {
            at(&row.2.cost_per_s, row.3)
        })
        .real("out_of_order_delay_s", "Mean time from arrival to delivery in order, s.", |row| {
            at(&row.2.out_of_order_delay_s, row.3)
        })
        .real("write_to_delivery_s", "Mean time from a write to the delivery of its last byte, s.", |row| {
            at(&row.2.write_to_delivery_s, row.3)
        })
        .real("data_ack_jump_bytes", "Mean jump of the left edge at an acknowledgement that moves it, bytes.", |row| {
            at(&row.2.data_ack_jump_bytes, row.3)
        })
        .whole("send_buffer_bytes", "Bytes in the sender's buffer.", |row| count(&row.2.send_buffer_bytes, row.3))
        .whole("receive_buffer_bytes", "Bytes in the receiver's buffer.", |row| {
            count(&row.2.receive_buffer_bytes, row.3)
        })
        .table()
}

/// A subflow's series with the connection's name and its number.
type OfSubflow<'a> = (&'a str, u64, &'a SubflowSeries);

fn each_subflow(reports: &[Report]) -> Vec<(&Report, &[f64], OfSubflow<'_>)> {
    let mut all = Vec::new();
    for (run, series) in reports.iter().filter_map(|run| Some((run, run.series.as_ref()?))) {
        for connection in &series.connections {
            for (number, subflow) in (0..).zip(&connection.subflows) {
                all.push((run, series.time_s.as_slice(), (connection.name.as_str(), number, subflow)));
            }
        }
    }
    all
}

fn subflow_series(reports: &[Report]) -> Table {
    let each = each_subflow(reports);
    let rows: Vec<At<'_, OfSubflow<'_>>> =
        each.iter().flat_map(|(run, times, series)| samples(run.seed, times, series)).collect();
    Rows::new("subflow_series", "One row a run, connection, subflow and sampling interval.", &rows)
        .whole("seed", SEED, |row| row.0)
        .real("time_s", TIME, |row| row.1)
        .text("connection", CONNECTION, |row| row.2.0)
        .whole("subflow", SUBFLOW, |row| row.2.1)
        .real("sending_bps", "Bytes on the wire of data packets in the interval, bit/s.", |row| {
            at(&row.2.2.sending_bps, row.3)
        })
        .whole("cwnd_bytes", "Congestion window, bytes.", |row| count(&row.2.2.cwnd_bytes, row.3))
        .whole("in_flight_bytes", "Bytes in flight.", |row| count(&row.2.2.in_flight_bytes, row.3))
        .real("delivered_bps", "Record bytes acknowledged in the interval, bit/s.", |row| {
            at(&row.2.2.delivered_bps, row.3)
        })
        .real("free_window_bytes", "The window's free part when an acknowledgement has come, mean, bytes.", |row| {
            at(&row.2.2.free_window_bytes, row.3)
        })
        .real("pacing_bps", "Pacing rate, bit/s.", |row| at(&row.2.2.pacing_bps, row.3))
        .real("srtt_s", "Smoothed round-trip time, s.", |row| at(&row.2.2.srtt_s, row.3))
        .real("one_way_delay_s", "Time from a data packet's departure to its arrival, mean, s.", |row| {
            at(&row.2.2.one_way_delay_s, row.3)
        })
        .whole("repeated_packets", "Data packets in the interval whose data had been sent before.", |row| {
            count(&row.2.2.repeated_packets, row.3)
        })
        .whole("lost_packets", "Data packets declared lost in the interval.", |row| count(&row.2.2.lost_packets, row.3))
        .drops("Data packets", |row| (&row.2.2.dropped, row.3))
        .table()
}

fn link_series(reports: &[Report]) -> Table {
    let mut rows: Vec<At<'_, LinkSeries>> = Vec::new();
    for (run, series) in reports.iter().filter_map(|run| Some((run, run.series.as_ref()?))) {
        series.links.iter().for_each(|held| rows.extend(samples(run.seed, &series.time_s, held)));
    }
    Rows::new("link_series", "One row a run, link (one direction) and sampling interval.", &rows)
        .whole("seed", SEED, |row| row.0)
        .real("time_s", TIME, |row| row.1)
        .text("link", "Name of the link.", |row| &row.2.name)
        .whole("queue_bytes", "Bytes in the queue.", |row| count(&row.2.queue_bytes, row.3))
        .real("queueing_s", "Wait of a packet behind others, mean in the interval, s.", |row| {
            at(&row.2.queueing_s, row.3)
        })
        .real("throughput_bps", "What left the queue in the interval, bit/s.", |row| at(&row.2.throughput_bps, row.3))
        .real("utilisation", "The same as a share of the peak rate, or of the trace's mean.", |row| {
            at(&row.2.utilisation, row.3)
        })
        .whole("marked", "Packets marked (ECN) in the interval.", |row| count(&row.2.marked, row.3))
        .drops("Packets", |row| (&row.2.dropped, row.3))
        .table()
}

impl<R> Rows<'_, R> {
    /// Columns for drops by cause of an interval.
    fn drops<'b>(self, what: &str, pick: impl Fn(&R) -> (&'b DropSeries, usize)) -> Self {
        let about = |cause: &str| format!("{what} dropped in the interval: {cause}.");
        let value = |list: fn(&DropSeries) -> &[u64]| {
            let pick = &pick;
            move |row: &R| {
                let (series, index) = pick(row);
                count(list(series), index)
            }
        };
        self.whole("dropped_queue_full", &about("the queue was full"), value(|held| &held.queue_full))
            .whole("dropped_random", &about("at random, in bursts or not"), value(|held| &held.random))
            .whole("dropped_early", &about("early (RED)"), value(|held| &held.early))
            .whole("dropped_dead", &about("the link was dead for good"), value(|held| &held.dead))
    }
}

/// What controllers and schedulers report differs from one to the other: one row a value.
fn internals(reports: &[Report]) -> Table {
    let each = each_subflow(reports);
    let mut rows: Vec<(u64, f64, &OfSubflow<'_>, &str, f64)> = Vec::new();
    for (run, times, series) in &each {
        for (name, values) in &series.2.inspected {
            for (time, value) in times.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
                rows.push((run.seed, *time, series, name, *value));
            }
        }
    }
    let about = "One row a run, sampling interval, subflow and value that its controller or scheduler reports.";
    Rows::new("internals", about, &rows)
        .whole("seed", SEED, |row| row.0)
        .real("time_s", TIME, |row| row.1)
        .text("connection", CONNECTION, |row| row.2.0)
        .whole("subflow", SUBFLOW, |row| row.2.1)
        .text("name", "Name of the value, which ends with its unit where it has one.", |row| row.3)
        .real("value", "The value.", |row| row.4)
        .table()
}
