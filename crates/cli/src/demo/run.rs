//! One run of the demo: a server process, a relay for each path, a client, a download.

use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use manypath_core::{AlgorithmSpec, Bytes, Duration, Rate};
use manypath_emu::{Relay, RelayConfig};
use manypath_link::{LinkConfig, Loss, QueueLimit};
use manypath_quic::{Bind, ClientConfig, Connection, Fingerprint, PathConfig, RecvFlow, Trust};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::outcome::{DemoLink, LinkCheck, Outcome, Sample, WARM_UP, capacity_mbps, mbps};
use crate::files::wire::{self, End, Frame};
use crate::files::{Hash, hash_prefix};
use crate::progress::millis;

/// The served file's name.
const FILE: &str = "random.bin";

/// Between two samples of the plots, seconds.
const SAMPLE_INTERVAL: f64 = 0.1;

/// How long a run may stand still before it counts as broken.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Where the served file lives, until the demo is over.
#[derive(Debug)]
pub(crate) struct Served {
    dir: TempDir,
}

impl Served {
    /// Makes a file of random bytes that lasts for `time` at the rate of all links.
    pub(crate) fn make(time: std::time::Duration) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a folder for the file to download")?;
        let size = Rate::from_mbps(capacity_mbps() * 1.2).bytes_in(time.into()).get();
        let path = dir.path().join(FILE);
        let mut file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(std::process::id()));
        let mut block = vec![0; 1 << 20];
        for _ in 0..size.div_ceil(block.len() as u64) {
            random.fill_bytes(&mut block);
            file.write_all(&block).with_context(|| format!("cannot write {} (is the disk full?)", path.display()))?;
        }
        Ok(Self { dir })
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join(FILE)
    }
}

/// A server in a process of its own, with one controller and scheduler.
#[derive(Debug)]
pub(crate) struct Server {
    /// Killed when dropped.
    _process: Child,
    address: SocketAddr,
    fingerprint: Fingerprint,
}

impl Server {
    /// Starts this very program as a server of the folder.
    pub(crate) async fn start(served: &Served, cc: &AlgorithmSpec, sched: &AlgorithmSpec) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut process = Command::new(program)
            .arg("serve")
            .arg(served.dir.path())
            .args(["--listen", "127.0.0.1:0"])
            .args(["--cc", &cc.to_string(), "--sched", &sched.to_string()])
            .arg("--state")
            .arg(served.dir.path().join("state"))
            // The demo's client sends no token.
            .env_remove("MANYPATH_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server process")?;
        let output = process.stdout.take().context("the server process has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await.context("cannot read what the server process says")?;
        // `manypath get ADDRESS/FILE --pin FINGERPRINT`: the command that `serve` prints for people to paste.
        let mut words = line.split_whitespace();
        let address = words.nth(2).and_then(|target| target.split_once('/')).map(|(address, _)| address);
        let fingerprint = words.nth(1);
        let (Some(address), Some(fingerprint)) = (address, fingerprint) else {
            let said = process.wait_with_output().await.context("the server process did not start")?.stderr;
            bail!("the server process did not start: {}", String::from_utf8_lossy(&said).trim());
        };
        Ok(Self { _process: process, address: address.parse()?, fingerprint: fingerprint.parse()? })
    }
}

/// The relay of one path to the server.
fn relay(link: &DemoLink, server: SocketAddr, seed: u64) -> anyhow::Result<Relay> {
    let queue = QueueLimit::Bytes(Bytes::new(link.queue_kb * 1000));
    let mut direction = LinkConfig::new(Rate::from_mbps(link.mbps), Duration::from_millis(link.rtt_ms / 2), queue);
    direction.loss = if link.loss > 0.0 { Loss::Random(link.loss) } else { Loss::None };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = RelayConfig::new(listen, server, direction.clone(), direction, seed);
    Relay::start(&config).with_context(|| format!("cannot start the {} relay", link.name))
}

/// Counts what arrives, and when.
struct Meter {
    started: Instant,
    hasher: Sha256,
    bytes: u64,
    /// Payload that had arrived, and seconds, when the warm-up ended. What waits for missing data before it counts here too,
    /// or else a gap that closes late would seem to be goodput of later.
    warm: Option<(u64, f64)>,
    /// Per path, bytes at the last sample.
    before: Vec<u64>,
    samples: Vec<Sample>,
}

