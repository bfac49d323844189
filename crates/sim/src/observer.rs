//! Who looks on while a scenario runs.

use core::ops::ControlFlow;

use manypath_core::Time;

/// Someone who looks on. It changes nothing about what happens, except that it may end the run.
pub trait Observer {
    /// Virtual time has come this far: called every few milliseconds of real time, while there is more to simulate.
    /// `Break` ends the run, which then has no report.
    fn on_progress(&mut self, now: Time) -> ControlFlow<()>;
}

/// Looks away.
impl Observer for () {
    fn on_progress(&mut self, _now: Time) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
