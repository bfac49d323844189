//! The commands that move no files, and the conventions of all.

mod support;

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Place, Server, manypath, run, said};

#[test]
fn algorithms_are_listed() {
    let list = run(["algorithms", "--json"]).json();
    let rows = list.as_array().unwrap();
    for (kind, name) in [("cc", "cubic"), ("cc", "mpcc-loss"), ("sched", "minrtt"), ("sched", "rate-based")] {
        let row = rows.iter().find(|row| row["kind"] == kind && row["name"] == name).unwrap();
        assert!(row["parameters"].is_array() && row["citation"].is_string() && row["status"].is_string(), "{row}");
    }
    assert!(run(["algorithms"]).out.contains("Schedulers (--sched)"));
}

#[test]
fn help_has_examples_and_mistakes_are_errors() {
    for command in ["serve", "get", "put", "perf", "demo", "sim", "algorithms", "emu"] {
        let help = run([command, "--help"]);
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Examples:\n  manypath "), "{command}: {}", help.out);
    }
    for args in [
        &["get"][..],
        &["nothing"],
        &["perf"],
        &["perf", "-s", "-c", "h"],
        &["perf", "-s", "--json"],
        &["perf", "-c", "h", "--no-choice"],
        &["serve", ".", "--cert", "c"],
    ] {
        let said = run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{args:?}");
    }
    let target_rate = ["kernel", "target-rate", "1Mbit", "--cheap", "a", "--dear", "b"];
    for args in [&["perf", "-c", "h", "--timeout", "5"][..], &[&target_rate[..], &["--epoch", "5"]].concat()] {
        run(args).fails_with(&["'5' has no unit: write 5s"]);
    }
    // As for iperf3: what is missing is another thing.
    run(["perf", "-c", "h", "-t", "5", "-i", "0.5"]).fails_with(&["how to trust h:4433 is not said"]);
    for option in ["--time", "--interval", "--timeout"] {
        run(["perf", "-c", "h", option, "-1s"])
            .fails_with(&["'-1s' is out of range: a duration is finite, not negative"]);
    }
    run(["perf", "-c", "h", "-t", "-1s"]).fails_with(&["'-1s' is out of range"]);
    run(["perf", "-c", "h", "-P", "-1"]).fails_with(&["-1 is not in 1..=128"]);
    run(["put", "f", "h/f", "--wait", "-1s"]).fails_with(&["'-1s' is out of range"]);
    run(["perf", "-c", "h", "--target-rate", "-1Mbit"]).fails_with(&["'-1Mbit' is out of range"]);
    run([&target_rate[..], &["--epoch", "-1s"]].concat()).fails_with(&["'-1s' is out of range"]);
    run(["serve", "/does/not/exist"]).fails_with(&["cannot serve /does/not/exist"]);
    run(["put", "/does/not/exist", "h/x", "--pin", "0"]).fails_with(&["64 hexadecimal digits"]);
}

/// Calls that print and do no more.
const PRINTING: [&[&str]; 5] =
    [&["algorithms", "--json"], &["--help"], &["--version"], &["get", "--help"], &["help", "emu", "check"]];

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = said(with_stdout(args, writer));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    for args in PRINTING {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        said(with_stdout(args, full)).fails_with(&["manypath: cannot write to standard output: No space left"]);
    }
}

fn with_stdout(args: &[&str], stdout: impl Into<Stdio>) -> Command {
    let mut command = manypath(args);
    command.stdout(stdout);
    command
}

#[test]
fn errors_name_their_cause_once() {
    let place = Place::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut serve = manypath(["serve", "--listen", &taken.local_addr().unwrap().to_string(), "--state"]);
    serve.arg(place.path("state")).arg(place.path("served"));
    let busy = said(serve);
    busy.fails_with(&["cannot listen on 127.0.0.1:"]);
    assert_eq!(busy.err.matches("Address already in use").count(), 1, "{}", busy.err);
    let mut serve = manypath(["serve", "--token", "", "--listen", "127.0.0.1:0"]);
    serve.arg(place.path("served"));
    said(serve).fails_with(&["--token", "MANYPATH_TOKEN"]);
    let long = "x".repeat(1_025);
    let refused = run(["serve", "--token", &long, "--listen", "127.0.0.1:0"]);
    refused.fails_with(&["--token", "at most 1024 bytes"]);
    assert!(!refused.err.contains("xxx"), "{}", refused.err);
}

