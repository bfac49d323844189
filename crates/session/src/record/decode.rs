//! How datagrams are read.

use manypath_core::{DataRange, DataSeq, Duration, FlowId};

use super::{Ack, AckRanges, CONNECTION, Data, DelayReport, MAX_ACK_RANGES, PathStatus, Record, SendTime, flag, kind};

/// The most sequence numbers one DATA record may take: a datagram is never larger.
const MAX_PAYLOAD: usize = 65_535;

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

impl Record {
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
                least_us: if flags & flag::LEAST != 0 { Some(input.u32()?) } else { None },
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
