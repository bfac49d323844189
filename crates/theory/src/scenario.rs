//! From a scenario to a [`Network`]: what theory reads of it, and what it leaves out.
//!
//! Theory knows greedy connections on links of constant rates, all there from the beginning. A [`Reading`] is that part of
//! a scenario; its notes say, for people, what was simplified. Rates are those of whole packets on the wire, as links count
//! them; [`Described::payload`] turns them into goodput.

use manypath_core::{AlgorithmSpec, Bytes, Duration, Priority, Rate};
use manypath_link::{Capacity, Loss, QueueLimit};
use manypath_scenario::{Connection as Written, Link, Path, Scenario, Workload};

use crate::fluid::{Algorithm, FluidError, System};
use crate::network::{Connection, MIN_CAPACITY_BPS, Network, NetworkError, Subflow};
use crate::num::Utility;

/// The controllers that have a fluid model.
const MODELS: &str = "reno, ewtcp, coupled, semicoupled, lia, lisa, olia, balia, nmcc, e-nmcc, tccc and uni-mptcp";

/// What theory reads of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The links that data crosses, and the connections over them.
    pub network: Network,
    /// The links of the network, as indices into the scenario's.
    pub links: Vec<usize>,
    /// What else there is to know of the connections, in the scenario's order.
    pub connections: Vec<Described>,
    /// What was simplified, in sentences for people.
    pub notes: Vec<String>,
}

/// What a [`Network`] does not say of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its controller.
    pub cc: AlgorithmSpec,
    /// The paths it uses, as indices into the scenario's: backups are left out where there are others.
    pub paths: Vec<usize>,
    /// Random loss on each of those.
    pub loss: Vec<f64>,
    /// The size of its packets on the wire.
    pub packet: Bytes,
    /// What share of a packet is payload.
    pub payload: f64,
}

/// Why theory cannot read a scenario; each message says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadingError {
    /// There are no connections.
    #[error("the scenario has no [[connection]]: theory allocates rates to connections, not to sources")]
    NoConnections,
    /// Sources take all of a link.
    #[error("the sources on link '{link}' take all of its {rate}: theory has nothing left to allocate")]
    Full {
        /// The link.
        link: String,
        /// Its rate.
        rate: Rate,
    },
    /// A controller has no fluid model.
    #[error(
        "there is no fluid model of '{cc}', the controller of '{connection}'; there are models of {MODELS}: choose one of \
         them, as with --set connection.{connection}.cc=lia"
    )]
    NoModel {
        /// The connection.
        connection: String,
        /// Its controller.
        cc: String,
    },
    /// Fluid models are of greedy connections.
    #[error("'{connection}' is limited by its application; fluid models are of connections that send all they can")]
    Limited {
        /// The connection.
        connection: String,
    },
    /// Fluid models count in packets of one size.
    #[error(
        "'{connection}' has packets of {packet}, others of {others}; a fluid model needs one size: set 'packet' alike"
    )]
    Packets {
        /// The connection.
        connection: String,
        /// The size of its packets.
        packet: Bytes,
        /// The size of the first connection's.
        others: Bytes,
    },
    /// The network is too large.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The fluid model cannot be made.
    #[error(transparent)]
    Fluid(#[from] FluidError),
}

