//! The QUIC transport over links that are emulated in real time, inside this process: each link is a relay, every connection
//! a client that sends through the relays of its paths to one server.
//!
//! A run takes as long as its scenario says. Paths cross one link each; connections that share a link share its relay. What a
//! scenario says of TCP, packet sizes and acknowledgements does not apply: QUIC has its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use manypath_core::{Bytes, Time, jain_index};
use manypath_emu::{Relay, RelayConfig, RelayStats};
use manypath_quic::{
    Bind, ClientConfig, Connection, ConnectionStats, Identity, PathConfig, PathState, SendFlow, Server, ServerConfig,
    TransportConfig, Trust,
};
use manypath_scenario::{Connection as Described, Scenario, Workload};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::{Engine, EngineError, Input};
use crate::experiment::EngineKind;
use crate::quantities::Quantities;

/// How much is written and read at once, bytes.
const CHUNK: usize = 1 << 16;
/// How long paths may take to come up before the scenario's clock starts.
const SET_UP: Duration = Duration::from_secs(10);

/// The QUIC transport.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quic;

impl Engine for Quic {
    fn kind(&self) -> EngineKind {
        EngineKind::Quic
    }

    fn code(&self) -> &'static str {
        concat!(env!("CARGO_PKG_VERSION"), "+", env!("MANYPATH_CODE_QUIC"))
    }

    fn parallel(&self, _: usize) -> usize {
        // Runs in real time would disturb each other.
        1
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        let Input::Scenario(scenario) = input else { return Err(EngineError("no scenario to run".to_owned())) };
        check(scenario)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.map_err(|error| failed(&error))?.block_on(run(scenario, seed))
    }
}

fn failed(error: &dyn core::fmt::Display) -> EngineError {
    EngineError(error.to_string())
}

/// Whether this engine can run a scenario.
fn check(scenario: &Scenario) -> Result<(), EngineError> {
    let refuse = |what: &str| Err(EngineError(format!("the quic engine cannot run this: {what}: use sim")));
    if !scenario.sources.is_empty() {
        return refuse("it has sources that do not react");
    }
    for connection in &scenario.connections {
        if connection.paths.iter().any(|path| path.forward.len() != 1) {
            return refuse("a path of several links");
        }
        if !matches!(connection.workload, Workload::Endless | Workload::File(_)) {
            return refuse("a workload other than endless or a file");
        }
    }
    Ok(())
}

/// A connection under way.
struct Running {
    connection: Connection,
    send: Option<SendFlow>,
    /// Payload delivered, and sent by path, when summaries began.
    before: (u64, Vec<u64>),
    /// How long its file took, seconds.
    completion: Option<f64>,
}

async fn run(scenario: &Scenario, seed: u64) -> Result<Quantities, EngineError> {
    let server = Server::bind(server_config(scenario)).await.map_err(|error| failed(&error))?;
    let address = *server.local_addrs().first().ok_or_else(|| failed(&"the server listens nowhere"))?;
    let relays = relays(scenario, address, seed)?;
    let (mut running, mut receivers) = (Vec::new(), JoinSet::new());
    for described in &scenario.connections {
        let config = client_config(scenario, described, &server, &relays, seed)?;
        let connection = manypath_quic::connect(config).await.map_err(|error| failed(&error))?;
        let peer = server.accept().await.ok_or_else(|| failed(&"the server ended"))?;
        receivers.spawn(receive(peer));
        wait_for_paths(&connection, described.paths.len()).await?;
        let (send, _) = connection.open_flow().await.map_err(|error| failed(&error))?;
        running.push(Running { connection, send: Some(send), before: (0, Vec::new()), completion: None });
    }
    let measured = carry_out(scenario, &mut running).await?;
    let mut found = report(&running, &measured, scenario);
    for held in &running {
        held.connection.close(0, "the run is over");
    }
    receivers.abort_all();
    server.shutdown().await;
    for (index, relay) in relays {
        let stats = relay.stop().map_err(|error| failed(&error))?;
        add_link(&mut found, &scenario.links[index].name, &stats);
    }
    Ok(found)
}

fn server_config(scenario: &Scenario) -> ServerConfig {
    let window = scenario.connections.iter().map(|held| held.receive_buffer).max().unwrap_or(Bytes::new(1 << 20));
    ServerConfig {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        identity: Identity::Ephemeral,
        transport: TransportConfig { receive_window: window, flow_window: window, ..TransportConfig::default() },
        ..ServerConfig::default()
    }
}

