//! A server and client on loopback, with emulated links between them.

#![allow(dead_code)] // every test file uses its own part

pub(crate) mod raw;

use std::net::SocketAddr;
use std::time::Duration;

use manypath_core::{Bytes, Duration as Span, Rate};
use manypath_emu::{Relay, RelayConfig};
use manypath_link::{LinkConfig, Loss, QueueLimit};
use manypath_quic::{
    Bind, ClientConfig, Connection, PathConfig, RecvFlow, Server, ServerConfig, TransportConfig, Trust, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Any free port.
pub(crate) const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// However slow the machine is, nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A relay in front of a server: 200 Mbit/s and 5 ms each way, with this share of packets lost at random.
pub(crate) fn relay(server: &Server, loss: f64) -> Relay {
    relay_of(server, |link| link.loss = Loss::Random(loss))
}

/// The same with other changes to its links.
pub(crate) fn relay_of(server: &Server, change: impl FnOnce(&mut LinkConfig)) -> Relay {
    let (rate, delay) = (Rate::from_mbps(200.0), Span::from_millis(5));
    let mut link = LinkConfig::new(rate, delay, QueueLimit::Bytes(Bytes::new(512 << 10)));
    change(&mut link);
    let mut config = RelayConfig::new(SocketAddr::from(LOOPBACK), server.local_addrs()[0], link.clone(), link, 1);
    config.realtime = false;
    Relay::start(&config).unwrap()
}

pub(crate) async fn server(config: ServerConfig) -> Server {
    let listen = vec![SocketAddr::from(LOOPBACK)];
    Server::bind(ServerConfig { listen, ..config }).await.unwrap()
}

/// A client's settings with one path through each of these addresses.
pub(crate) fn client_config(server: &Server, through: &[SocketAddr]) -> ClientConfig {
    let paths = through.iter().enumerate().map(|(index, remote)| PathConfig {
        remote: Some(*remote),
        ..PathConfig::new(format!("path{index}"), Bind::Any)
    });
    ClientConfig {
        paths: paths.collect(),
        ..ClientConfig::new(server.local_addrs()[0], Trust::Fingerprint(server.fingerprint()))
    }
}

/// Both ends of a connection over two relays.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server_side: Connection,
    pub(crate) server: Server,
    pub(crate) relays: Vec<Relay>,
}

/// A connection over as many relays as given, each with its share of losses.
pub(crate) async fn pair(transport: TransportConfig, losses: &[f64]) -> Pair {
    pair_over(transport, |server| losses.iter().map(|loss| relay(server, *loss)).collect()).await
}

/// The same over relays made for the server.
pub(crate) async fn pair_over(transport: TransportConfig, relays: impl FnOnce(&Server) -> Vec<Relay>) -> Pair {
    let server = server(ServerConfig { transport: transport.clone(), ..ServerConfig::default() }).await;
    let relays = relays(&server);
    let addresses: Vec<SocketAddr> = relays.iter().map(|relay| relay.local_addr()).collect();
    let config = ClientConfig { transport, ..client_config(&server, &addresses) };
    let (client, server_side) = within(async { tokio::join!(connect(config), server.accept()) }).await;
    Pair { client: client.unwrap(), server_side: server_side.unwrap(), server, relays }
}

/// The time limit of every wait.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}

/// Bytes that differ at every offset a mistake could confuse.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Waits until `count` paths of a connection are up.
pub(crate) async fn paths_up(connection: &Connection, count: usize) {
    within(async {
        while connection.stats().paths.iter().filter(|path| path.id.is_some()).count() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

pub(crate) async fn read_all(flow: &mut RecvFlow) -> Vec<u8> {
    let mut bytes = Vec::new();
    within(flow.read_to_end(&mut bytes)).await.unwrap();
    bytes
}

/// Sends bytes on a new flow from one end to the other, and checks them.
pub(crate) async fn transfer(from: &Connection, to: &Connection, bytes: &[u8]) {
    let (mut send, _recv) = from.open_flow().await.unwrap();
    let write = async {
        send.write_all(bytes).await.unwrap();
        send.shutdown().await.unwrap();
        send.delivered().await.unwrap();
    };
    let read = async {
        let (_send, mut recv) = to.accept_flow().await.unwrap();
        let received = read_all(&mut recv).await;
        assert!(received == bytes, "{} of {} bytes, or other ones", received.len(), bytes.len());
    };
    within(async { tokio::join!(write, read) }).await;
}
