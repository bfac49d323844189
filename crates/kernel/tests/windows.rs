//! One step of each window-based controller, from equal random states: the programs' arithmetic against `manypath-cc`.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "the deviations found; small numbers")]

mod twin;

use manypath_cc::aimd::{Aimd, Law, Windows};
use manypath_cc::balia::{Alpha, Balia};
use manypath_cc::hoe::Choice;
use manypath_cc::lia::Lia;
use manypath_cc::olia::{Olia, Quality};
use manypath_cc::tccc::{self, Tccc, Threshold};
use manypath_cc::uni_mptcp::{self, Decrease, UniMptcp};
use manypath_cc::wvegas::Wvegas;
use manypath_cc::{Acked, CongestionControl, Event, SubflowInit, algorithms};
use manypath_core::{AlgorithmSpec, Bytes, Duration, PacketNumber, Params, Rate, SubflowId, SubflowView, Time, View};
use twin::{
    Dice, MAX_SUBFLOWS, Twin, WindowController, Worst, mp_balia, mp_lia, mp_olia, mp_reno, mp_tccc, mp_uni, mp_wvegas,
    real,
};

const MSS: u64 = 1000;
const STATES: u64 = 100_000;
/// When the steps are taken: later than any retransmission timeout.
const NOW_US: u64 = 20_000_000;
/// The smallest window of the programs (bpf/group.h), packets; among several subflows ours go down to one.
const LEAST_WINDOW: f64 = 2.0;
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

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Ack {
    packets: u64,
    rtt_us: u64,
    now_us: u64,
    /// Whether a packet is acknowledged that left after the last one that did: a round ends.
    ends_round: bool,
    limited: bool,
    in_recovery: bool,
}

impl Ack {
    fn of(packets: u64, limited: bool) -> Self {
        Self { packets, rtt_us: 10_000, now_us: 0, ends_round: false, limited, in_recovery: false }
    }
}

impl<L: Copy + Default> Pair<L> {
    /// As many subflows as the dice say.
    fn new(mut ours: Box<dyn Subject>, controller: &WindowController, dice: &mut Dice) -> Self {
        let subflows = 1 + dice.below(MAX_SUBFLOWS as u64) as usize;
        let (mut theirs, mut view) = (Twin::new(), View::default());
        for (place, id) in (0..subflows).zip(0..) {
            let init = SubflowInit::new(Bytes::new(MSS), Bytes::new(10 * MSS));
            ours.add_subflow(Time::ZERO, SubflowId(id), init);
            view.subflows.push(SubflowView::new(SubflowId(id), Bytes::new(MSS)));
            theirs.sockets[place].cwnd = 10;
            theirs.join(controller, place);
        }
        Self { ours, theirs, view, subflows }
    }

