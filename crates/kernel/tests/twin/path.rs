//! A path under a program of MPCC, packet by packet: a link with a queue, and a sender with data at all times.

use std::collections::VecDeque;

use super::{AscentState, Dice, Group, PacedController, PathView, real};

const MSS: u32 = 1_428;
/// Packets that leave at once (`net.ipv4.tcp_min_tso_segs`), and that an acknowledgement is for.
const PIECE: u32 = 2;
const PIECE_BITS: f64 = (PIECE * MSS * 8) as f64;

/// What packets meet.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Mbit/s.
    pub capacity: f64,
    pub rtt_us: u64,
    /// How long the queue takes to empty, when it is full.
    pub queue_us: u64,
}

/// A time in which nothing leaves a link, microseconds: what comes then is lost, or waits in its queue.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    pub from_us: u64,
    pub until_us: u64,
    pub loses: bool,
}

/// Packets that are under way together.
#[derive(Clone, Copy, Debug)]
struct Piece {
    left_us: u64,
    /// When the acknowledgement comes; `None` if the queue was full.
    acked_us: Option<u64>,
}

/// One subflow over one link, beside another that sends elsewhere.
pub struct Path<'a> {
    pub state: AscentState,
    pub view: PathView,
    pub pause: Option<Pause>,
    controller: &'a PacedController,
    pub link: Link,
    group: Group,
    under_way: VecDeque<Piece>,
    /// When pacing lets the next piece leave, and when the link has sent all it has.
    next_us: u64,
    idle_us: u64,
    dice: Dice,
}

impl<'a> Path<'a> {
    /// `others` is what the other subflow sends, Mbit/s.
    pub fn new(controller: &'a PacedController, link: Link, others: f64) -> Self {
        let mut state = AscentState::NEW;
        controller.join(&mut state);
        let mut group = Group { used: 3, ..Group::default() };
        group.members[1].law[0] = real(others);
        let view = PathView {
            now_us: 10_000_000,
            mss: MSS,
            srtt_us: link.rtt_us as u32,
            backlogged: 1,
            may_grow: 1,
            ..PathView::default()
        };
        let (under_way, dice) = (VecDeque::new(), Dice::new(5));
        Self { state, view, pause: None, controller, link, group, under_way, next_us: 0, idle_us: 0, dice }
    }

    /// Lets time pass; `look` is called after each acknowledgement.
    pub fn run(&mut self, seconds: u64, mut look: impl FnMut(&Self)) {
        let end = self.view.now_us + seconds * 1_000_000;
        // The handshake's acknowledgement.
        self.controller.ack(&mut self.state, &mut self.group, &self.view);
        while self.view.now_us < end {
            let acked = self.under_way.iter().find_map(|piece| piece.acked_us);
            if acked.is_some_and(|at| at <= self.view.now_us) {
                self.acknowledge();
                look(self);
            } else if self.next_us <= self.view.now_us && self.view.in_flight < self.limits().1 as u32 {
                self.send();
            } else {
                let ready = if self.next_us > self.view.now_us { self.next_us } else { u64::MAX };
                let next = acked.unwrap_or(u64::MAX).min(ready);
                assert!(next < u64::MAX, "nothing is under way and nothing may leave");
                self.view.now_us = next.max(self.view.now_us + 1).min(end);
            }
        }
    }

    fn limits(&mut self) -> (u64, u64) {
        self.controller.limits(&mut self.state, &self.view)
    }

    fn send(&mut self) {
        let now = self.view.now_us;
        let pause = self.pause.filter(|pause| (pause.from_us..pause.until_us).contains(&now));
        let goes_on = pause.map_or(now, |pause| pause.until_us);
        let starts = self.idle_us.max(goes_on);
        let fits = starts - goes_on <= self.link.queue_us && pause.is_none_or(|pause| !pause.loses);
        if fits {
            self.idle_us = starts + (PIECE_BITS / self.link.capacity) as u64;
        }
        self.under_way.push_back(Piece { left_us: now, acked_us: fits.then(|| self.idle_us + self.link.rtt_us) });
        self.view.in_flight += PIECE;
        self.view.segs_out += PIECE;
        self.view.bytes_sent += u64::from(PIECE * MSS);
        let (rate, _) = self.limits();
        self.next_us = now + u64::from(PIECE * MSS) * 1_000_000 / rate.max(1);
    }

    /// The oldest acknowledgement under way; what was sent before it and is not heard of is lost.
    fn acknowledge(&mut self) {
        let view = &mut self.view;
        while let Some(piece) = self.under_way.pop_front() {
            view.in_flight -= PIECE;
            let Some(at) = piece.acked_us else {
                view.lost += PIECE;
                continue;
            };
            (view.sent_at_us, view.rtt_us) = (piece.left_us, (at - piece.left_us) as u32);
            view.srtt_us = (7 * view.srtt_us + view.rtt_us) / 8;
            break;
        }
        view.delivered = PIECE;
        view.arrived += PIECE;
        view.random = self.dice.word() as u32;
        self.group.members[1].idle_us = view.now_us + 1_000_000;
        self.controller.ack(&mut self.state, &mut self.group, &self.view);
    }
}
