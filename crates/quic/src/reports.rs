//! What becomes of records inside noq: which packet carried them, and whether it was acknowledged or lost.
//!
//! noq numbers packets and reports by number to the congestion controller that we give it; it says nothing about datagrams.
//! The link is the datagram's buffer: noq drops it when it has written the frame, just before it reports the packet as sent.
//! So what was dropped since the last such report is what the packet carries. This is exact because everything that touches
//! a carrier runs on one thread.
//!
//! # One packet at a time, at first
//!
//! noq (1.4.0) writes `ACK_FREQUENCY` frames without asking whether the packet has room. It has, but for one case: probes after
//! a timeout leave in a batch whose packets are all as long as the first, the first repeats something short, and the second
//! the `ACK_FREQUENCY` that has not been acknowledged yet. Then noq panics, and takes the process with it; a server that gets no
//! processor while a carrier is set up comes to that. noq sends this frame once, at the beginning, so that batches are held
//! back until the peer has acknowledged what came after noq's own packets of the beginning: see [`Beginning`].
//! noq knows that a second probe may not fit: <https://github.com/n0-computer/noq/pull/698>.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use manypath_core::PacketNumber;
use noq::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;
use tokio::sync::Notify;

use crate::under_way::UnderWay;

/// A window that never binds. Above `u32::MAX` noq's pacer is off too; both tasks are the session's.
const OPEN_WINDOW: u64 = 1 << 40;

/// The least that a packet adds to a datagram: short header, packet number, frame type and length, authentication tag.
const MIN_OVERHEAD: usize = 20;

/// Spare buffers a carrier keeps.
const SPARE: usize = 256;

/// After so many round trips noq has lost a packet of which it reported nothing: a probe for larger packets.
const LOST_AFTER: u32 = 4;

/// What became of a data record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The peer's QUIC has it.
    Acked(PacketNumber),
    /// Declared lost, or dropped before it left.
    Lost(PacketNumber),
    /// The peer saw a congestion mark; this is the latest record that may have caused it.
    Marked(PacketNumber),
}

/// What a driver takes at once.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fates: Vec<Fate>,
    /// When to have [`Reports::detect_losses`] look.
    pub(crate) loss_at: Option<Instant>,
    /// The packet size changed.
    pub(crate) mtu_changed: bool,
}

/// Shared by the carrier's driver, its datagrams and noq's controller.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    inner: Mutex<Inner>,
    /// Nothing of noq's beginning is under way any more: packets may leave in batches.
    settled: AtomicBool,
    /// The session has a controller that ignores congestion marks. Not known before there is a session: noq begins with ECN or
    /// never has it.
    ignores_marks: AtomicBool,
    /// Something is to be taken.
    pub(crate) notify: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// Data records whose buffers were dropped since the last packet was sent.
    written: Vec<PacketNumber>,
    /// Whether any record's buffer was dropped since then.
    carries: bool,
    beginning: Beginning,
    under_way: UnderWay,
    news: News,
    /// Datagrams given to noq and not yet written.
    queued: usize,
    /// The driver wants to know when fewer are.
    wake_below: usize,
    /// QUIC packet size; 0: not known yet.
    mtu: usize,
    spare: Vec<Vec<u8>>,
}

/// The packets with which noq begins, until all of them are resolved.
#[derive(Debug, Default)]
struct Beginning {
    /// Those with frames of noq's own that are not known to be acknowledged or lost, and when they left.
    own: Vec<(u64, Instant)>,
    /// The latest of them.
    last: u64,
    /// One of them was lost: the next packet may have its frames, whatever else it carries.
    repeats: bool,
    over: bool,
}

impl Beginning {
    fn on_sent(&mut self, now: Instant, packet: u64, carries_records: bool) {
        if (std::mem::take(&mut self.repeats) || !carries_records) && !self.over {
            self.own.push((packet, now));
            self.last = packet;
        }
    }

    fn on_lost(&mut self, packet: u64) {
        self.lose(|number, _| number == packet);
    }

    fn lose(&mut self, is_lost: impl Fn(u64, Instant) -> bool) {
        let before = self.own.len();
        self.own.retain(|(number, left_at)| !is_lost(*number, *left_at));
        self.repeats |= self.own.len() < before;
    }

