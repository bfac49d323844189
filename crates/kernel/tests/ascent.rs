//! MPCC's gradient ascent, result by result: the programs' arithmetic against `manypath-cc`.
//!
//! Both sides get the same results of monitor intervals, drawn at random: ours as packets that are sent, acknowledged and lost,
//! theirs as the numbers that these make. States are equal because all steps before were.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "the deviations found; small numbers")]

mod twin;

use manypath_cc::ascent::{self, Ascent, Defaults, Others};
use manypath_cc::{Event, Seeds, SubflowInit, mpcc};
use manypath_core::{AlgorithmSpec, Bytes, Duration, Params, SubflowId, SubflowView, Time};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use twin::intervals::{Interval, MSS, SRTT};
use twin::{
    AscentState, Dice, Group, PacedController, PathView, Values, Worst, mp_mpcc_lat, mp_mpcc_loss, real, value,
};

const STEPS: u64 = 100_000;
/// Rates and utilities are given to the last place of 32 bits; steps are differences of rates, and come of differences of utilities.
const LAST_PLACE: f64 = 4e-9;

/// Both implementations of one subflow's ascent.
struct Pair<'a> {
    ours: Ascent,
    theirs: Box<AscentState>,
    controller: &'a PacedController,
    view: SubflowView,
    /// Draws what `ours` draws.
    random: Xoshiro256PlusPlus,
    now: Time,
    next_packet: u64,
}

impl<'a> Pair<'a> {
    fn new(config: ascent::Config, controller: &'a PacedController, seed: u64) -> Self {
        let init = SubflowInit::new(Bytes::new(MSS), Bytes::new(10 * MSS));
        let random = Seeds::new(seed).generator(SubflowId(0));
        let mut view = SubflowView::new(SubflowId(0), Bytes::new(MSS));
        view.srtt = Some(SRTT);
        let mut pair = Self {
            ours: Ascent::new(config, random.clone(), init),
            theirs: Box::new(AscentState::NEW),
            controller,
            view,
            random,
            now: Time::from_millis(1_000),
            next_packet: 0,
        };
        controller.join(&mut *pair.theirs);
        pair
    }

    fn values(&self) -> Values {
        let mut values = Values::default();
        self.ours.inspect(&mut values);
        values
    }

    fn ours(&self, name: &str) -> f64 {
        self.values().0[name]
    }

    fn rate(&self) -> f64 {
        self.ours("rate_bps") / 1e6
    }

    /// What the programs see of the socket, with the bits that `ours` would draw next.
    fn path(&self) -> PathView {
        let random = self.random.clone().next_u64() as u32;
        PathView {
            now_us: self.now.as_nanos() / 1000,
            srtt_us: (SRTT.as_nanos() / 1000) as u32,
            mss: MSS as u32,
            random,
            ..PathView::default()
        }
    }

    /// An interval on both sides; `index` is its place in a probing round.
    fn interval(&mut self, shown: Interval, index: u32, others: Others) {
        let rate = self.rate();
        let (ours, view) = (&mut self.ours, &self.view);
        let sent = shown.send(&mut self.now, &mut self.next_packet, rate, 1.5, |now, event| {
            ours.on_event(now, &event, view, others);
        });
        if shown.cut_short {
            self.ours.on_timer(self.now, others);
        }
        let (path, epoch) = (self.path(), self.theirs.epoch);
        sent.settle(|event| self.ours.on_event(self.now, &event, &self.view, others));
        self.theirs.others_count = others.count.into();
        self.controller.report(&mut *self.theirs, &path, &sent.report(epoch, index), real(others.rate));
        // A round of probing has begun, not slow start again.
        if self.theirs.epoch != epoch && self.theirs.phase != AscentState::SLOW_START {
            self.random.next_u64();
        }
    }

