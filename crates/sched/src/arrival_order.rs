//! Arrival order: each segment where it will arrive in order, by when each subflow's next packet will arrive. Ours.
//!
//! It slides as STMS does (Shi et al., USENIX ATC 2018, algorithm 1, eq. 2): a subflow sends the data behind what all that arrive
//! before it will have delivered by then. STMS takes half the smoothed round-trip time for that, which halves the queue of a path whose
//! data waits and whose acknowledgements do not, or learns the gap from acknowledgements in some seconds. Here it is predicted:
//!
//! * What a subflow has in flight leaves the path at its delivery rate, so a packet sent now is acknowledged after the one over
//!   the other (Little's law), and not before the smallest round-trip time. That knows of a queue that has built up, or has drained,
//!   since the packet left that the last round-trip time is of. If for a whole round trip all take longer than what is in flight
//!   explains, the way has become longer, and the smallest of them is the smallest.
//! * The rate is the largest sample of this round trip and the one before: a sample during a loss is less than the path's.
//! * A sample while there was little to send is less, too, and makes a burst after it look like a long queue. So a prediction above
//!   the smoothed round-trip time has to be one by samples that nothing limited.
//! * It arrives before its acknowledgement does, by the way back: queues are in the data's direction. How long that is the delays
//!   tell that the peer reports, over QUIC; where they do not it is half of the smallest round-trip time.
//! * A segment that is lost arrives `L` later, nine eighths of a round trip (RFC 9002 s6.1.2), and what others deliver meanwhile waits for
//!   it. One that was sent to be there `s` before it is due waits itself, but holds up the others for `L - s` only. If one of `1/p`
//!   segments begins an episode of loss, and the others deliver `r` segments a second, both together are `s + p r (L - s)^2 / 2`, least
//!   for `s = L - 1 / (p r)`. So much later, if it is more than nothing, a subflow's segments are taken to arrive: a thin path that
//!   loses, beside a fat one, does not hold up its window.
//! * A subflow that has owed an answer for longer than its retransmission timeout (`silence.rs`) is taken to owe it for as long again.
//! * The subflow that arrives first has no gap. The gap of another is the sum over those before it of what they send until it
//!   arrives, at the rate of their windows or paces, or, if that is less, at which they delivered when nothing limited them.
//!
//! So the fastest is not who has the smallest round-trip time but who arrives first now, and with several subflows each counts for the
//! time that it is ahead. Lost data stands in the gap, too, from where the lowest of it belongs; in STMS before all that is unsent. After a
//! flood that lost most of a window, what had been left for the first to arrive would wait until all of it has been repeated.
//!
//! What a subflow is given it keeps, whatever becomes of its rate. So one that is paced is given more only while it has little queued, as
//! in [`rate_based`] (MPCC s6).
//!
//! A subflow that is alone has the front, and nothing is predicted.
//!
//! It waits when every subflow that has room, and little queued, has a gap that reaches beyond the unsent data or the window. The one
//! that arrives first never waits for another.

use manypath_core::{Bytes, Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::bandwidth;
use crate::queue::Queue;
use crate::rate_based;
use crate::reason;
use crate::rescue::Rescue;
use crate::scheduler::{Choice, Scheduler};
use crate::silence::Silence;
use crate::stms::{GAP_TOO_LONG, behind, wait};

/// The largest of the samples of this round trip and the one before, bytes per second; zero before the first.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    before: f64,
    now: f64,
    /// When this round trip began; `None` before the first sample.
    since: Option<Time>,
}

impl Largest {
    fn add(&mut self, now: Time, sample: f64, round_trip: Duration) {
        if now.since(*self.since.get_or_insert(now)) >= round_trip {
            *self = Self { before: self.now, now: 0.0, since: Some(now) };
        }
        self.now = self.now.max(sample);
    }

    const fn rate(&self) -> f64 {
        self.now.max(self.before)
    }
}

/// A way has become longer if its round trips are more than this many times what they were at the least.
const LONGER: f64 = 1.25;
/// What was in flight explains a round trip if it takes this share of it, or more, to leave the path.
const EXPLAINED: f64 = 0.5;
/// So long a longer way and losses are believed in when nothing is heard; then their path is tried again.
const BELIEVED: Duration = Duration::from_secs(10);

/// How long a round trip takes with nothing of one's own in the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    /// Seconds.
    value: f64,
    /// The smallest of the round trips measured in this one, seconds; `None` if what was in flight explains one of them.
    round: Option<f64>,
    /// When it began.
    since: Option<Time>,
    /// What had been delivered when the last was measured, and when that was.
    heard: Option<(Bytes, Time)>,
}

