//! Receiving a file's content: the flow hands pieces to a thread that writes and hashes. However it ends, what the thread
//! was given is written, so that a part is always a beginning of the file.

use std::io::{self, Write};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Hash;
use super::patient::Patient;
use super::wire::{self, End, Frame, ReadError, Refusal};
use crate::progress::Position;

/// How many pieces wait for the disk before the flow is left waiting.
const WRITE_BEHIND: usize = 16;

/// A body that is being received into `S`.
#[derive(Debug)]
pub(crate) struct Incoming<S> {
    pieces: mpsc::Sender<Vec<u8>>,
    writer: JoinHandle<Written<S>>,
    length: u64,
}

/// What has become of a body.
#[derive(Debug)]
pub(crate) struct Written<S> {
    /// Where it was written.
    pub(crate) sink: S,
    /// The length of all of it, the part that was there before included.
    pub(crate) length: u64,
    /// The hash of all of it.
    pub(crate) hash: Hash,
    /// Whether the writing failed.
    pub(crate) outcome: io::Result<()>,
}

/// Why a body is incomplete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The flow broke or what arrived makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The sender gave up.
    #[error("the other side gave up: {message}")]
    Refused {
        /// Why, for programs.
        refusal: Refusal,
        /// Why, for people.
        message: String,
    },
    /// Nothing arrived for a long time.
    #[error("nothing has arrived for {0:?}: check that the other side runs and that a path to it works")]
    Silent(Duration),
    /// The thread stopped taking pieces: [`Written::outcome`] says why.
    #[error("what arrives cannot be written")]
    Writing,
}

/// The next frame of a body, which may come slowly.
pub(crate) async fn next(flow: &mut Patient<impl AsyncRead + Unpin>) -> Result<Frame, ReceiveError> {
    wire::read(flow).await.map_err(|error| match error {
        ReadError::Flow(error) if error.kind() == io::ErrorKind::TimedOut => ReceiveError::Silent(flow.patience()),
        error => error.into(),
    })
}

impl<S: Write + Send + 'static> Incoming<S> {
    /// Starts to write to `sink`, which holds `length` bytes already, hashed by `hasher`.
    pub(crate) fn start(sink: S, hasher: Sha256, length: u64) -> Self {
        let (pieces, receiver) = mpsc::channel(WRITE_BEHIND);
        let writer = tokio::task::spawn_blocking(move || write(sink, hasher, length, receiver));
        Self { pieces, writer, length }
    }

    /// Receives until END, but no more than `size` bytes altogether. May be dropped at any time: [`Self::finish`] follows.
    pub(crate) async fn receive(
        &mut self,
        flow: &mut (impl AsyncRead + Unpin),
        size: u64,
        silence: Duration,
        position: &Position,
    ) -> Result<End, ReceiveError> {
        position.set(self.length);
        let mut flow = Patient::new(flow, silence);
        loop {
            match next(&mut flow).await? {
                Frame::Data(piece) => {
                    let length = piece.len();
                    if length as u64 > size - self.length {
                        return Err(ReadError::Malformed("more content than the file has").into());
                    }
                    self.pieces.send(piece).await.map_err(|_| ReceiveError::Writing)?;
                    self.length += length as u64;
                    position.add(length);
                }
                Frame::End(end) if end.length == self.length => return Ok(end),
                Frame::End(_) => return Err(ReadError::Malformed("the end names another length").into()),
                Frame::Error { refusal, message } => return Err(ReceiveError::Refused { refusal, message }),
                _ => return Err(ReadError::Malformed("content was expected").into()),
            }
        }
    }

    /// Waits until everything received is written.
    pub(crate) async fn finish(self) -> io::Result<Written<S>> {
        drop(self.pieces);
        self.writer.await.map_err(io::Error::other)
    }
}

/// The thread's part.
fn write<S: Write>(
    mut sink: S,
    mut hasher: Sha256,
    mut length: u64,
    mut pieces: mpsc::Receiver<Vec<u8>>,
) -> Written<S> {
    let mut outcome = Ok(());
    while let Some(piece) = pieces.blocking_recv() {
        outcome = sink.write_all(&piece);
        if outcome.is_err() {
            break;
        }
        hasher.update(&piece);
        length += piece.len() as u64;
    }
    Written { sink, length, hash: Hash::of(&hasher), outcome }
}

#[cfg(test)]
mod tests;
