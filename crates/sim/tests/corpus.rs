//! Replays what the fuzzers of scenario files have found interesting (`fuzz/corpus`), so that every test run covers it.

#[path = "../../../fuzz/scenario_bodies.rs"]
mod bodies;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn scenario_corpus() {
    replay("scenario", bodies::scenario);
}

#[test]
fn simulation_corpus() {
    replay("simulation", bodies::simulation);
}
