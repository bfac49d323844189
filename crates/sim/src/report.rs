//! What a run found: summaries after the warm-up, and time series.

pub(crate) mod summary;
mod table;

use serde::Serialize;

use crate::series::Series;

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
    /// Bytes on the wire of data packets, bits per second.
    pub sending_bps: f64,
    /// Data packets that brought something new.
    pub delivered_packets: u64,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Payload sent again, because it was lost or as a copy, bytes.
    pub retransmitted_bytes: u64,
    /// Payload sent as copies that the scheduler wished for, bytes.
    pub duplicated_bytes: u64,
    /// Payload received that had arrived before, bytes.
    pub received_again_bytes: u64,
    /// Cost of what was sent: the sum over subflows of bytes sent times cost a byte.
    pub cost: f64,
    /// The same a second (Uni-MPTCP eq. 26).
    pub cost_per_s: f64,
    /// The first ten thousand files that arrived, in the order of their ends.
    pub files: Vec<FileReport>,
    /// All files that began after the warm-up and arrived; `None` if there are none.
    pub file_summary: Option<FileSummary>,
    /// Files of the whole run that no flow could be opened for.
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

/// Files together. Quantiles are right to one percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FileSummary {
    /// How many.
    pub count: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Time from beginning to completion, mean, seconds.
    pub completion_mean_s: f64,
    /// Its median.
    pub completion_p50_s: f64,
    /// Its 95th percentile.
    pub completion_p95_s: f64,
    /// Its 99th percentile.
    pub completion_p99_s: f64,
    /// Its maximum.
    pub completion_max_s: f64,
}

/// Mean and maximum; `None` where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MeanMax {
    /// The mean.
    pub mean: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

/// What is measured of a connection packet by packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Seconds from a packet's arrival to its delivery in order (STMS's out-of-order delay).
    pub out_of_order_delay_s: MeanMax,
    /// The part of it in which no `tcp` subflow waited for a lost segment of its own: what scheduling causes. All of it over
    /// `quic`, whose paths have no order.
    pub scheduling_delay_s: MeanMax,
    /// Seconds from a write to the delivery of its last byte.
    pub write_to_delivery_s: MeanMax,
    /// How far a data acknowledgement moves the left edge if it does, bytes (STMS Fig. 5).
    pub data_ack_jump_bytes: MeanMax,
    /// Bytes in the sender's buffer.
    pub send_buffer_bytes: MeanMax,
    /// Bytes in the receiver's buffer.
    pub receive_buffer_bytes: MeanMax,
}

/// What is measured of a subflow packet by packet; but for the delay, when an acknowledgement has come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SubflowMeasures {
    /// Seconds from a data packet's departure to its arrival.
    pub one_way_delay_s: MeanMax,
    /// The window's free part, bytes (STMS Fig. 11).
    pub free_window_bytes: MeanMax,
    /// Congestion window, bytes.
    pub cwnd_bytes: MeanMax,
    /// Smoothed round-trip time, seconds.
    pub srtt_s: MeanMax,
    /// Pacing rate, where there is one, bits per second.
    pub pacing_bps: MeanMax,
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
    /// Those of the packets whose data had been sent before: retransmissions and copies.
    pub repeated_packets: u64,
    /// Data packets that the sender declared lost, rightly or not.
    pub lost_packets: u64,
    /// Data packets dropped because a queue was full.
    pub dropped_queue_full: u64,
    /// Data packets lost at random, in bursts or not.
    pub dropped_random: u64,
    /// Data packets dropped early (RED).
    pub dropped_early: u64,
    /// Data packets dropped because a link was dead for good.
    pub dropped_dead: u64,
    /// Smoothed round-trip time at the end, seconds; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Smallest round-trip time of the whole run, seconds; `None` before the first sample.
    pub min_rtt_s: Option<f64>,
    /// Largest round-trip time of the whole run, seconds; `None` before the first sample.
    pub max_rtt_s: Option<f64>,
    /// Congestion window at the end, bytes.
    pub cwnd_bytes: u64,
    /// Relative cost of a byte.
    pub cost: f64,
    /// What is measured packet by packet, where the scenario asks for time series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measures: Option<SubflowMeasures>,
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
}
