//! A run: window after window ([`crate::window`]), until its time is over.

use manypath_core::Time;
use manypath_scenario::Scenario;
use manypath_session::PathInit;

use crate::Controllers;
use crate::error::RunError;
use crate::events::Target;
use crate::host::{End, World};
use crate::observer::Observer;
use crate::recorder::Recorder;
use crate::snapshot::Snapshot;
use crate::source::Background;
use crate::window::Windows;

/// How many events happen at least between two looks of the observer; those of a window more at most, 20 ms with a thousand
/// connections.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 12;

/// A subflow that joins: its connection's next.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) connection: usize,
    /// The connection's name.
    pub(crate) name: String,
    /// Which of the connection's it is.
    pub(crate) path: usize,
    /// All but what its handshake measures.
    pub(crate) init: PathInit,
    /// It comes after its connection's start, when nothing else may happen to the ends.
    pub(crate) late: bool,
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) world: World,
    /// Connection `i` has ends `2 i`, which sends, and `2 i + 1`.
    pub(crate) ends: Vec<End>,
    pub(crate) sources: Vec<Background>,
    /// Every subflow.
    pub(crate) joins: Vec<Join>,
    /// Events that happened.
    pub(crate) steps: u64,
    /// Where summaries begin.
    pub(crate) baseline: Snapshot,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) windows: Windows,
}

impl Simulation {
    /// Runs a scenario to its end, or until the observer says stop.
    pub(crate) fn run(
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        controllers: &mut Controllers<'_>,
    ) -> Result<Self, RunError> {
        let mut simulation = crate::setup::simulation(scenario, seed, controllers)?;
        for (index, sender) in simulation.ends.iter_mut().step_by(2).enumerate() {
            if let Some(tracer) = observer.tracer(index) {
                sender.session.set_tracer(tracer);
                // Who traces several connections hears of all in the order of time.
                simulation.windows.forbid();
            }
        }
        let until = Time::ZERO + scenario.duration;
        while simulation.run_until(until, EVENTS_BETWEEN_LOOKS)? {
            if observer.on_progress(simulation.world.now).is_break() {
                return Err(RunError::Stopped);
            }
        }
        simulation.check_conservation(scenario)?;
        Ok(simulation)
    }

    /// Runs for `budget` events or somewhat more, or until nothing more happens up to and including `until`. Says whether there
    /// is more.
    pub(crate) fn run_until(&mut self, until: Time, budget: u64) -> Result<bool, RunError> {
        let pause = self.steps + budget;
        while let Some(first) = self.world.events.next(until) {
            if self.steps >= pause {
                return Ok(true);
            }
            self.window(first, until)?;
        }
        self.world.now = until;
        Ok(false)
    }

    /// A subflow joins, at both ends at once: its handshake takes no time, but measures what packets would take now.
    pub(crate) fn join(&mut self, index: u32) -> Result<(), RunError> {
        let Join { connection, name, path, init, late } = &self.joins[index as usize];
        let ends = [connection * 2 + 1, connection * 2];
        let World { network, now, .. } = &self.world;
        let both = ends.map(|end| network.transit(*now, self.ends[end].carriers[*path].route));
        let init = PathInit { handshake_rtt: Some(both[0] + both[1]), ..*init };
        for end in ends {
            let joined = self.ends[end].join(self.world.now, *path, init);
            joined.map_err(|source| RunError::Path { connection: name.clone(), source })?;
            if *late {
                self.ends[end].wake(&mut self.world);
            }
        }
        Ok(())
    }

    pub(crate) fn warmed_up(&mut self) {
        self.baseline = Snapshot::take(self);
        self.world.meters.iter_mut().for_each(crate::meter::Meter::restart);
    }

    pub(crate) fn sample(&mut self) {
        let Some(mut recorder) = self.recorder.take() else { return };
        recorder.sample(self);
        let next = self.world.now + recorder.interval();
        self.recorder = Some(recorder);
        self.world.events.schedule(next, Target::Sample);
    }

    /// Every packet that a link was given has arrived, was dropped, or is on the link.
    fn check_conservation(&mut self, scenario: &Scenario) -> Result<(), RunError> {
        for (wire, link) in self.world.network.wires.iter_mut().zip(&scenario.links) {
            let counters = wire.link.counters(self.world.now);
            let accounted = wire.arrived + counters.dropped.total().packets + wire.flying() as u64;
            if counters.offered.packets != accounted {
                let sent = counters.offered.packets;
                return Err(RunError::Conservation { link: link.name.clone(), sent, accounted });
            }
        }
        Ok(())
    }
}
