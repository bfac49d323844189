//! Why a scenario file was refused, where, and what to do.

use manypath_core::Bytes;
use manypath_link::{ConfigError, TraceError};

/// A fault in a scenario file and its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: {}", brief(&problem.to_string()))]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: String,
    /// Line, from one.
    pub line: usize,
    /// Column in characters, from one.
    pub column: usize,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// A message without the middle of what would fill the screen: files may have keys and values of megabytes.
fn brief(message: &str) -> String {
    let count = message.chars().count();
    if count <= 700 {
        return message.to_owned();
    }
    let (begin, end) = (message.chars().take(300), message.chars().skip(count - 350));
    begin.chain(" [...] ".chars()).chain(end).collect()
}

/// Where the first of two tables is.
fn other_table(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", the other one in line {line}") }
}

/// Who misspelt the name of a link reads here what there is.
fn beside(known: &str) -> String {
    if known.is_empty() { String::new() } else { format!(", new beside {known},") }
}

/// What is wrong with a scenario; each message says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not TOML, or has unknown keys, missing keys or values of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// The file is larger than a scenario can be.
    #[error("the file has {0} bytes, more than 16 MiB: describe repeated things with 'count'")]
    TooLong(usize),
    /// There is no topology of this name.
    #[error("there is no topology '{name}'; there are {known}")]
    UnknownTopology {
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// There is no link of this name.
    #[error("there is no link '{name}'; there are {known}")]
    UnknownLink {
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// An override changes a table that the file does not have.
    #[error("there is no {kind} '{name}' to change; there are {known}")]
    UnknownTable {
        /// `link`, `connection` or `source`.
        kind: String,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// An override changes all tables of a kind, and the file has none.
    #[error("the file has no [[{0}]] table to change: name one, as in {0}.NAME.KEY=VALUE")]
    NoTables(String),
    /// The topology has no paths of this name.
    #[error("the topology has no role '{name}'; it has {known}")]
    UnknownRole {
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// Two things have one name.
    #[error("the name '{0}' is given twice: names must differ")]
    SameName(String),
    /// Two tables describe one link.
    #[error(
        "there are two [[link]] tables of the name '{name}'{}: give one of them another name, or write all of the link in one",
        other_table(*.line)
    )]
    SameLink {
        /// The link.
        name: String,
        /// The line of the first; zero in an override.
        line: usize,
    },
    /// A queue in bytes is too short for what is sent over the link.
    #[error(
        "link '{link}': its queue of {queue} never has room for a packet of {packet}, which '{user}' sends: write \
         queue = \"{packet}\" or more, or queue = \"1packet\""
    )]
    QueueBelowPacket {
        /// The link.
        link: String,
        /// Its limit.
        queue: Bytes,
        /// The connection or source.
        user: String,
        /// What it sends.
        packet: Bytes,
    },
    /// A name is missing or has characters that reports cannot show.
    #[error("'{0}' is no name: use letters, digits, and - _ . /")]
    BadName(String),
    /// The scenario's name cannot be shown.
    #[error("the name of a scenario is not empty, and has at most 200 characters and no line ends")]
    BadTitle,
    /// A value that is needed is not there.
    #[error("{what} needs '{key}': {remedy}")]
    Missing {
        /// What.
        what: String,
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A link that is not there before, and not described in full.
    #[error("link '{name}'{} needs '{key}': {remedy}", beside(known))]
    NewLink {
        /// The link.
        name: String,
        /// What there is.
        known: String,
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// The first path of a connection says when it joins.
    #[error("the first path of connection '{0}' joins nothing: write start for when the connection begins")]
    FirstJoins(String),
    /// Values exclude each other.
    #[error("{what} has both '{first}' and '{second}': keep one")]
    Both {
        /// What.
        what: String,
        /// A key.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// A link's values make no sense.
    #[error("link '{name}': {source}")]
    Link {
        /// Which.
        name: String,
        /// What is wrong.
        source: ConfigError,
    },
    /// A trace cannot be read.
    #[error("the trace '{path}' cannot be read: {reason}")]
    TraceFile {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A trace makes no sense.
    #[error("the trace '{path}': {source}")]
    Trace {
        /// The file.
        path: String,
        /// What is wrong.
        source: TraceError,
    },
    /// A route has no links.
    #[error("the route is empty: name at least one link")]
    EmptyRoute,
    /// A route passes a link or a node twice.
    #[error("the route passes '{0}' twice: a packet would go round in a circle")]
    Cycle(String),
    /// Links of a route do not meet.
    #[error("the route breaks between '{first}', which ends at {end}, and '{second}', which begins at {begin}")]
    Broken {
        /// A link.
        first: String,
        /// Its end.
        end: String,
        /// The next link.
        second: String,
        /// Its beginning.
        begin: String,
    },
    /// A link of a route has no link back.
    #[error("'{0}' has no link back: give the path's 'back' route, or the link without 'one-way'")]
    NoWayBack(String),
    /// A link of the topology has a way back, and is to have none.
    #[error("link '{0}' is the topology's and has a way back: leave out 'one-way', or describe a link of your own")]
    TwoWay(String),
    /// A number is out of range.
    #[error("{what} is {value}: it must be {range}")]
    OutOfRange {
        /// What.
        what: String,
        /// What was given.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
    /// There is nothing to run.
    #[error("nothing is sent: add a [[connection]] or a [[source]]")]
    Nothing,
}
