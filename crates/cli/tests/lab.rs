//! `manypath lab` from the outside: an experiment run, judged, reported, compared; and what happens when things go wrong.

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

const EXPERIMENT: &str = r#"title = "Two seconds of two links"
paper = "mpcc"
place = "Fig. 0"
about = "A small experiment."
duration = "2s"
seeds = { quick = 2, full = 3 }

[[axis]]
name = "cc"
of = "controllers"
values = ["mpcc-loss", "lia"]

[scenario]
topology = "mpcc-3b"
sample = "100ms"

[[scenario.connection]]
name = "mp"
role = "mp"
cc = "{cc}"
scheduler = "{scheduler}"

[metric.goodput]
title = "goodput"
unit = "Mbit/s"
value = "connection.mp.goodput_bps / 1Mbit"

[[claim]]
id = "lia-starts-faster"
says = "in two seconds LIA has moved more"
place = "nowhere"
number = "not stated"
order = ["goodput[cc=mpcc-loss]", "goodput[cc=lia]"]
unit = "Mbit/s"
wrong = { cc = { lia = "mpcc-loss" } }

[[figure]]
title = "Goodput"
kind = "bars"
x = "cc"
y = ["goodput"]
y-label = "goodput (Mbit/s)"
error = "min-max"

[[figure]]
title = "Over time"
kind = "time"
y = ["series.connection.mp.goodput_bps / 1Mbit"]
y-label = "goodput (Mbit/s)"
series = "cc"
"#;

fn lab(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manypath"));
    command.arg("lab").args(args).current_dir(folder);
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with one experiment.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("experiments")).unwrap();
    std::fs::write(folder.path().join("experiments/small.toml"), EXPERIMENT).unwrap();
    folder
}

#[test]
fn an_experiment_is_run_once_and_judged() {
    let folder = folder();
    let lab = |args: &[&str]| lab(folder.path(), args);
    assert!(out(&lab(&["list"])).contains("small"));
    let checked = lab(&["check"]);
    assert!(out(&checked).contains("0 of 1 claim holds, 1 not run"), "{}", out(&checked));
    assert_eq!(checked.status.code(), Some(0));

    let run = lab(&["run", "small", "--jobs", "2"]);
    assert_eq!(out(&run).trim(), "4 runs made, 0 there already, 0 failed (quick)", "{}", err(&run));
    let again = lab(&["run", "--all"]);
    assert_eq!(out(&again).trim(), "0 runs made, 4 there already, 0 failed (quick)");

    let checked = lab(&["check", "--update"]);
    let text = out(&checked);
    assert!(text.contains("small.lia-starts-faster") && text.ends_with("1 of 1 claim holds, 0 not run\n"), "{text}");
    let wrong = lab(&["check", "--wrong"]);
    assert_eq!(wrong.status.code(), Some(0), "{}", err(&wrong));
    assert!(out(&wrong).contains("does not hold"));
    let status = std::fs::read_to_string(folder.path().join("experiments/status.toml")).unwrap();
    assert!(status.contains("\"lia-starts-faster\" = { quick = \"holds\" }"), "{status}");

    let compared = lab(&["compare", "lia", "mpcc-loss"]);
    assert!(out(&compared).contains("quick") && out(&compared).contains("1 of 1 (Mbit/s)"), "{}", out(&compared));
    let report = lab(&["report", "--docs", "docs"]);
    assert_eq!(report.status.code(), Some(0), "{}", err(&report));
    let page = std::fs::read_to_string(folder.path().join("lab-report.html")).unwrap();
    assert!(page.contains("✓ holds") && page.matches("<svg xmlns").count() == 2 && !page.contains("NaN"));
    let results = std::fs::read_to_string(folder.path().join("docs/results.md")).unwrap();
    assert!(
        results.contains("![Goodput](results/small-1.svg)") && results.contains("manypath lab run small"),
        "{results}"
    );
    assert!(folder.path().join("docs/results/small-2.svg").is_file());

    // A page of some experiments says how these were run.
    let other = EXPERIMENT.replace("paper = \"mpcc\"", "paper = \"tccc\"");
    std::fs::write(folder.path().join("experiments/other.toml"), other).unwrap();
    lab(&["run", "other", "--case", "cc=lia", "--seeds", "1"]);
    for (names, here) in [(&["small"][..], [true, false]), (&["other"], [false, true]), (&[], [true, true])] {
        lab(&[&["report"], names].concat());
        let page = std::fs::read_to_string(folder.path().join("lab-report.html")).unwrap();
        let told = ["lab run small --jobs 2", "lab run other --case"].map(|command| page.contains(command));
        assert_eq!(told, here, "{names:?}");
    }
    std::fs::remove_file(folder.path().join("experiments/other.toml")).unwrap();

    let shown = lab(&["show", "small", "--case", "cc=lia"]);
    let scenario = folder.path().join("one.toml");
    std::fs::write(&scenario, &shown.stdout).unwrap();
    let alone = Command::new(env!("CARGO_BIN_EXE_manypath")).args(["sim", "run"]).arg(&scenario).output().unwrap();
    assert!(out(&alone).contains("mp (lia)"), "{}", err(&alone));

    // What has been run in full is compared by that.
    assert!(out(&lab(&["run", "small", "--full"])).starts_with("2 runs made, 4 there already"));
    let compared = lab(&["compare", "lia", "mpcc-loss"]);
    assert!(out(&compared).contains("small              full "), "{}", out(&compared));
}

