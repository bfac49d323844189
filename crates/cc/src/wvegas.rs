//! wVegas, weighted Vegas (Xu, Cao, Dong; draft-xu-mptcp-congestion-control-05, and Linux's `mptcp_wvegas.c`): delay-based
//! and coupled by the number of packets that each subflow may queue, ten in all, shared by rate.
//!
//! With one subflow it is a Vegas that queues ten packets, except that it uses the mean round-trip time of a round, and backs
//! off when the queueing delay has doubled. The kernel divides integers; here `diff` is real and only windows are whole.
//!
//! That back-off compares a round with the emptiest since the last one, however little was queued then: without noise in
//! round-trip times it comes long before the link is full, and utilisation stays low, as MPCC and MP-OL also found.

use manypath_core::{Bytes, SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;
use crate::event::{Acked, Event};
use crate::round::Rounds;

/// Packets that all subflows together may queue (draft s3.2 `total_alpha`).
const TOTAL_ALPHA: f64 = 10.0;
/// Packets queued at which slow start ends (draft s3.2 `gamma`).
const GAMMA: f64 = 1.0;
/// Packets that a subflow may queue at least (Linux).
const MIN_ALPHA: f64 = 2.0;
/// The smallest window by delay, packets (Linux).
const MIN_WINDOW: f64 = 2.0;
/// Shorter queueing delays come of rounding a mean of round-trip times, seconds: engines' clocks count nanoseconds. (Linux'
/// counts microseconds and cannot see them.)
const MIN_QUEUE: f64 = 1e-9;
/// A round with fewer samples is Reno's (Linux: more than two).
const MIN_SAMPLES: f64 = 3.0;

/// What wVegas knows of one subflow.
#[derive(Clone, Debug)]
struct Member {
    /// Smallest round-trip time, seconds.
    base_rtt: f64,
    /// Samples of the round.
    sum: f64,
    samples: f64,
    rounds: Rounds,
    /// Packets that this subflow may queue (spec: `alpha_r`).
    alpha: f64,
    /// Rate when it last had more than its share queued, packets per second; 0 before (Linux: `instant_rate`).
    rate: f64,
    /// Smallest queueing delay since the last back-off, seconds; 0 for none (spec: `queue_delay`).
    queue_delay: f64,
    /// Whether the acknowledgement at hand grows the window as Reno's would.
    reno: bool,
    /// Whether it has moved the window by delay: after a back-off below the threshold it is not slow start's, too (Linux).
    avoided: bool,
    /// Whether a recovery is under way, or has ended and nothing was heard since.
    resting: bool,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            base_rtt: f64::INFINITY,
            sum: 0.0,
            samples: 0.0,
            rounds: Rounds::default(),
            alpha: MIN_ALPHA,
            rate: 0.0,
            queue_delay: 0.0,
            reno: false,
            avoided: false,
            resting: false,
        }
    }
}

impl Member {
    /// Linux: Vegas rests outside of the open state, and the first round after it begins when it ends.
    fn rest(&mut self, delivered: Bytes) {
        self.resting = true;
        (self.sum, self.samples) = (0.0, 0.0);
        self.rounds = self.rounds.restarted_at(delivered);
    }

    /// Linux `wvegas_enable`: a recovery has emptied queues and moved rates, so that of what was learned only the base
    /// round-trip time holds.
    fn wake(&mut self) {
        self.resting = false;
        (self.alpha, self.rate, self.queue_delay) = (MIN_ALPHA, 0.0, 0.0);
    }
}

/// wVegas' rules.
#[derive(Clone, Debug, Default)]
pub struct Wvegas {
    /// By subflow id.
    members: Vec<Option<Member>>,
}

impl Wvegas {
    /// Draft s3.2, once a round trip.
    fn on_round(&mut self, id: SubflowId, windows: &mut Windows) {
        let Some(Some(member)) = self.members.get_mut(id.index()) else { return };
        let rtt = member.sum / member.samples;
        let enough = member.samples >= MIN_SAMPLES;
        (member.sum, member.samples) = (0.0, 0.0);
        member.reno = !enough;
        let Some(own) = windows.get_mut(id) else { return };
        if !enough {
            return;
        }
        let base = member.base_rtt;
        let diff = own.cwnd * (rtt - base) / rtt;
        if own.in_slow_start() {
            if diff > GAMMA {
                own.cwnd = own.cwnd.min(libm::floor(own.cwnd * base / rtt) + 1.0).max(MIN_WINDOW);
                own.ssthresh = own.ssthresh.min(own.cwnd - 1.0);
            }
        } else {
            self.avoid(id, rtt, diff, windows);
        }
        if let Some(own) = windows.get_mut(id) {
            // Linux: `tcp_current_ssthresh`.
            own.ssthresh = own.ssthresh.max(0.75 * own.cwnd);
        }
    }

