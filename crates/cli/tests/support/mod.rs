//! Runs the program as its users do: processes, exit codes, files.

#![allow(dead_code)] // every test file uses its own part

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use manypath_core::{Bytes, Duration as Span, Rate};
use manypath_emu::{Relay, RelayConfig};
use manypath_link::{LinkConfig, QueueLimit};

/// However slow the machine is, no step takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says why a test is skipped; where `tools/test.sh` lets nothing be skipped, that is a failure.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("MANYPATH_NO_SKIPS").is_none(), "skipped: {why}");
    eprintln!("skipped: {why}");
}

/// The program with arguments.
pub(crate) fn manypath<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manypath"));
    command.args(args).env_remove("MANYPATH_TOKEN").stdin(Stdio::null());
    command
}

/// What a finished process has said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// Fails unless the process ended with an error that says all of this.
    #[track_caller]
    pub(crate) fn fails_with(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "'{word}' is missing: {}", self.err);
        }
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Said {
    manypath(args).output().unwrap().into()
}

/// Asks a process to end, as Ctrl-C does, and waits. One that does not is killed, which its exit code tells.
pub(crate) fn interrupt(mut child: Child) -> Said {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() >= deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap().into()
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder to work in, with `served` in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("served")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that has no pattern.
    pub(crate) fn file(&self, name: &str, size: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let content: Vec<u8> = words.flatten().take(size).collect();
        fs::write(self.path(name), &content).unwrap();
        content
    }

    pub(crate) fn size(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).map_or(0, |metadata| metadata.len())
    }
}

/// A server process; killed when dropped.
pub(crate) struct Server {
    process: Option<Child>,
    pub(crate) address: SocketAddr,
    pub(crate) pin: String,
    pub(crate) command: String,
}

impl Server {
    pub(crate) fn start(place: &Place, more: &[&str]) -> Self {
        Self::start_at(place, "127.0.0.1:0", more)
    }

    pub(crate) fn start_at(place: &Place, listen: &str, more: &[&str]) -> Self {
        let mut command = manypath(["serve", "--listen", listen, "--state"]);
        command.arg(place.path("state")).arg(place.path("served")).args(more);
        Self::from_command(command)
    }

    pub(crate) fn from_command(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let position = words.iter().position(|word| *word == "--pin").expect("the command to paste has a pin");
        let address = words
            .iter()
            .find_map(|word| word.trim_start_matches('\'').split('/').next()?.parse().ok())
            .expect("it has an address");
        Self { process: Some(process), address, pin: words[position + 1].to_owned(), command: line.trim().to_owned() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(mut self) -> Said {
        interrupt(self.process.take().unwrap())
    }

    pub(crate) fn get(&self, file: &str, to: &Path) -> Command {
        let mut command = manypath(["get", &format!("{}/{file}", self.address), "--pin", &self.pin, "--json"]);
        command.args(["--path", "lo=127.0.0.1", "-o"]).arg(to);
        command
    }

    pub(crate) fn put(&self, from: &Path, file: &str) -> Command {
        let mut command = manypath(["put"]);
        command.arg(from).args([&format!("{}/{file}", self.address), "--pin", &self.pin, "--json"]);
        command.args(["--path", "lo=127.0.0.1"]);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn said(mut command: Command) -> Said {
    command.output().unwrap().into()
}

/// A slow link to a server, so that transfers can be interrupted in the middle.
pub(crate) fn slow_link(to: SocketAddr) -> Relay {
    let link = LinkConfig::new(Rate::from_mbps(40.0), Span::from_millis(5), QueueLimit::Bytes(Bytes::new(100_000)));
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = RelayConfig::new(listen, to, link.clone(), link, 1);
    config.realtime = false;
    Relay::start(&config).unwrap()
}

/// The option that takes the slow link.
pub(crate) fn through(relay: &Relay) -> String {
    format!("slow=127.0.0.1@{}", relay.local_addr())
}
