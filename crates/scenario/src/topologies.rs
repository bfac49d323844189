//! The networks of the papers, by name.
//!
//! A topology is links and *roles*: named sets of paths that a scenario's connections take. What a paper does not state is
//! chosen here and said so in the topology's description. Every link is a pair; the way back has the same rate and delay and
//! a queue of [`BACK_QUEUE`] packets, so that only acknowledgements that are really too many are lost there.

use manypath_core::{Bytes, Duration, Rate};
use manypath_link::{LinkConfig, Loss, QueueLimit};

use crate::model::Link;

/// Queue of a way back, packets.
pub const BACK_QUEUE: u64 = 1000;
/// What the name of a way back adds to its link's.
const BACK: &str = "/back";

/// A named network.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it looks like, and what was chosen.
    pub about: &'static str,
    /// Its links.
    pub links: Vec<Link>,
    /// Sets of paths for connections.
    pub roles: Vec<Role>,
}

/// A set of paths for a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Names of links, path by path.
    pub paths: Vec<Vec<String>>,
}

/// A row of the list.
struct Row {
    name: &'static str,
    source: &'static str,
    about: &'static str,
    build: fn(&mut Network),
}

static ROWS: &[Row] = &[
    Row {
        name: "two-links",
        source: "the benchmark of all simulators here",
        about: "two separate links of 100 Mbit/s and 15 ms with queues of 250 packets",
        build: two_links,
    },
    Row {
        name: "mpcc-3a",
        source: "MPCC Fig. 3a",
        about: "one link, two subflows of mp and one of sp on it (chosen)",
        build: mpcc_3a,
    },
    Row { name: "mpcc-3b", source: "MPCC Fig. 3b", about: "mp alone on two links", build: mpcc_3b },
    Row { name: "mpcc-3c", source: "MPCC Fig. 3c", about: "mp on two links, sp on the second", build: mpcc_3c },
    Row { name: "mpcc-3d", source: "MPCC Fig. 3d", about: "mp on two links, sp1 and sp2 on one each", build: mpcc_3d },
    Row {
        name: "mpcc-3e",
        source: "MPCC Fig. 3e",
        about: "two access links of 1 Gbit/s (chosen) into one bottleneck, which sp shares",
        build: mpcc_3e,
    },
    Row {
        name: "mpcc-4a",
        source: "MPCC Fig. 4a (OLIA)",
        about: "mp on link2 and on link1 then link2, sp on link1 (derived from the paper's numbers)",
        build: mpcc_4a,
    },
    Row {
        name: "mpcc-4b",
        source: "MPCC Fig. 4b (LIA, NSDI 2011)",
        about: "three links in a ring; mp1 to mp3 have a path of one hop and one over the two other links",
        build: mpcc_4b,
    },
    Row {
        name: "mpcc-clos",
        source: "MPCC Fig. 18",
        about: "6 hosts, 3 leaves and 3 spines (chosen), 25 Gbit/s; roles h1-h2, ... with 3 paths placed by a hash (ECMP)",
        build: clos,
    },
    Row {
        name: "tccc-1a",
        source: "TCCC Fig. 1a",
        about: "mp with two subflows and tcp over one bottleneck of 5 Mbit/s, 30 ms, 47 packets; role background",
        build: tccc_1a,
    },
    Row {
        name: "tccc-1b",
        source: "TCCC Fig. 1b",
        about: "two such bottlenecks, tcp1 and tcp2 on one each",
        build: tccc_1b,
    },
    Row {
        name: "tccc-10",
        source: "TCCC Fig. 10",
        about: "two links, 5 Mbit/s 10 ms and 10 Mbit/s 50 ms",
        build: tccc_10,
    },
    Row {
        name: "stms-2",
        source: "STMS Fig. 2",
        about: "wifi and lte, 30 Mbit/s each, round trips of 20 and 100 ms (chosen), queues of 50 and 500 ms, 0.01% loss",
        build: stms_2,
    },
    Row { name: "mpol-4a", source: "MP-OL Fig. 4a", about: "mp on two links of 100 Mbit/s, 30 ms", build: mpol_4a },
    Row { name: "mpol-4b", source: "MP-OL Fig. 4b", about: "mp with two subflows and sp on one link", build: mpol_4b },
    Row { name: "mpol-4c", source: "MP-OL Fig. 4c", about: "mp on two links of 50 Mbit/s, 30 ms", build: mpol_4c },
    Row {
        name: "mpol-4d",
        source: "MP-OL Fig. 4d",
        about: "mp1 and mp2 share two links of 50 Mbit/s, 30 ms",
        build: mpol_4d,
    },
    Row { name: "mpol-4e", source: "MP-OL Fig. 4e", about: "mp on two links of 200 Mbit/s, 30 ms", build: mpol_4e },
    Row {
        name: "uni-mptcp",
        source: "Uni-MPTCP s4.3",
        about: "two bottlenecks of 10 Mbit/s, 0.4 ms, 100 packets (chosen): mp on both, tcp1 and tcp2 on one each",
        build: uni_mptcp,
    },
];