    fn avoid(&mut self, id: SubflowId, rtt: f64, diff: f64, windows: &mut Windows) {
        let Some(own) = windows.get(id) else { return };
        let rate = own.cwnd / rtt;
        let held = |id: SubflowId| self.members.get(id.index()).and_then(Option::as_ref);
        if held(id).is_some_and(|member| diff >= member.alpha) {
            // Draft s3.2: the share of the connection's queue follows the share of its rate.
            let others = windows.counting().filter(|(other, _)| *other != id);
            let others: f64 = others.filter_map(|(other, _)| Some(held(other)?.rate)).sum();
            if let Some(Some(member)) = self.members.get_mut(id.index()) {
                member.rate = rate;
                // The share first: a subflow that has all of the rate has exactly one.
                member.alpha = libm::floor(TOTAL_ALPHA * (rate / (rate + others))).max(MIN_ALPHA);
            }
        }
        let (Some(Some(member)), Some(own)) = (self.members.get_mut(id.index()), windows.get_mut(id)) else { return };
        if diff > member.alpha {
            own.cwnd -= 1.0;
            own.ssthresh = own.ssthresh.min(own.cwnd - 1.0);
        } else if diff < member.alpha {
            own.cwnd += 1.0;
        }
        // Draft s3.3: back off once the queueing delay has doubled, to see the true base RTT. A queue of zero is none: the
        // kernel would then halve the window.
        let queue = rtt - member.base_rtt;
        let queue = if queue < MIN_QUEUE { 0.0 } else { queue };
        if member.queue_delay <= 0.0 || queue < member.queue_delay {
            member.queue_delay = queue;
        }
        if queue > 0.0 && queue >= 2.0 * member.queue_delay {
            own.cwnd = own.cwnd * member.base_rtt / (2.0 * rtt);
            member.queue_delay = 0.0;
        }
        own.cwnd = own.cwnd.max(MIN_WINDOW);
        member.avoided = true;
    }

    fn on_ack(&mut self, id: SubflowId, acked: &Acked, windows: &mut Windows, view: &View) {
        let Some(Some(member)) = self.members.get_mut(id.index()) else { return };
        (member.reno, member.avoided) = (false, false);
        let rtt = acked.rtt.as_secs_f64().max(1e-6);
        member.base_rtt = member.base_rtt.min(rtt);
        let delivered = view.get(id).map_or(acked.delivered_at_send + acked.bytes, |subflow| subflow.delivered);
        if acked.in_recovery {
            member.rest(delivered);
            return;
        }
        if member.resting {
            member.wake();
        }
        member.sum += rtt;
        member.samples += 1.0;
        if !member.rounds.on_ack(acked, delivered) {
            return;
        }
        if acked.app_limited {
            // What was measured while nothing queued is no part of the next round's mean.
            (member.sum, member.samples) = (0.0, 0.0);
        } else {
            self.on_round(id, windows);
        }
    }
}

impl Law for Wvegas {
    fn increase(&mut self, id: SubflowId, own: &Window, _windows: &Windows) -> f64 {
        // The window moves once a round; otherwise only in rounds with too few samples, as Reno's.
        let reno = self.members.get(id.index()).and_then(Option::as_ref).is_some_and(|member| member.reno);
        if reno { 1.0 / own.cwnd } else { 0.0 }
    }

    fn slow_start(&mut self, id: SubflowId, _own: &Window, _windows: &Windows) -> f64 {
        let avoided = self.members.get(id.index()).and_then(Option::as_ref).is_some_and(|member| member.avoided);
        if avoided { 0.0 } else { 1.0 }
    }

    fn joined(&mut self, id: SubflowId, _windows: &mut Windows) {
        if self.members.len() <= id.index() {
            self.members.resize_with(id.index() + 1, || None);
        }
        self.members[id.index()] = Some(Member::default());
    }

