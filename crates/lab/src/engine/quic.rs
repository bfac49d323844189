//! The QUIC transport over links that are emulated in real time, inside this process: each link is a relay, every connection
//! a client that sends through the relays of its paths to one server.
//!
//! A run takes as long as its scenario says. Paths cross one link each, there and back; connections that share a link share its
//! relay. What a scenario says of TCP, packet sizes and acknowledgements does not apply: QUIC has its own. All paths of a
//! connection are up before the run begins: `join-after` does not apply either.

mod application;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use manypath_core::{Bytes, jain_index};
use manypath_emu::{Awake, Relay, RelayConfig, RelayStats};
use manypath_quic::{
    Bind, ClientConfig, Connection, ConnectionStats, Identity, PathConfig, PathState, Server, ServerConfig,
    TransportConfig, Trust,
};
use manypath_scenario::{Connection as Described, Scenario};
use rand_core::Rng as _;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;

use super::{Engine, EngineError, Input, add_capacities, add_unfinished};
use crate::arrived::Files;
use crate::code::{self, Code};
use crate::experiment::EngineKind;
use crate::quantities::Quantities;
use application::Application;

/// How much is read at once, bytes.
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

    fn code(&self) -> &'static Code {
        &code::QUIC
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn check(&self, input: &Input) -> Result<(), EngineError> {
        check(super::scenario(input)?)
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        self.check(input)?;
        let scenario = super::scenario(input)?;
        let _awake = Awake::keep();
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
        if connection.paths.iter().any(|path| path.forward.len() != 1 || path.backward.len() != 1) {
            return refuse("a path of several links");
        }
    }
    // A relay is one link there and one back.
    let paths = || scenario.connections.iter().flat_map(|connection| &connection.paths);
    let pairs: BTreeSet<_> = paths().map(|path| (path.forward[0], path.backward[0])).collect();
    let there: BTreeSet<_> = paths().map(|path| path.forward[0]).collect();
    let back: BTreeSet<_> = paths().map(|path| path.backward[0]).collect();
    if there.len() < pairs.len() || back.len() < pairs.len() {
        return refuse("paths that share a link one way and not the other");
    }
    Ok(())
}

/// A connection under way.
struct Running {
    connection: Connection,
    files: Files,
}

