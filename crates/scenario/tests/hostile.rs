//! Files made to do harm: each is refused with its place and a remedy, in little time and memory.

use std::path::Path;

use manypath_scenario::{Document, parse};

const TOP: &str = "duration = \"1s\"\n";
const LINK: &str = "[[link]]\nname = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = \"10packets\"\n";
const CONNECTION: &str = "[[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{ route = [\"a\"] }]\n";

fn links(count: usize, more: &str) -> String {
    let one = |index| {
        format!("[[link]]\nname = \"l{index}\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = \"10packets\"\n{more}\n")
    };
    (0..count).map(one).collect()
}

/// A connection whose paths all take these links.
fn over(count: usize, paths: usize, more: &str) -> String {
    let names: Vec<String> = (0..count).map(|index| format!("\"l{index}\"")).collect();
    let path = format!("{{ route = [{}] }}", names.join(", "));
    format!("[[connection]]\nname = \"c\"\n{more}\ncc = \"reno\"\npath = [{}]\n", vec![path; paths].join(", "))
}

#[track_caller]
fn refused(text: &str, line: usize, message: &str) {
    let error = parse(text, "bad.toml", Path::new("/nonexistent")).map(drop).unwrap_err();
    let said = error.to_string();
    assert!(said.contains(message), "'{message}' is missing: {said}");
    assert!(said.len() < 1000, "{} bytes of message", said.len());
    assert!(said.starts_with(&format!("bad.toml:{line}:")), "line {line} expected: {said}");
}

#[test]
fn nesting_without_end() {
    refused(&format!("{TOP}{}=1\n", vec!["a"; 500_000].join(".")), 1, "nested too deeply");
    refused(&format!("{TOP}[{}]\n", vec!["a"; 500_000].join(".")), 1, "nested too deeply");
    refused(&format!("{TOP}x={}{}\n", "[".repeat(500_000), "]".repeat(500_000)), 2, "nested too deeply");
    refused(&format!("{TOP}x={}1{}\n", "{a=".repeat(200_000), "}".repeat(200_000)), 2, "nested too deeply");
}

#[test]
fn keys_and_values_of_megabytes() {
    let long = |character: &str| character.repeat(3_000_000);
    refused(&format!("{TOP}{} = 1\n", long("k")), 2, "unknown field");
    refused(&format!("duration = \"{}s\"\n", long("9")), 1, "duration");
    refused(&format!("name = \"{}\"\n{TOP}{LINK}{CONNECTION}", long("n")), 1, "at most 200 characters");
    refused(&format!("{TOP}topology = \"{}\"\n", long("t")), 2, "there are two-links");
    refused(&format!("{TOP}{}{CONNECTION}", LINK.replace("\"a\"", &format!("\"{}\"", long("x")))), 2, "use letters");
    refused(
        &format!("{TOP}{LINK}{}", CONNECTION.replace("\"a\"", &format!("\"{}\"", long("y")))),
        10,
        "there are a, a/back",
    );
    refused(&format!("{TOP}{LINK}{}", CONNECTION.replace("reno", &long("r"))), 9, "at most 1000");
    refused(&"#".repeat(17 << 20), 1, "more than 16 MiB");
}

#[test]
fn numbers_without_measure() {
    let link = |key: &str, value: &str| {
        let keys = ["rate = \"1Mbit\"", "delay = \"1ms\"", "queue = \"10packets\""];
        let held = keys.iter().find(|held| held.starts_with(key)).unwrap();
        format!("{TOP}{}{CONNECTION}", LINK.replace(held, &format!("{key} = {value}")))
    };
    for (key, value, line, message) in [
        ("rate", "\"0bit\"", 2, "the rate is zero"),
        ("rate", "\"-1Mbit\"", 4, "'-1Mbit'"),
        ("rate", "\"NaNMbit\"", 4, "'NaNMbit'"),
        ("rate", "\"infMbit\"", 4, "'infMbit'"),
        ("rate", "\"1e400bit\"", 4, "'1e400bit'"),
        ("rate", "\"9e99Tbit\"", 4, "'9e99Tbit'"),
        ("rate", "nan", 4, "'NaN'"),
        ("rate", "\"5Tbit\"", 2, "rate"),
        ("rate", "\"1MB\"", 4, "unknown unit 'MB'"),
        ("delay", "\"1e300h\"", 5, "1e300h"),
        ("delay", "\"2h\"", 2, "delay"),
        ("queue", "\"99999999999999999999packets\"", 6, "whole number"),
        ("queue", "\"0packets\"", 2, "queue"),
    ] {
        refused(&link(key, value), line, message);
    }
    refused("duration = \"99999999999h\"\n", 1, "99999999999h");
    refused(&format!("duration = \"100000h\"\n{LINK}{CONNECTION}"), 1, "at most ten years");
    refused(&format!("{TOP}{LINK}{CONNECTION}count = 4000000000\n"), 7, "1 to 100000");
    refused(&format!("{TOP}{LINK}{CONNECTION}count = 1000000000000\n"), 11, "expected u32");
    refused(&format!("{TOP}{LINK}{CONNECTION}send-buffer = \"1EiB\"\n"), 11, "unknown unit");
    refused(&format!("{TOP}{LINK}{CONNECTION}send-buffer = \"5GiB\"\n"), 7, "at most 4GiB");
}

