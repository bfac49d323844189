//! One step of each window-based controller, from equal random states: the programs' arithmetic against `manypath-cc`.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "the deviations found; small numbers")]

mod twin;

use manypath_cc::aimd::{Aimd, Law, Windows};
use manypath_cc::balia::{Alpha, Balia};
use manypath_cc::lia::Lia;
use manypath_cc::olia::{Olia, Quality};
use manypath_cc::uni_mptcp::UniMptcp;
use manypath_cc::{Acked, CongestionControl, Event, SubflowInit};
use manypath_core::{Bytes, Duration, PacketNumber, Rate, SubflowId, SubflowView, Time, View};
use twin::{Dice, MAX_SUBFLOWS, Twin, WindowController, Worst, mp_balia, mp_lia, mp_olia, mp_reno, mp_uni, real};

const MSS: u64 = 1000;
const STATES: u64 = 100_000;
/// Windows have 32 fractional bits: what one step adds and takes may be off by one place each.
const LAST_PLACE: f64 = 4.0 / 4_294_967_296.0;

/// A controller of `manypath-cc` whose windows can be set.
trait Subject: CongestionControl {
    fn windows_mut(&mut self) -> &mut Windows;
}

impl<L: Law> Subject for Aimd<L> {
    fn windows_mut(&mut self) -> &mut Windows {
        Self::windows_mut(self)
    }
}

/// Reno as a law, since the crate's own Reno knows one subflow only.
#[derive(Debug)]
struct Plain;

impl Law for Plain {
    fn increase(&mut self, _id: SubflowId, own: &manypath_cc::aimd::Window, _windows: &Windows) -> f64 {
        1.0 / own.cwnd
    }
}

/// Both implementations in one state, and a view to call ours with.
struct Pair<L> {
    ours: Box<dyn Subject>,
    theirs: Twin<L>,
    view: View,
    subflows: usize,
}

fn acked(packets: u64, app_limited: bool) -> Event {
    Event::Acked(Acked {
        packet: PacketNumber(0),
        bytes: Bytes::new(packets * MSS),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(10),
        delivery_rate: Rate::ZERO,
        delivered_at_send: Bytes::ZERO,
        in_recovery: false,
        app_limited,
    })
}

impl<L: Copy + Default> Pair<L> {
    /// As many subflows as the dice say.
    fn new(mut ours: Box<dyn Subject>, controller: &WindowController, dice: &mut Dice) -> Self {
        let subflows = 1 + dice.below(MAX_SUBFLOWS as u64) as usize;
        let (mut theirs, mut view) = (Twin::new(), View::default());
        for (place, id) in (0..subflows).zip(0..) {
            let init = SubflowInit { mss: Bytes::new(MSS), initial_window: Bytes::new(10 * MSS) };
            ours.add_subflow(Time::ZERO, SubflowId(id), init);
            view.subflows.push(SubflowView::new(SubflowId(id), Bytes::new(MSS)));
            theirs.sockets[place].cwnd = 10;
            theirs.join(controller, place);
        }
        Self { ours, theirs, view, subflows }
    }

    fn event(&mut self, place: usize, event: &Event) {
        self.ours.on_event(Time::ZERO, id(place), event, &self.view);
    }

    /// Random windows, thresholds and round-trip times; about one subflow in eight does not count, `own` does.
    fn draw(&mut self, own: usize, slow_start: bool, dice: &mut Dice) {
        for place in 0..self.subflows {
            let window = (dice.spread(1.0, 1e5) * 4_294_967_296.0) as u64;
            let threshold = if slow_start { window + dice.below(1 << 36) + 1 } else { window - dice.below(window) };
            // In 1/8 us, from 100 us to 10 s.
            let rtt = dice.spread(800.0, 8e7) as u64;
            let counts = place == own || dice.below(8) > 0;
            self.theirs.set_window(place, window);
            self.theirs.set_threshold(place, threshold);
            self.theirs.sockets[place].srtt = rtt as u32;
            self.theirs.group.members[place].rtt = if counts { real(rtt as f64) } else { 0 };
            self.view.subflows[place].srtt = Some(Duration::from_nanos(rtt * 125));
            let held = self.ours.windows_mut().get_mut(id(place)).unwrap();
            held.cwnd = twin::packets(window);
            held.ssthresh = twin::packets(threshold);
            held.rtt = rtt as f64 / 8e6;
            held.failed = !counts;
        }
    }

    fn our_window(&mut self, place: usize) -> f64 {
        self.ours.windows_mut().get(id(place)).unwrap().cwnd
    }

    fn our_threshold(&mut self, place: usize) -> f64 {
        self.ours.windows_mut().get(id(place)).unwrap().ssthresh
    }
}

fn id(place: usize) -> SubflowId {
    SubflowId(place as u32)
}