async fn run(scenario: &Scenario, seed: u64) -> Result<Quantities, EngineError> {
    let server = Server::bind(server_config(scenario)).await.map_err(|error| failed(&error))?;
    let address = *server.local_addrs().first().ok_or_else(|| failed(&"the server listens nowhere"))?;
    let mut relays = BTreeMap::new();
    for (link, config) in relay_configs(scenario, address, seed) {
        relays.insert(link, Relay::start(&config).map_err(|error| failed(&error))?);
    }
    let (mut running, mut receivers) = (Vec::new(), JoinSet::new());
    for described in &scenario.connections {
        let config = client_config(scenario, described, &server, &relays, seed)?;
        let connection = manypath_quic::connect(config).await.map_err(|error| failed(&error))?;
        let peer = server.accept().await.ok_or_else(|| failed(&"the server ended"))?;
        receivers.spawn(receive(peer));
        wait_for_paths(&connection, described.paths.len()).await?;
        running.push(Running { connection, files: Files::default() });
    }
    let counted = carry_out(scenario, &mut running, seed).await?;
    let mut found = report(&running, &counted, scenario);
    add_capacities(&mut found, scenario, seed);
    add_unfinished(&mut found, scenario);
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

/// A seed of one link's or one connection's own: under the run's, what several draw would be the same.
fn own_seed(seed: u64, name: &str, purpose: &str) -> u64 {
    manypath_link::generator(seed, &format!("{name}/{purpose}")).next_u64()
}

/// What makes the relay of each link that is used, by index.
fn relay_configs(scenario: &Scenario, target: SocketAddr, seed: u64) -> BTreeMap<usize, RelayConfig> {
    let mut configs = BTreeMap::new();
    for path in scenario.connections.iter().flat_map(|connection| &connection.paths) {
        let (there, back) = (path.forward[0], path.backward[0]);
        configs.entry(there).or_insert_with(|| {
            let drawn = |link: usize| scenario.links[link].drawn(scenario.duration, seed);
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let own = own_seed(seed, &scenario.links[there].name, "relay");
            RelayConfig::new(listen, target, drawn(there), drawn(back), own)
        });
    }
    configs
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
        sched: manypath_sim::scheduler(described),
        seed: Some(own_seed(seed, &described.name, "cc")),
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
    let mut flows = JoinSet::new();
    while let Some((mut back, mut flow)) = connection.accept_flow().await {
        flows.spawn(async move {
            let mut buffer = vec![0; CHUNK];
            while matches!(flow.read(&mut buffer).await, Ok(read) if read > 0) {}
            // Nothing flows the other way.
            let _ = back.finish();
        });
        while flows.try_join_next().is_some() {}
    }
}

/// The counters of all connections at a time, seconds from the beginning.
struct Counted {
    at: f64,
    stats: Vec<ConnectionStats>,
}

impl Counted {
    fn take(running: &[Running], begun: Instant) -> Self {
        let stats = running.iter().map(|held| held.connection.stats()).collect();
        Self { at: begun.elapsed().as_secs_f64(), stats }
    }
}

/// Counters when summaries begin, at each sample, and at the end.
struct Counts {
    warm: Counted,
    samples: Vec<Counted>,
    end: Counted,
}

/// Lets the scenario's time pass.
async fn carry_out(scenario: &Scenario, running: &mut [Running], seed: u64) -> Result<Counts, EngineError> {
    let begun = Instant::now();
    let mut senders = JoinSet::new();
    for (described, held) in scenario.connections.iter().zip(running.iter_mut()) {
        let application = Application::new(scenario, described, held.connection.clone(), begun, seed);
        held.files = application.files();
        senders.spawn(application.run(seed));
    }
    let (warmup, end) = (begun + Duration::from(scenario.warmup), begun + Duration::from(scenario.duration));
    // Without samples the first would come after the end.
    let every = scenario.sample.map_or(Duration::from(scenario.duration) * 2, Duration::from);
    let mut ticks = tokio::time::interval_at((begun + every).into(), every);
    let (mut warm, mut samples) = (None, Vec::new());
    loop {
        tokio::select! {
            _ = ticks.tick() => samples.push(Counted::take(running, begun)),
            () = tokio::time::sleep_until(if warm.is_some() { end } else { warmup }.into()) => {
                let now = Counted::take(running, begun);
                match warm {
                    None => warm = Some(now),
                    Some(warm) => return Ok(Counts { warm, samples, end: now }),
                }
            }
            Some(done) = senders.join_next() => {
                done.map_err(|error| failed(&error))??;
                // Nothing is sent in the time that is left.
                if senders.is_empty() && scenario.sample.is_none() && let Some(warm) = warm.take() {
                    let end = Counted { at: scenario.duration.as_secs_f64(), ..Counted::take(running, begun) };
                    return Ok(Counts { warm, samples, end });
                }
            }
        }
    }
}

/// The quantities of a run, with the names of the simulator's.
fn report(running: &[Running], counts: &Counts, scenario: &Scenario) -> Quantities {
    let mut found = Quantities::default();
    let mut goodputs = Vec::new();
    for (index, (held, described)) in running.iter().zip(&scenario.connections).enumerate() {
        let (before, now) = (&counts.warm.stats[index], &counts.end.stats[index]);
        let seconds = counts.end.at - counts.warm.at;
        let name = |key: &str| format!("connection.{}.{key}", described.name);
        let since = |count: fn(&ConnectionStats) -> u64| (count(now) - count(before)) as f64;
        let delivered = since(|stats| stats.delivered.get());
        goodputs.push(delivered * 8.0 / seconds);
        found.set(&name("goodput_bps"), delivered * 8.0 / seconds);
        found.set(&name("delivered_bytes"), delivered);
        found.set(&name("retransmitted_bytes"), since(|stats| stats.retransmitted.get()));
        found.set(&name("duplicated_bytes"), since(|stats| stats.duplicated.get()));
        held.files.report(&mut found, &format!("connection.{}", described.name), scenario.warmup.as_secs_f64());
        for (number, (now, before)) in now.paths.iter().zip(&before.paths).enumerate() {
            let name = |key: &str| name(&format!("subflow.{number}.{key}"));
            let sent = (now.bytes_sent - before.bytes_sent).as_f64();
            found.set(&name("sent_bytes"), sent);
            found.set(&name("sending_bps"), sent * 8.0 / seconds);
            found.set(&name("sent_packets"), (now.records_sent - before.records_sent) as f64);
            found.set(&name("lost_packets"), (now.records_lost - before.records_lost) as f64);
            found.set(&name("cwnd_bytes"), now.cwnd.as_f64());
            found.set(&name("srtt_s"), now.srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64()));
        }
        add_series(&mut found, &described.name, index, &counts.samples);
    }
    found.set("goodput_bps", goodputs.iter().sum());
    if let Some(jain) = jain_index(&goodputs) {
        found.set("jain", jain);
    }
    found
}

