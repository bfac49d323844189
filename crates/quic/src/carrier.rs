//! A carrier: the QUIC connection of one path, and how QUIC is configured for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use noq::{
    AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, PathId, RecvStream, SendStream, TransportConfig, VarInt,
};

use crate::code;
use crate::message::{MAX_BODY, Message, MessageError, truncated};
use crate::reports::{ReporterFactory, Reports};

/// A silent carrier is given up after this long. The session notices much earlier and sends elsewhere meanwhile.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// Received records wait here only until the driver's turn comes: what exceeds it would be lost without a trace.
const RECEIVE_BUFFER: usize = 8 << 20;

/// More than [`MAX_QUEUED`] records need, since noq drops the oldest ones when it is full.
const SEND_BUFFER: usize = 4 << 20;

/// The most records waiting in noq: what it sends in one turn. More would be out of the scheduler's hands for nothing.
pub(crate) const MAX_QUEUED: usize = 20;

/// After how many packets QUIC acknowledges. Data acknowledgements, one for two records, are packets of their own and free the
/// sender's memory; noq does not add an ACK frame to them before one is due, so that ACKs of every second packet would double
/// the packets on the way back.
const ACK_EVERY: u32 = 10;

/// The longest a QUIC ACK waits for more packets.
const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

/// Credit for the control stream.
const STREAM_WINDOW: u32 = 16 << 10;

/// How long a closing end waits for its CLOSE to be acknowledged.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// One path's QUIC connection, after the handshake.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) connection: noq::Connection,
    pub(crate) reports: Arc<Reports>,
    pub(crate) local: Option<SocketAddr>,
    control: Mutex<Option<SendStream>>,
}

/// Why the control stream brought no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error("the stream ended: {0}")]
    Ended(#[from] noq::ReadExactError),
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// QUIC's settings for one carrier that reports to `reports`.
pub(crate) fn transport_config(reports: &Arc<Reports>, max_mtu: u16, is_server: bool) -> Arc<TransportConfig> {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(max_mtu);
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(ACK_EVERY)).max_ack_delay(Some(MAX_ACK_DELAY));
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(u32::from(is_server)))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(STREAM_WINDOW))
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .mtu_discovery_config(Some(discovery))
        .ack_frequency_config(Some(acks))
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .datagram_send_buffer_size(SEND_BUFFER)
        .congestion_controller_factory(Arc::new(ReporterFactory(Arc::clone(reports))));
    #[cfg(feature = "qlog")]
    config.qlog_from_env("manypath");
    Arc::new(config)
}

impl Carrier {
    pub(crate) fn new(
        connection: noq::Connection,
        reports: Arc<Reports>,
        control: SendStream,
        local: Option<SocketAddr>,
    ) -> Self {
        Self { connection, reports, local, control: Mutex::new(Some(control)) }
    }

    /// The peer's address, as of now.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.connection.path(PathId::ZERO)?.remote_address().ok()
    }

    /// Gives records to QUIC.
    pub(crate) fn send(&self, records: &mut Vec<Bytes>) {
        self.reports.on_queued(records.len());
        let result = self.connection.send_many_datagrams(records);
        records.clear();
        if let Err(error) = result {
            tracing::debug!(%error, "records refused");
            self.reports.on_refused();
        }
    }

    /// Closes the carrier with a code of ours.
    pub(crate) fn close(&self, code: u32, reason: &str) {
        self.connection.close(VarInt::from_u32(code), truncated(reason).as_bytes());
    }

    /// Tells the peer that the application closed the session, and closes.
    pub(crate) async fn close_session(&self, code: u32, reason: &str) {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut control) = control {
            let message = Message::Close { code, reason: reason.to_owned() }.encode();
            let told = async {
                if control.write_all(&message).await.is_ok() && control.finish().is_ok() {
                    // Whether the peer acknowledged or the carrier broke, it is over.
                    let _ = control.stopped().await;
                }
            };
            let _ = tokio::time::timeout(CLOSE_PATIENCE, told).await;
        }
        self.connection.close(code::application(code), truncated(reason).as_bytes());
    }
}

/// Reads the next message that this version knows.
pub(crate) async fn read_message(stream: &mut RecvStream) -> Result<Message, ControlError> {
    loop {
        let mut head = [0; 3];
        stream.read_exact(&mut head).await?;
        let len = usize::from(u16::from_be_bytes([head[1], head[2]]));
        if len > MAX_BODY {
            return Err(MessageError::TooLong.into());
        }
        let mut body = vec![0; len];
        stream.read_exact(&mut body).await?;
        if let Some(message) = Message::decode(head[0], &body)? {
            return Ok(message);
        }
    }
}
