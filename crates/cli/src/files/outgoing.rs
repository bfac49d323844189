//! Sending a file's content: a thread reads and hashes, the flow takes what it has room for. What the thread is ahead is
//! bounded.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::store::StoreError;
use super::wire::{self, End, Frame, MAX_DATA, Refusal};
use super::{Hash, hash_prefix};
use crate::progress::Position;

/// How many pieces of [`MAX_DATA`] are read ahead of the flow.
const READ_AHEAD: usize = 8;

/// A file ready to be sent from some offset.
#[derive(Debug)]
pub(crate) struct Outgoing {
    file: File,
    /// As the file was when it was opened: what the peer is told, hashed and sent is of this one.
    opened: Metadata,
    from: u64,
    hasher: Sha256,
}

/// Why a file could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The flow broke.
    #[error(transparent)]
    Flow(io::Error),
    /// The file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not the file it was at the start.
    #[error("the file changed while it was being sent: try again when nobody writes to it")]
    Changed,
    /// The system made its content up as it was read, and knows no size beforehand.
    #[error("it does not have the size that the system says, as files of /proc and /sys: copy it, and send the copy")]
    NoSize,
}

impl SendError {
    /// The code that tells the peer.
    pub(crate) const fn refusal(&self) -> Refusal {
        match self {
            Self::Flow(_) => Refusal::Storage,
            Self::Store(error) => error.refusal(),
            Self::Changed => Refusal::Changed,
            Self::NoSize => Refusal::NotAFile,
        }
    }
}

impl Outgoing {
    /// Prepares `file`, `opened` in that state, whose first `have` bytes the peer says it has with hash `hash`. If they are
    /// not the same the whole file is to be sent. Reads that much, while it is `wanted`: call it where blocking is allowed.
    pub(crate) fn new(
        mut file: File,
        opened: Metadata,
        have: u64,
        hash: Hash,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Self, StoreError> {
        if have > 0 && have <= opened.len() {
            let (hasher, read) = hash_prefix(&mut file, have, wanted)?;
            if read == have && Hash::of(&hasher) == hash {
                return Ok(Self { file, opened, from: have, hasher });
            }
            file.seek(SeekFrom::Start(0))?;
        }
        Ok(Self { file, opened, from: 0, hasher: Sha256::new() })
    }

    /// Where the content starts that is to be sent.
    pub(crate) const fn from(&self) -> u64 {
        self.from
    }

    /// Sends the content and END; `retransmitted` is asked for the sender's count at the end. With `limit`, stops early
    /// after that time: END then covers what was sent. Returns the END that was sent.
    pub(crate) async fn send(
        self,
        flow: &mut (impl AsyncWrite + Unpin),
        limit: Option<Duration>,
        position: &Position,
        retransmitted: impl Fn() -> u64,
    ) -> Result<End, SendError> {
        let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(READ_AHEAD);
        position.set(self.from);
        let reader = tokio::task::spawn_blocking(move || self.read(&sender, limit));
        while let Some(piece) = pieces.recv().await {
            wire::write_data(flow, &piece).await.map_err(SendError::Flow)?;
            position.add(piece.len());
        }
        let (length, hash) = match reader.await {
            Ok(outcome) => outcome?,
            Err(panic) => return Err(StoreError::Storage(io::Error::other(panic)).into()),
        };
        let end = End { length, hash, retransmitted: retransmitted() };
        wire::write(flow, &Frame::End(end)).await.map_err(SendError::Flow)?;
        Ok(end)
    }

    /// The thread's part: returns the length and hash of what was read, or stops when nobody listens.
    fn read(mut self, pieces: &mpsc::Sender<Vec<u8>>, limit: Option<Duration>) -> Result<(u64, Hash), SendError> {
        let started = Instant::now();
        let (mut at, size) = (self.from, self.opened.len());
        while at < size && limit.is_none_or(|limit| started.elapsed() < limit) {
            let mut piece = vec![0; MAX_DATA.min(usize::try_from(size - at).unwrap_or(MAX_DATA))];
            match self.file.read_exact(&mut piece) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.of_another_size()),
                Err(error) => return Err(StoreError::from(error).into()),
            }
            self.hasher.update(&piece);
            at += piece.len() as u64;
            if pieces.blocking_send(piece).is_err() {
                break; // the flow broke; the other side of the channel says so
            }
        }
        if at == size && self.file.read(&mut [0]).map_err(StoreError::from)? > 0 {
            return Err(self.of_another_size());
        }
        if self.has_changed().map_err(StoreError::from)? {
            return Err(SendError::Changed);
        }
        Ok((at, Hash::of(&self.hasher)))
    }

    fn has_changed(&self) -> io::Result<bool> {
        let (then, now) = (&self.opened, self.file.metadata()?);
        Ok((now.len(), now.modified().ok()) != (then.len(), then.modified().ok()))
    }

    /// Why there is more or less to read than the size said.
    fn of_another_size(&self) -> SendError {
        match self.has_changed() {
            Ok(false) => SendError::NoSize,
            Ok(true) => SendError::Changed,
            Err(error) => StoreError::from(error).into(),
        }
    }
}
