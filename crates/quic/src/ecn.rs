//! Which packets say that they are ECN-capable.
//!
//! noq says it of every packet, and has no setting for it. It is true only of those whose session answers congestion marks (RFC 3168
//! s5): of the others the socket takes it back. noq notices that their marks are not counted and stops (RFC 9000 s13.4.2).

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

use crate::reports::Reports;

thread_local! {
    /// Of the connection being made on this thread.
    static MAKING: RefCell<Option<Arc<Reports>>> = const { RefCell::new(None) };
}

/// Makes a connection that reports to `reports`: noq asks the socket for its sender meanwhile.
pub(crate) fn making<T>(reports: &Arc<Reports>, make: impl FnOnce() -> T) -> T {
    MAKING.set(Some(Arc::clone(reports)));
    let made = make();
    MAKING.set(None);
    made
}

/// A socket of noq's whose senders, one a connection, heed what the connection's session does.
#[derive(Debug)]
pub(crate) struct Socket(pub(crate) Box<dyn AsyncUdpSocket>);

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    /// `None`: what noq sends by itself, outside of connections.
    reports: Option<Arc<Reports>>,
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { inner: self.0.create_sender(), reports: MAKING.with_borrow(Clone::clone) })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

impl UdpSender for Sender {
    fn poll_send(mut self: Pin<&mut Self>, transmit: &Transmit<'_>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let capable = self.reports.as_ref().is_some_and(|reports| reports.answers_marks());
        let transmit = Transmit { ecn: transmit.ecn.filter(|_| capable), ..*transmit };
        self.inner.as_mut().poll_send(&transmit, context)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