    /// Fails unless the steps agree; `before` are the base rates before. While a probing round goes on, ours has begun its next
    /// interval already.
    fn compare(&self, name: &str, before: f64, their_before: f64, goes_on: bool, worst: &mut Worst) {
        let ours = self.values().0;
        let theirs = &self.theirs;
        assert!(
            (ours["phase"] - f64::from(theirs.phase)).abs() < 0.5,
            "{name}: phase {} is {}",
            ours["phase"],
            theirs.phase
        );
        let base = ours["base_rate_bps"] / 1e6;
        let last_place = LAST_PLACE * base.max(before);
        worst.compare(name, base - before, value(theirs.base) - their_before, last_place, &theirs.phase);
        if goes_on {
            return;
        }
        for (name, theirs) in [("rate_bps", theirs.rate), ("published_bps", theirs.published)] {
            worst.compare(name, ours[name] / 1e6, value(theirs), LAST_PLACE * base, &self.theirs.phase);
        }
    }
}

/// A random walk of results.
fn walk(name: &str, controller: &PacedController, defaults: Defaults, params: &[(&str, &str)]) {
    let rows = ascent::parameters(defaults);
    let mut spec = AlgorithmSpec::named(name);
    spec.params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config = ascent::config(&Params::new(&spec, &rows).unwrap()).unwrap();
    let heeds_bursts = params.contains(&("bursts", "heeded"));
    let heeds_gaps = params.contains(&("brake", "lasting"));
    let (mut dice, mut worst, mut phases) = (Dice::new(3), Worst::default(), [0_u64; 3]);
    let mut episode = 0;
    while worst.steps < STEPS {
        episode += 1;
        let mut pair = Pair::new(config, controller, episode);
        // Place of the interval in a probing round, and the others that are not begun.
        let (mut index, mut left) = (0, vec![1, 2, 3]);
        // Whether a gap was heard of, after which another is an overload.
        let mut had_gap = false;
        for turn in 0..50 {
            let others = if dice.below(4) == 0 {
                Others::default()
            } else {
                Others { rate: dice.spread(0.1, 1e4), count: 1 + dice.below(7) as u32 }
            };
            let before = pair.ours("base_rate_bps") / 1e6;
            let their_before = value(pair.theirs.base);
            // One step is compared, from states that are equal but for what earlier steps rounded.
            assert!((their_before - before).abs() <= 1e-5 * before, "{name}: {their_before} is not {before}");
            phases[pair.theirs.phase as usize] += 1;
            if turn == 0 {
                // The first acknowledgement starts theirs, the first packet ours.
                let path = pair.path();
                let mut group = Group { used: (2 << others.count) - 1, ..Group::default() };
                for member in &mut group.members[1..=others.count as usize] {
                    member.law[0] = real(others.rate / f64::from(others.count));
                    member.idle_us = path.now_us + 1_000_000;
                }
                controller.ack(&mut *pair.theirs, &mut group, &path);
                assert_eq!(pair.theirs.others_count, u64::from(others.count));
            }
            let shown = Interval::draw(&mut dice, pair.rate().min(before));
            let epoch = pair.theirs.epoch;
            let gap =
                heeds_gaps && pair.theirs.phase != AscentState::SLOW_START && shown.is_overload() && !shown.scattered;
            let repeated = gap && !had_gap;
            had_gap = shown.is_overload() && (had_gap || gap);
            pair.interval(shown, index, others);
            let goes_on = pair.theirs.phase == AscentState::PROBING && pair.theirs.epoch == epoch;
            if goes_on {
                // The next one has begun before this one is known, which alone is repeated if it tested nothing.
                let next = left.first().copied().unwrap_or(index);
                let counts = !repeated && (shown.filled || heeds_bursts && shown.cut_short);
                if !counts {
                    left.push(index);
                    left.sort_unstable();
                }
                left.retain(|other| *other != next);
                index = next;
            } else {
                (index, left) = (0, vec![1, 2, 3]);
            }
            pair.compare(name, before, their_before, goes_on, &mut worst);
        }
    }
    println!(
        "{name} {params:?}: {} comparisons, largest deviation {:.2e}, phases {phases:?}",
        worst.steps, worst.error
    );
}

/// Sets what has another default in Rust: the first choice.
fn as_rust(controller: &PacedController) {
    for name in ["slow_start", "low", "brake", "queue", "bursts", "timeout"] {
        controller.set(name, 0);
    }
}