    /// Acknowledges on both sides.
    fn ack(&mut self, controller: &WindowController, place: usize, ack: &Ack) {
        let view = &mut self.view.subflows[place];
        let before = view.delivered;
        view.delivered += Bytes::new(ack.packets * MSS);
        let event = Event::Acked(Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(ack.packets * MSS),
            sent_at: Time::ZERO,
            rtt: Duration::from_micros(ack.rtt_us),
            delivery_rate: Rate::ZERO,
            delivered_at_send: if ack.ends_round { before } else { Bytes::ZERO },
            in_recovery: ack.in_recovery,
            app_limited: !ack.limited,
        });
        self.ours.on_event(Time::from_micros(ack.now_us), id(place), &event, &self.view);
        let socket = &mut self.theirs.sockets[place];
        socket.delivered += ack.packets as u32;
        socket.now_us = ack.now_us;
        if ack.ends_round {
            socket.una = socket.nxt + 1;
            socket.nxt = socket.una + 100;
        }
        socket.recovering = u32::from(ack.in_recovery);
        self.theirs.sample(controller, place, ack.rtt_us as u32);
        // The kernel asks only outside of recovery.
        if !ack.in_recovery {
            self.theirs.ack(controller, place, ack.packets as u32, ack.limited);
        }
    }

    /// A packet is lost, which the kernel counts before it begins a recovery.
    fn lose_packet(&mut self, place: usize) {
        self.event(place, &Event::Lost { packet: PacketNumber(0), bytes: Bytes::new(MSS), sent_at: Time::ZERO });
        self.theirs.sockets[place].lost += 1;
    }

    /// A recovery begins, with a loss or a mark.
    fn lose(&mut self, controller: &WindowController, place: usize, marked: bool) {
        if marked {
            self.event(place, &Event::Ecn { sent_at: Time::ZERO });
        } else {
            self.lose_packet(place);
            self.event(place, &Event::Congestion { sent_at: Time::ZERO });
        }
        self.theirs.loss(controller, place);
    }

    fn event(&mut self, place: usize, event: &Event) {
        self.ours.on_event(Time::from_micros(NOW_US), id(place), event, &self.view);
    }

    /// Random windows, thresholds and round-trip times; about one subflow in four has failed or is idle, `own` neither. With `keep_rtt`
    /// the round-trip times stay, for a law that has its own.
    fn draw(&mut self, own: usize, slow_start: bool, keep_rtt: bool, dice: &mut Dice) {
        for place in 0..self.subflows {
            let window = (dice.spread(LEAST_WINDOW, 1e5) * 4_294_967_296.0) as u64;
            let threshold = if slow_start { window + dice.below(1 << 36) + 1 } else { window - dice.below(window) };
            // In 1/8 us, from 100 us to 10 s.
            let rtt = dice.spread(800.0, 8e7) as u64;
            let fate = if place == own { 2 } else { dice.below(8) };
            let (failed, idle) = (fate == 0, fate == 1);
            self.theirs.set_window(place, window);
            self.theirs.set_threshold(place, threshold);
            let held = self.ours.windows_mut().get_mut(id(place)).unwrap();
            if !keep_rtt {
                self.theirs.sockets[place].srtt = rtt as u32;
                self.theirs.group.members[place].rtt = real(rtt as f64);
                self.view.subflows[place].srtt = Some(Duration::from_nanos(rtt * 125));
                held.rtt = rtt as f64 / 8e6;
            }
            if failed {
                self.theirs.group.members[place].rtt = 0;
            }
            self.theirs.sockets[place].now_us = NOW_US;
            self.theirs.group.members[place].idle_us = if idle { NOW_US } else { NOW_US + 1 };
            self.view.subflows[place].last_sent = idle.then_some(Time::ZERO);
            held.cwnd = twin::packets(window);
            held.ssthresh = twin::packets(threshold);
            held.failed = failed;
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
    // Laws whose own rules may lead from congestion avoidance to slow start.
    let slow_starts = ["tccc", "wvegas"].contains(&name);
    for _ in 0..STATES {
        let mut pair = Pair::new(build(), controller, &mut dice);
        prepare(&mut pair, &mut dice);
        let own = dice.below(pair.subflows as u64) as usize;
        let kind = dice.below(4);
        pair.draw(own, kind == 0, name == "tccc", &mut dice);
        let before = pair.theirs.clone();
        let window = pair.our_window(own);
        match kind {
            0 | 1 => {
                // In slow start theirs looks at the threshold after each packet, ours after each event.
                let packets = if kind == 0 || slow_starts { 1 } else { 1 + dice.below(3) };
                let ends_round = dice.below(2) == 0;
                let rtt_us = dice.spread(100.0, 1e7) as u64;
                pair.ack(controller, own, &Ack { rtt_us, now_us: NOW_US, ends_round, ..Ack::of(packets, true) });
                let theirs = (pair.theirs.window_q32(own) as i64 - before.window_q32(own) as i64) as f64;
                let ours = pair.our_window(own).max(LEAST_WINDOW) - window;
                worst.compare(name, ours, theirs / 4_294_967_296.0, LAST_PLACE, &before);
            }
            2 => {
                pair.lose(controller, own, dice.below(2) == 0);
                let ours = pair.our_window(own).max(LEAST_WINDOW) - window;
                worst.compare(name, ours, pair.theirs.window(own) - before.window(own), LAST_PLACE, &before);
            }
            _ => {
                // In a recovery, whose threshold is held, or not.
                let repeated = dice.below(4) == 0;
                if repeated {
                    pair.lose(controller, own, false);
                }
                pair.event(own, &Event::Timeout { repeated });
                if repeated {
                    pair.theirs.timeout_in_recovery(controller, own);
                } else {
                    pair.theirs.timeout(controller, own);
                }
                worst.compare(
                    name,
                    pair.our_threshold(own).max(LEAST_WINDOW),
                    pair.theirs.threshold(own),
                    LAST_PLACE,
                    &before,
                );
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
    // SAFETY: its parameter is set by this test only, between steps.
    let controller = unsafe { &mp_olia };
    let prepare = |pair: &mut Pair<OliaState>, dice: &mut Dice| {
        for place in 0..pair.subflows {
            for lost in [true, false] {
                let packets = dice.spread(1.0, 1e6) as u64;
                pair.ack(controller, place, &Ack::of(packets, false));
                if lost {
                    pair.event(place, &Event::Congestion { sent_at: Time::ZERO });
                    pair.theirs.loss(controller, place);
                }
            }
        }
    };
    for (place, quality) in [Quality::Rate, Quality::Printed].into_iter().enumerate() {
        // SAFETY: the first parameter is `quality`.
        unsafe { controller.set(0, place as u64) };
        compare::<OliaState>("olia", controller, || Box::new(Aimd::new(Olia::new(quality), false)), prepare);
    }
}

#[test]
fn balia() {
    // SAFETY: its parameter is set by this test only, between steps.
    let controller = unsafe { &mp_balia };
    for (place, alpha) in [Alpha::Exact, Alpha::Integer].into_iter().enumerate() {
        // SAFETY: the first parameter is `alpha`.
        unsafe { controller.set(0, place as u64) };
        compare::<()>("balia", controller, || Box::new(Aimd::new(Balia::new(alpha), false)), |_, _| {});
    }
}

#[test]
fn uni_mptcp() {
    // SAFETY: its parameter is set by this test only, between steps.
    let controller = unsafe { &mp_uni };
    let prepare = |pair: &mut Pair<()>, dice: &mut Dice| {
        for place in 0..pair.subflows {
            let ppm = dice.spread(1e3, 1e8).floor();
            pair.event(place, &Event::Weight(ppm / 1e6));
            pair.theirs.group.members[place].law[0] = real(ppm / 1e6);
        }
    };
    for (place, decrease) in [Decrease::Unweighted, Decrease::Printed].into_iter().enumerate() {
        // SAFETY: the first parameter is `decrease`.
        unsafe { controller.set(0, place as u64) };
        let config = uni_mptcp::Config { weights: Vec::new(), decrease };
        let build = || -> Box<dyn Subject> { Box::new(Aimd::new(UniMptcp::new(config.clone()), false)) };
        compare::<()>("uni-mptcp", controller, build, prepare);
    }
}

/// `struct law_state` of `bpf/wvegas.h`, as words.
type WvegasState = [u64; 6];

#[test]
fn wvegas() {
    let build = || -> Box<dyn Subject> { Box::new(Aimd::new(Wvegas::default(), false)) };
    // SAFETY: never written.
    let controller = unsafe { &mp_wvegas };
    compare::<WvegasState>("wvegas", controller, build, |pair, dice| {
        // Some rounds from random windows, then some samples of the round that the step ends.
        for place in 0..pair.subflows {
            let base = dice.spread(1e3, 1e5);
            for _ in 0..=dice.below(3) {
                pair.draw(place, dice.below(4) == 0, false, dice);
                for sample in 0..6 {
                    let rtt_us = (base * (1.0 + 0.3 * dice.unit())) as u64;
                    pair.ack(controller, place, &Ack { rtt_us, ends_round: sample == 5, ..Ack::of(1, sample == 5) });
                }
            }
            // Half of the subflows have had a recovery since.
            if dice.below(2) == 0 {
                pair.lose(controller, place, dice.below(2) == 0);
                for _ in 0..dice.below(3) {
                    pair.ack(controller, place, &Ack { in_recovery: true, ..Ack::of(1, true) });
                }
            }
            for _ in 0..dice.below(6) {
                let rtt_us = (base * (1.0 + 0.3 * dice.unit())) as u64;
                pair.ack(controller, place, &Ack { rtt_us, ..Ack::of(1, false) });
            }
        }
    });
}

/// `struct law_state` of `bpf/tccc.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct TcccState {
    started: u32,
    left: u32,
    rest: [u64; 19],
}

#[test]
fn tccc() {
    let spec = AlgorithmSpec::named("tccc");
    let rows = algorithms().iter().find(|row| row.name == "tccc").unwrap().parameters;
    let mut config = tccc::Config::from_params(&Params::new(&spec, rows).unwrap(), false).unwrap();
    // No ratio of small numbers of packets, so that no two loss rates differ by exactly this.
    config.tolerance = 0.213_579;
    config.deviations = 0.713_579;
    // SAFETY: its parameters are set by this test only, between steps.
    let controller = unsafe { &mp_tccc };
    let prepare = |pair: &mut Pair<TcccState>, dice: &mut Dice| {
        // The first window, which estimates the threshold, and some losses later.
        let mut now_us = 0;
        for place in 0..pair.subflows {
            let rtt_us = dice.spread(1e3, 1e6) as u64;
            pair.event(place, &Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(MSS), app_limited: false });
            for _ in 0..dice.below(10) {
                // Several at one time, too; now and then the application is the limit, and there is no estimate.
                now_us += dice.below(1000) * dice.below(2);
                pair.ack(controller, place, &Ack { rtt_us, now_us, ..Ack::of(1, dice.below(50) > 0) });
            }
            pair.ack(controller, place, &Ack { rtt_us, now_us, ends_round: dice.below(4) > 0, ..Ack::of(1, true) });
        }
        for place in 0..pair.subflows {
            match dice.below(6) {
                0 => {
                    (0..dice.below(20)).for_each(|_| pair.lose_packet(place));
                    pair.lose(controller, place, false);
                }
                1 => pair.lose(controller, place, true),
                // Enough for the counters to be halved, packet by packet: what is lost in one event is one sum in the kernel.
                2 => (0..dice.below(120)).for_each(|_| pair.lose(controller, place, false)),
                _ => {}
            }
        }
        // Where the initial slow start is over, each subflow's threshold has been set: `draw` sets both anew.
        for place in 0..pair.subflows {
            pair.theirs.states[place].law.left = u32::from(pair.theirs.group.law[0] != 0);
        }
    };
    for (place, choices) in
        [(Choice::Mean, Threshold::Largest), (Choice::Largest, Threshold::Rate)].into_iter().enumerate()
    {
        (config.estimate, config.threshold) = choices;
        // SAFETY: the parameters are `estimate`, `threshold`, `tolerance_ppm` and `deviations_ppm`.
        unsafe {
            controller.set(0, place as u64);
            controller.set(1, place as u64);
            controller.set(2, 213_579);
            controller.set(3, 713_579);
        }
        let build = || -> Box<dyn Subject> { Box::new(Aimd::new(Tccc::new(config.clone()), false)) };
        compare::<TcccState>("tccc", controller, build, prepare);
    }
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