    fn left(&mut self, id: SubflowId, _windows: &mut Windows) {
        if let Some(slot) = self.members.get_mut(id.index()) {
            *slot = None;
        }
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, windows: &mut Windows, view: &View) {
        let Some(Some(member)) = self.members.get_mut(id.index()) else { return };
        let delivered = view.get(id).map_or(Bytes::ZERO, |subflow| subflow.delivered);
        match event {
            Event::Acked(acked) => self.on_ack(id, acked, windows, view),
            Event::Congestion { .. } | Event::Ecn { .. } => member.rest(delivered),
            Event::Timeout { .. } => {
                member.rest(delivered);
                // Linux: without waiting for the recovery's end.
                member.rate = 0.0;
            }
            _ => {}
        }
    }

    fn inspect(&self, id: SubflowId, _windows: &Windows, out: &mut dyn Probe) {
        if let Some(Some(member)) = self.members.get(id.index()) {
            out.value("alpha", member.alpha);
            out.value("base_rtt_s", member.base_rtt);
            out.value("queue_delay_s", member.queue_delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, SubflowView};

    use super::*;
    use crate::aimd::Aimd;
    use crate::aimd::tests::{close, windows};
    use crate::controller::{CongestionControl, SubflowInit};

    /// wVegas with one member per window, each with this base RTT, at the end of a round of RTT `rtt` on subflow 0.
    fn round(of: &[(f64, f64)], slow_start: bool, base_rtt: f64, rtt: f64, rates: &[f64]) -> (Wvegas, Windows) {
        let mut windows = windows(of);
        let mut wvegas = Wvegas::default();
        for (id, rate) in (0..).zip(rates) {
            wvegas.joined(SubflowId(id), &mut windows);
            let member = wvegas.members[id as usize].as_mut().unwrap();
            (member.base_rtt, member.rate) = (base_rtt, *rate);
            (member.sum, member.samples) = (5.0 * rtt, 5.0);
        }
        if slow_start {
            windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
        }
        wvegas.on_round(SubflowId(0), &mut windows);
        (wvegas, windows)
    }

    fn cwnd(windows: &Windows) -> f64 {
        windows.get(SubflowId(0)).unwrap().cwnd
    }

    #[test]
    fn below_its_share_the_window_grows_by_one() {
        // diff = 20 * 5/105 = 0.95 < 2.
        let (_, windows) = round(&[(20.0, 0.1)], false, 0.1, 0.105, &[0.0]);
        close(cwnd(&windows), 21.0);
    }

    #[test]
    fn above_its_share_it_shrinks_by_one_and_shares_follow_rates() {
        // diff = 40 * 20/120 = 6.67 >= 2: rate = 40/0.12 = 333.3; others 1000: alpha = floor(10 * 0.25) = 2; 6.67 > 2.
        let (wvegas, windows) = round(&[(40.0, 0.1), (10.0, 0.1)], false, 0.1, 0.12, &[0.0, 1000.0]);
        close(wvegas.members[0].as_ref().unwrap().alpha, 2.0);
        close(cwnd(&windows), 39.0);
        // Others 111.1: alpha = floor(10 * 0.75) = 7; 6.67 < 7.
        let (wvegas, windows) = round(&[(40.0, 0.1), (10.0, 0.1)], false, 0.1, 0.12, &[0.0, 111.0]);
        close(wvegas.members[0].as_ref().unwrap().alpha, 7.0);
        close(cwnd(&windows), 41.0);
    }

    #[test]
    fn slow_start_ends_when_one_packet_is_queued() {
        // diff = 40 * 20/120 = 6.67 > 1: window floor(40 * 100/120) + 1 = 34; ssthresh 33, but at least 3/4 of 34 = 25.5.
        let (_, windows) = round(&[(40.0, 0.1)], true, 0.1, 0.12, &[0.0]);
        close(cwnd(&windows), 34.0);
        close(windows.get(SubflowId(0)).unwrap().ssthresh, 33.0);
        // diff = 3 * 90/100 = 2.7: floor(3 * 10/100) + 1 = 1, but two packets at least.
        close(cwnd(&round(&[(3.0, 0.1)], true, 0.01, 0.1, &[0.0]).1), 2.0);
        // diff = 40 * 2/102 = 0.78: goes on.
        let (_, windows) = round(&[(40.0, 0.1)], true, 0.1, 0.102, &[0.0]);
        assert!(windows.get(SubflowId(0)).unwrap().in_slow_start());
    }

    #[test]
    fn a_window_that_shrinks_is_not_in_slow_start_and_two_packets_at_least() {
        let mut windows = windows(&[(40.0, 0.1), (10.0, 0.1)]);
        windows.get_mut(SubflowId(0)).unwrap().ssthresh = 39.5;
        let mut wvegas = Wvegas::default();
        wvegas.joined(SubflowId(0), &mut windows);
        wvegas.joined(SubflowId(1), &mut windows);
        wvegas.members[0] = Some(Member { base_rtt: 0.1, sum: 0.6, samples: 5.0, ..Member::default() });
        wvegas.members[1] = Some(Member { rate: 1000.0, ..Member::default() });
        wvegas.on_round(SubflowId(0), &mut windows);
        close(cwnd(&windows), 39.0);
        close(windows.get(SubflowId(0)).unwrap().ssthresh, 38.0);
        // diff = 2.5 * 90/100 = 2.25 > 2.
        close(cwnd(&round(&[(2.5, 0.1), (10.0, 0.1)], false, 0.01, 0.1, &[0.0, 1000.0]).1), 2.0);
    }

    #[test]
    fn a_doubled_queueing_delay_backs_off() {
        let (mut wvegas, mut windows) = round(&[(20.0, 0.1)], false, 0.1, 0.105, &[0.0]);
        let member = wvegas.members[0].as_mut().unwrap();
        close(member.queue_delay, 0.005);
        (member.sum, member.samples) = (0.3303, 3.0);
        wvegas.on_round(SubflowId(0), &mut windows);
        // rtt 0.1101: diff = 21 * 101/1101 = 1.926 < 2: 22; queue 0.0101 >= 2 * 0.005: 22 * 0.1/0.2202 = 9.99.
        close(cwnd(&windows), 22.0 * 0.1 / 0.2202);
        close(wvegas.members[0].as_ref().unwrap().queue_delay, 0.0);
    }

    #[test]
    fn a_back_off_is_not_undone_by_slow_start() {
        let mut wvegas = Aimd::new(Wvegas::default(), false);
        let init = SubflowInit::new(Bytes::new(1000), Bytes::new(20_000));
        wvegas.add_subflow(Time::ZERO, SubflowId(0), init);
        wvegas.windows_mut().iter_mut().for_each(|window| window.ssthresh = 20.0);
        let mut view = View::default();
        view.subflows.push(SubflowView::new(SubflowId(0), Bytes::new(1000)));
        let mut hear = |round: u64, millis: u64| {
            view.subflows[0].delivered += Bytes::new(1000);
            let Event::Acked(acked) = crate::aimd::tests::acked(Duration::from_millis(millis)) else { unreachable!() };
            let acked = Acked { delivered_at_send: Bytes::new(round * 1000), ..acked };
            wvegas.on_event(Time::ZERO, SubflowId(0), &Event::Acked(acked), &view);
            wvegas.limits(SubflowId(0)).cwnd
        };
        // The first round has one sample and is Reno's: 20.05. Then round trips of 100, 102 and 104 ms, a queue of 2 ms: 21.05. Then of
        // 105 ms, a queue of more than twice that.
        assert_eq!(hear(0, 100), Bytes::new(20_050));
        for millis in [100, 102] {
            hear(0, millis);
        }
        assert_eq!(hear(1, 104), Bytes::new(21_050));
        for _ in 0..2 {
            hear(1, 105);
        }
        // diff = 21.05 * 5/105 = 1.0 < 2: 22.05; 22.05 * 100/210 = 10.5, below the threshold of 20.
        assert_eq!(hear(4, 105), Bytes::new(10_500));
        // The next is slow start's.
        assert_eq!(hear(4, 105), Bytes::new(11_500));
    }

    #[test]
    fn an_empty_queue_does_not_back_off() {
        let (_, windows) = round(&[(20.0, 0.1)], false, 0.1, 0.1, &[0.0]);
        close(cwnd(&windows), 21.0);
    }

    #[test]
    fn rounding_is_no_queue() {
        // The mean of 24 times this is a little more than this.
        let base = 0.03112;
        let mean = (0..24).map(|_| base).sum::<f64>() / 24.0;
        assert!(mean > base);
        let (mut wvegas, mut windows) = round(&[(20.0, base)], false, base, mean, &[0.0]);
        close(wvegas.members[0].as_ref().unwrap().queue_delay, 0.0);
        let member = wvegas.members[0].as_mut().unwrap();
        (member.sum, member.samples) = (3.0 * 0.0312, 3.0);
        wvegas.on_round(SubflowId(0), &mut windows);
        // The first queue there is: 21 packets and one more, no back-off.
        close(cwnd(&windows), 22.0);
    }

    #[test]
    fn too_few_samples_are_reno_s() {
        let mut windows = windows(&[(20.0, 0.1)]);
        let mut wvegas = Wvegas::default();
        wvegas.joined(SubflowId(0), &mut windows);
        let member = wvegas.members[0].as_mut().unwrap();
        (member.base_rtt, member.sum, member.samples) = (0.1, 0.2, 2.0);
        wvegas.on_round(SubflowId(0), &mut windows);
        let own = windows.get(SubflowId(0)).unwrap().clone();
        close(wvegas.increase(SubflowId(0), &own, &windows), 0.05);
    }

    /// wVegas with one subflow of 20 packets that has learned a share and a queueing delay, and has ended a round.
    fn learned() -> (Wvegas, Windows, View) {
        let (mut wvegas, windows) = round(&[(20.0, 0.1)], false, 0.1, 0.105, &[0.0]);
        let member = wvegas.members[0].as_mut().unwrap();
        (member.alpha, member.rate, member.queue_delay) = (7.0, 200.0, 0.005);
        let mut view = View::default();
        view.subflows.push(SubflowView::new(SubflowId(0), Bytes::new(1000)));
        (wvegas, windows, view)
    }

    /// An acknowledgement of a packet that left when so many packets were delivered, after which one more is.
    fn acknowledge(wvegas: &mut Wvegas, windows: &mut Windows, view: &mut View, sent: u64, in_recovery: bool) {
        let Event::Acked(acked) = crate::aimd::tests::acked(Duration::from_millis(105)) else { unreachable!() };
        view.subflows[0].delivered += Bytes::new(1000);
        let event = Event::Acked(Acked { delivered_at_send: Bytes::new(sent * 1000), in_recovery, ..acked });
        wvegas.observe(Time::ZERO, SubflowId(0), &event, windows, view);
    }

    #[test]
    fn a_recovery_makes_it_forget_its_share_and_its_queue() {
        let signs = [
            Event::Congestion { sent_at: Time::ZERO },
            Event::Ecn { sent_at: Time::ZERO },
            Event::Timeout { repeated: false },
        ];
        for sign in signs {
            let (mut wvegas, mut windows, mut view) = learned();
            let learned = |wvegas: &Wvegas| {
                let member = wvegas.members[0].as_ref().unwrap();
                (member.alpha, member.rate, member.queue_delay)
            };
            wvegas.observe(Time::ZERO, SubflowId(0), &sign, &mut windows, &view);
            // In the recovery others still see the rate, except after a timeout.
            acknowledge(&mut wvegas, &mut windows, &mut view, 0, true);
            let rate = if matches!(sign, Event::Timeout { .. }) { 0.0 } else { 200.0 };
            assert_eq!(learned(&wvegas), (7.0, rate, 0.005));
            acknowledge(&mut wvegas, &mut windows, &mut view, 0, false);
            assert_eq!(learned(&wvegas), (MIN_ALPHA, 0.0, 0.0));
            close(wvegas.members[0].as_ref().unwrap().base_rtt, 0.1);
        }
    }

    #[test]
    fn a_round_has_no_samples_of_an_earlier_one_that_the_application_limited() {
        let (mut wvegas, mut windows, mut view) = learned();
        let Event::Acked(acked) = crate::aimd::tests::acked(Duration::from_millis(105)) else { unreachable!() };
        view.subflows[0].delivered += Bytes::new(1000);
        let event = Event::Acked(Acked { delivered_at_send: Bytes::new(1000), app_limited: true, ..acked });
        wvegas.observe(Time::ZERO, SubflowId(0), &event, &mut windows, &view);
        close(wvegas.members[0].as_ref().unwrap().samples, 0.0);
        acknowledge(&mut wvegas, &mut windows, &mut view, 0, false);
        close(wvegas.members[0].as_ref().unwrap().samples, 1.0);
    }

    #[test]
    fn the_first_round_after_a_recovery_begins_at_its_end() {
        let (mut wvegas, mut windows, mut view) = learned();
        wvegas.observe(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &mut windows, &view);
        acknowledge(&mut wvegas, &mut windows, &mut view, 0, true);
        acknowledge(&mut wvegas, &mut windows, &mut view, 0, true);
        // Packets that left in the recovery: samples of the round, which they do not end.
        for _ in 0..3 {
            acknowledge(&mut wvegas, &mut windows, &mut view, 1, false);
        }
        close(wvegas.members[0].as_ref().unwrap().samples, 3.0);
        close(cwnd(&windows), 21.0);
        // diff = 21 * 5/105 = 1 < 2.
        acknowledge(&mut wvegas, &mut windows, &mut view, 2, false);
        close(cwnd(&windows), 22.0);
    }
}