impl Least {
    /// `leaves`: how long what was in flight takes to leave the path, seconds.
    fn add(&mut self, now: Time, subflow: &SubflowView, leaves: f64) {
        let Some(srtt) = subflow.srtt else { return };
        if self.heard.is_none_or(|(_, at)| now.since(at) >= BELIEVED) {
            self.value = subflow.min_rtt.as_secs_f64();
        }
        if self.heard.is_some_and(|(delivered, _)| delivered == subflow.delivered) {
            return;
        }
        self.heard = Some((subflow.delivered, now));
        if now.since(*self.since.get_or_insert(now)) >= srtt {
            if let Some(round) = self.round.filter(|round| *round > LONGER * self.value) {
                self.value = round;
            }
            (self.round, self.since) = (Some(f64::INFINITY), Some(now));
        }
        let latest = subflow.latest_rtt.as_secs_f64();
        self.value = self.value.min(latest);
        self.round = self.round.filter(|_| leaves < EXPLAINED * latest).map(|round| round.min(latest));
    }
}

/// Round trips after which a segment is taken for lost (RFC 9002 s6.1.2).
const LOST_AFTER: f64 = 9.0 / 8.0;

/// How many segments a subflow's losses are counted over.
const COUNTED: f64 = 1000.0;

/// How often a subflow loses.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Episodes of loss for each segment delivered. What is lost together holds up once.
    share: f64,
    /// What had been delivered when something was heard last, and when that was.
    heard: (Bytes, Time),
    recovering: bool,
}

impl Losses {
    fn add(&mut self, now: Time, subflow: &SubflowView) {
        let (delivered, at) = self.heard;
        if subflow.delivered != delivered {
            let segments = (subflow.delivered - delivered).as_f64() / subflow.mss.as_f64().max(1.0);
            self.share -= self.share * (segments / COUNTED).min(1.0);
            self.heard = (subflow.delivered, now);
        } else if now.since(at) >= BELIEVED {
            self.share = 0.0;
        }
        if subflow.in_recovery && !self.recovering {
            self.share += 1.0 / COUNTED;
        }
        self.recovering = subflow.in_recovery;
    }
}

/// How fast a subflow delivers.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// By all samples.
    any: Largest,
    /// By those that nothing limited, and those that are larger all the same.
    free: Largest,
    /// What was in flight, bytes.
    flight: Largest,
    least: Least,
    losses: Losses,
    silence: Silence,
}

impl Delivery {
    fn add(&mut self, now: Time, subflow: &SubflowView) {
        let sample = subflow.delivery_rate.as_bytes_per_sec();
        let round_trip = subflow.srtt.unwrap_or(Duration::ZERO);
        self.any.add(now, sample, round_trip);
        if !subflow.rate_app_limited || sample > self.free.rate() {
            self.free.add(now, sample, round_trip);
        }
        self.flight.add(now, (subflow.in_flight + subflow.mss).as_f64(), round_trip);
        self.losses.add(now, subflow);
        self.silence.add(now, subflow);
        let free = self.free.rate();
        self.least.add(now, subflow, if free > 0.0 { self.flight.rate() / free } else { f64::INFINITY });
    }

    /// When a packet that leaves now will be acknowledged, seconds from now.
    fn round_trip(&self, subflow: &SubflowView) -> f64 {
        let Some(srtt) = subflow.srtt.map(Duration::as_secs_f64) else { return 0.0 };
        let of = |rate: &Largest| if rate.rate() > 0.0 { subflow.in_flight.as_f64() / rate.rate() } else { srtt };
        of(&self.any).min(of(&self.free).max(srtt)).max(self.least.value.min(srtt))
    }

    /// How long before it is due a segment has to be there, seconds, where others deliver so many bytes a second.
    fn early(&self, due: &Due, others: f64) -> f64 {
        if self.losses.share <= 0.0 {
            return 0.0;
        }
        (LOST_AFTER * due.round_trip - due.mss / (self.losses.share * others.max(0.0))).max(0.0)
    }

    /// What a subflow sends, bytes per second.
    fn sends(&self, subflow: &SubflowView) -> f64 {
        let most = if self.free.rate() > 0.0 { self.free.rate() } else { f64::INFINITY };
        bandwidth(subflow).min(most)
    }
}

/// When a subflow's next packet will arrive, or is taken to.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// From now, seconds.
    after: f64,
    id: SubflowId,
    /// What it sends meanwhile, bytes per second.
    rate: f64,
    /// Until it is acknowledged, seconds.
    round_trip: f64,
    /// The size of a segment, bytes.
    mss: f64,
}

/// Parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Whether others carry copies of what a silent subflow holds, and a subflow with nothing to send of what a much slower one does
    /// (`rescue.rs`).
    pub rescue: bool,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct ArrivalOrder {
    config: Config,
    rescue: Rescue,
    /// By subflow.
    deliveries: Vec<Delivery>,
    /// By subflow: its gap when the last decision was taken, in segments of the subflow that arrives first.
    gaps: Vec<f64>,
    /// The usable subflows as they arrive. Kept for its memory.
    order: Vec<Due>,
    /// The largest of the gaps in use.
    ahead: Bytes,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl ArrivalOrder {
    /// A scheduler with these parameters that has measured nothing yet.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            rescue: Rescue::NONE,
            deliveries: Vec::new(),
            gaps: Vec::new(),
            order: Vec::new(),
            ahead: Bytes::ZERO,
            reason: reason::NOTHING_YET,
        }
    }

    /// Predicts when each subflow's next packet will arrive, and puts them in that order.
    fn predict(&mut self, now: Time, view: &View) {
        self.deliveries.resize(view.subflows.len(), Delivery::default());
        self.gaps.resize(view.subflows.len(), 0.0);
        self.order.clear();
        for subflow in view.usable() {
            let delivery = &mut self.deliveries[subflow.id.index()];
            delivery.add(now, subflow);
            let round_trip = delivery.round_trip(subflow);
            // What a way takes longer is taken to be on the data's side, as queues are.
            let back = subflow.way_back.map_or(subflow.min_rtt.as_secs_f64() / 2.0, |way| way.as_secs_f64());
            let silent = delivery.silence.lasts(now, subflow).map_or(0.0, Duration::as_secs_f64);
            self.order.push(Due {
                after: wait(subflow) + (round_trip - back).max(0.0) + silent,
                id: subflow.id,
                rate: delivery.sends(subflow),
                round_trip,
                mss: subflow.mss.as_f64().max(1.0),
            });
        }
        let all: f64 = self.order.iter().map(|due| due.rate).sum();
        for due in &mut self.order {
            due.after += self.deliveries[due.id.index()].early(due, all - due.rate);
        }
        let srtt = |due: &Due| view.get(due.id).and_then(|subflow| subflow.srtt);
        self.order.sort_unstable_by(|a, b| {
            a.after.total_cmp(&b.after).then_with(|| srtt(a).cmp(&srtt(b))).then(a.id.cmp(&b.id))
        });
    }

    /// Measures nothing, and forgets: it would be old by the time that there is another.
    fn choose_alone(&mut self, only: &SubflowView, queue: &Queue) -> Choice {
        self.deliveries.clear();
        self.gaps.clear();
        self.ahead = Bytes::ZERO;
        self.reason = "alone: the front";
        let front = behind(queue, queue.unsent_before_lost(), 0.0, only.mss, only.mss).filter(|_| may_take(only));
        front.map_or(Choice::Wait, |range| Choice::Send { subflow: only.id, range })
    }

    fn choose(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        let mut usable = view.usable();
        if let (Some(only), None) = (usable.next(), usable.next()) {
            return self.choose_alone(only, queue);
        }
        self.predict(now, view);
        let Some(first) = self.order.first().and_then(|due| view.get(due.id)) else { return Choice::Wait };
        // STMS eq. 2, summed: those before send `rate` from their own arrival to this one's.
        let (mut rates, mut moments) = (0.0, 0.0);
        for due in &self.order {
            let gap = (rates * due.after - moments).max(0.0);
            rates += due.rate;
            moments += due.rate * due.after;
            // Indices are below the length: `predict` has seen the view.
            self.gaps[due.id.index()] = gap / first.mss.as_f64().max(1.0);
            // Who arrives later has the larger gap: the last one's stays.
            self.ahead = Bytes::from_f64(gap);
        }
        let before_lost = queue.unsent_before_lost();
        for due in &self.order {
            let Some(subflow) = view.get(due.id).filter(|subflow| may_take(subflow)) else { continue };
            let gap = self.gaps[due.id.index()];
            if let Some(range) = behind(queue, before_lost, gap, first.mss, subflow.mss) {
                self.reason =
                    if due.id == first.id { "first to arrive: the front" } else { "behind what arrives before" };
                return Choice::Send { subflow: subflow.id, range };
            }
        }
        Choice::Wait
    }
}

/// Whether a subflow has room and little queued.
fn may_take(subflow: &SubflowView) -> bool {
    subflow.has_room() && rate_based::Config::default().is_available(subflow)
}

