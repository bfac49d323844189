//! The controllers of the registry, one at a time, driven event by event.

use std::sync::{Mutex, MutexGuard, PoisonError};

use manypath_cc::{CongestionControl, Event as Fact, Probe};
use manypath_core::{
    AlgorithmSpec, Bytes, Ewma, RttEstimator, SpecError, SubflowId, SubflowState, SubflowView as CoreView, Time, View,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::event::Event;
use super::view::{Limits, SubflowInit, SubflowView};
use crate::{error, quantity};

/// Ids of subflows are below this, as in a session.
const MOST_SUBFLOWS: u32 = 64;
/// The window before anything is known, packets (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Weight of a packet in the share that is lost, as in a session.
const LOSS_WEIGHT: f64 = 0.01;

/// A congestion controller: facts in, limits out. It keeps a simple view of its subflows from the events that it is told:
/// what is in flight and delivered, round-trip times, loss, recovery, and its own limits. Where a session knows more, give
/// `view`, with all subflows that have joined.
#[pyclass(frozen, module = "manypath.cc")]
#[derive(Debug)]
pub(crate) struct Controller {
    /// Name with parameters.
    #[pyo3(get)]
    name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    controller: Box<dyn CongestionControl>,
    /// When it was told something last.
    now: Time,
    view: View,
    kept: Vec<Kept>,
}

/// What the view of a subflow is made from.
#[derive(Debug)]
struct Kept {
    rtt: RttEstimator,
    loss: Ewma,
}

/// Makes a controller: a name, alone or with parameters, as in scenarios. `seed` is that of its own randomness.
#[pyfunction]
#[pyo3(signature = (name, seed=1))]
pub(crate) fn create(name: &str, #[pyo3(from_py_with = quantity::seed)] seed: u64) -> PyResult<Controller> {
    let spec: AlgorithmSpec = name.parse().map_err(|source: SpecError| error::algorithm(&source))?;
    let controller = manypath_cc::create(&spec, seed).map_err(|source| error::algorithm(&source))?;
    let state = State { controller, now: Time::ZERO, view: View::default(), kept: Vec::new() };
    Ok(Controller { name: spec.to_string(), state: Mutex::new(state) })
}

impl Controller {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, unless a controller has a bug.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Controller {
    /// A subflow joins. Ids count from zero, and one that was removed may join again.
    #[pyo3(signature = (now_s, id, init=None))]
    fn add_subflow(&self, now_s: f64, id: u32, init: Option<&SubflowInit>) -> PyResult<()> {
        let mut state = self.state();
        let now = state.later(now_s)?;
        if id >= MOST_SUBFLOWS || id as usize > state.view.subflows.len() {
            let next = state.view.subflows.len();
            return Err(PyValueError::new_err(format!(
                "the next subflow is {next}, and there are {MOST_SUBFLOWS} at most"
            )));
        }
        if state.joined(id) {
            return Err(PyValueError::new_err(format!("subflow {id} has joined already")));
        }
        let usual = SubflowInit { mss_bytes: 1400, initial_window_bytes: 1400 * INITIAL_WINDOW, ssthresh_bytes: None };
        let init = init.copied().unwrap_or(usual);
        let fresh = CoreView::new(SubflowId(id), Bytes::new(init.mss_bytes));
        let kept = Kept { rtt: RttEstimator::new(), loss: Ewma::new(LOSS_WEIGHT) };
        if id as usize == state.view.subflows.len() {
            state.view.subflows.push(fresh);
            state.kept.push(kept);
        } else {
            state.view.subflows[id as usize] = fresh;
            state.kept[id as usize] = kept;
        }
        let init = manypath_cc::SubflowInit {
            mss: Bytes::new(init.mss_bytes),
            initial_window: Bytes::new(init.initial_window_bytes),
            ssthresh: init.ssthresh_bytes.map(Bytes::new),
        };
        state.now = now;
        state.controller.add_subflow(now, SubflowId(id), init);
        state.read_limits();
        Ok(())
    }

    /// A subflow is gone, with all it had in flight.
    fn remove_subflow(&self, now_s: f64, id: u32) -> PyResult<()> {
        let mut state = self.state();
        let now = state.later(now_s)?;
        state.check(id)?;
        state.now = now;
        state.view.subflows[id as usize].state = SubflowState::Closed;
        state.controller.remove_subflow(now, SubflowId(id));
        state.read_limits();
        Ok(())
    }

    /// Something happened on a subflow. `view` takes the place of what the controller keeps.
    #[pyo3(signature = (now_s, id, event, view=None))]
    fn on_event(&self, now_s: f64, id: u32, event: &Event, view: Option<Vec<SubflowView>>) -> PyResult<()> {
        let mut state = self.state();
        let now = state.later(now_s)?;
        let fact = event.fact(now)?;
        state.check(id)?;
        match view {
            Some(view) => state.take(&view)?,
            None => state.note(now, id, &fact),
        }
        state.now = now;
        let State { controller, view, .. } = &mut *state;
        controller.on_event(now, SubflowId(id), &fact, view);
        state.read_limits();
        Ok(())
    }

    /// How fast a subflow may send; a window of zero for one that has not joined.
    fn limits(&self, id: u32) -> Limits {
        self.state().controller.limits(SubflowId(id)).into()
    }

    /// When `on_timer` wants to be called at the latest; `None`: never.
    fn next_timer(&self) -> Option<f64> {
        self.state().controller.next_timer().map(Time::as_secs_f64)
    }

    /// The time of `next_timer` has come.
    #[pyo3(signature = (now_s, view=None))]
    fn on_timer(&self, now_s: f64, view: Option<Vec<SubflowView>>) -> PyResult<()> {
        let mut state = self.state();
        let now = state.later(now_s)?;
        if let Some(view) = view {
            state.take(&view)?;
        }
        state.now = now;
        let State { controller, view, .. } = &mut *state;
        controller.on_timer(now, view);
        state.read_limits();
        Ok(())
    }

    /// A subflow's internal values by name.
    fn inspect<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyDict>> {
        let mut values = Values(Vec::new());
        self.state().controller.inspect(SubflowId(id), &mut values);
        let dict = PyDict::new(py);
        for (name, value) in values.0 {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// Whether departures change anything.
    #[getter]
    fn hears_departures(&self) -> bool {
        self.state().controller.hears_departures()
    }

    /// Whether a congestion mark slows a subflow down.
    #[getter]
    fn answers_marks(&self) -> bool {
        self.state().controller.answers_marks()
    }

    /// What is kept of the subflows: a copy.
    #[getter]
    fn view(&self) -> Vec<SubflowView> {
        self.state().view.subflows.iter().map(SubflowView::of).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Controller {}>", self.name)
    }
}

impl State {
    fn joined(&self, id: u32) -> bool {
        self.view.get(SubflowId(id)).is_some_and(|view| view.state != SubflowState::Closed)
    }

    /// The time that the caller says it is: never before what it was.
    fn later(&self, now_s: f64) -> PyResult<Time> {
        let now = quantity::time("now_s", now_s)?;
        if now < self.now {
            let last = self.now.as_secs_f64();
            return Err(PyValueError::new_err(format!(
                "now_s is {now_s}, and was {last} before: time does not go back"
            )));
        }
        Ok(now)
    }

    fn check(&self, id: u32) -> PyResult<()> {
        if self.joined(id) { Ok(()) } else { Err(PyValueError::new_err(format!("subflow {id} has not joined"))) }
    }

    /// Takes a view that the caller gives: subflow `i` at place `i`.
    fn take(&mut self, view: &[SubflowView]) -> PyResult<()> {
        if view.iter().enumerate().any(|(place, one)| one.id as usize != place) {
            return Err(PyValueError::new_err("a view has the subflows in the order of their ids, from zero"));
        }
        let joined = self.kept.len();
        if view.len() != joined {
            return Err(PyValueError::new_err(format!(
                "a view of {} subflows, but {joined} have joined: it has all of them, those that were removed too",
                view.len()
            )));
        }
        self.view = View { subflows: view.iter().map(SubflowView::core).collect::<PyResult<_>>()? };
        Ok(())
    }

    /// Brings the view up to date with an event.
    fn note(&mut self, now: Time, id: u32, fact: &Fact) {
        let (view, kept) = (&mut self.view.subflows[id as usize], &mut self.kept[id as usize]);
        match *fact {
            Fact::Sent { bytes, app_limited, .. } => {
                view.in_flight += bytes;
                view.last_sent = Some(now);
                view.app_limited = app_limited;
            }
            Fact::Acked(acked) => {
                view.in_flight -= acked.bytes;
                view.delivered += acked.bytes;
                kept.rtt.on_sample(acked.rtt, manypath_core::Duration::ZERO);
                view.latest_rtt = acked.rtt;
                view.srtt = kept.rtt.srtt();
                view.rttvar = kept.rtt.rttvar();
                view.min_rtt = kept.rtt.min().unwrap_or(acked.rtt);
                view.max_rtt = kept.rtt.max();
                view.in_recovery &= acked.in_recovery;
                view.loss = kept.loss.update(0.0);
                if acked.delivery_rate.as_bps() > 0.0 {
                    view.delivery_rate = acked.delivery_rate;
                    view.rate_app_limited = acked.app_limited;
                }
            }
            Fact::Lost { bytes, .. } => {
                view.in_flight -= bytes;
                view.loss = kept.loss.update(1.0);
            }
            Fact::Congestion { .. } | Fact::Ecn { .. } => view.in_recovery = true,
            Fact::Timeout { .. } => {
                view.in_flight = Bytes::ZERO;
                view.in_recovery = false;
                view.state = SubflowState::Failed;
            }
            Fact::Restored => view.state = SubflowState::Active,
            _ => {}
        }
    }

    /// Puts the limits into the view.
    fn read_limits(&mut self) {
        for view in &mut self.view.subflows {
            let limits = self.controller.limits(view.id);
            view.cwnd = limits.cwnd;
            view.pacing = limits.pacing;
            view.ssthresh = limits.ssthresh.unwrap_or(Bytes::MAX);
        }
    }
}

/// Named values of a controller.
struct Values(Vec<(&'static str, f64)>);

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}
