//! What the application does with flows: it opens, writes, reads and ends them.

use std::ops::{Bound, Range};

use manypath_core::{Bytes, Duration, FlowId, Priority, SubflowId, SubflowState, Time};
use manypath_sched::Content;

use crate::config::Carriage;
use crate::error::FlowError;
use crate::session::{Session, SessionEvent};

/// However small the windows are, this much may wait unsent, so that a write is worth a call.
const MIN_UNSENT: Bytes = Bytes::new(256 << 10);

/// A single write takes at most this much, so that flows that write in turn share the queue.
const WRITE_QUANTUM: u64 = 64 << 10;

/// Between two STOPs of a flow lies at least this: what the peer sent before it heard of the first calls for no other.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

impl Session {
    /// Opens a flow.
    ///
    /// # Errors
    /// If the peer allows no more at once.
    pub fn open_flow(&mut self) -> Result<FlowId, FlowError> {
        let own = self.next_flow % 2;
        let open = self.flows.keys().filter(|id| id.0 % 2 == own).count();
        if open >= self.config.peer.max_flows as usize || self.next_flow >= u32::MAX - 2 {
            return Err(FlowError::TooManyFlows);
        }
        let id = FlowId(self.next_flow);
        self.next_flow += 2;
        self.insert_flow(id);
        Ok(id)
    }

    /// Admits up to `len` more bytes of a flow; returns how many. The engine keeps them until [`released`](Self::released)
    /// passes them. If it is less than `len`, [`SessionEvent::Writable`] says when to try again.
    ///
    /// # Errors
    /// If the flow is closed or its sending half is over.
    pub fn write(&mut self, now: Time, id: FlowId, len: u64) -> Result<u64, FlowError> {
        let room = self.write_room();
        let flow = self.flows.get_mut(&id).ok_or(FlowError::Closed)?;
        if flow.send.ended {
            return Err(FlowError::Finished);
        }
        let limit = flow.send.limit;
        #[cfg(test)]
        let limit = self.mutation.send_limit(limit);
        let allowed = limit - flow.send.written;
        let accepted = len.min(allowed).min(room).min(WRITE_QUANTUM);
        let content = Content::Data { flow: id, offset: flow.send.written, fin: false };
        flow.send.written += accepted;
        if accepted > 0 {
            self.last_writer = id;
        }
        if accepted < len {
            flow.wants_to_write = true;
            // A flow that its reader holds up does not wait for memory.
            if accepted < allowed {
                self.queue.set_writer_waits(true);
            } else if !self.blocked_flows.contains(&id) {
                self.blocked_flows.push(id);
                self.arm_blocked_probe(now);
            }
        }
        self.queue.admit(content, accepted);
        Ok(accepted)
    }

    /// Ends the sending half of a flow; what was written still arrives.
    ///
    /// # Errors
    /// If the flow is closed or its sending half is over.
    pub fn finish(&mut self, id: FlowId) -> Result<(), FlowError> {
        let flow = self.flows.get_mut(&id).ok_or(FlowError::Closed)?;
        if flow.send.ended {
            return Err(FlowError::Finished);
        }
        flow.send.ended = true;
        self.queue.admit(Content::Data { flow: id, offset: flow.send.written, fin: true }, 1);
        Ok(())
    }

    /// Gives up the sending half of a flow; what was not delivered yet never is.
    pub fn reset(&mut self, id: FlowId, code: u32) {
        if let Some(flow) = self.flows.get_mut(&id)
            && !flow.send.done
            && !flow.send.reset
        {
            flow.send.ended = true;
            flow.send.reset = true;
            flow.wants_to_write = false;
            self.blocked_flows.retain(|held| *held != id);
            self.queue.abandon(id);
            self.queue.admit(Content::Reset { flow: id, code }, 1);
        }
    }

