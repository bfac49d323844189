//! Controllers written in Python, as the simulator runs them.
//!
//! Each call takes the interpreter lock. Limits and timers, which the session asks for often, are read once after each call
//! that may change them. What Python raises is kept, ends the run, and is raised by `simulate`: from then on Python is not
//! called again and the last limits stay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use manypath_cc::{CongestionControl, Event as Fact, Limits as CoreLimits, Probe};
use manypath_core::{SubflowId, Time, View};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::event::Event;
use super::view::{Limits, SubflowInit, SubflowView};

/// How many names of internal values are kept; they are kept for the life of the process.
const MOST_NAMES: usize = 4096;

/// What Python raised first in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.held().is_some()
    }

    pub(crate) fn set(&self, raised: PyErr) {
        self.held().get_or_insert(raised);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.held().take()
    }
}

/// A controller written in Python.
#[derive(Debug)]
pub(crate) struct Written {
    object: Py<PyAny>,
    failure: Failure,
    hears_departures: bool,
    answers_marks: bool,
    limits: BTreeMap<SubflowId, CoreLimits>,
    next_timer: Option<Time>,
}

impl Written {
    /// Takes an object with the methods of `manypath.cc.CongestionControl`.
    pub(crate) fn new(object: Bound<'_, PyAny>, failure: Failure) -> PyResult<Self> {
        let hears_departures = object.getattr("hears_departures")?.is_truthy()?;
        let answers_marks = object.getattr("answers_marks")?.is_truthy()?;
        let (object, limits) = (object.unbind(), BTreeMap::new());
        Ok(Self { object, failure, hears_departures, answers_marks, limits, next_timer: None })
    }

    /// Calls Python, unless it has failed already, and reads the timer and the limits of `changed`, or of all.
    fn call(&mut self, changed: Option<SubflowId>, method: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        if self.failure.is_set() {
            return;
        }
        let done = Python::attach(|py| {
            let object = self.object.bind(py).clone();
            method(&object)?;
            let timer: Option<f64> = object.call_method0("next_timer")?.extract()?;
            self.next_timer = timer.map(Time::from_secs_f64);
            let all: Vec<SubflowId> = changed.map_or_else(|| self.limits.keys().copied().collect(), |id| vec![id]);
            for id in all {
                let limits: Limits = object.call_method1("limits", (id.0,))?.extract()?;
                self.limits.insert(id, limits.into());
            }
            Ok(())
        });
        if let Err(raised) = done {
            self.failure.set(raised);
        }
    }
}

/// The view as a list for Python.
fn listed(view: &View) -> Vec<SubflowView> {
    view.subflows.iter().map(SubflowView::of).collect()
}

impl CongestionControl for Written {
    fn add_subflow(&mut self, now: Time, id: SubflowId, init: manypath_cc::SubflowInit) {
        self.limits.insert(id, CoreLimits::NONE);
        self.call(None, |object| {
            let init = SubflowInit {
                mss_bytes: init.mss.get(),
                initial_window_bytes: init.initial_window.get(),
                ssthresh_bytes: init.ssthresh.map(manypath_core::Bytes::get),
            };
            object.call_method1("add_subflow", (now.as_secs_f64(), id.0, init)).map(drop)
        });
    }

    fn remove_subflow(&mut self, now: Time, id: SubflowId) {
        self.limits.remove(&id);
        self.call(None, |object| object.call_method1("remove_subflow", (now.as_secs_f64(), id.0)).map(drop));
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Fact, view: &View) {
        let Some(event) = Event::of(event) else { return };
        if self.limits.contains_key(&id) {
            self.call(Some(id), |object| {
                object.call_method1("on_event", (now.as_secs_f64(), id.0, event, listed(view))).map(drop)
            });
        }
    }

    fn hears_departures(&self) -> bool {
        self.hears_departures
    }

    fn answers_marks(&self) -> bool {
        self.answers_marks
    }

    fn limits(&self, id: SubflowId) -> CoreLimits {
        self.limits.get(&id).copied().unwrap_or(CoreLimits::NONE)
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_timer.filter(|_| !self.failure.is_set())
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        self.call(None, |object| object.call_method1("on_timer", (now.as_secs_f64(), listed(view))).map(drop));
        if self.next_timer.is_some_and(|next| next <= now) {
            // Time would stand still.
            let said = format!("next_timer() after on_timer({}) is not later", now.as_secs_f64());
            self.failure.set(PyValueError::new_err(said));
        }
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        if self.failure.is_set() {
            return;
        }
        let values = Python::attach(|py| -> PyResult<BTreeMap<String, f64>> {
            self.object.bind(py).call_method1("inspect", (id.0,))?.extract()
        });
        match values {
            Ok(values) => {
                values.iter().filter_map(|(name, value)| Some((lasting(name)?, *value))).for_each(|(name, value)| {
                    out.value(name, value);
                })
            }
            Err(raised) => self.failure.set(raised),
        }
    }
}

/// A name that lives as long as the process, each kept once; `None` when there are too many of them.
fn lasting(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(held) = names.get(name) {
        return Some(held);
    }
    if names.len() >= MOST_NAMES {
        return None;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name.to_owned(), kept);
    Some(kept)
}
