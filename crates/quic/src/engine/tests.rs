//! An engine whose records are passed by hand to its peer's session and back: without QUIC, and with a clock that is told.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use manypath_core::{FlowId, PacketNumber, Priority};
use manypath_session::{PathInit, PeerLimits, Record, Role};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::*;
use crate::carrier::{MAX_QUEUED, transport_config};
use crate::config::TransportConfig;
use crate::connection::Connection;
use crate::error::FlowError;
use crate::identity::Identity;
use crate::paths::NewPath;
use crate::reports::{Fate, Reports};
use crate::settings;
use crate::tls::{self, Trust};

struct Ends {
    engine: Arc<Engine>,
    connection: Connection,
    peer: Session,
    path: SubflowId,
    now: Time,
}

/// A server's engine and a client that allows so many flows.
fn ends(max_flows: u32) -> Ends {
    ends_of(&TransportConfig::default(), max_flows)
}

fn ends_of(transport: &TransportConfig, max_flows: u32) -> Ends {
    let limits = settings::limits(transport);
    let of_client = PeerLimits { max_flows, ..limits };
    let mut own = settings::session(transport, Role::Server, of_client, 8).unwrap();
    let mut peer = settings::session(transport, Role::Client, limits, 8).unwrap();
    let path = own.add_path(Time::ZERO, PathInit::new(manypath_core::Bytes::new(1200))).unwrap();
    assert_eq!(peer.add_path(Time::ZERO, PathInit::new(manypath_core::Bytes::new(1200))).unwrap(), path);
    let engine = Engine::start(own, Duration::from_secs(60), Duration::MAX).unwrap();
    let connection = Connection::new(Arc::clone(&engine), None);
    Ends { engine, connection, peer, path, now: Time::ZERO }
}

impl Ends {
    /// What the engine wants to send reaches the peer.
    fn tell(&mut self) {
        self.now += Duration::from_millis(10);
        let state = &mut *self.engine.lock();
        state.session.on_timeout(self.now);
        while let Some(transmit) = state.session.poll_transmit(self.now) {
            self.peer.on_record(self.now, self.path, &transmit.record, false).unwrap();
            if let Some(packet) = transmit.packet {
                state.on_fates(self.now, self.path, &[Fate::Acked(packet)]);
            }
        }
    }

    /// What the peer wants to send reaches the engine, with payload that means nothing.
    fn hear(&mut self) {
        self.now += Duration::from_millis(10);
        let state = &mut *self.engine.lock();
        self.peer.on_timeout(self.now);
        while let Some(transmit) = self.peer.poll_transmit(self.now) {
            let mut bytes = Vec::new();
            transmit.record.encode(&mut bytes);
            if let Record::Data(data) = &transmit.record {
                bytes.resize(bytes.len() + data.len as usize, 7);
            }
            state.on_datagrams(self.now, self.path, &[bytes.into()]).unwrap();
            if let Some(packet) = transmit.packet {
                self.peer.on_acked(self.now, self.path, packet);
            }
        }
        while let Some(event) = state.session.poll_event() {
            self.engine.on_event(state, event);
        }
    }

    fn exchange(&mut self) {
        for _ in 0..3 {
            self.hear();
            self.tell();
        }
    }

    /// The peer opens a flow with a thousand bytes.
    fn opened(&mut self) -> FlowId {
        let id = self.peer.open_flow().unwrap();
        assert_eq!(self.peer.write(self.now, id, 1000), Ok(1000));
        self.exchange();
        id
    }

    /// Memory for bytes to send, and for bytes received.
    fn memory(&self) -> (u64, u64) {
        let stats = self.connection.stats();
        (stats.send_memory.get(), stats.receive_memory.get())
    }

    fn flows(&self) -> usize {
        self.engine.lock().flows.len()
    }
}

/// Whether a task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

fn flow_error(error: &std::io::Error) -> Option<&FlowError> {
    error.get_ref()?.downcast_ref()
}

#[tokio::test]
async fn flows_that_the_peer_gives_up_before_they_are_accepted_leave_nothing() {
    let mut ends = ends(8);
    for _ in 0..3 {
        let id = ends.opened();
        assert_eq!((ends.flows(), ends.engine.lock().accepted.len()), (1, 1));
        ends.peer.reset(id, 1);
        ends.peer.stop(ends.now, id, 1);
        ends.exchange();
        assert_eq!((ends.flows(), ends.engine.lock().accepted.len()), (0, 0));
    }
    let id = ends.opened();
    let (send, _recv) = ends.connection.accept_flow().await.unwrap();
    assert_eq!(send.id(), id.0);
}

