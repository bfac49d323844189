//! OLIA, the Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05; Khalili et al., ToN 2013).
//!
//! A term that is optimal for resource pooling, and one that moves windows from the largest to the best paths.

use manypath_core::{Params, SpecError, SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;
use crate::event::Event;

/// How the quality of a path is estimated from `l`, the bytes between losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// `l / rtt^2`: the square of the rate TCP would have, as the draft argues and the kernel does.
    #[default]
    Rate,
    /// `l^2 / rtt`, as draft-05 prints it.
    Printed,
}

impl Quality {
    /// Reads the parameter of the registry row.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("quality", &[("rate", Self::Rate), ("printed", Self::Printed)])
    }
}

/// Bytes acknowledged on a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Distance {
    /// Between its last two losses (spec: l1).
    before: f64,
    /// Since its last loss (spec: l2).
    since: f64,
}

/// OLIA's increase rule.
#[derive(Clone, Debug, Default)]
pub struct Olia {
    quality: Quality,
    /// By subflow id.
    distances: Vec<Distance>,
}

impl Olia {
    /// The rule with nothing acknowledged yet.
    pub const fn new(quality: Quality) -> Self {
        Self { quality, distances: Vec::new() }
    }

    fn quality(&self, id: SubflowId, window: &Window) -> f64 {
        let distance = self.distances.get(id.index()).copied().unwrap_or_default();
        let l = distance.before.max(distance.since);
        match self.quality {
            Quality::Rate => l / (window.rtt * window.rtt),
            Quality::Printed => l * l / window.rtt,
        }
    }

    /// The draft's `alpha_r`: positive on the best paths that do not have the largest window, negative on the largest
    /// windows if there are such paths; the sum is zero.
    fn alpha(&self, own: SubflowId, windows: &Windows) -> f64 {
        let (mut best, mut largest, mut n) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0);
        for (id, window) in windows.counting() {
            best = best.max(self.quality(id, window));
            largest = largest.max(window.cwnd);
            n += 1.0;
        }
        let (mut collected, mut maximal) = (0.0, 0.0);
        let (mut own_collected, mut own_maximal) = (false, false);
        for (id, window) in windows.counting() {
            let is_largest = window.cwnd >= largest;
            let is_collected = self.quality(id, window) >= best && !is_largest;
            collected += f64::from(is_collected);
            maximal += f64::from(is_largest);
            if id == own {
                (own_collected, own_maximal) = (is_collected, is_largest);
            }
        }
        if own_collected {
            1.0 / (n * collected)
        } else if own_maximal && collected > 0.0 {
            -1.0 / (n * maximal)
        } else {
            0.0
        }
    }
}

impl Law for Olia {
    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        let sum = windows.total_rate();
        own.rate() / own.rtt / (sum * sum) + self.alpha(id, windows) / own.cwnd
    }

    fn joined(&mut self, id: SubflowId, _windows: &mut Windows) {
        if self.distances.len() <= id.index() {
            self.distances.resize(id.index() + 1, Distance::default());
        }
        self.distances[id.index()] = Distance::default();
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, _windows: &mut Windows, _view: &View) {
        let Some(distance) = self.distances.get_mut(id.index()) else { return };
        match event {
            Event::Acked(acked) => distance.since += acked.bytes.as_f64(),
            Event::Congestion { .. } | Event::Ecn { .. } | Event::Timeout { repeated: false } => {
                *distance = Distance { before: distance.since, since: 0.0 };
            }
            _ => {}
        }
    }

    fn inspect(&self, id: SubflowId, windows: &Windows, out: &mut dyn Probe) {
        out.value("alpha", self.alpha(id, windows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, increases, windows};

    fn olia(distances: &[f64]) -> Olia {
        let distance = |&before: &f64| Distance { before, since: 0.0 };
        Olia { quality: Quality::Rate, distances: distances.iter().map(distance).collect() }
    }

    #[test]
    fn one_subflow_is_reno() {
        close(increases(&mut olia(&[5.0]), &windows(&[(10.0, 0.1)]))[0], 0.1);
    }

    #[test]
    fn windows_move_to_the_best_path() {
        // w = (20, 10), rtt 0.1: first term w/rtt^2/(300)^2 = (2000, 1000)/90000.
        // l = (100, 400): path 1 is best, path 0 is largest: alpha = (-1/2, +1/2).
        let found = increases(&mut olia(&[100.0, 400.0]), &windows(&[(20.0, 0.1), (10.0, 0.1)]));
        close(found[0], 2000.0 / 90_000.0 - 0.5 / 20.0);
        close(found[1], 1000.0 / 90_000.0 + 0.5 / 10.0);
    }

    #[test]
    fn nothing_moves_when_the_best_path_has_the_largest_window() {
        let found = increases(&mut olia(&[400.0, 100.0]), &windows(&[(20.0, 0.1), (10.0, 0.1)]));
        close(found[0], 2000.0 / 90_000.0);
        close(found[1], 1000.0 / 90_000.0);
    }

    #[test]
    fn a_timeout_that_says_nothing_new_leaves_what_was_acknowledged_between_losses() {
        let (mut olia, mut windows) = (olia(&[100.0]), windows(&[(10.0, 0.1)]));
        for (repeated, before) in [(true, 100.0), (false, 0.0)] {
            olia.observe(Time::ZERO, SubflowId(0), &Event::Timeout { repeated }, &mut windows, &View::default());
            close(olia.distances[0].before, before);
        }
    }

    #[test]
    fn the_two_readings_of_quality_differ() {
        // rtt = (0.01, 0.1), l = (10, 40): l/rtt^2 = (100000, 4000); l^2/rtt = (10000, 16000).
        let windows = windows(&[(10.0, 0.01), (20.0, 0.1)]);
        let mut rate = olia(&[10.0, 40.0]);
        close(rate.alpha(SubflowId(0), &windows), 0.5);
        rate.quality = Quality::Printed;
        close(rate.alpha(SubflowId(0), &windows), 0.0);
    }

    #[test]
    fn a_loss_shifts_the_distances() {
        let mut olia = olia(&[]);
        let (mut windows, view) = (windows(&[(10.0, 0.1)]), View::default());
        olia.joined(SubflowId(0), &mut windows);
        let ack = crate::aimd::tests::acked(manypath_core::Duration::from_millis(1));
        let loss = Event::Congestion { sent_at: Time::ZERO };
        for event in [&ack, &ack, &loss, &ack] {
            olia.observe(Time::ZERO, SubflowId(0), event, &mut windows, &view);
        }
        close(olia.distances[0].before, 2000.0);
        close(olia.distances[0].since, 1000.0);
        // The number of one that has left is another's.
        olia.joined(SubflowId(0), &mut windows);
        close(olia.distances[0].before + olia.distances[0].since, 0.0);
    }
}
