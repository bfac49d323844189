//! What a run found: summaries after the warm-up, and time series.

use manypath_core::{Bytes, Duration, jain_index};
use manypath_scenario::Scenario;
use serde::Serialize;

use crate::engine::Simulation;
use crate::meter::Tally;
use crate::series::Series;
use crate::snapshot::Snapshot;

/// The results of a run. Its JSON is a pure function of scenario and seed.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Simulated time, seconds.
    pub duration_s: f64,
    /// Time at the start that summaries leave out, seconds.
    pub warmup_s: f64,
    /// Events that happened.
    pub events: u64,
    /// Jain's fairness index over the connections' goodputs; `None` if nothing arrived.
    pub jain: Option<f64>,
    /// Goodput of all connections, bits per second.
    pub goodput_bps: f64,
    /// By connection.
    pub connections: Vec<ConnectionReport>,
    /// By link.
    pub links: Vec<LinkReport>,
    /// Time series, where the scenario asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// A connection's summary.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Its name.
    pub name: String,
    /// Its congestion controller.
    pub cc: String,
    /// Its scheduler.
    pub scheduler: String,
    /// Payload delivered in order, bits per second.
    pub goodput_bps: f64,
    /// Data packets that brought something new.
    pub delivered_packets: u64,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Payload sent again because it was lost, bytes.
    pub retransmitted_bytes: u64,
    /// Payload sent as copies that the scheduler wished for, bytes.
    pub duplicated_bytes: u64,
    /// Payload received that had arrived before, bytes.
    pub received_again_bytes: u64,
    /// Cost of what was sent: the sum over subflows of bytes sent times cost a byte (paper 004 eq. 26).
    pub cost: f64,
    /// Files that arrived, in the order of their ends.
    pub files: Vec<FileReport>,
    /// Files that no flow could be opened for.
    pub files_refused: u64,
    /// What is measured packet by packet, where the scenario asks for time series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measures: Option<Measures>,
    /// By subflow.
    pub subflows: Vec<SubflowReport>,
}

/// A file that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// When it began, seconds.
    pub start_s: f64,
    /// Time from its beginning until the receiver had all of it, seconds.
    pub completion_s: f64,
    /// Its size.
    pub bytes: u64,
}

/// Mean and maximum; `None` where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MeanMax {
    /// The mean.
    pub mean: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

/// What is measured packet by packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Seconds from a packet's arrival to its delivery in order (STMS's out-of-order delay).
    pub out_of_order_delay_s: MeanMax,
    /// Seconds from a write to the delivery of its last byte.
    pub write_to_delivery_s: MeanMax,
    /// Free window of the acknowledged subflow after an acknowledgement, bytes (STMS Fig. 11).
    pub free_window_bytes: MeanMax,
    /// How far a data acknowledgement moves the left edge, bytes (STMS Fig. 5).
    pub data_ack_jump_bytes: MeanMax,
    /// Bytes in the sender's buffer.
    pub send_buffer_bytes: MeanMax,
    /// Bytes in the receiver's buffer.
    pub receive_buffer_bytes: MeanMax,
}

/// A subflow's summary.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowReport {
    /// Data packets sent, copies included.
    pub sent_packets: u64,
    /// Their bytes on the wire.
    pub sent_bytes: u64,
    /// Those, bits per second.
    pub sending_bps: f64,
    /// Record bytes acknowledged, bits per second.
    pub delivered_bps: f64,
    /// Data packets declared lost.
    pub lost_packets: u64,
    /// Smoothed round-trip time at the end, seconds; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Smallest round-trip time, seconds; `None` before the first sample.
    pub min_rtt_s: Option<f64>,
    /// Largest round-trip time, seconds.
    pub max_rtt_s: f64,
    /// Congestion window at the end, bytes.
    pub cwnd_bytes: u64,
    /// Relative cost of a byte.
    pub cost: f64,
}

