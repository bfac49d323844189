//! The trait of schedulers.

use core::fmt::Debug;

use manypath_core::{Bytes, DataRange, SubflowId, Time, View};

use crate::queue::Queue;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Send pending data (unsent, or lost and to be sent again) on a subflow.
    Send {
        /// The subflow; it must be usable and have room.
        subflow: SubflowId,
        /// The data: a range that [`Queue::head`], [`Queue::unsent_from`] or [`Queue::lost_head`] offered.
        range: DataRange,
    },
    /// Send on a subflow a copy of data that another one already carries.
    Duplicate {
        /// The subflow that carries the copy; it must be usable and have room.
        subflow: SubflowId,
        /// The data: a range that [`Queue::copy_of`] offered.
        range: DataRange,
        /// A subflow to penalise for holding the data up: its controller is told.
        penalise: Option<SubflowId>,
    },
    /// Send nothing on account of this decision; a subflow is penalised for holding the window up: its controller is told.
    /// Ask again at once.
    Penalise {
        /// The subflow to penalise.
        subflow: SubflowId,
    },
    /// Send nothing now; ask again when something has changed.
    Wait,
}

/// What a data acknowledgement changed at the connection level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAck {
    /// How far the left edge of the window moved; zero for a duplicate.
    pub newly_acked: Bytes,
    /// The same in segments.
    pub segments: u32,
    /// The subflow that last carried the segment at the old left edge; `None` if the edge did not move.
    pub left_edge_subflow: Option<SubflowId>,
    /// Whether that segment had been sent more than once.
    pub left_edge_retransmitted: bool,
    /// How many segments one data acknowledgement covers at most when nothing is missing: 2 with delayed acknowledgements, more where
    /// they keep an interval.
    pub segments_per_ack: u32,
}

/// A packet scheduler for all subflows of a connection.
pub trait Scheduler: Debug + Send {
    /// The next thing to do. Called again until it waits; state may only depend on what is passed in.
    fn pick(&mut self, now: Time, view: &View, queue: &Queue) -> Choice;

    /// A data acknowledgement came.
    fn on_data_ack(&mut self, _now: Time, _ack: &DataAck, _view: &View) {}

    /// A subflow has lost its copy of a range, or had it taken back before it left: it carries that no more.
    fn on_lost(&mut self, _id: SubflowId, _range: DataRange) {}

    /// How much unsent data matters to its decisions beside what the windows take, as far as an application has it: the send
    /// buffer has to hold that too.
    fn looks_ahead(&self, _view: &View) -> Bytes {
        Bytes::ZERO
    }

    /// When it wants to be asked again after it waited, though nothing happens until then.
    fn asks_at(&self) -> Option<Time> {
        None
    }

    /// A subflow was removed: whoever is given its id next is another one.
    fn remove_subflow(&mut self, _id: SubflowId) {}

    /// Why the last [`pick`](Self::pick) chose as it did, in a few fixed words, for the trace of decisions.
    fn reason(&self) -> &'static str;

    /// Reports a subflow's internal values by name, in the unit the name ends with (none for pure numbers); for traces,
    /// never for control.
    fn inspect(&self, _id: SubflowId, _out: &mut dyn FnMut(&'static str, f64)) {}
}
