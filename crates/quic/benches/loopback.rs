//! Goodput over loopback of one path and of two, against a plain noq stream with the same packet size, in the same run.
//! Absolute numbers depend on the machine and on what else runs; the ratios are what counts.

#![allow(clippy::print_stdout)] // a benchmark prints

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manypath_core::AlgorithmSpec;
use manypath_quic::{Bind, ClientConfig, Identity, PathConfig, Server, ServerConfig, TransportConfig, Trust, connect};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Payload of one measurement.
const TOTAL: usize = 1 << 28;

/// Measurements of each kind, in turns; medians count.
const ROUNDS: usize = 11;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // Each round measures all kinds, one right after the other, so that a disturbance hits all alike.
    let rounds: Vec<[Moved; 3]> = (0..ROUNDS)
        .map(|_| [runtime.block_on(stream()), runtime.block_on(session(1)), runtime.block_on(session(2))])
        .collect();
    let of = |value: &dyn Fn(&[Moved; 3]) -> f64| median(rounds.iter().map(value).collect());
    println!("                    Mbit/s   CPU s/GB");
    for (kind, name) in ["plain noq stream", "one path", "two paths"].into_iter().enumerate() {
        println!("{name:<16}  {:8.0}   {:8.2}", of(&|round| round[kind].mbps), of(&|round| round[kind].cpu));
    }
    println!(
        "one path is {:.2} of the stream, two paths are {:.2} of one (medians of the rounds' ratios)",
        of(&|round| round[1].mbps / round[0].mbps),
        of(&|round| round[2].mbps / round[1].mbps)
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One measurement.
struct Moved {
    mbps: f64,
    /// CPU seconds of the whole process, both ends, for 10^9 bytes: other programs disturb it less.
    cpu: f64,
}

/// When a measurement began.
struct Start {
    wall: Instant,
    cpu: Duration,
}

impl Start {
    fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    fn moved(&self) -> Moved {
        let bytes = TOTAL as f64;
        let (wall, cpu) = (self.wall.elapsed().as_secs_f64(), (cpu_time() - self.cpu).as_secs_f64());
        Moved { mbps: bytes * 8e-6 / wall, cpu: cpu / (bytes * 1e-9) }
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)).unwrap()
}

/// A session over this many paths.
async fn session(paths: usize) -> Moved {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cubic".to_owned());
    let transport = TransportConfig { cc: cc.parse::<AlgorithmSpec>().unwrap(), ..TransportConfig::default() };
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let config =
        ServerConfig { listen, identity: Identity::Ephemeral, transport: transport.clone(), ..ServerConfig::default() };
    let server = Server::bind(config).await.unwrap();
    let config = ClientConfig {
        paths: (0..paths).map(|index| PathConfig::new(format!("path{index}"), Bind::Any)).collect(),
        transport,
        ..ClientConfig::new(server.local_addrs()[0], Trust::Fingerprint(server.fingerprint()))
    };
    let client = connect(config).await.unwrap();
    let accepted = server.accept().await.unwrap();
    // MTU discovery takes its time, here as for the stream.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let receiver = tokio::spawn(async move {
        let (_, mut recv) = accepted.accept_flow().await.unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while received < TOTAL {
            received += recv.read(&mut buffer).await.unwrap();
        }
        accepted
    });
    let start = Start::now();
    let (mut send, _recv) = client.open_flow().await.unwrap();
    let chunk = vec![7; 1 << 16];
    for _ in 0..TOTAL / chunk.len() {
        send.write_all(&chunk).await.unwrap();
    }
    let accepted = receiver.await.unwrap();
    let moved = start.moved();
    if std::env::var_os("VERBOSE").is_some() {
        println!("{:#?}\n{:#?}", client.stats(), accepted.stats());
    }
    drop(accepted);
    client.close(0, "");
    client.closed().await;
    server.shutdown().await;
    moved
}

/// A stream of one plain noq connection, with noq's own controller.
async fn stream() -> Moved {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let tls13 = &[&rustls::version::TLS13];
    let crypto =
        rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(tls13).unwrap();
    let crypto = crypto.with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    // noq's own windows: with larger ones a burst of loss overruns its reassembly ("too many gaps").
    let transport = Arc::new(noq::TransportConfig::default());
    let mut config = noq::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto).unwrap()));
    config.transport_config(Arc::clone(&transport));
    let server = noq::Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let crypto = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(tls13).unwrap();
    let crypto = crypto.with_root_certificates(roots).with_no_client_auth();
    let mut config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto).unwrap()));
    config.transport_config(transport);
    let client = noq::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost").unwrap();
    let (connection, accepted) = tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
    let connection = connection.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let receiver = tokio::spawn(async move {
        let (_, mut recv) = accepted.accept_bi().await.unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while received < TOTAL {
            received += recv.read(&mut buffer).await.unwrap().unwrap();
        }
        accepted
    });
    let start = Start::now();
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    let chunk = vec![7; 1 << 16];
    for _ in 0..TOTAL / chunk.len() {
        send.write_all(&chunk).await.unwrap();
    }
    drop(receiver.await.unwrap());
    start.moved()
}