#[test]
fn a_client_waits_for_a_server_no_longer_than_it_was_told() {
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, pin) = (nobody.local_addr().unwrap().to_string(), "0".repeat(64));
    let with = |more: &[&str]| run([&["perf", "-c", &address, "--pin", &pin, "--path", "127.0.0.1"], more].concat());
    let said = with(&["--timeout", "200ms", "--json"]);
    said.fails_with(&["no path came up within 200ms"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert!(report["error"].as_str().unwrap().contains("no path came up within 200ms"), "{report}");
    assert!(report["end"].is_null() && report["intervals"] == serde_json::json!([]), "{report}");
    with(&["--target-rate", "8Mbit"]).fails_with(&["write --cost PATH=COST"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_over_an_interface_that_does_not_exist_is_an_error_at_once() {
    let place = Place::new();
    let sent = place.file("served/f", 1000);
    let mut nobody = manypath(["perf", "-c", "127.0.0.1:9", "--pin", &"0".repeat(64)]);
    nobody.args(["--path", "no-such0", "--path", "other=no-such1"]);
    let begun = Instant::now();
    let refused = said(nobody);
    let told = "no interface is called 'no-such0', no interface is called 'no-such1'; the interfaces are ";
    refused.fails_with(&[told]);
    assert!(refused.err.split([' ', ',', '\n']).any(|word| word == "lo"), "{}", refused.err);
    let mut nowhere = manypath(["perf", "-c", "127.0.0.1:9", "--pin", &"0".repeat(64)]);
    nowhere.args(["--path", "192.0.2.77"]);
    said(nowhere).fails_with(&["no interface has the address 192.0.2.77; the interfaces are "]);
    let mut other_family = manypath(["perf", "-c", "127.0.0.1:9", "--pin", &"0".repeat(64)]);
    other_family.args(["--path", "127.0.0.1", "--path", "::1"]);
    said(other_family).fails_with(&["path ::1: ::1 and the server's 127.0.0.1 are of different families"]);
    // The transport gives a server up after 15 s.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    // Interfaces that exist are used, and so is an address beside one that does not: it may appear later.
    let server = Server::start(&place, &[]);
    for paths in [&["--path", "lo"][..], &["--path", "no-such0", "--path", "127.0.0.1"]] {
        let to = place.path("got");
        let target = format!("{}/f", server.address);
        let mut get = manypath(["get", &target, "--pin", &server.pin, "-o", to.to_str().unwrap()]);
        get.args(paths);
        let got = said(get);
        assert_eq!(got.code, Some(0), "{paths:?}: {}", got.err);
        let is_noted = got.err.contains("Note: no interface is called 'no-such0'; the interfaces are ");
        assert_eq!(is_noted, paths.contains(&"no-such0"), "{}", got.err);
        assert_eq!(std::fs::read(&to).unwrap(), sent);
        std::fs::remove_file(&to).unwrap();
    }
}

fn perf_server(place: &Place) -> Server {
    let mut command = manypath(["perf", "-s", "--listen", "127.0.0.1:0", "--state"]);
    command.arg(place.path("state"));
    Server::from_command(command)
}

fn perf(server: &Server, more: &[&str]) -> Command {
    let address = server.address.to_string();
    let mut command = manypath(["perf", "-c", &address, "--pin", &server.pin, "-t", "1s", "-i", "250ms", "--json"]);
    command.args(["--path", "one=127.0.0.1", "--path", "two=127.0.0.1"]).args(more);
    command
}

#[test]
fn perf_measures_both_ways_by_path() {
    let place = Place::new();
    let server = perf_server(&place);
    assert!(server.command.starts_with("manypath perf -c 127.0.0.1:"), "{}", server.command);
    for more in [&["-P", "3"][..], &["-R"]] {
        let report = said(perf(&server, more)).json();
        assert_eq!(report["start"]["reverse"], more == ["-R"]);
        let names = ["cc", "sched"].map(|key| report["start"][key].as_str());
        let own = [Some("cubic"), Some("arrival-order:rescue=on")];
        assert_eq!(names, if more == ["-R"] { [None; 2] } else { own });
        let intervals = report["intervals"].as_array().unwrap();
        // One every 250 ms, for as long as it took.
        let most = report["end"]["seconds"].as_f64().unwrap() / 0.25 + 2.0;
        assert!(intervals.len() >= 3 && (intervals.len() as f64) < most, "{} of {most}", intervals.len());
        let bytes = |value: &Value| value["bytes"].as_u64().unwrap();
        for interval in intervals {
            assert_eq!(interval["paths"][0]["name"], "one");
            assert!(interval["paths"].as_array().unwrap().len() == 2, "{interval}");
        }
        let total: u64 = intervals.iter().map(bytes).sum();
        let end = bytes(&report["end"]);
        assert!(end > 1_000_000 && total > end / 2, "{total} of {end}");
        assert!(report["end"]["goodput_mbps"].as_f64() > Some(8.0));
    }
    let place = Place::new();
    place.file("served/f", 10);
    let files = Server::start(&place, &[]);
    said(perf(&files, &[])).fails_with(&["perf -s"]);
    said(server.get("f", &place.path("g"))).fails_with(&["only measures"]);
}

/// What was measured is over when the flows are, not when somebody reads about it.
#[test]
fn a_reader_that_stalls_does_not_lengthen_the_measurement() {
    let place = Place::new();
    let server = perf_server(&place);
    let address = server.address.to_string();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // As much as a pipe holds: the first line waits for a reader.
    let filler = vec![b'\n'; 1 << 16];
    writer.write_all(&filler).unwrap();
    let args = ["perf", "-c", &address, "--pin", &server.pin, "--path", "127.0.0.1", "-t", "1s", "-i", "100ms"];
    let mut measuring = manypath(args).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(5));
    let waited = begun.elapsed().as_secs_f64();
    assert!(measuring.try_wait().unwrap().is_none(), "its lines had room");
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(measuring.wait().unwrap().success());
    let total = said.lines().last().unwrap();
    let seconds: f64 = total.split(" in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!(seconds >= 1.0 && seconds < waited / 2.0, "{total}; nobody read for {waited:.1} s");
}

/// The server sends on each flow as soon as it is asked for: as much as the windows take, if nobody reads.
#[test]
fn flows_of_a_download_neither_hold_each_other_up_nor_count_more_than_the_link_carries() {
    let place = Place::new();
    let server = perf_server(&place);
    let mut direct = perf(&server, &["-R", "-P", "16"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    support::wait_until("the flows end", || direct.try_wait().unwrap().is_some());
    let direct: support::Said = direct.wait_with_output().unwrap().into();
    assert!(direct.json()["end"]["bytes"].as_u64() > Some(1_000_000));

    let relay = support::slow_link(server.address);
    let (address, path) = (server.address.to_string(), support::through(&relay));
    let args = ["perf", "-c", &address, "--pin", &server.pin, "--path", &path, "-t", "1s", "--json", "-R", "-P", "16"];
    let report = run(args).json();
    let rate = report["end"]["goodput_mbps"].as_f64().unwrap();
    assert!(rate > 10.0 && rate <= 40.0, "{rate} over 40 Mbit/s");
    let counted: u64 = report["intervals"].as_array().unwrap().iter().map(|span| span["bytes"].as_u64().unwrap()).sum();
    assert!(counted <= report["end"]["bytes"].as_u64().unwrap() * 11 / 10, "{report}");
}

#[test]
fn the_demo_reports_runs_and_writes_its_page() {
    let place = Place::new();
    let page = place.path("page.html");
    let args = ["demo", "--cc", "cubic", "--time", "4s", "--json", "--page", page.to_str().unwrap()];
    // The environment of somebody who uses servers with a token.
    let mut demo = manypath(args);
    demo.env("MANYPATH_TOKEN", "sesame");
    let said = said(demo);
    let report: serde_json::Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    // Other tests keep the processors busy meanwhile: if links were not exact in any try, it says so, and only then.
    let links = runs.iter().flat_map(|run| run["links"].as_array().unwrap());
    let rates = links.filter_map(|link| Some((link["measured_mbps"].as_f64()?, link["set_mbps"].as_f64()?)));
    let inexact = rates.into_iter().any(|(measured, set)| (measured / set - 1.0).abs() > 0.01);
    assert_eq!(said.code, Some(i32::from(inexact)), "{}", said.err);
    assert_eq!(said.err.contains("was not what it was set to"), inexact, "{}", said.err);
    for (run, paths) in runs.iter().zip([&["wifi"][..], &["lte"], &["wifi", "lte"]]) {
        assert_eq!((&run["cc"], &run["sched"]), (&"cubic".into(), &"arrival-order:rescue=on".into()));
        assert_eq!(run["paths"], serde_json::json!(paths));
        assert_eq!(run["sha256_ok"], true);
        assert!(run["seconds"].as_f64() >= Some(4.0) && run["goodput_mbps"].as_f64() > Some(1.0), "{run}");
        assert!(run["capacity_share"].as_f64() > Some(0.0));
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    run(["demo", "--page", "/does/not/exist/page.html"]).fails_with(&["no folder /does/not/exist", "--page"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_measurement_tells_what_it_had() {
    let place = Place::new();
    let server = perf_server(&place);
    let address = server.address.to_string();
    let interrupted = |more: &[&str]| {
        let args = ["perf", "-c", &address, "--pin", &server.pin, "-t", "60s", "-i", "250ms", "--path", "127.0.0.1"];
        let child = manypath(args).args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let said = support::interrupt(child);
        said.fails_with(&["interrupted"]);
        said.out
    };
    let text = interrupted(&[]);
    assert!(text.lines().last().unwrap().starts_with("Until then: "), "{text}");
    let report: serde_json::Value = serde_json::from_str(&interrupted(&["--json"])).unwrap();
    assert!(report["intervals"].as_array().unwrap().len() > 1 && report["end"].is_null(), "{report}");
    assert_eq!(report["error"], "interrupted");
}

#[test]
fn an_interrupted_demo_leaves_no_server_behind() {
    let place = Place::new();
    let page = place.path("page.html");
    let mut command = manypath(["demo", "--cc", "cubic", "--page", page.to_str().unwrap()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut server = String::new();
    // Threads start children too: look at all of them.
    let tasks = format!("/proc/{}/task", child.id());
    support::wait_until("the server process runs", || {
        let threads = std::fs::read_dir(&tasks).unwrap().filter_map(Result::ok);
        let found = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        server = found.collect::<String>().trim().to_owned();
        !server.is_empty()
    });
    assert!(!server.contains(' '), "one process: {server}");
    support::interrupt(child).fails_with(&["interrupted"]);
    support::wait_until("the server process is gone", || {
        let status = std::fs::read_to_string(format!("/proc/{server}/stat"));
        status.map_or(true, |status| status.contains(") Z "))
    });
    assert!(!page.exists());
}
