//! What docs/decisions/fixed-point.md compares: LIA's growth in numbers of several kinds, over states like those that one step is
//! tested from. Prints errors and times.

#![allow(clippy::print_stdout, reason = "what was measured")]
#![allow(clippy::cast_possible_truncation, reason = "rounding is what is measured")]

mod twin;

use std::hint::black_box;
use std::time::{Duration, Instant};

use twin::{Dice, MAX_SUBFLOWS, Twin, mp_lia, real};

const STATES: usize = 100_000;
const ONE: f64 = 4_294_967_296.0;

/// A window in packets and a round-trip time in 1/8 us, of each subflow.
type State = Vec<(u64, u64)>;

/// Windows of 2 to 100,000 packets, round-trip times of 100 us to 10 s.
fn states() -> Vec<State> {
    let mut dice = Dice::new(1);
    let subflow = |dice: &mut Dice| (dice.spread(2.0, 1e5) as u64, dice.spread(800.0, 8e7) as u64);
    let one =
        |dice: &mut Dice| (0..=dice.below(MAX_SUBFLOWS as u64)).take(MAX_SUBFLOWS).map(|_| subflow(dice)).collect();
    (0..STATES).map(|_| one(&mut dice)).collect()
}

/// RFC 6356 eq. 2 over the total window, without the bound of eq. 1.
fn exact(state: &State) -> f64 {
    let rates = state.iter().map(|(window, rtt)| (*window as f64 / *rtt as f64, *rtt as f64));
    let sum: f64 = rates.clone().map(|(rate, _)| rate).sum();
    rates.map(|(rate, rtt)| rate / rtt).fold(0.0, f64::max) / (sum * sum)
}

/// With `FRACTION` fractional bits in 64, times in us: each quotient is one number.
fn plain<const FRACTION: u32>(state: &State) -> f64 {
    let (mut best, mut sum) = (0u64, 0u64);
    for (window, rtt) in state {
        let rate = (window << FRACTION) / (rtt / 8);
        best = best.max(rate / (rtt / 8));
        sum += rate;
    }
    let square = ((u128::from(sum) * u128::from(sum)) >> FRACTION) as u64;
    let growth = (u128::from(best) << FRACTION).checked_div(u128::from(square)).unwrap_or(0);
    growth as f64 / f64::from(FRACTION).exp2()
}

/// Scales of this formula alone: quotients of round-trip times with 10 fractional bits, so that their squares fit, and the growth
/// with 32.
fn scaled(state: &State) -> f64 {
    let quality = |(window, rtt): &(u64, u64)| *window as f64 / (*rtt as f64 * *rtt as f64);
    let best = state.iter().max_by(|one, other| quality(one).total_cmp(&quality(other))).copied().unwrap_or((1, 1));
    let sum: u64 = state.iter().map(|(window, rtt)| (window << 10) * best.1 / rtt).sum();
    let square = (sum >> 4).saturating_mul(sum >> 4).max(1);
    // The square has 12 fractional bits: 20, less the 8 of the shifts.
    ((best.0 << 44) / square) as f64 / ONE
}

/// A subflow of the programs in this state.
fn twin_of(state: &State) -> Twin<()> {
    let mut twin = Twin::<()>::new();
    for (own, (window, rtt)) in state.iter().enumerate() {
        twin.group.used |= 1 << own;
        twin.group.members[own].window = real(*window as f64);
        twin.group.members[own].rtt = real(*rtt as f64);
        // Never idle.
        twin.group.members[own].idle_us = i64::MAX.cast_unsigned();
    }
    twin.sockets[0].cwnd = state[0].0 as u32;
    twin.sockets[0].ssthresh = 1;
    twin.sockets[0].srtt = state[0].1 as u32;
    twin
}

/// The programs' own, `real`, as the step that they take: it has the bound of eq. 1.
fn programs(twin: &mut Twin<()>) -> f64 {
    let before = twin.window_q32(0);
    // SAFETY: never written.
    twin.ack(unsafe { &mp_lia }, 0, 1, true);
    (twin.window_q32(0) - before) as f64 / ONE
}

/// What is compared: the state as a kind of numbers takes it, and the growth from it.
struct Kind<'a, P> {
    name: &'a str,
    prepare: fn(&State) -> P,
    growth: fn(&mut P) -> f64,
    /// Whether it has the bound of eq. 1.
    bounded: bool,
}

impl<P> Kind<'_, P> {
    /// Prints errors, and the time without the preparation. Returns the share of states with an error beyond 0.5%.
    fn row(&self, states: &[State]) -> f64 {
        let mut errors = Vec::new();
        let mut spent = Duration::ZERO;
        for states in states.chunks(1000) {
            let mut prepared: Vec<P> = states.iter().map(self.prepare).collect();
            let began = Instant::now();
            let found: Vec<f64> = prepared.iter_mut().map(|one| (self.growth)(black_box(one))).collect();
            spent += began.elapsed();
            errors.extend(states.iter().zip(found).map(|(state, found)| {
                let wanted = if self.bounded { exact(state).min(1.0 / state[0].0 as f64) } else { exact(state) };
                // What the last place of a window holds is lost to all of them.
                ((found - wanted).abs() - 2.0 / ONE).max(0.0) / wanted
            }));
        }
        errors.sort_by(f64::total_cmp);
        let nanoseconds = spent.as_nanos() / states.len() as u128;
        let beyond = errors.iter().filter(|error| **error > 0.005).count() as f64 / errors.len() as f64;
        let at = |share: usize| errors[(errors.len() - 1) * share / 100];
        let name = self.name;
        println!("| {name} | {:.1e} | {:.1e} | {:.1}% | {nanoseconds} |", at(50), at(100), 100.0 * beyond);
        beyond
    }
}

#[test]
fn growth_in_numbers_of_several_kinds() {
    let states = states();
    println!("| numbers | median error | largest | beyond 0.5% | ns |\n|---|---:|---:|---:|---:|");
    let plain_16 = |state: &mut State| plain::<16>(state);
    let plain_32 = |state: &mut State| plain::<32>(state);
    Kind { name: "16 fractional bits", prepare: State::clone, growth: plain_16, bounded: false }.row(&states);
    Kind { name: "32 fractional bits", prepare: State::clone, growth: plain_32, bounded: false }.row(&states);
    let of_formula = |state: &mut State| scaled(state);
    Kind { name: "scales of the formula", prepare: State::clone, growth: of_formula, bounded: false }.row(&states);
    let beyond = Kind { name: "`real`", prepare: twin_of, growth: programs, bounded: true }.row(&states);
    assert!(beyond <= 0.0, "the programs' own numbers are off by more than 0.5% in some states");
}