impl Meter {
    fn new(paths: usize) -> Self {
        let (hasher, samples) = (Sha256::new(), Vec::new());
        Self { started: Instant::now(), hasher, bytes: 0, warm: None, before: vec![0; paths], samples }
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn on_data(&mut self, content: &[u8], connection: &Connection) {
        self.hasher.update(content);
        self.bytes += content.len() as u64;
        let now = self.seconds();
        if self.warm.is_none() && now >= WARM_UP {
            self.warm = Some((connection.stats().received.get(), now));
        }
        let last = self.samples.last().map_or(0.0, |sample| sample.at);
        if now - last >= SAMPLE_INTERVAL {
            let stats = connection.stats();
            let counts: Vec<u64> = stats.paths.iter().map(|path| path.bytes_received.get()).collect();
            let rates = counts.iter().zip(&self.before).map(|(new, old)| mbps(new.saturating_sub(*old), now - last));
            self.samples.push(Sample { at: now, mbps: rates.collect() });
            self.before = counts;
        }
    }

    fn steady_mbps(&self, connection: &Connection, end: f64) -> f64 {
        let (bytes, since) = self.warm.unwrap_or((0, 0.0));
        mbps(connection.stats().received.get() - bytes, end - since)
    }
}

/// Downloads over `links` for `time`.
pub(crate) async fn download(
    served: &Served,
    server: &Server,
    algorithms: (&AlgorithmSpec, &AlgorithmSpec),
    links: &[DemoLink],
    time: std::time::Duration,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let relays: Vec<Relay> =
        links.iter().zip(seed..).map(|(link, seed)| relay(link, server.address, seed)).collect::<Result<_, _>>()?;
    let mut config = ClientConfig::new(server.address, Trust::Fingerprint(server.fingerprint));
    for (link, relay) in links.iter().zip(&relays) {
        let mut path = PathConfig::new(link.name, Bind::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        path.remote = Some(relay.local_addr());
        config.paths.push(path);
    }
    let connection = manypath_quic::connect(config).await.context("cannot reach the demo's own server")?;
    let (mut request, mut answer) = connection.open_flow().await.context("cannot open a flow")?;
    let limit_ms = millis(time);
    let (path, hash) = (FILE.to_owned(), Hash::of(&Sha256::new()));
    wire::write(&mut request, &Frame::Get { path, have: 0, hash, limit_ms }).await?;
    let mut meter = Meter::new(links.len());
    let end = receive(&mut answer, &mut meter, &connection).await?;
    let taken = meter.seconds();
    let goodput_mbps = meter.steady_mbps(&connection, taken);
    connection.close(0, "the run is over");
    let links: Vec<LinkCheck> =
        links.iter().zip(relays).map(|(link, relay)| check(link, relay)).collect::<anyhow::Result<_>>()?;
    Ok(Outcome {
        cc: algorithms.0.to_string(),
        sched: algorithms.1.to_string(),
        paths: links.iter().map(|check| check.link).collect(),
        seconds: taken,
        bytes: meter.bytes,
        goodput_mbps,
        capacity_share: goodput_mbps / capacity_mbps(),
        retransmitted_bytes: end.retransmitted,
        sha256_ok: is_intact(&served.file(), &meter, &end)?,
        links,
        samples: meter.samples,
    })
}

/// Receives the answer to the end.
async fn receive(answer: &mut RecvFlow, meter: &mut Meter, connection: &Connection) -> anyhow::Result<End> {
    loop {
        let frame = tokio::time::timeout(PATIENCE, wire::read(answer)).await.context("the download stands still")??;
        match frame {
            Frame::File { from, .. } => ensure!(from == 0, "the server does not begin at the beginning"),
            Frame::Data(content) => meter.on_data(&content, connection),
            Frame::End(end) => return Ok(end),
            Frame::Error { message, .. } => bail!("the server refused: {message}"),
            other => bail!("the server answered {other:?}"),
        }
    }
}

/// Whether what arrived is a beginning of the served file, by our own hash of both.
fn is_intact(file: &Path, meter: &Meter, end: &End) -> anyhow::Result<bool> {
    let mut file = File::open(file).context("cannot read the served file again")?;
    let (expected, length) = hash_prefix(&mut file, meter.bytes, &|| true)?;
    let (expected, received) = (Hash::of(&expected), Hash::of(&meter.hasher));
    Ok(length == meter.bytes && end.length == meter.bytes && received == expected && end.hash == expected)
}

/// What a relay says about its link, in the direction of the download.
fn check(link: &DemoLink, relay: Relay) -> anyhow::Result<LinkCheck> {
    let stats = relay.stop().with_context(|| format!("the {} relay broke", link.name))?;
    let measured = stats.backward.measured;
    let (measured_mbps, backlogged_s) = (measured.rate().map(Rate::as_mbps), measured.time.as_secs_f64());
    Ok(LinkCheck { link: link.name, set_mbps: link.mbps, measured_mbps, backlogged_s })
}
