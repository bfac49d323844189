//! The lowest-RTT-first scheduler: the default of Linux MPTCP before 5.6 without its opportunistic retransmission
//! ("minRTT" in the papers).
//!
//! Data goes on the usable subflow with the smallest smoothed RTT that has room in its window, lost data too: it holds
//! up all that was sent after it. Only what was lost again prefers a subflow other than the last that carried it, which
//! may be one that swallows it for a reason of its own (packets of a size). It waits only while no usable subflow has
//! room.

use manypath_core::{Duration, SubflowId, SubflowView, Time, View};

use crate::queue::Queue;
use crate::reason;
use crate::rescue::Rescue;
use crate::scheduler::{Choice, Scheduler};

/// Parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Whether others carry copies of what a silent subflow holds, and a subflow with nothing to send of what a much slower one does
    /// (`rescue.rs`). Linux: no.
    pub rescue: bool,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct MinRtt {
    config: Config,
    rescue: Rescue,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl MinRtt {
    /// A scheduler with these parameters.
    pub const fn new(config: Config) -> Self {
        Self { config, rescue: Rescue::NONE, reason: reason::NOTHING_YET }
    }
}

/// The subflow with the smallest smoothed RTT among `candidates`; one without a sample yet counts as fastest, so that it
/// gets one; ties go to the lowest id.
pub(crate) fn fastest<'a>(candidates: impl Iterator<Item = &'a SubflowView>) -> Option<&'a SubflowView> {
    candidates.min_by_key(|subflow| (subflow.srtt.unwrap_or(Duration::ZERO), subflow.id))
}

/// The subflow that this scheduler would give the queue's head to, among those with room that `available` admits. What
/// was lost again prefers subflows other than the last that carried it.
pub(crate) fn fastest_for_head<'a>(
    view: &'a View,
    queue: &Queue,
    available: impl Fn(&SubflowView) -> bool,
) -> Option<&'a SubflowView> {
    let lost = queue.lost_segment();
    let mut best = None;
    for subflow in view.usable() {
        if subflow.has_room() && available(subflow) {
            let again = lost.is_some_and(|lost| lost.retransmitted && lost.last_subflow == subflow.id);
            let key = (again, subflow.srtt.unwrap_or(Duration::ZERO));
            // Ids ascend: the lowest of equals stays.
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, subflow));
            }
        }
    }
    best.map(|(_, subflow)| subflow)
}

/// The usable subflows with room that are slower than `fast`, the fastest of them first.
pub(crate) fn slower_with_room<'a>(view: &'a View, fast: &SubflowView) -> impl Iterator<Item = &'a SubflowView> {
    let key = |subflow: &SubflowView| (subflow.srtt.unwrap_or(Duration::ZERO), subflow.id);
    let mut last = key(fast);
    core::iter::from_fn(move || {
        let slower = view.usable().filter(|subflow| subflow.has_room() && key(subflow) > last);
        let next = slower.min_by_key(|subflow| key(subflow))?;
        last = key(next);
        Some(next)
    })
}

/// What the subflow sends in bytes a second: its window a round trip, or its pacing rate if that is less; zero if
/// unknown.
pub(crate) fn bandwidth(subflow: &SubflowView) -> f64 {
    let window = subflow.srtt.map_or(0.0, |srtt| (subflow.cwnd / srtt).as_bytes_per_sec());
    subflow.pacing.map_or(window, |pacing| window.min(pacing.as_bytes_per_sec()))
}

/// Sends the queue's head on `subflow`; waits where there is neither.
#[inline]
pub(crate) fn send_head(queue: &Queue, subflow: Option<&SubflowView>) -> Choice {
    let Some(subflow) = subflow else { return Choice::Wait };
    queue.head(subflow.mss).map_or(Choice::Wait, |range| Choice::Send { subflow: subflow.id, range })
}

impl Scheduler for MinRtt {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if self.config.rescue
            && let Some(copy) = self.rescue.copy_of_silent(now, view, queue, |_| true)
        {
            self.reason = reason::SILENT;
            return copy;
        }
        let choice = if queue.has_pending() {
            self.rescue.on_pending(queue);
            send_head(queue, fastest_for_head(view, queue, |_| true))
        } else if self.config.rescue {
            self.rescue.choose(now, view, queue, |_| true)
        } else {
            Choice::Wait
        };
        self.reason = match choice {
            Choice::Send { .. } => "lowest RTT with room",
            Choice::Duplicate { .. } => reason::RESCUE,
            _ => reason::of_wait(queue),
        };
        choice
    }

    fn asks_at(&self) -> Option<Time> {
        self.rescue.due()
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.rescue.remove_subflow(id);
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests;
