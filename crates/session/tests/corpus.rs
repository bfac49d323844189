//! Replays what the fuzzers have found interesting (`fuzz/corpus`), so that every test run covers it.

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

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
