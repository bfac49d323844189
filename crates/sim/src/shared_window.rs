//! The receive window that the subflows of a Multipath TCP connection share, where it decides when they acknowledge.
//!
//! Linux' TCP acknowledges every second segment at once only while the window that it can offer does not shrink, and
//! otherwise when the application has read or the delayed acknowledgement's timer runs out (`__tcp_ack_snd_check`,
//! `tcp_cleanup_rbuf`). For a single TCP that makes no difference. The out-of-tree Multipath TCP up to 0.94 has one window
//! for the connection, less the memory of what waits there for data of other subflows: a fast subflow whose segments come
//! before those of a slow one is acknowledged when the slow one's have come, many segments at once, and loses its clock.
//! This is what STMS s2.2 shows: "The Data ACK won't be sent until the packets from the slow path reach the receiver".

/// See the module documentation. Sizes in bytes of payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedWindow {
    /// The receive buffer.
    size: u64,
    /// How far, from the first byte on, the windows offered reached at most.
    edge: u64,
}

impl SharedWindow {
    pub(crate) const fn new(size: u64) -> Self {
        Self { size, edge: size }
    }

    /// The window that could be offered while so much waits in the buffer.
    pub(crate) const fn free(&self, waiting: u64) -> u64 {
        self.size.saturating_sub(waiting)
    }

    /// The window that an acknowledgement offers after `read` bytes were read: no edge that was offered is taken back.
    pub(crate) fn offer(&mut self, read: u64, waiting: u64) -> u64 {
        let window = self.free(waiting).max(self.edge.saturating_sub(read));
        self.edge = read + window;
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shrinks_with_what_waits_and_its_edge_stays() {
        let mut window = SharedWindow::new(100);
        assert_eq!(window.free(0), 100);
        // Thirty wait: the memory for seventy is left, but a hundred were offered.
        assert_eq!(window.free(30), 70);
        assert_eq!(window.offer(0, 30), 100);
        // The gap before them closes: 40 were read, the edge moves to 140.
        assert_eq!(window.offer(40, 0), 100);
        // Twenty read and fifty waiting: 50 are free, 80 stay offered.
        assert_eq!(window.offer(60, 50), 80);
        assert_eq!(window.free(200), 0);
    }
}
