//! Records: what a session sends in one datagram. The byte layout is specified in `docs/protocol.md`; every integer is
//! big-endian. Unknown types are ignored, unknown flag bits too, so that later versions may add both.

mod decode;
mod encode;

use manypath_core::{Bytes, DataRange, DataSeq, Duration, FlowId, Time};

use crate::delay::micros;

pub use decode::DecodeError;

/// The most ranges that one data acknowledgement lists.
pub const MAX_ACK_RANGES: usize = 16;

/// The size of a DATA record without its payload.
pub const DATA_HEADER: Bytes = Bytes::new(26);

mod kind {
    pub(super) const DATA: u8 = 0x01;
    pub(super) const SKIP: u8 = 0x02;
    pub(super) const RESET: u8 = 0x03;
    pub(super) const DATA_ACK: u8 = 0x04;
    pub(super) const FLOW_WINDOW: u8 = 0x05;
    pub(super) const BLOCKED: u8 = 0x06;
    pub(super) const STOP: u8 = 0x07;
    pub(super) const PATH_REPORT: u8 = 0x08;
    pub(super) const PATH_STATUS: u8 = 0x09;
    pub(super) const PATH_STATUS_ACK: u8 = 0x0a;
    pub(super) const PING: u8 = 0x0b;
    pub(super) const PONG: u8 = 0x0c;
}

mod flag {
    /// The record ends its flow; the end takes one sequence number after the payload.
    pub(super) const FIN: u8 = 0x01;
    /// The record repeats data that was sent before.
    pub(super) const COPY: u8 = 0x02;
    /// A 32-bit deadline in microseconds after the send time follows the header. Reserved for partly reliable flows.
    pub(super) const DEADLINE: u8 = 0x04;
    /// PATH_STATUS: the path is a backup.
    pub(super) const BACKUP: u8 = 0x01;
    /// PATH_REPORT: the smallest delay follows.
    pub(super) const LEAST: u8 = 0x01;
}

/// A sender's clock when a record left, in microseconds, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTime(pub u32);

impl SendTime {
    /// How long ago it was by the same clock, if less than 71 minutes.
    pub fn elapsed(self, now: Time) -> Duration {
        Duration::from_micros(micros(now).wrapping_sub(self.0).into())
    }
}

/// A DATA record without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The flow.
    pub flow: FlowId,
    /// Data sequence number of the first byte.
    pub seq: DataSeq,
    /// Offset in the flow of the first byte.
    pub offset: u64,
    /// Number of payload bytes.
    pub len: u32,
    /// Whether the flow ends after the payload.
    pub fin: bool,
    /// Whether this data was sent before.
    pub copy: bool,
    /// When it left.
    pub sent: SendTime,
    /// After this time the data is useless; reserved, `None` on reliable flows.
    pub deadline: Option<Duration>,
}

impl Data {
    /// The sequence numbers the record takes: its payload, and one for the end of the flow.
    pub fn range(&self) -> DataRange {
        DataRange::new(self.seq, u64::from(self.len) + u64::from(self.fin))
    }
}

/// Sequence numbers above the left edge that have arrived; the ranges touched last come first.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckRanges {
    ranges: [DataRange; MAX_ACK_RANGES],
    len: u8,
}

impl AckRanges {
    /// No ranges.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a range if it is new and there is room; says whether it was added.
    pub fn push(&mut self, range: DataRange) -> bool {
        let len = usize::from(self.len);
        if len == MAX_ACK_RANGES || range.is_empty() || self.as_slice().contains(&range) {
            return false;
        }
        self.ranges[len] = range;
        self.len += 1;
        true
    }

    /// Adds ranges while there is room that differ from each other, though perhaps not from those it has.
    pub fn extend(&mut self, ranges: impl IntoIterator<Item = DataRange>) {
        let held = usize::from(self.len);
        for range in ranges {
            let len = usize::from(self.len);
            if len == MAX_ACK_RANGES {
                break;
            }
            if !self.ranges[..held].contains(&range) {
                self.ranges[len] = range;
                self.len += 1;
            }
        }
    }

    /// Forgets all ranges.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[DataRange] {
        &self.ranges[..usize::from(self.len)]
    }
}

impl PartialEq for AckRanges {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

/// A data acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ack {
    /// Left edge: everything below has arrived.
    pub left: DataSeq,
    /// Right edge: the first sequence number that may not be sent yet.
    pub window_end: DataSeq,
    /// What has arrived above the left edge, as far as it fits.
    pub ranges: AckRanges,
}

/// One-way delays over one interval, as measured by the receiver (RFC 8382 s3), in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayReport {
    /// Number of records in the interval.
    pub samples: u32,
    /// Length of the interval.
    pub interval_us: u32,
    /// Mean one-way delay up to the clocks' offset.
    pub mean_us: i32,
    /// `skew_base_T` of RFC 8382 s3.2.1.
    pub skew_base: i32,
    /// `var_base_T` of RFC 8382 s3.2.2.
    pub var_base_us: u32,
    /// Records that arrived with a congestion mark.
    pub marked: u32,
    /// Smallest one-way delay, the receiver's clock less the sender's modulo 2^32: unlike the mean it can be compared with that
    /// of other paths. `None`: not told.
    pub least_us: Option<u32>,
}

/// What an endpoint tells about a path: how the peer should use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Grows with every change; an older status is ignored.
    pub version: u32,
    /// Relative cost of a byte, in thousandths.
    pub cost_milli: u32,
    /// Whether the path is a backup.
    pub backup: bool,
}

