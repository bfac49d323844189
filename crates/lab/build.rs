//! Puts into the crate what code its results come from: a hash of the sources of every engine. A run is repeated when the
//! code that it depends on has changed, and only then.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Engines, and the crates whose sources decide their results.
const ENGINES: [(&str, &[&str]); 4] = [
    ("SIM", &["core", "cc", "sched", "session", "link", "scenario", "sim"]),
    ("THEORY", &["core", "theory"]),
    ("QUIC", &["core", "cc", "sched", "session", "link", "scenario", "emu", "quic"]),
    ("KERNEL", &["core", "link", "scenario", "emu", "kernel"]),
];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default();
    for (engine, names) in ENGINES {
        let mut hash = Sha256::new();
        for name in names {
            for folder in ["src", "bpf"].map(|folder| crates.join(name).join(folder)) {
                if folder.is_dir() {
                    println!("cargo::rerun-if-changed={}", folder.display());
                    add(&folder, &mut hash);
                }
            }
        }
        let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        println!("cargo::rustc-env=MANYPATH_CODE_{engine}={digest}");
    }
}

/// Adds every file of a folder, in the order of names. Files of tests decide nothing.
fn add(folder: &Path, hash: &mut Sha256) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hash);
        } else if path.file_name().is_none_or(|name| name != "tests.rs") {
            let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
}
