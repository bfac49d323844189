//! STMS, the Slide Together Multipath Scheduler (Shi et al., USENIX ATC 2018). What is done where
//! the paper is silent stands below.
//!
//! Packets should *arrive* in order. The fast subflow always sends the lowest unsent data; a slow one sends the data behind
//! a gap of unsent segments, which the fast subflow will have sent by the time that the slow one's segment arrives
//! (STMS algorithm 1). The two variants differ in how they find the gap:
//!
//! * `stms-c` calculates it with every segment it sends on a slow subflow: `gap = B_f (OWD_s - OWD_f)` (eq. 2), with half the
//!   smoothed RTT as one-way delay;
//! * `stms-a` adapts it to how many segments each data acknowledgement releases (algorithm 2, [`adaptation`]).
//!
//! The paper defines two subflows. With more, each slow subflow has its own gap behind which it sends; the calculated one
//! is the sum over all faster subflows `j` of `B_j (OWD_i - OWD_j)`. Where the paper is silent: the fast subflow is the
//! usable one with the smallest smoothed RTT, at every decision anew. The bandwidth of a subflow is its
//! window over its smoothed RTT, or its pacing rate if that is less (a paced controller's window is not meant to be
//! reached); what was given to a subflow may wait for its pacer, and eq. 2's delays begin when a segment is given: they
//! grow by that wait. Lost data stands before the unsent data: a slow subflow takes it only where the gap is shorter than
//! all that was lost.
//!
//! It waits when only slow subflows have room and the gap reaches beyond the unsent data or the window: then it falls back to
//! the fast subflow alone (STMS s3.2). While the fast subflow has room it never waits.

pub mod adaptation;

use manypath_core::{Bytes, DataRange, Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::{bandwidth, fastest, send_head, slower_with_room};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, DataAck, Scheduler};

use adaptation::Adaptation;

/// Why it waits while a subflow has room.
pub(crate) const GAP_TOO_LONG: &str = "nothing behind the gap within the window";

