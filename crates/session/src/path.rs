//! The state of one path: what is in flight on it, its recovery, its timers, and what it owes the peer.

mod liveness;

use std::collections::VecDeque;

use manypath_cc::Acked;
use manypath_core::{
    Bytes, DataRange, Duration, Ewma, PacketNumber, Rate, RttEstimator, SubflowId, SubflowView, Time, prefetch,
};

use crate::acks::AckDuty;
use crate::config::{Carriage, Config};
use crate::delay::DelayMeter;
use crate::idle::Age;
use crate::pacer::Pacer;
use crate::record::PathStatus;
use crate::way_back::WayBack;

/// Round-trip time assumed before the first sample, for timers only (RFC 9002 s6.2.2 assumes 333 ms).
const INITIAL_RTO: Duration = Duration::from_millis(500);

/// A data packet that left.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Sent {
    pub(crate) range: DataRange,
    pub(crate) bytes: Bytes,
    pub(crate) sent_at: Time,
    /// The path's `delivered` when it left, and when that value was reached (draft-ietf-ccwg-bbr s4.1).
    delivered: Bytes,
    delivered_at: Time,
    /// When the first packet of the flight it belongs to left.
    first_sent_at: Time,
    /// How many packets before this one the data first left on the path; zero: with this one.
    repeats: u32,
    /// Its data left once more in another packet of this number.
    ambiguous: bool,
    app_limited: bool,
    /// Acknowledged or given up.
    resolved: bool,
}

/// Data that the scheduler gave to the path and that has not left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) range: DataRange,
    pub(crate) bytes: Bytes,
    /// It was sent before.
    pub(crate) copy: bool,
    /// The scheduler wished for the copy.
    pub(crate) duplicate: bool,
}

/// Lost data that leaves again on the path it was lost on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resend {
    /// The packet in which it first left.
    pub(crate) first: PacketNumber,
    pub(crate) range: DataRange,
    pub(crate) bytes: Bytes,
}

/// One path of a session.
#[derive(Debug)]
#[repr(C)] // What comes in needs first, then what leaves and is acknowledged, then the rest: in few lines of the cache.
pub(crate) struct Path {
    /// When the path was last heard, or data left that it must answer: for keep-alive.
    pub(crate) active_at: Time,
    pub(crate) id: SubflowId,
    pub(crate) carriage: Carriage,
    /// Whether the carrier takes datagrams.
    pub(crate) carrier_ready: bool,
    /// The carrier is in an episode of recovery that it will end.
    pub(crate) recovering: bool,
    /// The first of [`Self::resend`] may leave whatever the window says (RFC 6675 s5 step 4.3, RFC 6582 s3.2 step 2).
    pub(crate) fast_retransmit: bool,
    /// The retransmission timer ran out, and the path was not heard since.
    timed_out: bool,
    pub(crate) ack: AckDuty,
    pub(crate) delay: DelayMeter,
    /// Packets from number `base` on; the first is never resolved.
    sent: VecDeque<Sent>,
    base: u64,
    /// The highest number acknowledged.
    largest_acked: Option<u64>,
    /// When the packet acknowledged last had left.
    last_acked_sent_at: Option<Time>,
    /// When the path was last heard to deliver: an acknowledgement or a PONG.
    alive_at: Time,
    /// Since when an answer is owed: the first packet or probe that left after the path was last heard, or that moment
    /// if packets were in flight then. `None`: no answer is owed.
    awaiting_since: Option<Time>,
    /// When the last recovery episode began. Losses of packets that had left by then belong to it, even those that are
    /// found after its end (RFC 9002 s7.3.2, appendix B.6: `InCongestionRecovery`).
    recovery_start: Option<Time>,
    /// Whether it began with a congestion mark.
    pub(crate) marked: bool,
    /// The path has failed, and nothing was acknowledged since: what it loses is the same outage.
    unanswered: bool,
    /// Packets below this number left in a flight that filled the window.
    window_filled_below: u64,
    loss: Ewma,
    delivered_at: Time,
    first_sent_at: Time,
    /// While `delivered` is below, packets leave app-limited.
    app_limited_until: Option<Bytes>,
    pub(crate) pacer: Pacer,
    pub(crate) rtt: RttEstimator,
    /// The timeout before the first sample, without the delay of acknowledgements.
    first_rto: Duration,
    pub(crate) age: Age,
    pub(crate) way_back: WayBack,
    max_ack_delay: Duration,
    /// Assigned, waiting for the pacer or the carrier.
    pub(crate) queue: VecDeque<Queued>,
    /// Lost, to leave again on this path before anything new, in the order of the first transmissions. Empty unless the path
    /// carries a stream.
    pub(crate) resend: VecDeque<Resend>,
    /// Acknowledged by the carrier, not yet by the peer's session.
    pub(crate) undelivered: VecDeque<(Time, DataRange)>,
    /// Probes that left since the path was last heard, by token and time: the answer to any of them is one.
    probes: VecDeque<(u32, Time)>,
    /// A PING asks for an answer.
    pub(crate) pong_due: Option<u32>,
    pub(crate) report_due: Option<crate::record::DelayReport>,
    pub(crate) status_due: Option<Time>,
    pub(crate) status_ack_due: Option<u32>,
    /// Packets declared lost since the last path report.
    pub(crate) lost_since_report: u32,
    /// On a failed path: when to probe next, and the interval after that.
    pub(crate) next_probe: Time,
    pub(crate) probe_interval: Duration,
    last_token: u32,
    /// When the last PONG left: their rate is bounded.
    pub(crate) pong_at: Option<Time>,
    /// Our status, until the peer has acknowledged it, and when to send it again.
    pub(crate) status: PathStatus,
    /// The newest status the peer sent.
    pub(crate) peer_status_version: Option<u32>,
}

