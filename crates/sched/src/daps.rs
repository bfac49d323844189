//! DAPS, delay-aware packet scheduling (Kuhn et al., ICC 2014), as others describe it.
//!
//! Sequence numbers are planned in the order of arrival. A plan holds for a period, the least common multiple of the
//! paths' round-trip times, and freezes every subflow's window and RTT at its start: a subflow sends one window a round
//! trip, and what it sends at `t` arrives at `t + RTT/2`. A slower subflow's next segment therefore goes behind all that
//! the others will, by plan, have got to the receiver before it, less what they have sent already. The fastest
//! subflow fills the front. A paced subflow's window is what its rate sends in a round trip, if that is less.
//!
//! The plan does not react to losses or window changes within its period; that is what STMS criticises. It begins anew
//! when the period ends or another set of subflows is usable. Lost data goes by lowest RTT at once.
//!
//! A slower subflow waits when so much is not there: too little data is unsent, or the window ends before. The fastest
//! never waits while it has room.

use manypath_core::{Bytes, Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::{fastest, fastest_for_head, send_head, slower_with_room};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest period. The least common multiple of several paths can be far longer than any plan is good for; 1 s is
    /// this project's own choice.
    pub max_period: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_period: Duration::from_secs(1) }
    }
}

/// What the plan holds about one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Planned {
    /// Smoothed RTT at the start of the period, in seconds; zero if unknown or not part of the plan.
    rtt: f64,
    /// Payload of a window at the start of the period, in bytes.
    window: f64,
    /// Payload given to the subflow in this period, in bytes.
    sent: f64,
}

impl Planned {
    /// The payload that has arrived by plan `at` seconds after the start.
    fn arrived(&self, at: f64) -> f64 {
        if self.rtt > 0.0 { self.window * ((at - self.rtt / 2.0) / self.rtt).max(0.0) } else { 0.0 }
    }

