//! The frame of coupled window-based controllers: slow start, floors, recovery and per-subflow state live here, once; a
//! [`Law`] supplies how much a window grows and shrinks.
//!
//! Windows are kept in packets and round-trip times in seconds, as the papers print them, so that growth per packet
//! acknowledged is a pure number. Papers assume equal packets on all subflows; where they differ, windows are coupled in
//! packets.
//!
//! A subflow *counts* in the sums over subflows once it has measured a round-trip time and until it times out: before that
//! its rate is unknown, after that it has none. Nor does it count while it is idle ([`manypath_core::SubflowView::is_idle`]): a backup that
//! carried the connection through an outage would otherwise hold down the other subflow for good by a window that nobody uses.
//! Coupled laws with one counting subflow are NewReno, as [`crate::reno`].

use core::fmt::Debug;

use manypath_core::{Bytes, SubflowId, Time, View};

use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::{Acked, Event};
use crate::hystart::{Growth, HyStart};
use crate::penalty::penalised;

/// The smallest window after a loss of a lone subflow, in packets (RFC 5681 eq. 4).
const MIN_WINDOW_ALONE: f64 = 2.0;
/// The same where there are several: together they still have what one flow would keep (RFC 6356 s3, as `lia`, `olia` and
/// `balia` drafts state it).
const MIN_WINDOW_SEVERAL: f64 = 1.0;
/// Round-trip times below the resolution of engines' clocks are taken for this, seconds.
const MIN_RTT: f64 = 1e-6;

/// One subflow's window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Bytes per packet.
    pub mss: f64,
    /// Congestion window, packets.
    pub cwnd: f64,
    /// Slow-start threshold, packets; infinite before the first loss, unless the subflow began with one.
    pub ssthresh: f64,
    /// Smoothed round-trip time, seconds; zero before the first sample.
    pub rtt: f64,
    /// Whether it has timed out and not been heard since.
    pub failed: bool,
    /// Whether it sends nothing.
    pub idle: bool,
    /// HyStart++ of the first slow start, where it is wanted.
    pub hystart: Option<HyStart>,
}

impl Window {
    /// The window of a subflow about which nothing is known.
    pub(crate) fn new(mss: f64, cwnd: f64, hystart: Option<HyStart>) -> Self {
        Self { mss, cwnd, ssthresh: f64::INFINITY, rtt: 0.0, failed: false, idle: false, hystart }
    }

    /// Whether the subflow takes part in sums over subflows.
    pub fn counts(&self) -> bool {
        self.rtt > 0.0 && !self.failed && !self.idle
    }

    /// Rate in packets per second; only of a subflow that [counts](Self::counts).
    pub fn rate(&self) -> f64 {
        self.cwnd / self.rtt
    }

    /// Whether the next acknowledgement grows the window by slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// The windows of a connection's subflows, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows(Vec<Option<Window>>);

impl Windows {
    /// A subflow's window.
    pub fn get(&self, id: SubflowId) -> Option<&Window> {
        self.0.get(id.index())?.as_ref()
    }

    /// A subflow's window, to change.
    pub fn get_mut(&mut self, id: SubflowId) -> Option<&mut Window> {
        self.0.get_mut(id.index())?.as_mut()
    }

    /// All windows, in the order of ids.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Window> {
        self.0.iter_mut().flatten()
    }

    /// All windows with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (SubflowId, &Window)> {
        // Ids are u32, so indices fit.
        #[allow(clippy::cast_possible_truncation)]
        self.0.iter().enumerate().filter_map(|(index, slot)| Some((SubflowId(index as u32), slot.as_ref()?)))
    }

    /// The windows that count in sums, with their ids.
    pub fn counting(&self) -> impl Iterator<Item = (SubflowId, &Window)> {
        self.iter().filter(|(_, window)| window.counts())
    }

    /// How many subflows count.
    pub fn count(&self) -> usize {
        self.counting().count()
    }

    /// Sum of the counting subflows' rates, packets per second.
    pub fn total_rate(&self) -> f64 {
        self.counting().map(|(_, window)| window.rate()).sum()
    }

    /// Sum of the counting subflows' windows, packets.
    pub fn total_window(&self) -> f64 {
        self.counting().map(|(_, window)| window.cwnd).sum()
    }

    /// The smallest window after a loss, packets.
    pub fn floor(&self) -> f64 {
        if self.counting().nth(1).is_some() { MIN_WINDOW_SEVERAL } else { MIN_WINDOW_ALONE }
    }

    /// Notes which of the subflows other than `own`, of which something is heard, are idle.
    pub(crate) fn note_idle(&mut self, now: Time, own: SubflowId, view: &View) {
        for (window, subflow) in self.0.iter_mut().zip(&view.subflows) {
            if let Some(window) = window {
                window.idle = subflow.id != own && subflow.is_idle(now);
            }
        }
    }

    pub(crate) fn insert(&mut self, id: SubflowId, window: Window) {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        self.0[id.index()] = Some(window);
    }

    pub(crate) fn remove(&mut self, id: SubflowId) -> bool {
        self.0.get_mut(id.index()).is_some_and(|slot| slot.take().is_some())
    }
}

