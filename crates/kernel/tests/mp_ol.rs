//! MP-OL, result by result: the programs' arithmetic against `manypath-cc`, with the same intervals on both sides.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "the deviations found; small numbers")]

mod twin;

use std::collections::BTreeMap;

use manypath_cc::mp_ol::{Config, MpOl};
use manypath_cc::{Acked, CongestionControl, Event, SubflowInit};
use manypath_core::{AlgorithmSpec, Bytes, PacketNumber, Params, Rate, SubflowId, SubflowView, Time, View};
use twin::intervals::{Interval, MSS, SRTT};
use twin::{Dice, Group, PacedController, PathView, Values, Worst, mp_ol, packets, value};

const STEPS: u64 = 100_000;
const ID: SubflowId = SubflowId(0);
/// Phases, in both.
const LEARNING: u32 = 1;
const MONITORING: u32 = 2;
/// Rates are given to the last place of 32 bits; steps are differences of rates.
const LAST_PLACE: f64 = 1e-9;

/// The head of `struct mp_ol`; the rest is not looked at.
#[derive(Clone, Debug)]
#[repr(C)]
struct State {
    phase: u32,
    epoch: u32,
    rate: u64,
    base: u64,
    window: u64,
    rest: [u64; 1000],
}

struct Pair<'a> {
    ours: MpOl,
    view: View,
    theirs: Box<State>,
    group: Group,
    controller: &'a PacedController,
    now: Time,
    next_packet: u64,
}

impl<'a> Pair<'a> {
    fn new(controller: &'a PacedController, config: Config) -> Self {
        let mut ours = MpOl::new(config);
        let init = SubflowInit::new(Bytes::new(MSS), Bytes::new(10 * MSS));
        ours.add_subflow(Time::ZERO, ID, init);
        let mut own = SubflowView::new(ID, Bytes::new(MSS));
        own.srtt = Some(SRTT);
        let zero = State { phase: 0, epoch: 0, rate: 0, base: 0, window: 0, rest: [0; 1000] };
        let mut pair = Self {
            ours,
            view: View { subflows: vec![own] },
            theirs: Box::new(zero),
            group: Group { used: 1, ..Group::default() },
            controller,
            now: Time::from_millis(1_000),
            next_packet: 0,
        };
        controller.join(&mut *pair.theirs);
        pair
    }

    fn values(&self) -> BTreeMap<&'static str, f64> {
        let mut values = Values::default();
        self.ours.inspect(ID, &mut values);
        values.0
    }

    fn path(&self) -> PathView {
        PathView {
            now_us: self.now.as_nanos() / 1000,
            srtt_us: (SRTT.as_nanos() / 1000) as u32,
            mss: MSS as u32,
            ..PathView::default()
        }
    }

    fn event(&mut self, event: &Event) {
        self.ours.on_event(self.now, ID, event, &self.view);
    }

    /// An interval on both sides.
    fn interval(&mut self, shown: Interval, index: u32) {
        let values = self.values();
        let rate = if self.theirs.phase == MONITORING { 0.0 } else { values["rate_bps"] / 1e6 };
        let (ours, view) = (&mut self.ours, &self.view);
        let sent = shown.send(&mut self.now, &mut self.next_packet, rate, 1.0, |now, event| {
            ours.on_event(now, ID, &event, view);
        });
        sent.settle(|event| self.ours.on_event(self.now, ID, &event, &self.view));
        let (path, report) = (self.path(), sent.report(self.theirs.epoch, index));
        self.controller.report(&mut *self.theirs, &path, &report, 0);
    }

    /// An acknowledgement that lets LIA grow the window.
    fn grow(&mut self, packets: u32) {
        let acked = Acked {
            packet: PacketNumber(u64::MAX),
            bytes: Bytes::new(u64::from(packets) * MSS),
            sent_at: self.now,
            rtt: SRTT,
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::ZERO,
            in_recovery: false,
            app_limited: false,
        };
        self.event(&Event::Acked(acked));
        let path = PathView { delivered: packets, may_grow: 1, ..self.path() };
        self.controller.ack(&mut *self.theirs, &mut self.group, &path);
    }

    fn lose(&mut self, timeout: bool) {
        self.controller.loss(&mut *self.theirs, &mut self.group);
        if timeout {
            self.event(&Event::Timeout { repeated: false });
            let path = self.path();
            self.controller.timeout(&mut *self.theirs, &mut self.group, &path);
        } else {
            self.event(&Event::Congestion { sent_at: self.now });
        }
    }

    /// The rate that counts in the present phase, Mbit/s: ours and theirs.
    fn base(&self) -> (f64, f64) {
        let values = self.values();
        let of_window = |packets: f64| packets * MSS as f64 * 8e-6 / SRTT.as_secs_f64();
        if self.theirs.phase == MONITORING {
            (of_window(values["cwnd_bytes"] / MSS as f64), of_window(packets(self.theirs.window)))
        } else {
            (values["base_rate_bps"] / 1e6, value(self.theirs.base))
        }
    }
}

