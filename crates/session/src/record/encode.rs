//! How records are written.

use super::{CONNECTION, Record, flag, kind};

impl Record {
    /// The record's size on the wire, payload included.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Data(data) => 26 + if data.deadline.is_some() { 4 } else { 0 } + data.len as usize,
            Self::Skip { .. } => 22,
            Self::Reset { .. } => 22,
            Self::Ack(ack) => 18 + 16 * ack.ranges.as_slice().len(),
            Self::FlowWindow { .. } => 14,
            Self::Blocked { .. } | Self::PathStatusAck { .. } | Self::Ping { .. } | Self::Pong { .. } => 6,
            Self::Stop { .. } => 10,
            Self::PathReport(report) => 26 + if report.least_us.is_some() { 4 } else { 0 },
            Self::PathStatus(_) => 10,
        }
    }

    /// Writes the record's header, to be followed by the payload if it is DATA.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Data(data) => {
                let fin = if data.fin { flag::FIN } else { 0 };
                let copy = if data.copy { flag::COPY } else { 0 };
                let deadline = if data.deadline.is_some() { flag::DEADLINE } else { 0 };
                out.extend([kind::DATA, fin | copy | deadline]);
                put32(out, data.flow.0);
                put32(out, data.sent.0);
                put64(out, data.seq.0);
                put64(out, data.offset);
                if let Some(deadline) = data.deadline {
                    put32(out, u32::try_from(deadline.as_micros()).unwrap_or(u32::MAX));
                }
            }
            Self::Skip { range, sent } => {
                out.extend([kind::SKIP, 0]);
                put32(out, sent.0);
                put64(out, range.start.0);
                put64(out, range.end.0);
            }
            Self::Reset { flow, seq, code, sent } => {
                out.extend([kind::RESET, 0]);
                put32(out, flow.0);
                put32(out, sent.0);
                put64(out, seq.0);
                put32(out, code);
            }
            Self::Ack(ack) => {
                out.extend([kind::DATA_ACK, ack.ranges.len]);
                put64(out, ack.left.0);
                put64(out, ack.window_end.0);
                for range in ack.ranges.as_slice() {
                    put64(out, range.start.0);
                    put64(out, range.end.0);
                }
            }
            Self::FlowWindow { flow, limit } => {
                out.extend([kind::FLOW_WINDOW, 0]);
                put32(out, flow.0);
                put64(out, limit);
            }
            Self::Blocked { flow } => {
                out.extend([kind::BLOCKED, 0]);
                put32(out, flow.map_or(CONNECTION, |flow| flow.0));
            }
            Self::Stop { flow, code } => {
                out.extend([kind::STOP, 0]);
                put32(out, flow.0);
                put32(out, code);
            }
            Self::PathReport(report) => {
                out.extend([kind::PATH_REPORT, if report.least_us.is_some() { flag::LEAST } else { 0 }]);
                put32(out, report.samples);
                put32(out, report.interval_us);
                out.extend(report.mean_us.to_be_bytes());
                out.extend(report.skew_base.to_be_bytes());
                put32(out, report.var_base_us);
                put32(out, report.marked);
                if let Some(least) = report.least_us {
                    put32(out, least);
                }
            }
            Self::PathStatus(status) => {
                out.extend([kind::PATH_STATUS, if status.backup { flag::BACKUP } else { 0 }]);
                put32(out, status.version);
                put32(out, status.cost_milli);
            }
            Self::PathStatusAck { version } => put_word(out, kind::PATH_STATUS_ACK, version),
            Self::Ping { token } => put_word(out, kind::PING, token),
            Self::Pong { token } => put_word(out, kind::PONG, token),
        }
    }
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_be_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_be_bytes());
}

fn put_word(out: &mut Vec<u8>, kind: u8, value: u32) {
    out.extend([kind, 0]);
    put32(out, value);
}
