//! From a scenario to paths: which there are, what they are called, and what addresses they have.

use std::net::Ipv4Addr;

use manypath_core::{Bytes, Priority};
use manypath_link::{LinkConfig, QueueLimit};
use manypath_scenario::{Connection, Scenario, Source};

use crate::config::{MEMORY_CEILING, memory_need};
use crate::tun::error::TunError;
use crate::tun::mptcp::MOST;

/// The most paths: each has a network 10.N.0.0 of its own.
pub const MAX_PATHS: usize = 64;

/// The most packets a second of all sources: the links' thread cannot follow many more.
const MAX_PACKETS: f64 = 10e6;

/// The smallest MTU of a path, octets: every IPv4 host accepts packets of this size (RFC 791 s3.1).
const LEAST_MTU: u16 = 576;

/// The MTU of paths that nobody says otherwise of: Ethernet's.
const USUAL_MTU: u16 = 1500;

/// A link by its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedLink {
    pub(crate) name: String,
    pub(crate) config: LinkConfig,
}

/// A path between the two namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPlan {
    /// Links from the client to the server, by index in the scenario.
    pub forward: Vec<usize>,
    /// Links from the server to the client, by index in the scenario.
    pub backward: Vec<usize>,
    /// The largest IP packet in octets: what the scenario says of the packets of the path's connections.
    pub mtu: u16,
    /// Whether the path is a backup for Multipath TCP.
    pub backup: bool,
    /// The device, of the same name at both sides: `path1`, `path2`, ...
    pub device: String,
    /// The client's address on it: 10.1.0.1, 10.2.0.1, ...
    pub client: Ipv4Addr,
    /// The server's address on it: 10.1.0.2, 10.2.0.2, ...
    pub server: Ipv4Addr,
}

/// What links between namespaces are made of.
#[derive(Clone, Debug)]
pub struct TunConfig {
    pub(crate) links: Vec<NamedLink>,
    pub(crate) sources: Vec<Source>,
    /// The paths.
    pub paths: Vec<PathPlan>,
    /// Seed of all randomness of the links.
    pub seed: u64,
    /// What is added to the length of an IP packet to get its size on the links, for links that count their framing; zero by
    /// default.
    pub overhead: Bytes,
    /// Whether the namespaces are set up such that a Multipath TCP connection from the client's first path opens one subflow
    /// on each path of [`Self::mptcp_paths`]; so by default.
    pub mptcp: bool,
    /// The paths, by index, that a Multipath TCP connection takes: those of the scenario's first connection.
    pub mptcp_paths: Vec<usize>,
    /// The most memory that packets on the links are held in. A packet that finds no room is dropped and counted.
    pub memory_limit: Bytes,
    /// Whether the thread of the links asks for real-time priority. It is needed for exact times while other programs use all
    /// processors.
    pub realtime: bool,
}

impl TunConfig {
    /// Links without paths; [`Self::add_path`] adds those. The links' names name their random streams and must differ.
    pub fn new(links: impl IntoIterator<Item = (String, LinkConfig)>, seed: u64) -> Self {
        let links: Vec<_> = links.into_iter().map(|(name, config)| NamedLink { name, config }).collect();
        let memory_limit = links.iter().fold(Bytes::ZERO, |sum, link| sum + memory_need(&link.config));
        Self {
            links,
            sources: Vec::new(),
            paths: Vec::new(),
            seed,
            overhead: Bytes::ZERO,
            mptcp: true,
            mptcp_paths: Vec::new(),
            memory_limit: memory_limit.min(MEMORY_CEILING),
            realtime: true,
        }
    }

    /// Adds a path over links by index, forward from the client to the server, which Multipath TCP takes, too. Its MTU is 1500.
    ///
    /// # Panics
    ///
    /// If there is no link with such an index, or no link in a direction.
    pub fn add_path(&mut self, forward: impl Into<Vec<usize>>, backward: impl Into<Vec<usize>>) {
        let (forward, backward) = (forward.into(), backward.into());
        for route in [&forward, &backward] {
            assert!(!route.is_empty() && route.iter().all(|link| *link < self.links.len()), "no such route: {route:?}");
        }
        self.mptcp_paths.push(self.paths.len());
        self.paths.push(PathPlan::new(self.paths.len(), forward, backward));
    }

