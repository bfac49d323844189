//! The server's side of the file service: one request a flow (`docs/files.md`).

use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manypath_quic::{Connection, FlowError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tracing::{debug, info};

use crate::files::arriving::Arriving;
use crate::files::incoming::{Incoming, ReceiveError};
use crate::files::outgoing::{Outgoing, SendError};
use crate::files::patient::Patient;
use crate::files::store::{Store, StoreError};
use crate::files::wire::{self, Direction, Frame, ReadError, Refusal};
use crate::files::{Hash, while_wanted};
use crate::perf;
use crate::progress::Position;

/// How long a client may take to state its request, and then to go on with it: to send, or to read what it is sent. Longer than
/// any outage that its session outlives: 30 s until QUIC gives up the last path, and 60 s without one.
const PATIENCE: Duration = Duration::from_secs(120);

/// How fast the slowest clients read and hash a file, bytes per second.
const SLOWEST_HASH: u64 = 10_000_000;

/// Requests served at once, over all clients: each holds an open file and a thread, and about a megabyte beside what its session
/// holds, which is up to `--window` of what is sent and not yet acknowledged, and as much of what is received and not yet read.
const MAX_REQUESTS: usize = 256;

/// What a server does for its clients.
#[derive(Debug)]
pub(crate) struct Service {
    store: Option<Store>,
    requests: Semaphore,
    /// [`PATIENCE`], but in tests.
    patience: Duration,
}

/// Why a request was not fulfilled.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Receive(ReceiveError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the flow broke: {0}")]
    Flow(#[from] io::Error),
    #[error("{0}")]
    Refused(&'static str, Refusal),
}

impl Failure {
    /// What to tell the client; `None` where it would not hear it.
    fn answer(&self) -> Option<Frame> {
        let refusal = match self {
            Self::Read(ReadError::Malformed(_)) | Self::Receive(ReceiveError::Read(ReadError::Malformed(_))) => {
                Refusal::BadRequest
            }
            // After a pause the client may be there again.
            Self::Receive(ReceiveError::Silent(_)) => Refusal::BadRequest,
            Self::Read(_) | Self::Receive(_) | Self::Send(SendError::Flow(_)) | Self::Flow(_) => return None,
            Self::Send(error) => error.refusal(),
            Self::Store(error) => error.refusal(),
            Self::Refused(_, refusal) => *refusal,
        };
        Some(Frame::Error { refusal, message: self.to_string() })
    }
}

impl Service {
    /// Serves files.
    pub(crate) fn files(store: Store) -> Arc<Self> {
        Arc::new(Self::new(Some(store), PATIENCE))
    }

    /// Serves measurements and nothing else.
    pub(crate) fn perf() -> Arc<Self> {
        Arc::new(Self::new(None, PATIENCE))
    }

    const fn new(store: Option<Store>, patience: Duration) -> Self {
        Self { store, requests: Semaphore::const_new(MAX_REQUESTS), patience }
    }

    /// Serves one client until it leaves.
    pub(crate) async fn serve(self: Arc<Self>, connection: Connection) {
        info!("a client has come");
        while let Some((send, mut receive)) = connection.accept_flow().await {
            let (service, connection) = (Arc::clone(&self), connection.clone());
            tokio::spawn(async move {
                let mut send = Patient::new(send, service.patience);
                if let Err(failure) = service.request(&connection, &mut send, &mut receive).await {
                    info!(%failure, "a request failed");
                    let told = match failure.answer() {
                        Some(answer) => wire::write(&mut send, &answer).await.is_ok(),
                        None => false,
                    };
                    if !told {
                        // What the client was sent is cut off, or nobody reads it: dropping the flow says so and frees it.
                        return;
                    }
                }
                let _ = send.shutdown().await;
            });
        }
        let reason = connection.closed().await;
        info!(%reason, "a client has gone");
    }

    async fn request(
        &self,
        connection: &Connection,
        send: &mut (impl AsyncWrite + Unpin),
        receive: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), Failure> {
        let Ok(_permit) = self.requests.try_acquire() else {
            return Err(Failure::Refused("the server is busy: try again later", Refusal::Busy));
        };
        match within(self.patience, wire::read(receive)).await?? {
            Frame::Get { path, have, hash, limit_ms } => {
                info!(path, have, "get");
                let limit = (limit_ms > 0).then(|| Duration::from_millis(limit_ms.into()));
                self.get(connection, send, &path, have, hash, limit).await
            }
            Frame::Put { path, size } => {
                info!(path, size, "put");
                self.put(connection, send, receive, &path, size).await
            }
            Frame::Perf { direction, duration_ms } => {
                if self.store.is_some() {
                    let text = "this server serves files: measure against `manypath perf -s`";
                    return Err(Failure::Refused(text, Refusal::Unsupported));
                }
                self.measure(connection, send, receive, direction, Duration::from_millis(duration_ms.into())).await
            }
            _ => Err(ReadError::Malformed("a request was expected").into()),
        }
    }

    fn store(&self) -> Result<&Store, Failure> {
        let text = "this server only measures: start `manypath serve` for files";
        self.store.as_ref().ok_or(Failure::Refused(text, Refusal::Unsupported))
    }

    async fn get(
        &self,
        connection: &Connection,
        send: &mut (impl AsyncWrite + Unpin),
        path: &str,
        have: u64,
        hash: Hash,
        limit: Option<Duration>,
    ) -> Result<(), Failure> {
        let (file, opened): (File, _) = self.store()?.read(path)?;
        let size = opened.len();
        let outgoing = while_there(connection, move |wanted| Outgoing::new(file, opened, have, hash, wanted)).await??;
        wire::write(send, &Frame::File { size, from: outgoing.from() }).await?;
        let retransmitted = || connection.stats().retransmitted.get();
        let end = outgoing.send(send, limit, &Position::default(), retransmitted).await?;
        debug!(path, length = end.length, "sent");
        Ok(())
    }

    async fn put(
        &self,
        connection: &Connection,
        send: &mut (impl AsyncWrite + Unpin),
        receive: &mut (impl AsyncRead + Unpin),
        path: &str,
        size: u64,
    ) -> Result<(), Failure> {
        let arriving = self.store()?.write(path)?;
        let (arriving, hasher, length) =
            while_there(connection, move |wanted| resume(arriving, size, wanted)).await??;
        wire::write(send, &Frame::Have { length, hash: Hash::of(&hasher) }).await?;
        let patience = self.patience + time_to_hash(length);
        let (arriving, hasher, length) = match within(patience, wire::read(receive)).await?? {
            Frame::From { from } if from == length => (arriving, hasher, length),
            Frame::From { from: 0 } => (blocking(move || restart(arriving)).await??, Default::default(), 0),
            Frame::From { .. } => return Err(ReadError::Malformed("a file starts at 0 or where its part ends").into()),
            _ => return Err(ReadError::Malformed("FROM was expected").into()),
        };
        let mut incoming = Incoming::start(arriving, hasher, length);
        let received = incoming.receive(receive, size, self.patience, &Position::default()).await;
        let written = incoming.finish().await?;
        let end = match received {
            Ok(end) if written.outcome.is_ok() => end,
            other => {
                let kept = written.sink;
                let kept = blocking(move || kept.keep()).await?;
                debug!(path, ?kept, "a part is kept");
                written.outcome.map_err(StoreError::from)?;
                return Err(match other {
                    Err(error) => Failure::Receive(error),
                    Ok(_) => Failure::Receive(ReceiveError::Writing),
                });
            }
        };
        if end.length != size || end.hash != written.hash {
            // What is there is not the beginning of the file: a later attempt must not build on it.
            let spoiled = written.sink;
            blocking(move || restart(spoiled).map(drop)).await??;
            return Err(Failure::Refused("what arrived is not what was sent: try again", Refusal::Corrupt));
        }
        let complete = written.sink;
        blocking(move || complete.commit()).await??;
        wire::write(send, &Frame::Done { length: written.length, hash: written.hash }).await?;
        Ok(())
    }

    /// A measurement, seen from the server.
    async fn measure(
        &self,
        connection: &Connection,
        send: &mut (impl AsyncWrite + Unpin),
        receive: &mut (impl AsyncRead + Unpin),
        direction: Direction,
        duration: Duration,
    ) -> Result<(), Failure> {
        wire::write(send, &Frame::Ready).await?;
        let position = Position::default();
        match direction {
            Direction::Download => {
                perf::send_for(send, duration.min(perf::LONGEST), &position, || connection.stats()).await?;
            }
            Direction::Upload => {
                let deadline = Instant::now() + perf::LONGEST + self.patience;
                let end =
                    tokio::time::timeout_at(deadline.into(), perf::receive(receive, self.patience, &position)).await;
                end.map_err(|_| Failure::Refused("the measurement takes too long", Refusal::BadRequest))?
                    .map_err(Failure::Receive)?;
                wire::write(send, &Frame::Done { length: position.get(), hash: Hash([0; 32]) }).await?;
            }
        }
        Ok(())
    }
}

/// What is there of an earlier attempt at a file of `size` bytes.
fn resume(
    mut arriving: Arriving,
    size: u64,
    wanted: &dyn Fn() -> bool,
) -> Result<(Arriving, sha2::Sha256, u64), StoreError> {
    let (hasher, length) = arriving.resume(size, wanted)?;
    Ok((arriving, hasher, length))
}

fn restart(mut arriving: Arriving) -> Result<Arriving, StoreError> {
    arriving.restart()?;
    Ok(arriving)
}

/// Runs file operations where they hold nobody up.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// Hashes where it holds nobody up, no longer than the client is there.
async fn while_there<T: Send + 'static>(
    connection: &Connection,
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::select! {
        outcome = while_wanted(work) => Ok(outcome?),
        reason = connection.closed() => Err(io::Error::from(FlowError::Closed(reason)).into()),
    }
}

/// Waits for a client's next words, but not for ever.
async fn within<T>(patience: Duration, words: impl Future<Output = T>) -> Result<T, Failure> {
    let text = "the request takes too long";
    tokio::time::timeout(patience, words).await.map_err(|_| Failure::Refused(text, Refusal::BadRequest))
}

/// What a client may need to hash so much of its file, before it can say whether it goes on there.
const fn time_to_hash(length: u64) -> Duration {
    Duration::from_secs(length / SLOWEST_HASH)
}

#[cfg(test)]
mod tests;
