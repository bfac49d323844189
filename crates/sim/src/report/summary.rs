//! From a finished run to its report.

use manypath_core::{Bytes, Duration, SubflowId, SubflowView, jain_index};
use manypath_scenario::Scenario;

use super::{ConnectionReport, LinkReport, MeanMax, Measures, Report, SubflowMeasures, SubflowReport};
use crate::causes::Causes;
use crate::engine::Simulation;
use crate::meter::{Meter, SubflowMeter};
use crate::recorder::used;
use crate::snapshot::{Snapshot, SubflowCounts};
use crate::tally::Tally;

/// What a finished run found.
pub(crate) fn report(scenario: &Scenario, seed: u64, mut simulation: Simulation) -> Report {
    let end = Snapshot::take(&mut simulation);
    let measured = end.at.since(simulation.baseline.at);
    let mut connections = Vec::new();
    for index in 0..scenario.connections.len() {
        connections.push(connection(scenario, index, &simulation, &end, measured));
    }
    let links =
        (0..scenario.links.len()).map(|index| link(scenario, seed, index, &simulation, &end, measured)).collect();
    let goodputs: Vec<f64> = connections.iter().map(|connection| connection.goodput_bps).collect();
    Report {
        scenario: scenario.name.clone(),
        seed,
        duration_s: seconds(scenario.duration),
        warmup_s: seconds(scenario.warmup),
        events: simulation.steps,
        jain: jain_index(&goodputs),
        goodput_bps: goodputs.iter().sum(),
        connections,
        links,
        series: simulation.recorder.map(|recorder| recorder.series),
    }
}

/// Seconds as people wrote them: what `0.1s` was is 0.1, which a product with 1e-9 would not be.
pub(crate) fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
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
    let (mut sent, mut cost) = (Bytes::ZERO, 0.0);
    let meter = run.world.meters.get(index);
    for (number, path) in described.paths.iter().enumerate() {
        let absent = SubflowView { cost: path.cost, ..SubflowView::new(SubflowId::default(), Bytes::ZERO) };
        let view = sender.session.view().subflows.get(number).unwrap_or(&absent);
        let (now, before) = (&now.subflows[number], &before.subflows[number]);
        let bytes = Bytes::new(now.sent.bytes - before.sent.bytes);
        sent += bytes;
        cost += bytes.as_f64() * view.cost;
        let measured = meter.and_then(|meter| meter.subflows.get(number));
        subflows.push(SubflowReport { measures: measured.map(subflow_measures), ..subflow(now, before, view, span) });
    }
    let files = &run.world.files[index];
    ConnectionReport {
        name: described.name.clone(),
        cc: described.cc.to_string(),
        scheduler: crate::scheduler(described).to_string(),
        goodput_bps: per_second(read, span),
        sending_bps: per_second(sent, span),
        delivered_packets: now.packets - before.packets,
        delivered_bytes: read.get(),
        retransmitted_bytes: (now.totals.retransmitted - before.totals.retransmitted).get(),
        duplicated_bytes: (now.totals.duplicated - before.totals.duplicated).get(),
        received_again_bytes: (now.received_again - before.received_again).get(),
        cost,
        cost_per_s: cost / span.as_secs_f64(),
        files: files.listed(),
        file_summary: files.summary(),
        files_refused: files.refused,
        measures: meter.map(measures),
        subflows,
    }
}

fn subflow(now: &SubflowCounts, before: &SubflowCounts, view: &SubflowView, span: Duration) -> SubflowReport {
    let bytes = now.sent.bytes - before.sent.bytes;
    let dropped = now.dropped - before.dropped;
    SubflowReport {
        sent_packets: now.sent.packets - before.sent.packets,
        sent_bytes: bytes,
        sending_bps: per_second(Bytes::new(bytes), span),
        delivered_bps: per_second(now.delivered - before.delivered, span),
        repeated_packets: now.sent.repeated - before.sent.repeated,
        lost_packets: now.lost - before.lost,
        dropped_queue_full: dropped.queue_full,
        dropped_random: dropped.random,
        dropped_early: dropped.early,
        dropped_dead: dropped.dead,
        srtt_s: view.srtt.map(Duration::as_secs_f64),
        min_rtt_s: view.srtt.map(|_| view.min_rtt.as_secs_f64()),
        max_rtt_s: view.srtt.map(|_| view.max_rtt.as_secs_f64()),
        cwnd_bytes: view.cwnd.get(),
        cost: view.cost,
        measures: None,
    }
}

fn measures(meter: &Meter) -> Measures {
    Measures {
        out_of_order_delay_s: mean_max(&meter.out_of_order),
        scheduling_delay_s: mean_max(&meter.scheduling),
        write_to_delivery_s: mean_max(&meter.delay),
        data_ack_jump_bytes: mean_max(&meter.ack_jump),
        send_buffer_bytes: mean_max(&meter.send_buffer),
        receive_buffer_bytes: mean_max(&meter.receive_buffer),
    }
}

fn subflow_measures(meter: &SubflowMeter) -> SubflowMeasures {
    SubflowMeasures {
        one_way_delay_s: mean_max(&meter.one_way),
        free_window_bytes: mean_max(&meter.free_window),
        cwnd_bytes: mean_max(&meter.cwnd),
        srtt_s: mean_max(&meter.srtt),
        pacing_bps: mean_max(&meter.pacing),
    }
}

fn mean_max(tally: &Tally) -> MeanMax {
    MeanMax { mean: tally.mean(), max: tally.max() }
}

fn link(scenario: &Scenario, seed: u64, index: usize, run: &Simulation, end: &Snapshot, span: Duration) -> LinkReport {
    let described = &scenario.links[index];
    let (now, before) = (&end.links[index], &run.baseline.links[index]);
    let accepted = |counters: &manypath_link::Counters| counters.delivered.packets + counters.backlog.packets;
    let packets = accepted(now) - accepted(before);
    let waited = now.queueing_sum - before.queueing_sum;
    let delivered = now.delivered.bytes - before.delivered.bytes;
    let dropped = Causes::from(&now.dropped) - Causes::from(&before.dropped);
    LinkReport {
        name: described.name.clone(),
        offered_packets: now.offered.packets - before.offered.packets,
        delivered_bytes: delivered.get(),
        utilisation: used(per_second(delivered, span), described.peak_rate(scenario.duration, seed)),
        dropped_queue_full: dropped.queue_full,
        dropped_random: dropped.random,
        dropped_early: dropped.early,
        dropped_dead: dropped.dead,
        marked: now.marked - before.marked,
        queueing_mean_s: (packets > 0).then(|| waited.as_secs_f64() / packets as f64),
        queueing_max_s: now.queueing_max.as_secs_f64(),
        peak_queue_bytes: now.peak_backlog.get(),
    }
}