    /// Notes an acknowledgement; says whether the beginning is over. `largest`: the highest packet acknowledged.
    fn on_acked(&mut self, now: Instant, packet: u64, largest: Option<u64>, rtt: Duration) -> bool {
        if let Some(largest) = largest.filter(|_| !self.over) {
            self.own.retain(|(number, _)| *number != packet);
            self.lose(|number, left_at| number < largest && left_at + rtt * LOST_AFTER < now);
            self.over = self.own.is_empty() && !self.repeats && largest > self.last;
        }
        self.over
    }
}

impl Inner {
    /// Notes the packet that the records just written are in.
    fn on_sent(&mut self, now: Instant, number: u64) {
        self.under_way.on_sent(now, number, self.written.drain(..));
        self.beginning.on_sent(now, number, std::mem::take(&mut self.carries));
    }

    /// The connection has migrated: noq never reports about what was sent before.
    fn abandon(&mut self) {
        self.under_way.abandon(&mut self.news.fates);
    }
}

impl Reports {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether packets may be marked.
    pub(crate) fn answers_marks(&self) -> bool {
        !self.ignores_marks.load(Ordering::Relaxed)
    }

    /// The carrier is a session's now, whose controller answers marks or does not.
    pub(crate) fn set_answers_marks(&self, answers: bool) {
        self.ignores_marks.store(!answers, Ordering::Relaxed);
    }

    /// Makes a datagram of a buffer. `packet`: the data record in it, if it is one.
    pub(crate) fn datagram(self: &Arc<Self>, bytes: Vec<u8>, packet: Option<PacketNumber>) -> Bytes {
        Bytes::from_owner(Datagram { bytes, packet, reports: Arc::clone(self) })
    }

    /// An empty buffer.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_else(|| Vec::with_capacity(1500))
    }

    /// Notes that datagrams are about to be given to noq.
    pub(crate) fn on_queued(&self, count: usize) {
        self.lock().queued += count;
    }

    /// noq refused the datagrams just dropped: none of them will be sent.
    pub(crate) fn on_refused(&self) {
        let inner = &mut *self.lock();
        inner.news.fates.extend(inner.written.drain(..).map(Fate::Lost));
        inner.carries = false;
        self.notify.notify_one();
    }

    /// noq has a path, with packets of this size: its first, or one that a migration led to.
    fn on_path(&self, mtu: usize) {
        let inner = &mut *self.lock();
        if inner.mtu != 0 {
            inner.abandon();
            inner.news.mtu_changed = true;
            self.notify.notify_one();
        }
        inner.mtu = mtu;
    }

    /// A packet was acknowledged that left at `sent_at`.
    fn on_acked(&self, now: Instant, sent_at: Instant, number: u64, smoothed: Duration) {
        let Inner { under_way, beginning, news, .. } = &mut *self.lock();
        under_way.on_acked(now, number, sent_at, smoothed, &mut news.fates);
        if beginning.on_acked(now, number, under_way.largest_acked(), under_way.rtt()) {
            self.settled.store(true, Ordering::Relaxed);
        }
    }

    /// Finds what is lost by now; the driver takes it, and when to look next.
    pub(crate) fn detect_losses(&self, now: Instant) {
        let Inner { under_way, news, .. } = &mut *self.lock();
        under_way.detect_losses(now, &mut news.fates);
        self.notify.notify_one();
    }

    /// The same after an acknowledgement: the driver is told if something is new.
    fn on_end_acks(&self, now: Instant) {
        let Inner { under_way, news, .. } = &mut *self.lock();
        let before = under_way.loss_at();
        under_way.detect_losses(now, &mut news.fates);
        if !news.fates.is_empty() || under_way.loss_at() != before {
            self.notify.notify_one();
        }
    }

    /// How many datagrams wait in noq. If it is `limit` or more, the driver is notified when it is less.
    pub(crate) fn queued(&self, limit: usize) -> usize {
        let inner = &mut *self.lock();
        inner.wake_below = if inner.queued >= limit { limit } else { 0 };
        inner.queued
    }

    /// Takes the news; the vector given back is reused.
    pub(crate) fn take(&self, news: &mut News) {
        news.fates.clear();
        news.mtu_changed = false;
        let inner = &mut *self.lock();
        std::mem::swap(&mut inner.news, news);
        news.loss_at = inner.under_way.loss_at();
    }
}

