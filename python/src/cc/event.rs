//! Events as Python sees them: `Event.Acked(packet=0, bytes=1400, sent_at_s=0.0, rtt_s=0.03)`.

use manypath_cc::Event as Fact;
use manypath_core::{Bytes, PacketNumber, Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::quantity;

/// Something that happened on a subflow. Times are in seconds, rates in bits per second.
#[pyclass(frozen, module = "manypath.cc")]
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A data packet left.
    #[pyo3(constructor = (packet, bytes, app_limited=false))]
    Sent { packet: u64, bytes: u64, app_limited: bool },
    /// A data packet was acknowledged; once a packet.
    #[pyo3(constructor = (packet, bytes, sent_at_s, rtt_s, delivery_rate_bps=0.0, delivered_at_send_bytes=0,
        in_recovery=false, app_limited=false))]
    Acked {
        packet: u64,
        bytes: u64,
        sent_at_s: f64,
        rtt_s: f64,
        delivery_rate_bps: f64,
        delivered_at_send_bytes: u64,
        in_recovery: bool,
        app_limited: bool,
    },
    /// A data packet was declared lost; once a packet.
    Lost { packet: u64, bytes: u64, sent_at_s: f64 },
    /// A loss began a recovery episode: once a round trip at most.
    Congestion { sent_at_s: f64 },
    /// A congestion mark began a recovery episode: once a round trip at most.
    Ecn { sent_at_s: f64 },
    /// A retransmission timeout: everything in flight is given up. `repeated`: the controller was told of this loss before, by
    /// a timeout or by the episode of recovery under way, and holds its threshold.
    #[pyo3(constructor = (repeated = false))]
    Timeout { repeated: bool },
    /// The subflow is heard again after a timeout.
    Restored {},
    /// The scheduler penalises the subflow for holding up the connection.
    Penalised {},
    /// What the receiver measured of one-way delays over an interval (RFC 8382).
    PathReport {
        samples: u32,
        interval_s: f64,
        mean_delay_s: f64,
        skew_base: i32,
        var_base_s: f64,
        lost: u32,
        marked: u32,
    },
    /// The user gives the subflow this weight.
    Weight { weight: f64 },
}

/// When a packet left that something is told of now.
fn departure(sent_at_s: f64, now: Time) -> PyResult<Time> {
    let sent_at = quantity::time("sent_at_s", sent_at_s)?;
    if sent_at > now {
        let now_s = now.as_secs_f64();
        return Err(PyValueError::new_err(format!("sent_at_s is {sent_at_s}, later than now_s, {now_s}")));
    }
    Ok(sent_at)
}

impl Event {
    /// The event for a controller, at this time.
    pub(crate) fn fact(&self, now: Time) -> PyResult<Fact> {
        Ok(match *self {
            Self::Sent { packet, bytes, app_limited } => {
                Fact::Sent { packet: PacketNumber(packet), bytes: Bytes::new(bytes), app_limited }
            }
            Self::Acked {
                packet,
                bytes,
                sent_at_s,
                rtt_s,
                delivery_rate_bps,
                delivered_at_send_bytes,
                in_recovery,
                app_limited,
            } => Fact::Acked(manypath_cc::Acked {
                packet: PacketNumber(packet),
                bytes: Bytes::new(bytes),
                sent_at: departure(sent_at_s, now)?,
                rtt: quantity::span("rtt_s", rtt_s)?,
                delivery_rate: Rate::from_bps(quantity::not_negative("delivery_rate_bps", delivery_rate_bps)?),
                delivered_at_send: Bytes::new(delivered_at_send_bytes),
                in_recovery,
                app_limited,
            }),
            Self::Lost { packet, bytes, sent_at_s } => Fact::Lost {
                packet: PacketNumber(packet),
                bytes: Bytes::new(bytes),
                sent_at: departure(sent_at_s, now)?,
            },
            Self::Congestion { sent_at_s } => Fact::Congestion { sent_at: departure(sent_at_s, now)? },
            Self::Ecn { sent_at_s } => Fact::Ecn { sent_at: departure(sent_at_s, now)? },
            Self::Timeout { repeated } => Fact::Timeout { repeated },
            Self::Restored {} => Fact::Restored,
            Self::Penalised {} => Fact::Penalised,
            Self::PathReport { samples, interval_s, mean_delay_s, skew_base, var_base_s, lost, marked } => {
                Fact::PathReport(manypath_cc::PathReport {
                    samples,
                    interval: quantity::span("interval_s", interval_s)?,
                    // Clocks of two machines may make it negative.
                    mean_delay: quantity::finite("mean_delay_s", mean_delay_s)?,
                    skew_base,
                    var_base: quantity::finite("var_base_s", var_base_s)?,
                    lost,
                    marked,
                })
            }
            Self::Weight { weight } => {
                Fact::Weight(quantity::finite("weight", quantity::not_negative("weight", weight)?)?)
            }
        })
    }

    /// The event for Python; `None` for one that Python has no word for yet.
    pub(crate) fn of(fact: &Fact) -> Option<Self> {
        Some(match *fact {
            Fact::Sent { packet, bytes, app_limited } => {
                Self::Sent { packet: packet.0, bytes: bytes.get(), app_limited }
            }
            Fact::Acked(acked) => Self::Acked {
                packet: acked.packet.0,
                bytes: acked.bytes.get(),
                sent_at_s: acked.sent_at.as_secs_f64(),
                rtt_s: acked.rtt.as_secs_f64(),
                delivery_rate_bps: acked.delivery_rate.as_bps(),
                delivered_at_send_bytes: acked.delivered_at_send.get(),
                in_recovery: acked.in_recovery,
                app_limited: acked.app_limited,
            },
            Fact::Lost { packet, bytes, sent_at } => {
                Self::Lost { packet: packet.0, bytes: bytes.get(), sent_at_s: sent_at.as_secs_f64() }
            }
            Fact::Congestion { sent_at } => Self::Congestion { sent_at_s: sent_at.as_secs_f64() },
            Fact::Ecn { sent_at } => Self::Ecn { sent_at_s: sent_at.as_secs_f64() },
            Fact::Timeout { repeated } => Self::Timeout { repeated },
            Fact::Restored => Self::Restored {},
            Fact::Penalised => Self::Penalised {},
            Fact::PathReport(report) => Self::PathReport {
                samples: report.samples,
                interval_s: report.interval.as_secs_f64(),
                mean_delay_s: report.mean_delay,
                skew_base: report.skew_base,
                var_base_s: report.var_base,
                lost: report.lost,
                marked: report.marked,
            },
            Fact::Weight(weight) => Self::Weight { weight },
            _ => return None,
        })
    }
}
