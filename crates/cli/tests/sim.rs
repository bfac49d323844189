//! The simulator's commands.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::{Place, interrupt, manypath, run, said};

const SHORT: &str = "duration=2s";
const NO_WARMUP: &str = "warmup=0s";

#[test]
fn without_words_it_runs_the_built_in_scenario() {
    let plain = run(["sim"]);
    assert_eq!((plain.code, plain.err.as_str()), (Some(0), ""));
    assert!(
        plain.out.starts_with("two-links: 20 s, seed 1\n") && plain.out.contains("multipath (lia)"),
        "{}",
        plain.out
    );
    assert_eq!(run(["sim", "run"]).out, plain.out);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in ["run", "new", "topologies", "plot-schedule", "schema"] {
        let help = run(["sim", command, "--help"]);
        assert!(help.code == Some(0) && help.out.contains("Examples:\n  manypath sim "), "{}", help.out);
    }
}

/// A scenario that has what the examples of the help name.
const MINE: &str = r#"duration = "3s"
warmup = "1s"

[[link]]
name = "wifi"
rate = "5Mbit"
delay = "10ms"
queue = "64kB"

[[link]]
name = "lte"
rate = "3Mbit"
delay = "40ms"
queue = "64kB"

[[connection]]
name = "phone"
cc = "lia"
path = [{ route = ["wifi"] }, { route = ["lte"] }]
"#;

#[test]
fn examples_of_the_help_work_as_they_are_written() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_manypath"));
    let path = std::env::join_paths(
        std::iter::once(program.parent().unwrap().into())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let path = path.unwrap();
    for command in [
        "sim",
        "sim run",
        "sim new",
        "sim topologies",
        "sim schema",
        "sim plot-schedule",
        "theory",
        "theory lmmf",
        "theory num",
        "theory fluid",
        "algorithms",
    ] {
        let place = Place::new();
        let help = run(command.split(' ').chain(["--help"])).out;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        for line in examples.lines() {
            let makes_it = line.starts_with("  manypath sim new");
            if makes_it {
                let _ = std::fs::remove_file(place.path("mine.toml"));
            } else {
                std::fs::write(place.path("mine.toml"), MINE).unwrap();
            }
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("set -e; {line}")]).env("PATH", &path).current_dir(place.path(""));
            let said = said(shell);
            assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{line}");
        }
    }
}

#[test]
fn a_template_runs_as_it_is_written() {
    let place = Place::new();
    let file = place.path("mine.toml");
    let new = |more: &[&str]| {
        let mut command = manypath(["sim", "new"]);
        command.arg(&file).args(more);
        said(command)
    };
    assert_eq!(new(&["--topology", "mpcc-3c"]).code, Some(0));
    new(&[]).fails_with(&["mine.toml is there already", "another name"]);
    let mut command = manypath(["sim", "run"]);
    command.arg(&file).args(["--json", "--seed", "7", "--set", SHORT, "--set", NO_WARMUP]);
    let report = said(command).json();
    assert_eq!((&report["scenario"], &report["seed"]), (&"mpcc-3c".into(), &7.into()));
    assert!(report["connections"][1]["goodput_bps"].as_f64() > Some(1e6), "{report}");
    assert_eq!(run(["sim", "new"]).out, manypath_scenario::template());
    run(["sim", "new", "--topology", "ring"]).fails_with(&["no topology 'ring'", "mpcc-3c"]);
    let schema = run(["sim", "schema"]).json();
    assert!(schema["properties"]["connection"].is_object());
}

#[test]
fn topologies_are_listed_and_shown() {
    let list = run(["sim", "topologies"]).out;
    for topology in manypath_scenario::topologies() {
        assert!(list.contains(topology.name));
    }
    let shown = run(["sim", "topologies", "mpcc-3e"]).out;
    assert!(shown.contains("access1 link1 | access2 link1") && shown.contains("client to router"), "{shown}");
    let json = run(["sim", "topologies", "--json"]).json();
    assert_eq!(json.as_array().map(Vec::len), Some(manypath_scenario::topologies().count()));
    let delays = json.as_array().unwrap().iter().flat_map(|topology| topology["links"].as_array().unwrap());
    assert!(delays.map(|link| link["delay_s"].to_string()).all(|delay| delay.len() <= 11), "noise of floating point");
    run(["sim", "topologies", "ring"]).fails_with(&["no topology 'ring'"]);
}

