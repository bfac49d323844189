//! NMCC, normalized multipath congestion control (Thomas et al., ToN 2020), its extension e-NMCC, and e-NMCC+ as TCCC
//! s5.2 evaluates it.
//!
//! NMCC normalises how fast throughput grows: all subflows together grow as one TCP on the path with the shortest round trip.
//! e-NMCC also normalises how much a loss takes; e-NMCC+ decouples subflows that do not share a bottleneck.
//!
//! The paper could be read only in its abstract; the rules are those of TCCC's Table II, whose `phi` for e-NMCC is
//! printed with a last factor `(sum x_k^2)^2` that must be `(sum x_k)^2`. TCCC notes that e-NMCC's real response to loss
//! is "more involved": what is here is its fluid model.

use manypath_core::{SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::event::Event;
use crate::sbd::Detector;

/// The rules of NMCC and its extensions.
#[derive(Clone, Debug)]
pub struct Nmcc {
    /// Whether losses are normalised too (e-NMCC).
    extended: bool,
    /// Finds out which subflows share a bottleneck (e-NMCC+); without it all are taken to.
    detector: Option<Detector>,
}

impl Nmcc {
    /// NMCC.
    pub const fn plain() -> Self {
        Self { extended: false, detector: None }
    }

    /// e-NMCC; e-NMCC+ with a detector.
    pub const fn extended(detector: Option<Detector>) -> Self {
        Self { extended: true, detector }
    }

    /// The counting subflows coupled with `id`: all that are not known to have another bottleneck.
    fn coupled<'a>(&'a self, id: SubflowId, windows: &'a Windows) -> impl Iterator<Item = &'a Window> {
        let apart = move |other| self.detector.as_ref().is_some_and(|held| held.share(id, other) == Some(false));
        windows.counting().filter(move |(other, _)| !apart(*other)).map(|(_, window)| window)
    }
}

/// The divisor of growth: `sum(1/rtt^2) / max(1/rtt^2)` (spec: m).
fn normaliser<'a>(windows: impl Iterator<Item = &'a Window>) -> f64 {
    let (sum, largest) = windows.fold((0.0, 0.0_f64), |(sum, largest), window| {
        let inverse = 1.0 / (window.rtt * window.rtt);
        (sum + inverse, largest.max(inverse))
    });
    sum / largest
}

impl Law for Nmcc {
    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // TCCC Table II: 1/(m w_r).
        1.0 / (normaliser(self.coupled(id, windows)) * own.cwnd)
    }

    fn decrease(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        if !self.extended {
            return own.cwnd / 2.0;
        }
        // TCCC Table II: w_r/2 (sum x)^2/sum x^2. May exceed the window; the frame keeps a packet.
        let rates = self.coupled(id, windows).fold((0.0, 0.0), |(sum, squares), window| {
            let rate = window.rate();
            (sum + rate, squares + rate * rate)
        });
        own.cwnd / 2.0 * rates.0 * rates.0 / rates.1
    }

    fn slow_start(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // The same normalisation; before anything is measured there is nothing to normalise by. Coupled whatever the
        // bottlenecks: TCCC s5.2 decouples congestion avoidance only.
        if own.counts() { 1.0 / normaliser(windows.counting().map(|(_, window)| window)) } else { 1.0 }
    }

    fn left(&mut self, id: SubflowId, _windows: &mut Windows) {
        if let Some(detector) = &mut self.detector {
            detector.forget(id);
        }
    }

    fn observe(&mut self, _now: Time, id: SubflowId, event: &Event, _windows: &mut Windows, _view: &View) {
        if let (Some(detector), Event::PathReport(report)) = (&mut self.detector, event) {
            detector.on_report(id, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, decreases, increases, windows};

    #[test]
    fn one_subflow_is_reno() {
        let windows = windows(&[(10.0, 0.1)]);
        close(increases(&mut Nmcc::extended(None), &windows)[0], 0.1);
        close(decreases(&mut Nmcc::extended(None), &windows)[0], 5.0);
    }

    #[test]
    fn growth_is_normalised() {
        // 1/rtt^2 = (100, 25): m = 125/100 = 1.25. 1/(1.25*10) = 0.08; 1/(1.25*20) = 0.04.
        let windows = windows(&[(10.0, 0.1), (20.0, 0.2)]);
        let found = increases(&mut Nmcc::plain(), &windows);
        close(found[0], 0.08);
        close(found[1], 0.04);
        let own = windows.get(SubflowId(1)).unwrap();
        close(Nmcc::plain().slow_start(SubflowId(1), own, &windows), 0.8);
        // What has measured nothing has nothing to normalise by.
        close(Nmcc::plain().slow_start(SubflowId(2), &Window::new(1000.0, 10.0, None), &windows), 1.0);
    }

    #[test]
    fn reductions_are_normalised() {
        // x = (100, 300): (400)^2/(10000 + 90000) = 1.6: 10/2*1.6 = 8; 30/2*1.6 = 24. NMCC halves.
        let windows = windows(&[(10.0, 0.1), (30.0, 0.1)]);
        let found = decreases(&mut Nmcc::extended(None), &windows);
        close(found[0], 8.0);
        close(found[1], 24.0);
        close(decreases(&mut Nmcc::plain(), &windows)[1], 15.0);
    }

    #[test]
    fn subflows_with_other_bottlenecks_are_left_out() {
        let mut detector = Detector::Delays(crate::sbd::Delays::default());
        for _ in 0..60 {
            for id in 0..2 {
                let report = crate::PathReport {
                    samples: 10,
                    interval: manypath_core::Duration::from_millis(350),
                    mean_delay: 0.1,
                    skew_base: 8,
                    var_base: 0.1,
                    lost: 0,
                    marked: 0,
                };
                detector.on_report(SubflowId(id), &report);
            }
        }
        let mut windows = windows(&[(10.0, 0.1), (20.0, 0.2)]);
        let mut nmcc = Nmcc::extended(Some(detector));
        let found = increases(&mut nmcc, &windows);
        close(found[0], 0.1);
        close(found[1], 0.05);
        // Of another with the number of one that left nothing is known.
        nmcc.left(SubflowId(1), &mut windows);
        close(increases(&mut nmcc, &windows)[0], 0.08);
    }
}
