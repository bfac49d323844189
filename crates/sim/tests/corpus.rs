//! Replays what the fuzzers of scenario files have found interesting (`fuzz/corpus`), so that every test run covers it.

#[path = "../../../fuzz/scenario_bodies.rs"]
mod bodies;

use std::path::Path;

/// Runs `body` on every file of a corpus; fails if there is none, since then nothing was replayed.
fn replay(corpus: &str, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is in the repository") {
        let path = entry.expect("a readable folder").path();
        body(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}

#[test]
fn scenario_corpus() {
    replay("scenario", bodies::scenario);
}

#[test]
fn simulation_corpus() {
    replay("simulation", bodies::simulation);
}
