//! Time series: values at equal intervals.

use std::collections::BTreeMap;

use serde::Serialize;

/// Time series of a run. Every list has one value for each of `time_s`. Rates and counts are of the interval that ends
/// there, means over what happened in it; NaN (`null` in JSON) is a value that is not there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// When, seconds.
    pub time_s: Vec<f64>,
    /// Jain's index of the connections' goodputs.
    pub jain: Vec<f64>,
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
    /// Bytes on the wire of data packets, bits per second.
    pub sending_bps: Vec<f64>,
    /// Payload sent again, because it was lost or as a copy.
    pub retransmitted_bytes: Vec<u64>,
    /// Cost a second: bytes sent a second times cost a byte, summed over subflows (Uni-MPTCP eq. 26).
    pub cost_per_s: Vec<f64>,
    /// Mean time from a packet's arrival to its delivery in order.
    pub out_of_order_delay_s: Vec<f64>,
    /// Mean time from a write to the delivery of its last byte.
    pub write_to_delivery_s: Vec<f64>,
    /// Mean jump of the left edge at an acknowledgement.
    pub data_ack_jump_bytes: Vec<f64>,
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
    /// Record bytes acknowledged, bits per second.
    pub delivered_bps: Vec<f64>,
    /// Congestion window.
    pub cwnd_bytes: Vec<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Mean of the window's free part at an acknowledgement.
    pub free_window_bytes: Vec<f64>,
    /// Pacing rate.
    pub pacing_bps: Vec<f64>,
    /// Smoothed round-trip time.
    pub srtt_s: Vec<f64>,
    /// Mean time from a data packet's departure to its arrival.
    pub one_way_delay_s: Vec<f64>,
    /// Data packets whose data had been sent before.
    pub repeated_packets: Vec<u64>,
    /// Data packets that the sender declared lost.
    pub lost_packets: Vec<u64>,
    /// Data packets dropped by links.
    pub dropped: DropSeries,
    /// What the controller and the scheduler report, by name.
    pub inspected: BTreeMap<String, Vec<f64>>,
}

/// Time series of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkSeries {
    /// Its name.
    pub name: String,
    /// Bytes in the queue.
    pub queue_bytes: Vec<u64>,
    /// Mean wait of a packet behind others.
    pub queueing_s: Vec<f64>,
    /// What left the queue, bits per second.
    pub throughput_bps: Vec<f64>,
    /// The same as a share of the link's peak rate, or of its trace's mean.
    pub utilisation: Vec<f64>,
    /// Packets marked.
    pub marked: Vec<u64>,
    /// Packets dropped.
    pub dropped: DropSeries,
}

/// Packets dropped in the interval, by cause.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DropSeries {
    /// The queue was full.
    pub queue_full: Vec<u64>,
    /// At random, in bursts or not.
    pub random: Vec<u64>,
    /// Early (RED).
    pub early: Vec<u64>,
    /// The link was dead for good.
    pub dead: Vec<u64>,
}