/// All topologies.
pub fn topologies() -> impl Iterator<Item = Topology> {
    ROWS.iter().map(built)
}

/// The topology of this name.
pub fn topology(name: &str) -> Option<Topology> {
    ROWS.iter().find(|row| row.name == name).map(built)
}

fn built(row: &Row) -> Topology {
    let mut network = Network::default();
    (row.build)(&mut network);
    let Network { links, roles } = network;
    Topology { name: row.name, source: row.source, about: row.about, links, roles }
}

#[derive(Default)]
struct Network {
    links: Vec<Link>,
    roles: Vec<Role>,
}

impl Network {
    /// Adds a link and its way back; `queue` is that of the way there.
    fn pair(&mut self, name: &str, ends: (&str, &str), mbps: f64, delay_ms: f64, queue: QueueLimit) {
        let (rate, delay) = (Rate::from_mbps(mbps), Duration::from_secs_f64(delay_ms * 1e-3));
        let link = |name: String, from: &str, to: &str, queue| Link {
            name,
            from: from.to_owned(),
            to: to.to_owned(),
            config: LinkConfig::new(rate, delay, queue),
            redraw: None,
        };
        self.links.push(link(name.to_owned(), ends.0, ends.1, queue));
        self.links.push(link(back_name(name), ends.1, ends.0, QueueLimit::Packets(BACK_QUEUE)));
    }

    /// A pair from host to host.
    fn line(&mut self, name: &str, mbps: f64, delay_ms: f64, queue: QueueLimit) {
        self.pair(name, ("", ""), mbps, delay_ms, queue);
    }

    fn role(&mut self, name: &str, paths: &[&[&str]]) {
        let paths = paths.iter().map(|path| path.iter().map(|link| (*link).to_owned()).collect());
        self.roles.push(Role { name: name.to_owned(), paths: paths.collect() });
    }
}

/// The name of a link's way back.
pub(crate) fn back_name(name: &str) -> String {
    format!("{name}{BACK}")
}

/// Of how many links a link is the way back by its name: `a/back` is that of `a`, `a/back/back` that of both.
pub(crate) fn ways_back(name: &str) -> usize {
    let mut stem = name;
    core::iter::from_fn(|| stem.strip_suffix(BACK).inspect(|shorter| stem = shorter)).count()
}

fn kilobytes(size: u64) -> QueueLimit {
    QueueLimit::Bytes(Bytes::new(size * 1000))
}

fn two_links(network: &mut Network) {
    network.line("link1", 100.0, 15.0, QueueLimit::Packets(250));
    network.line("link2", 100.0, 15.0, QueueLimit::Packets(250));
    network.role("mp", &[&["link1"], &["link2"]]);
    network.role("sp1", &[&["link1"]]);
    network.role("sp2", &[&["link2"]]);
}

/// MPCC s7.1: 100 Mbit/s, a round trip of 30 ms, a buffer of 375 KB, which is the product of the two.
fn mpcc_links(network: &mut Network, count: usize) {
    for name in ["link1", "link2", "link3"].iter().take(count) {
        network.line(name, 100.0, 15.0, kilobytes(375));
    }
}

fn mpcc_3a(network: &mut Network) {
    mpcc_links(network, 1);
    network.role("mp", &[&["link1"], &["link1"]]);
    network.role("sp", &[&["link1"]]);
}