impl Reading {
    /// Reads a scenario. Round-trip times are taken with `queues`, from 0 (empty) to 1 (full), of every drop-tail queue on
    /// the way; with RED it is the middle of the thresholds.
    ///
    /// # Errors
    /// If there are no connections, sources take all of a link, or the network is larger than this crate solves.
    pub fn new(scenario: &Scenario, queues: f64) -> Result<Self, ReadingError> {
        if scenario.connections.is_empty() {
            return Err(ReadingError::NoConnections);
        }
        let used: Vec<Vec<usize>> = scenario.connections.iter().map(used_paths).collect();
        let mut links: Vec<usize> = scenario
            .connections
            .iter()
            .zip(&used)
            .flat_map(|(written, used)| used.iter().flat_map(|&path| &written.paths[path].forward))
            .copied()
            .collect();
        links.sort_unstable();
        links.dedup();
        let mut notes = Vec::new();
        let capacities =
            links.iter().map(|&link| capacity(scenario, link, &mut notes)).collect::<Result<Vec<Rate>, _>>()?;
        let described =
            scenario.connections.iter().zip(used).map(|(written, paths)| describe(scenario, written, paths));
        let described: Vec<Described> = described.collect();
        let number = |link: &usize| links.partition_point(|held| held < link);
        let connection = |(written, described): (&Written, &Described)| Connection {
            subflows: described
                .paths
                .iter()
                .map(|&path| &written.paths[path])
                .map(|path| Subflow {
                    links: path.forward.iter().map(number).collect(),
                    rtt: round_trip(scenario, path, written.packet, queues),
                })
                .collect(),
            limit: offered(written).map(|rate| rate * (1.0 / described.payload)),
        };
        let connections = scenario.connections.iter().zip(&described).map(connection).collect();
        let what = scenario
            .connections
            .iter()
            .flat_map(|written| simplified(written).into_iter().map(|what| (written.name.as_str(), what.to_owned())));
        notes.extend(sentences(what));
        Ok(Self { network: Network::new(capacities, connections)?, links, connections: described, notes })
    }

    /// The utilities of [`maximise`](crate::num::maximise): `alpha`-fairness of the connections, where the subflows of a
    /// `uni-mptcp` connection have its weights.
    pub fn utilities(&self, alpha: f64) -> Vec<Utility> {
        let utility = |described: &Described| Utility {
            alpha,
            weight: 1.0,
            subflow_weights: weights(&described.cc, &described.paths),
        };
        self.connections.iter().map(utility).collect()
    }

    /// Parameters of controllers that their fluid models do not know, in sentences for people.
    pub fn unmodelled(&self) -> Vec<String> {
        let ignored = |described: &Described| {
            let known = modelled_parameters(&described.cc.name);
            let ignored = described.cc.params.iter().filter(|(key, _)| !known.contains(&key.as_str()));
            let ignored: Vec<String> = ignored.map(|(key, value)| format!("{key}={value}")).collect();
            (!ignored.is_empty()).then(|| format!("counts as {} without {}", described.cc.name, ignored.join(",")))
        };
        sentences(self.connections.iter().filter_map(|described| Some((described.name.as_str(), ignored(described)?))))
    }

    /// The fluid model of the connections' controllers.
    ///
    /// # Errors
    /// If a controller has no model, or the scenario is one that fluid models cannot say anything about.
    pub fn system(&self) -> Result<System, ReadingError> {
        let packet = self.connections[0].packet;
        let mut laws = Vec::new();
        for (described, connection) in self.connections.iter().zip(self.network.connections()) {
            let name = || described.name.clone();
            if described.packet != packet {
                return Err(ReadingError::Packets { connection: name(), packet: described.packet, others: packet });
            }
            if connection.limit.is_some() {
                return Err(ReadingError::Limited { connection: name() });
            }
            let law = law(described, connection);
            laws.push(law.ok_or_else(|| ReadingError::NoModel { connection: name(), cc: described.cc.to_string() })?);
        }
        let loss: Vec<f64> = self.connections.iter().flat_map(|described| &described.loss).copied().collect();
        Ok(System::new(&self.network, laws, packet)?.with_loss(&loss)?)
    }
}

/// The paths that carry data when all is well: not backups, where there are others.
fn used_paths(written: &Written) -> Vec<usize> {
    let all = 0..written.paths.len();
    let everyday: Vec<usize> = all.clone().filter(|&path| written.paths[path].priority != Priority::Backup).collect();
    if everyday.is_empty() { all.collect() } else { everyday }
}

