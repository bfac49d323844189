//! A reader, and a writer, that does not wait for ever: for a peer that is silent, or one that reads nothing and so holds what
//! it was given. A slow one moves something now and then, and is waited for.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How late a timer may be. One that is later went off after this process had stood still (stopped, or a machine asleep), and what
/// came meanwhile has not been taken in yet.
const LATEST: Duration = Duration::from_secs(1);

/// Reads from, or writes to, what fails when it has given or taken nothing for some time. What was being read or written is then
/// cut off anywhere.
#[derive(Debug)]
pub(crate) struct Patient<F> {
    inner: F,
    patience: Duration,
    /// Since when a read or a write waits.
    waiting: Option<Instant>,
    /// Goes off when one may have waited too long. It is not set for every wait: most are short.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F> Patient<F> {
    pub(crate) const fn new(inner: F, patience: Duration) -> Self {
        Self { inner, patience, waiting: None, timer: None }
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Passes on what is ready. While nothing is, waits, and fails with `what` the other side does in the end.
    fn or_wait<T>(&mut self, context: &mut Context<'_>, moved: Poll<io::Result<T>>, what: &str) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.waiting = None;
            return moved;
        }
        let patience = self.patience;
        let mut due = *self.waiting.get_or_insert_with(Instant::now) + patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(timer.as_mut().poll(context));
            let now = Instant::now();
            let late = now.saturating_duration_since(timer.deadline());
            if late > LATEST {
                // It stood still: the wait begins again.
                self.waiting = Some(now);
                due = now + patience;
            } else if now >= due {
                break;
            }
            timer.as_mut().reset(due);
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, format!("the other side {what} for {patience:?}"))))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Patient<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.or_wait(context, read, "sends nothing")
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.or_wait(context, written, "takes nothing")
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
    use tokio::time::sleep;

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

    #[tokio::test]
    async fn who_stood_still_begins_to_wait_anew() {
        let patience = Duration::from_millis(400);
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = Patient::new(near, patience);
        let reading = tokio::spawn(async move { (near.read_u8().await, near.read_u8().await) });
        tokio::task::yield_now().await;
        // The only thread: nothing else runs meanwhile.
        std::thread::sleep(patience + 2 * LATEST);
        sleep(patience / 4).await;
        far.write_u8(7).await.unwrap();
        let (first, second) = reading.await.unwrap();
        assert_eq!(first.unwrap(), 7);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_writer_may_be_slow_but_not_dead() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = Patient::new(near, Duration::from_millis(200));
        let writing = async {
            for _ in 0..5 {
                sleep(Duration::from_millis(60)).await;
                far.write_u8(7).await.unwrap();
            }
        };
        let mut read = [0; 5];
        let (outcome, ()) = tokio::join!(near.read_exact(&mut read), writing);
        outcome.unwrap();
        assert_eq!(read, [7; 5]);
        let error = near.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