#[test]
fn seeds_run_side_by_side_and_give_the_same_on_any_number_of_threads() {
    let with = |more: &[&str]| {
        let mut command = manypath(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--set", "connection.cc=cubic"]);
        command.args(["--set", "link.link1.loss=0.1%"]).args(more);
        said(command)
    };
    let one = with(&["--seeds", "4", "--jobs", "1", "--json"]);
    let eight = with(&["--seeds", "4", "--jobs", "8", "--json"]);
    assert_eq!(one.out, eight.out);
    let reports = one.json();
    let seeds: Vec<_> = reports.as_array().unwrap().iter().map(|report| report["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3, 4]);
    assert_ne!(reports[0]["goodput_bps"], reports[1]["goodput_bps"]);
    let table = with(&["--seeds", "2"]).out;
    assert!(table.contains("2 runs from seed 1") && table.contains(" .. "), "{table}");
    assert!(with(&["--seeds", "1"]).out.contains(" 1 run from seed 1\n"));
}

#[test]
fn what_never_starts_is_warned_of() {
    let said = run(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--set", "connection.start=1h"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("built-in.toml:7: warning: ") && said.err.contains("starts at 3600s"), "{}", said.err);
    assert!(!run(["sim", "run", "--set", SHORT, "--set", NO_WARMUP]).err.contains("warning"));
}

#[test]
fn mistakes_are_named_with_their_place_and_remedy() {
    let with = |more: &[&str]| run([&["sim", "run"], more].concat());
    with(&["/does/not/exist"]).fails_with(&["cannot read /does/not/exist"]);
    with(&["/dev/zero"]).fails_with(&["no ordinary file"]);
    with(&["--set", "duration=5"]).fails_with(&["duration=5:1:10", "has no unit: write 5s"]);
    with(&["--set", "link.nope.rate=5Mbit", "--set", "topology=mpcc-3c"])
        .fails_with(&["no link 'nope'", "there are link1, link2"]);
    with(&["--set", "connection.cc=none"]).fails_with(&["built-in.toml:7", "no algorithm is called 'none'", "cubic"]);
    with(&["--set", "link.loss=1%"]).fails_with(&["link.loss=1%:1:6", "no [[link]] table", "link.NAME.KEY"]);
    for seed in ["18446744073709551615", "-1"] {
        with(&["--seed", seed]).fails_with(&["for '--seed <N>'", "a whole number from 0 to 4611686018427387904"]);
    }
    with(&["--seeds", "-1"]).fails_with(&["is not in"]);
    with(&["--parquet", "/dev/null"]).fails_with(&["/dev/null is no folder", "--parquet"]);
    with(&["--seeds", "1000000000"]).fails_with(&["is not in"]);
    with(&["--plot", "run.pdf"]).fails_with(&["write FILE.svg"]);
    // As many time series as are refused where the scenario asks for them.
    with(&["--set", "connection.count=50000", "--plot", "run.svg"]).fails_with(&[
        "--plot needs time series",
        "the number of values in time series",
        "fewer connections",
    ]);
    with(&["--plot", "no/folder/run.svg"]).fails_with(&["there is no folder no/folder", "--plot"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = manypath(["sim", "topologies"]);
    command.stdout(full).stderr(Stdio::piped());
    let full: support::Said = command.spawn().unwrap().wait_with_output().unwrap().into();
    full.fails_with(&["cannot write to standard output: No space left"]);
    let mut command = manypath(["sim", "run", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"duration = \"1s\"\nspeed = 3\n").unwrap();
    let unknown: support::Said = child.wait_with_output().unwrap().into();
    unknown.fails_with(&["standard input:2:1", "unknown field `speed`"]);
    let mut command = manypath(["sim", "run", "-"]);
    command.stdin(std::fs::File::open("/").unwrap());
    said(command).fails_with(&["cannot read standard input: Is a directory"]);
}

#[test]
fn tables_and_figures_are_written() {
    let place = Place::new();
    let (tables, plot) = (place.path("tables"), place.path("run.svg"));
    let with = || {
        let mut command = manypath(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--seeds", "2", "--parquet"]);
        command.arg(&tables).arg("--plot").arg(&plot);
        command
    };
    let said_first = said(with());
    assert_eq!((said_first.code, said_first.err.as_str()), (Some(0), ""));
    let (runs, facts) = manypath_output::read_table(&tables.join("runs.parquet")).unwrap();
    assert_eq!(runs.rows(), 2);
    let fact = |key: &str| facts.iter().find(|(held, _)| held == key).map(|(_, value)| value.as_str());
    assert_eq!(fact("manypath.scenario"), Some(manypath_scenario::built_in()));
    assert_eq!(fact("manypath.overrides"), Some("duration=2s\nwarmup=0s"));
    assert_eq!((fact("manypath.seed"), fact("manypath.runs")), (Some("1"), Some("2")));
    // Drawing asks for time series, so there are tables of them too.
    let series = manypath_output::read_table(&tables.join("subflow_series.parquet")).unwrap().0;
    assert_eq!(series.rows(), 2 * 2 * 500);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("congestion window (kB)") && svg.contains("multipath 1"), "{svg}");
    said(with());
    assert_eq!(std::fs::read_to_string(&plot).unwrap(), svg);
    // Said before a simulation that would take hours.
    let long = ["sim", "run", "--set", "duration=100000s", "--parquet"];
    let mut command = manypath(long);
    command.arg(plot.join("tables"));
    let refused = said(command);
    assert!(refused.code == Some(2) && refused.err.contains("cannot make the folder"), "{}", refused.err);
    run(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--plot", "/dev/full"])
        .fails_with(&["cannot write /dev/full", "No space left"]);
}

#[test]
fn decisions_are_traced_and_drawn() {
    let place = Place::new();
    let (trace, drawing) = (place.path("trace.tsv"), place.path("schedule.svg"));
    let traced = |more: &[&str]| {
        let mut command = manypath(["sim", "run", "--set", "duration=300ms", "--set", NO_WARMUP, "--trace-schedule"]);
        command.arg(&trace).args(["--set", "connection.scheduler=stms-a"]).args(more);
        said(command)
    };
    let with = traced(&["--json"]);
    assert_eq!(with.code, Some(0), "{}", with.err);
    let plain = run([
        "sim",
        "run",
        "--set",
        "duration=300ms",
        "--set",
        NO_WARMUP,
        "--json",
        "--set",
        "connection.scheduler=stms-a",
    ]);
    assert_eq!(with.out, plain.out, "a trace changes nothing");
    let first = std::fs::read(&trace).unwrap();
    let text = String::from_utf8_lossy(&first);
    let decided = |what: &str| text.lines().filter(|line| line.split('\t').nth(2) == Some(what)).count() as u64;
    let sends = decided("send") + decided("resend") + decided("duplicate");
    let report = with.json();
    let sent = |subflow: usize| report["connections"][0]["subflows"][subflow]["sent_packets"].as_u64().unwrap();
    // What was decided last may still wait for its turn.
    assert!((sent(0) + sent(1)..sent(0) + sent(1) + 20).contains(&sends), "{sends}");
    assert!(text.contains("\tfast subflow: the front\n") && text.contains("\tmultipath\t"), "{text}");
    traced(&[]);
    assert_eq!(std::fs::read(&trace).unwrap(), first, "the same bytes");
    let draw = |more: &[&str]| {
        let mut command = manypath(["sim", "plot-schedule"]);
        command.arg(&trace).arg("-o").arg(&drawing).args(more);
        said(command)
    };
    assert_eq!(draw(&["--from", "100ms", "--to", "200ms"]).code, Some(0));
    let svg = std::fs::read_to_string(&drawing).unwrap();
    assert!(svg.contains("data sequence number (kB)") && svg.contains(">subflow 1<"), "{svg}");
    draw(&["--connection", "phone"]).fails_with(&["nothing was sent", "the trace has multipath"]);
    draw(&["--from", "9s"]).fails_with(&["nothing was sent in that time"]);
    draw(&["--from", "2s", "--to", "1s"]).fails_with(&["--to 1s is not after --from 2s"]);
    let mut nonsense = manypath(["sim", "plot-schedule", "/dev/null", "-o"]);
    nonsense.arg(&drawing);
    said(nonsense).fails_with(&["/dev/null is no trace of decisions"]);
    run(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--trace-schedule", "/dev/full"])
        .fails_with(&["cannot write /dev/full", "No space left"]);
    run(["sim", "run", "--seeds", "2", "--trace-schedule", "x"]).fails_with(&["cannot be used with"]);
}

#[cfg(unix)]
#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let name = |bytes: &[u8]| place.path("served").join(std::ffi::OsStr::from_bytes(bytes));
    let mut run = manypath(["sim", "run", "--set", SHORT, "--set", NO_WARMUP, "--plot"]);
    run.arg(name(b"\xff.svg")).arg("--parquet").arg(name(b"\xff")).arg("--trace-schedule").arg(name(b"\xff.tsv"));
    assert_eq!(said(run).err, "");
    let mut plot = manypath(["sim", "plot-schedule", "-o"]);
    plot.arg(name(b"schedule \xff.SVG")).arg(name(b"\xff.tsv"));
    assert_eq!(said(plot).err, "");
    assert_eq!(std::fs::read_dir(place.path("served")).unwrap().count(), 4);
    let mut pdf = manypath(["sim", "run", "--plot"]);
    pdf.arg(name(b"\xff.pdf"));
    said(pdf).fails_with(&["write FILE.svg"]);
}

#[test]
fn a_template_that_does_not_fit_is_not_there() {
    let place = Place::new();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "tmpfs"]).arg(place.path("served")).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        support::skip("a small disk can be mounted by root only");
        return;
    }
    place.file("served/all", 4096);
    let file = place.path("served/mine.toml");
    let full = run(["sim", "new", file.to_str().unwrap()]);
    let left = file.exists();
    assert!(Command::new("umount").arg(place.path("served")).status().unwrap().success());
    full.fails_with(&["cannot write", "mine.toml", "No space left"]);
    assert!(!left);
}

#[test]
fn a_long_run_ends_when_it_is_interrupted() {
    let mut command = manypath(["sim", "run", "--set", "duration=30000h", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The listener for signals is there before the work begins: its descriptors show that it is.
    let caught = format!("/proc/{}/status", child.id());
    support::wait_until("the program catches signals", || {
        let status = std::fs::read_to_string(&caught).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap_or(0) & 0b10 != 0
    });
    let said = interrupt(child);
    said.fails_with(&["interrupted"]);
    assert_eq!(said.out, "");
}