#[test]
fn one_run_is_not_counted_as_many() {
    let folder = folder();
    let lab = |args: &[&str]| out(&lab(folder.path(), args));
    let one = ["run", "small", "--case", "cc=lia", "--seeds", "1"];
    let planned = lab(&[&one[..], &["--dry-run"]].concat());
    assert!(planned.contains("      1 run  ") && planned.contains("\n1 run to make"), "{planned}");
    assert_eq!(lab(&one).trim(), "1 run made, 0 there already, 0 failed (quick)");
    let other = ["run", "small", "--case", "cc=mpcc-loss", "--seeds", "1"];
    assert_eq!(
        lab(&other).trim(),
        "1 run made, 0 there already, 0 failed (quick)",
        "what is there of others is no matter"
    );
    assert_eq!(lab(&other).trim(), "0 runs made, 1 there already, 0 failed (quick)");
    let log = std::fs::read_to_string(folder.path().join("lab-results/log.txt")).unwrap();
    assert!(log.contains(": 1 run in "), "{log}");
    assert_eq!(lab(&["report", "--docs", "docs"]), "lab-report.html: 1 experiment\ndocs/results.md: 2 pictures\n");
}

#[test]
fn a_claim_that_no_longer_holds_is_a_regression() {
    let folder = folder();
    lab(folder.path(), &["run", "small"]);
    lab(folder.path(), &["check", "--update"]);
    // The claim is turned round: as if the code had changed.
    let turned = EXPERIMENT.replace(
        "order = [\"goodput[cc=mpcc-loss]\", \"goodput[cc=lia]\"]",
        "order = [\"goodput[cc=lia]\", \"goodput[cc=mpcc-loss]\"]",
    );
    std::fs::write(folder.path().join("experiments/small.toml"), turned).unwrap();
    let checked = lab(folder.path(), &["check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(err(&checked).contains("held before and no longer hold: small.lia-starts-faster"), "{}", err(&checked));
    assert!(out(&checked).contains("HELD BEFORE"));
    // Nothing is asked of the variation of a claim that does not hold.
    let wrong = lab(folder.path(), &["check", "--wrong"]);
    assert_eq!((wrong.status.code(), out(&wrong).trim()), (Some(0), "0 of 0 claims hold, 0 not run"));
    // A claim that its wrong variation leaves standing is no claim.
    let blind = EXPERIMENT.replace("lia = \"mpcc-loss\"", "lia = \"lia\"");
    std::fs::write(folder.path().join("experiments/small.toml"), blind).unwrap();
    let wrong = lab(folder.path(), &["check", "--wrong"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(err(&wrong).contains("hold under their wrong variation"), "{}", err(&wrong));
    // Nor is one whose wrong variation nobody ran.
    let unseen = EXPERIMENT.replace("lia = \"mpcc-loss\"", "lia = \"reno\"");
    let unseen = unseen.replace("\"lia\"]", "\"lia\", \"reno\"]\nquick = [\"mpcc-loss\", \"lia\"]");
    std::fs::write(folder.path().join("experiments/small.toml"), unseen).unwrap();
    let wrong = lab(folder.path(), &["check", "--wrong"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", err(&wrong));
    assert!(err(&wrong).contains("wrong variations were not run: small.lia-starts-faster"), "{}", err(&wrong));
}

#[test]
fn claims_of_an_algorithm_fail_when_it_is_another() {
    let folder = folder();
    let flipped = "[{ cc = \"lia\", label = \"mpcc-loss\" }, { cc = \"mpcc-loss\", label = \"lia\" }]";
    let text = EXPERIMENT.replacen("[\"mpcc-loss\", \"lia\"]", flipped, 1);
    std::fs::write(folder.path().join("experiments/small.toml"), text).unwrap();
    let run = lab(folder.path(), &["run", "small"]);
    assert_eq!(out(&run).trim(), "4 runs made, 0 there already, 0 failed (quick)", "{}", err(&run));
    let checked = out(&lab(folder.path(), &["check"]));
    assert!(checked.contains("does not hold") && checked.ends_with("0 of 1 claim holds, 0 not run\n"), "{checked}");
}

#[test]
fn a_claim_that_loses_its_number_no_longer_holds() {
    let folder = folder();
    let experiments = folder.path().join("experiments");
    let none = EXPERIMENT.replace("connection.mp.goodput_bps / 1Mbit", "connection.mp.goodput_bps * 0 / 0");
    std::fs::write(experiments.join("small.toml"), none).unwrap();
    let held = "[\"small\"]\n\"lia-starts-faster\" = { quick = \"holds\" }\n";
    std::fs::write(experiments.join("status.toml"), held).unwrap();
    lab(folder.path(), &["run", "small"]);
    let checked = lab(folder.path(), &["check", "--update"]);
    assert_eq!(checked.status.code(), Some(1), "{}", out(&checked));
    assert!(out(&checked).contains("does not hold (HELD BEFORE)") && out(&checked).contains("none < none"));
    assert!(std::fs::read_to_string(experiments.join("status.toml")).unwrap().contains("does not hold"));
}

#[test]
fn an_experiment_that_makes_no_sense_keeps_no_other_from_being_judged() {
    let folder = folder();
    let lab = |args: &[&str]| lab(folder.path(), args);
    let broken = EXPERIMENT.replace("connection.mp.goodput_bps", "connection.mp.subflow.*.sent_bytes");
    std::fs::write(folder.path().join("experiments/broken.toml"), broken).unwrap();
    out(&lab(&["run", "--all", "--quick", "--seeds", "2"]));
    let checked = lab(&["check", "--quick"]);
    assert_eq!(checked.status.code(), Some(2));
    let (said, error) = (String::from_utf8_lossy(&checked.stdout), err(&checked));
    assert!(said.contains("small.lia-starts-faster") && said.contains("of 1 claim"), "{said}");
    assert!(error.contains("a metric is one number, not 2") && error.contains("not judged: broken"), "{error}");
    let many = lab(&["run", "small", "--seeds", "10000", "--dry-run"]);
    assert!(many.status.success(), "{}", err(&many));
}

#[test]
fn an_interrupted_run_notes_what_it_has_made() {
    let folder = folder();
    let planned = lab(folder.path(), &["run", "small", "--dry-run"]);
    assert!(out(&planned).contains("4 runs to make, about 0 s"), "{}", out(&planned));
    let mut command = Command::new(env!("CARGO_BIN_EXE_manypath"));
    command.args(["lab", "run", "small", "--seeds", "10000", "--jobs", "1"]).current_dir(folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let results = folder.path().join("lab-results/small");
    support::wait_until("a run is kept", || std::fs::read_dir(&results).is_ok_and(|files| files.count() > 0));
    support::interrupt(child).fails_with(&["interrupted after", "goes on from here"]);
    let log = std::fs::read_to_string(folder.path().join("lab-results/log.txt")).unwrap();
    assert!(log.starts_with("quick: manypath lab run small --seeds 10000 --jobs 1: "), "{log}");
    assert!(log.contains(", interrupted within small, 1 at once, version"), "{log}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = folder();
    let lab = |args: &[&str]| lab(folder.path(), args);
    for (args, words) in [
        (&["run", "nothing"][..], "there is no experiment 'nothing'"),
        (&["run"], "required arguments"),
        (&["run", "small", "--seeds", "4000000000"], "is not in"),
        (&["run", "small", "--seeds", "-1"], "is not in"),
        (&["validate", "--docs", "no/folder/page.md"], "there is no folder no/folder"),
        (&["run", "small", "--engine", "abacus"], "there is no engine 'abacus'"),
        (&["show", "small", "--case", "cc=reno"], "small has no cc 'reno'; there are mpcc-loss, lia"),
        (&["compare", "lia", "mpcc-loss"], "has been run has both 'lia' and 'mpcc-loss'"),
        (&["check", "--experiments", "elsewhere"], "elsewhere:1: it cannot be read"),
        (&["compare", "lia", "lia"], "'lia' is compared with itself"),
    ] {
        let output = lab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(words), "{args:?}: {}", err(&output));
    }
    let status = folder.path().join("experiments/status.toml");
    std::fs::write(&status, "x").unwrap();
    assert!(err(&lab(&["check"])).contains("delete it and write it anew with `manypath lab check --update`"));
    std::fs::remove_file(&status).unwrap();
    assert_eq!(lab(&["check", "--update"]).status.code(), Some(0));
    let results = folder.path().join("lab-results/small");
    std::fs::create_dir_all(&results).unwrap();
    for table in ["runs", "values"] {
        std::fs::write(results.join(format!("{table}-00001.parquet")), "x").unwrap();
    }
    let damaged = err(&lab(&["check"]));
    assert!(damaged.contains("delete it to have its runs made again"), "{damaged}");
    assert_eq!(damaged.matches("runs-00001.parquet").count(), 1, "{damaged}");
    // Results that nobody can look into are not none.
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::write(&results, "").unwrap();
    for command in [&["check"][..], &["run", "small"], &["report"], &["compare", "lia", "mpcc-loss"]] {
        let output = lab(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(err(&output).contains("cannot look into") && err(&output).contains("lab-results/small"), "{command:?}");
    }
    std::fs::write(folder.path().join("experiments/small.toml"), EXPERIMENT.replace("\"lia\"]", "\"lai\"]")).unwrap();
    let output = lab(&["list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("small.toml:11: no algorithm is called 'lai'"), "{}", err(&output));
    let nowhere = tempfile::tempdir().unwrap();
    let output = super_lab(nowhere.path());
    assert!(err(&output).contains("there is no folder 'experiments' here or above"), "{}", err(&output));
}

#[test]
fn a_full_disk_leaves_the_status_as_it_was() {
    let folder = folder();
    lab(folder.path(), &["run", "small"]);
    lab(folder.path(), &["check", "--update"]);
    let status = folder.path().join("experiments/status.toml");
    let before = std::fs::read_to_string(&status).unwrap();
    assert!(before.contains("holds"), "{before}");
    // No file may grow: for the command that is a disk without room.
    let full = "trap '' XFSZ; ulimit -f 0; exec \"$0\" lab check --update";
    let output =
        Command::new("sh").args(["-c", full, env!("CARGO_BIN_EXE_manypath")]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("cannot write") && err(&output).contains("status.toml"), "{}", err(&output));
    assert_eq!(std::fs::read_to_string(&status).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path().join("experiments")).unwrap().count(), 2, "nothing else is left");
}

/// `lab list` where nothing is.
fn super_lab(folder: &Path) -> Output {
    lab(folder, &["list"])
}