#[tokio::test]
async fn of_a_flow_that_is_over_nothing_is_kept_but_what_the_application_holds() {
    for held_on in [true, false] {
        let mut ends = ends(8);
        let (mut send, mut recv) = ends.connection.open_flow().await.unwrap();
        let id = FlowId(send.id());
        send.write_all(&[1; 1000]).await.unwrap();
        send.finish().unwrap();
        ends.exchange();
        assert!(ends.memory().0 > 0);
        ends.peer.write(ends.now, id, 500).unwrap();
        ends.peer.finish(id).unwrap();
        ends.exchange();
        assert!(ends.memory().1 > 0);
        let mut received = Vec::new();
        recv.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, [7; 500]);
        let held = held_on.then_some((send, recv));
        ends.peer.consume_all(ends.now, id);
        ends.exchange();
        assert_eq!(ends.memory(), (0, 0));
        assert_eq!(ends.flows(), usize::from(held_on));
        drop(held);
        assert_eq!(ends.flows(), 0);
    }
}

#[tokio::test]
async fn the_network_thread_hears_of_what_the_application_does() {
    let window = manypath_core::Bytes::new(4000);
    let transport = TransportConfig { receive_window: window, flow_window: window, ..TransportConfig::default() };
    let mut ends = ends_of(&transport, 8);
    let engine = Arc::clone(&ends.engine);
    let kicked = async || {
        tokio::select! {
            biased;
            () = engine.kick.notified() => true,
            () = std::future::ready(()) => false,
        }
    };
    let (mut send, mut recv) = ends.connection.open_flow().await.unwrap();
    send.write_all(&[1; 100]).await.unwrap();
    assert!(kicked().await);
    send.finish().unwrap();
    assert!(kicked().await);
    recv.stop(1);
    assert!(kicked().await);
    let (mut send, _recv) = ends.connection.open_flow().await.unwrap();
    send.reset(1);
    assert!(kicked().await);
    // Of a read only if it owes the peer something: a quarter of a window was read.
    ends.opened();
    let (_send, mut recv) = ends.connection.accept_flow().await.unwrap();
    recv.read_exact(&mut [0; 10]).await.unwrap();
    assert!(!kicked().await);
    recv.read_exact(&mut [0; 990]).await.unwrap();
    assert!(kicked().await);
}

/// DATA that was sent again in other pieces.
#[tokio::test]
async fn of_a_record_that_was_read_in_part_the_rest_is_kept() {
    let ends = ends(8);
    let hear = |offset: u64, payload: &[u8]| {
        let record = [&[0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &offset.to_be_bytes(), &offset.to_be_bytes(), payload];
        let state = &mut *ends.engine.lock();
        state.on_datagrams(Time::ZERO, ends.path, &[record.concat().into()]).unwrap();
        while let Some(event) = state.session.poll_event() {
            ends.engine.on_event(state, event);
        }
    };
    hear(0, b"0123456789");
    let (_send, mut recv) = ends.connection.accept_flow().await.unwrap();
    let mut read = [0; 10];
    recv.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"0123456789");
    hear(4, b"456789abcdefghi");
    let mut read = [0; 9];
    recv.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"abcdefghi");
}

#[tokio::test]
async fn what_nobody_will_read_is_forgotten() {
    let mut ends = ends(8);
    let id = ends.opened();
    let (_send, mut recv) = ends.connection.accept_flow().await.unwrap();
    assert!(ends.memory().1 > 0);
    ends.peer.reset(id, 5);
    ends.exchange();
    assert_eq!(ends.memory().1, 0);
    let error = recv.read_u8().await.unwrap_err();
    assert_eq!(flow_error(&error), Some(&FlowError::Reset { code: 5 }));

    ends.opened();
    let (_send, mut recv) = ends.connection.accept_flow().await.unwrap();
    assert!(ends.memory().1 > 0);
    recv.stop(6);
    assert_eq!(ends.memory().1, 0);
    // What comes nevertheless is not kept either.
    ends.opened();
    drop(ends.connection.accept_flow().await.unwrap());
    ends.exchange();
    assert_eq!(ends.memory().1, 0);
}

#[tokio::test]
async fn who_waits_for_a_peer_that_stops_reading_hears_of_it() {
    let mut ends = ends(8);
    let (mut send, _recv) = ends.connection.open_flow().await.unwrap();
    let id = FlowId(send.id());
    send.write_all(&[1; 1000]).await.unwrap();
    ends.exchange();
    // Until there is no more room.
    let woken = [Arc::new(Woken::default()), Arc::default()];
    let [for_writer, for_delivery] = woken.each_ref().map(|woken| Waker::from(Arc::clone(woken)));
    let mut write = Context::from_waker(&for_writer);
    while std::pin::Pin::new(&mut send).poll_write(&mut write, &[1; 1 << 16]).is_ready() {}
    let mut delivery = Context::from_waker(&for_delivery);
    assert!(pin!(send.delivered()).poll(&mut delivery).is_pending());
    ends.peer.stop(ends.now, id, 9);
    ends.hear();
    assert_eq!(woken.each_ref().map(|woken| woken.take()), [true, true]);
    for error in [send.delivered().await.unwrap_err(), send.write(&[1]).await.unwrap_err()] {
        assert_eq!(flow_error(&error), Some(&FlowError::Stopped { code: 9 }));
    }
}

