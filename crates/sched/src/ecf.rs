//! ECF, earliest completion first (Lim et al., CoNEXT 2017; kernel `mptcp_ecf.c`, 5563404).
//!
//! While the fastest subflow has room it sends. When it has none, a slower one sends only if waiting for the fastest would
//! not have finished sooner. With `k` bytes pending, windows `W`, smoothed round-trip times `R` and
//! `delta = max(sigma_f, sigma_s)` it waits for the fastest subflow `f` instead of using `s` if
//!
//! * `R_f (1 + max(k, W_f) / W_f) < (1 + waiting beta) (R_s + delta)`: `f` would have sent it all before `s` delivers, and
//! * `R_s max(k, W_s) / W_s >= 2 R_f + delta`: `s` would take longer than two rounds of `f`.
//!
//! `waiting` is 1 from when both held until the first no longer does: hysteresis. `sigma` is the RTT's mean deviation
//! (RFC 9002 s5.3), as in Lim et al.; the kernel takes half of `rttvar_us`, which is twice that, and has a floor of
//! 200 ms, which is an artefact of its retransmission timer and left out. A paced controller's window is held wide open, and
//! what was given to a subflow may wait for its pacer: there `W` is what the rate sends in a round trip. `k` counts what
//! waits on the subflow too, and in the first condition `R_s` grows by the time that it waits on `s`, paced or not. `k` and
//! `W` count records, headers included.
//! Opportunistic retransmission and penalisation as in [`minrtt_pr`](crate::minrtt_pr), as in the kernel.

