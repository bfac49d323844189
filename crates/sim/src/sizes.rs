//! How large packets are on the wire.

use manypath_scenario::{Connection, Transport};
use manypath_session::Record;

use crate::ack::CarrierAck;

/// QUIC's ACK frame of one range (RFC 9000 s19.3), bytes, and what a further range adds.
const ACK_FRAME: (u32, u32) = (6, 4);
/// TCP's SACK option without blocks (RFC 2018 s3), padded, and a block, bytes.
const SACK: (u32, u32) = (4, 8);
/// A DSS option with a data acknowledgement of 32 bits (RFC 8684 s3.3), bytes.
const DATA_ACK: u32 = 8;

/// The sizes of one connection's packets, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// What every packet has around what it carries.
    pub(crate) overhead: u32,
    /// What a data record adds to its payload.
    header: u32,
    transport: Transport,
}

impl Sizes {
    pub(crate) fn of(connection: &Connection) -> Self {
        // Both lie below the size of a packet, which the scenario bounds.
        let bytes = |size: manypath_core::Bytes| u32::try_from(size.get()).unwrap_or(u32::MAX);
        Self {
            overhead: bytes(connection.overhead),
            header: bytes(connection.record_header),
            transport: connection.transport,
        }
    }

    /// A packet with data.
    #[inline]
    pub(crate) fn data(&self, payload: u32) -> u32 {
        self.overhead + self.header + payload
    }

    /// A packet with an acknowledgement.
    pub(crate) fn ack(&self, ack: &CarrierAck) -> u32 {
        let ranges = u32::try_from(ack.numbers.as_slice().len()).unwrap_or(0).saturating_sub(1);
        let options = match self.transport {
            Transport::Quic => ACK_FRAME.0 + ACK_FRAME.1 * ranges + record_size(&ack.data),
            Transport::Tcp { .. } if ranges == 0 => DATA_ACK,
            Transport::Tcp { .. } => DATA_ACK + SACK.0 + SACK.1 * ranges,
        };
        self.overhead + options
    }
}

/// A record's size, payload included.
pub(crate) fn record_size(record: &Record) -> u32 {
    // Datagrams are smaller than 64 KiB.
    u32::try_from(record.encoded_len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use manypath_core::Duration;
    use manypath_scenario::{AckRule, Recovery};

    use super::*;

    #[test]
    fn acknowledgements_grow_with_what_they_list() {
        let (recovery, min_rto, ack_rule) = (Recovery::Rack, Duration::from_millis(200), AckRule::Count);
        let tcp = Transport::Tcp { recovery, min_rto, reinject_after: 1, ack_rule };
        let size = |transport, ranges| {
            let mut ack = CarrierAck::blank();
            (0..ranges).for_each(|at| ack.numbers.push((10 * at, 10 * at + 1)));
            Sizes { overhead: 40, header: 0, transport }.ack(&ack)
        };
        // The cumulative acknowledgement is no block: 40 + 8, then a SACK option of 4 and 8 a block.
        assert_eq!([1, 2, 3].map(|ranges| size(tcp, ranges)), [48, 60, 68]);
        let data = record_size(&CarrierAck::blank().data);
        assert!(data > 0);
        assert_eq!([1, 2, 5].map(|ranges| size(Transport::Quic, ranges) - data), [46, 50, 62]);
    }
}
