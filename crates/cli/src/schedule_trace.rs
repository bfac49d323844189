//! The trace of scheduling decisions that a transfer was asked for.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use manypath_output::{Backpressure, TraceFile};
use manypath_quic::{TracerSource, TransportConfig};

use crate::output::{self, counted};

/// Options of the commands whose schedulers may be traced.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// Write a line for every scheduling decision of this side, which for a download are the server's
    ///
    /// `manypath sim plot-schedule` draws them.
    #[arg(long, value_name = "FILE", help_heading = "Algorithms")]
    trace_schedule: Option<PathBuf>,
}

/// A trace that is being written, if one was asked for.
#[derive(Debug)]
pub(crate) struct ScheduleTrace(Option<TraceFile>);

impl ScheduleTrace {
    /// Makes the file.
    pub(crate) fn open(args: &TraceArgs) -> Result<Self> {
        let file = args.trace_schedule.as_deref().map(|path| TraceFile::create(path, Backpressure::LeaveOut));
        Ok(Self(file.transpose()?))
    }

    /// Has a transport's sessions traced.
    pub(crate) fn attach(&self, transport: &mut TransportConfig) {
        transport.tracers = self.0.as_ref().map(|file| -> Arc<dyn TracerSource> { file.source() });
    }

    /// Ends the file; a trace that is not whole says so. The outcome of the command goes before that of its trace.
    pub(crate) fn finish(self, outcome: Result<()>) -> Result<()> {
        let finished = self.0.map(TraceFile::finish).transpose();
        outcome?;
        if let Some(left_out) = finished?.filter(|left_out| *left_out > 0) {
            let left_out = counted(left_out, "decision is", "decisions are");
            output::note(format_args!("The disk was too slow: {left_out} not in the trace."));
        }
        Ok(())
    }
}
