//! Who looks on while a scenario runs.

use core::ops::ControlFlow;

use manypath_core::Time;
use manypath_session::Tracer;

/// Someone who looks on. It changes nothing about what happens, except that it may end the run.
pub trait Observer {
    /// Virtual time has come this far: called every few milliseconds of real time, or every window of a thousand connections, while there is more to simulate.
    /// `Break` ends the run, which then has no report.
    fn on_progress(&mut self, now: Time) -> ControlFlow<()>;

    /// Who is told the scheduling decisions of the connection with this index; nobody: `None`.
    fn tracer(&mut self, _connection: usize) -> Option<Box<dyn Tracer>> {
        None
    }
}

/// Looks away.
impl Observer for () {
    fn on_progress(&mut self, _now: Time) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