    /// The paths of a scenario's connections, each once. A connection that has several paths over the same links has as many;
    /// those of different connections are the same.
    ///
    /// Values that the scenario draws anew at intervals are drawn as in the simulator, and stay as they are after its duration.
    ///
    /// Packets of the scenario's sources load the links as in the simulator. What it says of controllers, schedulers and workloads is not for the emulator: the programs bring their own.
    ///
    /// # Errors
    ///
    /// A scenario that has no connection, or too many paths.
    pub fn from_scenario(scenario: &Scenario, seed: u64) -> Result<Self, TunError> {
        let (first, others) =
            scenario.connections.split_first().ok_or_else(|| TunError::NoConnection(scenario.name.clone()))?;
        let links = scenario.links.iter().map(|link| (link.name.clone(), link.drawn(scenario.duration, seed)));
        let mut config = Self::new(links, seed);
        config.sources.clone_from(&scenario.sources);
        config.mptcp_paths = add_paths(&mut config.paths, first);
        for connection in others {
            add_paths(&mut config.paths, connection);
        }
        if config.paths.len() > MAX_PATHS {
            return Err(TunError::TooManyPaths(config.paths.len()));
        }
        Ok(config)
    }

    /// Whether it can be emulated.
    pub(crate) fn check(&self) -> Result<(), TunError> {
        if self.paths.len() > MAX_PATHS {
            return Err(TunError::TooManyPaths(self.paths.len()));
        }
        if self.mptcp && self.mptcp_paths.len() > MOST as usize + 1 {
            return Err(TunError::TooManySubflows(self.mptcp_paths.len()));
        }
        let packets = self.sources.iter().map(|source| source.rate.as_bps() / (source.packet.as_f64() * 8.0)).sum();
        if packets > MAX_PACKETS {
            return Err(TunError::TooManyPackets(packets));
        }
        self.paths.iter().try_for_each(|path| self.check_queues(path))
    }

    /// A full packet finds room on the way there. What the scenario gives the way back may be meant for acknowledgements alone.
    fn check_queues(&self, path: &PathPlan) -> Result<(), TunError> {
        let packet = Bytes::new(u64::from(path.mtu)) + self.overhead;
        let short = path.forward.iter().find_map(|link| match self.links[*link].config.queue {
            QueueLimit::Bytes(queue) if queue < packet => Some((&self.links[*link].name, queue)),
            _ => None,
        });
        let Some((link, queue)) = short else { return Ok(()) };
        Err(TunError::QueueBelowPacket { link: link.clone(), queue, device: path.device.clone(), packet })
    }

    /// The names of the links, which paths list by index.
    pub fn link_names(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| link.name.as_str())
    }
}

impl PathPlan {
    fn new(index: usize, forward: Vec<usize>, backward: Vec<usize>) -> Self {
        let number = index + 1;
        // More paths than an octet can count are refused before they are used.
        let octet = u8::try_from(number).unwrap_or(u8::MAX);
        Self {
            forward,
            backward,
            mtu: USUAL_MTU,
            backup: false,
            device: format!("path{number}"),
            client: Ipv4Addr::new(10, octet, 0, 1),
            server: Ipv4Addr::new(10, octet, 0, 2),
        }
    }
}