/// A record on its way through noq.
struct Datagram {
    bytes: Vec<u8>,
    packet: Option<PacketNumber>,
    reports: Arc<Reports>,
}

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let inner = &mut *self.reports.lock();
        inner.queued = inner.queued.saturating_sub(1);
        // When packets shrink, noq drops what no longer fits. That never left.
        let has_left = inner.mtu == 0 || bytes.len() + MIN_OVERHEAD <= inner.mtu;
        inner.carries |= has_left;
        match self.packet {
            Some(packet) if has_left => inner.written.push(packet),
            Some(packet) => inner.news.fates.push(Fate::Lost(packet)),
            None => {}
        }
        if inner.spare.len() < SPARE {
            bytes.clear();
            inner.spare.push(bytes);
        }
        if inner.queued < inner.wake_below {
            inner.wake_below = 0;
            self.reports.notify.notify_one();
        }
    }
}

/// noq's congestion controller: lets everything through and reports.
pub(crate) struct Reporter {
    reports: Arc<Reports>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}

/// Makes the controller of one carrier.
#[derive(Debug)]
pub(crate) struct ReporterFactory(pub(crate) Arc<Reports>);

/// noq makes a controller when the connection begins, and again when the peer's address has changed so that it takes the path
/// for a new one; where it takes it for the same, it clones the controller.
impl ControllerFactory for ReporterFactory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.0.on_path(usize::from(current_mtu));
        Box::new(Reporter { reports: Arc::clone(&self.0) })
    }
}

impl Controller for Reporter {
    fn on_packet_sent(&mut self, now: Instant, _bytes: u16, number: u64) {
        self.reports.lock().on_sent(now, number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        number: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.reports.on_acked(now, sent, number, rtt.get());
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.reports.on_end_acks(now);
    }

    fn on_packet_lost(&mut self, _bytes: u16, number: u64, _now: Instant) {
        let Inner { under_way, beginning, news, .. } = &mut *self.reports.lock();
        under_way.on_lost(number, &mut news.fates);
        beginning.on_lost(number);
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest: u64,
    ) {
        let inner = &mut *self.reports.lock();
        if is_ecn && let Some(record) = inner.under_way.last_acked() {
            inner.news.fates.push(Fate::Marked(record));
        }
        self.reports.notify.notify_one();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let inner = &mut *self.reports.lock();
        inner.mtu = usize::from(new_mtu);
        inner.news.mtu_changed = true;
        self.reports.notify.notify_one();
    }

    fn window(&self) -> u64 {
        OPEN_WINDOW
    }

    /// noq sends as many packets at once as fit into the quantum, and at least one.
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = OPEN_WINDOW;
        metrics.send_quantum = (!self.reports.settled.load(Ordering::Relaxed)).then_some(0);
        metrics
    }

    /// noq clones the controller when the connection migrates.
    fn clone_box(&self) -> Box<dyn Controller> {
        self.reports.lock().abandon();
        self.reports.notify.notify_one();
        Box::new(Self { reports: Arc::clone(&self.reports) })
    }