/// How a coupled algorithm grows and shrinks windows. `own` is the window of subflow `id`, which counts.
pub trait Law: Debug + Send {
    /// Whether the law [observes](Self::observe) packets that leave; the frame does nothing with them.
    const HEARS_DEPARTURES: bool = false;
    /// The smallest slow-start threshold after a loss, packets. Above one, a subflow that a loss left a single packet gets
    /// back to it in slow start.
    const LEAST_SSTHRESH: f64 = MIN_WINDOW_SEVERAL;

    /// Growth in congestion avoidance: packets per packet acknowledged. May be negative.
    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64;

    /// What a loss takes from the window, packets.
    fn decrease(&mut self, _id: SubflowId, own: &Window, _windows: &Windows) -> f64 {
        own.cwnd / 2.0
    }

    /// Growth in slow start: packets per packet acknowledged.
    fn slow_start(&mut self, _id: SubflowId, _own: &Window, _windows: &Windows) -> f64 {
        1.0
    }

    /// A subflow has joined; its window is in place.
    fn joined(&mut self, _id: SubflowId, _windows: &mut Windows) {}

    /// A subflow has left; its window is gone.
    fn left(&mut self, _id: SubflowId, _windows: &mut Windows) {}

    /// An event of subflow `id`, before the frame acts on it; round-trip time and failure are already taken from it.
    fn observe(&mut self, _now: Time, _id: SubflowId, _event: &Event, _windows: &mut Windows, _view: &View) {}

    /// Reports the law's own values for a subflow.
    fn inspect(&self, _id: SubflowId, _windows: &Windows, _out: &mut dyn Probe) {}
}

/// A coupled window-based controller: the frame with its law.
#[derive(Clone, Debug)]
pub struct Aimd<L> {
    law: L,
    windows: Windows,
    /// Whether subflows leave their first slow start by HyStart++.
    hystart: bool,
}

impl<L: Law> Aimd<L> {
    /// A controller without subflows.
    pub fn new(law: L, hystart: bool) -> Self {
        Self { law, windows: Windows::default(), hystart }
    }

    /// The windows, to set a state that another implementation is compared from.
    pub fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    fn on_ack(&mut self, id: SubflowId, acked: &Acked, view: &View) {
        let Some(own) = self.windows.get_mut(id) else { return };
        let packets = acked.bytes.as_f64() / own.mss;
        let mut share = 1.0;
        if own.in_slow_start()
            && let Some(hystart) = &mut own.hystart
        {
            let delivered = view.get(id).map_or(acked.delivered_at_send + acked.bytes, |subflow| subflow.delivered);
            match hystart.on_ack(acked, delivered) {
                Growth::Grow(of) => share = of,
                Growth::Exit => {
                    own.ssthresh = own.cwnd;
                    own.hystart = None;
                }
            }
        }
        let Some(own) = self.windows.get(id) else { return };
        let per_packet = if own.in_slow_start() {
            share * self.law.slow_start(id, own, &self.windows)
        } else {
            self.law.increase(id, own, &self.windows)
        };
        if let Some(own) = self.windows.get_mut(id) {
            // The window never falls below one packet by growth (OLIA's may be negative).
            own.cwnd = (own.cwnd + per_packet * packets).max(1.0);
        }
    }

    fn shrink(&mut self, id: SubflowId, decrease: f64) {
        let floor = self.windows.floor();
        if let Some(own) = self.windows.get_mut(id) {
            own.cwnd = (own.cwnd - decrease).max(floor);
            own.ssthresh = own.cwnd.max(L::LEAST_SSTHRESH);
            // RFC 9406 s4.2: only for the first slow start.
            own.hystart = None;
        }
    }

    fn on_congestion(&mut self, id: SubflowId) {
        let Some(own) = self.windows.get(id) else { return };
        // Before any acknowledgement there is nothing to couple: halve.
        let decrease = if own.counts() { self.law.decrease(id, own, &self.windows) } else { own.cwnd / 2.0 };
        self.shrink(id, decrease);
    }