/// Adds the paths of a connection that are not there yet, and returns where each of its paths is.
fn add_paths(paths: &mut Vec<PathPlan>, connection: &Connection) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let mtu = u16::try_from(connection.packet.get()).unwrap_or(u16::MAX).max(LEAST_MTU);
    for path in &connection.paths {
        let same = |held: &PathPlan| held.forward == path.forward && held.backward == path.backward;
        let known = (0..paths.len()).find(|index| !taken.contains(index) && same(&paths[*index]));
        let index = known.unwrap_or(paths.len());
        if index == paths.len() {
            let backup = path.priority == Priority::Backup;
            let plan = PathPlan::new(index, path.forward.clone(), path.backward.clone());
            paths.push(PathPlan { mtu, backup, ..plan });
        }
        paths[index].mtu = paths[index].mtu.max(mtu);
        taken.push(index);
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn plan(text: &str) -> TunConfig {
        let scenario = manypath_scenario::parse(text, "test.toml", Path::new(".")).unwrap();
        TunConfig::from_scenario(&scenario, 1).unwrap()
    }

    #[test]
    fn connections_share_paths_over_the_same_links() {
        let config = plan(
            "duration = \"1s\"\ntopology = \"mpcc-3d\"\n
             [[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n
             [[connection]]\nname = \"sp2\"\nrole = \"sp2\"\ncc = \"reno\"\npacket = \"9000B\"\n",
        );
        assert_eq!(config.paths.len(), 2);
        assert_eq!(config.mptcp_paths, [0, 1]);
        let second = &config.paths[1];
        assert_eq!((second.device.as_str(), second.mtu), ("path2", 9000));
        assert_eq!((second.client, second.server), (Ipv4Addr::new(10, 2, 0, 1), Ipv4Addr::new(10, 2, 0, 2)));
        assert_eq!(config.paths[0].mtu, 1500);
    }

    #[test]
    fn two_subflows_over_one_bottleneck_are_two_paths() {
        let config = plan(
            "duration = \"1s\"\ntopology = \"mpcc-3a\"\n
             [[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n
             [[connection]]\nname = \"sp\"\nrole = \"sp\"\ncc = \"reno\"\n",
        );
        assert_eq!(config.paths.len(), 2);
        assert_eq!(config.paths[0].forward, config.paths[1].forward);
    }

    /// A scenario of one link, and of several paths over it.
    fn over_one_link(queue: &str, packet: &str, paths: usize, more: &str) -> TunConfig {
        let path = "[[connection.path]]\nroute = [\"a\"]\n".repeat(paths);
        plan(&format!(
            "duration = \"1s\"\n[[link]]\nname = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = \"{queue}\"\n\
             [[connection]]\nname = \"c\"\ncc = \"reno\"\npacket = \"{packet}\"\n{path}{more}"
        ))
    }

    #[test]
    fn queues_in_bytes_have_room_for_what_devices_send() {
        let mut config = over_one_link("1500B", "1500B", 1, "");
        config.check().unwrap();
        config.overhead = Bytes::new(38);
        let refused = config.check().unwrap_err();
        assert!(matches!(&refused, TunError::QueueBelowPacket { packet, .. } if packet.get() == 1538), "{refused}");
        // Devices take no MTU as small as the scenario's packets.
        let refused = over_one_link("500B", "400B", 1, "").check().unwrap_err();
        assert!(matches!(&refused, TunError::QueueBelowPacket { packet, .. } if packet.get() == 576), "{refused}");
        over_one_link("1packet", "400B", 1, "").check().unwrap();
    }

    #[test]
    fn what_the_kernel_or_the_thread_could_not_do_is_refused_beforehand() {
        over_one_link("9packets", "1500B", 9, "").check().unwrap();
        let mut config = over_one_link("9packets", "1500B", 10, "");
        assert!(matches!(config.check(), Err(TunError::TooManySubflows(10))));
        config.mptcp = false;
        config.check().unwrap();
        let source =
            |rate: &str| format!("[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"{rate}\"\npacket = \"1B\"\n");
        over_one_link("9packets", "1500B", 1, &source("80Mbit")).check().unwrap();
        let refused = over_one_link("9packets", "1500B", 1, &source("8Gbit")).check();
        assert!(matches!(refused, Err(TunError::TooManyPackets(_))));
    }

    #[test]
    fn a_scenario_without_connections_or_with_too_many_paths_is_refused() {
        let text =
            "duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
        let mut scenario = manypath_scenario::parse(text, "test.toml", Path::new(".")).unwrap();
        let mut many = scenario.clone();
        let path = many.connections[0].paths[0].clone();
        many.connections[0].paths = vec![path; MAX_PATHS + 1];
        assert!(matches!(TunConfig::from_scenario(&many, 1), Err(TunError::TooManyPaths(65))));
        scenario.connections.clear();
        assert!(matches!(TunConfig::from_scenario(&scenario, 1), Err(TunError::NoConnection(_))));
    }
}