/// What is left of the rate when a path is heard again after a timeout.
fn silences(controller: &PacedController) {
    controller.set("timeout", 1);
    let rows = ascent::parameters(mpcc::LATENCY);
    let mut dice = Dice::new(11);
    for turn in 0..10_000 {
        // Half of the lesser is below what silence leaves.
        let (ppm, initial) = if turn < 5_000 { (4_000_000, "4") } else { (300_000, "0.3") };
        controller.set("initial_ppm", ppm);
        let spec = AlgorithmSpec::named("mpcc-latency").with("timeout", "backoff").with("slow-start", "tolerant");
        let spec = spec.with("initial", initial);
        let mut pair = Pair::new(ascent::config(&Params::new(&spec, &rows).unwrap()).unwrap(), controller, 1);
        let acknowledged = |pair: &mut Pair<'_>| {
            let path = pair.path();
            controller.ack(&mut *pair.theirs, &mut Group { used: 3, ..Group::default() }, &path);
        };
        // Slow start doubles now and then.
        acknowledged(&mut pair);
        for _ in 0..dice.below(12) {
            let shown =
                Interval { lost: 0, scattered: false, slope: 0.0, filled: true, app_limited: false, cut_short: false };
            pair.interval(shown, 0, Others::default());
        }
        pair.ours.on_event(pair.now, &Event::Timeout { repeated: false }, &pair.view, Others::default());
        let path = pair.path();
        controller.timeout(&mut *pair.theirs, &mut Group::default(), &path);
        pair.now += Duration::from_secs_f64(dice.spread(0.001, 100.0));
        pair.ours.on_event(pair.now, &Event::Restored, &pair.view, Others::default());
        acknowledged(&mut pair);
        let (ours, theirs) = (pair.ours("base_rate_bps") / 1e6, value(pair.theirs.base));
        assert!((ours / theirs - 1.0).abs() < 1e-5, "{ours} is not {theirs}");
    }
}

/// Base rate after a burst of half an interval in a phase, and the rate at which it was sent, Mbit/s: round trips grow by `slope`, and the last
/// acknowledgement comes `late_us` microseconds late.
fn after_a_burst(controller: &PacedController, phase: u32, slope: f64, late_us: u64) -> (f64, f64) {
    const PACKETS: u64 = 60;
    let mut state = AscentState { phase, base: real(20.0), ..AscentState::NEW };
    let mut group = Group { used: 3, ..Group::default() };
    let (begin_us, srtt_us) = (1_000_000, (SRTT.as_nanos() / 1000) as u32);
    let start = PathView { now_us: begin_us, srtt_us, mss: MSS as u32, random: 1, ..PathView::default() };
    controller.ack(&mut state, &mut group, &start);
    let rate = value(state.rate);
    let gap_us = (MSS * 8) as f64 / rate;
    let sent_at = |packet: u64| begin_us + (packet as f64 * gap_us) as u64;
    for packet in 0..PACKETS {
        let after_us = sent_at(packet) - begin_us;
        let late_us = if packet + 1 == PACKETS { late_us } else { 0 };
        let rtt_us = u64::from(srtt_us) + (slope * after_us as f64) as u64 + late_us;
        let now_us = sent_at(packet) + rtt_us;
        let sent = (0..PACKETS).filter(|&other| sent_at(other) <= now_us).count() as u64;
        let path = PathView {
            now_us,
            bytes_sent: sent * MSS,
            segs_out: sent as u32,
            in_flight: (sent - packet - 1) as u32,
            sent_at_us: sent_at(packet),
            rtt_us: rtt_us as u32,
            backlogged: u32::from(sent < PACKETS),
            delivered: 1,
            arrived: (packet + 1) as u32,
            ..start
        };
        controller.ack(&mut state, &mut group, &path);
    }
    (value(state.base), rate)
}

/// A burst that fills a queue lowers the rate to what the path carried.
fn bursts(controller: &PacedController) {
    for late_us in [0, 25_000] {
        for phase in [AscentState::SLOW_START, AscentState::MOVING] {
            let (base, rate) = after_a_burst(controller, phase, 0.6, late_us);
            assert!((base / (rate / 1.6) - 1.0).abs() < 1e-2, "{phase}: {base} after {rate}, {late_us} us late");
        }
    }
    let left = |phase, slope, late_us| after_a_burst(controller, phase, slope, late_us).0;
    assert!((left(AscentState::MOVING, 0.2, 25_000) - 20.0).abs() < 1e-9);
    assert!((left(AscentState::SLOW_START, 0.4, 25_000) - 20.0).abs() < 1e-9);
    assert!((left(AscentState::MOVING, 3.0, 0) - 10.0).abs() < 1e-9);
}