/// The time series of a connection: each value is about the time since the sample before it.
fn add_series(found: &mut Quantities, name: &str, index: usize, samples: &[Counted]) {
    if samples.is_empty() {
        return;
    }
    found.0.insert("series.time_s".to_owned(), samples.iter().map(|sample| sample.at).collect());
    let rate = |count: &dyn Fn(&ConnectionStats) -> u64| {
        let (mut at, mut total) = (0.0, 0);
        let each = samples.iter().map(|sample| {
            let now = count(&sample.stats[index]);
            let rate = (now - total) as f64 * 8.0 / (sample.at - at);
            (at, total) = (sample.at, now);
            rate
        });
        each.collect::<Vec<f64>>()
    };
    found.0.insert(format!("series.connection.{name}.goodput_bps"), rate(&|stats| stats.delivered.get()));
    for number in 0..samples[0].stats[index].paths.len() {
        let mut add = |key: &str, values| {
            found.0.insert(format!("series.connection.{name}.subflow.{number}.{key}"), values);
        };
        let paths = || samples.iter().map(|sample| &sample.stats[index].paths[number]);
        add("sending_bps", rate(&|stats| stats.paths[number].bytes_sent.get()));
        add("cwnd_bytes", paths().map(|path| path.cwnd.as_f64()).collect());
        add("srtt_s", paths().map(|path| path.srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64())).collect());
    }
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
    use manypath_core::Time;
    use manypath_link::{Ecn, Link, Verdict};

    use super::*;
    use crate::arrived::workloads;

    fn scenario(text: &str) -> Box<Scenario> {
        Box::new(manypath_scenario::parse(text, "x", std::path::Path::new(".")).unwrap())
    }

    #[test]
    fn a_file_arrives_over_two_links() {
        let text = "duration = \"3s\"\nsample = \"500ms\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\n\
            role = \"mp\"\ncc = \"lia\"\nfile = \"1MB\"\n";
        let found = Quic.run(&Input::Scenario(scenario(text)), 1).unwrap();
        assert_eq!(found.0["connection.mp.file.completion_s"].len(), 1);
        // One byte more than the file: the end of the flow is acknowledged too.
        assert!(found.0["connection.mp.delivered_bytes"][0] >= 1e6, "{found:?}");
        assert!(
            found.0.contains_key("connection.mp.subflow.1.sent_bytes")
                && found.0.contains_key("link.link2.delivered_bytes")
        );
        let (times, rates) = (&found.0["series.time_s"], &found.0["series.connection.mp.goodput_bps"]);
        let spans = times.iter().scan(0.0, |before, at| Some(at - core::mem::replace(before, *at)));
        let delivered: f64 = spans.zip(rates).map(|(span, rate)| span * rate / 8.0).sum();
        assert!((1e6..1.1e6).contains(&delivered), "{rates:?}");
        assert_eq!(found.0["series.connection.mp.subflow.1.cwnd_bytes"].len(), times.len());
    }

    #[test]
    fn applications_write_what_and_when_they_are_to() {
        let scenario = workloads::scenario("");
        workloads::are_as_told(&Quic.run(&Input::Scenario(Box::new(scenario)), 1).unwrap());
    }

    #[test]
    fn a_way_back_is_that_of_its_link_alone() {
        let refused = |paths: &str| {
            let link = |name: &str| {
                format!("[[link]]\nname = \"{name}\"\nrate = \"9Mbit\"\ndelay = \"1ms\"\nqueue = \"9packets\"\n")
            };
            let links = ["a", "b", "c", "d"].map(link).concat();
            let connection = format!("[[connection]]\nname = \"mp\"\ncc = \"lia\"\npath = [{paths}]\n");
            let refused = check(&scenario(&format!("duration = \"1s\"\n{links}{connection}")));
            refused.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let path = |there: &str, back: &str| format!("{{ route = [{there:?}], back = [{back}] }}, ");
        assert_eq!(refused(&(path("a", "\"c\"") + &path("b", "\"d\"") + &path("a", "\"c\""))), "");
        assert!(refused(&path("a", "\"c\", \"d\"")).contains("several links"));
        for pair in [path("a", "\"c\"") + &path("a", "\"d\""), path("a", "\"c\"") + &path("b", "\"c\"")] {
            assert!(refused(&pair).contains("share a link one way"), "{pair}");
        }
    }

    /// Which of a thousand packets each link loses in the run of a seed, by link.
    fn losses(seed: u64) -> Vec<Vec<u64>> {
        let link = |name: &str| {
            let table = "rate = \"100Mbit\"\ndelay = \"1ms\"\nqueue = \"1MB\"\nloss = \"10%\"";
            format!("[[link]]\nname = \"{name}\"\n{table}\n")
        };
        let text = format!(
            "duration = \"1s\"\n{}{}[[connection]]\nname = \"mp\"\ncc = \"lia\"\n\
            path = [{{ route = [\"a\"] }}, {{ route = [\"b\"] }}]\n",
            link("a"),
            link("b")
        );
        let configs = relay_configs(&scenario(&text), SocketAddr::from((Ipv4Addr::LOCALHOST, 9)), seed);
        let lost = |config: &RelayConfig| {
            let mut link = Link::new(&config.forward, config.seed, "forward").unwrap();
            let mut is_lost = |millis: &u64| {
                let fate = link.enqueue(Time::from_millis(*millis), Bytes::new(1000), Ecn::NotEct);
                matches!(fate, Verdict::Drop(_))
            };
            (0..1000).filter(|millis| is_lost(millis)).collect()
        };
        configs.values().map(lost).collect()
    }

    #[test]
    fn links_lose_each_their_own_packets_and_the_same_ones_under_the_same_seed() {
        let lost = losses(1);
        assert_eq!(lost.len(), 2);
        // Of 1000 packets 100 on each link, and 10 of those on both.
        assert!(lost.iter().all(|lost| (60..150).contains(&lost.len())), "{lost:?}");
        let both = lost[0].iter().filter(|at| lost[1].contains(at)).count();
        assert!(both < 30, "{both} of {} are lost on both", lost[0].len());
        assert_eq!(losses(1), lost);
        assert!(losses(2).iter().all(|other| !lost.contains(other)));
    }

    #[test]
    fn connections_have_each_their_own_seed() {
        assert_eq!(own_seed(1, "a", "cc"), own_seed(1, "a", "cc"));
        assert_ne!(own_seed(1, "a", "cc"), own_seed(1, "b", "cc"));
        assert_ne!(own_seed(1, "a", "cc"), own_seed(2, "a", "cc"));
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let text =
            "duration = \"1s\"\ntopology = \"mpcc-4a\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
        let error = Quic.run(&Input::Scenario(scenario(text)), 1).unwrap_err();
        assert!(error.to_string().contains("a path of several links: use sim"), "{error}");
    }
}
