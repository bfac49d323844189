//! Traces of scheduling decisions: files with a line for each.
//!
//! The columns stand in the first line ([`HEADER`]), separated by tabs: the time in seconds, the connection, what was
//! decided (`send`, `resend`, `duplicate`, `penalise`, `wait`), the subflow, the first data sequence number and the one past
//! the last, the subflow penalised, and the scheduler's reason. What is not there is `-`. Lines that begin with `#` are
//! remarks.

mod read;
mod write;

pub use read::{TraceReadError, TraceRow, read_trace};
pub use write::{Backpressure, TraceFile};

/// The first line.
const HEADER: &str = "time_s\tconnection\tdecision\tsubflow\tfirst\tend\tpenalised\treason";

/// What was decided, as files say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// Data goes on a subflow for the first time.
    Send,
    /// Lost data goes on a subflow again.
    Resend,
    /// A copy of data under way goes on a subflow.
    Duplicate,
    /// A subflow is penalised.
    Penalise,
    /// Nothing is sent for now.
    Wait,
}

impl Decided {
    const ALL: [Self; 5] = [Self::Send, Self::Resend, Self::Duplicate, Self::Penalise, Self::Wait];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Resend => "resend",
            Self::Duplicate => "duplicate",
            Self::Penalise => "penalise",
            Self::Wait => "wait",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decided| decided.as_str() == text)
    }
}
