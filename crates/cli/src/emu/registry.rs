//! Which links are up: each has a socket in a folder, which answers as long as its process lives.
//!
//! Namespaces have no names and devices are not persistent, so a process that is killed leaves nothing but the file of its socket;
//! whoever finds one that nobody answers at removes it.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// The longest that links take to answer: they do nothing else that takes long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that links take to end, the programs that they run included.
const END_PATIENCE: Duration = Duration::from_secs(15);
/// The longest name: sockets' paths are at most 108 octets (unix(7)).
const LONGEST_NAME: usize = 50;

/// What links are called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(String);

impl Name {
    /// The name for a scenario: its own, without what a name may not have.
    pub(super) fn of(scenario: &str) -> Self {
        let plain = |c: char| if Self::allows(c) { c } else { '-' };
        Self(scenario.chars().take(LONGEST_NAME / 2).map(plain).collect())
    }

    /// The name with a number, for links that live as long as one command.
    pub(super) fn numbered(&self, number: u32) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    const fn allows(c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(Self::allows) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("a name has up to {LONGEST_NAME} letters, digits, - and _"))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A request to links that are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Answer with the status as JSON.
    Status,
    /// End; the connection is closed when all is gone.
    Stop,
}

impl Request {
    const fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Stop => "stop",
        }
    }
}

/// A name that is taken. The file goes when this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    listener: UnixListener,
    file: PathBuf,
}

impl Registration {
    /// Takes a name.
    pub(super) fn new(name: &Name) -> Result<Self> {
        let folder = folder()?;
        let taken = || format!("cannot register the links in {}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(taken)?;
        let _alone = lock(&folder).with_context(taken)?;
        let file = folder.join(name.to_string());
        if is_dead(&file) {
            fs::remove_file(&file).with_context(taken)?;
        } else if file.exists() {
            bail!(
                "links called '{name}' are up: end them with `manypath emu down --name {name}`, or give another --name"
            );
        }
        let listener = UnixListener::bind(&file).with_context(taken)?;
        Ok(Self { listener, file })
    }

    /// The next request, and who waits for its answer. What cannot be understood is passed over.
    pub(super) async fn next(&self) -> (Request, UnixStream) {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                // No descriptor is free: others will be closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut word = String::new();
            let mut limited = (&mut stream).take(16);
            if matches!(timeout(PATIENCE, limited.read_to_string(&mut word)).await, Ok(Ok(_))) {
                let known = [Request::Status, Request::Stop];
                if let Some(request) = known.into_iter().find(|request| request.word() == word) {
                    return (request, stream);
                }
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // If that fails, whoever finds the file will see that nobody answers.
        let _ = fs::remove_file(&self.file);
    }
}

/// Sends an answer. An asker that has gone away needs none.
pub(super) async fn answer(mut stream: UnixStream, text: &str) {
    let _ = timeout(PATIENCE, stream.write_all(text.as_bytes())).await;
}

/// The names of the links that are up. Files that nobody answers at are removed.
pub(super) fn all() -> Result<Vec<Name>> {
    let folder = folder()?;
    let _alone = match lock(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        held => held.context("cannot list the links")?,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).context("cannot list the links")? {
        let file = entry.context("cannot list the links")?.path();
        if is_dead(&file) {
            // If that fails, the next to look will see the same.
            let _ = fs::remove_file(&file);
        } else if let Some(name) = file.file_name().and_then(|name| name.to_str()?.parse().ok()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The links of this name; without one the only ones there are.
pub(super) fn choose(name: Option<&Name>) -> Result<Name> {
    let names = all()?;
    match (name, names.as_slice()) {
        (Some(name), _) if names.contains(name) => Ok(name.clone()),
        (None, [only]) => Ok(only.clone()),
        (_, []) => bail!("no links are up: start some with `manypath emu up SCENARIO`"),
        (Some(name), _) => bail!("no links are called '{name}'; there are {}", listed(&names)),
        (None, _) => bail!("several links are up, {}: choose with --name", listed(&names)),
    }
}

fn listed(names: &[Name]) -> String {
    names.iter().map(Name::to_string).collect::<Vec<_>>().join(", ")
}

/// Asks links for their status.
pub(super) async fn status(name: &Name) -> Result<String> {
    let mut text = String::new();
    let mut stream = ask(name, Request::Status).await?;
    let read = timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    read.map_err(io::Error::from).flatten().with_context(|| format!("the links '{name}' do not answer"))?;
    Ok(text)
}

/// Ends links, and waits until they are gone. A process that does not answer is killed: nothing survives it.
pub(super) async fn stop(name: &Name) -> Result<()> {
    let mut stream = ask(name, Request::Stop).await?;
    let mut nothing = String::new();
    if timeout(END_PATIENCE, stream.read_to_string(&mut nothing)).await.is_err() {
        let holder = stream.peer_cred().ok().and_then(|holder| holder.pid());
        let holder = holder.with_context(|| format!("the links '{name}' do not end"))?;
        let killed = Command::new("kill").args(["-9", &holder.to_string()]).status();
        killed.with_context(|| format!("cannot kill process {holder}, which holds the links '{name}'"))?;
    }
    Ok(())
}

async fn ask(name: &Name, request: Request) -> Result<UnixStream> {
    let unreachable = || format!("cannot reach the links '{name}'");
    let mut stream = UnixStream::connect(folder()?.join(name.to_string())).await.with_context(unreachable)?;
    stream.write_all(request.word().as_bytes()).await.with_context(unreachable)?;
    stream.shutdown().await.with_context(unreachable)?;
    Ok(stream)
}

/// Keeps others from looking at the sockets and from making any, as long as the file is held: between its making and its first
/// listening a socket looks dead, and between finding one dead and taking its place no other may do the same.
fn lock(folder: &Path) -> io::Result<File> {
    let held = File::open(folder)?;
    flock(&held, FlockOperation::LockExclusive)?;
    Ok(held)
}

/// Whether there is a socket that nobody listens at.
fn is_dead(file: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    std::os::unix::net::UnixStream::connect(file).is_err_and(refused)
}

/// What others than root are told who have no folder for sockets.
const NOT_ROOT: &str = "emulated links need root: run it as root (sudo), in a container with --cap-add NET_ADMIN --cap-add \
    SYS_ADMIN; a user who has these capabilities must also set XDG_RUNTIME_DIR to a folder of their own";

/// Where sockets are: root's are the system's, others' go when they log out.
fn folder() -> Result<PathBuf> {
    let base = if rustix::process::geteuid().is_root() {
        PathBuf::from("/run")
    } else {
        std::env::var_os("XDG_RUNTIME_DIR").context(NOT_ROOT)?.into()
    };
    Ok(base.join("manypath").join("emu"))
}
