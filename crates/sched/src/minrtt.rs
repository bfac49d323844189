//! The lowest-RTT-first scheduler: the default of Linux MPTCP before 5.6 without its opportunistic retransmission
//! (`reference` name "minRTT").
//!
//! Data goes on the usable subflow with the smallest smoothed RTT that has room in its window. Lost data prefers a subflow
//! that has not carried it. It waits only while no usable subflow has room.

use manypath_core::{Bytes, Duration, SubflowView, Time, View};

use crate::queue::Queue;
use crate::scheduler::{Choice, Scheduler};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

/// The subflow with the smallest smoothed RTT among `candidates`; one without a sample yet counts as fastest, so that it
/// gets one; ties go to the lowest id.
pub(crate) fn fastest<'a>(candidates: impl Iterator<Item = &'a SubflowView>) -> Option<&'a SubflowView> {
    candidates.min_by_key(|subflow| subflow.srtt.unwrap_or(Duration::ZERO))
}

/// Sends the queue's head on the fastest subflow that `available` admits. Lost data prefers subflows that did not carry it.
pub(crate) fn send_head_on_fastest(view: &View, queue: &Queue, available: impl Fn(&SubflowView) -> bool) -> Choice {
    if !queue.has_pending() {
        return Choice::Wait;
    }
    let open = || view.usable().filter(|subflow| subflow.has_room() && available(subflow));
    let lost = queue.lost_head(Bytes::MAX).and_then(|range| queue.segment_at(range.start));
    let fresh = lost.and_then(|segment| fastest(open().filter(|subflow| !segment.was_carried_by(subflow.id))));
    let Some(subflow) = fresh.or_else(|| fastest(open())) else { return Choice::Wait };
    match queue.head(subflow.mss) {
        Some(range) => Choice::Send { subflow: subflow.id, range },
        None => Choice::Wait,
    }
}

impl Scheduler for MinRtt {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        send_head_on_fastest(view, queue, |_| true)
    }
}
