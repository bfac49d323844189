//! `emu`: namespaces come and go with the commands. These tests need root and /dev/net/tun; without them they say that they are
//! skipped.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{Place, Said, manypath, run, wait_until};

/// Links in the background, with a name that no other test has; down when dropped.
struct Up {
    name: String,
}

impl Up {
    /// `None` where the system does not let us.
    fn start(name: &str) -> Option<Self> {
        Self::start_with(name, &[])
    }

    fn start_with(name: &str, options: &[&str]) -> Option<Self> {
        let name = unique(name);
        let said = run([&["emu", "up", "--name", &name], options].concat());
        if said.code == Some(2) && said.err.contains("root") {
            support::skip(&said.err);
            return None;
        }
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("10.2.0.1 > 10.2.0.2") && said.out.contains("emu exec --name"), "{}", said.out);
        Some(Self { name })
    }

    fn status(&self) -> Option<Value> {
        let said = run(["emu", "status", "--json"]);
        said.json().as_array().unwrap().iter().find(|links| links["name"] == self.name.as_str()).cloned()
    }

    fn exec(&self, side: &[&str], command: &str) -> Said {
        run([&["emu", "exec", "--name", &self.name][..], side, &["--", "sh", "-c", command]].concat())
    }

    fn down(&self) -> Said {
        run(["emu", "down", "--name", &self.name])
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.down();
    }
}

fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn socket(name: &str) -> bool {
    Path::new("/run/manypath/emu").join(name).exists()
}

fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output().unwrap();
    let root = said.stdout == b"0\n";
    if !root {
        support::skip("namespaces are made by root only");
    }
    root
}

#[test]
fn down_without_a_name_spares_the_links_of_a_running_command() {
    if is_root() {
        // If other tests' links are up as well, it asks for a name for that reason.
        run(["emu", "run", "--", env!("CARGO_BIN_EXE_manypath"), "emu", "down"]).fails_with(&["--name"]);
    }
}

#[test]
fn links_stay_up_until_taken_down() {
    let Some(up) = Up::start("stay") else { return };
    let status = up.status().unwrap();
    assert_eq!(status["paths"][1]["client"], "10.2.0.1");
    assert_eq!(status["paths"][1]["forward"]["links"][0], "link2");
    assert_eq!(status["links"].as_array().unwrap().len(), 4);

    let ours = fs::read_link("/proc/self/ns/net").unwrap();
    let inside = up.exec(&[], "readlink /proc/self/ns/net; cat /proc/net/dev; exit 5");
    assert_eq!(inside.code, Some(5));
    assert!(inside.out.contains("path1:") && inside.out.contains("path2:") && !inside.out.contains("path3:"));
    assert!(!inside.out.starts_with(ours.to_str().unwrap()));
    let other = up.exec(&["--server"], "readlink /proc/self/ns/net");
    assert!(!inside.out.starts_with(&other.out));

    run(["emu", "up", "--name", &up.name]).fails_with(&["are up", "emu down --name"]);
    let holder = format!("/proc/{}", status["pid"]);
    assert!(Path::new(&holder).exists());
    assert_eq!(up.down().code, Some(0));
    assert!(up.status().is_none() && !socket(&up.name));
    wait_until("the holder is gone", || !Path::new(&holder).exists());
    up.down().fails_with(&["no links"]);
}

/// How many threads of the process that holds the links keep processors awake.
fn threads_awake(up: &Up) -> usize {
    let threads = fs::read_dir(format!("/proc/{}/task", up.status().unwrap()["pid"])).unwrap();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")).ok());
    names.filter(|name| name == "manypath-awake\n").count()
}

#[test]
fn processors_are_kept_awake_when_that_is_asked_for() {
    let Some(asleep) = Up::start("asleep") else { return };
    let Some(awake) = Up::start_with("awake", &["--awake"]) else { return };
    let processors = std::thread::available_parallelism().unwrap().get();
    wait_until("a thread spins on each processor", || threads_awake(&awake) == processors);
    assert_eq!(threads_awake(&asleep), 0);
    let look =
        "for i in $(seq 100); do grep -q manypath-awake /proc/$PPID/task/*/comm && exit 0; sleep 0.1; done; exit 1";
    assert_eq!(run(["emu", "run", "--awake", "--name", &unique("awake-too"), "--", "sh", "-c", look]).code, Some(0));
}

#[test]
fn links_of_another_version_are_named_and_the_others_listed() {
    if !is_root() {
        return;
    }
    let name = unique("other-version");
    fs::create_dir_all("/run/manypath/emu").unwrap();
    let place = Path::new("/run/manypath/emu").join(&name);
    let listener = UnixListener::bind(&place).unwrap();
    // Other tests ask, too, or only knock.
    std::thread::spawn(move || {
        for mut asked in listener.incoming().flatten() {
            let _ = asked.read(&mut [0; 64]);
            let _ = asked.write_all(b"{\"name\": 3}");
        }
    });
    let all = run(["emu", "status", "--json"]);
    let one = run(["emu", "status", "--name", &name]);
    fs::remove_file(place).unwrap();
    assert!(all.json().is_array());
    assert!(all.err.contains(&format!("warning: {name}: ")) && all.err.contains("another version"), "{}", all.err);
    assert!(one.code == Some(2) && one.err.contains("another version"), "{}", one.err);
}

