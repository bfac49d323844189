//! Flows: ordered byte streams, the application's view.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The sending half of a flow. Dropped before [`AsyncWriteExt::shutdown`](tokio::io::AsyncWrite::poll_shutdown), it
/// resets the flow.
#[derive(Debug)]
pub struct SendFlow {}

/// The receiving half of a flow. Dropped before the end, it asks the peer to stop.
#[derive(Debug)]
pub struct RecvFlow {}

impl SendFlow {
    /// Abandons the flow: the peer's reader gets an error with this code. What was not yet delivered may never be.
    pub fn reset(&mut self, _code: u32) {}

    /// Ends the flow; all that was written is still delivered. `poll_shutdown` does the same.
    pub fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits until the peer's session has everything, the end included.
    pub async fn delivered(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecvFlow {
    /// Tells the peer that no more is wanted: its writer gets an error with this code.
    pub fn stop(&mut self, _code: u32) {}
}

impl AsyncWrite for SendFlow {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncRead for RecvFlow {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}
