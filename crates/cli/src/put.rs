//! `put`: store a file on a server.

use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use manypath_quic::{Connection, RecvFlow, SendFlow};
use rustix::fs::OFlags;

use crate::CheckFailed;
use crate::client::{self, AlgorithmArgs, ClientArgs, parse_duration};
use crate::files::outgoing::{Outgoing, SendError};
use crate::files::wire::{self, Frame, ReadError, Refusal};
use crate::files::{Hash, while_wanted};
use crate::interrupt::Interrupt;
use crate::output::{self, shown};
use crate::progress::{self, Position, Side};
use crate::schedule_trace::{ScheduleTrace, TraceArgs};
use crate::target::Target;
use crate::transfer::{self, Facts, Known};

/// Store a file on a server over every path at once
///
/// The server must run with --writable. An existing file is replaced in one step when everything has arrived and its
/// SHA-256 is right. After an interruption the same command goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath put photos.tar 192.0.2.7:4433/photos.tar --pin FINGERPRINT\n  \
    manypath put photos.tar 192.0.2.7:4433/ --pin FINGERPRINT --path wlan0 --path wwan0 --priority wwan0=backup")]
pub(crate) struct Args {
    /// The file to send
    file: PathBuf,

    /// Where to store it: HOST:PORT/PATH; a path that ends with '/' keeps the name
    #[arg(value_name = "HOST:PORT/PATH")]
    target: String,

    /// Wait this long for another transfer of the file to end; the server notices within two minutes that one broke off
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "150s",
        value_parser = parse_duration,
        allow_hyphen_values = true
    )]
    wait: Duration,

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

/// The target, with the file's name added to a folder.
fn target(args: &Args) -> Result<Target> {
    let mut text = args.target.clone();
    if text.ends_with('/') {
        let name = args.file.file_name().and_then(|name| name.to_str());
        text.push_str(name.with_context(|| {
            format!("the name of {} is not UTF-8: write the whole target", shown(args.file.display()))
        })?);
    }
    Ok(text.parse()?)
}

/// Opens the file.
fn open(path: &Path) -> Result<(File, Metadata)> {
    // A socket cannot be opened at all, and the system's words for that are those for a missing device.
    ensure_regular(&fs::metadata(path)?)?;
    // Without waiting for a pipe's other end: it may have come in the file's place meanwhile.
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    let metadata = file.metadata()?;
    ensure_regular(&metadata)?;
    Ok((file, metadata))
}

/// Fails for what has no size beforehand; says what it is, and what to do.
fn ensure_regular(metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        bail!("it is a folder: pack it into one file, as tar does, and send that");
    }
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    bail!(
        "it is {what}, not a regular file, and the server is to know the size beforehand: write what comes from it to a \
         file, and send that"
    );
}

/// What becomes of a file that this side stops sending.
const KEPT: &str = "the server keeps what has arrived, and the same command goes on from there";

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    let target = target(args)?;
    let trace = ScheduleTrace::open(&args.trace)?;
    let mut known = Known::new(&args.file, Side::Sending);
    let outcome = attempt(args, &target, &trace, interrupt, &mut known).await;
    trace.finish(outcome.map_err(|error| known.failed(error, args.json)))
}

/// Opens the file, connects, and stores.
async fn attempt(
    args: &Args,
    target: &Target,
    trace: &ScheduleTrace,
    interrupt: &Interrupt,
    known: &mut Known<'_>,
) -> Result<()> {
    let (file, opened) = open(&args.file).with_context(|| format!("cannot read {}", shown(args.file.display())))?;
    known.size = Some(opened.len());
    let connection = tokio::select! {
        connection = args.client.connect(&target.host, &args.algorithms, trace) => connection?,
        () = interrupt.wait() => bail!("interrupted"),
    };
    let outcome = tokio::select! {
        outcome = store(args, target, (file, opened), &connection, known) => outcome,
        () = interrupt.wait() => Err(anyhow!("interrupted; {KEPT}")),
        error = args.client.unheard(&connection) => Err(error.context(KEPT)),
    };
    known.stats = Some(connection.stats());
    client::goodbye(&connection).await;
    outcome
}

/// The error of a frame that is not the answer. What a server does not find for a file that it is to store is the folder.
fn unexpected(frame: Frame, path: &str) -> anyhow::Error {
    let path = shown(path);
    match frame {
        Frame::Error { refusal: Refusal::NotFound, .. } => {
            anyhow!("the server has no folder for '{path}': store it elsewhere, or make the folder there")
        }
        frame => transfer::unexpected(frame, &format!("file '{path}'")),
    }
}

