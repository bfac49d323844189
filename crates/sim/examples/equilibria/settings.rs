//! The networks of the papers on which equilibria are compared, as scenario texts.

/// What carries the subflows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// QUIC datagrams.
    Quic,
    /// Multipath TCP, as the papers measured it.
    Tcp,
}

impl Carrier {
    /// The keys of a connection.
    const fn keys(self) -> &'static str {
        match self {
            Self::Quic => "transport = \"quic\"\n",
            Self::Tcp => "transport = \"tcp\"\n",
        }
    }
}

/// The head of a scenario: how long it lasts, and from when on it is measured.
fn head(seconds: u32, warmup: u32) -> String {
    format!("duration = \"{seconds}s\"\nwarmup = \"{warmup}s\"\nsample = \"1s\"\n")
}

/// A link of a rate in Mbit/s and a propagation delay in ms, one way.
fn link(name: &str, mbps: f64, delay_ms: f64, queue: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nrate = \"{mbps}Mbit\"\ndelay = \"{delay_ms}ms\"\nqueue = \"{queue}\"\n")
}

/// A connection with a path over each of these links; the costs of paths are those of Uni-MPTCP s4.3.2.
fn connection(name: &str, cc: &str, links: &[String], more: &str) -> String {
    let path = |(link, cost): (&String, f64)| format!("{{ route = [\"{link}\"], cost = {cost:?} }}");
    let paths: Vec<String> = links.iter().zip([0.1, 10.0, 10.0]).map(path).collect();
    format!("[[connection]]\nname = \"{name}\"\ncc = \"{cc}\"\npath = [{}]\n{more}", paths.join(", "))
}

/// A network of MPCC.
pub(crate) struct Mpcc {
    /// Its name.
    pub(crate) name: &'static str,
    /// The rates of its links in Mbit/s.
    pub(crate) links: &'static [f64],
    /// Its connections: name, and links by number.
    pub(crate) connections: &'static [(&'static str, &'static [usize])],
}

/// The networks of MPCC: Figure 1, Figure 3c, one with three rates, Figure 3d, and the one of Figure 14 that the paper
/// names as its weakness.
pub(crate) const MPCC: [Mpcc; 5] = [
    Mpcc { name: "figure 1", links: &[100.0; 3], connections: &[("mpcc-1", &[0]), ("mpcc-3", &[0, 1, 2])] },
    Mpcc { name: "figure 3c", links: &[100.0; 2], connections: &[("mpcc-2", &[0, 1]), ("mpcc-1", &[1])] },
    Mpcc {
        name: "100, 50, 20",
        links: &[100.0, 50.0, 20.0],
        connections: &[("a", &[0, 1]), ("b", &[1, 2]), ("c", &[2])],
    },
    Mpcc { name: "figure 3d", links: &[100.0; 2], connections: &[("mpcc-2", &[0, 1]), ("one", &[0]), ("two", &[1])] },
    Mpcc { name: "500, 50", links: &[500.0, 50.0], connections: &[("mpcc-2", &[0, 1]), ("mpcc-1", &[1])] },
];

impl Mpcc {
    /// The scenario, with `cc` for all connections. Links have a round trip of 30 ms and as much of queue (MPCC s7.1).
    pub(crate) fn scenario(&self, cc: &str, seconds: u32, carrier: Carrier) -> String {
        let mut text = head(seconds, seconds / 2);
        for (number, mbps) in self.links.iter().enumerate() {
            let queue = format!("{}B", (mbps * 1e6 * 0.030 / 8.0).round());
            text += &link(&format!("l{number}"), *mbps, 15.0, &queue);
        }
        let more = "scheduler = \"rate-based\"\nsend-buffer = \"300MB\"\nreceive-buffer = \"300MB\"\n";
        for (name, links) in self.connections {
            let links: Vec<String> = links.iter().map(|link| format!("l{link}")).collect();
            text += &connection(name, cc, &links, &(more.to_owned() + carrier.keys()));
        }
        text
    }
}

/// What a bottleneck does when its queue is long.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// Drops what does not fit, in packets.
    Tail(u32),
    /// Marks everything that finds more than this many packets, and drops nothing.
    Marks(u32),
    /// Drops at random, the more the longer the average queue, between half and one and a half of this many packets (RED).
    Random(u32),
}

impl Queue {
    /// The keys of the link after its name, rate and delay.
    fn keys(self) -> String {
        match self {
            Self::Tail(packets) => format!("queue = \"{packets}packets\"\n"),
            Self::Marks(packets) => format!("queue = \"{}packets\"\necn = \"{packets}packets\"\n", packets * 4),
            Self::Random(packets) => format!(
                "queue = \"{}packets\"\nred = {{ min = \"{}packets\", max = \"{}packets\", max-probability = \"2%\", \
                 gentle = true }}\n",
                packets * 4,
                packets / 2,
                packets + packets / 2
            ),
        }
    }
}

