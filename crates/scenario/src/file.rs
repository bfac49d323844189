//! The tables of a scenario file, as they are written.
//!
//! Doc comments here are the descriptions of the JSON schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::{AMoment, AQueue, ARate, AShare, ASize, ASpan, AnAlgorithm, Located, Text, Timing};

/// A scenario: a network, what runs over it, and for how long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    /// What the scenario is called in reports; the file's name without one.
    pub(crate) name: Option<Located<String>>,
    /// Simulated time.
    pub(crate) duration: Located<Text<AMoment>>,
    /// Time at the start that summaries leave out.
    pub(crate) warmup: Option<Located<Text<AMoment>>>,
    /// Interval of time series; none are recorded without it.
    pub(crate) sample: Option<Located<Text<ASpan>>>,
    /// A named topology: its links, and its roles for connections.
    pub(crate) topology: Option<Located<String>>,
    /// Links, or changes to the topology's.
    #[serde(default)]
    pub(crate) link: Vec<Located<LinkTable>>,
    /// Connections.
    #[serde(default)]
    pub(crate) connection: Vec<Located<ConnectionTable>>,
    /// Traffic that does not react.
    #[serde(default)]
    pub(crate) source: Vec<Located<SourceTable>>,
}

/// A link: one direction of it, and unless `one-way` is set a second one called `NAME/back`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct LinkTable {
    /// Its name; a name of the topology's changes that link.
    pub(crate) name: String,
    /// The node it begins at. Routes over links with nodes must be connected.
    pub(crate) from: Option<String>,
    /// The node it ends at.
    pub(crate) to: Option<String>,
    /// Whether there is no link back.
    pub(crate) one_way: bool,
    /// Rate.
    pub(crate) rate: Option<Text<ARate>>,
    /// A Mahimahi trace in place of a rate: a file, relative to the scenario.
    pub(crate) trace: Option<String>,
    /// Propagation delay, one way.
    pub(crate) delay: Option<Text<ASpan>>,
    /// Extra delay, drawn evenly from zero up to this for every packet.
    pub(crate) jitter: Option<Text<ASpan>>,
    /// Whether jitter may reorder packets.
    pub(crate) reorder: Option<bool>,
    /// Drop-tail limit of the queue.
    pub(crate) queue: Option<Text<AQueue>>,
    /// Random loss before the queue.
    pub(crate) loss: Option<Text<AShare>>,
    /// Mean length of a burst of losses in packets, at least 1: the loss is then bursty (Gilbert).
    pub(crate) loss_burst: Option<f64>,
    /// Mark ECN-capable packets that find more than this in the queue.
    pub(crate) ecn: Option<Text<AQueue>>,
    /// Random early detection.
    pub(crate) red: Option<RedTable>,
    /// Changes over time, of this direction only.
    pub(crate) schedule: Option<Vec<ChangeTable>>,
    /// Values drawn anew at intervals, of this direction only. A table of the way back, `NAME/back` with `one-way`, that draws
    /// in the same way draws the same values.
    pub(crate) redraw: Option<RedrawTable>,
    /// What is different on the way back; without it the way back has the same rate and delay, loses nothing and has a queue of 1000 packets.
    pub(crate) back: Option<BackTable>,
}

/// The way back of a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct BackTable {
    /// Rate.
    pub(crate) rate: Option<Text<ARate>>,
    /// Propagation delay, one way.
    pub(crate) delay: Option<Text<ASpan>>,
    /// Drop-tail limit of the queue.
    pub(crate) queue: Option<Text<AQueue>>,
    /// Random loss before the queue.
    pub(crate) loss: Option<Text<AShare>>,
}

/// Random early detection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RedTable {
    /// Lower threshold of the average queue.
    pub(crate) min: Text<AQueue>,
    /// Upper threshold of the average queue.
    pub(crate) max: Text<AQueue>,
    /// Drop probability at the upper threshold.
    pub(crate) max_probability: Text<AShare>,
    /// Weight of the newest sample in the average; 0.002 is usual.
    #[serde(default = "usual_weight")]
    pub(crate) weight: f64,
    /// Whether the probability rises to one between the upper threshold and twice that.
    #[serde(default)]
    pub(crate) gentle: bool,
    /// Whether ECN-capable packets are marked where others are dropped early.
    #[serde(default)]
    pub(crate) ecn: bool,
}