impl Path {
    pub(crate) fn new(now: Time, id: SubflowId, config: &Config, status: PathStatus) -> Self {
        Self {
            id,
            rtt: RttEstimator::new(),
            first_rto: INITIAL_RTO,
            age: Age::new(),
            pacer: Pacer::new(config.pacing_burst, config.pace_windows),
            queue: VecDeque::new(),
            resend: VecDeque::new(),
            fast_retransmit: false,
            timed_out: false,
            recovering: false,
            carriage: config.carriage,
            carrier_ready: true,
            sent: VecDeque::new(),
            base: 0,
            largest_acked: None,
            last_acked_sent_at: None,
            recovery_start: None,
            marked: false,
            unanswered: false,
            window_filled_below: 0,
            loss: Ewma::new(0.01),
            lost_since_report: 0,
            way_back: WayBack::default(),
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: None,
            alive_at: now,
            awaiting_since: None,
            active_at: now,
            probes: VecDeque::new(),
            next_probe: now,
            probe_interval: Duration::ZERO,
            last_token: 0,
            pong_due: None,
            pong_at: None,
            ack: AckDuty::default(),
            delay: DelayMeter::default(),
            report_due: None,
            status,
            status_due: None,
            status_ack_due: None,
            peer_status_version: None,
            undelivered: VecDeque::new(),
            max_ack_delay: config.max_ack_delay,
        }
    }

    /// Takes a sample of the round trip.
    pub(crate) fn measure(&mut self, now: Time, rtt: Duration, view: &mut SubflowView) {
        self.rtt.on_sample(rtt, Duration::ZERO);
        self.on_measured(now, rtt, view);
    }

    /// Takes a sample of the round trip of a path that carried nothing for a while.
    pub(crate) fn measure_anew(&mut self, now: Time, rtt: Duration, view: &mut SubflowView) {
        self.rtt.on_idle_sample(rtt);
        self.on_measured(now, rtt, view);
    }

    fn on_measured(&mut self, now: Time, rtt: Duration, view: &mut SubflowView) {
        self.age.on_sample(now);
        self.way_back.on_round_trip(rtt);
        view.latest_rtt = rtt;
        view.srtt = self.rtt.srtt();
        view.rttvar = self.rtt.rttvar();
        view.min_rtt = self.rtt.min().unwrap_or(rtt);
        view.max_rtt = self.rtt.max();
    }

