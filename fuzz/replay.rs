//! Runs a fuzzer's body on its corpus: for the tests that replay it.

use std::path::Path;

/// Runs `body` on every file of a corpus; fails if there is none, since then nothing was replayed.
pub(crate) fn replay(corpus: &str, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is in the repository") {
        let path = entry.expect("a readable folder").path();
        body(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