use manypath_core::{Bytes, Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::{fastest, fastest_for_head, send_head};
use crate::opportunistic::{KERNEL_RATIO, Opportunistic};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Hysteresis: once waiting, it goes on while the fastest subflow needs up to `1 + beta` times as long. Lim et al., and
    /// the kernel's `r_beta` of 4: 0.25.
    pub beta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 0.25 }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Ecf {
    config: Config,
    opportunistic: Opportunistic,
    /// Whether the last comparison was for waiting.
    waiting: bool,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Ecf {
    /// A scheduler with these parameters.
    pub const fn new(config: Config) -> Self {
        let opportunistic = Opportunistic::new(KERNEL_RATIO);
        Self { config, opportunistic, waiting: false, reason: reason::NOTHING_YET }
    }

    /// Whether `pending` bytes of records are better kept for the fast subflow than sent on the slow one.
    fn waits_for(&mut self, fast: &SubflowView, slow: &SubflowView, pending: Bytes) -> bool {
        let seconds = |span: Duration| span.as_secs_f64();
        let (Some(rtt_f), Some(rtt_s)) = (fast.srtt.map(seconds), slow.srtt.map(seconds)) else { return false };
        let delta = seconds(fast.rttvar.max(slow.rttvar));
        // Lim et al. count rounds as pending over window; the kernel's floor makes that one round at least.
        let rounds = |subflow: &SubflowView| {
            let (window, before) = (window(subflow), (pending + subflow.queued).as_f64());
            before.max(window) / window
        };
        let hysteresis = if self.waiting { 1.0 + self.config.beta } else { 1.0 };
        let one_s = seconds(arrival(slow));
        if rtt_f * (1.0 + rounds(fast)) < hysteresis * (one_s + delta) {
            if rtt_s * rounds(slow) >= 2.0 * rtt_f + delta {
                self.waiting = true;
                return true;
            }
        } else {
            self.waiting = false;
        }
        false
    }
}

/// What the subflow sends in a round trip: its window, or what a pacing rate lets go of it.
fn window(subflow: &SubflowView) -> f64 {
    let paced = subflow.srtt.and_then(|srtt| Some(subflow.pacing? * srtt));
    subflow.cwnd.min(paced.unwrap_or(Bytes::MAX)).max(subflow.mss).as_f64()
}

/// The round trip of a segment given to the subflow now: what waits on it goes first.
fn arrival(subflow: &SubflowView) -> Duration {
    let srtt = subflow.srtt.unwrap_or(Duration::ZERO);
    srtt + srtt.mul_f64(subflow.queued.as_f64() / window(subflow))
}

impl Scheduler for Ecf {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        if !queue.has_pending() {
            let choice = self.opportunistic.choose(now, view, queue).unwrap_or(Choice::Wait);
            self.reason = reason::of_rescue(choice, queue);
            return choice;
        }
        let (fast, slow) = (fastest(view.usable()), fastest_for_head(view, queue, |_| true));
        if let (Some(fast), Some(slow)) = (fast, slow)
            && fast.id != slow.id
            && !fast.has_room()
            // The queue counts payload alone, windows records.
            && self.waits_for(fast, slow, queue.in_records((queue.unsent() + queue.lost()).get(), slow.mss))
        {
            self.reason = "the fastest subflow completes earlier, once it has room";
            return Choice::Wait;
        }
        let choice = send_head(queue, slow);
        self.reason = match (choice, fast) {
            (Choice::Send { subflow, .. }, Some(fast)) if subflow == fast.id => "fastest subflow",
            (Choice::Send { .. }, _) => "completes earlier than waiting for the fastest",
            _ => reason::of_wait(queue),
        };
        choice
    }

    /// As much as makes waiting for the fastest subflow pointless, or a long transfer would look like its own end.
    fn looks_ahead(&self, view: &View) -> Bytes {
        let Some((fast, rtt_f)) = fastest(view.usable()).and_then(|fast| Some((fast, fast.srtt?))) else {
            return Bytes::ZERO;
        };
        let enough = |slow: &SubflowView| {
            let rtt_s = arrival(slow) + fast.rttvar.max(slow.rttvar);
            let rounds = (1.0 + self.config.beta) * rtt_s.as_secs_f64() / rtt_f.as_secs_f64().max(1e-9) - 1.0;
            Bytes::from_f64(window(fast) * rounds.max(0.0))
        };
        view.usable().map(enough).max().unwrap_or(Bytes::ZERO)
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.opportunistic.remove_subflow(id);
        // It may be the one that was waited for.
        self.waiting = false;
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, queue, segments, send, subflow, view};

    fn ecf() -> Ecf {
        Ecf::new(Config::default())
    }

    fn bytes(segments: u64) -> Bytes {
        Bytes::new(segments * MSS)
    }

    #[test]
    fn the_fastest_sends_while_it_has_room() {
        let paths = view([subflow(0, 20, 10, 9), subflow(1, 200, 10, 0)]);
        assert_eq!(ecf().pick(Time::ZERO, &paths, &queue(100, 100)), send(0, 0));
    }

    #[test]
    fn a_tail_waits_for_the_fastest_subflow() {
        // 5 segments, windows of 10: 20 (1 + 1) = 40 < 200, and 200 * 1 >= 2 * 20.
        let paths = view([subflow(0, 20, 10, 10), subflow(1, 200, 10, 0)]);
        let mut scheduler = ecf();
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(5, 100)), Choice::Wait);
        assert_eq!(scheduler.reason(), "the fastest subflow completes earlier, once it has room");
        assert!(scheduler.waiting);
    }

    #[test]
    fn much_data_uses_the_slow_subflow() {
        // 91 segments: 20 (1 + 9.1) = 202 > 200, though their payload alone is that of 8.8 windows. 89: 20 (1 + 8.9) < 200.
        let paths = view([subflow(0, 20, 10, 10), subflow(1, 200, 10, 0)]);
        let mut scheduler = ecf();
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(91, 100)), send(1, 0));
        assert_eq!(scheduler.reason(), "completes earlier than waiting for the fastest");
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(89, 100)), Choice::Wait);
    }

    #[test]
    fn lost_data_is_pending_too() {
        let paths = view([subflow(0, 20, 10, 10), subflow(1, 200, 10, 0)]);
        let mut queue = queue(100, 100);
        for segment in 0..60 {
            queue.on_assigned(Time::ZERO, segments(segment, segment + 1), SubflowId(0));
        }
        // 40 segments: 20 (1 + 4) = 100 < 200. With the 60 lost ones 20 (1 + 9.7) = 214 > 200.
        assert_eq!(ecf().pick(Time::ZERO, &paths, &queue), Choice::Wait);
        queue.on_copy_ended(segments(0, 60), SubflowId(0), false);
        assert_eq!(ecf().pick(Time::ZERO, &paths, &queue), send(1, 0));
    }

    #[test]
    fn what_the_fastest_lost_twice_does_not_wait_for_it() {
        // It has room, and would lose the segment again: the other one sends, however slow.
        let paths = view([subflow(0, 20, 10, 5), subflow(1, 200, 10, 0)]);
        let mut queue = queue(1, 100);
        for _ in 0..2 {
            queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(0));
            queue.on_copy_ended(segments(0, 1), SubflowId(0), false);
        }
        assert_eq!(ecf().pick(Time::ZERO, &paths, &queue), send(1, 0));
    }

    #[test]
    fn both_inequalities_and_the_hysteresis() {
        let (fast, slow) = (subflow(0, 20, 10, 10), subflow(1, 200, 10, 0));
        let mut scheduler = ecf();
        // 20 (1 + 9) = 200 is not less than 200.
        assert!(!scheduler.waits_for(&fast, &slow, bytes(90)));
        assert!(scheduler.waits_for(&fast, &slow, bytes(89)));
        // Once waiting, 1.25 * 200 = 250 = 20 (1 + 11.5) is the limit.
        assert!(scheduler.waits_for(&fast, &slow, bytes(114)));
        assert!(!scheduler.waits_for(&fast, &slow, bytes(115)));
        assert!(!scheduler.waits_for(&fast, &slow, bytes(90)), "no longer waiting");
        // Second inequality, 39 * 1 < 2 * 20: the slow subflow is not slow enough to wait.
        assert!(!scheduler.waits_for(&fast, &subflow(1, 39, 10, 0), bytes(1)));
        assert!(!scheduler.waits_for(&fast, &subflow(1, 40, 10, 0), bytes(1)), "first: 40 < 40 does not hold");
        assert!(scheduler.waits_for(&fast, &subflow(1, 41, 10, 0), bytes(1)));
    }

    #[test]
    fn it_looks_at_as_much_as_makes_waiting_pointless() {
        let paths = view([subflow(0, 20, 10, 10), subflow(1, 200, 10, 0)]);
        // 1.25 * 200 = 250 = 20 (1 + k / W_f): k = 11.5 windows.
        assert_eq!(ecf().looks_ahead(&paths), Bytes::new(MSS * 115));
        let mut scheduler = ecf();
        assert!(scheduler.waits_for(&paths.subflows[0], &paths.subflows[1], bytes(89)), "and goes on until then");
        assert!(!scheduler.waits_for(&paths.subflows[0], &paths.subflows[1], scheduler.looks_ahead(&paths)));
        assert_eq!(ecf().looks_ahead(&view([subflow(0, 20, 10, 10)])), Bytes::from_f64(0.25 * 10.0 * MSS as f64));
        // The deviation makes waiting worth more: 1.25 (200 + 20) = 275 = 20 (1 + 12.75).
        let mut unsteady = paths;
        unsteady.subflows[1].rttvar = Duration::from_millis(20);
        let ahead = ecf().looks_ahead(&unsteady).as_f64() / MSS as f64;
        assert!((ahead - 127.5).abs() < 0.1, "{ahead}");
    }

    #[test]
    fn a_paced_subflow_s_window_is_what_its_rate_sends_and_what_waits_for_the_pacer_counts() {
        let (mut fast, mut slow) = (subflow(0, 20, 1_000, 10), subflow(1, 200, 1_000, 0));
        // Ten segments a round trip of each: as in the test before, 20 (1 + 9) = 200 is not less than 200.
        fast.pacing = Some(bytes(10) / Duration::from_millis(20));
        slow.pacing = Some(bytes(10) / Duration::from_millis(200));
        assert!(!ecf().waits_for(&fast, &slow, bytes(90)) && ecf().waits_for(&fast, &slow, bytes(89)));
        // What waits on the fast one is before them.
        fast.queued = bytes(1);
        assert!(!ecf().waits_for(&fast, &slow, bytes(89)) && ecf().waits_for(&fast, &slow, bytes(88)));
        // Five that wait on the slow one take it half a round trip: 300 = 20 (1 + 14), one of them waiting on the fast
        // one.
        slow.queued = bytes(5);
        assert!(!ecf().waits_for(&fast, &slow, bytes(140)) && ecf().waits_for(&fast, &slow, bytes(138)));
        // 1.25 * 300 = 375 = 20 (1 + 17.75).
        let ahead = ecf().looks_ahead(&view([fast, slow])).as_f64() / MSS as f64;
        assert!((ahead - 177.5).abs() < 0.1, "{ahead}");
    }

    #[test]
    fn the_deviation_counts_on_both_sides() {
        let (fast, mut slow) = (subflow(0, 20, 10, 10), subflow(1, 41, 10, 0));
        slow.rttvar = Duration::from_millis(5);
        // First: 40 < 46. Second: 41 >= 45 does not hold.
        assert!(!ecf().waits_for(&fast, &slow, bytes(1)));
        slow.srtt = Some(Duration::from_millis(45));
        assert!(ecf().waits_for(&fast, &slow, bytes(1)));
    }
}
