//! Data records under way in QUIC packets, and which of them are lost (RFC 9002 s6.1).
//!
//! noq's thresholds are fixed when a connection begins, and three packets later is nothing on a path that reorders. So losses of
//! data are found here, by thresholds that learn ([`Lateness`]); noq's own lie beyond them ([`NOQ_TIME_THRESHOLD`]). It goes on to
//! repeat its own frames and to probe, and when it reports a packet as acknowledged that counts as lost here, that was only late.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use manypath_core::{Lateness, PacketNumber};

use crate::reports::Fate;

/// noq loses what is unanswered for so many round trips, where a later packet was acknowledged. Here that is two at most.
pub(crate) const NOQ_TIME_THRESHOLD: f32 = 2.25;

/// A data record that left.
#[derive(Clone, Copy, Debug)]
struct Departed {
    /// QUIC's number of the packet that it is in.
    packet: u64,
    sent_at: Instant,
    /// `None`: resolved.
    record: Option<PacketNumber>,
}

/// What a carrier has under way.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// In the order in which they left; the first is not resolved.
    departed: VecDeque<Departed>,
    /// The number that the next packet has at least.
    next: u64,
    /// The highest packet acknowledged, from the first one with a record on.
    largest_acked: Option<u64>,
    /// The record acknowledged last: noq reports the marks that an acknowledgement counts after all that it acknowledges.
    last_acked: Option<PacketNumber>,
    /// The latest round trip or noq's smoothed one, whichever is longer.
    rtt: Duration,
    lateness: Lateness,
    /// Packets that were declared lost here and not by noq, in ascending order.
    missing: VecDeque<u64>,
    /// When the first packet is lost by the time threshold.
    loss_at: Option<Instant>,
}

impl UnderWay {
    /// A packet with these records leaves.
    pub(crate) fn on_sent(&mut self, now: Instant, packet: u64, records: impl Iterator<Item = PacketNumber>) {
        self.departed.extend(records.map(|record| Departed { packet, sent_at: now, record: Some(record) }));
        self.next = packet + 1;
    }

