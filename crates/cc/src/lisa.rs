//! LISA, the Linked Slow-Start Algorithm (draft-barik-mptcp-lisa-01): a subflow that joins takes its initial window from the
//! subflow that slow start has taken furthest, instead of adding to it. Congestion avoidance is LIA's.

use manypath_core::{Bytes, SubflowId, Time, View};

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
    /// Whether it has sent.
    started: bool,
    /// Packets whose acknowledgement will not grow the window.
    ignore: f64,
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
        match self.members.get_mut(id.index()) {
            Some(member) if member.ignore > 0.0 => {
                member.ignore -= 1.0;
                0.0
            }
            _ => 1.0,
        }
    }

    fn joined(&mut self, id: SubflowId, _windows: &mut Windows) {
        if self.members.len() <= id.index() {
            self.members.resize(id.index() + 1, Member::default());
        }
        self.members[id.index()] = Member::default();
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, windows: &mut Windows, view: &View) {
        let Some(member) = self.members.get_mut(id.index()) else { return };
        if matches!(event, Event::Sent { .. }) && !member.started {
            member.started = true;
            // A first subflow has nobody to share with and keeps the initial window it was given.
            if windows.counting().any(|(other, _)| other != id) {
                self.share(id, windows, view);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{PacketNumber, SubflowView};

    use super::*;
    use crate::aimd::tests::{close, windows};

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
        let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
        lisa.observe(Time::ZERO, SubflowId(1), &sent, &mut windows, &view);
        let cwnd = |id| windows.get(SubflowId(id)).unwrap().cwnd;
        (cwnd(0), cwnd(1), lisa.members[0].ignore)
    }

    #[test]
    fn the_draft_s_three_cases() {
        // 40 -> 30 + 10; 40 in flight: the next 10 acknowledgements are ignored.
        assert_eq!(join(40.0, 40), (30.0, 10.0, 10.0));
        // 12 -> 6 + 6.
        assert_eq!(join(12.0, 3), (6.0, 6.0, 0.0));
        // 5: kept, and 3 for the new one.
        assert_eq!(join(5.0, 5), (5.0, 3.0, 0.0));
    }

    #[test]
    fn ignored_acknowledgements_do_not_grow_the_window() {
        let mut windows = windows(&[(30.0, 0.1)]);
        let mut lisa = Lisa::default();
        lisa.joined(SubflowId(0), &mut windows);
        lisa.members[0].ignore = 2.0;
        let own = windows.get(SubflowId(0)).unwrap().clone();
        let grown: Vec<_> = (0..3).map(|_| lisa.slow_start(SubflowId(0), &own, &windows)).collect();
        close(grown[0] + grown[1], 0.0);
        close(grown[2], 1.0);
    }
}