fn usual_weight() -> f64 {
    0.002
}

/// A line of a schedule: what is given replaces what was in force.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ChangeTable {
    /// When.
    pub(crate) at: Text<AMoment>,
    /// New rate; zero is an outage.
    pub(crate) rate: Option<Text<ARate>>,
    /// New propagation delay.
    pub(crate) delay: Option<Text<ASpan>>,
    /// New jitter.
    pub(crate) jitter: Option<Text<ASpan>>,
    /// New random loss.
    pub(crate) loss: Option<Text<AShare>>,
}

/// Values drawn anew at intervals. Each is `{ between = [A, B] }`, `{ one-of = [...] }` or `{ mean = A, deviation = B }`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RedrawTable {
    /// The interval.
    pub(crate) every: Text<ASpan>,
    /// Rate.
    pub(crate) rate: Option<DrawTable<ARate>>,
    /// Propagation delay.
    pub(crate) delay: Option<DrawTable<ASpan>>,
    /// Random loss.
    pub(crate) loss: Option<DrawTable<AShare>>,
}

/// How a value is drawn: exactly one of `between`, `one-of`, and `mean` with `deviation`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", bound = "")]
#[schemars(bound = "W: crate::units::Written")]
pub(crate) struct DrawTable<W: crate::units::Written> {
    /// Evenly between two values.
    pub(crate) between: Option<[Text<W>; 2]>,
    /// One of these, each as likely.
    pub(crate) one_of: Option<Vec<Text<W>>>,
    /// Mean of a normal distribution cut at zero.
    pub(crate) mean: Option<Text<W>>,
    /// Its standard deviation.
    pub(crate) deviation: Option<Text<W>>,
}

/// A connection, or `count` equal ones.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ConnectionTable {
    /// Its name; with `count` the names end with -1, -2, ...
    pub(crate) name: String,
    /// How many equal connections.
    pub(crate) count: Option<u32>,
    /// Congestion controller.
    pub(crate) cc: Option<Located<Text<AnAlgorithm>>>,
    /// Packet scheduler; the one that fits the controller without it.
    pub(crate) scheduler: Option<Located<Text<AnAlgorithm>>>,
    /// How subflows recover from loss.
    pub(crate) transport: TransportName,
    /// Loss recovery of `tcp` subflows; "rack" without it.
    pub(crate) recovery: Option<RecoveryName>,
    /// The least retransmission timeout of `tcp` subflows; 200ms without it.
    pub(crate) min_rto: Option<Text<ASpan>>,
    /// After how many retransmission timeouts in a row a `tcp` subflow's data is sent on other subflows too; 0: never.
    pub(crate) reinject_after: Option<u32>,
    /// When `tcp` subflows acknowledge what came in order; "count" without it.
    pub(crate) ack_rule: Option<AckRuleName>,
    /// The topology's paths of this name.
    pub(crate) role: Option<Located<String>>,
    /// Its paths, where no role is given.
    pub(crate) path: Vec<Located<PathTable>>,
    /// What it sends: as much as it can, without this.
    pub(crate) file: Option<Text<ASize>>,
    /// Files of a size that arrive one after another.
    pub(crate) arrivals: Option<ArrivalsTable>,
    /// An application that writes at this rate.
    pub(crate) rate: Option<Text<ARate>>,
    /// An application that is busy for a while and silent for a while.
    pub(crate) on_off: Option<OnOffTable>,
    /// When it starts.
    pub(crate) start: Option<Text<AMoment>>,
    /// It starts up to this much later, drawn evenly: every seed has its own time.
    pub(crate) start_spread: Option<Text<ASpan>>,
    /// How long after the subflow before it each subflow joins, where its path says nothing else; at once without it.
    pub(crate) join_after: Option<Text<ASpan>>,
    /// Each subflow joins up to this much later, drawn evenly: every seed has its own times.
    pub(crate) join_spread: Option<Text<ASpan>>,
    /// When it stops writing; what is in its send buffer then is still sent.
    pub(crate) stop: Option<Text<AMoment>>,
    /// Size of a full data packet on the wire, from the IP header on.
    pub(crate) packet: Option<Text<ASize>>,
    /// What of it is neither payload nor record header.
    pub(crate) overhead: Option<Text<ASize>>,
    /// The most data written and not acknowledged.
    pub(crate) send_buffer: Option<Text<ASize>>,
    /// The most data received and not read.
    pub(crate) receive_buffer: Option<Text<ASize>>,
    /// Initial window in packets.
    pub(crate) initial_window: Option<u64>,
    /// Slow-start threshold before the first loss in packets; without it slow start goes on until then.
    pub(crate) initial_ssthresh: Option<u64>,
    /// An acknowledgement covers this many packets.
    pub(crate) ack_every: Option<u32>,
    /// The longest that a packet waits for its acknowledgement; 25ms without it, 40ms with `tcp`.
    pub(crate) max_ack_delay: Option<Text<ASpan>>,
    /// How much a paced subflow may catch up at once.
    pub(crate) pacing_burst: Option<Text<ASpan>>,
    /// Whether windows that the controller does not pace leave at 1.25 of them a round trip (RFC 9002 s7.7), in place of as
    /// acknowledgements come.
    pub(crate) pace_windows: bool,
    /// Whether packets say that they understand ECN, if the controller answers marks.
    pub(crate) ecn: bool,
}