    fn initial_window(&self) -> u64 {
        OPEN_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(reports: &Reports) -> Vec<Fate> {
        let mut news = News::default();
        reports.take(&mut news);
        news.fates
    }

    /// What noq does when a packet is acknowledged that left just now.
    fn acked(reports: &Reports, number: u64) {
        let now = Instant::now();
        reports.on_acked(now, now, number, Duration::from_millis(16));
    }

    fn controller(reports: &Arc<Reports>) -> Box<dyn Controller> {
        Arc::new(ReporterFactory(Arc::clone(reports))).build(Instant::now(), 1200)
    }

    /// What noq does with a datagram that it puts into a packet.
    fn write(reports: &Arc<Reports>, record: Option<u64>) {
        drop(reports.datagram(vec![0; 1000], record.map(PacketNumber)));
    }

    #[test]
    fn each_record_is_reported_once_by_the_packet_that_carried_it() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let now = Instant::now();
        controller.on_packet_sent(now, 50, 0);
        write(&reports, Some(0));
        write(&reports, None);
        write(&reports, Some(1));
        controller.on_packet_sent(now, 1200, 1);
        controller.on_packet_sent(now, 40, 2);
        write(&reports, Some(2));
        controller.on_packet_sent(now, 1200, 3);
        acked(&reports, 2);
        acked(&reports, 0);
        assert_eq!(fates(&reports), []);
        controller.on_packet_lost(1200, 1, now);
        acked(&reports, 3);
        acked(&reports, 1);
        let (zero, one, two) = (PacketNumber(0), PacketNumber(1), PacketNumber(2));
        assert_eq!(fates(&reports), [Fate::Lost(zero), Fate::Lost(one), Fate::Acked(two)]);
        assert!(reports.lock().under_way.is_empty());
    }

    #[test]
    fn buffers_are_used_again_and_not_hoarded() {
        let reports = Arc::new(Reports::default());
        let waiting: Vec<Bytes> = (0..2 * SPARE).map(|_| reports.datagram(reports.buffer(), None)).collect();
        drop(waiting);
        assert_eq!(reports.lock().spare.len(), SPARE);
        assert!(reports.buffer().is_empty());
        assert_eq!(reports.lock().spare.len(), SPARE - 1);
    }

