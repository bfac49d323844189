//! Records: what a session sends in one datagram. The byte layout is specified in `docs/protocol.md`; every integer is
//! big-endian. Unknown types are ignored, unknown flag bits too, so that later versions may add both.

use manypath_core::{Bytes, DataRange, DataSeq, Duration, FlowId};

/// The most ranges that one data acknowledgement lists.
pub const MAX_ACK_RANGES: usize = 16;

/// The size of a DATA record without its payload.
pub const DATA_HEADER: Bytes = Bytes::new(26);

/// The most sequence numbers one DATA record may take: a datagram is never larger.
const MAX_PAYLOAD: usize = 65_535;

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
}

/// A sender's clock when a record left, in microseconds, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTime(pub u32);

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

/// Why a datagram is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends before its fields do.
    #[error("the record is shorter than its type requires")]
    Truncated,
    /// Fields exceed what the type allows.
    #[error("the record has a field out of range")]
    OutOfRange,
}

/// The flow id that stands for the connection in BLOCKED; no flow has it.
const CONNECTION: u32 = u32::MAX;

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
            Self::PathReport(_) => 26,
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
                out.extend([kind::PATH_REPORT, 0]);
                put32(out, report.samples);
                put32(out, report.interval_us);
                out.extend(report.mean_us.to_be_bytes());
                out.extend(report.skew_base.to_be_bytes());
                put32(out, report.var_base_us);
                put32(out, report.marked);
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

    /// Reads a datagram: the record and, for DATA, its payload (empty for the others). `None`: a type from a later
    /// version, to be ignored.
    ///
    /// # Errors
    /// If the datagram ends too early or a field is out of range. What follows the last field of a record without payload
    /// is ignored.
    pub fn decode(datagram: &[u8]) -> Result<Option<(Self, &[u8])>, DecodeError> {
        let mut input = Reader { rest: datagram };
        let kind = input.byte()?;
        let flags = input.byte()?;
        let record = match kind {
            kind::DATA => return input.data(flags).map(Some),
            kind::SKIP => {
                let sent = SendTime(input.u32()?);
                Self::Skip { range: input.range()?, sent }
            }
            kind::RESET => {
                let (flow, sent) = (input.flow()?, SendTime(input.u32()?));
                Self::Reset { flow, sent, seq: DataSeq(input.u62()?), code: input.u32()? }
            }
            kind::DATA_ACK => Self::Ack(input.ack(usize::from(flags))?),
            kind::FLOW_WINDOW => Self::FlowWindow { flow: input.flow()?, limit: input.u62()? },
            kind::BLOCKED => {
                let flow = input.u32()?;
                Self::Blocked { flow: (flow != CONNECTION).then_some(FlowId(flow)) }
            }
            kind::STOP => Self::Stop { flow: input.flow()?, code: input.u32()? },
            kind::PATH_REPORT => Self::PathReport(DelayReport {
                samples: input.u32()?,
                interval_us: input.u32()?,
                mean_us: i32::from_be_bytes(input.array()?),
                skew_base: i32::from_be_bytes(input.array()?),
                var_base_us: input.u32()?,
                marked: input.u32()?,
            }),
            kind::PATH_STATUS => Self::PathStatus(PathStatus {
                version: input.u32()?,
                cost_milli: input.u32()?,
                backup: flags & flag::BACKUP != 0,
            }),
            kind::PATH_STATUS_ACK => Self::PathStatusAck { version: input.u32()? },
            kind::PING => Self::Ping { token: input.u32()? },
            kind::PONG => Self::Pong { token: input.u32()? },
            _ => return Ok(None),
        };
        Ok(Some((record, &[])))
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

/// What is left of a datagram.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A sequence number or offset: at most 2^62 - 1, as in QUIC, so that sums never overflow.
    fn u62(&mut self) -> Result<u64, DecodeError> {
        let value = u64::from_be_bytes(self.array()?);
        if value < 1 << 62 { Ok(value) } else { Err(DecodeError::OutOfRange) }
    }

    fn flow(&mut self) -> Result<FlowId, DecodeError> {
        let id = self.u32()?;
        if id == CONNECTION { Err(DecodeError::OutOfRange) } else { Ok(FlowId(id)) }
    }

    fn range(&mut self) -> Result<DataRange, DecodeError> {
        let range = DataRange::between(DataSeq(self.u62()?), DataSeq(self.u62()?));
        if range.is_empty() { Err(DecodeError::OutOfRange) } else { Ok(range) }
    }

    fn ack(&mut self, count: usize) -> Result<Ack, DecodeError> {
        if count > MAX_ACK_RANGES {
            return Err(DecodeError::OutOfRange);
        }
        let (left, window_end) = (DataSeq(self.u62()?), DataSeq(self.u62()?));
        let mut ranges = AckRanges::new();
        for _ in 0..count {
            ranges.push(self.range()?);
        }
        Ok(Ack { left, window_end, ranges })
    }

    fn data(&mut self, flags: u8) -> Result<(Record, &'a [u8]), DecodeError> {
        let (flow, sent) = (self.flow()?, SendTime(self.u32()?));
        let (seq, offset) = (DataSeq(self.u62()?), self.u62()?);
        let deadline = match flags & flag::DEADLINE {
            0 => None,
            _ => Some(Duration::from_micros(u64::from(self.u32()?))),
        };
        let fin = flags & flag::FIN != 0;
        let len = u32::try_from(self.rest.len()).map_err(|_| DecodeError::OutOfRange)?;
        if self.rest.len() > MAX_PAYLOAD || (len == 0 && !fin) {
            return Err(DecodeError::OutOfRange);
        }
        let copy = flags & flag::COPY != 0;
        let data = Data { flow, seq, offset, len, fin, copy, sent, deadline };
        Ok((Record::Data(data), self.rest))
    }
}

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
            (any::<[u32; 4]>(), any::<[i32; 2]>()).prop_map(|(u, i)| Record::PathReport(DelayReport {
                samples: u[0],
                interval_us: u[1],
                mean_us: i[0],
                skew_base: i[1],
                var_base_us: u[2],
                marked: u[3],
            })),
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