    /// A packet that left at `sent_at` is acknowledged.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        packet: u64,
        sent_at: Instant,
        smoothed: Duration,
        fates: &mut Vec<Fate>,
    ) {
        let took = now.saturating_duration_since(sent_at);
        if let Ok(index) = self.missing.binary_search(&packet) {
            self.missing.remove(index);
            self.lateness.on_arrived_late(took.into(), self.rtt.into());
        }
        if let Some(record) = self.resolve(packet, Fate::Acked, fates) {
            self.last_acked = Some(record);
        } else if self.largest_acked.is_none() {
            // Packets of the handshake have numbers of their own.
            return;
        }
        if self.largest_acked.is_none_or(|largest| packet > largest) {
            self.largest_acked = Some(packet);
            self.rtt = smoothed.max(took);
        }
    }

    /// noq has lost a packet.
    pub(crate) fn on_lost(&mut self, packet: u64, fates: &mut Vec<Fate>) {
        if let Ok(index) = self.missing.binary_search(&packet) {
            self.missing.remove(index);
        }
        self.resolve(packet, Fate::Lost, fates);
    }

    /// RFC 9002 s6.1: finds what is lost by now.
    pub(crate) fn detect_losses(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        self.loss_at = None;
        let Some(largest) = self.largest_acked else { return };
        let patience: Duration = self.lateness.time(self.rtt.into()).into();
        for departed in &mut self.departed {
            let Departed { packet, sent_at, record: Some(record) } = *departed else { continue };
            if packet >= largest {
                break;
            }
            let lost_at = sent_at + patience;
            if packet.saturating_add(self.lateness.packets()) > largest && lost_at > now {
                // Packets leave in the order of their numbers: the first that is left is the first to be lost.
                self.loss_at = Some(lost_at);
                break;
            }
            departed.record = None;
            fates.push(Fate::Lost(record));
            if self.missing.back() != Some(&packet) {
                self.missing.push_back(packet);
                self.lateness.on_lost(packet, self.next);
            }
        }
        self.drop_resolved();
    }

    /// When to look for losses again, if nothing is acknowledged before.
    pub(crate) fn loss_at(&self) -> Option<Instant> {
        self.loss_at
    }

    /// The highest packet acknowledged, from the first one with a record on.
    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// The latest round trip or noq's smoothed one, whichever is longer.
    pub(crate) fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The record acknowledged last.
    pub(crate) fn last_acked(&self) -> Option<PacketNumber> {
        self.last_acked
    }

    /// The path is another one now, and nothing will be heard of what was sent before.
    pub(crate) fn abandon(&mut self, fates: &mut Vec<Fate>) {
        let Self { departed, next, .. } = core::mem::take(self);
        fates.extend(departed.iter().filter_map(|held| held.record).map(Fate::Lost));
        self.next = next;
    }

    /// Resolves the records of a packet; returns the last.
    fn resolve(&mut self, packet: u64, fate: fn(PacketNumber) -> Fate, fates: &mut Vec<Fate>) -> Option<PacketNumber> {
        let start = self.departed.partition_point(|held| held.packet < packet);
        let of_packet = self.departed.range_mut(start..).take_while(|held| held.packet == packet);
        let mut last = None;
        for record in of_packet.filter_map(|held| held.record.take()) {
            fates.push(fate(record));
            last = Some(record);
        }
        self.drop_resolved();
        last
    }

    fn drop_resolved(&mut self) {
        while self.departed.pop_front_if(|held| held.record.is_none()).is_some() {}
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.departed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A carrier whose packets carry the record of the same number, and the moment at which `count` left.
    fn flight(count: u64) -> (UnderWay, Instant) {
        let (mut under_way, start) = (UnderWay::default(), Instant::now());
        for number in 0..count {
            under_way.on_sent(start, number, std::iter::once(PacketNumber(number)));
        }
        (under_way, start)
    }

    fn lost(numbers: impl IntoIterator<Item = u64>) -> Vec<Fate> {
        numbers.into_iter().map(|number| Fate::Lost(PacketNumber(number))).collect()
    }

    /// What is lost when a packet is acknowledged that left at `sent_at`.
    fn acked(under_way: &mut UnderWay, now: Instant, packet: u64, sent_at: Instant) -> Vec<Fate> {
        let mut fates = Vec::new();
        under_way.on_acked(now, packet, sent_at, ms(16), &mut fates);
        under_way.detect_losses(now, &mut fates);
        fates.retain(|fate| matches!(fate, Fate::Lost(_)));
        fates
    }

    #[test]
    fn a_record_is_lost_when_the_third_packet_after_it_is_acknowledged_or_after_an_eighth_more_than_a_round_trip() {
        let (mut under_way, start) = flight(8);
        assert_eq!(acked(&mut under_way, start + ms(16), 3, start), lost([0]));
        assert_eq!(under_way.loss_at(), Some(start + ms(18)));
        let mut fates = Vec::new();
        under_way.detect_losses(start + ms(17), &mut fates);
        assert_eq!(fates, []);
        under_way.detect_losses(start + ms(18), &mut fates);
        assert_eq!((fates, under_way.loss_at()), (lost([1, 2]), None), "the others have nobody after them");
    }

    #[test]
    fn packets_of_the_handshake_are_not_later_ones() {
        let (mut under_way, start) = flight(1);
        // Another space's packet 5.
        assert_eq!(acked(&mut under_way, start + ms(16), 5, start), []);
        assert_eq!(under_way.largest_acked(), None);
    }

    #[test]
    fn a_packet_of_the_library_is_a_later_one_too() {
        let (mut under_way, start) = flight(2);
        acked(&mut under_way, start + ms(16), 0, start);
        under_way.on_sent(start, 2, std::iter::empty());
        acked(&mut under_way, start + ms(16), 2, start);
        assert_eq!(under_way.loss_at(), Some(start + ms(18)));
    }

    #[test]
    fn where_a_packet_was_only_late_others_may_be_as_late() {
        let (mut under_way, start) = flight(6);
        assert_eq!(acked(&mut under_way, start + ms(16), 4, start), lost([0, 1]));
        assert_eq!(acked(&mut under_way, start + ms(19), 0, start), [], "two eighths late at most");
        for number in 6..20 {
            under_way.on_sent(start + ms(100), number, std::iter::once(PacketNumber(number)));
        }
        assert_eq!(acked(&mut under_way, start + ms(116), 19, start + ms(100)), lost([2, 3, 5]), "these are too late");
        assert_eq!(under_way.loss_at(), Some(start + ms(120)));
        let mut fates = Vec::new();
        under_way.detect_losses(start + ms(120), &mut fates);
        assert_eq!(fates, lost(6..19));
    }

    #[test]
    fn what_noq_has_lost_too_is_expected_no_more() {
        let (mut under_way, start) = flight(4);
        assert_eq!(acked(&mut under_way, start + ms(16), 3, start), lost([0]));
        let mut fates = Vec::new();
        under_way.on_lost(0, &mut fates);
        under_way.on_lost(1, &mut fates);
        assert_eq!((fates, under_way.missing.len()), (lost([1]), 0));
    }

    #[test]
    fn a_packet_with_several_records_is_lost_once() {
        let (mut under_way, start) = flight(0);
        under_way.on_sent(start, 0, (0..3).map(PacketNumber));
        under_way.on_sent(start, 3, std::iter::once(PacketNumber(3)));
        assert_eq!(acked(&mut under_way, start + ms(16), 3, start), lost([0, 1, 2]));
        assert_eq!(under_way.missing, [0]);
        assert!(under_way.is_empty());
    }
}
