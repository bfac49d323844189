//! Backup by cost: a dearer path carries data only when the cheaper ones cannot carry the load.
//!
//! The subflows of the least cost always send: the lowest smoothed RTT with room first. Dearer ones come in a tier at
//! a time, in the order of cost:
//!
//! * a tier is *engaged* when there has been a backlog for `engage` without a break. A backlog lasts as long as no decision
//!   finds all pending data sent;
//! * an engaged tier sends when the cheaper subflows lack room and the backlog is older than a round trip of the fastest
//!   cheapest subflow: bursts that the cheap paths can work off do not count;
//! * a tier that has sent nothing for `release` is disengaged, and the next backlog must again last for `engage`.
//!
//! It waits while the cheaper subflows lack room and no dearer one may send yet; what is in flight on them asks again. The
//! backup flag (RFC 8684 s3.3.8) comes before cost: a flagged subflow is not usable while an unflagged one is.
//!
//! The rule is this project's own.

use manypath_core::{Duration, SubflowView, Time, View};

use crate::minrtt::{fastest, send_head};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

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
    /// When a tier was last engaged or given up, or the dearest engaged one last sent.
    changed_at: Time,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Backup {
    /// A scheduler with these parameters, with only the cheapest subflows engaged.
    pub const fn new(config: Config) -> Self {
        Self { config, engaged: None, backlog_since: None, changed_at: Time::ZERO, reason: reason::NOTHING_YET }
    }

    /// Gives up the dearest engaged tier if it has sent nothing for long enough.
    fn release(&mut self, now: Time, view: &View, cheapest: f64) {
        let Some(engaged) = self.engaged else { return };
        if now.since(self.changed_at) >= self.config.release {
            let cheaper = view.usable().map(|subflow| subflow.cost).filter(|cost| *cost < engaged);
            self.engaged = cheaper.max_by(f64::total_cmp).filter(|cost| *cost > cheapest);
            self.changed_at = now;
        }
    }

    /// Engages the next tier if the backlog has outlasted the present one for long enough.
    fn engage(&mut self, now: Time, view: &View, limit: f64, since: Time) {
        let Some(next) = view.usable().map(|subflow| subflow.cost).filter(|cost| *cost > limit).min_by(f64::total_cmp)
        else {
            return;
        };
        // Each tier is given its own time to work the backlog off.
        let since = if self.engaged.is_some() { since.max(self.changed_at) } else { since };
        if now.since(since) >= self.config.engage {
            self.engaged = Some(next);
            self.changed_at = now;
        }
    }

    /// The subflow to send on, given that there is data.
    fn choose<'a>(&mut self, now: Time, view: &'a View) -> Option<&'a SubflowView> {
        let cheapest = view.usable().map(|subflow| subflow.cost).min_by(f64::total_cmp)?;
        let since = *self.backlog_since.get_or_insert(now);
        let open = || view.usable().filter(|subflow| subflow.has_room());
        if let Some(cheap) = fastest(open().filter(|subflow| subflow.cost <= cheapest)) {
            self.reason = "cheapest subflow with room";
            return Some(cheap);
        }
        self.engage(now, view, self.engaged.unwrap_or(cheapest).max(cheapest), since);
        let limit = self.engaged.unwrap_or(cheapest);
        let patience = fastest(view.usable().filter(|subflow| subflow.cost <= cheapest)).and_then(|cheap| cheap.srtt);
        if now.since(since) < patience.unwrap_or(Duration::ZERO) {
            self.reason = "the cheaper subflows may yet work the backlog off";
            return None;
        }
        let tier = open().map(|subflow| subflow.cost).filter(|cost| *cost <= limit).min_by(f64::total_cmp);
        let Some(tier) = tier else {
            self.reason = "no engaged subflow with room";
            return None;
        };
        if tier >= limit {
            self.changed_at = now;
        }
        self.reason = "the cheaper subflows cannot carry the load";
        fastest(open().filter(|subflow| subflow.cost <= tier))
    }
}

impl Scheduler for Backup {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if let Some(cheapest) = view.usable().map(|subflow| subflow.cost).min_by(f64::total_cmp) {
            self.release(now, view, cheapest);
        }
        if !queue.has_pending() {
            self.backlog_since = None;
            self.reason = reason::of_wait(queue);
            return Choice::Wait;
        }
        send_head(queue, self.choose(now, view))
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{queue, send, subflow, view};
    use manypath_core::Priority;

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
        // The second tier is full too: the third comes half a second after the second last sent.
        let fuller = view([costing(0, 50, 1.0, 10), costing(1, 10, 5.0, 10), costing(2, 10, 9.0, 0)]);
        assert_eq!(scheduler.pick(at(1_999), &fuller, &queue), Choice::Wait);
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
