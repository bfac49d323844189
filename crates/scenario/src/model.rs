//! A scenario after all checks: what engines and theory read.
//!
//! Names are resolved to indices, units to types, repeated things are written out. Whoever has a [`Scenario`] need not check
//! it again.

use manypath_core::{AlgorithmSpec, Bytes, Duration, Priority, Rate, Time};
use manypath_link::LinkConfig;

/// A network, what runs over it, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is called in reports.
    pub name: String,
    /// Simulated time.
    pub duration: Duration,
    /// Time at the start that summaries leave out (time series do not).
    pub warmup: Duration,
    /// Interval of time series; `None`: none are recorded.
    pub sample: Option<Duration>,
    /// Directed links; routes name them by index.
    pub links: Vec<Link>,
    /// Connections in the order of their names in reports.
    pub connections: Vec<Connection>,
    /// Traffic that does not react.
    pub sources: Vec<Source>,
}

impl Scenario {
    /// What starts at the end or later, and so sends nothing: the line of a connection's table (of `count` equal ones the first
    /// is named), zero for a source; the name; and the start. It can be meant, as where a shorter run leaves out the last part.
    pub fn never_starts(&self) -> Vec<(usize, &str, Duration)> {
        let connections = self.connections.iter().map(|held| (held.line, held.name.as_str(), held.start));
        let sources = self.sources.iter().map(|held| (0, held.name.as_str(), held.start));
        let late = |(line, name, start): (usize, _, Time)| (line, name, start.since(Time::ZERO));
        let mut found: Vec<_> = connections.chain(sources).map(late).collect();
        found.retain(|(_, _, start)| *start >= self.duration);
        found.dedup_by(|next, held| next.0 > 0 && next.0 == held.0);
        found
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name; it also names its random streams.
    pub name: String,
    /// The node it begins at; empty where the scenario names no nodes.
    pub from: String,
    /// The node it ends at; empty where the scenario names no nodes.
    pub to: String,
    /// The model.
    pub config: LinkConfig,
    /// Values drawn anew at intervals, on top of the model's schedule.
    pub redraw: Option<Redraw>,
}

/// Values of a link that are drawn anew at intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Redraw {
    /// The interval; the first draw is at time zero.
    pub every: Duration,
    /// The rate in bits per second.
    pub rate: Option<Draw>,
    /// The propagation delay in seconds.
    pub delay: Option<Draw>,
    /// The probability of random loss.
    pub loss: Option<Draw>,
}

/// How a value is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// Evenly between two values.
    Uniform(f64, f64),
    /// One of several values, each as likely.
    Choice(Vec<f64>),
    /// From a normal distribution cut at zero: mean and standard deviation.
    Normal(f64, f64),
}

/// How a path's carrier recovers from loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// As over QUIC datagrams: RFC 9002 finds losses, the session decides where lost data goes.
    Quic,
    /// As Multipath TCP: a sequence space a subflow, delivered in order, losses resent on the same subflow.
    Tcp {
        /// How a subflow recovers.
        recovery: Recovery,
        /// The least retransmission timeout (RFC 6298 s2.4 says 1 s, Linux uses 200 ms).
        min_rto: Duration,
        /// After how many timeouts in a row what a subflow has not delivered is sent on other subflows as well; 0: never.
        reinject_after: u32,
        /// What must hold, beside their number, for segments in order to be acknowledged at once.
        ack_rule: AckRule,
    },
}

/// When a `tcp` subflow acknowledges segments that came in order, `ack_every` of which have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// At once (RFC 5681 s4.2).
    Count,
    /// At once unless the window shrinks by what waits for other subflows' data, then when the application has read: as in
    /// Linux' out-of-tree Multipath TCP up to 0.94 (before Linux 4.18), and as STMS s2.2 describes.
    Window,
}

/// Loss recovery of a `tcp` subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// RFC 6582: one loss a round trip, and a timeout where that takes longer ("impatient").
    NewReno,
    /// RFC 3782 s4: one loss a round trip however many there are ("slow-but-steady"), as in ns-3.
    NewRenoSteady,
    /// RFC 6675: by selective acknowledgements; what is lost twice needs a timeout.
    Sack,
    /// RFC 8985: by time, as Linux does since 4.18.
    Rack,
}

