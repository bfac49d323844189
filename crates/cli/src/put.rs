//! `put`: store a file on a server.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use manypath_quic::Connection;

use crate::CheckFailed;
use crate::client::{self, AlgorithmArgs, ClientArgs};
use crate::files::outgoing::{Outgoing, SendError};
use crate::files::while_wanted;
use crate::files::wire::{self, Frame, ReadError, Refusal};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{self, Position, Side};
use crate::schedule_trace::{ScheduleTrace, TraceArgs};
use crate::target::Target;
use crate::transfer::{self, Facts};

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
        text.push_str(
            name.with_context(|| format!("the name of {} is not UTF-8: write the whole target", args.file.display()))?,
        );
    }
    Ok(text.parse()?)
}

/// Opens the file.
fn open(path: &Path) -> Result<(File, Metadata)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        bail!("it is not a regular file");
    }
    Ok((file, metadata))
}

/// What becomes of a file that this side stops sending.
const KEPT: &str = "the server keeps what has arrived, and the same command goes on from there";

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    let target = target(args)?;
    let (file, opened) = open(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let trace = ScheduleTrace::open(&args.trace)?;
    let connection = tokio::select! {
        connection = args.client.connect(&target.host, &args.algorithms, &trace) => connection?,
        () = interrupt.wait() => bail!("interrupted"),
    };
    let outcome = tokio::select! {
        outcome = store(args, &target, (file, opened), &connection) => outcome,
        () = interrupt.wait() => Err(anyhow!("interrupted; {KEPT}")),
        error = args.client.unheard(&connection) => Err(error.context(KEPT)),
    };
    client::goodbye(&connection).await;
    trace.finish(outcome)
}

/// The error of a frame that is not the answer. What a server does not find for a file that it is to store is the folder.
fn unexpected(frame: Frame, path: &str) -> anyhow::Error {
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
        "file '{path}' is incomplete at the server; run the command again to go on from what has arrived"
    ))
}

/// Stores over an open connection.
async fn store(args: &Args, target: &Target, (file, opened): (File, Metadata), connection: &Connection) -> Result<()> {
    let (started, size) = (Instant::now(), opened.len());
    let (mut send, mut receive) = connection.open_flow().await?;
    // A server that does not take the request has said why, or the connection is over: reading tells.
    let _ = wire::write(&mut send, &Frame::Put { path: target.path.clone(), size }).await;
    let (have, hash) = match transfer::answer(connection, wire::read(&mut receive).await).await? {
        Frame::Have { length, hash } if length <= size => (length, hash),
        other => return Err(unexpected(other, &target.path)),
    };
    let outgoing = tokio::select! {
        outgoing = while_wanted(move |wanted| Outgoing::new(file, opened, have, hash, wanted)) => outgoing??,
        _ = connection.closed() => return Err(given_up(connection, Err(ReadError::Ended), &target.path).await),
    };
    let from = outgoing.from();
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
            return Err(error).with_context(|| format!("cannot send {}", args.file.display()));
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
            return Err(CheckFailed(format!("the server refuses file '{}': {message}", target.path)).into());
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