/// Two bottlenecks with TCP flows on each, and one connection over both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoBottlenecks {
    /// TCP flows on each.
    pub(crate) flows: [u32; 2],
    /// Rate of each in Mbit/s.
    pub(crate) mbps: [f64; 2],
    /// Propagation delay in ms, one way.
    delay_ms: f64,
    /// Bytes of a packet.
    packet: u32,
    /// The queue of each.
    queues: [Queue; 2],
}

impl TwoBottlenecks {
    /// For Table I of Uni-MPTCP, with its 0.4 ms of delay (s4.2). Table I takes congestion for something that a path has or
    /// has not, and that all its flows hear of, as they do where everything is marked.
    pub(crate) const fn heard_by_all(flows: [u32; 2], mbps: [f64; 2]) -> Self {
        Self { flows, mbps, delay_ms: 0.4, packet: 1500, queues: [Queue::Marks(100); 2] }
    }

    /// The same with a queue that drops: who sends more hears more.
    pub(crate) const fn heard_by_chance(flows: [u32; 2], mbps: [f64; 2]) -> Self {
        Self { flows, mbps, delay_ms: 0.4, packet: 1500, queues: [Queue::Tail(50); 2] }
    }

    /// The simulations of Uni-MPTCP: ten TCP flows on the cheap path, one on the costly one, 10 Mbit/s each, 0.4 ms of delay.
    /// It states neither packets nor queues. Segments are of 536 bytes, as ns-3 has them when nothing is set. With them
    /// 50 packets are, of queues from 10 to 100, those with which LIA and the weights 0.01 and 1 get what its Table III
    /// shows (within 4%).
    pub(crate) const fn of_paper_004() -> Self {
        Self { flows: [10, 1], mbps: [10.0; 2], delay_ms: 0.4, packet: 590, queues: [Queue::Tail(50); 2] }
    }

    /// For fluid models: round trips of 60 ms, and losses that fall on every packet alike.
    pub(crate) fn random(flows: [u32; 2], mbps: [f64; 2]) -> Self {
        // A bandwidth-delay product is a few hundred packets.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let queues = mbps.map(|mbps| Queue::Random((mbps * 1e6 * 0.060 / 12_000.0).round() as u32));
        Self { flows, mbps, delay_ms: 30.0, packet: 1500, queues }
    }

    /// The scenario, with `cc` over both bottlenecks; the second half is measured.
    pub(crate) fn scenario(&self, cc: &str, seconds: u32, carrier: Carrier) -> String {
        let mut text = head(seconds, seconds / 2);
        for (index, (mbps, queue)) in self.mbps.into_iter().zip(self.queues).enumerate() {
            let back = "back = { queue = \"10000packets\", rate = \"10Gbit\" }";
            let (delay, keys) = (self.delay_ms, queue.keys());
            text +=
                &format!("[[link]]\nname = \"l{index}\"\nrate = \"{mbps}Mbit\"\ndelay = \"{delay}ms\"\n{keys}{back}\n");
        }
        let marks = matches!(self.queues, [Queue::Marks(_), _]);
        // Starts are drawn, so that slow starts do not meet and seeds differ.
        let more = format!("{}packet = \"{}B\"\necn = {marks}\nstart-spread = \"2s\"\n", carrier.keys(), self.packet);
        let links = ["l0", "l1"].map(str::to_owned);
        text += &connection("mp", cc, &links, &more);
        for (link, count) in links.iter().zip(self.flows) {
            let more = format!("count = {count}\n{more}");
            text += &connection(&format!("tcp-{link}"), "reno", core::slice::from_ref(link), &more);
        }
        text
    }
}

/// TCCC's shared bottleneck (Figure 1a): a connection with two subflows, a TCP, and Poisson traffic of 3% of the
/// bottleneck (the paper has 1 to 5%). Acknowledgements take up to one packet's time longer, drawn for each: without that,
/// drop-tail queues serve whoever happens to be in step (S. Floyd and V. Jacobson, "On traffic phase effects in
/// packet-switched gateways", 1992, remove it in the same way).
pub(crate) fn shared_bottleneck(cc: &str, seconds: u32, carrier: Carrier) -> String {
    let keys = carrier.keys();
    let acks: String = (1..=3).map(|n| format!("[[link]]\nname = \"access{n}/back\"\njitter = \"2400us\"\n")).collect();
    head(seconds, seconds / 2)
        + "topology = \"tccc-1a\"\n"
        + &acks
        + &format!("[[connection]]\nname = \"mp\"\ncc = \"{cc}\"\nrole = \"mp\"\n{keys}")
        + &format!("[[connection]]\nname = \"tcp\"\ncc = \"reno\"\nrole = \"tcp\"\n{keys}")
        + "[[source]]\nname = \"background\"\nroute = [\"access4\", \"bottleneck\", \"exit\"]\nrate = \"150kbit\"\n\
           timing = \"poisson\"\n"
}