impl Recovery {
    /// Whether subflows recover without selective acknowledgements.
    pub fn is_new_reno(self) -> bool {
        matches!(self, Self::NewReno | Self::NewRenoSteady)
    }
}

/// A connection between two hosts, data from the first to the second.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Its name, unique; it also names its random streams.
    pub name: String,
    /// Line of its table in the file, for what is found wrong with it later; zero where there is no file.
    pub line: usize,
    /// Congestion controller.
    pub cc: AlgorithmSpec,
    /// Packet scheduler; `None` for the one that fits the controller, which the engine knows.
    pub scheduler: Option<AlgorithmSpec>,
    /// How its subflows recover from loss.
    pub transport: Transport,
    /// Its subflows' paths, in the order of subflow ids; at least one.
    pub paths: Vec<Path>,
    /// What it sends.
    pub workload: Workload,
    /// When it starts, at the earliest.
    pub start: Time,
    /// The most by which it starts later: [`joins`](Self::joins) draws the time.
    pub start_spread: Duration,
    /// The most by which each subflow but the first joins later than its path says.
    pub join_spread: Duration,
    /// When it stops writing; `None`: never.
    pub stop: Option<Time>,
    /// Size on the wire of a full data packet, from the IP header on.
    pub packet: Bytes,
    /// What of it is neither payload nor record header: IP, UDP, and the carrier's own.
    pub overhead: Bytes,
    /// What a data record adds to its payload.
    pub record_header: Bytes,
    /// The most data written and not acknowledged.
    pub send_buffer: Bytes,
    /// The most data received and not read.
    pub receive_buffer: Bytes,
    /// Initial window in packets.
    pub initial_window: u64,
    /// Slow-start threshold before the first loss in packets; `None`: none.
    pub initial_ssthresh: Option<u64>,
    /// A carrier's acknowledgement covers this many packets when nothing is unusual.
    pub ack_every: u32,
    /// The longest that a packet waits for its acknowledgement.
    pub max_ack_delay: Duration,
    /// How much a paced subflow may catch up at once.
    pub pacing_burst: Duration,
    /// Whether windows leave at 1.25 of them a round trip in place of as acknowledgements come.
    pub pace_windows: bool,
    /// Whether packets say that they understand ECN, if the controller answers marks.
    pub ecn: bool,
}

/// One path of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Links from the first host to the second, by index; at least one.
    pub forward: Vec<usize>,
    /// Links back, by index; at least one.
    pub backward: Vec<usize>,
    /// Relative cost of a byte.
    pub cost: f64,
    /// Everyday path or backup.
    pub priority: Priority,
    /// How long after the subflow of the path before it its subflow joins, at the earliest; zero for the first.
    pub join_after: Duration,
}

/// What a connection sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// As much as it can.
    Endless,
    /// So much, once.
    File(Bytes),
    /// Files, each in a flow of its own.
    Arrivals {
        /// The size of each.
        size: Bytes,
        /// Mean time between arrivals.
        every: Duration,
        /// Whether the times between arrivals are exponential (Poisson arrivals) or all the same.
        poisson: bool,
    },
    /// An application that writes at a rate, and keeps what the connection does not take.
    Rate(Rate),
    /// An application that has as much as the connection takes for `on`, and nothing for `off`.
    OnOff {
        /// Mean length of the busy time.
        on: Duration,
        /// Mean length of the silence.
        off: Duration,
        /// Whether both are exponential or all the same.
        random: bool,
    },
}

/// Traffic that does not react to the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its name, unique; it also names its random stream.
    pub name: String,
    /// Links, by index; at least one.
    pub route: Vec<usize>,
    /// Rate while on.
    pub rate: Rate,
    /// Size of its packets on the wire.
    pub packet: Bytes,
    /// Whether the times between packets are exponential or all the same.
    pub poisson: bool,
    /// Mean lengths of busy and silent times, exponential; `None`: always on.
    pub on_off: Option<(Duration, Duration)>,
    /// When it starts.
    pub start: Time,
    /// When it stops; `None`: never.
    pub stop: Option<Time>,
}