fn mpcc_3b(network: &mut Network) {
    mpcc_links(network, 2);
    network.role("mp", &[&["link1"], &["link2"]]);
}

fn mpcc_3c(network: &mut Network) {
    mpcc_3b(network);
    network.role("sp", &[&["link2"]]);
}

fn mpcc_3d(network: &mut Network) {
    mpcc_3b(network);
    network.role("sp1", &[&["link1"]]);
    network.role("sp2", &[&["link2"]]);
}

fn mpcc_3e(network: &mut Network) {
    network.pair("access1", ("client", "router"), 1000.0, 0.5, kilobytes(1000));
    network.pair("access2", ("client", "router"), 1000.0, 0.5, kilobytes(1000));
    network.pair("link1", ("router", "server"), 100.0, 14.5, kilobytes(375));
    network.role("mp", &[&["access1", "link1"], &["access2", "link1"]]);
    network.role("sp", &[&["access1", "link1"]]);
}

fn mpcc_4a(network: &mut Network) {
    mpcc_links(network, 2);
    network.role("mp", &[&["link2"], &["link1", "link2"]]);
    network.role("sp", &[&["link1"]]);
}

fn mpcc_4b(network: &mut Network) {
    mpcc_links(network, 3);
    network.role("mp1", &[&["link1"], &["link2", "link3"]]);
    network.role("mp2", &[&["link2"], &["link3", "link1"]]);
    network.role("mp3", &[&["link3"], &["link1", "link2"]]);
}

fn clos(network: &mut Network) {
    const HOSTS: [(&str, &str); 6] =
        [("h1", "leaf1"), ("h2", "leaf1"), ("h3", "leaf2"), ("h4", "leaf2"), ("h5", "leaf3"), ("h6", "leaf3")];
    const LEAVES: [&str; 3] = ["leaf1", "leaf2", "leaf3"];
    const SPINES: [&str; 3] = ["spine1", "spine2", "spine3"];
    // Data centre links: a microsecond each; 375 KB as elsewhere in the paper.
    for (host, leaf) in HOSTS {
        network.pair(&format!("{host}.{leaf}"), (host, leaf), 25_000.0, 0.001, kilobytes(375));
        network.pair(&format!("{leaf}.{host}"), (leaf, host), 25_000.0, 0.001, kilobytes(375));
    }
    for leaf in LEAVES {
        for spine in SPINES {
            network.pair(&format!("{leaf}.{spine}"), (leaf, spine), 25_000.0, 0.001, kilobytes(375));
            network.pair(&format!("{spine}.{leaf}"), (spine, leaf), 25_000.0, 0.001, kilobytes(375));
        }
    }
    for (from, leaf_from) in HOSTS {
        for (to, leaf_to) in HOSTS {
            if from == to {
                continue;
            }
            let name = format!("{from}-{to}");
            let paths = (0..3).map(|subflow| {
                let (up, down) = (format!("{from}.{leaf_from}"), format!("{leaf_to}.{to}"));
                if leaf_from == leaf_to {
                    return vec![up, down];
                }
                let spine = SPINES[ecmp(&name, subflow, SPINES.len())];
                vec![up, format!("{leaf_from}.{spine}"), format!("{spine}.{leaf_to}"), down]
            });
            let paths = paths.collect();
            network.roles.push(Role { name, paths });
        }
    }
}

/// Which of `count` equal paths a flow takes: a hash of its names, as switches hash addresses and ports.
fn ecmp(flow: &str, subflow: usize, count: usize) -> usize {
    use rand_core::Rng;
    let hash = manypath_link::generator(0, &format!("ecmp/{flow}/{subflow}")).next_u64();
    usize::try_from(hash % count as u64).unwrap_or(0)
}

