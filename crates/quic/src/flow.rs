//! Flows: ordered byte streams, the application's view.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use manypath_core::FlowId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Handle;
use crate::error::FlowError;
use crate::state::State;

/// The code of a half that was dropped before its end.
const DROPPED: u32 = 0;

/// The sending half of a flow.
///
/// Shutting it down (`AsyncWriteExt::shutdown`, [`Self::finish`]) ends the flow in order; dropping it before that resets
/// the flow. What was written is kept until the peer has it, bounded by the connection's send buffer: writes wait for room.
#[derive(Debug)]
pub struct SendFlow {
    handle: Arc<Handle>,
    id: FlowId,
    ended: bool,
}

/// The receiving half of a flow.
///
/// Bytes that are not read stay within the flow's window; then the peer's writer waits. Dropping it before the end asks
/// the peer to stop.
#[derive(Debug)]
pub struct RecvFlow {
    handle: Arc<Handle>,
    id: FlowId,
    ended: bool,
}

/// The two halves of a flow.
pub(crate) fn halves(handle: &Arc<Handle>, id: FlowId) -> (SendFlow, RecvFlow) {
    let send = SendFlow { handle: Arc::clone(handle), id, ended: false };
    (send, RecvFlow { handle: Arc::clone(handle), id, ended: false })
}

impl SendFlow {
    /// The flow's number in the connection, the same at both ends.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Abandons the flow: the peer's reader gets an error with this code. What was not yet delivered may never be.
    pub fn reset(&mut self, code: u32) {
        if !self.ended {
            self.ended = true;
            self.handle.engine.lock().session.reset(self.id, code);
            self.handle.engine.kick();
        }
    }

    /// Ends the flow; all that was written is still delivered. Shutting down does the same.
    ///
    /// # Errors
    /// If the peer stopped the flow, or the connection is over.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let state = &mut *self.handle.engine.lock();
        check_writable(state, self.id)?;
        state.session.finish(self.id).map_err(|_| FlowError::Ended)?;
        self.ended = true;
        if let Some(flow) = state.flows.get_mut(&self.id) {
            flow.sent_until = state.session.queue().admitted();
        }
        self.handle.engine.kick();
        Ok(())
    }

    /// Waits until the peer's session has everything written so far, and the end if the flow was finished.
    ///
    /// # Errors
    /// If the peer stopped the flow, or the connection ended before.
    pub async fn delivered(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            let state = &mut *self.handle.engine.lock();
            let Some(flow) = state.flows.get_mut(&self.id) else { return Poll::Ready(Ok(())) };
            if let Some(code) = flow.stopped {
                return Poll::Ready(Err(FlowError::Stopped { code }.into()));
            }
            if state.session.queue().left_edge() >= flow.sent_until {
                return Poll::Ready(Ok(()));
            }
            if let Some(reason) = &state.ended {
                return Poll::Ready(Err(FlowError::Closed(reason.clone()).into()));
            }
            flow.delivery = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Whether more can be written.
fn check_writable(state: &State, id: FlowId) -> Result<(), FlowError> {
    if let Some(reason) = &state.ended {
        return Err(FlowError::Closed(reason.clone()));
    }
    match state.flows.get(&id).map(|flow| flow.stopped) {
        Some(Some(code)) => Err(FlowError::Stopped { code }),
        Some(None) => Ok(()),
        None => Err(FlowError::Ended),
    }
}

impl AsyncWrite for SendFlow {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let engine = &self.handle.engine;
        let now = engine.now();
        let state = &mut *engine.lock();
        check_writable(state, self.id)?;
        if self.ended {
            return Poll::Ready(Err(FlowError::Ended.into()));
        }
        let accepted = state.session.write(now, self.id, bytes.len() as u64).map_err(|_| FlowError::Ended)?;
        let Some(flow) = state.flows.get_mut(&self.id) else { return Poll::Ready(Err(FlowError::Ended.into())) };
        if accepted == 0 && !bytes.is_empty() {
            flow.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let len = usize::try_from(accepted).map_or(bytes.len(), |accepted| accepted.min(bytes.len()));
        flow.send.write(flow.written, &bytes[..len]);
        flow.written += accepted;
        flow.sent_until = state.session.queue().admitted();
        state.written += accepted;
        engine.kick();
        Poll::Ready(Ok(len))
    }

    /// Written bytes leave by themselves; there is nothing to flush. It fails if nothing more can be written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ended {
            check_writable(&self.handle.engine.lock(), self.id)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish())
    }
}

impl Drop for SendFlow {
    fn drop(&mut self) {
        self.reset(DROPPED);
        release(&self.handle, self.id);
    }
}

impl RecvFlow {
    /// The flow's number in the connection, the same at both ends.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Tells the peer that no more is wanted: its writer gets an error with this code.
    pub fn stop(&mut self, code: u32) {
        if !self.ended {
            self.ended = true;
            let engine = &self.handle.engine;
            let now = engine.now();
            let state = &mut *engine.lock();
            state.session.stop(now, self.id, code);
            if let Some(flow) = state.flows.get_mut(&self.id) {
                flow.recv.clear();
            }
            engine.kick();
        }
    }
}

impl AsyncRead for RecvFlow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let engine = &this.handle.engine;
        let now = engine.now();
        let state = &mut *engine.lock();
        let reset = state.flows.get(&this.id).and_then(|flow| flow.reset);
        if let Some(code) = reset {
            this.ended = true;
            return Poll::Ready(Err(FlowError::Reset { code }.into()));
        }
        if this.ended {
            return Poll::Ready(Ok(()));
        }
        let readable = state.session.readable(this.id);
        let len = (readable.end - readable.start).min(buffer.remaining() as u64);
        if len > 0 {
            let end = readable.start + len;
            if let Some(flow) = state.flows.get_mut(&this.id) {
                flow.recv.pieces(readable.start..end).for_each(|piece| buffer.put_slice(piece));
                flow.recv.release(end);
            }
            state.session.consume(now, this.id, len);
            // Most reads owe the peer nothing: a window is told when it has moved a good deal.
            if !state.session.is_quiet(now) {
                engine.kick();
            }
            return Poll::Ready(Ok(()));
        }
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if state.session.is_finished(this.id) {
            // The end counts as read only when the reader has seen it.
            state.session.consume(now, this.id, 0);
            this.ended = true;
            engine.kick();
            return Poll::Ready(Ok(()));
        }
        if let Some(reason) = &state.ended {
            return Poll::Ready(Err(FlowError::Closed(reason.clone()).into()));
        }
        if let Some(flow) = state.flows.get_mut(&this.id) {
            flow.reader = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for RecvFlow {
    fn drop(&mut self) {
        self.stop(DROPPED);
        release(&self.handle, self.id);
    }
}

/// The application holds one half less.
fn release(handle: &Handle, id: FlowId) {
    let state = &mut *handle.engine.lock();
    if let Some(flow) = state.flows.get_mut(&id) {
        flow.handles = flow.handles.saturating_sub(1);
        if flow.handles == 0 && flow.closed {
            state.flows.remove(&id);
        }
    }
}