impl Scheduler for ArrivalOrder {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if self.config.rescue
            && let Some(copy) = self.rescue.copy_of_silent(now, view, queue, may_take)
        {
            self.reason = reason::SILENT;
            return copy;
        }
        let choice = if queue.has_pending() {
            self.rescue.on_pending(queue);
            self.choose(now, view, queue)
        } else if self.config.rescue {
            self.rescue.choose(now, view, queue, may_take)
        } else {
            Choice::Wait
        };
        match choice {
            Choice::Duplicate { .. } => self.reason = reason::RESCUE,
            Choice::Wait if queue.has_pending() && view.usable().any(may_take) => self.reason = GAP_TOO_LONG,
            Choice::Wait if queue.has_pending() && view.usable().any(SubflowView::has_room) => {
                self.reason = rate_based::ENOUGH_QUEUED;
            }
            Choice::Wait => self.reason = reason::of_wait(queue),
            _ => {}
        }
        choice
    }

    fn looks_ahead(&self, _view: &View) -> Bytes {
        self.ahead
    }

    fn asks_at(&self) -> Option<Time> {
        self.rescue.due()
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.rescue.remove_subflow(id);
        if let (Some(delivery), Some(gap)) = (self.deliveries.get_mut(id.index()), self.gaps.get_mut(id.index())) {
            (*delivery, *gap) = (Delivery::default(), 0.0);
        }
    }

    fn reason(&self) -> &'static str {
        self.reason
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn FnMut(&'static str, f64)) {
        out("gap_segments", self.gaps.get(id.index()).copied().unwrap_or(0.0));
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Rate, SubflowState};

    use super::*;
    use crate::testing::{MSS, gap_of, queue, segments, send, subflow, view};

    /// So many segments a second.
    fn rate(segments: f64) -> Rate {
        Rate::from_bps(segments * 8.0 * MSS as f64)
    }

    fn gap(view: &View, id: u32) -> f64 {
        let mut scheduler = ArrivalOrder::new(Config::default());
        scheduler.pick(Time::ZERO, view, &queue(1, 1));
        gap_of(&scheduler, id)
    }

    /// The fast subflow is full, the slow one has room and nothing under way: 500 and 167 segments a second by their windows.
    fn fast_full() -> View {
        view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 0)])
    }

    #[test]
    fn the_first_to_arrive_has_the_front_and_others_what_is_behind_it() {
        // 500 (0.03 - 0.01).
        let mut scheduler = ArrivalOrder::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue(100, 100)), send(1, 10));
        assert_eq!(scheduler.reason(), "behind what arrives before");
        assert!((gap_of(&scheduler, 1) - 10.0).abs() < 1e-9);
        assert_eq!(scheduler.looks_ahead(&fast_full()), Bytes::new(10 * MSS));
        let mut open = fast_full();
        open.subflows[0].in_flight = Bytes::ZERO;
        assert_eq!(scheduler.pick(Time::ZERO, &open, &queue(100, 100)), send(0, 0));
        assert_eq!(scheduler.reason(), "first to arrive: the front");
    }

    #[test]
    fn what_is_in_flight_tells_the_round_trip_of_the_next_packet() {
        // 30 segments at 250 a second are 120 ms, of which 30 are the way back: 500 (0.09 - 0.01).
        let mut paths = fast_full();
        (paths.subflows[1].in_flight, paths.subflows[1].delivery_rate) = (Bytes::new(30 * MSS), rate(250.0));
        paths.subflows[1].cwnd = Bytes::new(40 * MSS);
        assert!((gap(&paths, 1) - 40.0).abs() < 1e-9);
        // The queue has drained, though the round trip last measured had it.
        (paths.subflows[1].in_flight, paths.subflows[1].srtt) = (Bytes::new(5 * MSS), Some(Duration::from_millis(120)));
        assert!((gap(&paths, 1) - 10.0).abs() < 1e-9, "never less than the smallest");
        // Without a rate there is the round trip that was measured.
        paths.subflows[1].delivery_rate = Rate::ZERO;
        assert!((gap(&paths, 1) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_way_back_that_is_known_is_not_half_of_the_round_trip() {
        // It takes 20 of the 60 ms back, the other one 10 of 20, as is assumed: 500 (0.04 - 0.01).
        let mut paths = fast_full();
        paths.subflows[1].way_back = Some(Duration::from_millis(20));
        assert!((gap(&paths, 1) - 15.0).abs() < 1e-9);
        // Never more than the round trip, and the first then arrives as late as the slow one: it is given the front.
        paths.subflows[1].way_back = Some(Duration::from_millis(100));
        assert!(gap(&paths, 1).abs() < 1e-9);
    }

    /// The slow subflow of [`fast_full`] hears of a round trip, so much in flight; the gap after that.
    fn hear(scheduler: &mut ArrivalOrder, paths: &mut View, millis: u64, rtt: u64, flight: u64) -> f64 {
        let slow = &mut paths.subflows[1];
        (slow.latest_rtt, slow.srtt) = (Duration::from_millis(rtt), Some(Duration::from_millis(rtt)));
        (slow.in_flight, slow.delivery_rate) = (Bytes::new(flight * MSS), rate(500.0));
        slow.delivered += Bytes::new(MSS);
        gap_at(scheduler, paths, millis)
    }

    /// The slow subflow's gap; the fast one answers.
    fn gap_at(scheduler: &mut ArrivalOrder, paths: &mut View, millis: u64) -> f64 {
        paths.subflows[0].delivered += Bytes::new(MSS);
        scheduler.pick(Time::from_millis(millis), paths, &queue(1, 1));
        gap_of(scheduler, 1)
    }

    #[test]
    fn a_way_that_has_become_longer_is_known_after_a_round_trip_and_believed_for_some_time() {
        let (mut scheduler, mut paths) = (ArrivalOrder::new(Config::default()), fast_full());
        // 500 (0.03 - 0.01); with 160 ms, of which 30 are the way back, 500 (0.13 - 0.01).
        for (millis, wanted) in [(0, 10.0), (100, 10.0), (200, 10.0), (359, 10.0), (360, 60.0)] {
            let found = hear(&mut scheduler, &mut paths, millis, 160, 0);
            assert!((found - wanted).abs() < 1e-9, "{millis} ms: {found}");
        }
        for (millis, wanted) in [(10_359, 60.0), (10_360, 10.0)] {
            let found = gap_at(&mut scheduler, &mut paths, millis);
            assert!((found - wanted).abs() < 1e-9, "{millis} ms");
        }
    }

    #[test]
    fn a_way_is_not_longer_if_what_was_in_flight_explains_it_or_one_round_trip_was_not() {
        // With the next one 39 segments leave in 78 ms, less than half of 160. And 70 ms are not a quarter more than 60.
        for (flight, shortest, wanted) in [(38, 160, 60.0), (39, 160, 10.0), (0, 70, 10.0)] {
            let (mut scheduler, mut paths) = (ArrivalOrder::new(Config::default()), fast_full());
            for millis in (0..1_000).step_by(50) {
                let rtt = if millis % 150 == 0 { shortest } else { 160 };
                hear(&mut scheduler, &mut paths, millis, rtt, flight);
            }
            paths.subflows[1].in_flight = Bytes::ZERO;
            let found = gap_at(&mut scheduler, &mut paths, 1_000);
            assert!((found - wanted).abs() < 1e-9, "{flight}, {shortest} ms");
        }
        let (mut scheduler, mut paths) = (ArrivalOrder::new(Config::default()), fast_full());
        for turn in 0..10 {
            hear(&mut scheduler, &mut paths, turn * 100, 160, 0);
        }
        assert!((hear(&mut scheduler, &mut paths, 1_000, 60, 0) - 10.0).abs() < 1e-9, "a shorter one counts at once");
    }

    #[test]
    fn what_others_send_is_their_window_or_their_rate_if_that_is_less() {
        let mut paths = fast_full();
        // Its 10 in flight at 400 a second are 25 ms on the way, 15 until they arrive: 400 (0.03 - 0.015).
        paths.subflows[0].delivery_rate = rate(400.0);
        assert!((gap(&paths, 1) - 6.0).abs() < 1e-9);
        // 500 as before where it is more.
        paths.subflows[0].delivery_rate = rate(900.0);
        assert!((gap(&paths, 1) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn samples_that_little_to_send_limited_do_not_lengthen_a_way_beyond_what_was_measured() {
        let mut scheduler = ArrivalOrder::new(Config::default());
        let mut paths = fast_full();
        let mut gap_at = |millis: u64, which: usize, flight: u64, sample: f64, srtt: u64| {
            let subflow = &mut paths.subflows[which];
            (subflow.in_flight, subflow.delivery_rate) = (Bytes::new(flight * MSS), rate(sample));
            (subflow.rate_app_limited, subflow.srtt) = (sample < 100.0, Some(Duration::from_millis(srtt)));
            scheduler.pick(Time::from_millis(millis), &paths, &queue(1, 1));
            gap_of(&scheduler, 1)
        };
        let expect = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found} for {wanted}");
        gap_at(0, 0, 10, 500.0, 20);
        // 500 (0.09 - 0.01), by 250 a second.
        expect(gap_at(0, 1, 30, 250.0, 60), 40.0);
        // At 10 a second it would be 3 s, and was 120 ms when nothing limited it.
        for millis in [100, 200, 300] {
            expect(gap_at(millis, 1, 30, 10.0, 60), 40.0);
        }
        // At least as long as was measured: the link may have become slower. 500 (0.17 - 0.01).
        expect(gap_at(400, 1, 30, 10.0, 200), 80.0);
        // But not with so little under way, whatever was measured: 150 ms at 20 a second, 500 (0.12 - 0.01).
        for millis in [600, 800] {
            gap_at(millis, 1, 3, 20.0, 200);
        }
        expect(gap_at(1_000, 1, 3, 20.0, 200), 55.0);
        // The fast one sends 500 a second still, though little to send limits it to 50: 500 (0.12 - 0.01).
        for millis in [1_010, 1_040, 1_070] {
            expect(gap_at(millis, 0, 1, 50.0, 20), 55.0);
        }
    }

    #[test]
    fn a_sample_that_is_larger_counts_whatever_limited_it() {
        let mut paths = fast_full();
        let slow = &mut paths.subflows[1];
        (slow.in_flight, slow.cwnd) = (Bytes::new(30 * MSS), Bytes::new(40 * MSS));
        (slow.delivery_rate, slow.rate_app_limited) = (rate(300.0), true);
        // 30 at 300 a second: 500 (0.07 - 0.01).
        assert!((gap(&paths, 1) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_counts_for_two_round_trips() {
        let mut scheduler = ArrivalOrder::new(Config::default());
        let mut paths = fast_full();
        let mut after = |millis: u64, sample: f64| {
            let slow = &mut paths.subflows[1];
            (slow.in_flight, slow.delivery_rate) = (Bytes::new(9 * MSS), rate(sample));
            slow.delivered += Bytes::new(MSS);
            gap_at(&mut scheduler, &mut paths, millis)
        };
        // 9 at 300 a second are less than 60 ms, at 100 they are 90: 500 (0.03 - 0.01) and 500 (0.06 - 0.01).
        let found = [(0, 300.0), (59, 100.0), (60, 100.0), (119, 100.0), (120, 100.0), (121, 300.0)]
            .map(|(millis, sample)| after(millis, sample));
        for (found, wanted) in found.into_iter().zip([10.0, 10.0, 10.0, 10.0, 25.0, 10.0]) {
            assert!((found - wanted).abs() < 1e-9, "{found} for {wanted}");
        }
    }

    #[test]
    fn with_three_subflows_each_counts_for_the_time_that_it_is_ahead() {
        // 500 (0.05 - 0.01) + 167 (0.05 - 0.03).
        let paths = view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 10), subflow(2, 100, 10, 0)]);
        assert!((gap(&paths, 2) - 70.0 / 3.0).abs() < 1e-9);
        assert!((gap(&paths, 1) - 10.0).abs() < 1e-9);
        let mut scheduler = ArrivalOrder::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(2, 23));
        let mut open = paths;
        open.subflows[1].in_flight = Bytes::ZERO;
        assert_eq!(scheduler.pick(Time::ZERO, &open, &queue(100, 100)), send(1, 10), "who arrives sooner is first");
    }

    #[test]
    fn a_queue_makes_the_fast_subflow_the_later_one() {
        let mut paths = view([subflow(0, 20, 50, 40), subflow(1, 60, 10, 9)]);
        // 40 at 500 a second: 80 ms, 70 until they arrive; the other's 9 at 300 are within 60, 30 until they arrive.
        (paths.subflows[0].delivery_rate, paths.subflows[1].delivery_rate) = (rate(500.0), rate(300.0));
        let mut scheduler = ArrivalOrder::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(1, 0));
        assert!(gap_of(&scheduler, 1).abs() < 1e-9);
        // 167 (0.07 - 0.03), by its window.
        assert!((gap_of(&scheduler, 0) - 20.0 / 3.0).abs() < 1e-9);
        paths.subflows[1].in_flight = Bytes::new(10 * MSS);
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 100)), send(0, 6));
    }

    #[test]
    fn a_subflow_that_is_silent_arrives_later_by_as_long() {
        let mut scheduler = ArrivalOrder::new(Config::default());
        let mut paths = view([subflow(0, 20, 10, 5), subflow(1, 60, 10, 0)]);
        let mut at = |ms, paths: &View| scheduler.pick(Time::from_millis(ms), paths, &queue(100, 100));
        assert_eq!(at(0, &paths), send(0, 0));
        // Its timeout, 20 ms and 10, is not over; the slow one would take 30.
        assert_eq!(at(30, &paths), send(0, 0));
        assert_eq!(at(31, &paths), send(1, 0));
        paths.subflows[0].delivered = Bytes::new(MSS);
        assert_eq!(at(32, &paths), send(0, 0), "it is heard again");
    }

    #[test]
    fn what_waits_for_a_pacer_arrives_later() {
        // 5 segments wait at 10 in 60 ms: 30 ms more. 500 (0.06 - 0.01).
        let mut paths = fast_full();
        paths.subflows[1].queued = Bytes::new(5 * MSS);
        assert!((gap(&paths, 1) - 25.0).abs() < 1e-9);
    }

    /// The first subflow of [`fast_full`] loses so often, delivering nothing; the gap of the other after that.
    fn lose(scheduler: &mut ArrivalOrder, paths: &mut View, times: usize) -> f64 {
        // An episode is one, however often it is looked at.
        for in_recovery in [true, true, false].repeat(times) {
            paths.subflows[0].in_recovery = in_recovery;
            scheduler.pick(Time::ZERO, paths, &queue(1, 1));
        }
        gap_of(scheduler, 1)
    }

    #[test]
    fn the_oftener_a_subflow_loses_the_sooner_its_data_is_sent() {
        // The other delivers 10,000 segments a second. A loss is found after 22.5 ms, and 8 in 1000 pay 10 ms: 500 (0.03 - 0.02).
        let (mut scheduler, mut paths) = (ArrivalOrder::new(Config::default()), fast_full());
        paths.subflows[1].cwnd = Bytes::new(600 * MSS);
        // It owes no answer.
        paths.subflows[0].in_flight = Bytes::ZERO;
        assert!((lose(&mut scheduler, &mut paths, 4) - 10.0).abs() < 1e-9, "4 in 1000 pay nothing");
        assert!((lose(&mut scheduler, &mut paths, 4) - 5.0).abs() < 1e-9);
        // So often that it is the later one, and begins behind what the other sends in 2.3 ms.
        lose(&mut scheduler, &mut paths, 492);
        assert!(gap_of(&scheduler, 1).abs() < 1e-9);
        assert!((gap_of(&scheduler, 0) - 10_000.0 * (0.01 + 0.0225 - 1.0 / 5_000.0 - 0.03)).abs() < 1e-6);
        // Nothing is left of it once a thousand are delivered, or nothing for ten seconds.
        for (millis, delivered, wanted) in [(0, 1_000, 10.0), (9_999, 1_000, 5.0), (10_000, 1_000, 10.0)] {
            paths.subflows[0].delivered = Bytes::new(delivered * MSS);
            scheduler.pick(Time::from_millis(millis), &paths, &queue(1, 1));
            assert!((gap_of(&scheduler, 1) - wanted).abs() < 1e-9, "{millis} ms");
            if millis == 0 {
                lose(&mut scheduler, &mut paths, 8);
            }
        }
    }

    #[test]
    fn a_paced_subflow_is_given_no_more_than_a_tenth_of_a_round_trip() {
        // 500 segments a second and 20 ms: a segment.
        let mut paths = view([subflow(0, 20, 100, 0), subflow(1, 60, 10, 10)]);
        paths.subflows[0].pacing = Some(rate(500.0));
        let mut scheduler = ArrivalOrder::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), send(0, 0));
        paths.subflows[0].queued = Bytes::new(MSS);
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.reason(), "enough queued on every subflow with room");
    }

    #[test]
    fn alone_it_has_the_front_and_what_was_measured_before_is_forgotten() {
        let (mut scheduler, mut paths) = (ArrivalOrder::new(Config::default()), fast_full());
        paths.subflows[0].delivery_rate = rate(400.0);
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), send(1, 6));
        paths.subflows[0].state = SubflowState::Failed;
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), send(1, 0));
        assert_eq!((scheduler.reason(), scheduler.looks_ahead(&paths)), ("alone: the front", Bytes::ZERO));
        assert!(gap_of(&scheduler, 1).abs() < 1e-9);
        paths.subflows[1].in_flight = paths.subflows[1].cwnd;
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), Choice::Wait);
        // 10 in flight at 320 a second arrive after 21.25 ms: 320 (0.03 - 0.02125) = 2.8. The 400 would hold for a round trip more.
        (paths.subflows[0].state, paths.subflows[0].delivery_rate) = (SubflowState::Active, rate(320.0));
        paths.subflows[1].in_flight = Bytes::ZERO;
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(9, 9)), send(1, 2));
    }

    #[test]
    fn with_nothing_else_to_send_it_copies_where_that_is_wanted() {
        let mut queue = queue(1, 1);
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(1));
        let paths = view([subflow(0, 20, 10, 0), subflow(1, 90, 10, 1)]);
        let after = Time::from_millis(20);
        let copy = Choice::Duplicate { subflow: SubflowId(0), range: segments(0, 1), penalise: None };
        for (rescue, wanted) in [(false, Choice::Wait), (true, copy)] {
            let mut scheduler = ArrivalOrder::new(Config { rescue });
            assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue), Choice::Wait);
            assert_eq!(scheduler.asks_at(), rescue.then_some(after));
            assert_eq!(scheduler.pick(after, &paths, &queue), wanted);
            assert_eq!(scheduler.reason() == reason::RESCUE, rescue);
        }
    }

    #[test]
    fn one_that_was_never_heard_is_tried_first_and_of_equals_the_faster() {
        let mut paths = fast_full();
        (paths.subflows[1].srtt, paths.subflows[1].min_rtt) = (None, Duration::MAX);
        assert_eq!(ArrivalOrder::new(Config::default()).pick(Time::ZERO, &paths, &queue(100, 100)), send(1, 0));
        // 60 - 10 and 80 - 30 ms until they arrive.
        let mut paths = view([subflow(0, 80, 10, 0), subflow(1, 60, 10, 0)]);
        (paths.subflows[0].min_rtt, paths.subflows[1].min_rtt) = (Duration::from_millis(60), Duration::from_millis(20));
        assert_eq!(ArrivalOrder::new(Config::default()).pick(Time::ZERO, &paths, &queue(100, 100)), send(1, 0));
    }

    #[test]
    fn lost_data_stands_where_the_lowest_of_it_belongs() {
        let mut queue = queue(100, 100);
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(0));
        queue.on_assigned(Time::ZERO, segments(1, 2), SubflowId(0));
        queue.on_copy_ended(segments(0, 1), SubflowId(0), false);
        queue.on_copy_ended(segments(1, 2), SubflowId(0), false);
        // Two lost and eight unsent before it.
        assert_eq!(ArrivalOrder::new(Config::default()).pick(Time::ZERO, &fast_full(), &queue), send(1, 10));
        let mut open = fast_full();
        open.subflows[0].in_flight = Bytes::ZERO;
        assert_eq!(ArrivalOrder::new(Config::default()).pick(Time::ZERO, &open, &queue), send(0, 0));
    }

    #[test]
    fn what_was_left_for_the_first_goes_before_what_others_lost_behind_it() {
        let lose = |queue: &mut Queue, start| {
            queue.on_assigned(Time::ZERO, segments(start, start + 1), SubflowId(1));
            queue.on_copy_ended(segments(start, start + 1), SubflowId(1), false);
        };
        let (mut near, mut far) = (queue(100, 100), queue(100, 100));
        for start in [3, 5] {
            lose(&mut near, start);
            lose(&mut far, start + 9);
        }
        let mut open = fast_full();
        open.subflows[0].in_flight = Bytes::ZERO;
        let pick = |paths: &View, queue: &Queue| ArrivalOrder::new(Config::default()).pick(Time::ZERO, paths, queue);
        assert_eq!(pick(&open, &near), send(0, 0));
        // A gap of ten: three unsent, two lost and five unsent; or all unsent.
        assert_eq!(pick(&fast_full(), &near), send(1, 10));
        assert_eq!(pick(&fast_full(), &far), send(1, 10));
        lose(&mut far, 10);
        // One more is lost, the eleventh: it is next.
        assert_eq!(pick(&fast_full(), &far), send(1, 10));
        far.on_assigned(Time::ZERO, segments(0, 2), SubflowId(0));
        assert_eq!(pick(&fast_full(), &far), send(1, 10));
        for subflow in [0, 1] {
            open.subflows[1 - subflow].state = SubflowState::Failed;
            open.subflows[subflow].state = SubflowState::Active;
            assert_eq!(pick(&open, &near), send(u32::try_from(subflow).unwrap(), 0), "alone");
        }
    }

    #[test]
    fn it_waits_where_the_gap_reaches_beyond_data_or_window() {
        let mut scheduler = ArrivalOrder::new(Config::default());
        for queue in [queue(10, 100), queue(100, 10)] {
            assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue), Choice::Wait);
            assert_eq!(scheduler.reason(), GAP_TOO_LONG);
        }
        assert_eq!(scheduler.pick(Time::ZERO, &fast_full(), &queue(11, 11)), send(1, 10));
        let full = view([subflow(0, 20, 10, 10)]);
        assert_eq!(scheduler.pick(Time::ZERO, &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.reason(), "no subflow with room");
    }

    #[test]
    fn whoever_is_given_an_id_anew_inherits_nothing() {
        let mut scheduler = ArrivalOrder::new(Config::default());
        let mut paths = fast_full();
        (paths.subflows[1].in_flight, paths.subflows[1].delivery_rate) = (Bytes::new(9 * MSS), rate(100.0));
        scheduler.pick(Time::ZERO, &paths, &queue(1, 1));
        assert!((gap_of(&scheduler, 1) - 25.0).abs() < 1e-9);
        scheduler.remove_subflow(SubflowId(1));
        assert!(gap_of(&scheduler, 1).abs() < 1e-9);
        paths.subflows[1].delivery_rate = Rate::ZERO;
        scheduler.pick(Time::ZERO, &paths, &queue(1, 1));
        assert!((gap_of(&scheduler, 1) - 10.0).abs() < 1e-9, "no rate of another's");
        scheduler.remove_subflow(SubflowId(7));
    }
}
