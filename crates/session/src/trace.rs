//! The trace of scheduling decisions: who wants to know is told each one and why it was taken.

use core::fmt::Debug;

use manypath_core::{DataRange, SubflowId, Time};
use manypath_sched::{Choice, Queue};

/// Takes the decisions of one session's scheduler. It changes nothing about them, and should not hold up the caller.
pub trait Tracer: Debug + Send {
    /// A decision was taken.
    fn on_decision(&mut self, decision: &Traced);
}

/// Makes tracers for an engine's sessions.
pub trait TracerSource: Debug + Send + Sync {
    /// A tracer for a new session.
    fn tracer(&self) -> Box<dyn Tracer>;
}

/// A decision of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When.
    pub at: Time,
    /// What was decided.
    pub action: Action,
    /// Why, in the scheduler's words.
    pub reason: &'static str,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Data goes on a subflow for the first time.
    Send(SubflowId, DataRange),
    /// Lost data goes on a subflow again.
    Resend(SubflowId, DataRange),
    /// A copy of data under way goes on a subflow.
    Duplicate {
        /// Which carries the copy.
        subflow: SubflowId,
        /// Of what.
        range: DataRange,
        /// Who is penalised for holding it up.
        penalised: Option<SubflowId>,
    },
    /// A subflow is penalised for holding the window up.
    Penalise(SubflowId),
    /// Nothing is sent for now. Reported once, however often the scheduler is asked before it decides something else.
    Wait,
}

/// A session's tracer, and what it was told last.
#[derive(Debug)]
pub(crate) struct Trace {
    tracer: Box<dyn Tracer>,
    /// The reason of the wait that was reported last, unless something was decided since.
    waiting: Option<&'static str>,
}

impl Trace {
    pub(crate) fn new(tracer: Box<dyn Tracer>) -> Self {
        Self { tracer, waiting: None }
    }

    /// Reports a choice, before it is carried out.
    #[cold]
    pub(crate) fn report(&mut self, at: Time, choice: Choice, reason: &'static str, queue: &Queue) {
        let action = match choice {
            Choice::Send { subflow, range } if queue.segment_at(range.start).is_some() => {
                Action::Resend(subflow, range)
            }
            Choice::Send { subflow, range } => Action::Send(subflow, range),
            Choice::Duplicate { subflow, range, penalise } => Action::Duplicate { subflow, range, penalised: penalise },
            Choice::Penalise { subflow } => Action::Penalise(subflow),
            Choice::Wait if self.waiting == Some(reason) => return,
            Choice::Wait => Action::Wait,
        };
        self.waiting = (action == Action::Wait).then_some(reason);
        self.tracer.on_decision(&Traced { at, action, reason });
    }
}