/// A random walk of results, losses and timeouts.
fn walk(controller: &PacedController, params: &[(&str, &str)]) {
    let rows = manypath_cc::algorithms().iter().find(|row| row.name == "mp-ol").unwrap().parameters;
    let mut spec = AlgorithmSpec::named("mp-ol");
    spec.params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config = Config::from_params(&Params::new(&spec, rows).unwrap()).unwrap();
    let (mut dice, mut worst, mut phases) = (Dice::new(4), Worst::default(), [0_u64; 3]);
    while worst.steps < STEPS {
        let mut pair = Pair::new(controller, config);
        // Place of the interval in a learning round.
        let mut index = 0;
        // The first acknowledgement starts theirs, the first packet ours.
        let mut starting = true;
        for _ in 0..60 {
            let (ours, theirs) = pair.base();
            assert!((ours - theirs).abs() <= 1e-5 * ours, "mp-ol: {theirs} is not {ours}");
            phases[pair.theirs.phase as usize] += 1;
            if std::mem::take(&mut starting) {
                let path = pair.path();
                controller.ack(&mut *pair.theirs, &mut pair.group, &path);
            }
            let epoch = pair.theirs.epoch;
            let monitors = pair.theirs.phase == MONITORING;
            // Below, a loss leaves the programs' smallest window (bpf/group.h), and ours less.
            let may_lose = !monitors || packets(pair.theirs.window) >= 4.0;
            match dice.below(40) {
                0 if monitors && may_lose => pair.lose(false),
                1 if may_lose => {
                    pair.lose(true);
                    starting = true;
                }
                2..10 if monitors => pair.grow(1 + dice.below(3) as u32),
                _ => {
                    let shown = Interval::draw(&mut dice, pair.base().0.min(ours));
                    // It does not matter here.
                    pair.interval(Interval { cut_short: false, ..shown }, index);
                }
            }
            let goes_on = pair.theirs.phase == LEARNING && pair.theirs.epoch == epoch;
            index = if goes_on { index + 1 } else { 0 };
            let values = pair.values();
            assert!((values["phase"] - f64::from(pair.theirs.phase)).abs() < 0.5, "phase {} of ours", values["phase"]);
            let (ours_now, theirs_now) = pair.base();
            worst.compare(
                "mp-ol",
                ours_now - ours,
                theirs_now - theirs,
                LAST_PLACE * ours.max(ours_now),
                &pair.theirs.phase,
            );
        }
    }
    println!("mp-ol {params:?}: {} comparisons, largest deviation {:.2e}, phases {phases:?}", worst.steps, worst.error);
}

#[test]
fn mp_ol_takes_the_same_steps() {
    // SAFETY: its tunables are set by this test only, between walks.
    let controller = unsafe { &mp_ol };
    walk(controller, &[]);
    for (name, value) in [("n", 4), ("d_ppm", 300_000), ("epsilon_ppm", 20_000), ("beta_ppm", 5_000_000), ("guard", 1)]
    {
        controller.set(name, value);
    }
    walk(controller, &[("n", "4"), ("d", "0.3"), ("epsilon", "0.02"), ("beta", "5"), ("guard", "on")]);
}
