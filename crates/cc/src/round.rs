//! Round trips, counted by what was delivered.

use manypath_core::Bytes;

use crate::event::Acked;

/// Tells when a round trip ends: when a packet is acknowledged that left after everything delivered at the round's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Delivered bytes at the start of the round.
    start: Bytes,
    /// Rounds that have ended.
    count: u64,
}

impl Rounds {
    /// Takes an acknowledgement and the subflow's `delivered` after it; says whether it ends a round trip.
    pub fn on_ack(&mut self, acked: &Acked, delivered: Bytes) -> bool {
        let ends = acked.delivered_at_send >= self.start;
        if ends {
            self.start = delivered;
            self.count += 1;
        }
        ends
    }

    /// The same count with a round that begins at the latest acknowledgement: no packet sent before it can end it.
    pub const fn restarted_at(self, delivered: Bytes) -> Self {
        Self { start: delivered, ..self }
    }

    /// How many round trips have ended.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, Time};

    use super::*;

    #[test]
    fn a_round_ends_with_the_first_packet_sent_after_its_start() {
        let mut rounds = Rounds::default();
        let mut acked = Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(10),
            sent_at: Time::ZERO,
            rtt: Duration::ZERO,
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: false,
            app_limited: false,
        };
        assert!(rounds.on_ack(&acked, Bytes::new(10)));
        assert!(!rounds.on_ack(&acked, Bytes::new(20)));
        acked.delivered_at_send = Bytes::new(10);
        assert!(rounds.on_ack(&acked, Bytes::new(30)));
        assert_eq!(rounds.count(), 2);
    }
}