    fn on_timeout(&mut self, id: SubflowId, repeated: bool) {
        let floor = self.windows.floor();
        if let Some(own) = self.windows.get_mut(id) {
            // RFC 5681 s3.1, RFC 6356 s3: as a single flow.
            if !repeated {
                own.ssthresh = (own.cwnd / 2.0).max(floor).max(L::LEAST_SSTHRESH);
            }
            own.cwnd = 1.0;
            own.failed = true;
            own.hystart = None;
        }
    }

    /// Takes what an event says about the subflow's path.
    fn measure(&mut self, id: SubflowId, event: &Event, view: &View) {
        let Some(own) = self.windows.get_mut(id) else { return };
        match event {
            Event::Acked(acked) => {
                let rtt = view.get(id).and_then(|subflow| subflow.srtt).unwrap_or(acked.rtt);
                own.rtt = rtt.as_secs_f64().max(MIN_RTT);
                own.failed = false;
            }
            Event::Restored => own.failed = false,
            _ => {}
        }
    }
}

impl<L: Law> CongestionControl for Aimd<L> {
    fn add_subflow(&mut self, _now: Time, id: SubflowId, init: SubflowInit) {
        let mss = init.mss.as_f64().max(1.0);
        let cwnd = (init.initial_window.as_f64() / mss).max(1.0);
        let ssthresh = init.threshold() / mss;
        let hystart = self.hystart.then(HyStart::default);
        self.windows.insert(id, Window { ssthresh, ..Window::new(mss, cwnd, hystart) });
        self.law.joined(id, &mut self.windows);
    }

