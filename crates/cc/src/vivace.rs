//! PCC Vivace (Dong et al., NSDI 2018): gradient ascent on a utility of the own rate.
//!
//! The ascent is that of [`crate::ascent`] without others: with MPCC's steps and weights it is MPCC with one subflow. Defaults
//! are the paper's: the latency-aware utility (`b = 900`), the confidence amplifier `m`, and a bound that widens by a tenth.

use manypath_core::{SubflowView, Time};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::ascent::{Ascent, Config, Defaults, Others};
use crate::controller::{Limits, PathController, Probe, SubflowInit};
use crate::event::Event;

/// Defaults of `vivace` (Vivace s4: b = 900, omega_0 = 0.05, delta = 0.1; no smallest step, no swing buffer).
pub const DEFAULTS: Defaults =
    Defaults { latency_weight: "900", steps: "paper", bound_step: "0.1", min_step: "0", swing: "0" };

/// Vivace for one subflow.
#[derive(Clone, Debug)]
pub struct Vivace(Ascent);

impl Vivace {
    /// A subflow in slow start.
    pub fn new(config: Config, random: Xoshiro256PlusPlus, init: SubflowInit) -> Self {
        Self(Ascent::new(config, random, init))
    }
}

impl PathController for Vivace {
    fn on_event(&mut self, now: Time, event: &Event, view: &SubflowView) {
        self.0.on_event(now, event, view, Others::default());
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn next_timer(&self) -> Option<Time> {
        self.0.next_timer()
    }

    fn on_timer(&mut self, now: Time, _view: &SubflowView) {
        self.0.on_timer(now, Others::default());
    }

    fn inspect(&self, out: &mut dyn Probe) {
        self.0.inspect(out);
    }
}