/// Takes random steps from random states; `prepare` sets the law's own state in both.
fn compare<L: Copy + Default + core::fmt::Debug>(
    name: &str,
    controller: &WindowController,
    build: impl Fn() -> Box<dyn Subject>,
    prepare: impl Fn(&mut Pair<L>, &mut Dice),
) {
    let (mut dice, mut worst) = (Dice::new(1), Worst::default());
    for _ in 0..STATES {
        let mut pair = Pair::new(build(), controller, &mut dice);
        prepare(&mut pair, &mut dice);
        let own = dice.below(pair.subflows as u64) as usize;
        let kind = dice.below(4);
        pair.draw(own, kind == 0, &mut dice);
        let before = pair.theirs.clone();
        let window = pair.our_window(own);
        match kind {
            0 | 1 => {
                let packets = if kind == 0 { 1 } else { 1 + dice.below(3) };
                pair.event(own, &acked(packets, false));
                pair.theirs.sockets[own].delivered += packets as u32;
                pair.theirs.ack(controller, own, packets as u32, true);
                let theirs = (pair.theirs.window_q32(own) as i64 - before.window_q32(own) as i64) as f64;
                let ours = pair.our_window(own) - window;
                worst.compare(name, ours, theirs / 4_294_967_296.0, LAST_PLACE, &before);
            }
            2 => {
                pair.event(own, &Event::Congestion { sent_at: Time::ZERO });
                pair.theirs.loss(controller, own);
                let ours = pair.our_window(own) - window;
                worst.compare(name, ours, pair.theirs.window(own) - before.window(own), LAST_PLACE, &before);
            }
            _ => {
                pair.event(own, &Event::Timeout);
                pair.theirs.timeout(controller, own);
                worst.compare(name, pair.our_threshold(own), pair.theirs.threshold(own), LAST_PLACE, &before);
                worst.compare(name, pair.our_window(own), pair.theirs.window(own), 0.0, &before);
                assert_eq!(pair.theirs.group.members[own].rtt, 0);
            }
        }
    }
    println!("{name}: {} comparisons, largest deviation {:.2e}", worst.steps, worst.error);
}

#[test]
fn reno() {
    // SAFETY: never written.
    compare::<()>("reno", unsafe { &mp_reno }, || Box::new(Aimd::new(Plain, false)), |_, _| {});
}

#[test]
fn lia() {
    // SAFETY: never written.
    compare::<()>("lia", unsafe { &mp_lia }, || Box::new(Aimd::new(Lia, false)), |_, _| {});
}

/// `struct law_state` of `bpf/olia.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct OliaState {
    before: u32,
    start: u32,
}

#[test]
fn olia() {
    let build = || -> Box<dyn Subject> { Box::new(Aimd::new(Olia::new(Quality::Rate), false)) };
    // SAFETY: never written.
    let controller = unsafe { &mp_olia };
    compare::<OliaState>("olia", controller, build, |pair, dice| {
        for place in 0..pair.subflows {
            for lost in [true, false] {
                let packets = dice.spread(1.0, 1e6) as u64;
                pair.event(place, &acked(packets, true));
                pair.theirs.sockets[place].delivered += packets as u32;
                pair.theirs.ack(controller, place, packets as u32, false);
                if lost {
                    pair.event(place, &Event::Congestion { sent_at: Time::ZERO });
                    pair.theirs.loss(controller, place);
                }
            }
        }
    });
}

#[test]
fn balia() {
    let build = || -> Box<dyn Subject> { Box::new(Aimd::new(Balia::new(Alpha::Exact), false)) };
    // SAFETY: never written.
    compare::<()>("balia", unsafe { &mp_balia }, build, |_, _| {});
}

#[test]
fn uni_mptcp() {
    let build = || -> Box<dyn Subject> { Box::new(Aimd::new(UniMptcp::default(), false)) };
    // SAFETY: never written.
    compare::<()>("uni-mptcp", unsafe { &mp_uni }, build, |pair, dice| {
        for place in 0..pair.subflows {
            let ppm = dice.spread(1e3, 1e8).floor();
            pair.event(place, &Event::Weight(ppm / 1e6));
            pair.theirs.group.members[place].law[0] = real(ppm / 1e6);
        }
    });
}

#[test]
fn powers_and_logarithms() {
    let mut dice = Dice::new(2);
    for _ in 0..STATES {
        let x = dice.spread(1e-9, 1e15);
        let held = twin::value(real(x));
        assert!((twin::log2(real(x)) - held.log2()).abs() < 1e-10, "log2({held})");
        let power = held.powf(0.9);
        assert!((twin::value(twin::power(real(x), 9, 10)) / power - 1.0).abs() < 2e-9, "{held}^0.9");
        let log = 60.0 * (dice.unit() - 0.5);
        assert!((twin::value(twin::exp2(log)) / log.exp2() - 1.0).abs() < 2e-9, "2^{log}");
    }
}
