//! MPCC's programs on a subflow that is slow beside the others: its monitor intervals, acknowledgement by acknowledgement.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

mod twin;

use std::collections::VecDeque;

use twin::{AscentState, Dice, Group, PathView, mp_mpcc_lat, real, value};

const MSS: u32 = 1_428;
const RTT_US: u64 = 30_000;
/// Packets that leave at once (`net.ipv4.tcp_min_tso_segs`), and that an acknowledgement is for.
const PIECE: u32 = 2;
/// What the other subflows send, Mbit/s.
const OTHERS: f64 = 90.0;
/// The base rate of a subflow after some seconds, which began to probe at `base`. Nothing is lost, nothing queues, and data waits at
/// all times.
fn climbs_to(base: f64, seconds: u64) -> f64 {
    // SAFETY: nobody sets its tunables here.
    let controller = unsafe { &mp_mpcc_lat };
    let mut state = AscentState::NEW;
    controller.join(&mut state);
    (state.phase, state.base) = (AscentState::PROBING, real(base));
    let mut group = Group { used: 3, ..Group::default() };
    group.members[1].law[0] = real(OTHERS);
    let mut path = PathView { mss: MSS, srtt_us: RTT_US as u32, backlogged: 1, may_grow: 1, ..PathView::default() };
    let mut dice = Dice::new(5);
    // What is under way, by the times at which it left, and when pacing lets the next piece leave.
    let (mut under_way, mut next) = (VecDeque::new(), 0);
    path.now_us = 10_000_000;
    let end = path.now_us + seconds * 1_000_000;
    while path.now_us < end {
        let acked = under_way.front().map(|left| left + RTT_US);
        if let Some(at) = acked.filter(|at| *at <= path.now_us) {
            under_way.pop_front();
            path.in_flight -= PIECE;
            (path.sent_at_us, path.rtt_us, path.delivered) = (at - RTT_US, RTT_US as u32, PIECE);
            path.random = dice.word() as u32;
            group.members[1].idle_us = path.now_us + 1_000_000;
            controller.ack(&mut state, &mut group, &path);
        } else if next <= path.now_us && path.in_flight < controller.limits(&mut state, &path).1 as u32 {
            under_way.push_back(path.now_us);
            path.in_flight += PIECE;
            path.segs_out += PIECE;
            path.bytes_sent += u64::from(PIECE * MSS);
            let (rate, _) = controller.limits(&mut state, &path);
            next = path.now_us + u64::from(PIECE * MSS) * 1_000_000 / rate.max(1);
        } else {
            // Without anything under way, the first acknowledgement is the handshake's.
            let ready = if next > path.now_us { next } else { u64::MAX };
            path.now_us = acked.unwrap_or(u64::MAX).min(ready).max(path.now_us + 1).min(end);
        }
        if state.rate == 0 {
            controller.ack(&mut state, &mut group, &path);
        }
    }
    value(state.base)
}

#[test]
fn a_subflow_that_is_slow_beside_the_others_probes_too() {
    for base in [0.5, 1.0, 2.0, 4.0, 5.5, 7.0, 10.0, 12.0, 15.0, 30.0, 60.0] {
        let found = climbs_to(base, 20);
        assert!(found > 2.0 * base, "from {base} to {found} Mbit/s");
    }
}
