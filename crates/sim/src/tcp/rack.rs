//! Loss detection by time (RACK, RFC 8985 s6): a segment is lost when one that left later has arrived and a round trip has
//! passed since it left. Segments that leave again are judged like new ones, so that their second loss needs no timeout.

use std::collections::VecDeque;

use manypath_core::{Duration, RttEstimator, Time};

/// RFC 8985 s6.2 step 4: for so many recoveries counts what was sent again too soon.
const PERSISTENCE: u32 = 16;

/// What is known of the order in which segments leave and arrive.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Departures in their order: when, and the segment's number. Those that no longer matter are dropped when they come to
    /// the front.
    departures: VecDeque<(Time, u64)>,
    /// The departure that was the last of those that have arrived (spec: RACK.xmit_ts, RACK.end_seq).
    latest: Option<(Time, u64)>,
    /// Its round trip (spec: RACK.rtt).
    rtt: Duration,
    /// One past the highest segment that has arrived (spec: RACK.fack).
    highest: u64,
    /// A segment that left once has arrived after a higher one (spec: RACK.reordering_seen).
    reordered: bool,
    /// How many round trips had segments that were sent again too soon (spec: RACK.reo_wnd_mult less one).
    pub(super) hasty: u32,
    /// The last of them ends when what is below has arrived (spec: RACK.dsack_round).
    round: u64,
    /// How many recoveries it still counts for (spec: RACK.reo_wnd_persist).
    persists: u32,
    /// When the first departure that is late will count as lost.
    due: Option<Time>,
}

impl Rack {
    pub(super) fn on_sent(&mut self, now: Time, number: u64) {
        self.departures.push_back((now, number));
    }

    /// A segment has arrived that had left at `sent_at`. RFC 8985 s6.2 steps 2 and 3.
    pub(super) fn on_arrived(&mut self, now: Time, number: u64, sent_at: Time, repeated: bool, min_rtt: Duration) {
        let rtt = now.since(sent_at);
        if repeated && rtt < min_rtt {
            // What arrived had left before.
            return;
        }
        if number >= self.highest {
            self.highest = number + 1;
        } else if !repeated {
            self.reordered = true;
        }
        if self.latest.is_none_or(|latest| (sent_at, number) > latest) {
            self.latest = Some((sent_at, number));
            self.rtt = rtt;
        }
    }

    /// RFC 8985 s6.2 step 4: `number` was late only, and had been sent again. Before anything was seen out of order that says what
    /// a timeout repeated, and nothing of the order. `end`: one past what has left.
    pub(super) fn on_sent_too_soon(&mut self, number: u64, end: u64) {
        if self.reordered && number >= self.round {
            self.hasty = self.hasty.saturating_add(1);
            self.round = end;
            self.persists = PERSISTENCE;
        }
    }

    /// A recovery is over.
    pub(super) fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.hasty = 0;
        }
    }

    /// RFC 8985 s6.2 step 4: how long a segment may be late. `certain`: recovery is under way, or three later segments have
    /// arrived.
    pub(super) fn tolerance(&self, certain: bool, rtt: &RttEstimator) -> Duration {
        let Some(srtt) = rtt.srtt().filter(|_| !certain || self.reordered) else { return Duration::ZERO };
        (rtt.min().unwrap_or_default() / 4 * u64::from(self.hasty.saturating_add(1))).min(srtt)
    }

    /// RFC 8985 s6.2 step 5: the next segment that is lost by now. `matters`: whether the segment of this number is in
    /// flight since this time.
    pub(super) fn next_lost(
        &mut self,
        now: Time,
        tolerance: Duration,
        matters: impl Fn(u64, Time) -> bool,
    ) -> Option<u64> {
        self.due = None;
        let latest = self.latest?;
        while let Some(&(sent_at, number)) = self.departures.front() {
            if matters(number, sent_at) {
                if (sent_at, number) >= latest {
                    return None;
                }
                let lost_at = sent_at + self.rtt + tolerance;
                if lost_at > now {
                    self.due = Some(lost_at);
                    return None;
                }
                self.departures.pop_front();
                return Some(number);
            }
            self.departures.pop_front();
        }
        None
    }

    /// When to look again; [`Time::MAX`]: with the next acknowledgement.
    pub(super) fn due(&self) -> Time {
        self.due.unwrap_or(Time::MAX)
    }
}