/// TCCC s5.1: bottlenecks of 5 Mbit/s and 30 ms with 47 packets, other links of 100 Mbit/s and 10 ms.
fn tccc_1a(network: &mut Network) {
    let wide = QueueLimit::Packets(1000);
    for access in ["access1", "access2", "access3", "access4"] {
        network.pair(access, ("sender", "left"), 100.0, 10.0, wide);
    }
    network.pair("bottleneck", ("left", "right"), 5.0, 30.0, QueueLimit::Packets(47));
    network.pair("exit", ("right", "receiver"), 100.0, 10.0, wide);
    network.role("mp", &[&["access1", "bottleneck", "exit"], &["access2", "bottleneck", "exit"]]);
    network.role("tcp", &[&["access3", "bottleneck", "exit"]]);
    network.role("background", &[&["access4", "bottleneck", "exit"]]);
}

fn tccc_1b(network: &mut Network) {
    let wide = QueueLimit::Packets(1000);
    for index in ["1", "2"] {
        let (left, right) = (format!("left{index}"), format!("right{index}"));
        network.pair(&format!("access{index}"), ("sender", &left), 100.0, 10.0, wide);
        network.pair(&format!("tcp-access{index}"), ("sender", &left), 100.0, 10.0, wide);
        network.pair(&format!("bottleneck{index}"), (&left, &right), 5.0, 30.0, QueueLimit::Packets(47));
        network.pair(&format!("exit{index}"), (&right, "receiver"), 100.0, 10.0, wide);
    }
    network.role("mp", &[&["access1", "bottleneck1", "exit1"], &["access2", "bottleneck2", "exit2"]]);
    network.role("tcp1", &[&["tcp-access1", "bottleneck1", "exit1"]]);
    network.role("tcp2", &[&["tcp-access2", "bottleneck2", "exit2"]]);
}

fn tccc_10(network: &mut Network) {
    network.line("link1", 5.0, 10.0, QueueLimit::Packets(47));
    network.line("link2", 10.0, 50.0, QueueLimit::Packets(47));
    network.role("mp", &[&["link1"], &["link2"]]);
    network.role("tcp1", &[&["link1"]]);
    network.role("tcp2", &[&["link2"]]);
}

fn stms_2(network: &mut Network) {
    // 50 ms and 500 ms of 30 Mbit/s.
    network.line("wifi", 30.0, 10.0, QueueLimit::Bytes(Bytes::new(187_500)));
    network.line("lte", 30.0, 50.0, QueueLimit::Bytes(Bytes::new(1_875_000)));
    for link in network.links.iter_mut().step_by(2) {
        link.config.loss = Loss::Random(0.0001);
    }
    network.role("mp", &[&["wifi"], &["lte"]]);
    network.role("fast", &[&["wifi"]]);
    network.role("slow", &[&["lte"]]);
}

/// MP-OL s5: delays of 30 ms; queues are not stated: a bandwidth-delay product of a 30 ms round trip.
fn mpol(network: &mut Network, count: usize, mbps: f64) {
    let queue = QueueLimit::Bytes(Rate::from_mbps(mbps).bytes_in(Duration::from_millis(30)));
    for name in ["link1", "link2"].iter().take(count) {
        network.line(name, mbps, 15.0, queue);
    }
}

fn mpol_4a(network: &mut Network) {
    mpol(network, 2, 100.0);
    network.role("mp", &[&["link1"], &["link2"]]);
}

fn mpol_4b(network: &mut Network) {
    mpol(network, 1, 100.0);
    network.role("mp", &[&["link1"], &["link1"]]);
    network.role("sp", &[&["link1"]]);
}

fn mpol_4c(network: &mut Network) {
    mpol(network, 2, 50.0);
    network.role("mp", &[&["link1"], &["link2"]]);
}

fn mpol_4d(network: &mut Network) {
    mpol(network, 2, 50.0);
    network.role("mp1", &[&["link1"], &["link2"]]);
    network.role("mp2", &[&["link1"], &["link2"]]);
}

fn mpol_4e(network: &mut Network) {
    mpol(network, 2, 200.0);
    network.role("mp", &[&["link1"], &["link2"]]);
}

fn uni_mptcp(network: &mut Network) {
    network.line("link1", 10.0, 0.4, QueueLimit::Packets(100));
    network.line("link2", 10.0, 0.4, QueueLimit::Packets(100));
    network.role("mp", &[&["link1"], &["link2"]]);
    network.role("tcp1", &[&["link1"]]);
    network.role("tcp2", &[&["link2"]]);
}
