//! `get`: fetch a file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use manypath_quic::{Connection, RecvFlow, SendFlow};
use sha2::Sha256;

use crate::client::{self, AlgorithmArgs, ClientArgs};
use crate::files::arriving::{Arriving, SUFFIX};
use crate::files::incoming::{Incoming, ReceiveError};
use crate::files::store::StoreError;
use crate::files::wire::{self, End, Frame};
use crate::files::{Hash, while_wanted};
use crate::interrupt::Interrupt;
use crate::output::{self, shown};
use crate::progress::{self, Position, Side};
use crate::schedule_trace::{ScheduleTrace, TraceArgs};
use crate::target::Target;
use crate::transfer::{self, Facts, Known};

/// Fetch a file over every path at once
///
/// The file grows as NAME.part and gets its name when it is complete and its SHA-256 is the server's. After an
/// interruption the same command goes on where it stopped, if the part is still the beginning of the server's file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath get 192.0.2.7:4433/debian.iso --pin FINGERPRINT\n  \
    manypath get 192.0.2.7:4433/debian.iso --pin FINGERPRINT --path wlan0 --path wwan0\n  \
    manypath get manypath://files.example/debian.iso --ca ca.pem --cc mpcc-loss -o d.iso\n  \
    manypath get 192.0.2.7/film.mkv --pin FINGERPRINT --path wlan0 --path wwan0 --cost wwan0=10 --target-rate 8Mbit")]
pub(crate) struct Args {
    /// The file: HOST:PORT/PATH or manypath://HOST:PORT/PATH; the port is 4433 if left out
    #[arg(value_name = "URL|HOST:PORT/PATH")]
    target: Target,

    /// Where to store it; a folder keeps the name
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    client: ClientArgs,

    #[command(flatten)]
    algorithms: AlgorithmArgs,

    #[command(flatten)]
    trace: TraceArgs,
}

/// Where the file is to be stored.
///
/// A link leads there: it is not replaced, least of all `/dev/stdout`.
fn destination(args: &Args) -> Result<PathBuf> {
    let mut file = named(args)?;
    // As many as the kernel follows; a link that leads nowhere yet has no canonical path.
    for _ in 0..40 {
        let Ok(target) = file.read_link() else { break };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    Ok(file)
}

/// What the file is called by the user, or by the server.
fn named(args: &Args) -> Result<PathBuf> {
    let name = args.target.path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | ".."));
    let name =
        name.with_context(|| format!("'{}' names no file: write the name of one at its end", shown(&args.target)))?;
    Ok(match &args.output {
        None => PathBuf::from(name),
        Some(output) if output.as_os_str() == "-" => {
            bail!("standard output cannot be hashed again or gone on with: name a file (./- for one of that name)")
        }
        Some(output) if output.is_dir() => output.join(name),
        // A path drops such an ending: the file would get the folder's name.
        Some(output) if [&b"/"[..], b"/."].iter().any(|end| output.as_os_str().as_encoded_bytes().ends_with(end)) => {
            bail!("there is no folder {}: make it, or choose another place with --output", shown(output.display()))
        }
        Some(output) => output.clone(),
    })
}

/// Opens the part of `file`, and hashes what is there, while that is `wanted`.
fn open(file: &Path, wanted: &dyn Fn() -> bool) -> Result<(Arriving, Sha256, u64)> {
    let name = file.file_name().with_context(|| format!("{} names no file", shown(file.display())))?;
    // The complete part is renamed over what is there: over a device that would be the end of the device, for all programs.
    if file.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(of_own(StoreError::NotAFile));
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = Dir::open_ambient_dir(parent, ambient_authority());
    let dir = dir.with_context(|| format!("cannot open the folder {}", shown(parent.display())))?;
    let mut arriving = Arriving::open(dir, name).map_err(of_own)?;
    let (hasher, length) = arriving.resume(u64::MAX, wanted)?;
    Ok((arriving, hasher, length))
}