    /// Gives up the receiving half of a flow: what arrives is dropped, and the peer is asked to stop.
    pub fn stop(&mut self, now: Time, id: FlowId, code: u32) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        if flow.recv.done || flow.recv.abandoned {
            return;
        }
        self.spanned -= flow.recv.span();
        let dropped = flow.recv.abandon();
        flow.recv.done = flow.recv.is_finished();
        flow.stopped = Some((code, now + STOP_INTERVAL));
        flow.stop_due = true;
        self.control_flows.push_back(id);
        self.stir(Time::ZERO);
        self.on_consumed(now, dropped);
        self.close_if_done(id);
    }

    /// The peer goes on with a flow: if the application stopped it, the STOP was lost or came before the flow.
    pub(crate) fn stop_again(&mut self, now: Time, path: SubflowId, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id)
            && let Some((_, again)) = &mut flow.stopped
            && *again <= now
            && !flow.recv.done
            && !flow.stop_due
        {
            *again = now + STOP_INTERVAL;
            flow.stop_due = true;
            flow.asked_by = Some(path);
            self.control_flows.push_back(id);
            self.stir(Time::ZERO);
        }
    }

    /// Offsets of a flow below this are acknowledged: the engine may forget their bytes. For a closed flow: all of them.
    pub fn released(&self, id: FlowId) -> u64 {
        self.flows.get(&id).map_or(u64::MAX, |flow| flow.send.released)
    }

    /// The offsets of a flow that can be read in order now.
    pub fn readable(&self, id: FlowId) -> Range<u64> {
        self.flows.get(&id).filter(|flow| !flow.recv.abandoned).map_or(0..0, |flow| flow.recv.readable())
    }

    /// Whether everything up to the end of a flow was consumed.
    pub fn is_finished(&self, id: FlowId) -> bool {
        self.flows.get(&id).is_none_or(|flow| flow.recv.is_finished())
    }

    /// The application took `len` of the readable bytes.
    pub fn consume(&mut self, now: Time, id: FlowId, len: u64) {
        self.take(now, id, len);
    }

    /// The application took all that can be read in order: which offsets those were, and whether everything up to the end
    /// of the flow is consumed now.
    pub fn consume_all(&mut self, now: Time, id: FlowId) -> (Range<u64>, bool) {
        self.take(now, id, u64::MAX).unwrap_or_else(|| (0..0, self.is_finished(id)))
    }

    /// Consumes at most `most` bytes; `None` if nobody reads the flow any more.
    fn take(&mut self, now: Time, id: FlowId, most: u64) -> Option<(Range<u64>, bool)> {
        let flow = self.flows.get_mut(&id).filter(|flow| !flow.recv.abandoned)?;
        let mut taken = flow.recv.readable();
        taken.end = taken.end.min(taken.start.saturating_add(most));
        let len = taken.end - taken.start;
        flow.recv.consumed += len;
        self.spanned -= len;
        flow.readable_reported = false;
        let window = self.config.flow_window.get();
        if flow.recv.length.is_none() && flow.recv.consumed + window - flow.recv.limit >= window / 4 {
            flow.recv.limit = flow.recv.consumed + window;
            if !flow.window_due {
                flow.window_due = true;
                self.control_flows.push_back(id);
                self.quiet_until = Time::ZERO;
            }
        }
        let finished = flow.recv.is_finished();
        flow.recv.done |= finished;
        self.on_consumed(now, len);
        if finished {
            self.close_if_done(id);
        }
        Some((taken, finished))
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// How much more may be admitted: bounded by the sender's memory, and by what paths can soon take and the scheduler
    /// looks at, so that a short flow does not wait behind everything that a long one has to say. A TCP has one flow, and its send buffer to fill.
    fn write_room(&self) -> u64 {
        if self.config.carriage == Carriage::Streams {
            return (self.config.send_buffer - self.queue.held()).get();
        }
        let windows = self.usable_windows();
        let unsent = windows.max(MIN_UNSENT) + self.scheduler.looks_ahead(&self.view) - self.queue.unsent();
        let memory = self.config.send_buffer - self.queue.held();
        unsent.min(memory).get()
    }

    /// The windows of usable subflows together, as [`View::usable`] names them, in one pass: it is asked for every packet.
    fn usable_windows(&self) -> Bytes {
        let (mut normal, mut backup, mut any_normal) = (Bytes::ZERO, Bytes::ZERO, false);
        for view in &self.view.subflows {
            match (view.state, view.priority) {
                (SubflowState::Active, Priority::Normal) => {
                    normal += view.cwnd;
                    any_normal = true;
                }
                (SubflowState::Active, Priority::Backup) => backup += view.cwnd,
                _ => {}
            }
        }
        if any_normal { normal } else { backup }
    }

    /// Tells waiting writers when there is room again.
    pub(crate) fn wake_writers(&mut self) {
        if !self.queue.writer_waits() || self.write_room() < WRITE_QUANTUM.min(self.config.send_buffer.get() / 4).max(1)
        {
            return;
        }
        // Whoever hears of it first takes the room: in turns, or else the first flow would leave nothing to the others.
        let behind = (Bound::Excluded(self.last_writer), Bound::Unbounded);
        for turn in [behind, (Bound::Unbounded, Bound::Included(self.last_writer))] {
            for (id, flow) in self.flows.range_mut(turn) {
                if flow.wants_to_write && flow.send.written < flow.send.limit {
                    flow.wants_to_write = false;
                    self.events.push_back(SessionEvent::Writable(*id));
                }
            }
        }
        self.queue.set_writer_waits(false);
    }
}
