//! What code a result comes from.

use crate::engine::Input;

/// The sources that decide an engine's results, as hashes: of what all runs have in common, and of what each algorithm adds.
/// A run is not voided by a change of an algorithm that it does not name.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    all: &'static str,
    core: &'static str,
    controllers: &'static [(&'static str, &'static str)],
    schedulers: &'static [(&'static str, &'static str)],
}

// Made from the sources by `build/`: SIM, THEORY, QUIC and KERNEL.
include!(concat!(env!("OUT_DIR"), "/code.rs"));

impl Code {
    /// Version and hash of everything: `0.1.0+0f3a...`.
    pub fn version(&self) -> String {
        format!("{}+{}", env!("CARGO_PKG_VERSION"), self.all)
    }

    /// Version and hash of what decides a run, with the algorithms that its scenario names or takes by default, each with its
    /// own hash: `0.1.0+0f3a... lia:9c01... minrtt:11d2...`.
    pub fn of(&self, input: &Input) -> String {
        let mut text = format!("{}+{}", env!("CARGO_PKG_VERSION"), self.core);
        let Input::Scenario(scenario) = input else { return text };
        let mut named = Vec::new();
        for connection in &scenario.connections {
            let scheduler = manypath_sim::scheduler(connection).name;
            let algorithms = [(connection.cc.name.clone(), self.controllers), (scheduler, self.schedulers)];
            for (name, known) in algorithms.into_iter().filter(|(_, known)| !known.is_empty()) {
                // What no registry knows decides no run, as it cannot be made.
                let hash = known.iter().find(|(known, _)| *known == name).map_or("unknown", |(_, hash)| hash);
                named.push((name, hash));
            }
        }
        named.sort_unstable();
        named.dedup();
        for (name, hash) in named {
            text += &format!(" {name}:{hash}");
        }
        text
    }
}
