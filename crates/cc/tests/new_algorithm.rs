//! The controller that CONTRIBUTING.md adds as an example, added as it says: one file, one line, one row.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program of a newcomer sees of the registry.
const PROGRAM: &str = r#"//! A newcomer.
fn main() {
    let row = manypath_cc::algorithms().iter().find(|row| row.name == "even").expect("a row");
    println!("{} {}", row.name, row.citation);
    let controller = manypath_cc::create(&"even".parse().expect("a name"), 1).expect("a controller");
    println!("{controller:?}");
}
"#;

/// The blocks of code of the worked example, in order.
fn blocks(page: &str) -> Vec<&str> {
    let section = page.split("\n## ").find(|section| section.starts_with("A congestion controller")).unwrap();
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

#[test]
fn a_controller_is_one_file_one_line_and_one_row() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let [file, line, row, base] = blocks(&page)[..] else { panic!("four blocks of code make the example") };
    let laws = std::fs::read_to_string(root.join("crates/cc/tests/laws.rs")).unwrap();
    assert!(laws.contains("const BASES: ") && base.trim().starts_with("(\"even\", Some(\"reno\"), "));
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let only_crates = workspace.lines().map(|line| match line.split_once('=') {
        Some((key, _)) if key.trim() == "members" => "members = [\"crates/*\"]",
        Some((key, _)) if key.trim() == "default-members" => "",
        _ => line,
    });
    std::fs::write(folder.path().join("Cargo.toml"), only_crates.collect::<Vec<_>>().join("\n")).unwrap();
    for name in ["core", "cc"] {
        copy(&root.join("crates").join(name).join("src"), &folder.path().join("crates").join(name).join("src"));
        let manifest = Path::new("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(root.join(&manifest)).unwrap();
        // Benchmarks and what only tests need are not copied.
        let kept = text.split("[dev-dependencies]").next().unwrap();
        std::fs::write(folder.path().join(&manifest), kept).unwrap();
    }
    let cc: PathBuf = folder.path().join("crates/cc");
    std::fs::write(cc.join("src/even.rs"), file).unwrap();
    insert(&cc.join("src/lib.rs"), "pub mod event;", line);
    insert(&cc.join("src/registry/rows.rs"), "    row(\n        \"olia\"", row);
    std::fs::create_dir(cc.join("examples")).unwrap();
    std::fs::write(cc.join("examples/newcomer.rs"), PROGRAM).unwrap();

    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--package", "manypath-cc", "--example", "newcomer"]);
    let output =
        cargo.current_dir(folder.path()).env("CARGO_TARGET_DIR", folder.path().join("target")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.starts_with("even an example\n") && out.contains("Even"), "{out}");
    assert!(!err.contains("warning"), "the example is clean: {err}");
}
