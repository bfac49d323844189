//! Backup by cost: a dearer path carries data only when the cheaper ones cannot carry the load.
//!
//! The subflows of the least cost always send: the lowest smoothed RTT with room first. Dearer ones come in a tier at
//! a time, in the order of cost:
//!
//! * a tier is *engaged* when there has been a backlog for `engage` without a break. A backlog lasts as long as no
//!   decision finds all pending data sent. It may also stand in the network: where a controller fills a deep queue, the
//!   cheap paths take all that the windows let go, and the rest has not even been written. So what holds up the window
//!   counts where the cheapest subflows' round trips are twice their shortest;
//! * an engaged tier sends when the cheaper subflows lack room and the backlog is older than a round trip of the
//!   fastest cheapest subflow: bursts that the cheap paths can work off do not count. A cheaper subflow then lacks room
//!   also where its queue would hold the dearer ones up: what it holds, and what they send until that has left, must
//!   fit into half of the window;
//! * a tier that has sent nothing for `release` is disengaged, and the next backlog must again last for `engage`.
//!
//! It waits while the cheaper subflows lack room and no dearer one may send, or has room; what is in flight asks again.
//! The backup flag (RFC 8684 s3.3.8) comes before cost: a flagged subflow is not usable while an unflagged one is.
//!
//! The rule is this project's own.

use manypath_core::{Bytes, Duration, SubflowView, Time, View};

use crate::minrtt::{bandwidth, fastest, send_head};
use crate::opportunistic::is_held_up;
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// The share of the window that a cheaper subflow's queue may take so: in the rest the dearer ones grow to what they
/// could send.
const SPARED: f64 = 0.5;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a backlog must last before the next dearer subflows are used.
    pub engage: Duration,
    /// How long dearer subflows must have sent nothing before they are given up again.
    pub release: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { engage: Duration::from_millis(500), release: Duration::from_secs(2) }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Backup {
    config: Config,
    /// Subflows up to this cost are engaged; `None` if only the cheapest are.
    engaged: Option<f64>,
    /// Since when there has been a backlog.
    backlog_since: Option<Time>,
    /// When a tier was last engaged.
    engaged_at: Time,
    /// When the dearest engaged tier was last engaged or last sent; below one that was given up, when any last sent.
    changed_at: Time,
    /// When a tier was last engaged, or any engaged one last sent.
    used_at: Time,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Backup {
    /// A scheduler with these parameters, with only the cheapest subflows engaged.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            engaged: None,
            backlog_since: None,
            engaged_at: Time::ZERO,
            changed_at: Time::ZERO,
            used_at: Time::ZERO,
            reason: reason::NOTHING_YET,
        }
    }

    /// Gives up the dearest engaged tier if it has sent nothing for long enough; all of them if none has.
    fn release(&mut self, now: Time, view: &View, cheapest: f64) {
        let Some(engaged) = self.engaged else { return };
        if now.since(self.changed_at) >= self.config.release {
            let cheaper = view.usable().map(|subflow| subflow.cost).filter(|cost| *cost < engaged);
            let in_use = now.since(self.used_at) < self.config.release;
            self.engaged = cheaper.max_by(f64::total_cmp).filter(|cost| in_use && *cost > cheapest);
            self.changed_at = self.used_at;
        }
    }

    /// Engages the next tier if the backlog has outlasted the present one for long enough.
    fn engage(&mut self, now: Time, view: &View, limit: f64, since: Time) {
        let Some(next) = view.usable().map(|subflow| subflow.cost).filter(|cost| *cost > limit).min_by(f64::total_cmp)
        else {
            return;
        };
        // Each tier is given its own time to work the backlog off.
        let since = if self.engaged.is_some() { since.max(self.engaged_at) } else { since };
        if now.since(since) >= self.config.engage {
            self.engaged = Some(next);
            self.engaged_at = now;
            self.changed_at = now;
            self.used_at = now;
        }
    }

    /// The subflow to send on, given that there is data.
    fn choose<'a>(&mut self, now: Time, view: &'a View, queue: &Queue) -> Option<&'a SubflowView> {
        let cheapest = view.usable().map(|subflow| subflow.cost).min_by(f64::total_cmp)?;
        let since = *self.backlog_since.get_or_insert(now);
        let open = |limit| {
            view.usable().filter(move |subflow| subflow.has_room() && !is_in_the_way(subflow, limit, view, queue))
        };
        let limit = self.engaged.unwrap_or(cheapest);
        if let Some(cheap) = fastest(open(limit).filter(|subflow| subflow.cost <= cheapest)) {
            self.reason = "cheapest subflow with room";
            return Some(cheap);
        }
        self.engage(now, view, limit.max(cheapest), since);
        let limit = self.engaged.unwrap_or(cheapest);
        let patience = fastest(view.usable().filter(|subflow| subflow.cost <= cheapest)).and_then(|cheap| cheap.srtt);
        // Where a queue stands a round trip may last for ever so long.
        if now.since(since) < patience.unwrap_or(Duration::ZERO).min(self.config.engage) {
            self.reason = "the cheaper subflows may yet work the backlog off";
            return None;
        }
        let tier = open(limit).map(|subflow| subflow.cost).filter(|cost| *cost <= limit).min_by(f64::total_cmp);
        let Some(tier) = tier else {
            self.reason = "no engaged subflow with room";
            return None;
        };
        self.used_at = now;
        if tier >= limit {
            self.changed_at = now;
        }
        self.reason = "the cheaper subflows cannot carry the load";
        fastest(open(limit).filter(|subflow| subflow.cost <= tier))
    }

    /// Nothing can be sent. Whether that is for the queues of the cheapest subflows, which is a backlog as well.
    fn on_nothing_pending(&mut self, now: Time, view: &View, queue: &Queue) {
        let cheapest = view.usable().map(|subflow| subflow.cost).min_by(f64::total_cmp);
        let Some(cheapest) = cheapest.filter(|cheapest| is_held_up(queue) && have_queues(view, *cheapest)) else {
            self.backlog_since = None;
            return;
        };
        let since = *self.backlog_since.get_or_insert(now);
        // Those that are engaged already may yet take more.
        let limit = self.engaged.unwrap_or(cheapest);
        if have_queues(view, limit) {
            self.engage(now, view, limit, since);
        }
    }
}