#[tokio::test]
async fn delivered_is_what_the_peer_has_all_of() {
    let mut ends = ends(8);
    let (mut send, _recv) = ends.connection.open_flow().await.unwrap();
    let mut nobody = Context::from_waker(Waker::noop());
    // Nothing is.
    assert!(pin!(send.delivered()).poll(&mut nobody).is_ready());
    send.write_all(&[1; 1000]).await.unwrap();
    assert!(pin!(send.delivered()).poll(&mut nobody).is_pending());
    ends.exchange();
    assert!(pin!(send.delivered()).poll(&mut nobody).is_ready());
    // The end has to arrive, too.
    send.finish().unwrap();
    assert!(pin!(send.delivered()).poll(&mut nobody).is_pending());
    ends.exchange();
    assert!(pin!(send.delivered()).poll(&mut nobody).is_ready());
}

#[tokio::test]
async fn the_end_of_a_session_ends_every_wait() {
    for is_defect in [true, false] {
        let ends = ends(1);
        let (mut send, mut recv) = ends.connection.open_flow().await.unwrap();
        send.write_all(&[1; 1000]).await.unwrap();
        let woken: [Arc<Woken>; 4] = Default::default();
        let wakers = woken.each_ref().map(|woken| Waker::from(Arc::clone(woken)));
        let mut waits = wakers.each_ref().map(Context::from_waker);
        let (mut read, mut delivered) = (pin!(recv.read_u8()), pin!(send.delivered()));
        let (mut open, mut accept) = (pin!(ends.connection.open_flow()), pin!(ends.connection.accept_flow()));
        assert!(read.as_mut().poll(&mut waits[0]).is_pending());
        assert!(delivered.as_mut().poll(&mut waits[1]).is_pending());
        assert!(open.as_mut().poll(&mut waits[2]).is_pending());
        assert!(accept.as_mut().poll(&mut waits[3]).is_pending());
        if is_defect {
            ends.engine.on_defect("made by the test");
        } else {
            ends.engine.end_with(CloseReason::Server("gone".to_owned()), code::SHUTDOWN, "gone");
        }
        assert_eq!(woken.each_ref().map(|woken| woken.take()), [true; 4]);
        assert!(read.await.is_err() && delivered.await.is_err() && open.await.is_err() && accept.await.is_none());
    }
}

/// A carrier to somebody who reads nothing of the session's, and what keeps it open.
async fn carrier() -> (Arc<Carrier>, impl Sized) {
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let credentials = Identity::Ephemeral.load().unwrap();
    let tls = tls::client(&Trust::Fingerprint(credentials.fingerprint())).unwrap();
    let mut of_server = noq::ServerConfig::with_crypto(Arc::new(tls::server(credentials).unwrap()));
    of_server.transport_config(transport_config(&Arc::default(), 1452, true));
    let server = noq::Endpoint::server(of_server, local).unwrap();
    let reports = Arc::new(Reports::default());
    let mut of_client = noq::ClientConfig::new(tls.crypto);
    of_client.transport_config(transport_config(&reports, 1452, false));
    let client = noq::Endpoint::client(local).unwrap();
    let connecting = client.connect_with(of_client, server.local_addr().unwrap(), &tls.server_name).unwrap();
    let (connection, accepted) = tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
    let connection = connection.unwrap();
    let (send, recv) = connection.open_bi().await.unwrap();
    (Arc::new(Carrier::new(connection, reports, send, None)), (client, server, accepted, recv))
}

#[tokio::test]
async fn no_more_waits_in_quic_than_it_sends_in_a_turn() {
    let transport = TransportConfig::default();
    let own = settings::session(&transport, Role::Client, settings::limits(&transport), 8).unwrap();
    let engine = Engine::start(own, Duration::from_secs(60), Duration::MAX).unwrap();
    let (carrier, _open) = carrier().await;
    let remote = carrier.remote().unwrap();
    let path = NewPath { name: "one".to_owned(), remote, cost: 1.0, priority: Priority::Normal, kept: true };
    let key = engine.lock().paths.add(path);
    engine.attach(key, Arc::clone(&carrier)).unwrap();
    let connection = Connection::new(Arc::clone(&engine), None);
    let (mut send, _recv) = connection.open_flow().await.unwrap();
    // From here on nothing waits: QUIC's tasks have no turn, and the window grows beyond what may wait for one.
    let mut nobody = Context::from_waker(Waker::noop());
    for turn in 1..20 {
        let _ = std::pin::Pin::new(&mut send).poll_write(&mut nobody, &[1; 1 << 16]);
        let now = Time::from_millis(turn * 10);
        let state = &mut *engine.lock();
        engine.work(state, now);
        let all: Vec<Fate> = (0..1000).map(|packet| Fate::Acked(PacketNumber(packet))).collect();
        state.on_fates(now, SubflowId(0), &all);
    }
    let view = engine.lock().session.view().get(SubflowId(0)).unwrap().clone();
    assert!(view.in_flight + view.mss < view.cwnd, "the window lets nothing leave: {view:?}");
    assert_eq!(carrier.reports.queued(usize::MAX), MAX_QUEUED);
}
