//! The default packet scheduler of upstream Linux MPTCP (`mptcp_subflow_get_send`, since 5.18).
//!
//! Not the lowest RTT: the subflow whose queue empties first sends, where its queue is all it holds (in flight and not yet
//! sent) and empties at its pacing rate, averaged over what it was given. The subflow chosen keeps sending until a burst of
//! about 64 KiB is through. A subflow without an RTT sample has no rate yet and empties at once.
//!
//! Without a pacing rate the kernel's stands in: twice `cwnd / srtt` in the first half of slow start, 1.2 times after
//! (`tcp_update_pacing_rate`). Two things differ. The kernel chooses among all subflows, gives the one chosen data beyond its
//! congestion window, up to the socket's send buffer, and waits for it when that is full. Here the window bounds what a
//! subflow is given, so the choice is among subflows with room. And the kernel begins a subflow's average with the rate at
//! the first look at it and moves it only when the subflow is chosen, so that one that was slow then may stay unused for
//! ever; here the average begins when the subflow is first chosen, and until then its present rate counts.
//!
//! It waits only while no usable subflow has room.

use manypath_core::{Rate, SubflowId, SubflowView, Time, View};

use crate::minrtt::send_head;
use crate::queue::Queue;
use crate::reason;
use crate::scheduler::{Choice, Scheduler};

/// Bytes a subflow sends before the choice is made again (kernel `MPTCP_SEND_BURST_SIZE`: 2^16 less headers).
const BURST: u64 = 65_428;
/// Pacing above the window's rate in early slow start (kernel `tcp_pacing_ss_ratio`, 200%).
const SLOW_START_GAIN: f64 = 2.0;
/// Pacing above the window's rate afterwards (kernel `tcp_pacing_ca_ratio`, 120%).
const GAIN: f64 = 1.2;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct LinuxDefault {
    /// By subflow: the pacing rate averaged over what it was given; `None` before it was first chosen.
    average: Vec<Option<Rate>>,
    /// The subflow whose burst is under way, and the bytes left of it.
    burst: Option<(SubflowId, u64)>,
    /// Why the last decision was taken.
    reason: &'static str,
}

impl LinuxDefault {
    /// A scheduler that has given nothing to anyone.
    pub const fn new() -> Self {
        Self { average: Vec::new(), burst: None, reason: reason::NOTHING_YET }
    }

    /// The seconds until the subflow has sent all it holds.
    fn linger(&self, subflow: &SubflowView) -> f64 {
        let average = self.average.get(subflow.id.index()).copied().flatten();
        match average.or_else(|| pacing_rate(subflow)) {
            None => 0.0,
            Some(rate) if rate.is_zero() => f64::INFINITY,
            Some(rate) => held(subflow) / rate.as_bytes_per_sec(),
        }
    }

    /// Chooses a subflow for a burst of at most `allowed` bytes, and averages its rate over what it holds and the burst.
    fn begin_burst<'a>(&mut self, view: &'a View, allowed: u64) -> Option<&'a SubflowView> {
        let open = view.usable().filter(|subflow| subflow.has_room());
        let chosen = open.min_by(|a, b| self.linger(a).total_cmp(&self.linger(b)))?;
        let burst = BURST.min(allowed);
        if self.average.len() < view.subflows.len() {
            self.average.resize(view.subflows.len(), None);
        }
        if let Some(rate) = pacing_rate(chosen) {
            // The view holds the chosen subflow, so its index is below the length.
            let average = &mut self.average[chosen.id.index()];
            let (before, held, burst) = (average.unwrap_or(rate), held(chosen), burst as f64);
            *average = Some((before * held + rate * burst) * (1.0 / (held + burst).max(1.0)));
        }
        self.burst = Some((chosen.id, burst));
        Some(chosen)
    }
}

impl Default for LinuxDefault {
    fn default() -> Self {
        Self::new()
    }
}

/// What the kernel counts as queued (`sk_wmem_queued`): sent and not acknowledged, and not sent.
fn held(subflow: &SubflowView) -> f64 {
    (subflow.in_flight + subflow.queued).as_f64()
}

/// The controller's pacing rate, or what the kernel would set for its window; `None` before the first RTT sample.
fn pacing_rate(subflow: &SubflowView) -> Option<Rate> {
    subflow.pacing.or_else(|| {
        let gain = if subflow.cwnd < subflow.ssthresh / 2 { SLOW_START_GAIN } else { GAIN };
        Some(subflow.cwnd / subflow.srtt? * gain)
    })
}

impl Scheduler for LinuxDefault {
    fn pick(&mut self, _now: Time, view: &View, queue: &Queue) -> Choice {
        let Some(head) = queue.head(manypath_core::Bytes::MAX) else {
            self.reason = reason::of_wait(queue);
            return Choice::Wait;
        };
        let same = self
            .burst
            .filter(|(_, left)| *left > 0)
            .and_then(|(id, _)| view.usable().find(|subflow| subflow.id == id && subflow.has_room()));
        self.reason = if same.is_some() { "burst goes on" } else { "soonest to empty its queue" };
        let chosen = same.or_else(|| self.begin_burst(view, queue.window_end() - head.start));
        let choice = send_head(queue, chosen);
        match (choice, &mut self.burst) {
            (Choice::Send { range, .. }, Some((_, left))) => *left = left.saturating_sub(range.len()),
            _ => self.reason = reason::of_wait(queue),
        }
        choice
    }