/// A relay for each link that is used, by index.
fn relays(scenario: &Scenario, target: SocketAddr, seed: u64) -> Result<BTreeMap<usize, Relay>, EngineError> {
    let mut relays = BTreeMap::new();
    for path in scenario.connections.iter().flat_map(|connection| &connection.paths) {
        let (there, back) = (path.forward[0], path.backward[0]);
        if relays.contains_key(&there) {
            continue;
        }
        let drawn = |link: usize| scenario.links[link].drawn(scenario.duration, seed);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = RelayConfig::new(listen, target, drawn(there), drawn(back), seed);
        relays.insert(there, Relay::start(&config).map_err(|error| failed(&error))?);
    }
    Ok(relays)
}

fn client_config(
    scenario: &Scenario,
    described: &Described,
    server: &Server,
    relays: &BTreeMap<usize, Relay>,
    seed: u64,
) -> Result<ClientConfig, EngineError> {
    let address = *server.local_addrs().first().ok_or_else(|| failed(&"the server listens nowhere"))?;
    let mut config = ClientConfig::new(address, Trust::Fingerprint(server.fingerprint()));
    for (number, path) in described.paths.iter().enumerate() {
        let link = path.forward[0];
        let relay = relays.get(&link).ok_or_else(|| failed(&"a link has no relay"))?;
        let name = format!("{number} {}", scenario.links[link].name);
        let mut wanted = PathConfig::new(name, Bind::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        (wanted.remote, wanted.cost, wanted.priority) = (Some(relay.local_addr()), path.cost, path.priority);
        config.paths.push(wanted);
    }
    config.transport = TransportConfig {
        cc: described.cc.clone(),
        sched: described.scheduler.clone(),
        seed: Some(seed),
        send_buffer: described.send_buffer,
        ..TransportConfig::default()
    };
    Ok(config)
}

/// Waits until all paths carry data, so that the scenario begins with what it names.
async fn wait_for_paths(connection: &Connection, count: usize) -> Result<(), EngineError> {
    let up = async {
        while connection.stats().paths.iter().filter(|path| path.state == PathState::Active).count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SET_UP, up).await.map_err(|_| failed(&"not all paths came up within 10 s"))
}

/// Reads and forgets whatever arrives.
async fn receive(connection: Connection) {
    while let Some((_, mut flow)) = connection.accept_flow().await {
        let mut buffer = vec![0; CHUNK];
        while matches!(flow.read(&mut buffer).await, Ok(read) if read > 0) {}
    }
}

/// Writes what the workload says; the time that a file took, seconds.
async fn send(described: Described, mut flow: SendFlow, begun: Instant) -> Result<Option<f64>, EngineError> {
    let start = begun + Duration::from(described.start.since(Time::ZERO));
    tokio::time::sleep_until(start.into()).await;
    let chunk = vec![0; CHUNK];
    let Workload::File(size) = described.workload else {
        loop {
            flow.write_all(&chunk).await.map_err(|error| failed(&error))?;
        }
    };
    let mut left = usize::try_from(size.get()).map_err(|error| failed(&error))?;
    while left > 0 {
        let written = flow.write(&chunk[..left.min(CHUNK)]).await.map_err(|error| failed(&error))?;
        left -= written;
    }
    flow.finish().map_err(|error| failed(&error))?;
    flow.delivered().await.map_err(|error| failed(&error))?;
    Ok(Some(start.elapsed().as_secs_f64()))
}

/// The counters at the end, and how long they were counted.
struct Measured {
    stats: Vec<ConnectionStats>,
    seconds: f64,
}

/// Lets the scenario's time pass.
async fn carry_out(scenario: &Scenario, running: &mut [Running]) -> Result<Measured, EngineError> {
    let begun = Instant::now();
    let mut senders = JoinSet::new();
    for (index, (described, held)) in scenario.connections.iter().zip(running.iter_mut()).enumerate() {
        let Some(flow) = held.send.take() else { continue };
        let described = described.clone();
        senders.spawn(async move { send(described, flow, begun).await.map(|completion| (index, completion)) });
    }
    let (warmup, end) = (begun + Duration::from(scenario.warmup), begun + Duration::from(scenario.duration));
    let mut warm: Option<Instant> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(if warm.is_some() { end } else { warmup }.into()) => {
                let Some(since) = warm else {
                    warm = Some(Instant::now());
                    for held in &mut *running {
                        let stats = held.connection.stats();
                        let sent = stats.paths.iter().map(|path| path.bytes_sent.get()).collect();
                        held.before = (stats.delivered.get(), sent);
                    }
                    continue;
                };
                let stats = running.iter().map(|held| held.connection.stats()).collect();
                return Ok(Measured { stats, seconds: since.elapsed().as_secs_f64() });
            }
            Some(done) = senders.join_next() => {
                let (index, completion) = done.map_err(|error| failed(&error))??;
                running[index].completion = completion;
            }
        }
    }
}