/// One record, without payload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // a boxed acknowledgement would allocate for every second packet
pub enum Record {
    /// Bytes of a flow.
    Data(Data),
    /// Abandoned data: these sequence numbers will never carry any.
    Skip {
        /// The sequence numbers.
        range: DataRange,
        /// When it left.
        sent: SendTime,
    },
    /// The sender abandons a flow.
    Reset {
        /// The flow.
        flow: FlowId,
        /// The sequence number it takes.
        seq: DataSeq,
        /// The application's reason.
        code: u32,
        /// When it left.
        sent: SendTime,
    },
    /// A data acknowledgement.
    Ack(Ack),
    /// The receiver allows a flow to be sent up to an offset.
    FlowWindow {
        /// The flow.
        flow: FlowId,
        /// First offset not allowed.
        limit: u64,
    },
    /// The sender has data that a window forbids; asks for the window to be repeated.
    Blocked {
        /// The flow, or `None` for the connection's window.
        flow: Option<FlowId>,
    },
    /// The receiver does not want more of a flow.
    Stop {
        /// The flow.
        flow: FlowId,
        /// The application's reason.
        code: u32,
    },
    /// One-way delay measurements of the path the record came by.
    PathReport(DelayReport),
    /// Cost and priority of the path the record came by.
    PathStatus(PathStatus),
    /// A status was received.
    PathStatusAck {
        /// Its version.
        version: u32,
    },
    /// Asks for a PONG on the same path.
    Ping {
        /// Comes back in the PONG.
        token: u32,
    },
    /// Answers a PING.
    Pong {
        /// The PING's.
        token: u32,
    },
}

/// The flow id that stands for the connection in BLOCKED; no flow has it.
const CONNECTION: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..1 << 16, 0_u64..1 << 62]
    }

    fn range() -> impl Strategy<Value = DataRange> {
        (0_u64..1 << 61, 1_u64..1 << 32).prop_map(|(start, len)| DataRange::new(DataSeq(start), len))
    }

    fn record() -> impl Strategy<Value = Record> {
        let flow = || (0..CONNECTION).prop_map(FlowId);
        let sent = || any::<u32>().prop_map(SendTime);
        let deadline = prop::option::of((0_u64..1 << 32).prop_map(Duration::from_micros));
        prop_oneof![
            (flow(), number(), number(), 1_u32..1500, any::<bool>(), any::<bool>(), sent(), deadline).prop_map(
                |(flow, seq, offset, len, fin, copy, sent, deadline)| {
                    Record::Data(Data { flow, seq: DataSeq(seq), offset, len, fin, copy, sent, deadline })
                }
            ),
            (range(), sent()).prop_map(|(range, sent)| Record::Skip { range, sent }),
            (flow(), number(), any::<u32>(), sent()).prop_map(|(flow, seq, code, sent)| Record::Reset {
                flow,
                seq: DataSeq(seq),
                code,
                sent
            }),
            (number(), number(), prop::collection::vec(range(), 0..MAX_ACK_RANGES)).prop_map(|(left, end, list)| {
                let mut ranges = AckRanges::new();
                list.into_iter().for_each(|range| {
                    ranges.push(range);
                });
                Record::Ack(Ack { left: DataSeq(left), window_end: DataSeq(end), ranges })
            }),
            (flow(), number()).prop_map(|(flow, limit)| Record::FlowWindow { flow, limit }),
            prop::option::of(flow()).prop_map(|flow| Record::Blocked { flow }),
            (flow(), any::<u32>()).prop_map(|(flow, code)| Record::Stop { flow, code }),
            (any::<[u32; 4]>(), any::<[i32; 2]>(), any::<Option<u32>>()).prop_map(|(u, i, least_us)| {
                Record::PathReport(DelayReport {
                    samples: u[0],
                    interval_us: u[1],
                    mean_us: i[0],
                    skew_base: i[1],
                    var_base_us: u[2],
                    marked: u[3],
                    least_us,
                })
            }),
            (any::<u32>(), any::<u32>(), any::<bool>()).prop_map(|(version, cost_milli, backup)| Record::PathStatus(
                PathStatus { version, cost_milli, backup }
            )),
            any::<u32>().prop_map(|version| Record::PathStatusAck { version }),
            any::<u32>().prop_map(|token| Record::Ping { token }),
            any::<u32>().prop_map(|token| Record::Pong { token }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(record in record()) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            if let Record::Data(data) = record {
                bytes.resize(bytes.len() + data.len as usize, 0xa5);
            }
            prop_assert_eq!(bytes.len(), record.encoded_len());
            let (decoded, payload) = Record::decode(&bytes).unwrap().unwrap();
            prop_assert_eq!(decoded, record);
            prop_assert!(payload.iter().all(|byte| *byte == 0xa5));
        }

        #[test]
        fn a_truncated_record_is_an_error(record in record(), cut in 1_usize..200) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            if cut <= bytes.len() {
                bytes.truncate(bytes.len() - cut);
                prop_assert!(Record::decode(&bytes).is_err());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Record::decode(&bytes);
        }
    }

    #[test]
    fn unknown_types_are_ignored() {
        assert_eq!(Record::decode(&[0x7f, 0, 1, 2]), Ok(None));
    }

    #[test]
    fn the_data_header_has_the_documented_size() {
        let data = Data {
            flow: FlowId(0),
            seq: DataSeq(0),
            offset: 0,
            len: 100,
            fin: false,
            copy: false,
            sent: SendTime(0),
            deadline: None,
        };
        let mut bytes = Vec::new();
        Record::Data(data).encode(&mut bytes);
        assert_eq!(bytes.len() as u64, DATA_HEADER.get());
    }
}