/// In what ways theory makes a connection simpler than it is.
fn simplified(written: &Written) -> Vec<&'static str> {
    let mut what = Vec::new();
    if used_paths(written).len() < written.paths.len() {
        what.push("counts without its backup paths");
    }
    if !written.is_there_at_once() || written.stop.is_some() {
        what.push("counts as if it were there all the time");
    }
    match written.workload {
        Workload::Endless | Workload::Rate(_) => {}
        Workload::Arrivals { .. } => what.push("counts with the mean rate at which its files arrive"),
        Workload::File(_) => what.push("counts as if its file had no end"),
        Workload::OnOff { .. } => what.push("counts as if it were always busy"),
    }
    what
}

/// What holds for several connections in one sentence, by the first of them.
fn sentences<'a>(what: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut said: Vec<(&str, String, usize)> = Vec::new();
    for (name, what) in what {
        match said.iter_mut().find(|(_, held, _)| *held == what) {
            Some((_, _, more)) => *more += 1,
            None => said.push((name, what, 0)),
        }
    }
    let sentence = |(name, what, more): (&str, String, usize)| match more {
        0 => format!("'{name}' {what}"),
        1 => format!("'{name}' {what}, and so does one more"),
        _ => format!("'{name}' {what}, and so do {more} more"),
    };
    said.into_iter().map(sentence).collect()
}

/// What a link has for connections: its first rate, or the mean of its trace, without what sources take.
fn capacity(scenario: &Scenario, index: usize, notes: &mut Vec<String>) -> Result<Rate, ReadingError> {
    let Link { name, config, redraw, .. } = &scenario.links[index];
    let rate = match &config.capacity {
        Capacity::Rate(rate) => *rate,
        Capacity::Trace(trace) => {
            notes.push(format!(
                "link '{name}' counts with the mean rate of its trace, {:.3} Mbit/s",
                trace.mean_rate().as_mbps()
            ));
            trace.mean_rate()
        }
    };
    let redrawn = redraw.as_ref().is_some_and(|redraw| redraw.rate.is_some() || redraw.loss.is_some());
    if redrawn || config.schedule.iter().any(|change| change.rate.is_some() || change.loss.is_some()) {
        notes.push(format!(
            "link '{name}' changes over time; it counts with the rate and loss that its table begins with"
        ));
    }
    let mut taken = 0.0;
    for source in scenario.sources.iter().filter(|source| source.route.contains(&index)) {
        let share = source.on_off.map_or(1.0, |(on, off)| on.as_secs_f64() / (on + off).as_secs_f64());
        taken += source.rate.as_bps() * share;
        notes.push(format!("source '{}' takes its mean rate of link '{name}', all the time", source.name));
    }
    // What no network may have as a capacity is nothing too: its error would name a number in place of the link.
    if rate.as_bps() - taken < MIN_CAPACITY_BPS {
        return Err(ReadingError::Full { link: name.clone(), rate });
    }
    Ok(Rate::from_bps(rate.as_bps() - taken))
}

fn describe(scenario: &Scenario, written: &Written, paths: Vec<usize>) -> Described {
    let loss = |path: &usize| {
        let passed: f64 =
            written.paths[*path].forward.iter().map(|&link| 1.0 - mean_loss(&scenario.links[link])).product();
        1.0 - passed
    };
    let headers = written.overhead + written.record_header;
    Described {
        name: written.name.clone(),
        cc: written.cc.clone(),
        loss: paths.iter().map(loss).collect(),
        paths,
        packet: written.packet,
        payload: 1.0 - headers.as_f64() / written.packet.as_f64(),
    }
}

fn mean_loss(link: &Link) -> f64 {
    match &link.config.loss {
        Loss::None => 0.0,
        Loss::Random(probability) => *probability,
        Loss::Bursty(process) => process.mean_loss(),
    }
}

/// What a connection's application offers in payload; `None`: as much as the network takes.
fn offered(written: &Written) -> Option<Rate> {
    match &written.workload {
        Workload::Rate(rate) => Some(*rate),
        Workload::Arrivals { size, every, .. } => Some(*size / *every),
        Workload::Endless | Workload::File(_) | Workload::OnOff { .. } => None,
    }
}

