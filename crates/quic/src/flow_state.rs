//! What the engine keeps for one flow: its bytes, and who waits for them.

use std::task::Waker;

use manypath_core::DataSeq;

use crate::buffer::Buffer;

/// Both halves of a flow.
#[derive(Debug, Default)]
pub(crate) struct FlowState {
    /// Written, not yet acknowledged.
    pub(crate) send: Buffer,
    /// Arrived, not yet read.
    pub(crate) recv: Buffer,
    /// Bytes the application wrote.
    pub(crate) written: u64,
    /// Everything the application did with the sending half takes sequence numbers below this.
    pub(crate) sent_until: DataSeq,
    /// The peer gave up sending.
    pub(crate) reset: Option<u32>,
    /// The peer gave up reading.
    pub(crate) stopped: Option<u32>,
    /// How many halves the application holds.
    pub(crate) handles: u8,
    /// Both directions are over and acknowledged.
    pub(crate) closed: bool,
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// Waits until everything written is acknowledged.
    pub(crate) delivery: Option<Waker>,
}

impl FlowState {
    pub(crate) fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    pub(crate) fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    fn wake_delivery(&mut self) {
        if let Some(waker) = self.delivery.take() {
            waker.wake();
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.wake_reader();
        self.wake_writer();
        self.wake_delivery();
    }

    pub(crate) fn on_reset(&mut self, code: u32) {
        self.reset = Some(code);
        self.recv.clear();
        self.wake_reader();
    }

    pub(crate) fn on_stopped(&mut self, code: u32) {
        self.stopped = Some(code);
        self.wake_writer();
        self.wake_delivery();
    }

    /// The peer's session has everything of the flow below `offset`, and of the connection below `left_edge`.
    pub(crate) fn on_acknowledged(&mut self, offset: u64, left_edge: DataSeq) {
        self.send.release(offset);
        if left_edge >= self.sent_until {
            self.wake_delivery();
        }
    }

    /// Both directions are over, which whoever waited has heard. Says whether nobody holds the flow any more.
    pub(crate) fn on_closed(&mut self) -> bool {
        self.closed = true;
        self.send.clear();
        self.recv.clear();
        self.handles == 0
    }
}