/// An error of the store about a file of the user's own, where nobody serves a folder.
fn of_own(error: StoreError) -> anyhow::Error {
    match &error {
        StoreError::Forbidden => {
            anyhow!("its permissions, or its folder's, forbid it: choose another place with --output")
        }
        StoreError::Storage(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            anyhow!("the file system is read-only: choose another place with --output")
        }
        StoreError::NotAFile | StoreError::LongName => anyhow!("{error}: choose another place with --output"),
        StoreError::NoSpace => anyhow!("the disk is full: free some space"),
        // Its lock ends with the program, whichever way that ends.
        StoreError::Busy => anyhow!("another transfer is writing this file: wait until it has ended"),
        _ => error.into(),
    }
}

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    let file = destination(args)?;
    let trace = ScheduleTrace::open(&args.trace)?;
    let mut known = Known::new(&file, Side::Receiving);
    let outcome = attempt(args, &file, &trace, interrupt, &mut known).await;
    trace.finish(outcome.map_err(|error| known.failed(error, args.json)))
}

/// Opens the part, connects, and fetches.
async fn attempt(
    args: &Args,
    file: &Path,
    trace: &ScheduleTrace,
    interrupt: &Interrupt,
    known: &mut Known<'_>,
) -> Result<()> {
    let opening = {
        let file = file.to_owned();
        while_wanted(move |wanted| open(&file, wanted))
    };
    let opened = tokio::select! {
        opened = opening => opened?,
        () = interrupt.wait() => bail!("interrupted"),
    };
    let part = opened.with_context(|| format!("cannot write {}", shown(file.display())))?;
    let connection = tokio::select! {
        connection = args.client.connect(&args.target.host, &args.algorithms, trace) => connection?,
        () = interrupt.wait() => bail!("interrupted"),
    };
    let outcome = fetch(args, file, part, &connection, interrupt, known).await;
    known.stats = Some(connection.stats());
    client::goodbye(&connection).await;
    outcome
}

/// Fetches over an open connection.
async fn fetch(
    args: &Args,
    file: &Path,
    part: (Arriving, Sha256, u64),
    connection: &Connection,
    interrupt: &Interrupt,
    known: &mut Known<'_>,
) -> Result<()> {
    let started = *known.started.insert(Instant::now());
    let (mut arriving, mut hasher, have) = part;
    let request = Request { path: &args.target.path, have, hash: Hash::of(&hasher), limit_ms: 0 };
    let answer = tokio::select! {
        answer = request.send(connection) => answer?,
        error = args.client.unheard(connection) => return Err(error),
        () = interrupt.wait() => bail!("interrupted"),
    };
    (known.size, known.resumed_from) = (Some(answer.size), Some(answer.from));
    if answer.from == 0 {
        hasher = Sha256::default();
        arriving.restart()?;
        if have > 0 {
            output::note("The part kept from before is not of the server's file: starting anew.");
        }
    } else {
        output::note(format_args!("Going on after {:.1} that are here.", manypath_core::Bytes::new(answer.from)));
    }
    let mut flow = answer.receive;
    let mut incoming = Incoming::start(arriving, hasher, answer.from);
    let (position, bar) = (Position::default(), progress::bar(answer.size));
    let received = tokio::select! {
        received = incoming.receive(&mut flow, answer.size, args.client.timeout, &position) => Some(received),
        () = interrupt.wait() => None,
        never = progress::show(&bar, connection, Side::Receiving, &position) => match never {},
    };
    bar.finish_and_clear();
    let written = incoming.finish().await?;
    let end = match received {
        Some(Ok(end)) if written.outcome.is_ok() => end,
        other => {
            let kept = written.sink.keep();
            let why = why(connection, other, written.outcome).await;
            return Err(why.context(kept_text(file, kept)));
        }
    };
    if let Err(error) = transfer::same_hash(written.hash, end.hash) {
        let mut spoiled = written.sink;
        spoiled.restart()?;
        return Err(error.into());
    }
    if written.length != answer.size {
        written.sink.keep()?;
        bail!("the server ended the file before its end: try again");
    }
    let complete = written.sink;
    let stored = tokio::task::spawn_blocking(move || complete.commit()).await?;
    stored.with_context(|| format!("cannot store {}", shown(file.display())))?;
    let facts = Facts {
        file,
        size: answer.size,
        resumed_from: answer.from,
        elapsed: started.elapsed(),
        hash: end.hash,
        retransmitted: end.retransmitted,
        side: Side::Receiving,
    };
    facts.report(connection, args.json)
}