/// A link's summary.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Packets offered to it.
    pub offered_packets: u64,
    /// Bytes that left its queue.
    pub delivered_bytes: u64,
    /// Share of its peak rate that was used, or of its trace's mean.
    pub utilisation: f64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Packets lost at random, in bursts or not.
    pub dropped_random: u64,
    /// Packets dropped early (RED).
    pub dropped_early: u64,
    /// Packets dropped because the link was dead for good.
    pub dropped_dead: u64,
    /// Packets marked.
    pub marked: u64,
    /// Mean wait of a packet behind others, seconds; `None` without packets.
    pub queueing_mean_s: Option<f64>,
    /// The longest such wait of the whole run, seconds.
    pub queueing_max_s: f64,
    /// The largest queue of the whole run, bytes.
    pub peak_queue_bytes: u64,
}

impl Report {
    /// The report as JSON, for machines.
    pub fn to_json(&self) -> String {
        // Numbers, names and lists: nothing that JSON cannot say. Infinities and NaN become null.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The report as a table, for people.
    pub fn to_table(&self) -> String {
        use core::fmt::Write;
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}: {} s, seed {}", self.scenario, self.duration_s, self.seed);
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "connection", "Mbit/s", "MB", "resent", "lost", "srtt ms"
        );
        for connection in &self.connections {
            let name = format!("{} ({})", connection.name, connection.cc);
            let (mbps, mb) = (connection.goodput_bps * 1e-6, connection.delivered_bytes as f64 * 1e-6);
            let resent = connection.retransmitted_bytes as f64 / connection.delivered_bytes.max(1) as f64;
            let _ = writeln!(out, "{name:24} {mbps:10.3} {mb:10.3} {:8.3}%", resent * 100.0);
            for (index, subflow) in connection.subflows.iter().enumerate() {
                let label = format!("  subflow {index}");
                let (mbps, mb) = (subflow.sending_bps * 1e-6, subflow.sent_bytes as f64 * 1e-6);
                let srtt = subflow.srtt_s.unwrap_or(0.0) * 1e3;
                let _ =
                    writeln!(out, "{label:24} {mbps:10.3} {mb:10.3} {:>9} {:9} {srtt:9.2}", "", subflow.lost_packets);
            }
        }
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "link", "used", "MB", "dropped", "marked", "queue ms"
        );
        for link in &self.links {
            let dropped = link.dropped_queue_full + link.dropped_random + link.dropped_early + link.dropped_dead;
            let queue = link.queueing_mean_s.unwrap_or(0.0) * 1e3;
            let (used, mb) = (link.utilisation * 100.0, link.delivered_bytes as f64 * 1e-6);
            let _ = writeln!(out, "{:24} {used:9.1}% {mb:10.3} {dropped:9} {:9} {queue:9.3}", link.name, link.marked);
        }
        if let Some(jain) = self.jain.filter(|_| self.connections.len() > 1) {
            let _ = writeln!(out, "Jain's index {jain:.4}");
        }
        out
    }
}

/// What a finished run found.
pub(crate) fn report(scenario: &Scenario, seed: u64, mut simulation: Simulation) -> Report {
    let end = Snapshot::take(&mut simulation);
    let measured = end.at.since(simulation.baseline.at);
    let mut connections = Vec::new();
    for index in 0..scenario.connections.len() {
        connections.push(connection(scenario, index, &simulation, &end, measured));
    }
    let links = (0..scenario.links.len()).map(|index| link(scenario, index, &simulation, &end, measured)).collect();
    let goodputs: Vec<f64> = connections.iter().map(|connection| connection.goodput_bps).collect();
    Report {
        scenario: scenario.name.clone(),
        seed,
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: scenario.warmup.as_secs_f64(),
        events: simulation.steps,
        jain: jain_index(&goodputs),
        goodput_bps: goodputs.iter().sum(),
        connections,
        links,
        series: simulation.recorder.map(|recorder| recorder.series),
    }
}

fn per_second(bytes: Bytes, span: Duration) -> f64 {
    (bytes / span).as_bps()
}

