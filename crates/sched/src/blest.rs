//! BLEST, blocking estimation (Ferlin et al., IFIP Networking 2016; kernel `mptcp_blest.c`, 4e10ec5).
//!
//! While the fastest subflow has room it sends. When it has none, a slower one sends only if its segment would not block
//! the connection's window: what the fastest subflow could send while the segment is on its slow way, times `lambda`, must
//! fit into the window beside what the slow subflow holds. Otherwise it waits for the fastest subflow.
//!
//! `lambda` grows by 0.04 when the window was held up all the same since the last look, and shrinks by 0.01 when not,
//! at most once per the slow subflow's smallest smoothed RTT, within 1 and 1.3. Four things differ from the kernel. A paced
//! subflow sends no more than its rate allows, whatever its window, which is not meant to be reached and knows no slow start.
//! The extremes of the smoothed RTT are those of the last five to ten seconds: the kernel's are those of the
//! connection's life, so that a path whose round trip once rose would be left out for ever. A window that is held up while
//! the slow subflow alone has room counts as held up, where the kernel's code looks for a subflow first and, finding none,
//! lets `lambda` shrink. And opportunistic retransmission and penalisation, which tell that the window was held up, are as in
//! [`minrtt_pr`](crate::minrtt_pr): of the slower subflows that carried the oldest segment they halve the first one's window,
//! the kernel's copy in BLEST the windows of all.

use manypath_core::{Bytes, Duration, SubflowId, SubflowView, Time, View};

use crate::minrtt::{fastest, fastest_for_head, send_head};
use crate::opportunistic::{KERNEL_RATIO, Opportunistic};
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// Smallest `lambda` (kernel `min_lambda`).
const MIN_LAMBDA: f64 = 1.0;
/// Largest `lambda` (kernel `max_lambda`).
const MAX_LAMBDA: f64 = 1.3;
/// What `lambda` gains when the window was held up (kernel `dyn_lambda_bad`).
const GAIN: f64 = 0.04;
/// What `lambda` loses when it was not (kernel `dyn_lambda_good`).
const LOSS: f64 = 0.01;
/// So long, and at most twice as long, an extreme of the smoothed RTT is remembered: more than windows take from a loss
/// to the next.
const MEMORY: Duration = Duration::from_secs(5);
/// Doublings of a window in slow start counted at most (kernel).
const MAX_DOUBLINGS: u64 = 16;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The factor on the estimate to begin with, in 1..=1.3. Kernel: 1.2; Ferlin et al.: 1.
    pub lambda: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { lambda: 1.2 }
    }
}

/// The extremes of a subflow's smoothed RTT.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    min: Duration,
    max: Duration,
}

