//! Replays what the fuzzers have found interesting (`fuzz/corpus`), so that every test run covers it.

#[path = "../../../fuzz/bodies.rs"]
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
fn record_corpus() {
    replay("record", bodies::record);
}

#[test]
fn session_corpus() {
    replay("session", bodies::session);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// The fuzzers' bodies on random bytes: a short run of what they do for long.
    #[test]
    fn random_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600)) {
        bodies::record(&bytes);
        bodies::session(&bytes);
    }
}