fn connection(scenario: &Scenario, index: usize, run: &Simulation, end: &Snapshot, span: Duration) -> ConnectionReport {
    let described = &scenario.connections[index];
    let (now, before) = (&end.connections[index], &run.baseline.connections[index]);
    let sender = &run.ends[index * 2];
    let read = now.read - before.read;
    let mut subflows = Vec::new();
    let mut cost = 0.0;
    for (number, view) in sender.session.view().subflows.iter().enumerate() {
        let (now, before) = (&now.subflows[number], &before.subflows[number]);
        let bytes = now.sent.bytes - before.sent.bytes;
        cost += bytes as f64 * view.cost;
        subflows.push(SubflowReport {
            sent_packets: now.sent.packets - before.sent.packets,
            sent_bytes: bytes,
            sending_bps: per_second(Bytes::new(bytes), span),
            delivered_bps: per_second(now.delivered - before.delivered, span),
            lost_packets: now.lost - before.lost,
            srtt_s: view.srtt.map(Duration::as_secs_f64),
            min_rtt_s: view.srtt.map(|_| view.min_rtt.as_secs_f64()),
            max_rtt_s: view.max_rtt.as_secs_f64(),
            cwnd_bytes: view.cwnd.get(),
            cost: view.cost,
        });
    }
    let writer = sender.writer.as_ref();
    let finished = run.ends[index * 2 + 1].reader.finished.iter();
    let files = finished.filter_map(|(flow, at)| {
        let started = writer?.started.get(flow)?;
        Some(FileReport {
            start_s: started.at.as_secs_f64(),
            completion_s: at.since(started.at).as_secs_f64(),
            bytes: started.size.get(),
        })
    });
    ConnectionReport {
        name: described.name.clone(),
        cc: described.cc.to_string(),
        scheduler: described.scheduler.to_string(),
        goodput_bps: per_second(read, span),
        delivered_packets: now.packets - before.packets,
        delivered_bytes: read.get(),
        retransmitted_bytes: (now.totals.retransmitted - before.totals.retransmitted).get(),
        duplicated_bytes: (now.totals.duplicated - before.totals.duplicated).get(),
        received_again_bytes: (now.received_again - before.received_again).get(),
        cost,
        files: files.collect(),
        files_refused: writer.map_or(0, |writer| writer.refused),
        measures: run.world.meters.get(index).map(|meter| Measures {
            out_of_order_delay_s: mean_max(&meter.out_of_order),
            write_to_delivery_s: mean_max(&meter.delay),
            free_window_bytes: mean_max(&meter.free_window),
            data_ack_jump_bytes: mean_max(&meter.ack_jump),
            send_buffer_bytes: mean_max(&meter.send_buffer),
            receive_buffer_bytes: mean_max(&meter.receive_buffer),
        }),
        subflows,
    }
}

fn mean_max(tally: &Tally) -> MeanMax {
    MeanMax { mean: tally.mean(), max: tally.max() }
}

fn link(scenario: &Scenario, index: usize, run: &Simulation, end: &Snapshot, span: Duration) -> LinkReport {
    let described = &scenario.links[index];
    let (now, before) = (&end.links[index], &run.baseline.links[index]);
    let accepted = |counters: &manypath_link::Counters| counters.delivered.packets + counters.backlog.packets;
    let packets = accepted(now) - accepted(before);
    let waited = now.queueing_sum - before.queueing_sum;
    let delivered = now.delivered.bytes - before.delivered.bytes;
    let (drops, held) = (&now.dropped, &before.dropped);
    LinkReport {
        name: described.name.clone(),
        offered_packets: now.offered.packets - before.offered.packets,
        delivered_bytes: delivered.get(),
        utilisation: per_second(delivered, span) / described.config.peak_rate().as_bps(),
        dropped_queue_full: drops.queue_full.packets - held.queue_full.packets,
        dropped_random: (drops.random + drops.bursty).packets - (held.random + held.bursty).packets,
        dropped_early: drops.red.packets - held.red.packets,
        dropped_dead: drops.dead.packets - held.dead.packets,
        marked: now.marked - before.marked,
        queueing_mean_s: (packets > 0).then(|| waited.as_secs_f64() / packets as f64),
        queueing_max_s: now.queueing_max.as_secs_f64(),
        peak_queue_bytes: now.peak_backlog.get(),
    }
}
