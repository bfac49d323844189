//! LISA, the Linked Slow-Start Algorithm (draft-barik-mptcp-lisa-01): a subflow that joins takes its initial window from the
//! subflow that slow start has taken furthest, instead of adding to it. Congestion avoidance is LIA's.

use manypath_core::{Bytes, PacketNumber, SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::event::Event;
use crate::lia;

/// Initial window, packets (draft s3.1).
const INITIAL_WINDOW: f64 = 10.0;
/// From this window on a whole initial window is taken, packets (draft s3.1).
const PLENTY: f64 = 20.0;
/// Below this window nothing is taken, packets (draft s3.1).
const LITTLE: f64 = 6.0;
/// What a new subflow gets then, packets (draft s3.1).
const SMALL_WINDOW: f64 = 3.0;

/// What LISA knows of one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The last packet that left; `None` before the first.
    latest: Option<PacketNumber>,
    /// Packets whose acknowledgement will not grow the window, of those that had left when it was divided: up to this one.
    ignore: f64,
    ignore_until: Option<PacketNumber>,
    /// Whether the acknowledgement at hand is one of them.
    ignored: bool,
}

/// LISA's slow start with LIA's increase.
#[derive(Clone, Debug, Default)]
pub struct Lisa {
    /// By subflow id.
    members: Vec<Member>,
}

impl Lisa {
    /// Divides windows before the first packet of `new`; the draft says, before its initial window is sent. Done then and
    /// not at the join, so that a subflow that stays idle takes nothing.
    fn share(&mut self, new: SubflowId, windows: &mut Windows, view: &View) {
        // Draft s3.1: the subflow in slow start with the largest rate. Ties go to the earlier id.
        let donors = windows.counting().filter(|(id, window)| *id != new && window.in_slow_start());
        let donor = donors.fold(None, |best: Option<(SubflowId, f64)>, (id, window)| match best {
            Some((_, rate)) if rate >= window.rate() => best,
            _ => Some((id, window.rate())),
        });
        let given = match donor.and_then(|(id, _)| Some((id, windows.get_mut(id)?))) {
            None => INITIAL_WINDOW,
            Some((_, old)) if old.cwnd < LITTLE => SMALL_WINDOW,
            Some((id, old)) => {
                let given = if old.cwnd >= PLENTY { INITIAL_WINDOW } else { old.cwnd / 2.0 };
                old.cwnd -= given;
                // Draft s3.1: what is in flight beyond the smaller window does not grow it when acknowledged.
                let in_flight = view.get(id).map_or(Bytes::ZERO, |subflow| subflow.in_flight).as_f64() / old.mss;
                if let Some(member) = self.members.get_mut(id.index()) {
                    member.ignore = (in_flight - old.cwnd).max(0.0);
                    member.ignore_until = member.latest;
                }
                given
            }
        };
        if let Some(own) = windows.get_mut(new) {
            own.cwnd = given;
        }
    }
}

impl Law for Lisa {
    const HEARS_DEPARTURES: bool = true;

    fn increase(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        lia::increase(own, windows)
    }

    fn slow_start(&mut self, id: SubflowId, _own: &Window, _windows: &Windows) -> f64 {
        let ignored = self.members.get(id.index()).is_some_and(|member| member.ignored);
        if ignored { 0.0 } else { 1.0 }
    }

