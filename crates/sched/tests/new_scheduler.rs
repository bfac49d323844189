//! The scheduler that CONTRIBUTING.md adds as an example, added as it says: one file, one line, one row, and one arm of a law.
//! Its own test and the laws of all schedulers are run.

use std::path::Path;
use std::process::Command;

/// The blocks of code of the worked example, in order.
fn blocks(page: &str) -> Vec<&str> {
    let section = page.split("\n## ").find(|section| section.starts_with("A scheduler")).unwrap();
    section.split("```rust\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Puts `text` before the first line that begins with `mark`.
fn insert(file: &Path, mark: &str, text: &str) {
    let held = std::fs::read_to_string(file).unwrap();
    let at = held.find(mark).unwrap_or_else(|| panic!("{} has no '{mark}'", file.display()));
    std::fs::write(file, format!("{}{text}{}", &held[..at], &held[at..])).unwrap();
}

/// A workspace of the crates `core` and `sched` with their tests.
fn workspace(root: &Path, to: &Path) {
    std::fs::copy(root.join("Cargo.lock"), to.join("Cargo.lock")).unwrap();
    let text = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let only_crates = text.lines().map(|line| match line.split_once('=') {
        Some((key, _)) if key.trim() == "members" => "members = [\"crates/*\"]",
        Some((key, _)) if key.trim() == "default-members" => "",
        _ => line,
    });
    std::fs::write(to.join("Cargo.toml"), only_crates.collect::<Vec<_>>().join("\n")).unwrap();
    for name in ["core", "sched"] {
        for part in ["src", "tests"] {
            let from = root.join("crates").join(name).join(part);
            if from.is_dir() {
                copy(&from, &to.join("crates").join(name).join(part));
            }
        }
        let manifest = Path::new("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(root.join(&manifest)).unwrap();
        // Benchmarks are not copied.
        std::fs::write(to.join(&manifest), text.split("[[bench]]").next().unwrap()).unwrap();
    }
}

#[test]
fn a_scheduler_is_one_file_one_line_one_row_and_one_arm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let [file, line, row, arm] = blocks(&page)[..] else { panic!("four blocks of code make the example") };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-scheduler");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    workspace(root, &folder);
    let sched = folder.join("crates/sched");
    std::fs::write(sched.join("src/roomiest.rs"), file).unwrap();
    insert(&sched.join("src/lib.rs"), "pub mod round_robin;", line);
    insert(&sched.join("src/registry.rs"), "    Algorithm {\n        name: \"redundant\"", row);
    insert(&sched.join("tests/laws.rs"), "        \"rate-based\" =>", arm);

    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--offline", "--package", "manypath-sched", "--lib", "--test", "laws"]);
    // What only tests depend on is compiled once, since the folder is kept, and fast.
    cargo.env("CARGO_TARGET_DIR", folder.with_extension("target")).env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    let output = cargo.current_dir(&folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(!err.contains("warning"), "the example is clean: {err}");
}