/// Whether all usable subflows up to this cost have at least a round trip's data in their paths' queues.
fn have_queues(view: &View, cost: f64) -> bool {
    let mut tier = view.usable().filter(|subflow| subflow.cost <= cost);
    tier.all(|subflow| subflow.srtt.is_some_and(|srtt| is_queue(subflow, srtt)))
}

/// Whether a round trip of this length is a queue's more than the path's.
fn is_queue(subflow: &SubflowView, round_trip: Duration) -> bool {
    round_trip / 2 >= subflow.min_rtt
}

/// Whether the queue that a subflow has on its path holds up dearer ones, up to cost `limit`: the window has to hold
/// all that it carries and all that they send until that has left.
fn is_in_the_way(subflow: &SubflowView, limit: f64, view: &View, queue: &Queue) -> bool {
    let dearer = view.usable().filter(|other| subflow.cost < other.cost && other.cost <= limit);
    let rate: f64 = dearer.map(bandwidth).sum();
    if rate <= 0.0 || subflow.delivery_rate.is_zero() {
        return false;
    }
    let held = subflow.in_flight + subflow.queued;
    let lingers = held.time_at(subflow.delivery_rate);
    let window = Bytes::new(queue.window_end() - queue.left_edge());
    let window = if queue.writer_waits() { window.min(queue.held()) } else { window };
    let window = queue.in_records(window.get(), subflow.mss);
    // What the path holds without a queue is no matter of ours: with less it would carry less than it can.
    is_queue(subflow, lingers) && held.as_f64() + rate * lingers.as_secs_f64() > window.as_f64() * SPARED
}