    fn remove_subflow(&mut self, _now: Time, id: SubflowId) {
        if self.windows.remove(id) {
            self.law.left(id, &mut self.windows);
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        if self.windows.get(id).is_none() {
            return;
        }
        self.windows.note_idle(now, id, view);
        self.measure(id, event, view);
        self.law.observe(now, id, event, &mut self.windows, view);
        match event {
            Event::Acked(acked) if !acked.in_recovery && !acked.app_limited => self.on_ack(id, acked, view),
            Event::Congestion { .. } | Event::Ecn { .. } => self.on_congestion(id),
            Event::Penalised => {
                if let Some(own) = self.windows.get_mut(id) {
                    (own.cwnd, own.ssthresh) = penalised(own.cwnd, own.ssthresh, 1.0);
                }
            }
            Event::Timeout { repeated } => self.on_timeout(id, *repeated),
            _ => {}
        }
    }

    fn hears_departures(&self) -> bool {
        L::HEARS_DEPARTURES
    }

    fn answers_marks(&self) -> bool {
        true
    }

    fn limits(&self, id: SubflowId) -> Limits {
        self.windows.get(id).map_or(Limits::NONE, |own| Limits {
            cwnd: Bytes::from_f64(own.cwnd * own.mss),
            pacing: None,
            ssthresh: own.ssthresh.is_finite().then(|| Bytes::from_f64(own.ssthresh * own.mss)),
        })
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if let Some(own) = self.windows.get(id) {
            out.value("cwnd_bytes", own.cwnd * own.mss);
            out.value("ssthresh_bytes", own.ssthresh * own.mss);
            self.law.inspect(id, &self.windows, out);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use manypath_core::{Duration, PacketNumber, Rate, SubflowView};

    use super::*;

    /// Windows `(cwnd, rtt in seconds)` in congestion avoidance, for tests of laws.
    pub(crate) fn windows(of: &[(f64, f64)]) -> Windows {
        let window = |&(cwnd, rtt): &(f64, f64)| Window { ssthresh: 1.0, rtt, ..Window::new(1000.0, cwnd, None) };
        Windows(of.iter().map(|pair| Some(window(pair))).collect())
    }

    /// A law's growth on each subflow.
    pub(crate) fn increases(law: &mut impl Law, windows: &Windows) -> Vec<f64> {
        windows.iter().map(|(id, own)| law.increase(id, own, windows)).collect()
    }

    /// A law's decrease on each subflow.
    pub(crate) fn decreases(law: &mut impl Law, windows: &Windows) -> Vec<f64> {
        windows.iter().map(|(id, own)| law.decrease(id, own, windows)).collect()
    }

    /// Fails unless the numbers agree to twelve digits.
    pub(crate) fn close(left: f64, right: f64) {
        assert!((left - right).abs() <= 1e-12 * right.abs().max(1.0), "{left} is not {right}");
    }

    /// An acknowledgement of one packet of 1000 bytes that measured `rtt`.
    pub(crate) fn acked(rtt: Duration) -> Event {
        Event::Acked(crate::event::Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(1000),
            sent_at: Time::ZERO,
            rtt,
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: false,
            app_limited: false,
        })
    }

    #[derive(Clone, Debug)]
    struct Plain;

    impl Law for Plain {
        fn increase(&mut self, _id: SubflowId, own: &Window, _windows: &Windows) -> f64 {
            1.0 / own.cwnd
        }
    }

    fn frame(subflows: u32) -> (Aimd<Plain>, View) {
        let mut frame = Aimd::new(Plain, false);
        let mut view = View::default();
        for id in 0..subflows {
            let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
            frame.add_subflow(Time::ZERO, SubflowId(id), init);
            view.subflows.push(SubflowView::new(SubflowId(id), Bytes::new(1000)));
        }
        (frame, view)
    }

    fn cwnd(frame: &Aimd<Plain>, id: u32) -> u64 {
        frame.limits(SubflowId(id)).cwnd.get()
    }

    #[test]
    fn slow_start_then_congestion_avoidance() {
        let (mut frame, view) = frame(1);
        let ack = acked(Duration::from_millis(10));
        frame.on_event(Time::ZERO, SubflowId(0), &ack, &view);
        assert_eq!(cwnd(&frame, 0), 11_000);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &view);
        assert_eq!(cwnd(&frame, 0), 5_500);
        frame.on_event(Time::ZERO, SubflowId(0), &ack, &view);
        // 5.5 + 1/5.5 = 5.681818... packets
        assert_eq!(cwnd(&frame, 0), 5_682);
    }

    #[test]
    fn the_floor_is_two_packets_alone_and_one_among_several() {
        let (mut frame, view) = frame(2);
        let ack = acked(Duration::from_millis(10));
        frame.on_event(Time::ZERO, SubflowId(0), &ack, &view);
        for _ in 0..10 {
            frame.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &view);
        }
        assert_eq!(cwnd(&frame, 0), 2_000);
        frame.on_event(Time::ZERO, SubflowId(1), &ack, &view);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &view);
        assert_eq!(cwnd(&frame, 0), 1_000);
    }

    #[test]
    fn a_penalty_halves_the_window_and_the_threshold_only_after_slow_start() {
        let (mut frame, view) = frame(1);
        frame.on_event(Time::ZERO, SubflowId(0), &acked(Duration::from_millis(10)), &view);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Penalised, &view);
        assert_eq!((cwnd(&frame, 0), frame.limits(SubflowId(0)).ssthresh), (5_500, None));
        // 2750 for both by the loss, and a half of that, but the threshold stays at two packets.
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &view);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Penalised, &view);
        assert_eq!((cwnd(&frame, 0), frame.limits(SubflowId(0)).ssthresh), (1_375, Some(Bytes::new(2_000))));
    }

    #[test]
    fn a_timed_out_subflow_does_not_count_until_it_is_heard() {
        let (mut frame, view) = frame(2);
        let ack = acked(Duration::from_millis(10));
        for id in 0..2 {
            frame.on_event(Time::ZERO, SubflowId(id), &ack, &view);
        }
        assert_eq!(frame.windows.count(), 2);
        frame.on_event(Time::ZERO, SubflowId(1), &Event::Timeout { repeated: false }, &view);
        assert_eq!(frame.windows.count(), 1);
        assert_eq!(cwnd(&frame, 1), 1_000);
        assert_eq!(frame.limits(SubflowId(1)).ssthresh, Some(Bytes::new(5_500)));
        frame.on_event(Time::ZERO, SubflowId(1), &Event::Restored, &view);
        assert_eq!(frame.windows.count(), 2);
    }

    /// A law whose windows fall, and which hears who leaves.
    #[derive(Clone, Debug, Default)]
    struct Falling(Vec<SubflowId>);

    impl Law for Falling {
        fn increase(&mut self, _id: SubflowId, _own: &Window, _windows: &Windows) -> f64 {
            -3.0
        }

        fn left(&mut self, id: SubflowId, _windows: &mut Windows) {
            self.0.push(id);
        }
    }

    const INIT: SubflowInit = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));

    #[test]
    fn growth_may_be_negative_but_leaves_a_packet() {
        let mut frame = Aimd::new(Falling::default(), false);
        frame.add_subflow(Time::ZERO, SubflowId(0), INIT);
        frame.windows.get_mut(SubflowId(0)).unwrap().ssthresh = 1.0;
        for cwnd in [7_000, 4_000, 1_000, 1_000] {
            frame.on_event(Time::ZERO, SubflowId(0), &acked(Duration::from_millis(10)), &View::default());
            assert_eq!(frame.limits(SubflowId(0)).cwnd, Bytes::new(cwnd));
        }
        // Of what leaves the law hears once.
        (0..2).for_each(|_| frame.remove_subflow(Time::ZERO, SubflowId(0)));
        assert_eq!(frame.law.0, [SubflowId(0)]);
    }

    #[test]
    fn before_anything_is_acknowledged_a_loss_halves() {
        let mut frame = Aimd::new(crate::coupled::Coupled::default(), false);
        frame.add_subflow(Time::ZERO, SubflowId(0), INIT);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Congestion { sent_at: Time::ZERO }, &View::default());
        assert_eq!(frame.limits(SubflowId(0)).cwnd, Bytes::new(5_000));
    }

    #[test]
    fn a_timeout_said_again_leaves_the_threshold_which_is_at_least_two_packets_alone() {
        let (mut frame, view) = frame(1);
        frame.on_event(Time::ZERO, SubflowId(0), &acked(Duration::from_millis(10)), &view);
        for repeated in [false, true] {
            frame.on_event(Time::ZERO, SubflowId(0), &Event::Timeout { repeated }, &view);
            assert_eq!(frame.limits(SubflowId(0)).ssthresh, Some(Bytes::new(5_500)));
        }
        frame.on_event(Time::ZERO, SubflowId(0), &acked(Duration::from_millis(10)), &view);
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Timeout { repeated: false }, &view);
        assert_eq!(frame.limits(SubflowId(0)).ssthresh, Some(Bytes::new(2_000)));
    }

    #[test]
    fn only_the_first_slow_start_is_left_by_hystart() {
        for event in [Event::Congestion { sent_at: Time::ZERO }, Event::Timeout { repeated: false }] {
            let mut frame = Aimd::new(Plain, true);
            frame.add_subflow(Time::ZERO, SubflowId(0), INIT);
            frame.on_event(Time::ZERO, SubflowId(0), &event, &View::default());
            assert_eq!(frame.windows.get(SubflowId(0)).unwrap().hystart, None);
        }
    }

    #[test]
    fn hystart_ends_slow_start_slowly_where_round_trips_lengthen() {
        let (mut frame, mut view) = frame(1);
        frame.windows.get_mut(SubflowId(0)).unwrap().hystart = Some(HyStart::default());
        // Rounds of eight packets: the last of the second finds that all took 30 ms more. Then a quarter of the growth for five rounds.
        for (round, cwnd) in [18_000, 25_250, 27_250, 29_250, 31_250, 33_250].into_iter().enumerate() {
            let at_send = view.subflows[0].delivered;
            for _ in 0..8 {
                view.subflows[0].delivered += Bytes::new(1000);
                let Event::Acked(held) = acked(Duration::from_millis(if round == 0 { 100 } else { 130 })) else {
                    panic!()
                };
                let event = Event::Acked(Acked { delivered_at_send: at_send, ..held });
                frame.on_event(Time::ZERO, SubflowId(0), &event, &view);
            }
            assert_eq!(frame.limits(SubflowId(0)), Limits { cwnd: Bytes::new(cwnd), pacing: None, ssthresh: None });
        }
        let Event::Acked(held) = acked(Duration::from_millis(130)) else { panic!() };
        let event = Event::Acked(Acked { delivered_at_send: view.subflows[0].delivered, ..held });
        frame.on_event(Time::ZERO, SubflowId(0), &event, &view);
        assert_eq!(frame.limits(SubflowId(0)).ssthresh, Some(Bytes::new(33_250)));
    }

    #[test]
    fn an_idle_subflow_does_not_count_until_it_sends() {
        let (mut frame, mut view) = frame(2);
        let ack = acked(Duration::from_millis(10));
        for id in 0..2 {
            frame.on_event(Time::ZERO, SubflowId(id), &ack, &view);
            view.subflows[id as usize].srtt = Some(Duration::from_millis(10));
            view.subflows[id as usize].last_sent = Some(Time::ZERO);
        }
        frame.on_event(Time::from_millis(999), SubflowId(0), &ack, &view);
        assert_eq!(frame.windows.count(), 2);
        // The subflow that is heard counts, however long ago it sent.
        frame.on_event(Time::from_millis(1000), SubflowId(0), &ack, &view);
        assert_eq!(frame.windows.counting().map(|(id, _)| id.0).collect::<Vec<_>>(), [0]);
        view.subflows[1].in_flight = Bytes::new(1000);
        frame.on_event(Time::from_millis(1001), SubflowId(0), &ack, &view);
        assert_eq!(frame.windows.count(), 2);
    }
}