    fn joined(&mut self, id: SubflowId, _windows: &mut Windows) {
        if self.members.len() <= id.index() {
            self.members.resize(id.index() + 1, Member::default());
        }
        self.members[id.index()] = Member::default();
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, windows: &mut Windows, view: &View) {
        let Some(member) = self.members.get_mut(id.index()) else { return };
        match event {
            Event::Sent { packet, .. } => {
                let first = member.latest.replace(*packet).is_none();
                // A first subflow has nobody to share with and keeps the initial window it was given.
                if first && windows.counting().any(|(other, _)| other != id) {
                    self.share(id, windows, view);
                }
            }
            Event::Acked(acked) => {
                // Draft s3.1 ignores the next acknowledgements of what was in flight, whether or not they would have grown the
                // window. What left since is not in excess: a loss, a timeout or an idle application may come between.
                member.ignored = member.ignore > 0.0 && Some(acked.packet) <= member.ignore_until;
                member.ignore -= if member.ignored { 1.0 } else { 0.0 };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, SubflowView};

    use super::*;
    use crate::aimd::Aimd;
    use crate::aimd::tests::windows;
    use crate::controller::{CongestionControl, SubflowInit};
    use crate::event::Acked;
    use crate::per_ack::PerAck;

    const PACKETS_10: Bytes = Bytes::new(10_000);

    /// An acknowledgement of this packet, with a change to it.
    fn acked(packet: u64, change: fn(&mut Acked)) -> Event {
        let Event::Acked(mut acked) = crate::aimd::tests::acked(Duration::from_millis(100)) else { unreachable!() };
        acked.packet = PacketNumber(packet);
        change(&mut acked);
        Event::Acked(acked)
    }

    /// The windows of donor and newcomer after the newcomer's first packet, and the packets ignored.
    fn join(donor: f64, in_flight: u64) -> (f64, f64, f64) {
        let mut windows = windows(&[(donor, 0.1), (10.0, 0.0)]);
        windows.iter_mut().for_each(|window| window.ssthresh = f64::INFINITY);
        let mut view = View::default();
        view.subflows.push(SubflowView::new(SubflowId(0), Bytes::new(1000)));
        view.subflows[0].in_flight = Bytes::new(in_flight * 1000);
        let mut lisa = Lisa::default();
        lisa.joined(SubflowId(0), &mut windows);
        lisa.joined(SubflowId(1), &mut windows);
        lisa.observe(Time::ZERO, SubflowId(1), &sent(0), &mut windows, &view);
        let cwnd = |id| windows.get(SubflowId(id)).unwrap().cwnd;
        (cwnd(0), cwnd(1), lisa.members[0].ignore)
    }

    #[test]
    fn the_draft_s_three_cases() {
        // 40 -> 30 + 10; 40 in flight: the next 10 acknowledgements are ignored.
        assert_eq!(join(40.0, 40), (30.0, 10.0, 10.0));
        // 12 -> 6 + 6.
        assert_eq!(join(12.0, 3), (6.0, 6.0, 0.0));
        // 6 -> 3 + 3.
        assert_eq!(join(6.0, 3), (3.0, 3.0, 0.0));
        // 5: kept, and 3 for the new one.
        assert_eq!(join(5.0, 5), (5.0, 3.0, 0.0));
    }

    fn sent(packet: u64) -> Event {
        Event::Sent { packet: PacketNumber(packet), bytes: Bytes::new(1000), app_limited: false }
    }

    /// Two subflows that have sent nothing.
    fn pair<L: Law>(law: L) -> (Aimd<L>, View) {
        let mut frame = Aimd::new(law, false);
        let mut view = View::default();
        for id in 0..2 {
            let start = SubflowInit::new(Bytes::new(1000), PACKETS_10);
            frame.add_subflow(Time::ZERO, SubflowId(id), start);
            view.subflows.push(SubflowView::new(SubflowId(id), Bytes::new(1000)));
        }
        (frame, view)
    }

    /// A donor of 40 packets, all in flight, after the first packet of a second subflow: the frame is in slow start with 30
    /// packets, and ten of the forty acknowledgements are to be ignored.
    fn divided() -> (Aimd<Lisa>, View) {
        let (mut frame, mut view) = pair(Lisa::default());
        for packet in 0..70 {
            frame.on_event(Time::ZERO, SubflowId(0), &sent(packet), &view);
        }
        for packet in 0..30 {
            frame.on_event(Time::ZERO, SubflowId(0), &acked(packet, |_| ()), &view);
        }
        assert_eq!(frame.limits(SubflowId(0)).cwnd, Bytes::new(40_000));
        view.subflows[0].in_flight = Bytes::new(40_000);
        frame.on_event(Time::ZERO, SubflowId(1), &sent(0), &view);
        assert_eq!(frame.limits(SubflowId(0)).cwnd, Bytes::new(30_000));
        (frame, view)
    }

    /// How much the donor grows by the acknowledgements of these packets, bytes.
    fn growth(frame: &mut Aimd<Lisa>, view: &View, packets: core::ops::Range<u64>, change: fn(&mut Acked)) -> u64 {
        let before = frame.limits(SubflowId(0)).cwnd;
        packets.for_each(|packet| frame.on_event(Time::ZERO, SubflowId(0), &acked(packet, change), view));
        frame.limits(SubflowId(0)).cwnd.get() - before.get()
    }

    #[test]
    fn windows_are_divided_where_acknowledgements_are_counted_too() {
        let (mut frame, view) = pair(PerAck::new(Lisa::default()));
        assert!(frame.hears_departures(), "else nobody tells of the first packet");
        frame.on_event(Time::ZERO, SubflowId(0), &sent(0), &view);
        frame.on_event(Time::ZERO, SubflowId(0), &acked(0, |_| ()), &view);
        frame.on_event(Time::ZERO, SubflowId(1), &sent(0), &view);
        assert_eq!(frame.limits(SubflowId(0)).cwnd + frame.limits(SubflowId(1)).cwnd, Bytes::new(11_000));
    }

    #[test]
    fn windows_are_divided_anew_for_another_with_the_number_of_one_that_left() {
        let (mut frame, view) = divided();
        frame.remove_subflow(Time::ZERO, SubflowId(1));
        frame.add_subflow(Time::ZERO, SubflowId(1), SubflowInit::new(Bytes::new(1000), PACKETS_10));
        frame.on_event(Time::ZERO, SubflowId(1), &sent(0), &view);
        assert_eq!(frame.limits(SubflowId(0)).cwnd, Bytes::new(20_000));
    }

    #[test]
    fn ignored_acknowledgements_do_not_grow_the_window() {
        let (mut frame, view) = divided();
        assert_eq!(growth(&mut frame, &view, 30..40, |_| ()), 0);
        assert_eq!(growth(&mut frame, &view, 40..70, |_| ()), 30_000);
    }

    #[test]
    fn what_left_after_the_division_grows_the_window() {
        // All that was in flight is given up; slow start goes to half of 30 packets.
        let (mut frame, view) = divided();
        frame.on_event(Time::ZERO, SubflowId(0), &Event::Timeout { repeated: false }, &view);
        (70..80).for_each(|packet| frame.on_event(Time::ZERO, SubflowId(0), &sent(packet), &view));
        assert_eq!(growth(&mut frame, &view, 70..80, |_| ()), 10_000);
        // One that is late from before counts as it would have.
        assert_eq!(growth(&mut frame, &view, 30..31, |_| ()), 0);
    }

    #[test]
    fn what_would_not_have_grown_the_window_is_ignored_too() {
        let (mut frame, view) = divided();
        assert_eq!(growth(&mut frame, &view, 30..40, |acked| acked.app_limited = true), 0);
        assert_eq!(growth(&mut frame, &view, 40..50, |_| ()), 10_000);
    }
}