impl Extremes {
    fn and(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// What is remembered of a subflow's smoothed RTT.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// The extremes since then.
    since: Time,
    current: Extremes,
    /// Those of the period before.
    before: Extremes,
}

impl Watched {
    fn add(held: Option<Self>, now: Time, srtt: Duration) -> Self {
        let sample = Extremes { min: srtt, max: srtt };
        match held {
            None => Self { since: now, current: sample, before: sample },
            Some(held) if now.since(held.since) >= MEMORY => Self { since: now, current: sample, before: held.current },
            Some(held) => Self { current: held.current.and(sample), ..held },
        }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Blest {
    opportunistic: Opportunistic,
    /// Factor on what the fast subflow is expected to send.
    lambda: f64,
    /// When `lambda` last changed.
    lambda_changed: Option<Time>,
    /// Whether the window was held up since.
    was_held_up: bool,
    /// By subflow; `None` before the first sample.
    watched: Vec<Option<Watched>>,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl Blest {
    /// A scheduler with these parameters.
    pub const fn new(config: Config) -> Self {
        Self {
            opportunistic: Opportunistic::new(KERNEL_RATIO),
            lambda: config.lambda,
            lambda_changed: None,
            was_held_up: false,
            watched: Vec::new(),
            reason: reason::NOTHING_YET,
        }
    }

    fn watch(&mut self, now: Time, view: &View) {
        if self.watched.len() < view.subflows.len() {
            self.watched.resize(view.subflows.len(), None);
        }
        for (subflow, held) in view.subflows.iter().zip(&mut self.watched) {
            if let Some(srtt) = subflow.srtt {
                *held = Some(Watched::add(*held, now, srtt));
            }
        }
    }

    fn extremes_of(&self, subflow: &SubflowView) -> Option<Extremes> {
        let watched = self.watched.get(subflow.id.index())?.as_ref()?;
        Some(watched.current.and(watched.before))
    }

    fn adapt(&mut self, now: Time, slow: Extremes) {
        if self.lambda_changed.is_some_and(|last| now.since(last) < slow.min) {
            return;
        }
        let change = if self.was_held_up { GAIN } else { -LOSS };
        self.lambda = (self.lambda + change).clamp(MIN_LAMBDA, MAX_LAMBDA);
        self.lambda_changed = Some(now);
        self.was_held_up = false;
    }

    /// How long a segment given to the subflow now is expected to be on its way: the longer the fuller the window.
    fn linger(subflow: &SubflowView, extremes: Extremes) -> Duration {
        let packets = subflow.in_flight.get() / subflow.mss.get().max(1) + 1;
        let window = subflow.cwnd.get() / subflow.mss.get().max(1);
        let span = extremes.max - extremes.min;
        let by_fill =
            if packets >= window { extremes.max } else { extremes.min + span.mul_f64(packets as f64 / window as f64) };
        subflow.srtt.unwrap_or(Duration::ZERO).max(by_fill)
    }

    /// What the subflow sends within `span`: whole windows, growing by one segment a round, or doubling in the first slow
    /// start; no more than a pacing rate allows.
    fn bytes_within(subflow: &SubflowView, extremes: Extremes, span: Duration) -> Bytes {
        let average = (extremes.min + extremes.max) / 2;
        let rounds = (span.as_nanos() / average.as_nanos().max(1)).saturating_add(1);
        let mss = subflow.mss.get().max(1);
        let window = subflow.cwnd.get() / mss;
        let packets = if subflow.ssthresh == Bytes::MAX {
            window.saturating_mul((1 << rounds.min(MAX_DOUBLINGS)) - 1)
        } else {
            let window = window.max(subflow.ssthresh.get() / mss + 1);
            (window + (rounds - 1) / 2).saturating_mul(rounds)
        };
        let allowed = subflow.pacing.map_or(Bytes::MAX, |rate| rate * span);
        (subflow.mss * packets).min(allowed)
    }

    /// Whether a segment on the slow subflow would hold up the window before it arrives.
    fn would_block(&self, fast: &SubflowView, slow: &SubflowView, queue: &Queue) -> bool {
        let (Some(of_fast), Some(of_slow)) = (self.extremes_of(fast), self.extremes_of(slow)) else { return false };
        let fast_bytes = Self::bytes_within(fast, of_fast, Self::linger(slow, of_slow)).as_f64() * self.lambda;
        let slow_bytes = slow.mss + slow.in_flight + slow.queued;
        // The window counts payload alone.
        let window = queue.in_records(queue.window_end() - queue.left_edge(), slow.mss);
        fast_bytes > (window - slow_bytes).as_f64()
    }
}

impl Scheduler for Blest {
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice {
        self.watch(now, view);
        if !queue.has_pending() {
            let rescue = self.opportunistic.choose(now, view, queue);
            // The kernel notes it before it asks whether a copy or a penalty is due.
            self.was_held_up |= rescue.is_some();
            let choice = rescue.unwrap_or(Choice::Wait);
            self.reason = reason::of_rescue(choice, queue);
            return choice;
        }
        let (fast, slow) = (fastest(view.usable()), fastest_for_head(view, queue, |_| true));
        if let (Some(fast), Some(slow)) = (fast, slow)
            && fast.id != slow.id
            && !fast.has_room()
        {
            if let Some(extremes) = self.extremes_of(slow) {
                self.adapt(now, extremes);
            }
            if self.would_block(fast, slow, queue) {
                self.reason = "a segment on the slow subflow would block the window";
                return Choice::Wait;
            }
        }
        let choice = send_head(queue, slow);
        self.reason = match (choice, fast) {
            (Choice::Send { subflow, .. }, Some(fast)) if subflow == fast.id => "fastest subflow",
            (Choice::Send { .. }, _) => "does not block the window",
            _ => reason::of_wait(queue),
        };
        choice
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        self.opportunistic.remove_subflow(id);
        if let Some(held) = self.watched.get_mut(id.index()) {
            *held = None;
        }
    }

    fn reason(&self) -> &'static str {
        self.reason
    }

    fn inspect(&self, _id: manypath_core::SubflowId, out: &mut dyn FnMut(&'static str, f64)) {
        out("lambda", self.lambda);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, queue, segments, send, subflow, view};
    use manypath_core::SubflowId;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn known(min: u64, max: u64) -> Extremes {
        Extremes { min: ms(min), max: ms(max) }
    }

    #[test]
    fn a_segment_lingers_longer_in_a_fuller_window() {
        // 4 of 10 in flight, the next is the fifth: 100 + (200 - 100) * 5 / 10.
        let mut slow = subflow(1, 120, 10, 4);
        assert_eq!(Blest::linger(&slow, known(100, 200)), ms(150));
        slow.srtt = Some(ms(160));
        assert_eq!(Blest::linger(&slow, known(100, 200)), ms(160));
        assert_eq!(Blest::linger(&subflow(1, 120, 10, 9), known(100, 200)), ms(200));
    }

    #[test]
    fn the_fast_subflow_s_windows_grow_while_the_slow_segment_travels() {
        let mut fast = subflow(0, 20, 10, 10);
        // First slow start, floor(70 / 20) + 1 = 4 rounds: 10 (2^4 - 1) = 150.
        assert_eq!(Blest::bytes_within(&fast, known(20, 20), ms(70)), Bytes::new(150 * MSS));
        // Congestion avoidance: (10 + 3 / 2) * 4, in integers 11 * 4.
        fast.ssthresh = fast.mss * 5;
        assert_eq!(Blest::bytes_within(&fast, known(20, 20), ms(70)), Bytes::new(44 * MSS));
        // Below ssthresh again: it is taken to be back at 20 + 1.
        fast.ssthresh = fast.mss * 20;
        assert_eq!(Blest::bytes_within(&fast, known(10, 30), ms(70)), Bytes::new(22 * 4 * MSS));
    }

    #[test]
    fn a_paced_subflow_sends_what_its_rate_allows() {
        // First slow start by its window's thresholds, which a paced controller does not have: 150 segments, as above.
        let mut fast = subflow(0, 20, 10, 10);
        // 8 Mbit/s are 1000 bytes a millisecond.
        fast.pacing = Some(manypath_core::Rate::from_mbps(8.0));
        assert_eq!(Blest::bytes_within(&fast, known(20, 20), ms(70)), Bytes::new(70_000));
        fast.pacing = Some(manypath_core::Rate::from_mbps(80.0));
        assert_eq!(Blest::bytes_within(&fast, known(20, 20), ms(70)), Bytes::new(150 * MSS));
    }

    #[test]
    fn the_slow_subflow_sends_only_what_does_not_block() {
        let mut paths = view([subflow(0, 20, 10, 10), subflow(1, 70, 10, 3)]);
        paths.subflows[0].ssthresh = paths.subflows[0].mss * 5;
        // 44 segments in the meantime, times 1.19 after the first look, beside 4 segments: that takes a window of 56.36.
        let mut scheduler = Blest::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 57)), send(1, 0));
        assert_eq!(scheduler.reason(), "does not block the window");
        let mut scheduler = Blest::new(Config::default());
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 56)), Choice::Wait);
        assert_eq!(scheduler.reason(), "a segment on the slow subflow would block the window");
        paths.subflows[0].in_flight = Bytes::ZERO;
        assert_eq!(scheduler.pick(Time::ZERO, &paths, &queue(100, 56)), send(0, 0));
    }

    #[test]
    fn lambda_follows_whether_the_window_was_held_up() {
        let mut scheduler = Blest::new(Config { lambda: 1.28 });
        let mut queue = queue(10, 1);
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(1));
        let paths = view([subflow(0, 20, 10, 0), subflow(1, 200, 10, 1)]);
        assert!(matches!(scheduler.pick(Time::ZERO, &paths, &queue), Choice::Duplicate { .. }));
        scheduler.adapt(Time::ZERO, known(100, 200));
        assert!((scheduler.lambda - 1.3).abs() < 1e-12, "1.28 + 0.04, at most 1.3");
        scheduler.adapt(Time::from_millis(99), known(100, 200));
        assert!((scheduler.lambda - 1.3).abs() < 1e-12, "not before a round trip");
        scheduler.adapt(Time::from_millis(100), known(100, 200));
        assert!((scheduler.lambda - 1.29).abs() < 1e-12);
        for look in 2..60 {
            scheduler.adapt(Time::from_millis(look * 100), known(100, 200));
        }
        assert!((scheduler.lambda - 1.0).abs() < 1e-12, "at least 1");
    }

    #[test]
    fn a_removed_subflow_s_extremes_are_forgotten() {
        let mut scheduler = Blest::new(Config::default());
        let slow = |rtt| view([subflow(0, 20, 10, 0), subflow(1, rtt, 10, 0)]);
        scheduler.watch(Time::ZERO, &slow(900));
        scheduler.remove_subflow(SubflowId(1));
        scheduler.watch(Time::ZERO, &slow(30));
        let extremes = scheduler.extremes_of(&slow(30).subflows[1]).unwrap();
        assert_eq!((extremes.min, extremes.max), (ms(30), ms(30)));
    }

    #[test]
    fn extremes_are_forgotten() {
        let mut scheduler = Blest::new(Config::default());
        for (at, rtt, expected) in
            [(0, 30, (30, 30)), (1, 900, (30, 900)), (5, 40, (30, 900)), (9, 50, (30, 900)), (10, 60, (40, 60))]
        {
            let paths = view([subflow(0, rtt, 10, 0)]);
            scheduler.watch(Time::from_millis(at * 1_000), &paths);
            let extremes = scheduler.extremes_of(&paths.subflows[0]).unwrap();
            assert_eq!((extremes.min, extremes.max), (ms(expected.0), ms(expected.1)), "after {at} s");
        }
    }
}