impl Scheduler for Backup {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if let Some(cheapest) = view.usable().map(|subflow| subflow.cost).min_by(f64::total_cmp) {
            self.release(now, view, cheapest);
        }
        if !queue.has_pending() {
            self.on_nothing_pending(now, view, queue);
            self.reason = reason::of_wait(queue);
            return Choice::Wait;
        }
        send_head(queue, self.choose(now, view, queue))
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, send, subflow, view};
    use manypath_core::{Priority, Rate};

    fn costing(id: u32, rtt_ms: u64, cost: f64, used: u64) -> SubflowView {
        let mut subflow = subflow(id, rtt_ms, 10, used);
        subflow.cost = cost;
        subflow
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Engages after 500 ms of backlog, releases after 2 s.
    fn backup() -> Backup {
        Backup::new(Config::default())
    }

    #[test]
    fn the_cheapest_send_however_slow() {
        let paths = view([costing(0, 10, 5.0, 0), costing(1, 300, 1.0, 0), costing(2, 200, 1.0, 0)]);
        let mut scheduler = backup();
        assert_eq!(scheduler.pick(at(9_000), &paths, &queue(9, 9)), send(2, 0));
        assert_eq!(scheduler.reason(), "cheapest subflow with room");
    }

    #[test]
    fn a_lasting_backlog_engages_the_next_tier_and_then_the_next() {
        let full = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 0), costing(2, 10, 9.0, 0)]);
        let (mut scheduler, queue) = (backup(), queue(9, 9));
        assert_eq!(scheduler.pick(at(1_000), &full, &queue), Choice::Wait);
        assert_eq!(scheduler.pick(at(1_499), &full, &queue), Choice::Wait);
        assert_eq!(scheduler.reason(), "no engaged subflow with room");
        assert_eq!(scheduler.pick(at(1_500), &full, &queue), send(1, 0));
        assert_eq!(scheduler.reason(), "the cheaper subflows cannot carry the load");
        // The cheap subflow keeps its precedence.
        let open = view([costing(0, 50, 1.0, 9), costing(1, 10, 5.0, 0), costing(2, 10, 9.0, 0)]);
        assert_eq!(scheduler.pick(at(1_600), &open, &queue), send(0, 0));
        // The second tier is full too: the third comes half a second after the second.
        let fuller = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 10), costing(2, 10, 9.0, 0)]);
        assert_eq!(scheduler.pick(at(1_999), &fuller, &queue), Choice::Wait);
        assert_eq!(scheduler.pick(at(2_000), &fuller, &queue), send(2, 0));
    }

    #[test]
    fn a_tier_that_sends_all_the_time_does_not_put_the_next_one_off() {
        let full = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 0), costing(2, 10, 9.0, 0)]);
        let fuller = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 10), costing(2, 10, 9.0, 0)]);
        let (mut scheduler, queue) = (backup(), queue(9, 9));
        scheduler.pick(at(1_000), &full, &queue);
        for ms in [1_500, 1_700, 1_900, 1_999] {
            assert_eq!(scheduler.pick(at(ms), &full, &queue), send(1, 0));
            assert_eq!(scheduler.pick(at(ms), &fuller, &queue), Choice::Wait);
        }
        assert_eq!(scheduler.pick(at(2_000), &fuller, &queue), send(2, 0));
    }

    #[test]
    fn a_backlog_that_is_worked_off_starts_anew() {
        let full = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 0)]);
        let mut scheduler = backup();
        assert_eq!(scheduler.pick(at(0), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(400), &full, &queue(0, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(600), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(1_099), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(1_100), &full, &queue(9, 9)), send(1, 0));
    }

    #[test]
    fn an_engaged_tier_leaves_short_bursts_alone_until_it_is_released() {
        let full = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 0)]);
        let mut scheduler = backup();
        scheduler.pick(at(0), &full, &queue(9, 9));
        assert_eq!(scheduler.pick(at(500), &full, &queue(9, 9)), send(1, 0));
        // A new backlog: for one round trip of the cheap subflow it is left to it.
        scheduler.pick(at(600), &full, &queue(0, 9));
        assert_eq!(scheduler.pick(at(700), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.reason(), "the cheaper subflows may yet work the backlog off");
        assert_eq!(scheduler.pick(at(750), &full, &queue(9, 9)), send(1, 0));
        // Two seconds without use: given up, and the next backlog must last again.
        scheduler.pick(at(2_750), &full, &queue(0, 9));
        assert_eq!(scheduler.engaged, None);
        assert_eq!(scheduler.pick(at(2_800), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(2_900), &full, &queue(9, 9)), Choice::Wait);
    }

    #[test]
    fn tiers_that_have_all_sent_nothing_are_given_up_together() {
        let full = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 0), costing(2, 10, 9.0, 0)]);
        let fuller = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 10), costing(2, 10, 9.0, 0)]);
        let mut scheduler = backup();
        scheduler.pick(at(0), &full, &queue(9, 9));
        assert_eq!(scheduler.pick(at(500), &full, &queue(9, 9)), send(1, 0));
        assert_eq!(scheduler.pick(at(1_000), &fuller, &queue(9, 9)), send(2, 0));
        // Nothing is sent for two seconds and more.
        scheduler.pick(at(3_000), &full, &queue(0, 9));
        assert_eq!(scheduler.pick(at(4_000), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(4_100), &full, &queue(9, 9)), Choice::Wait);
        assert_eq!(scheduler.pick(at(4_500), &full, &queue(9, 9)), send(1, 0));
    }

    /// A subflow over a path of 50 ms that delivers a megabyte a second, with so many segments in flight.
    fn with_queue(rtt_ms: u64, cost: f64, held: u64) -> SubflowView {
        let mut subflow = costing(0, 50, cost, 0);
        subflow.cwnd = subflow.mss * 1_000;
        subflow.in_flight = subflow.mss * held;
        subflow.srtt = Some(Duration::from_millis(rtt_ms));
        subflow.delivery_rate = Rate::from_mbps(8.0);
        subflow
    }

    #[test]
    fn what_stands_in_a_queue_of_the_network_is_a_backlog() {
        let blocked = queue(9, 0);
        let engaged_after = |rtt_ms, ms| {
            let paths = view([with_queue(rtt_ms, 1.0, 100), costing(1, 10, 5.0, 0)]);
            let mut scheduler = backup();
            assert_eq!(scheduler.pick(at(0), &paths, &blocked), Choice::Wait);
            assert_eq!(scheduler.pick(at(ms), &paths, &blocked), Choice::Wait);
            scheduler.engaged
        };
        assert_eq!(engaged_after(100, 500), Some(5.0));
        assert_eq!(engaged_after(100, 499), None);
        assert_eq!(engaged_after(99, 500), None, "the window is the limit, not the path");
    }

    #[test]
    fn an_engaged_subflow_is_not_held_up_by_a_cheaper_one_s_queue() {
        // 100 segments leave the cheap path within 103 ms; the dear one sends 10 in 10 ms, 106 kB in that time. With
        // what the cheap one holds that is 209 kB, half of 406 records.
        let paths = |held| view([with_queue(103, 1.0, held), costing(1, 10, 5.0, 0)]);
        let pick = |held, window| {
            let mut scheduler = Backup { engaged: Some(5.0), ..backup() };
            scheduler.pick(at(0), &view([with_queue(103, 1.0, held), costing(1, 10, 5.0, 10)]), &queue(900, window));
            scheduler.pick(at(500), &paths(held), &queue(900, window))
        };
        assert_eq!((pick(100, 406), pick(100, 405)), (send(0, 0), send(1, 0)));
        // Less than twice the shortest round trip is no queue.
        assert_eq!((pick(97, 100), pick(98, 100)), (send(0, 0), send(1, 0)));
        // And while only the cheapest are engaged nobody is in the way.
        assert_eq!(backup().pick(at(0), &paths(100), &queue(900, 100)), send(0, 0));
    }

    #[test]
    fn a_dear_subflow_is_the_cheapest_where_the_others_are_gone() {
        let mut paths = view([costing(0, 50, 1.0, 0), costing(1, 10, 5.0, 0)]);
        paths.subflows[0].state = manypath_core::SubflowState::Failed;
        assert_eq!(backup().pick(at(0), &paths, &queue(9, 9)), send(1, 0));
    }

    #[test]
    fn the_backup_flag_comes_before_cost() {
        let mut paths = view([costing(0, 50, 0.0, 0), costing(1, 10, 5.0, 0)]);
        paths.subflows[0].priority = Priority::Backup;
        assert_eq!(backup().pick(at(0), &paths, &queue(9, 9)), send(1, 0));
    }
}