    /// Whether nothing waits to leave, new or again.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.resend.is_empty()
    }

    /// Whether carrier and pacer let a packet leave.
    pub(crate) fn lets_go(&self, now: Time, view: &SubflowView) -> bool {
        self.carrier_ready && (!self.pacer.paces(view.pacing) || self.pacer.next() <= now)
    }

    /// The first packet in flight.
    pub(crate) fn oldest(&self) -> Option<(PacketNumber, &Sent)> {
        self.sent.front().map(|sent| (PacketNumber(self.base), sent))
    }

    /// Records a packet that leaves; returns its number. `first`: the packet in which its data left before on this path.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as its caller, `Session::launch`, is
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        range: DataRange,
        bytes: Bytes,
        first: Option<PacketNumber>,
        view: &mut SubflowView,
    ) -> PacketNumber {
        if view.in_flight.is_zero() {
            // draft-ietf-ccwg-bbr s4.1.1.2: a new flight starts here.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.pacer.on_sending(now, view);
        let number = self.base + self.sent.len() as u64;
        self.sent.push_back(Sent {
            range,
            bytes,
            sent_at: now,
            delivered: view.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            // A packet waits four thousand million others for its repetition only in theory; then it is one of its own.
            repeats: first.map_or(0, |first| u32::try_from(number - first.0).unwrap_or(0)),
            ambiguous: false,
            app_limited: self.app_limited_until.is_some(),
            resolved: false,
        });
        view.in_flight += bytes;
        if !view.has_room() {
            self.window_filled_below = number + 1;
        }
        view.last_sent = Some(now);
        self.active_at = now;
        self.awaiting_since.get_or_insert(now);
        self.pacer.on_sent(now, bytes, view.pacing);
        PacketNumber(number)
    }

    /// Resolves an acknowledged packet and measures what it tells. `None`: unknown, or resolved before.
    pub(crate) fn on_acked(
        &mut self,
        now: Time,
        number: PacketNumber,
        view: &mut SubflowView,
    ) -> Option<(Sent, Acked)> {
        let sent = self.resolve(number)?;
        self.last_acked_sent_at = Some(sent.sent_at);
        self.unanswered = false;
        self.pacer.on_acked();
        self.on_alive(now);
        view.in_flight -= sent.bytes;
        view.delivered += sent.bytes;
        let mut rtt = now.since(sent.sent_at);
        let repeated = sent.repeats > 0 || sent.ambiguous;
        if repeated {
            // RFC 8985 s6.2: sooner than in the shortest round trip only what had left before is acknowledged.
            rtt = rtt.max(self.rtt.min().unwrap_or(rtt));
        }
        if self.largest_acked.is_none_or(|largest| number.0 > largest) && !repeated {
            // RFC 9002 s5.1 takes one sample an acknowledgement, from the largest packet; carriers tell packet by packet, in
            // order, so that all that it covers are samples, with their wait for it. RFC 6298 s3, Karn: none from data that
            // left twice, since nobody knows which packet is acknowledged.
            self.largest_acked = Some(number.0);
            self.measure(now, rtt, view);
        }
        let in_recovery = self.recovering || self.recovery_start.is_some_and(|start| sent.sent_at <= start);
        if !in_recovery {
            view.in_recovery = false;
        }
        view.loss = self.loss.update(0.0);
        let delivery_rate = self.delivery_rate(now, &sent, view);
        if self.app_limited_until.is_some_and(|until| view.delivered > until) {
            self.app_limited_until = None;
            view.app_limited = false;
        }
        // What was repeated measures nothing; the controller is told what the path measured last.
        let rtt = if !repeated || self.largest_acked.is_none() { rtt } else { view.latest_rtt };
        let acked = Acked {
            packet: number,
            bytes: sent.bytes,
            sent_at: sent.sent_at,
            rtt,
            delivery_rate,
            delivered_at_send: sent.delivered,
            in_recovery,
            app_limited: number.0 >= self.window_filled_below && (sent.app_limited || view.in_flight * 2 < view.cwnd),
        };
        Some((sent, acked))
    }

    /// Whether the loss of a packet that left at `sent_at` begins a recovery episode; if so, it begins now.
    pub(crate) fn begins_episode(&mut self, now: Time, sent_at: Time, view: &mut SubflowView) -> bool {
        if self.unanswered || self.recovery_start.is_some_and(|start| sent_at <= start) {
            return false;
        }
        self.recovery_start = Some(now);
        self.marked = false;
        view.in_recovery = true;
        true
    }

    /// Nothing is heard any more: says whether in an episode of recovery. If not one begins, which ends with the first
    /// acknowledgement.
    pub(crate) fn times_out(&mut self, view: &mut SubflowView) -> bool {
        self.unanswered = true;
        core::mem::replace(&mut view.in_recovery, true)
    }

    /// When a packet in flight left; `None` if it is resolved or unknown.
    pub(crate) fn sent_at(&self, number: PacketNumber) -> Option<Time> {
        let index = usize::try_from(number.0.checked_sub(self.base)?).ok()?;
        self.sent.get(index).filter(|sent| !sent.resolved).map(|sent| sent.sent_at)
    }

    /// When the packet that carried a congestion mark left. Carriers may report the mark after the acknowledgement that
    /// brought it: then it is the packet acknowledged last.
    pub(crate) fn marked_sent_at(&self, number: PacketNumber) -> Option<Time> {
        self.sent_at(number).or(self.last_acked_sent_at)
    }

    /// The data of a packet in flight leaves once more under the same number: returns it. `None`: unknown, or resolved before.
    pub(crate) fn on_repeated(&mut self, number: PacketNumber) -> Option<DataRange> {
        let index = usize::try_from(number.0.checked_sub(self.base)?).ok()?;
        let sent = self.sent.get_mut(index).filter(|sent| !sent.resolved)?;
        sent.ambiguous = true;
        Some(sent.range)
    }

    /// Resolves a lost packet. `None`: unknown, or resolved before.
    pub(crate) fn on_lost(&mut self, number: PacketNumber, view: &mut SubflowView) -> Option<Sent> {
        let sent = self.resolve(number)?;
        view.in_flight -= sent.bytes;
        view.loss = self.loss.update(1.0);
        self.lost_since_report = self.lost_since_report.saturating_add(1);
        Some(sent)
    }

    /// Marks that the path could carry more than there is to send.
    pub(crate) fn mark_app_limited(&mut self, view: &mut SubflowView) {
        self.app_limited_until = Some(view.delivered + view.in_flight);
        view.app_limited = true;
    }

    /// Packets in flight, oldest first.
    pub(crate) fn packets_in_flight(&self) -> impl Iterator<Item = PacketNumber> + '_ {
        let base = self.base;
        self.sent.iter().enumerate().filter(|(_, sent)| !sent.resolved).map(move |(i, _)| PacketNumber(base + i as u64))
    }

    /// The carrier's timer ran out, which ends an episode of recovery. Says whether one was under way, and whether the path
    /// was not heard since the timer ran out before.
    pub(crate) fn on_retransmission_timeout(&mut self, view: &mut SubflowView) -> (bool, bool) {
        self.recovering = false;
        self.recovery_start = None;
        self.pacer.reset();
        (core::mem::take(&mut view.in_recovery), core::mem::replace(&mut self.timed_out, true))
    }

    /// What the controller's window comes to: one packet from a timeout until the path is heard (RFC 5681 s3.1, the loss
    /// window), whatever the controller says. One that is paced lets its rate fill the window again after that.
    pub(crate) fn window(&self, granted: Bytes, view: &SubflowView) -> Bytes {
        if self.timed_out { granted.min(view.mss) } else { granted }
    }

    /// Puts lost data where it leaves again on this path; it counts as queued there.
    pub(crate) fn queue_again(&mut self, number: PacketNumber, sent: &Sent, view: &mut SubflowView) {
        let first = PacketNumber(number.0 - u64::from(sent.repeats));
        let again = Resend { first, range: sent.range, bytes: sent.bytes };
        let place = self.resend.partition_point(|held| held.first < first);
        self.resend.insert(place, again);
        view.queued += sent.bytes;
    }

    /// Whether there is something that the window lets leave. What was assigned was so within it, but it may have shrunk since
    /// (RFC 9002 s7); and what was lost before goes first.
    pub(crate) fn may_send(&self, view: &SubflowView) -> bool {
        let room = |queued: &Queued| view.in_flight.is_zero() || view.in_flight + queued.bytes <= view.cwnd;
        self.resend.is_empty() && self.queue.front().is_some_and(room) || self.may_resend(view)
    }

    /// Whether lost data may leave again now, as far as the window is concerned.
    pub(crate) fn may_resend(&self, view: &SubflowView) -> bool {
        let room = |again: &Resend| view.in_flight.is_zero() || view.in_flight + again.bytes <= view.cwnd;
        self.resend.front().is_some_and(|again| self.fast_retransmit || room(again))
    }

    /// Has the packets fetched that are acknowledged next, and the place of the next to leave.
    pub(crate) fn prefetch(&self) {
        self.sent.front().into_iter().chain(self.sent.back()).for_each(prefetch);
    }

    fn resolve(&mut self, number: PacketNumber) -> Option<Sent> {
        let index = usize::try_from(number.0.checked_sub(self.base)?).ok()?;
        let slot = self.sent.get_mut(index)?;
        if slot.resolved {
            return None;
        }
        slot.resolved = true;
        let sent = *slot;
        while self.sent.front().is_some_and(|first| first.resolved) {
            self.sent.pop_front();
            self.base += 1;
        }
        Some(sent)
    }

    /// draft-ietf-ccwg-bbr s4.1: data delivered over the longer of the send and the ACK interval.
    fn delivery_rate(&mut self, now: Time, sent: &Sent, view: &mut SubflowView) -> Rate {
        let send_elapsed = sent.sent_at.since(sent.first_sent_at);
        let ack_elapsed = now.since(sent.delivered_at);
        self.delivered_at = now;
        self.first_sent_at = sent.sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        // An interval below the smallest round trip is ACK compression (same draft).
        if interval.is_zero() || interval < view.min_rtt {
            return Rate::ZERO;
        }
        let rate = Rate::from_bytes_per(view.delivered - sent.delivered, interval);
        view.delivery_rate = rate;
        view.rate_app_limited = sent.app_limited;
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    #[test]
    fn a_loss_found_after_the_episode_it_belongs_to_begins_no_other() {
        let (id, size) = (SubflowId(0), Bytes::new(1400));
        let status = PathStatus { version: 0, cost_milli: 1000, backup: false };
        let mut path = Path::new(Time::ZERO, id, &Config::new(Role::Client), status);
        let mut view = SubflowView::new(id, size);
        let send = |path: &mut Path, view: &mut SubflowView, millis| {
            path.on_sent(Time::from_millis(millis), DataRange::default(), size, None, view)
        };
        let old = [send(&mut path, &mut view, 1), send(&mut path, &mut view, 2)];
        let sent_at = path.sent_at(old[0]).unwrap();
        assert!(path.begins_episode(Time::from_millis(30), sent_at, &mut view) && view.in_recovery);
        path.on_lost(old[0], &mut view);
        // A packet of the next round trip is acknowledged: the episode is over.
        let new = send(&mut path, &mut view, 31);
        let (_, acked) = path.on_acked(Time::from_millis(61), new, &mut view).unwrap();
        assert!(!acked.in_recovery && !view.in_recovery);
        // The tail of the old flight is found lost by the same acknowledgement.
        let sent_at = path.sent_at(old[1]).unwrap();
        assert!(!path.begins_episode(Time::from_millis(61), sent_at, &mut view));
        // What left since is another matter.
        let next = send(&mut path, &mut view, 62);
        let sent_at = path.sent_at(next).unwrap();
        assert!(path.begins_episode(Time::from_millis(92), sent_at, &mut view));
    }

    #[test]
    fn what_waits_for_the_pacer_waits_for_a_window_that_has_shrunk() {
        let (id, bytes) = (SubflowId(0), Bytes::new(1400));
        let status = PathStatus { version: 0, cost_milli: 1000, backup: false };
        let mut path = Path::new(Time::ZERO, id, &Config::new(Role::Client), status);
        let mut view = SubflowView::new(id, bytes);
        view.cwnd = bytes * 3;
        let packets = [0; 2].map(|_| path.on_sent(Time::ZERO, DataRange::default(), bytes, None, &mut view));
        path.queue.push_back(Queued { range: DataRange::default(), bytes, copy: false, duplicate: false });
        assert!(path.may_send(&view));
        view.cwnd = bytes * 2;
        assert!(!path.may_send(&view));
        path.on_acked(Time::from_millis(30), packets[0], &mut view);
        assert!(path.may_send(&view));
        // A window below a packet lets one go at a time.
        view.cwnd = bytes / 2;
        assert!(!path.may_send(&view));
        path.on_acked(Time::from_millis(31), packets[1], &mut view);
        assert!(path.may_send(&view));
    }

    #[test]
    fn a_window_is_spread_over_a_round_trip() {
        let (id, size) = (SubflowId(0), Bytes::new(1400));
        let status = PathStatus { version: 0, cost_milli: 1000, backup: false };
        let mut path = Path::new(Time::ZERO, id, &Config::new(Role::Client), status);
        let mut view = SubflowView::new(id, size);
        let goes_on = |path: &mut Path, view: &mut SubflowView, micros| {
            path.on_sent(Time::from_micros(micros), DataRange::default(), size, None, view);
            path.lets_go(Time::from_micros(micros), view)
        };
        view.cwnd = size * 100;
        assert!(goes_on(&mut path, &mut view, 0), "nothing is known of the round trip");
        path.on_acked(Time::from_millis(100), PacketNumber(0), &mut view);
        // 125 packets in 100 ms: one every 0.8 ms, with a burst of half a millisecond.
        assert!(!goes_on(&mut path, &mut view, 100_000));
        path.on_acked(Time::from_micros(100_500), PacketNumber(1), &mut view);
        assert!(!path.lets_go(Time::from_micros(100_200), &view) && path.lets_go(Time::from_micros(100_300), &view));
        view.cwnd = size * 10;
        assert!(goes_on(&mut path, &mut view, 101_000), "a window that may leave at once");
        view.cwnd = size * 100;
        view.pacing = Some(Rate::from_mbps(1000.0));
        assert!(goes_on(&mut path, &mut view, 102_000), "the controller's rate is what counts");
    }

    #[test]
    fn after_an_idle_time_an_acknowledged_window_is_spread_over_a_round_trip() {
        let (id, size) = (SubflowId(0), Bytes::new(1400));
        let status = PathStatus { version: 0, cost_milli: 1000, backup: false };
        let config = Config { pace_windows: false, ..Config::new(Role::Client) };
        let mut path = Path::new(Time::ZERO, id, &config, status);
        let mut view = SubflowView::new(id, size);
        view.cwnd = size * 100;
        let send = |path: &mut Path, view: &mut SubflowView, millis| {
            let packet = path.on_sent(Time::from_millis(millis), DataRange::default(), size, None, view);
            (packet, path.lets_go(Time::from_millis(millis), view))
        };
        let (first, another) = send(&mut path, &mut view, 0);
        assert!(another, "the first flight is the controller's matter");
        path.on_acked(Time::from_millis(100), first, &mut view);
        // 125 packets in 100 ms: one every 0.8 ms.
        let (second, another) = send(&mut path, &mut view, 1_000);
        assert!(!another && path.lets_go(Time::from_micros(1_000_800), &view));
        path.on_acked(Time::from_millis(1_100), second, &mut view);
        let (_, another) = send(&mut path, &mut view, 1_101);
        assert!(another, "the path was not idle");
    }
}