    /// When, by plan, what is sent next arrives, in seconds after the start.
    fn next_arrival(&self) -> f64 {
        self.rtt * (self.sent / self.window.max(1.0) + 0.5)
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Daps {
    config: Config,
    /// When the period began and how long it lasts.
    period: Option<(Time, Duration)>,
    /// By subflow.
    plan: Vec<Planned>,
    /// Bit `id % 64` is set for every subflow of the plan.
    members: u64,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Daps {
    /// A scheduler with these parameters, and no plan yet.
    pub const fn new(config: Config) -> Self {
        Self { config, period: None, plan: Vec::new(), members: 0, reason: reason::NOTHING_YET }
    }

    /// Begins a period if the last one is over.
    fn plan(&mut self, now: Time, view: &View, queue: &Queue, fast: &SubflowView) {
        let members = view.usable().fold(0, |set, subflow| set | 1 << (subflow.id.0 % 64));
        if members == self.members && self.period.is_some_and(|(since, length)| now.since(since) < length) {
            return;
        }
        self.members = members;
        self.plan.clear();
        self.plan.resize(view.subflows.len(), Planned::default());
        let unit = fast.srtt.unwrap_or(Duration::ZERO);
        let mut rounds: u64 = 1;
        for subflow in view.usable() {
            let rtt = subflow.srtt.unwrap_or(Duration::ZERO);
            // A paced controller's window is not meant to be reached.
            let window = subflow.pacing.map_or(subflow.cwnd, |pacing| subflow.cwnd.min(pacing * rtt));
            let segments = window.as_f64() / subflow.mss.as_f64().max(1.0);
            // The view holds every usable subflow, so its index is below the length.
            self.plan[subflow.id.index()] =
                Planned { rtt: rtt.as_secs_f64(), window: segments * queue.payload(subflow.mss) as f64, sent: 0.0 };
            // Round-trip times have no common multiple to speak of until they are whole multiples of the smallest.
            let ratio = (rtt.as_nanos() + unit.as_nanos() / 2) / unit.as_nanos().max(1);
            rounds = least_common_multiple(rounds, ratio.max(1));
        }
        self.period = Some((now, (unit * rounds).min(self.config.max_period)));
    }

    /// The payload that the plan puts before the subflow's next segment and that is not sent yet, in bytes.
    fn gap(&self, subflow: &SubflowView) -> f64 {
        let index = subflow.id.index();
        self.before(index, self.plan[index].next_arrival())
    }

    /// The payload of the others that arrives by plan before `arrival` and is not sent yet, in bytes.
    fn before(&self, own: usize, arrival: f64) -> f64 {
        let others = self.plan.iter().enumerate().filter(|(index, _)| *index != own);
        others.map(|(_, other)| (other.arrived(arrival) - other.sent).max(0.0)).sum()
    }

    /// The decision, which counts as carried out in the plan.
    fn choose(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if !queue.lost().is_zero() {
            self.reason = "lost data goes by lowest RTT";
            return send_head(queue, fastest_for_head(view, queue, |_| true));
        }
        let Some(fast) = fastest(view.usable()) else { return Choice::Wait };
        self.plan(now, view, queue, fast);
        if fast.has_room() {
            self.reason = "fastest subflow fills the front";
            return send_head(queue, Some(fast));
        }
        let payload = queue.payload(fast.mss) as f64;
        for slow in slower_with_room(view, fast) {
            // Float to integer casts saturate.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let gap = (self.gap(slow) / payload) as u64;
            if let Some(range) = queue.unsent_behind(gap, fast.mss, slow.mss) {
                self.reason = "arrives in its turn by plan";
                return Choice::Send { subflow: slow.id, range };
            }
        }
        Choice::Wait
    }
}

/// The least common multiple, or the largest number if there is none below it.
fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b)
}

impl Scheduler for Daps {
    /// What the plan puts before the last segment of the next window of the subflow for which that is most.
    fn looks_ahead(&self, _view: &View) -> Bytes {
        let before = |(index, own): (usize, &Planned)| self.before(index, own.next_arrival() + own.rtt);
        Bytes::from_f64(self.plan.iter().enumerate().map(before).fold(0.0, f64::max))
    }

    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        let choice = if queue.has_pending() { self.choose(now, view, queue) } else { Choice::Wait };
        match choice {
            Choice::Send { subflow, range } => {
                if let Some(planned) = self.plan.get_mut(subflow.index()) {
                    planned.sent += range.len() as f64;
                }
            }
            _ if queue.has_pending() && view.usable().any(SubflowView::has_room) => {
                self.reason = "what arrives in turn by plan is not there";
            }
            _ => self.reason = reason::of_wait(queue),
        }
        choice
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        // The plan counted on it, whoever has its id.
        if self.members & 1 << (id.0 % 64) != 0 {
            self.period = None;
        }
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, send, subflow, view};
    use manypath_core::{SubflowId, SubflowState};

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// The fast subflow is full, the slow one (thrice the RTT) has room.
    fn paths() -> View {
        view([subflow(0, 20, 10, 10), subflow(1, 60, 10, 0)])
    }

    #[test]
    fn a_slow_segment_gets_the_number_of_its_arrival() {
        let mut scheduler = Daps::new(Config::default());
        let mut queue = queue(100, 100);
        // Sent at 0 it arrives at 30 ms; the fast path's at 10 ms have then gone on for 20 ms: one window of 10.
        assert_eq!(scheduler.pick(at(0), &paths(), &queue), send(1, 10));
        queue.on_assigned(at(0), crate::testing::segments(10, 11), SubflowId(1));
        // The slow path's next goes 6 ms later: 13 of the fast path arrive before, and the one above.
        assert_eq!(scheduler.pick(at(0), &paths(), &queue), send(1, 14));
    }

    #[test]
    fn a_paced_window_is_what_the_rate_sends_in_a_round_trip() {
        let mut paths = paths();
        // 5 records in 20 ms; what is sent now arrives at 30 ms, when those of 20 ms have.
        paths.subflows[0].pacing = Some(paths.subflows[0].mss * 5 / Duration::from_millis(20));
        assert_eq!(Daps::new(Config::default()).pick(at(0), &paths, &queue(100, 100)), send(1, 5));
    }