    fn remove_subflow(&mut self, id: SubflowId) {
        if let Some(average) = self.average.get_mut(id.index()) {
            *average = None;
        }
        self.burst.take_if(|(of, _)| *of == id);
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, queue, send, subflow, view};
    use manypath_core::{Bytes, Priority};

    fn paced(id: u32, mbps: f64, held: u64) -> SubflowView {
        let mut subflow = subflow(id, 50, 1_000, 0);
        subflow.pacing = Some(Rate::from_mbps(mbps));
        subflow.queued = Bytes::new(held);
        subflow
    }

    #[test]
    fn the_queue_that_empties_first_sends_whatever_the_rtt() {
        let queue = queue(100, 100);
        // 10 kB at 8 Mbit/s: 10 ms. 5 kB at 2 Mbit/s: 20 ms, on the path of lower RTT.
        let mut paths = view([paced(0, 2.0, 5_000), paced(1, 8.0, 10_000)]);
        paths.subflows[0].srtt = Some(manypath_core::Duration::from_millis(1));
        assert_eq!(LinuxDefault::new().pick(Time::ZERO, &paths, &queue), send(1, 0));
        // In flight counts as well as queued.
        paths.subflows[1].in_flight = Bytes::new(10_001);
        assert_eq!(LinuxDefault::new().pick(Time::ZERO, &paths, &queue), send(0, 0));
    }

    #[test]
    fn a_burst_stays_on_its_subflow() {
        let paths = view([paced(0, 8.0, 0), paced(1, 8.0, 1)]);
        let mut queue = queue(200, 200);
        let mut scheduler = LinuxDefault::new();
        // 65,428 bytes in segments of 1000: 66 of them, with the view as it was.
        for segment in 0..66 {
            let choice = scheduler.pick(Time::ZERO, &paths, &queue);
            assert_eq!(choice, send(0, segment));
            assert_eq!(scheduler.reason(), if segment == 0 { "soonest to empty its queue" } else { "burst goes on" });
            let Choice::Send { range, .. } = choice else { unreachable!() };
            queue.on_assigned(Time::ZERO, range, SubflowId(0));
        }
        let mut filled = paths.clone();
        filled.subflows[0].queued = Bytes::new(66 * MSS);
        assert_eq!(scheduler.pick(Time::ZERO, &filled, &queue), send(1, 66));
        // A burst ends early where room ends.
        let mut full = filled;
        full.subflows[1].queued = full.subflows[1].cwnd;
        assert_eq!(scheduler.pick(Time::ZERO, &full, &queue), send(0, 66));
    }

    #[test]
    fn rates_are_averaged_over_what_was_given() {
        let mut scheduler = LinuxDefault::new();
        let mut paths = view([paced(0, 8.0, 65_428)]);
        scheduler.begin_burst(&paths, u64::MAX);
        assert_eq!(scheduler.average[0], Some(Rate::from_mbps(8.0)));
        // Half held at 8 Mbit/s on average, half given at 4: 6.
        paths.subflows[0].pacing = Some(Rate::from_mbps(4.0));
        scheduler.begin_burst(&paths, u64::MAX);
        assert!((scheduler.average[0].unwrap().as_mbps() - 6.0).abs() < 1e-9);
    }

    #[test]
    fn without_pacing_the_kernel_s_rate_stands_in() {
        // 10 segments of 1030 bytes in 50 ms: 1.648 Mbit/s.
        let mut clocked = subflow(0, 50, 10, 0);
        assert!((pacing_rate(&clocked).unwrap().as_mbps() - 2.0 * 1.648).abs() < 1e-9);
        clocked.ssthresh = clocked.cwnd;
        assert!((pacing_rate(&clocked).unwrap().as_mbps() - 1.2 * 1.648).abs() < 1e-9);
        clocked.srtt = None;
        assert_eq!(pacing_rate(&clocked), None);
        let queue = queue(1, 1);
        let paths = view([paced(1, 8.0, 0), clocked]);
        assert_eq!(LinuxDefault::new().pick(Time::ZERO, &paths, &queue), send(1, 0), "both empty: the first");
    }

    #[test]
    fn backups_wait_for_the_active_to_fail() {
        let mut backup = paced(0, 8.0, 0);
        backup.priority = Priority::Backup;
        let busy = paced(1, 8.0, 50_000);
        assert_eq!(LinuxDefault::new().pick(Time::ZERO, &view([backup, busy]), &queue(1, 1)), send(1, 0));
    }

    #[test]
    fn a_removed_subflow_s_average_and_burst_are_forgotten() {
        let mut scheduler = LinuxDefault::new();
        let queue = queue(100, 100);
        assert_eq!(scheduler.pick(Time::ZERO, &view([paced(0, 8.0, 1), paced(1, 9.0, 0)]), &queue), send(1, 0));
        scheduler.remove_subflow(SubflowId(1));
        assert_eq!((scheduler.average[1], scheduler.burst), (None, None));
    }
}