/// Why a body is incomplete, in words.
async fn why(
    connection: &Connection,
    received: Option<Result<End, ReceiveError>>,
    disk: io::Result<()>,
) -> anyhow::Error {
    if let Err(error) = disk {
        return of_own(error.into());
    }
    match received {
        None => anyhow!("interrupted"),
        Some(Err(ReceiveError::Read(error))) => transfer::explained(connection, error).await,
        Some(Err(error)) => error.into(),
        Some(Ok(_)) => anyhow!("what arrived cannot be written"),
    }
}

/// What the user can do with an incomplete file.
fn kept_text(file: &Path, kept: io::Result<u64>) -> String {
    match kept {
        Ok(0) => format!("{} was not fetched", shown(file.display())),
        Ok(length) => format!(
            "{} is incomplete; {:.1} are kept in {}{SUFFIX}, and the same command goes on from there",
            shown(file.display()),
            manypath_core::Bytes::new(length),
            shown(file.display())
        ),
        Err(error) => format!("{} is incomplete, and its part cannot be kept ({error})", shown(file.display())),
    }
}

/// A request for a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) path: &'a str,
    /// How much of it is here, and the hash of that.
    pub(crate) have: u64,
    pub(crate) hash: Hash,
    /// When the server is to end the body even if there is more; 0: never.
    pub(crate) limit_ms: u32,
}

/// The answer, and the flow on which the content follows.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) size: u64,
    pub(crate) from: u64,
    pub(crate) receive: RecvFlow,
    /// Kept open: dropping it would tell the server that the request is withdrawn.
    _send: SendFlow,
}

impl Request<'_> {
    /// Asks on a flow of its own.
    pub(crate) async fn send(self, connection: &Connection) -> Result<Answer> {
        let (mut send, mut receive) = connection.open_flow().await?;
        let Self { path, have, hash, limit_ms } = self;
        let request = Frame::Get { path: path.to_owned(), have, hash, limit_ms };
        // A server that does not take the request has said why, or the connection is over: reading tells.
        let _ = wire::write(&mut send, &request).await.and_then(|()| send.finish());
        match transfer::answer(connection, wire::read(&mut receive).await).await? {
            Frame::File { size, from } if from <= size && (from == have || from == 0) => {
                Ok(Answer { size, from, receive, _send: send })
            }
            Frame::File { .. } => {
                bail!("the server offers a part that was not asked for: use the same version on both ends")
            }
            other => Err(transfer::unexpected(other, &format!("file '{}'", shown(path)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_name_comes_from_the_path_unless_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = |args: &[&str]| destination(&Cli::try_parse_from([&["x"], args].concat()).unwrap().args);
        assert_eq!(file(&["h:1/a/b"]).unwrap(), PathBuf::from("b"));
        assert_eq!(file(&["h:1/a/b", "-o", "c"]).unwrap(), PathBuf::from("c"));
        assert_eq!(file(&["h:1/a/b", "-o", folder.path().to_str().unwrap()]).unwrap(), folder.path().join("b"));
        for absent in ["new/", "new/."] {
            let output = folder.path().join(absent);
            let error = file(&["h:1/a/b", "-o", output.to_str().unwrap()]).unwrap_err();
            assert!(error.to_string().contains("there is no folder"), "{error}");
        }
        assert!(file(&["h:1/a/b", "-o", "-"]).unwrap_err().to_string().contains("./-"));
        assert_eq!(file(&["h:1/a/b", "-o", "./-"]).unwrap(), PathBuf::from("./-"));
        assert!(file(&["h:1/a/.."]).is_err());
        assert!(file(&["h:1/a/"]).is_err());
    }
}