    #[tokio::test]
    async fn the_driver_hears_of_what_becomes_of_records_and_of_a_new_size() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let now = Instant::now();
        let told = async || {
            tokio::select! {
                biased;
                () = reports.notify.notified() => true,
                () = std::future::ready(()) => false,
            }
        };
        for number in 0..2 {
            write(&reports, Some(number));
            controller.on_packet_sent(now, 1200, number);
        }
        controller.on_end_acks(now, 0, false, None);
        assert!(!told().await, "nothing was acknowledged");
        acked(&reports, 0);
        controller.on_end_acks(now, 0, false, Some(0));
        assert!(told().await);
        controller.on_packet_lost(1200, 1, now);
        controller.on_congestion_event(now, now, false, false, 1200, 1);
        assert!(told().await);
        controller.on_mtu_update(1400);
        assert!(told().await);
        assert!(!told().await);
    }

    #[test]
    fn packets_leave_one_by_one_until_those_of_the_beginning_are_resolved() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let now = Instant::now();
        let send = |controller: &mut dyn Controller, number, records: u64| {
            (0..records).for_each(|record| write(&reports, Some(record)));
            controller.on_packet_sent(now, 1200, number);
        };
        let quantum = |controller: &dyn Controller| controller.metrics().send_quantum;
        for (number, records) in [(0, 0), (1, 2), (2, 1), (3, 0), (4, 1), (5, 1)] {
            send(&mut *controller, number, records);
            assert_eq!(quantum(&*controller), Some(0));
        }
        // Packet 3 may repeat what is in 0; what is in 0 may leave again in 6.
        for number in [1, 3, 4] {
            acked(&reports, number);
            assert_eq!(quantum(&*controller), Some(0), "after the acknowledgement of {number}");
        }
        controller.on_packet_lost(1200, 0, now);
        acked(&reports, 5);
        assert_eq!(quantum(&*controller), Some(0), "it has not left again");
        send(&mut *controller, 6, 1);
        send(&mut *controller, 7, 1);
        acked(&reports, 7);
        assert_eq!(quantum(&*controller), Some(0));
        acked(&reports, 6);
        assert_eq!(quantum(&*controller), None);
        send(&mut *controller, 8, 0);
        assert_eq!(quantum(&*controller), None);
    }

    #[test]
    fn a_probe_for_larger_packets_that_is_lost_holds_nothing_back() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let (now, rtt) = (Instant::now(), Duration::from_millis(16));
        let quantum = |controller: &dyn Controller| controller.metrics().send_quantum;
        let send = |controller: &mut dyn Controller, left_at, packet| {
            write(&reports, Some(packet));
            controller.on_packet_sent(left_at, 1200, packet);
        };
        controller.on_packet_sent(now, 1452, 0);
        for (packet, round_trips) in [(1, 3), (2, 4)] {
            let left_at = now + rtt * (round_trips - 1);
            send(&mut *controller, left_at, packet);
            reports.on_acked(left_at + rtt, left_at, packet, rtt);
            assert_eq!(quantum(&*controller), Some(0), "it may not be lost yet");
        }
        // For all that is known the next packet repeats what was in it.
        for (packet, last) in [(3, Some(0)), (4, Some(0)), (5, None)] {
            send(&mut *controller, now + rtt * 4, packet);
            reports.on_acked(now + rtt * 5, now + rtt * 4, packet, rtt);
            assert_eq!(quantum(&*controller), last, "{packet}");
        }
    }

    #[test]
    fn what_never_left_is_lost() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let (zero, one, two) = (PacketNumber(0), PacketNumber(1), PacketNumber(2));
        // Packets shrink, and noq drops what no longer fits.
        controller.on_mtu_update(900);
        write(&reports, Some(0));
        assert_eq!(fates(&reports), [Fate::Lost(zero)]);
        // noq refuses a batch.
        controller.on_mtu_update(1200);
        write(&reports, Some(1));
        reports.on_refused();
        assert_eq!(fates(&reports), [Fate::Lost(one)]);
        // The connection migrates, and noq forgets what was sent before.
        write(&reports, Some(2));
        controller.on_packet_sent(Instant::now(), 1200, 7);
        let _migrated = controller.clone_box();
        assert_eq!(fates(&reports), [Fate::Lost(two)]);
        acked(&reports, 7);
        assert_eq!(fates(&reports), []);
    }

    #[test]
    fn a_path_that_noq_takes_for_a_new_one_begins_anew() {
        let reports = Arc::new(Reports::default());
        let mut first = controller(&reports);
        first.on_mtu_update(1452);
        let mut news = News::default();
        reports.take(&mut news);
        write(&reports, Some(0));
        first.on_packet_sent(Instant::now(), 1200, 7);
        // The peer's address has changed: what was under way is not reported, and packets are as small as at first.
        let mut migrated = controller(&reports);
        reports.take(&mut news);
        assert!(news.mtu_changed);
        assert_eq!(news.fates, [Fate::Lost(PacketNumber(0))]);
        write(&reports, Some(1));
        migrated.on_packet_sent(Instant::now(), 1200, 8);
        acked(&reports, 8);
        assert_eq!(fates(&reports), [Fate::Acked(PacketNumber(1))]);
    }

    #[test]
    fn a_mark_falls_on_the_record_acknowledged_last() {
        let reports = Arc::new(Reports::default());
        let mut controller = controller(&reports);
        let now = Instant::now();
        for number in 0..4 {
            write(&reports, Some(number));
            controller.on_packet_sent(now, 1200, 10 + number);
        }
        // noq takes what an acknowledgement acknowledges, and then its counts of marks.
        (10..=12).for_each(|number| acked(&reports, number));
        controller.on_congestion_event(now, now, false, true, 0, 12);
        let acked = (0..3).map(|record| Fate::Acked(PacketNumber(record)));
        assert_eq!(fates(&reports), acked.chain([Fate::Marked(PacketNumber(2))]).collect::<Vec<_>>());
        controller.on_congestion_event(now, now, false, false, 1200, 12);
        assert_eq!(fates(&reports), []);
        // What was acknowledged before a migration was not marked after it.
        let mut migrated = controller.clone_box();
        fates(&reports);
        migrated.on_congestion_event(now, now, false, true, 0, 13);
        assert_eq!(fates(&reports), []);
    }

    #[tokio::test]
    async fn the_driver_hears_when_there_is_room() {
        let reports = Arc::new(Reports::default());
        let waiting: Vec<Bytes> = (0..3).map(|_| reports.datagram(vec![0; 10], None)).collect();
        reports.on_queued(3);
        assert_eq!(reports.queued(2), 3);
        drop(waiting);
        reports.notify.notified().await;
        assert_eq!(reports.queued(2), 0);
    }
}
