//! A writer that does not wait for ever: a peer that reads nothing must not hold what it was given.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// Writes to `W`, and fails when that has taken nothing for some time. What was being written is then cut off anywhere.
#[derive(Debug)]
pub(crate) struct Patient<W> {
    inner: W,
    patience: Duration,
    /// Until when; while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<W> Patient<W> {
    pub(crate) const fn new(inner: W, patience: Duration) -> Self {
        Self { inner, patience, waiting: None }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Poll::Ready(written) = Pin::new(&mut this.inner).poll_write(context, bytes) {
            this.waiting = None;
            return Poll::Ready(written);
        }
        let patience = this.patience;
        ready!(this.waiting.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the other side takes nothing for {patience:?}"),
        )))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_reader_may_be_slow_but_not_dead() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = Patient::new(near, Duration::from_millis(200));
        let reading = async {
            for _ in 0..5 {
                sleep(Duration::from_millis(60)).await;
                far.read_u8().await.unwrap();
            }
        };
        // Longer than the patience, but never that long without a byte.
        let (written, ()) = tokio::join!(near.write_all(b"12345"), reading);
        written.unwrap();
        let error = near.write_all(b"67").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