/// How the gap is found.
#[derive(Clone, Debug)]
enum Variant {
    /// STMS-C; by subflow the gap last calculated, for traces.
    Calculated(Vec<f64>),
    /// STMS-A.
    Adapted(Adaptation),
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Stms {
    variant: Variant,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Stms {
    /// STMS-C: the gap is calculated from bandwidths and round-trip times.
    pub const fn calculated() -> Self {
        Self { variant: Variant::Calculated(Vec::new()), reason: reason::NOTHING_YET }
    }

    /// STMS-A: the gap follows the data acknowledgements.
    pub const fn adapted(config: adaptation::Config) -> Self {
        Self { variant: Variant::Adapted(Adaptation::new(config)), reason: reason::NOTHING_YET }
    }

    /// The gap before the slow subflow's next segment, in segments of the fast one.
    fn gap(&mut self, view: &View, slow: &SubflowView) -> f64 {
        match &mut self.variant {
            Variant::Adapted(adaptation) => {
                if slow.in_flight.is_zero() && slow.queued.is_zero() && slow.min_rtt < Duration::MAX {
                    // Nothing under way can tell that the gap is too large, and nothing of it queues on the path.
                    adaptation.cut(slow.id, gap_with_rtt(view, slow, slow.min_rtt));
                }
                adaptation.gap(slow.id)
            }
            Variant::Calculated(last) => {
                let gap = calculated_gap(view, slow);
                if last.len() < view.subflows.len() {
                    last.resize(view.subflows.len(), 0.0);
                }
                // The view holds the slow subflow, so its index is below the length.
                last[slow.id.index()] = gap;
                gap
            }
        }
    }

    /// A subflow's gap as last adapted or calculated, in segments.
    fn last_gap(&self, id: SubflowId) -> f64 {
        match &self.variant {
            Variant::Adapted(adaptation) => adaptation.gap(id),
            Variant::Calculated(last) => last.get(id.index()).copied().unwrap_or(0.0),
        }
    }

    /// Algorithm 1, line 3: the front for the fast subflow. Line 5: behind the gap for slow ones.
    fn choose(&mut self, view: &View, queue: &Queue) -> Choice {
        let Some(fast) = fastest(view.usable()) else { return Choice::Wait };
        if let Variant::Adapted(adaptation) = &mut self.variant {
            adaptation.on_fastest(view, fast.id);
        }
        if fast.has_room() {
            self.reason = "fast subflow: the front";
            return send_head(queue, Some(fast));
        }
        for slow in slower_with_room(view, fast) {
            let gap = self.gap(view, slow);
            if let Some(range) = behind(queue, Bytes::ZERO, gap, fast.mss, slow.mss) {
                self.reason = "slow subflow: behind the gap";
                return Choice::Send { subflow: slow.id, range };
            }
        }
        Choice::Wait
    }
}

/// The data behind a gap of so many segments of `gap_mss`, as much as a record of `mss` carries. What was lost stands in it behind
/// `before_lost` bytes of what is unsent: with STMS before all of it.
pub(crate) fn behind(queue: &Queue, before_lost: Bytes, gap: f64, gap_mss: Bytes, mss: Bytes) -> Option<DataRange> {
    // Float to integer casts saturate, and a gap is never negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let gap = gap as u64;
    let segments = |bytes: Bytes| bytes.get().div_ceil(queue.payload(gap_mss));
    let (before, lost) = (segments(before_lost), segments(queue.lost()));
    if gap < before {
        queue.unsent_behind(gap, gap_mss, mss)
    } else if gap - before < lost {
        queue.lost_head(mss)
    } else {
        queue.unsent_behind(gap - lost, gap_mss, mss)
    }
}

/// How long what is given to the subflow now waits for what was given before, seconds.
pub(crate) fn wait(subflow: &SubflowView) -> f64 {
    let bandwidth = bandwidth(subflow);
    if bandwidth > 0.0 { subflow.queued.as_f64() / bandwidth } else { 0.0 }
}

/// The sum over the usable subflows with an RTT of at most `rtt` of what they send in a time that depends on them, in
/// segments of the fastest.
fn segments_within(view: &View, slow: SubflowId, rtt: Duration, span: impl Fn(&SubflowView, Duration) -> f64) -> f64 {
    let Some(fast) = fastest(view.usable()) else { return 0.0 };
    let faster = view.usable().filter_map(|subflow| Some((subflow, subflow.srtt?)));
    let faster = faster.filter(|(subflow, srtt)| subflow.id != slow && *srtt <= rtt);
    let bytes: f64 = faster.map(|(subflow, srtt)| bandwidth(subflow) * span(subflow, srtt).max(0.0)).sum();
    bytes / fast.mss.as_f64().max(1.0)
}

/// STMS eq. 2 with half the RTT as one-way delay (s5), summed over the faster subflows; in segments.
fn gap_with_rtt(view: &View, slow: &SubflowView, rtt: Duration) -> f64 {
    let arrival = |subflow: &SubflowView, rtt: Duration| wait(subflow) + rtt.as_secs_f64() / 2.0;
    segments_within(view, slow.id, rtt, |fast, srtt| arrival(slow, rtt) - arrival(fast, srtt))
}

/// STMS eq. 2 with smoothed RTTs; in segments.
pub fn calculated_gap(view: &View, slow: &SubflowView) -> f64 {
    slow.srtt.map_or(0.0, |srtt| gap_with_rtt(view, slow, srtt))
}

/// What the faster subflows send until a segment that is given to the slow one now is acknowledged; in segments.
fn sent_within_a_round(view: &View, slow: &SubflowView) -> f64 {
    let rtt = slow.srtt.unwrap_or(Duration::ZERO);
    let round = wait(slow) + rtt.as_secs_f64();
    segments_within(view, slow.id, rtt, |_, _| round)
}

impl Scheduler for Stms {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        let choice = if queue.has_pending() { self.choose(view, queue) } else { Choice::Wait };
        if choice == Choice::Wait {
            let idle = queue.has_pending() && view.usable().any(SubflowView::has_room);
            self.reason = if idle { GAP_TOO_LONG } else { reason::of_wait(queue) };
        }
        choice
    }

    fn on_data_ack(&mut self, now: Time, ack: &DataAck, view: &View) {
        if let Variant::Adapted(adaptation) = &mut self.variant {
            adaptation.on_data_ack(now, ack, view);
        }
    }

    fn looks_ahead(&self, view: &View) -> Bytes {
        let Some(fast) = fastest(view.usable()) else { return Bytes::ZERO };
        let slow = view.usable().filter(|subflow| subflow.id != fast.id);
        Bytes::from_f64(slow.map(|subflow| self.last_gap(subflow.id)).fold(0.0, f64::max) * fast.mss.as_f64())
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        match &mut self.variant {
            Variant::Adapted(adaptation) => adaptation.remove_subflow(id),
            Variant::Calculated(last) => {
                if let Some(gap) = last.get_mut(id.index()) {
                    *gap = 0.0;
                }
            }
        }
    }

    fn reason(&self) -> &'static str {
        self.reason
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn FnMut(&'static str, f64)) {
        out("gap_segments", self.last_gap(id));
    }
}

#[cfg(test)]
mod tests;
