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
use crate::under_way::NOQ_TIME_THRESHOLD;

/// A silent carrier is given up after this long. The session notices much earlier and sends elsewhere meanwhile.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// Received records wait here only until the driver's turn comes: what exceeds it would be lost without a trace.
const RECEIVE_BUFFER: usize = 8 << 20;

/// More than [`MAX_QUEUED`] records need, since noq drops the oldest ones when it is full.
const SEND_BUFFER: usize = 4 << 20;

/// The most records waiting in noq: what it sends in one turn. More would be out of the scheduler's hands for nothing.
pub(crate) const MAX_QUEUED: usize = 20;

/// How many packets QUIC acknowledges at once, and how many records the session does at least. What the session sends are packets of
/// their own, to which noq adds no ACK frame before one is due: of fewer at once, acknowledgements would fill thin ways back. Of more at once,
/// windows leave in lumps: docs/decisions/quic-pacing.md.
pub(crate) const ACK_EVERY: u32 = 4;

/// The longest a QUIC ACK waits for more packets.
const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

/// How long after noq found that large packets no longer arrive it looks again for the largest that do. It is wrong where four losses
/// are found with no acknowledgement in between, as in a slow start that overshoots (docs/decisions/reordering.md).
const BLACK_HOLE_COOLDOWN: Duration = Duration::from_secs(1);

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
    discovery.upper_bound(max_mtu).black_hole_cooldown(BLACK_HOLE_COOLDOWN);
    let mut acks = AckFrequencyConfig::default();
    // The threshold is how many may wait, not with how many they no longer do (draft-ietf-quic-ack-frequency s4).
    acks.ack_eliciting_threshold(VarInt::from_u32(ACK_EVERY - 1)).max_ack_delay(Some(MAX_ACK_DELAY));
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
        .packet_threshold(u32::MAX)
        .time_threshold(NOQ_TIME_THRESHOLD)
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Instant;

    use bytes::BytesMut;
    use manypath_core::PacketNumber;
    use noq_proto::{
        ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple, ServerConfig,
    };

    use super::*;
    use crate::identity::Identity;
    use crate::reports::{Fate, News};
    use crate::tls::{self, Trust};

    /// One end of a connection without sockets and clocks.
    struct End {
        endpoint: Endpoint,
        connection: Option<(ConnectionHandle, Connection)>,
        address: SocketAddr,
    }

    impl End {
        fn take(&mut self, now: Instant, packet: Vec<u8>, from: SocketAddr) {
            let (path, mut answer) = (FourTuple::new(from, None), Vec::new());
            let packet = BytesMut::from(packet.as_slice());
            match self.endpoint.handle(now, path, None, packet, &mut answer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }

        /// What connection and endpoint tell each other, as new connection ids: after sending, as in noq, where they are tasks.
        fn exchange(&mut self) {
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
        }

        /// All that it sends now.
        fn sends(&mut self, now: Instant) -> Vec<Vec<u8>> {
            let Some((_, connection)) = &mut self.connection else { return Vec::new() };
            let (mut sent, mut buffer) = (Vec::new(), Vec::new());
            let at_once = NonZeroUsize::new(10).unwrap();
            while let Some(transmit) = connection.poll_transmit(now, at_once, &mut buffer) {
                let packets = buffer[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size));
                sent.extend(packets.map(<[u8]>::to_vec));
                buffer.clear();
            }
            self.exchange();
            sent
        }
    }

    fn ends(now: Instant) -> (End, End) {
        ends_with(&Arc::new(Reports::default()), now)
    }

    /// The client's carrier reports to `reports`.
    fn ends_with(reports: &Arc<Reports>, now: Instant) -> (End, End) {
        let config = || Arc::new(EndpointConfig::default());
        let [at_client, at_server] = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().unwrap());
        let credentials = Identity::Ephemeral.load().unwrap();
        let trust = Trust::Fingerprint(credentials.fingerprint());
        let mut server = ServerConfig::with_crypto(Arc::new(tls::server(credentials).unwrap()));
        server.transport_config(transport_config(&Arc::new(Reports::default()), 1452, true));
        let tls = tls::client(&trust).unwrap();
        let mut client = ClientConfig::new(tls.crypto);
        client.transport_config(transport_config(reports, 1452, false));
        let mut endpoint = Endpoint::new(config(), None, true);
        let connection = endpoint.connect(now, client, at_server, &tls.server_name).ok();
        let client = End { endpoint, connection, address: at_client };
        let endpoint = Endpoint::new(config(), Some(Arc::new(server)), true);
        (client, End { endpoint, connection: None, address: at_server })
    }

    /// Ends that have nothing more to tell each other, the first of which reports to `reports`, and the time by then.
    fn settled(reports: &Arc<Reports>) -> (End, End, Instant) {
        let mut now = Instant::now();
        let (mut client, mut server) = ends_with(reports, now);
        // The handshake, the discovery of the packet size, and acknowledgements that wait.
        for _ in 0..200 {
            now += Duration::from_millis(10);
            for end in [&mut client, &mut server] {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_timeout(now);
                }
            }
            client.sends(now).into_iter().for_each(|packet| server.take(now, packet, client.address));
            server.sends(now).into_iter().for_each(|packet| client.take(now, packet, server.address));
        }
        (client, server, now)
    }

    /// noq would write its probes past the end of a packet (see `reports`), were they sent in one batch.
    #[test]
    fn a_server_that_sleeps_while_a_carrier_is_set_up_sends_its_probes() {
        let now = Instant::now();
        let (mut client, mut server) = ends(now);
        let pass = |packets: Vec<Vec<u8>>, now, from: SocketAddr, to: &mut End| {
            packets.into_iter().for_each(|packet| to.take(now, packet, from));
        };
        pass(client.sends(now), now, client.address, &mut server);
        pass(server.sends(now), now, server.address, &mut client);
        // The end of the handshake; then the connection ids that the endpoint gives.
        let (finished, ids) = (client.sends(now), client.sends(now));
        pass(finished, now, client.address, &mut server);
        assert!(!server.sends(now).is_empty(), "it confirms the handshake");
        // It wakes up, has something short to answer, and nothing of what it sent was acknowledged.
        let later = now + Duration::from_secs(2);
        assert_eq!(ids.len(), 1);
        pass(ids, later, client.address, &mut server);
        let (_, connection) = server.connection.as_mut().unwrap();
        connection.handle_timeout(later);
        assert_eq!(connection.stats().frame_tx.ack_frequency, 1);
        assert!(server.sends(later).len() > 1, "it probes");
        let (_, connection) = server.connection.as_mut().unwrap();
        assert!(connection.stats().frame_tx.ack_frequency > 1, "it repeats what noq writes without looking");
    }

    #[test]
    fn four_packets_are_acknowledged_at_once() {
        let (mut client, mut server, now) = settled(&Arc::new(Reports::default()));
        let acknowledged = (1..=400u64).filter(|_| {
            let (_, connection) = client.connection.as_mut().unwrap();
            connection.datagrams().send(Bytes::from_static(&[0; 1000]), true).unwrap();
            client.sends(now).into_iter().for_each(|packet| server.take(now, packet, client.address));
            let acks = |server: &mut End| server.connection.as_mut().unwrap().1.stats().frame_tx.acks;
            let before = acks(&mut server);
            server.sends(now).into_iter().for_each(|packet| client.take(now, packet, server.address));
            acks(&mut server) > before
        });
        let packets: Vec<u64> = acknowledged.collect::<Vec<_>>().windows(2).map(|pair| pair[1] - pair[0]).collect();
        // A packet number that noq leaves out (RFC 9000 s21.4) looks like a loss, which is acknowledged at once.
        let fours = packets.iter().filter(|packets| **packets == 4).count();
        assert!(packets.iter().all(|packets| *packets <= 4) && fours * 4 > packets.len() * 3, "{packets:?}");
    }

    /// Flights of sixteen packets arrive last first, once and again.
    #[test]
    fn packets_that_were_overtaken_are_lost_in_the_first_flight_only() {
        let reports = Arc::new(Reports::default());
        let (mut client, mut server, mut now) = settled(&reports);
        let mut news = News::default();
        let lost = (0..10).map(|flight| {
            for record in 0..16 {
                let packet = PacketNumber(flight * 16 + record);
                let (_, connection) = client.connection.as_mut().unwrap();
                connection.datagrams().send(reports.datagram(vec![0; 1000], Some(packet)), true).unwrap();
            }
            let packets = client.sends(now);
            now += Duration::from_millis(10);
            for packet in packets.into_iter().rev() {
                server.take(now, packet, client.address);
                server.sends(now).into_iter().for_each(|ack| client.take(now, ack, server.address));
            }
            now += MAX_ACK_DELAY;
            server.connection.as_mut().unwrap().1.handle_timeout(now);
            server.sends(now).into_iter().for_each(|ack| client.take(now, ack, server.address));
            reports.take(&mut news);
            let lost = news.fates.iter().filter(|fate| matches!(fate, Fate::Lost(_))).count();
            assert_eq!(news.fates.len(), 16, "each record is reported once");
            lost
        });
        let lost: Vec<usize> = lost.collect();
        assert!(lost[0] > 0 && lost[1..].iter().all(|lost| *lost == 0), "{lost:?}");
    }
}