#[test]
fn crowds_that_memory_would_not_hold() {
    refused(&format!("{TOP}{}{}", links(65, ""), over(65, 1, "")), 396, "at most 64");
    refused(&format!("{TOP}{}{}", links(1, ""), over(1, 65, "")), 8, "at most 64");
    refused(&format!("{TOP}{}{}", links(1, ""), over(1, 3, "count = 100000")), 8, "at most 200000");
    let sampled = format!("duration = \"100s\"\nsample = \"10us\"\n{}{}", links(1, ""), over(1, 1, "count = 1000"));
    refused(&sampled, 2, "sample less often");
    let drawn = "redraw = { every = \"1ms\", rate = { between = [\"1Mbit\", \"2Mbit\"] } }";
    refused(
        &format!("duration = \"1001s\"\n{}{}", links(2, drawn), over(1, 1, "")),
        2,
        "link 'l0': the number of draws",
    );
    refused(&format!("duration = \"900s\"\n{}{}", links(20, drawn), over(1, 1, "")), 68, "draw less often");
    let fat = "[[link]]\nname = \"a\"\nrate = \"1Tbit\"\ndelay = \"10s\"\nqueue = \"9packets\"\n";
    let flood = "[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"1Tbit\"\n";
    refused(&format!("duration = \"60s\"\n{fat}{flood}"), 2, "the number of packets on their way at once");
    let slow = fat.replace("1Tbit", "1Mbit")
        + "redraw = { every = \"1s\", rate = { mean = \"900Gbit\", deviation = \"1Gbit\" } }\n";
    refused(&format!("duration = \"60s\"\n{slow}{flood}"), 2, "the number of packets on their way at once");
    let crowd = CONNECTION.to_owned() + "count = 10000\nreceive-buffer = \"1GiB\"\nsend-buffer = \"1GiB\"\n";
    refused(&format!("duration = \"60s\"\n{fat}{crowd}"), 2, "smaller buffers");
}

/// Every way in which a link may come to hold too much, one at a time.
#[test]
fn links_that_memory_would_not_hold() {
    let top = "duration = \"60s\"\n";
    let link = |rate: &str, delay: &str, queue: &str, more: &str| {
        format!("[[link]]\nname = \"a\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n")
    };
    let source = |name: &str, packet: u32| {
        format!("[[source]]\nname = \"{name}\"\nroute = [\"a\"]\nrate = \"1Tbit\"\npacket = \"{packet}B\"\n")
    };
    let flood = source("s", 1500);
    let unlikely = "redraw = { every = \"1s\", rate = { mean = \"1Mbit\", deviation = \"500Gbit\" } }";
    let longer = "redraw = { every = \"1s\", delay = { between = [\"1ms\", \"10s\"] } }";
    for link in [
        link("1Gbit", "1ms", "500s", ""),
        link("1Mbit", "10s", "9packets", unlikely),
        link("1Tbit", "1ms", "9packets", longer),
    ] {
        refused(&format!("{top}{link}{flood}"), 2, "link 'a': the number of packets on their way at once");
    }
    // The smallest packets of all that use it count.
    for [one, other] in [[64, 1500], [1500, 64]] {
        let sources = source("s", one) + &source("t", other);
        refused(&format!("{top}{}{sources}", link("2Gbit", "10s", "9packets", "")), 2, "on their way at once");
    }
    let back = link("1Mbit", "10s", "9packets", "back = { rate = \"1Tbit\" }");
    let crowd = CONNECTION.to_owned() + "count = 10000\nreceive-buffer = \"1GiB\"\nsend-buffer = \"1GiB\"\n";
    refused(&format!("{top}{back}{crowd}"), 2, "link 'a/back': the number of packets");
    let sampled = format!("duration = \"10s\"\nsample = \"10us\"\n{}{}", links(50, ""), over(1, 1, ""));
    refused(&sampled, 2, "sample less often");
}

