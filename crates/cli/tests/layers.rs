//! The map of the crates in ARCHITECTURE.md against their manifests: who may use whom, and who does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Names = BTreeSet<String>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Our crates by their short names, with their folders.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.chain([root().join("python")]).filter(|folder| folder.join("Cargo.toml").is_file());
    folders.map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)).collect()
}

/// The names of the dependencies in a section of a crate's manifest.
fn dependencies(folder: &Path, section: &str) -> Names {
    let text = read(&folder.join("Cargo.toml"));
    let lines = text.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

/// Those of them that are ours.
fn used(folder: &Path, section: &str) -> Names {
    dependencies(folder, section).iter().filter_map(|name| Some(name.strip_prefix("manypath-")?.to_owned())).collect()
}

/// The rows of the map from the top, each with its crates.
fn rows(page: &str) -> Vec<Names> {
    let map = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let names = |line: &str| line.split("   ").next().unwrap().split_whitespace().map(str::to_owned).collect();
    map.lines().map(names).collect()
}

/// The table's last column: what each crate uses, and what its tests use besides.
fn table(page: &str) -> BTreeMap<String, (Names, Names)> {
    let names = |text: &str| text.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Names>();
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches('|').split(" | ").map(str::trim);
        let (name, uses) = (cells.next()?.trim_end_matches('`'), cells.nth(1).unwrap_or_default());
        let (uses, in_tests) = uses.split_once("; in tests ").unwrap_or((uses, ""));
        Some((name.to_owned(), (names(uses), names(in_tests))))
    });
    rows.collect()
}

#[test]
fn crates_use_what_the_table_says() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let manifests = crates().into_iter().map(|(name, folder)| {
        let (uses, in_tests) = (used(&folder, "[dependencies]"), used(&folder, "[dev-dependencies]"));
        (name, (uses, in_tests))
    });
    assert_eq!(table(&page), manifests.collect());
}

#[test]
fn crates_use_only_what_is_below_them() {
    let rows = rows(&read(&root().join("ARCHITECTURE.md")));
    let crates = crates();
    let named: Vec<&String> = rows.iter().flatten().collect();
    assert_eq!(named.len(), crates.len(), "each crate stands in one row: {rows:?}");
    for (place, row) in rows.iter().enumerate() {
        let below: Names = rows[place + 1..].iter().flatten().cloned().collect();
        for name in row {
            let folder = crates.get(name).unwrap_or_else(|| panic!("{name} is no crate"));
            let others: Vec<String> = used(folder, "[dependencies]").difference(&below).cloned().collect();
            assert!(others.is_empty(), "{name} uses {others:?}, which do not stand below it");
        }
    }
}

/// Whoever adds a dependency says at the crate's root what it is for.
#[test]
fn dependencies_have_a_reason() {
    for (name, folder) in crates() {
        let file = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.is_file());
        let text = read(&file.unwrap());
        let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        for section in ["[dependencies]", "[build-dependencies]"] {
            for dependency in dependencies(&folder, section) {
                let ours = dependency.starts_with("manypath-");
                assert!(
                    ours || head.contains(&format!("`{dependency}`")),
                    "{name} does not say why it uses {dependency}"
                );
            }
        }
    }
}