/// Propagation both ways, half of the jitter's range, and the queueing to be expected on the way of the data.
fn round_trip(scenario: &Scenario, path: &Path, packet: Bytes, queues: f64) -> Duration {
    let way = |links: &[usize]| {
        let delay = |&link: &usize| {
            let config = &scenario.links[link].config;
            config.delay.as_secs_f64() + config.jitter.as_secs_f64() / 2.0
        };
        links.iter().map(delay).sum::<f64>()
    };
    let queue = |&link: &usize| {
        let config = &scenario.links[link].config;
        let rate = match &config.capacity {
            Capacity::Rate(rate) => *rate,
            Capacity::Trace(trace) => trace.mean_rate(),
        };
        let bytes = |limit: QueueLimit| match limit {
            QueueLimit::Bytes(bytes) => bytes.as_f64(),
            QueueLimit::Packets(packets) => packets as f64 * packet.as_f64(),
            QueueLimit::Wait(wait) => (rate * wait).as_f64(),
        };
        let held = config.red.map_or(bytes(config.queue) * queues, |red| (bytes(red.min) + bytes(red.max)) / 2.0);
        held / rate.as_bytes_per_sec()
    };
    let queueing: f64 = path.forward.iter().map(queue).sum();
    Duration::from_secs_f64(way(&path.forward) + way(&path.backward) + queueing)
}

/// The value of a parameter, if it is given.
fn parameter<'a>(cc: &'a AlgorithmSpec, key: &str) -> Option<&'a str> {
    cc.params.iter().find(|(held, _)| held == key).map(|(_, value)| value.as_str())
}

/// The weights that a controller gives the subflows of these ids; one for each where it has none.
fn weights(cc: &AlgorithmSpec, paths: &[usize]) -> Vec<f64> {
    let given = parameter(cc, "weights").filter(|_| cc.name == "uni-mptcp").unwrap_or_default();
    let given: Vec<f64> = given.split('/').map_while(|weight| weight.parse().ok()).collect();
    paths.iter().map(|&path| given.get(path).copied().unwrap_or(1.0)).collect()
}

/// The parameters that [`law`] heeds.
fn modelled_parameters(cc: &str) -> &'static [&'static str] {
    match cc {
        "ewtcp" => &["weight"],
        "semicoupled" => &["a"],
        "uni-mptcp" => &["weights", "decrease"],
        _ => &[],
    }
}

/// The fluid model of a connection's controller with its parameters.
fn law(described: &Described, connection: &Connection) -> Option<Algorithm> {
    let Described { cc, paths, .. } = described;
    let count = paths.len();
    Some(match (cc.name.as_str(), parameter(cc, "weight"), parameter(cc, "a")) {
        ("ewtcp", Some("root"), _) => Algorithm::Ewtcp { a: 1.0 / (count as f64).sqrt() },
        ("semicoupled", _, Some(a)) => Algorithm::Semicoupled { a: a.parse().ok()? },
        ("uni-mptcp", ..) if parameter(cc, "decrease") == Some("printed") => {
            Algorithm::UniMptcpPrinted { weights: weights(cc, paths) }
        }
        ("uni-mptcp", ..) => Algorithm::UniMptcp { weights: weights(cc, paths) },
        ("lisa", ..) => Algorithm::Lia,
        // Algorithm 2 of TCCC: subflows that share a bottleneck see one loss rate, others may not.
        ("tccc", ..) if !shares_a_link(connection) => Algorithm::TcccHalving,
        (name, ..) => Algorithm::named(name, count)?,
    })
}

/// Whether some link is on all routes of a connection.
fn shares_a_link(connection: &Connection) -> bool {
    let [first, rest @ ..] = connection.subflows.as_slice() else { return false };
    first.links.iter().any(|link| rest.iter().all(|subflow| subflow.links.contains(link)))
}

#[cfg(test)]
mod tests;