/// The quantities of a run, with the names of the simulator's.
fn report(running: &[Running], measured: &Measured, scenario: &Scenario) -> Quantities {
    let mut found = Quantities::default();
    let mut goodputs = Vec::new();
    for ((held, stats), described) in running.iter().zip(&measured.stats).zip(&scenario.connections) {
        let name = |key: &str| format!("connection.{}.{key}", described.name);
        let delivered = stats.delivered.get().saturating_sub(held.before.0);
        let goodput = delivered as f64 * 8.0 / measured.seconds;
        goodputs.push(goodput);
        found.set(&name("goodput_bps"), goodput);
        found.set(&name("delivered_bytes"), delivered as f64);
        found.set(&name("retransmitted_bytes"), stats.retransmitted.as_f64());
        found.set(&name("duplicated_bytes"), stats.duplicated.as_f64());
        if let Some(seconds) = held.completion {
            found.set(&name("file.completion_s"), seconds);
        }
        for (number, path) in stats.paths.iter().enumerate() {
            let name = |key: &str| name(&format!("subflow.{number}.{key}"));
            let before = held.before.1.get(number).copied().unwrap_or(0);
            let sent = path.bytes_sent.get().saturating_sub(before);
            found.set(&name("sent_bytes"), sent as f64);
            found.set(&name("sending_bps"), sent as f64 * 8.0 / measured.seconds);
            found.set(&name("lost_packets"), path.records_lost as f64);
            found.set(&name("cwnd_bytes"), path.cwnd.as_f64());
            if let Some(srtt) = path.srtt {
                found.set(&name("srtt_s"), srtt.as_secs_f64());
            }
        }
    }
    found.set("goodput_bps", goodputs.iter().sum());
    if let Some(jain) = jain_index(&goodputs) {
        found.set("jain", jain);
    }
    found
}

/// What a relay says of its link, in the direction of the data, over the whole run.
fn add_link(found: &mut Quantities, name: &str, stats: &RelayStats) {
    let key = |key: &str| format!("link.{name}.{key}");
    let link = &stats.forward.link;
    found.set(&key("delivered_bytes"), link.delivered.bytes.as_f64());
    found.set(&key("dropped_queue_full"), link.dropped.queue_full.packets as f64);
    found.set(&key("dropped_random"), (link.dropped.random + link.dropped.bursty).packets as f64);
    found.set(&key("queueing_max_s"), link.queueing_max.as_secs_f64());
    if let Some(rate) = stats.forward.measured.rate() {
        // How exact the link was: to be seen beside its rate.
        found.set(&key("measured_bps"), rate.as_bps());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Box<Scenario> {
        Box::new(manypath_scenario::parse(text, "x", std::path::Path::new(".")).unwrap())
    }

    #[test]
    fn a_file_arrives_over_two_links() {
        let text = "duration = \"3s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\n\
            cc = \"lia\"\nfile = \"1MB\"\n";
        let found = Quic.run(&Input::Scenario(scenario(text)), 1).unwrap();
        assert_eq!(found.0["connection.mp.file.completion_s"].len(), 1);
        // One byte more than the file: the end of the flow is acknowledged too.
        assert!(found.0["connection.mp.delivered_bytes"][0] >= 1e6, "{found:?}");
        assert!(
            found.0.contains_key("connection.mp.subflow.1.sent_bytes")
                && found.0.contains_key("link.link2.delivered_bytes")
        );
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let text =
            "duration = \"1s\"\ntopology = \"mpcc-4a\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
        let error = Quic.run(&Input::Scenario(scenario(text)), 1).unwrap_err();
        assert!(error.to_string().contains("a path of several links: use sim"), "{error}");
        let text = "duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n\
            rate = \"1Mbit\"\n";
        assert!(Quic.run(&Input::Scenario(scenario(text)), 1).unwrap_err().to_string().contains("workload"));
    }
}
