//! What `get` and `put` share: the checks on the way, the outcome, and how it is told.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use manypath_core::Bytes;
use manypath_quic::{CloseReason, Connection, ConnectionStats, PathState, PathStats};
use serde::Serialize;

use crate::CheckFailed;
use crate::files::Hash;
use crate::files::wire::{Frame, ReadError, Refusal};
use crate::output::{self, ReaderGone, rounded, shown};
use crate::progress::{Side, mbps};

/// A finished transfer, as in the JSON output.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// The file on this side.
    file: String,
    /// Its size in bytes.
    size: u64,
    /// Where the transfer went on from an earlier attempt; 0 if it was the first.
    resumed_from: u64,
    /// From the request to the confirmation.
    seconds: f64,
    /// The bytes moved now, over the seconds.
    goodput_mbps: f64,
    /// The hash of the whole file, the same on both sides.
    sha256: String,
    /// Bytes that the sender sent again.
    retransmitted_bytes: u64,
    /// What each path carried.
    paths: Vec<PathOutcome>,
}

#[derive(Debug, Serialize)]
struct PathOutcome {
    name: String,
    bytes: u64,
    goodput_mbps: f64,
    srtt_ms: Option<f64>,
    /// Why it is not up, if it is not.
    error: Option<String>,
}

/// A transfer that failed, as in the JSON output: the keys of [`Outcome`] that make sense, `null` where a value is not known.
#[derive(Debug, Serialize)]
struct FailedOutcome {
    file: String,
    size: Option<u64>,
    resumed_from: Option<u64>,
    seconds: Option<f64>,
    paths: Vec<PathOutcome>,
    error: String,
}

/// What is known of a transfer while it runs: what there is to tell if it fails.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    file: &'a Path,
    side: Side,
    /// When it was asked for.
    pub(crate) started: Option<Instant>,
    pub(crate) size: Option<u64>,
    pub(crate) resumed_from: Option<u64>,
    /// What the connection has carried.
    pub(crate) stats: Option<ConnectionStats>,
}

impl<'a> Known<'a> {
    /// Nothing but the file on this side, and which side that is.
    pub(crate) const fn new(file: &'a Path, side: Side) -> Self {
        Self { file, side, started: None, size: None, resumed_from: None, stats: None }
    }

    /// Writes what is known of a transfer that failed, if that is wanted as JSON; returns why it failed.
    pub(crate) fn failed(&self, error: anyhow::Error, json: bool) -> anyhow::Error {
        if json && !error.is::<ReaderGone>() {
            let elapsed = self.started.map(|started| started.elapsed());
            let paths = self.stats.as_ref().map(|stats| path_outcomes(stats, self.side, elapsed.unwrap_or_default()));
            let outcome = FailedOutcome {
                file: self.file.display().to_string(),
                size: self.size,
                resumed_from: self.resumed_from,
                seconds: elapsed.map(|elapsed| rounded(elapsed.as_secs_f64(), 3)),
                paths: paths.unwrap_or_default(),
                error: crate::told(&error),
            };
            // Where it cannot be written the exit code and standard error say it.
            let _ = output::json(&outcome);
        }
        error
    }
}

/// What each path carried in `elapsed`.
fn path_outcomes(stats: &ConnectionStats, side: Side, elapsed: Duration) -> Vec<PathOutcome> {
    let told = stats.paths.iter().enumerate().filter(|(_, path)| has_served(path));
    let paths = told.map(|(index, path)| {
        let bytes = side.bytes(stats, index);
        PathOutcome {
            name: path.name.clone(),
            bytes,
            goodput_mbps: rounded(mbps(bytes, elapsed), 3),
            srtt_ms: path.srtt.map(|srtt| rounded(srtt.as_secs_f64() * 1e3, 3)),
            error: path.last_error.clone(),
        }
    });
    paths.collect()
}

/// What is known when a transfer has succeeded.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) file: &'a Path,
    pub(crate) size: u64,
    pub(crate) resumed_from: u64,
    pub(crate) elapsed: Duration,
    pub(crate) hash: Hash,
    pub(crate) retransmitted: u64,
    pub(crate) side: Side,
}

impl Facts<'_> {
    /// Tells the user.
    pub(crate) fn report(&self, connection: &Connection, json: bool) -> Result<()> {
        let outcome = Outcome {
            file: self.file.display().to_string(),
            size: self.size,
            resumed_from: self.resumed_from,
            seconds: rounded(self.elapsed.as_secs_f64(), 3),
            goodput_mbps: rounded(mbps(self.size - self.resumed_from, self.elapsed), 3),
            sha256: self.hash.to_string(),
            retransmitted_bytes: self.retransmitted,
            paths: path_outcomes(&connection.stats(), self.side, self.elapsed),
        };
        if json {
            output::json(&outcome)?;
            return Ok(());
        }
        let verb = if self.side == Side::Sending { "Sent" } else { "Received" };
        let (file, size) = (shown(&outcome.file), Bytes::new(self.size));
        output::note(format_args!(
            "{verb} {file} ({size:.1}) in {:.1} s: {:.1} Mbit/s",
            outcome.seconds, outcome.goodput_mbps
        ));
        for path in &outcome.paths {
            let why = path.error.as_ref().map_or_else(String::new, |error| format!("  ({error})"));
            output::note(format_args!("  {:<12} {:>8.1} Mbit/s{why}", path.name, path.goodput_mbps));
        }
        output::line(&format!("{}  {file}", outcome.sha256))?;
        Ok(())
    }
}

/// Whether a path is worth a line: one that is gone and has carried nothing is not.
pub(crate) fn has_served(path: &PathStats) -> bool {
    path.state != PathState::Removed || path.bytes_sent + path.bytes_received > Bytes::ZERO
}

/// The error of a frame that is not the answer.
pub(crate) fn unexpected(frame: Frame, subject: &str) -> anyhow::Error {
    match frame {
        Frame::Error { refusal, message } => refused(refusal, &message, subject),
        _ => anyhow!("the server does not follow the protocol: use the same version on both ends"),
    }
}

/// A server's refusal in the words of this side.
pub(crate) fn refused(refusal: Refusal, message: &str, subject: &str) -> anyhow::Error {
    match refusal {
        Refusal::NotFound => anyhow!("the server has no {subject}: check the spelling"),
        _ => anyhow!("the server refuses {subject}: {message}"),
    }
}

/// How long a broken flow's connection may take to say why.
const EXPLANATION: Duration = Duration::from_secs(1);

/// What went wrong when a flow broke: the connection knows more than the flow.
pub(crate) async fn explained(connection: &Connection, error: ReadError) -> anyhow::Error {
    if matches!(error, ReadError::Malformed(_)) {
        return error.into();
    }
    match tokio::time::timeout(EXPLANATION, connection.closed()).await {
        Ok(reason) => lost(&reason),
        Err(_) => error.into(),
    }
}

/// A connection's end as an error.
fn lost(reason: &CloseReason) -> anyhow::Error {
    anyhow!("the connection to the server was lost: {reason}")
}

/// An answer, or why there is none.
pub(crate) async fn answer(connection: &Connection, frame: Result<Frame, ReadError>) -> Result<Frame> {
    match frame {
        Ok(frame) => Ok(frame),
        Err(error) => Err(explained(connection, error).await),
    }
}

/// Refuses a transfer whose two ends saw different bytes.
pub(crate) fn same_hash(here: Hash, there: Hash) -> Result<(), CheckFailed> {
    if here == there {
        return Ok(());
    }
    Err(CheckFailed(format!("SHA-256 differs: {here} here, {there} at the server. Nothing was kept; try again")))
}