    #[test]
    fn a_window_of_the_slow_path_needs_what_the_plan_puts_before_it() {
        let mut scheduler = Daps::new(Config::default());
        assert_eq!(scheduler.looks_ahead(&paths()), Bytes::ZERO);
        scheduler.pick(at(0), &paths(), &queue(100, 100));
        // The last of the slow path's next window arrives at 96 ms, when the fast path's have for 86: 43 segments.
        assert_eq!(scheduler.looks_ahead(&paths()), Bytes::new(43_000));
    }

    #[test]
    fn what_the_fast_subflow_has_sent_is_no_longer_before_it() {
        let mut scheduler = Daps::new(Config::default());
        let mut queue = queue(100, 100);
        let mut open = paths();
        open.subflows[0].in_flight = open.subflows[0].mss * 6;
        for segment in 0..4 {
            assert_eq!(scheduler.pick(at(0), &open, &queue), send(0, segment));
            queue.on_assigned(at(0), crate::testing::segments(segment, segment + 1), SubflowId(0));
        }
        assert_eq!(scheduler.pick(at(0), &paths(), &queue), send(1, 10));
    }

    #[test]
    fn the_plan_is_frozen_for_its_period() {
        let mut scheduler = Daps::new(Config::default());
        let queue = queue(100, 100);
        assert_eq!(scheduler.pick(at(0), &paths(), &queue), send(1, 10));
        let mut wider = view([subflow(0, 20, 20, 20), subflow(1, 60, 10, 0)]);
        // The choice above was not carried out; by plan the slow path is one segment on.
        assert_eq!(scheduler.pick(at(59), &wider, &queue), send(1, 13));
        assert_eq!(scheduler.pick(at(60), &wider, &queue), send(1, 20), "a new period, a window of 20");
        wider.subflows.push(subflow(2, 20, 10, 10));
        assert_eq!(scheduler.pick(at(61), &wider, &queue), send(1, 30), "another path, another plan");
        wider.subflows[2].state = SubflowState::Failed;
        assert_eq!(scheduler.pick(at(62), &wider, &queue), send(1, 20));
    }

    #[test]
    fn the_period_is_the_least_common_multiple_up_to_a_limit() {
        let mut scheduler = Daps::new(Config::default());
        let period = |scheduler: &mut Daps, rtts: [u64; 3]| {
            let paths = view([subflow(0, rtts[0], 9, 9), subflow(1, rtts[1], 9, 0), subflow(2, rtts[2], 9, 0)]);
            scheduler.period = None;
            scheduler.pick(at(0), &paths, &queue(9, 9));
            scheduler.period.unwrap().1
        };
        assert_eq!(period(&mut scheduler, [20, 40, 60]), Duration::from_millis(120));
        assert_eq!(period(&mut scheduler, [20, 49, 60]), Duration::from_millis(120), "49 is about 2 times 20");
        assert_eq!(period(&mut scheduler, [20, 140, 220]), Duration::from_secs(1), "77 times 20 ms is 1.54 s");
        assert_eq!(least_common_multiple(u64::MAX, 2), u64::MAX);
    }

    #[test]
    fn it_waits_where_the_data_is_not_there() {
        let mut scheduler = Daps::new(Config::default());
        assert_eq!(scheduler.pick(at(0), &paths(), &queue(10, 100)), Choice::Wait);
        assert_eq!(scheduler.reason(), "what arrives in turn by plan is not there");
        assert_eq!(scheduler.pick(at(0), &paths(), &queue(100, 10)), Choice::Wait);
        let mut open = paths();
        open.subflows[0].in_flight = manypath_core::Bytes::ZERO;
        assert_eq!(scheduler.pick(at(0), &open, &queue(10, 100)), send(0, 0));
    }
}