/// When subflows acknowledge what came in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AckRuleName {
    /// When `ack-every` segments have come.
    #[default]
    Count,
    /// Then only if what waits for other subflows' data has not shrunk the window since, else when the application has read:
    /// Linux' Multipath TCP up to 0.94.
    Window,
}

/// How subflows recover from loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TransportName {
    /// As over QUIC datagrams.
    #[default]
    Quic,
    /// As Multipath TCP.
    Tcp,
}

/// Loss recovery of `tcp` subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecoveryName {
    /// RFC 8985.
    #[default]
    Rack,
    /// RFC 6675.
    Sack,
    /// RFC 6582: "impatient".
    NewReno,
    /// RFC 3782 s4: "slow-but-steady", as in ns-3.
    NewRenoSteady,
}

/// One path of a connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct PathTable {
    /// Names of links from the first host to the second.
    pub(crate) route: Vec<String>,
    /// Names of links back; without it the links back of the route, from its end.
    pub(crate) back: Option<Vec<String>>,
    /// Relative cost of a byte.
    pub(crate) cost: Option<f64>,
    /// Whether the path is used only when no other can be.
    pub(crate) backup: bool,
    /// How long after the subflow of the path before it its subflow joins.
    pub(crate) join_after: Option<Text<ASpan>>,
}

/// Files that arrive one after another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ArrivalsTable {
    /// The size of each.
    pub(crate) size: Text<ASize>,
    /// Mean time between arrivals.
    pub(crate) every: Text<ASpan>,
    /// Whether the times are all the same or exponential.
    #[serde(default)]
    pub(crate) timing: Timing,
}

/// Busy and silent times.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OnOffTable {
    /// Mean length of the busy time.
    pub(crate) on: Text<ASpan>,
    /// Mean length of the silence.
    pub(crate) off: Text<ASpan>,
    /// Whether both are all the same or exponential.
    #[serde(default)]
    pub(crate) timing: Timing,
}

/// Busy and silent times of a source, exponential.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BusyTable {
    /// Mean length of the busy time.
    pub(crate) on: Text<ASpan>,
    /// Mean length of the silence.
    pub(crate) off: Text<ASpan>,
}

/// Traffic that does not react to the network.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SourceTable {
    /// Its name.
    pub(crate) name: String,
    /// Names of links.
    pub(crate) route: Vec<String>,
    /// Rate while on.
    pub(crate) rate: Text<ARate>,
    /// Size of its packets.
    pub(crate) packet: Option<Text<ASize>>,
    /// Whether the times between packets are all the same or exponential.
    #[serde(default)]
    pub(crate) timing: Timing,
    /// Busy and silent times, exponential; always on without it.
    pub(crate) on_off: Option<BusyTable>,
    /// When it starts.
    pub(crate) start: Option<Text<AMoment>>,
    /// When it stops.
    pub(crate) stop: Option<Text<AMoment>>,
}