/// The error of what came while the file was under way, with what the user can do about it.
async fn given_up(connection: &Connection, frame: Result<Frame, ReadError>, path: &str) -> anyhow::Error {
    let why = match transfer::answer(connection, frame).await {
        Ok(Frame::Error { message, .. }) => anyhow!("the server gave up: {message}"),
        Ok(frame) => unexpected(frame, path),
        Err(error) => error,
    };
    why.context(format!(
        "file '{}' is incomplete at the server; run the command again to go on from what has arrived",
        shown(path)
    ))
}

/// How long to wait before the server is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A request that the server has taken.
struct Asked {
    /// When it was sent.
    started: Instant,
    send: SendFlow,
    receive: RecvFlow,
    /// What the server has of an earlier attempt.
    have: u64,
    hash: Hash,
}

/// Asks the server to take the file, again and again while another transfer has it: one that broke off has it for a
/// while.
async fn ask(args: &Args, path: &str, size: u64, connection: &Connection) -> Result<Asked> {
    let first = Instant::now();
    let mut told = false;
    loop {
        let started = Instant::now();
        let (mut send, mut receive) = connection.open_flow().await?;
        // A server that does not take the request has said why, or the connection is over: reading tells.
        let _ = wire::write(&mut send, &Frame::Put { path: path.to_owned(), size }).await;
        let message = match transfer::answer(connection, wire::read(&mut receive).await).await? {
            Frame::Have { length: have, hash } if have <= size => {
                return Ok(Asked { started, send, receive, have, hash });
            }
            Frame::Error { refusal: Refusal::Busy, message } if first.elapsed() < args.wait => message,
            other => return Err(unexpected(other, path)),
        };
        if !std::mem::replace(&mut told, true) {
            output::note(format_args!("Waiting up to {:?} for file '{}': {message}", args.wait, shown(path)));
        }
        tokio::time::sleep(ASK_AGAIN.min(args.wait.saturating_sub(first.elapsed()))).await;
    }
}

/// Stores over an open connection.
async fn store(
    args: &Args,
    target: &Target,
    (file, opened): (File, Metadata),
    connection: &Connection,
    known: &mut Known<'_>,
) -> Result<()> {
    let size = opened.len();
    let Asked { started, mut send, mut receive, have, hash } = ask(args, &target.path, size, connection).await?;
    known.started = Some(started);
    let outgoing = tokio::select! {
        outgoing = while_wanted(move |wanted| Outgoing::new(file, opened, have, hash, wanted)) => outgoing??,
        _ = connection.closed() => return Err(given_up(connection, Err(ReadError::Ended), &target.path).await),
    };
    let from = *known.resumed_from.insert(outgoing.from());
    if from > 0 {
        output::note(format_args!("Going on after {:.1} that the server has.", manypath_core::Bytes::new(from)));
    }
    let (position, bar) = (Position::default(), progress::bar(size));
    // The server speaks once: when it has everything, or to give up.
    let mut answer = std::pin::pin!(wire::read(&mut receive));
    let sending = async {
        wire::write(&mut send, &Frame::From { from }).await.map_err(SendError::Flow)?;
        let end = outgoing.send(&mut send, None, &position, || connection.stats().retransmitted.get()).await?;
        send.finish().map_err(SendError::Flow)?;
        Ok(end)
    };
    let sent = tokio::select! {
        sent = sending => sent,
        frame = &mut answer => {
            bar.finish_and_clear();
            return Err(given_up(connection, frame, &target.path).await);
        }
        never = progress::show(&bar, connection, Side::Sending, &position) => match never {},
    };
    let end = match sent {
        Ok(end) => end,
        Err(SendError::Flow(_)) => {
            bar.finish_and_clear();
            // Why the server takes no more is waiting to be read.
            return Err(given_up(connection, answer.await, &target.path).await);
        }
        Err(error) => {
            bar.finish_and_clear();
            let frame = Frame::Error { refusal: error.refusal(), message: error.to_string() };
            // Whether or not the server hears of it, the user does.
            let _ = wire::write(&mut send, &frame).await;
            return Err(error).with_context(|| format!("cannot send {}", shown(args.file.display())));
        }
    };
    let answer = tokio::select! {
        frame = answer => frame,
        never = progress::show(&bar, connection, Side::Sending, &position) => match never {},
    };
    bar.finish_and_clear();
    match answer {
        Ok(Frame::Done { length, hash }) if length == size => {
            transfer::same_hash(end.hash, hash)?;
        }
        Ok(Frame::Error { refusal: Refusal::Corrupt, message }) => {
            return Err(CheckFailed(format!("the server refuses file '{}': {message}", shown(&target.path))).into());
        }
        other => return Err(given_up(connection, other, &target.path).await),
    }
    let facts = Facts {
        file: &args.file,
        size,
        resumed_from: from,
        elapsed: started.elapsed(),
        hash: end.hash,
        retransmitted: connection.stats().retransmitted.get(),
        side: Side::Sending,
    };
    facts.report(connection, args.json)
}