#[test]
fn a_killed_holder_leaves_nothing_that_the_next_does_not_remove() {
    let Some(up) = Up::start("killed") else { return };
    let status = up.status().unwrap();
    let namespace = status["client_namespace"].as_str().unwrap();
    assert!(fs::metadata(namespace).is_ok());
    let killed = Command::new("kill").args(["-9", &status["pid"].to_string()]).status().unwrap();
    assert!(killed.success());
    wait_until("the holder is gone", || fs::metadata(namespace).is_err());
    // The file that it left may be gone already: other tests look at what is up, too.
    assert!(up.status().is_none());
    assert!(!socket(&up.name), "whoever looks removes what is dead");

    let again = run(["emu", "up", "--name", &up.name]);
    assert_eq!(again.code, Some(0), "{}", again.err);
}

/// A command that does not end of itself, with a server beside it.
fn long(name: &str, place: &Place, beside: &str) -> Child {
    let program = env!("CARGO_BIN_EXE_manypath");
    let server = format!("{beside} {program} perf -s --state {}", place.path("state").display());
    let mut command = manypath(["emu", "run", "--name", name, "--server", &server, "--", "sleep", "1000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Both and the server's watchdog.
    wait_until("the command runs", || children_of_namespaces(child.id()).len() == 3);
    child
}

/// The processes with these words as their command.
fn running(words: &str) -> usize {
    let listed = Command::new("pgrep").args(["-f", "-x", words]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().count()
}

/// Processes that a manypath process has started.
fn children_of_namespaces(parent: u32) -> Vec<String> {
    let listed = Command::new("ps").args(["-o", "pid=", "--ppid", &parent.to_string()]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn run_ends_with_its_command_and_gives_its_exit_code() {
    if !is_root() {
        return;
    }
    let name = unique("code");
    let said = run(["emu", "run", "--name", &name, "--", "sh", "-c", "cat /proc/net/dev; exit 7"]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    assert!(said.out.contains("path2:") && !socket(&name));
    run(["emu", "run", "--name", &name, "--", "/does/not/exist"]).fails_with(&["cannot run /does/not/exist"]);
    run(["emu", "run", "--name", &name, "--server", "exit 3", "--", "true"]).fails_with(&["server has ended"]);
    assert!(!socket(&name));
}

#[test]
fn run_tears_down_when_interrupted_ended_or_killed() {
    if !is_root() {
        return;
    }
    for (signal, code) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        let (name, place) = (unique(&signal[1..]), Place::new());
        let started = format!("sleep {}{}", 1_000_000 + std::process::id(), code.unwrap_or_default());
        let process = long(&name, &place, &format!("{started} &"));
        wait_until("what the server has started runs", || running(&started) == 1);
        let children = children_of_namespaces(process.id());
        assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
        let said: Said = process.wait_with_output().unwrap().into();
        assert_eq!(said.code, code, "{}", said.err);
        for child in children {
            wait_until("its programs are gone", || !Path::new("/proc").join(&child).exists());
        }
        wait_until("what the server had started is gone", || running(&started) == 0);
        run(["emu", "status"]);
        assert!(!socket(&name));
    }
}

#[test]
fn down_ends_a_run() {
    if !is_root() {
        return;
    }
    let (name, place) = (unique("ended"), Place::new());
    let process = long(&name, &place, "");
    assert_eq!(run(["emu", "down", "--name", &name]).code, Some(0));
    let said: Said = process.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(143), "{}", said.err);
}

#[test]
fn nobody_is_told_that_root_is_needed() {
    let mut command = manypath(["emu", "run", "--", "true"]);
    command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    }
    match command.output() {
        Ok(output) => Said::from(output).fails_with(&["need root", "sudo", "--cap-add NET_ADMIN", "XDG_RUNTIME_DIR"]),
        Err(error) => support::skip(&format!("the user nobody cannot run the program: {error}")),
    }
}

#[test]
fn mistakes_are_errors_with_remedies() {
    run(["emu", "up", "--name", "a/b"]).fails_with(&["letters, digits"]);
    run(["emu", "up", "/does/not/exist.toml"]).fails_with(&["/does/not/exist.toml"]);
    run(["emu", "exec", "--name", "nobody", "--", "true"]).fails_with(&["no links"]);
    run(["emu", "run"]).fails_with(&["COMMAND"]);
    run(["emu", "up", "--overhead", "1501B"]).fails_with(&["at most 1500B", "38B for Ethernet"]);
    let mut nothing = manypath(["emu", "up", "-"]);
    let mut child = nothing.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text = "duration = \"1s\"\ntopology = \"two-links\"\n[[source]]\nname = \"s\"\nroute = [\"link1\"]\nrate = \"1Mbit\"\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    said.fails_with(&["no connection", "add a [[connection]]"]);
    for command in ["up", "run", "shell", "exec", "status", "down"] {
        let help = run(["emu", command, "--help"]);
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Examples:\n  manypath emu "), "{}", help.out);
    }
}
