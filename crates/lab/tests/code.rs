//! The hashes of the code that results come from cover what decides them, and nothing else.

#[path = "../build/registry.rs"]
mod registry;
#[path = "../build/sources.rs"]
mod sources;
#[path = "../build/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use manypath_lab::{Engine as _, Input, Simulator};
use sources::{Algorithms, ENGINES, Hashes, hashes};
use tokens::tokens;

fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The files of a module at a crate's root: its own, and those in the folder of its name.
fn files(src: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = vec![src.join(format!("{module}.rs"))];
    let mut folders = vec![src.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                files.push(path);
            }
        }
    }
    files
}

/// The names that follow `crate::` or `super::` in a text, one by one or in braces, tests and comments left out.
fn paths(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let code = code.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            let group = rest.strip_prefix('{').map_or(rest, |rest| rest.split(';').next().unwrap());
            let words = group.split(|char: char| !char.is_alphanumeric() && char != '_');
            let count = if rest.starts_with('{') { usize::MAX } else { 1 };
            found.extend(words.take(count).map(str::to_owned));
        }
    }
    found
}

#[test]
fn what_an_algorithm_uses_is_covered() {
    for (name, count) in [("cc", manypath_cc::algorithms().len()), ("sched", manypath_sched::algorithms().len())] {
        let src = crates().join(name).join("src");
        let read = Algorithms::read(&src);
        assert_eq!(read.named.len(), count, "{name}: every row of the registry is found");
        for (algorithm, named) in &read.named {
            assert!(!named.is_empty() || algorithm == "minrtt", "{name}: {algorithm} has no file of its own");
            let covered: BTreeSet<&String> = named.union(&read.core).collect();
            for module in covered.iter().filter(|module| module.as_str() != "registry") {
                for file in files(&src, module) {
                    for used in paths(&std::fs::read_to_string(&file).unwrap()) {
                        let is_module = src.join(format!("{used}.rs")).is_file();
                        let inside = src.join(module).join(format!("{used}.rs")).is_file();
                        assert!(
                            !is_module || inside || covered.contains(&used),
                            "{algorithm}: {} uses {used}, which its hash does not cover",
                            file.display()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_name_has_a_hash_and_takes_the_files_that_it_says() {
    let cc = Algorithms::read(&crates().join("cc/src"));
    for algorithm in manypath_cc::algorithms() {
        assert!(cc.named.contains_key(algorithm.name), "{}", algorithm.name);
    }
    let covers = |read: &Algorithms, name: &str, wanted: &[&str], not: &[&str]| {
        let has = |module: &str| read.named[name].contains(module) || read.core.contains(module);
        assert!(wanted.iter().all(|module| has(module)), "{name}: {:?}", read.named[name]);
        assert!(!not.iter().any(|module| has(module)), "{name}: {:?} and {:?}", read.named[name], read.core);
    };
    covers(&cc, "lia", &["lia", "per_ack", "aimd", "hystart"], &["olia", "coupled", "mpcc", "monitor", "sbd"]);
    covers(&cc, "lisa", &["lisa", "lia"], &["olia"]);
    covers(&cc, "e-nmcc+", &["nmcc", "sbd", "sbd_ecn"], &["tccc"]);
    covers(&cc, "uni-mptcp", &["uni_mptcp", "targeted", "omega", "aimd"], &["lia"]);
    covers(&cc, "mpcc-loss", &["mpcc", "ascent", "monitor"], &["mpcc_connection", "vivace", "aimd"]);
    covers(&cc, "mpcc-connection", &["mpcc_connection", "monitor"], &["mpcc"]);
    covers(&cc, "mp-ol", &["mp_ol", "lia"], &["mpcc", "olia"]);
    covers(&cc, "reno", &["reno", "hystart", "uncoupled"], &["aimd", "cubic"]);
    let sched = Algorithms::read(&crates().join("sched/src"));
    covers(&sched, "minrtt-pr", &["minrtt_pr", "minrtt", "opportunistic"], &["ecf", "stms"]);
    covers(&sched, "stms-a", &["stms", "minrtt"], &["minrtt_pr", "blest"]);
    covers(&sched, "rate-based", &["rate_based", "queue"], &["minrtt_pr", "stms"]);
}

/// Copies what decides simulations.
fn copied() -> tempfile::TempDir {
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
    let folder = tempfile::tempdir().unwrap();
    for name in ["cc", "sched", "session"] {
        copy(&crates().join(name).join("src"), &folder.path().join(name).join("src"));
    }
    folder
}

/// The algorithms whose hashes change, and whether that of all runs does, when a text is put at the end of a file.
fn changed(file: &str, text: &str) -> (Vec<String>, bool) {
    let folder = copied();
    let take = || hashes(folder.path(), &["session"], &[], true);
    let before = take();
    let path = folder.path().join(file);
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + text).unwrap();
    let after = take();
    assert_eq!(before == after, before.all == after.all);
    let pairs = |hashes: &Hashes| {
        let all = hashes.controllers.iter().chain(&hashes.schedulers);
        all.map(|(name, hash)| (name.clone(), hash.clone())).collect::<Vec<_>>()
    };
    let (old, new) = (pairs(&before), pairs(&after));
    let names = old.iter().zip(&new).filter(|(old, new)| old != new).map(|(old, _)| old.0.clone()).collect();
    (names, before.core != after.core)
}

#[test]
fn a_change_voids_the_runs_that_it_may_change() {
    const CODE: &str = "\nfn added() {}\n";
    let of = |file: &str| changed(file, CODE);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(of("cc/src/balia.rs"), (names(&["balia"]), false));
    assert_eq!(of("cc/src/lia.rs"), (names(&["lia", "lisa", "mp-ol"]), false));
    assert_eq!(of("cc/src/bbr3/model.rs"), (names(&["bbr3"]), false));
    assert_eq!(of("cc/src/mpcc.rs"), (names(&["mpcc-latency", "mpcc-loss"]), false));
    assert_eq!(of("sched/src/stms/adaptation.rs"), (names(&["arrival-order", "stms-a", "stms-c"]), false));
    assert_eq!(of("sched/src/minrtt_pr.rs"), (names(&["minrtt-pr"]), false));
    for core in
        ["session/src/session.rs", "cc/src/event.rs", "cc/src/registry/rows.rs", "sched/src/queue.rs", "cc/src/lib.rs"]
    {
        assert_eq!(of(core), (names(&[]), true), "{core}");
    }
}

#[test]
fn what_the_lab_makes_of_a_run_is_covered() {
    let folders =
        [("SIM", None), ("THEORY", Some("models")), ("QUIC", Some("engine/quic")), ("KERNEL", Some("engine/kernel"))];
    for ((engine, _, covered, _), (name, module)) in ENGINES.into_iter().zip(folders) {
        assert_eq!(engine, name);
        let src = crates().join("lab/src");
        let own = module.map(|module| files(&src, module)).unwrap_or_default();
        let common = ["quantities.rs"].into_iter().chain((name != "THEORY").then_some("engine.rs"));
        for file in own.into_iter().chain(common.map(|file| src.join(file))) {
            let covers = covered.iter().any(|held| crates().join(held) == file);
            assert!(covers, "{engine}: {} is in no hash", file.display());
        }
    }
    let (_, whole, theory, _) = ENGINES[1];
    assert!(whole.contains(&"link") || theory.contains(&"link/src/random.rs"), "what random states are drawn with");
}

#[test]
fn comments_and_tests_void_nothing() {
    for text in ["\n// a comment\n", "\n#[cfg(test)]\nmod more {\n    fn brace() -> char { '{' }\n}\n"] {
        assert_eq!(changed("cc/src/lia.rs", text), (Vec::new(), false), "{text}");
        assert_eq!(changed("session/src/session.rs", text), (Vec::new(), false), "{text}");
    }
    assert_eq!(changed("cc/src/tccc/tests.rs", "\nfn added() {}\n"), (Vec::new(), false));
}

#[test]
fn texts_and_characters_are_kept_whole() {
    let words = |text: &str| tokens(text).iter().map(|token| format!("{token:?}")).collect::<Vec<_>>().join(" ");
    assert_eq!(words("a(\"// \\\" {\", '\"', '\\'', 'x) // \"\nb"), words("a( \"// \\\" {\" , '\"', '\\'', 'x )\n  b"));
    assert_eq!(words("r#\"a\"b\"# c // d"), "Text(\"r#\\\"a\\\"b\\\"#\") Word(\"c\")");
    assert_ne!(words("1.5"), words("1.6"));
    assert_ne!(words("\"a b\""), words("\"a  b\""));
    // What is not a module stays, though it is for tests.
    assert_eq!(words("#[cfg(test)] #[allow(x)] pub(crate) mod tests { a { b } } c"), "Word(\"c\")");
    assert_eq!(words("#[cfg(test)] fn f() {}"), words("#[cfg ( test )] fn f () {}"));
    assert!(words("#[cfg(test)] fn f() {}").contains("Word(\"f\")"));
}

#[test]
fn a_run_is_known_by_the_algorithms_that_it_names_or_takes_by_default() {
    let code = |connection: &str| {
        let text = format!(
            "duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\n{connection}"
        );
        let scenario = manypath_scenario::parse(&text, "x", Path::new(".")).unwrap();
        Simulator.code().of(&Input::Scenario(Box::new(scenario)))
    };
    let named = |code: &str| {
        let all = code.split(' ').skip(1).map(|word| word.split(':').next().unwrap().to_owned());
        all.collect::<Vec<_>>()
    };
    let plain = code("cc = \"lia:count=acks\"\n");
    assert!(plain.starts_with(concat!(env!("CARGO_PKG_VERSION"), "+")), "{plain}");
    assert_eq!(named(&plain), ["lia", "minrtt"]);
    // Parameters are no part of the code, and a default that is written out is the same.
    assert_eq!(plain, code("cc = \"lia\"\nscheduler = \"minrtt\"\n"));
    let other = code("cc = \"mpcc-loss\"\nscheduler = \"rate-based\"\n");
    assert_eq!(named(&other), ["mpcc-loss", "rate-based"]);
    assert_eq!(plain.split(' ').next(), other.split(' ').next());
    // This very build was made by the same reading of the same sources.
    let [(_, whole, files, named), ..] = ENGINES;
    let built = hashes(crates(), whole, files, named);
    assert!(Simulator.code().version().ends_with(&format!("+{}", built.all)));
    assert!(plain.contains(&format!("lia:{}", built.controllers["lia"])), "{plain}");
}