#[test]
fn mpcc_loss() {
    // SAFETY: its tunables are set by this test only, before any step.
    let controller = unsafe { &mp_mpcc_loss };
    as_rust(controller);
    walk("mpcc-loss", controller, mpcc::LOSS, &[]);
    // A moment without delivery is no overload.
    controller.set("brake", 2);
    walk("mpcc-loss", controller, mpcc::LOSS, &[("brake", "lasting")]);
    // What silence leaves is more than the smallest rate.
    controller.set("brake", 1);
    controller.set("min_rate_ppm", 50_000);
    walk("mpcc-loss", controller, mpcc::LOSS, &[("brake", "any"), ("min-rate", "0.05")]);
    controller.set("min_rate_ppm", 200_000);
    // The other choice of each parameter, and other numbers, at once.
    for (name, value) in [
        ("slow_start", 1),
        ("low", 1),
        ("steps", 1),
        ("leave", 1),
        ("publish", 1),
        ("brake", 1),
        ("queue", 1),
        ("bursts", 1),
        ("units", 1),
        ("swing", 3),
        ("omega_ppm", 20_000),
        ("theta_ppm", 3_000_000),
        ("bound_step_ppm", 100_000),
        ("min_step_ppm", 0),
    ] {
        controller.set(name, value);
    }
    let params = [
        ("slow-start", "release"),
        ("low", "half"),
        ("steps", "paper"),
        ("leave", "last"),
        ("publish", "decision"),
        ("brake", "any"),
        ("queue", "heeded"),
        ("bursts", "heeded"),
        ("units", "bytes"),
        ("swing", "3"),
        ("omega", "0.02"),
        ("theta", "3"),
        ("bound-step", "0.1"),
        ("min-step", "0"),
    ];
    walk("mpcc-loss", controller, mpcc::LOSS, &params);
}

#[test]
fn mpcc_latency() {
    // SAFETY: as above.
    let controller = unsafe { &mp_mpcc_lat };
    as_rust(controller);
    walk("mpcc-latency", controller, mpcc::LATENCY, &[]);
    controller.set("slow_start", 2);
    walk("mpcc-latency", controller, mpcc::LATENCY, &[("slow-start", "tolerant")]);
    controller.set("queue", 1);
    walk("mpcc-latency", controller, mpcc::LATENCY, &[("slow-start", "tolerant"), ("queue", "heeded")]);
    controller.set("low", 2);
    walk(
        "mpcc-latency",
        controller,
        mpcc::LATENCY,
        &[("slow-start", "tolerant"), ("queue", "heeded"), ("low", "near")],
    );
    controller.set("bursts", 1);
    walk(
        "mpcc-latency",
        controller,
        mpcc::LATENCY,
        &[("slow-start", "tolerant"), ("queue", "heeded"), ("low", "near"), ("bursts", "heeded")],
    );
    controller.set("brake", 2);
    walk(
        "mpcc-latency",
        controller,
        mpcc::LATENCY,
        &[("slow-start", "tolerant"), ("queue", "heeded"), ("low", "near"), ("bursts", "heeded"), ("brake", "lasting")],
    );
    bursts(controller);
    silences(controller);
}

#[test]
fn windows_of_short_round_trips_have_room_for_what_is_sent_at_once() {
    // SAFETY: what is asked for depends on no tunables.
    let controller = unsafe { &mp_mpcc_lat };
    let mut state = AscentState { rate: real(1_000.0), ..AscentState::NEW };
    let mut window = |srtt_us| {
        let path = PathView { srtt_us, mss: MSS as u32, ..PathView::default() };
        controller.limits(&mut state, &path).1
    };
    // Two round trips of a gigabit per second: 125 bytes a microsecond.
    assert_eq!(window(40_000), 2 * 40_000 * 125 / MSS + 1);
    // Half of it is what TCP sends at once, the bytes of a millisecond.
    assert_eq!(window(100), 2 * 1_000 * 125 / MSS + 1);
}
