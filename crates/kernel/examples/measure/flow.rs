//! Links, and flows over them that send as much as they can.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use manypath_emu::tun::{Namespace, TunConfig, TunLinks};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Failure;

/// What a flow writes and reads at once.
const CHUNK: usize = 128 * 1024;

/// Starts the links of a scenario. The first connection's paths are those of Multipath TCP.
pub(crate) fn links(scenario: &str, seed: u64) -> Result<TunLinks, Failure> {
    let scenario = manypath_scenario::parse(scenario, "measure.toml", Path::new("."))?;
    Ok(TunLinks::start(&TunConfig::from_scenario(&scenario, seed)?)?)
}

/// Runs `ip` in a namespace.
pub(crate) fn ip(namespace: &Namespace, words: String) -> Result<(), Failure> {
    let output = namespace.run({
        let words = words.clone();
        move || Command::new("ip").args(words.split(' ')).output()
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Has the kernel hand its packets to the links' devices one by one, as the simulator does: no segmentation offload.
pub(crate) fn send_single_packets(links: &TunLinks) -> Result<(), Failure> {
    for namespace in [links.client(), links.server()] {
        for path in links.paths() {
            ip(namespace, format!("link set dev {} gso_max_segs 1", path.device))?;
        }
    }
    Ok(())
}

/// A connection from the client to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// Congestion controller, at both ends.
    pub(crate) controller: &'a str,
    /// Multipath TCP, or plain TCP.
    pub(crate) multipath: bool,
    /// The addresses: the client's and the server's.
    pub(crate) from: Ipv4Addr,
    pub(crate) to: Ipv4Addr,
    pub(crate) port: u16,
    /// `SO_SNDBUF` and `SO_RCVBUF`; the kernel's own way without.
    pub(crate) buffers: Option<usize>,
}

impl<'a> Wish<'a> {
    /// A Multipath TCP connection; its addresses are those that [`Flow::over`] gives it.
    pub(crate) const fn of(controller: &'a str, buffers: Option<usize>) -> Self {
        let address = Ipv4Addr::UNSPECIFIED;
        Self { controller, multipath: true, from: address, to: address, port: 5000, buffers }
    }

    fn open(&self, namespace: &Namespace) -> std::io::Result<Socket> {
        let (controller, buffers) = (self.controller.to_owned(), self.buffers);
        let protocol = if self.multipath { Protocol::MPTCP } else { Protocol::TCP };
        namespace.run(move || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
            socket.set_reuse_address(true)?;
            socket.set_tcp_congestion(controller.as_bytes())?;
            if let Some(bytes) = buffers {
                socket.set_send_buffer_size(bytes)?;
                socket.set_recv_buffer_size(bytes)?;
            }
            Ok(socket)
        })
    }
}

/// A flow that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Flow {
    client: Arc<Socket>,
    server: Arc<Socket>,
    /// Further subflows come in by the port that the first came in by, while it listens.
    _listener: Socket,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Connects and begins to send.
    pub(crate) fn start(client: &Namespace, server: &Namespace, wish: &Wish<'_>) -> Result<Self, Failure> {
        let listener = wish.open(server)?;
        listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, wish.port)).into())?;
        listener.listen(8)?;
        let client = wish.open(client)?;
        client.bind(&SocketAddr::from((wish.from, 0)).into())?;
        client.connect(&SocketAddr::from((wish.to, wish.port)).into())?;
        let (client, server) = (Arc::new(client), Arc::new(listener.accept()?.0));
        let received = Arc::new(AtomicU64::new(0));
        let (from, to, count) = (client.clone(), server.clone(), received.clone());
        let threads = vec![
            thread::spawn(move || {
                let chunk = vec![0x5a; CHUNK];
                while (&*from).write_all(&chunk).is_ok() {}
            }),
            thread::spawn(move || {
                let mut chunk = vec![0; CHUNK];
                while let Ok(bytes @ 1..) = (&*to).read(&mut chunk) {
                    count.fetch_add(bytes as u64, Ordering::Relaxed);
                }
            }),
        ];
        Ok(Self { client, server, _listener: listener, received, threads })
    }

    /// Over links, from the client's address on a path.
    pub(crate) fn over(links: &TunLinks, path: usize, wish: &Wish<'_>) -> Result<Self, Failure> {
        let path = &links.paths()[path];
        Self::start(links.client(), links.server(), &Wish { from: path.client, to: path.server, ..*wish })
    }

    /// Bytes that the server has received.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // It may have been reset.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            // A panic in it has been printed.
            let _ = thread.join();
        }
    }
}

/// Goodput of each flow in Mbit/s, over `seconds` after `warmup`.
pub(crate) fn goodput<const N: usize>(flows: [&Flow; N], warmup: u64, seconds: u64) -> [f64; N] {
    thread::sleep(Duration::from_secs(warmup));
    let before = flows.map(Flow::received);
    thread::sleep(Duration::from_secs(seconds));
    let mut at = 0..;
    flows.map(|flow| {
        let bytes = flow.received() - before[at.next().unwrap_or_default()];
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let megabits = bytes as f64 * 8.0 / 1e6;
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let seconds = seconds as f64;
        megabits / seconds
    })
}

/// The middle one of numbers, or the mean of the two in the middle.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let middle = &sorted[(sorted.len() - 1) / 2..=sorted.len() / 2];
    middle.iter().sum::<f64>() / if middle.len() == 2 { 2.0 } else { 1.0 }
}