#[test]
fn a_crowd_that_shares_a_link_is_welcome() {
    let text = format!("{TOP}{}{}", links(1, ""), over(1, 1, "count = 100000"));
    assert_eq!(parse(&text, "crowd.toml", Path::new(".")).unwrap().connections.len(), 100_000);
}

/// However much a link could hold.
#[test]
fn users_that_have_little_under_way_are_welcome() {
    let fat = "[[link]]\nname = \"a\"\nrate = \"1Tbit\"\ndelay = \"10s\"\nqueue = \"9packets\"\n";
    // 20 million packets in all.
    let slow = "[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"1.2Gbit\"\npacket = \"1500B\"\n";
    let small = CONNECTION.to_owned() + "count = 10000\nreceive-buffer = \"64kB\"\nsend-buffer = \"1GiB\"\n";
    for users in [slow, &small] {
        parse(&format!("duration = \"200s\"\n{fat}{users}"), "fat.toml", Path::new(".")).unwrap();
    }
}

#[test]
fn keys_that_do_not_go_together() {
    let role = CONNECTION.replace("path = [{ route = [\"a\"] }]", "role = \"mp\"");
    refused(&format!("{TOP}{LINK}{role}"), 10, "connection 'c' with a role needs 'topology'");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace"), "1\n2\n").unwrap();
    let link = LINK.replace("rate = \"1Mbit\"", "trace = \"trace\"");
    let drawn = "redraw = { every = \"1s\", rate = { one-of = [\"1Mbit\"] } }\n";
    let error = parse(&format!("{TOP}{link}{drawn}{CONNECTION}"), "bad.toml", folder.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("bad.toml:2:1: 'a' has both 'trace' and 'redraw.rate'"), "{error}");
    let bursts = "loss = \"1%\"\nloss-burst = 5.0\nredraw = { every = \"1s\", loss = { one-of = [\"2%\"] } }\n";
    refused(&format!("{TOP}{LINK}{bursts}{CONNECTION}"), 2, "'a' has both 'loss-burst' and 'redraw.loss'");
    let other = bursts.replace("loss = { one-of = [\"2%\"] }", "rate = { one-of = [\"1Mbit\"] }");
    parse(&format!("{TOP}{LINK}{other}{CONNECTION}"), "bursts.toml", Path::new(".")).unwrap();
    let twice =
        "schedule = [{ at = \"1s\", rate = \"2Mbit\" }]\nredraw = { every = \"1s\", loss = { one-of = [\"2%\"] } }\n";
    refused(&format!("{TOP}{LINK}{twice}{CONNECTION}"), 2, "'a' has both 'schedule' and 'redraw'");
}

#[test]
fn files_that_are_none() {
    let trace =
        |path: &str| format!("{TOP}{}{CONNECTION}", LINK.replace("rate = \"1Mbit\"", &format!("trace = \"{path}\"")));
    refused(&trace("missing"), 2, "the trace 'missing' cannot be read");
    refused(&trace("/"), 2, "no ordinary file");
    #[cfg(unix)]
    refused(&trace("/dev/zero"), 2, "no ordinary file");
    let folder = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    never_opens_a_fifo(&folder.path().join("fifo"));
    let file = folder.path().join("scenario.toml");
    let read = || Document::read(&file).map(drop).map_err(|error| format!("{error}: {}", error.source));
    assert!(read().unwrap_err().contains("scenario.toml"));
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    assert!(read().unwrap_err().contains("no text"));
    std::fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert!(read().unwrap_err().contains("longer than 16 MiB"));
    assert!(Document::read(folder.path()).is_err());
}

/// Nobody writes to it: who opens it waits for ever.
#[cfg(unix)]
fn never_opens_a_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let (done, waits) = std::sync::mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || done.send(Document::read(&path).map(drop).map_err(|error| error.source.to_string())));
    let outcome = waits.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for a writer");
    assert!(outcome.unwrap_err().contains("no ordinary file"));
}
