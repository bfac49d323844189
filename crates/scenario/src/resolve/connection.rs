//! Connections: their algorithms, paths, sizes and workloads.

use std::collections::BTreeSet;

use manypath_core::{Bytes, Duration, Priority, Time};
use manypath_link::MAX_RATE_BPS;

use super::names::Names;
use super::{Fault, MAX_PACKET, MIN_INTERVAL, both, check_name, out_of_range};
use crate::error::Problem;
use crate::file::{AckRuleName, ConnectionTable, PathTable, RecoveryName, TransportName};
use crate::model::{AckRule, Connection, Path, Recovery, Transport, Workload};
use crate::topologies::Topology;
use crate::units::{ASize, ASpan, Located, Text, Timing};

/// The most connections of a scenario. Each costs some kilobytes.
const MAX_CONNECTIONS: u64 = 100_000;
/// The most paths of a connection.
const MAX_PATHS: usize = 64;
/// The most paths of all connections. Each costs some kilobytes.
const MAX_ALL_PATHS: u64 = 200_000;
/// The least room for a record in a packet: sessions work with no less.
const MIN_RECORD: Bytes = Bytes::new(300);
/// The largest buffer of a host: 4 GiB, which is what five minutes of 100 Mbit/s fill.
const MAX_BUFFER: Bytes = Bytes::new(4 << 30);
/// What buffers hold where nothing is said.
const USUAL_BUFFER: Bytes = Bytes::new(16 << 20);

/// What a QUIC data packet has around its record, bytes: IPv4 20, UDP 8, short header with an 8-byte connection id and a
/// 4-byte packet number 13, tag 16 (RFC 9001 s5.3), DATAGRAM frame with length 3 (RFC 9221 s4).
const QUIC_OVERHEAD: Bytes = Bytes::new(60);
/// What a DATA record of the session adds to its payload, bytes.
const QUIC_RECORD: Bytes = Bytes::new(26);
/// What an MPTCP segment has around its mapping, bytes: IPv4 20, TCP 20, timestamps 12.
const TCP_OVERHEAD: Bytes = Bytes::new(52);
/// A DSS option with 64-bit numbers, 26 bytes (RFC 8684 s3.3), padded.
const TCP_RECORD: Bytes = Bytes::new(28);

/// The longest that a receiver of TCP waits before it acknowledges (Linux's `TCP_DELACK_MIN`).
const TCP_ACK_DELAY: Duration = Duration::from_millis(40);
/// The same of QUIC (RFC 9000 s18.2).
const QUIC_ACK_DELAY: Duration = Duration::from_millis(25);
/// The least retransmission timeout of TCP (Linux's `TCP_RTO_MIN`; RFC 6298 s2.4 says one second).
const MIN_RTO: Duration = Duration::from_millis(200);

/// The connections so far.
#[derive(Default)]
pub(super) struct Connections {
    pub(super) all: Vec<Connection>,
    /// Their names.
    pub(super) names: BTreeSet<String>,
    paths: u64,
}

impl Connections {
    /// Takes a table: one connection, or `count` equal ones.
    pub(super) fn take(
        &mut self,
        table: &Located<ConnectionTable>,
        base: Option<&Topology>,
        names: &Names,
    ) -> Result<(), Fault> {
        let here = |problem| (table.span.clone(), problem);
        let count = u64::from(table.value.count.unwrap_or(1));
        if count == 0 || count + self.all.len() as u64 > MAX_CONNECTIONS {
            return Err(here(out_of_range("count", count, "1 to 100000, all connections together")));
        }
        check_name(&table.value.name).map_err(here)?;
        let prototype = connection(table, base, names)?;
        self.paths += count * prototype.paths.len() as u64;
        if self.paths > MAX_ALL_PATHS {
            let what = "the number of paths of all connections";
            return Err(here(out_of_range(what, self.paths, "at most 200000")));
        }
        for number in 1..=count {
            let name = match table.value.count {
                None => prototype.name.clone(),
                Some(_) => format!("{}-{number}", prototype.name),
            };
            if !self.names.insert(name.clone()) {
                return Err(here(Problem::SameName(name)));
            }
            self.all.push(Connection { name, ..prototype.clone() });
        }
        Ok(())
    }
}

fn connection(located: &Located<ConnectionTable>, base: Option<&Topology>, names: &Names) -> Result<Connection, Fault> {
    let table = &located.value;
    let here = |problem| (located.span.clone(), problem);
    let paths = paths(located, base, names)?;
    let workload = workload(table).map_err(here)?;
    let cc = table.cc.as_ref().map(|spec| spec.value.0.clone()).ok_or_else(|| {
        let (what, remedy) = (format!("connection '{}'", table.name), "write cc = \"lia\" or another controller");
        here(Problem::Missing { what, key: "cc", remedy })
    })?;
    let scheduler = table.scheduler.as_ref().map(|spec| spec.value.0.clone());
    let Sizes { packet, overhead, record_header } = sizes(table).map_err(here)?;
    let Times { start, start_spread, join_spread, stop, max_ack_delay } = times(table).map_err(here)?;
    Ok(Connection {
        name: table.name.clone(),
        line: located.span.start,
        cc,
        scheduler,
        transport: transport(table).map_err(here)?,
        paths,
        workload,
        start,
        start_spread,
        join_spread,
        stop,
        packet,
        overhead,
        record_header,
        send_buffer: buffer("send-buffer", table.send_buffer, packet).map_err(here)?,
        receive_buffer: buffer("receive-buffer", table.receive_buffer, packet).map_err(here)?,
        initial_window: initial_window(table).map_err(here)?,
        initial_ssthresh: initial_ssthresh(table).map_err(here)?,
        ack_every: ack_every(table).map_err(here)?,
        max_ack_delay,
        pace_windows: table.pace_windows,
        pacing_burst: table.pacing_burst.map_or(Duration::ZERO, |burst| burst.0),
        ecn: table.ecn,
    })
}

fn transport(table: &ConnectionTable) -> Result<Transport, Problem> {
    if table.transport == TransportName::Quic {
        let given = [
            ("recovery", table.recovery.is_some()),
            ("min-rto", table.min_rto.is_some()),
            ("reinject-after", table.reinject_after.is_some()),
            ("ack-rule", table.ack_rule.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            None => Ok(Transport::Quic),
            Some((key, _)) => {
                let what = format!("connection '{}' with {key}", table.name);
                Err(Problem::Missing { what, key: "transport", remedy: "write transport = \"tcp\"" })
            }
        };
    }
    let recovery = match table.recovery.unwrap_or_default() {
        RecoveryName::Rack => Recovery::Rack,
        RecoveryName::Sack => Recovery::Sack,
        RecoveryName::NewReno => Recovery::NewReno,
        RecoveryName::NewRenoSteady => Recovery::NewRenoSteady,
    };
    let min_rto = table.min_rto.map_or(MIN_RTO, |rto| rto.0);
    if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&min_rto) {
        return Err(out_of_range("min-rto", min_rto, "1ms to 60s"));
    }
    let ack_rule = match table.ack_rule.unwrap_or_default() {
        AckRuleName::Count => AckRule::Count,
        AckRuleName::Window => AckRule::Window,
    };
    Ok(Transport::Tcp { recovery, min_rto, reinject_after: table.reinject_after.unwrap_or(1), ack_rule })
}

/// What a full packet consists of.
struct Sizes {
    packet: Bytes,
    overhead: Bytes,
    record_header: Bytes,
}

fn sizes(table: &ConnectionTable) -> Result<Sizes, Problem> {
    let (usual, record_header) = match table.transport {
        TransportName::Quic => (QUIC_OVERHEAD, QUIC_RECORD),
        TransportName::Tcp => (TCP_OVERHEAD, TCP_RECORD),
    };
    let packet = table.packet.map_or(Bytes::new(1500), |packet| packet.0);
    let overhead = table.overhead.map_or(usual, |overhead| overhead.0);
    if packet > MAX_PACKET || packet < overhead + MIN_RECORD {
        let value = format!("{packet} with {overhead} of overhead");
        return Err(out_of_range("packet", value, "at most 65535B, and 300B above the overhead"));
    }
    Ok(Sizes { packet, overhead, record_header })
}

fn buffer(key: &'static str, given: Option<Text<ASize>>, packet: Bytes) -> Result<Bytes, Problem> {
    let buffer = given.map_or(USUAL_BUFFER, |buffer| buffer.0);
    if buffer < packet * 2 || buffer > MAX_BUFFER {
        return Err(out_of_range(key, buffer, "at least two packets and at most 4GiB"));
    }
    Ok(buffer)
}

fn initial_window(table: &ConnectionTable) -> Result<u64, Problem> {
    let packets = table.initial_window.unwrap_or(10);
    if !(1..=10_000).contains(&packets) {
        return Err(out_of_range("initial-window", packets, "1 to 10000 packets"));
    }
    Ok(packets)
}

fn initial_ssthresh(table: &ConnectionTable) -> Result<Option<u64>, Problem> {
    match table.initial_ssthresh {
        Some(packets) if !(2..=100_000).contains(&packets) => {
            Err(out_of_range("initial-ssthresh", packets, "2 to 100000 packets"))
        }
        given => Ok(given),
    }
}

fn ack_every(table: &ConnectionTable) -> Result<u32, Problem> {
    let packets = table.ack_every.unwrap_or(2);
    if !(1..=1000).contains(&packets) {
        return Err(out_of_range("ack-every", packets, "1 to 1000 packets"));
    }
    Ok(packets)
}

/// When a connection does what.
struct Times {
    start: Time,
    start_spread: Duration,
    join_spread: Duration,
    stop: Option<Time>,
    max_ack_delay: Duration,
}

fn times(table: &ConnectionTable) -> Result<Times, Problem> {
    let span = |given: Option<Text<ASpan>>| given.map_or(Duration::ZERO, |span| span.0);
    let start = table.start.map_or(Duration::ZERO, |start| start.0);
    let (start_spread, join_spread) = (span(table.start_spread), span(table.join_spread));
    if let Some(Text(stop)) = table.stop
        && stop <= start + start_spread
    {
        return Err(out_of_range("stop", stop, "later than the start and its spread"));
    }
    let usual = match table.transport {
        TransportName::Quic => QUIC_ACK_DELAY,
        TransportName::Tcp => TCP_ACK_DELAY,
    };
    let max_ack_delay = table.max_ack_delay.map_or(usual, |delay| delay.0);
    if max_ack_delay > Duration::from_secs(10) {
        return Err(out_of_range("max-ack-delay", max_ack_delay, "at most 10s"));
    }
    let stop = table.stop.map(|stop| Time::ZERO + stop.0);
    Ok(Times { start: Time::ZERO + start, start_spread, join_spread, stop, max_ack_delay })
}

fn paths(located: &Located<ConnectionTable>, base: Option<&Topology>, names: &Names) -> Result<Vec<Path>, Fault> {
    let table = &located.value;
    let here = |problem| (located.span.clone(), problem);
    if let Some(role) = &table.role {
        if !table.path.is_empty() {
            return Err(here(both(&table.name, "role", "path")));
        }
        let Some(Topology { roles: known, .. }) = base else {
            let what = format!("connection '{}' with a role", table.name);
            let remedy = "write topology = \"two-links\" or another one, or give the connection paths";
            return Err((role.span.clone(), Problem::Missing { what, key: "topology", remedy }));
        };
        let found = known.iter().find(|held| held.name == role.value).ok_or_else(|| {
            let known = known.iter().map(|role| role.name.as_str()).take(20).collect::<Vec<_>>().join(", ");
            (role.span.clone(), Problem::UnknownRole { name: role.value.clone(), known })
        })?;
        let tables = found.paths.iter().map(|route| PathTable { route: route.clone(), ..PathTable::default() });
        let each = tables.enumerate();
        return each.map(|(index, path)| one_path(&path, table.usual_wait(index), names).map_err(here)).collect();
    }
    if table.path.is_empty() {
        let remedy = "add [[connection.path]] with route = [\"LINK\"], or role = \"NAME\" of the topology";
        return Err(here(Problem::Missing { what: format!("connection '{}'", table.name), key: "path", remedy }));
    }
    if table.path.len() > MAX_PATHS {
        return Err(here(out_of_range("the number of paths", table.path.len(), "at most 64")));
    }
    if let Some(first) = table.path.first().filter(|path| path.value.join_after.is_some()) {
        return Err((first.span.clone(), Problem::FirstJoins(table.name.clone())));
    }
    let each = table.path.iter().enumerate().map(|(index, path)| {
        let wait = path.value.join_after.map_or(table.usual_wait(index), |wait| wait.0);
        one_path(&path.value, wait, names).map_err(|problem| (path.span.clone(), problem))
    });
    each.collect()
}

impl ConnectionTable {
    /// How long after the one before it a subflow joins, where its path says nothing else.
    fn usual_wait(&self, index: usize) -> Duration {
        self.join_after.filter(|_| index > 0).map_or(Duration::ZERO, |wait| wait.0)
    }
}

fn one_path(table: &PathTable, join_after: Duration, names: &Names) -> Result<Path, Problem> {
    let forward = names.route(&table.route)?;
    let backward = match &table.back {
        Some(back) => names.route(back)?,
        None => names.route_back(&table.route)?,
    };
    let cost = table.cost.unwrap_or(1.0);
    if !(0.0..=1e6).contains(&cost) {
        return Err(out_of_range("cost", cost, "0 to 1000000"));
    }
    let priority = if table.backup { Priority::Backup } else { Priority::Normal };
    Ok(Path { forward, backward, cost, priority, join_after })
}

fn workload(table: &ConnectionTable) -> Result<Workload, Problem> {
    let mut found: Option<(&'static str, Workload)> = None;
    let mut offer = |key, workload: Option<Workload>| match (found.take(), workload) {
        (Some((first, _)), Some(_)) => Err(both(&table.name, first, key)),
        (held, None) => {
            found = held;
            Ok(())
        }
        (None, Some(workload)) => {
            found = Some((key, workload));
            Ok(())
        }
    };
    offer("file", table.file.map(|size| Workload::File(size.0)))?;
    let arrivals = table.arrivals.as_ref().map(|arrivals| Workload::Arrivals {
        size: arrivals.size.0,
        every: arrivals.every.0,
        poisson: arrivals.timing == Timing::Poisson,
    });
    offer("arrivals", arrivals)?;
    offer("rate", table.rate.map(|rate| Workload::Rate(rate.0)))?;
    let on_off = table.on_off.as_ref().map(|times| Workload::OnOff {
        on: times.on.0,
        off: times.off.0,
        random: times.timing == Timing::Poisson,
    });
    offer("on-off", on_off)?;
    let workload = found.map_or(Workload::Endless, |(_, workload)| workload);
    check_workload(&workload).map(|()| workload)
}

fn check_workload(workload: &Workload) -> Result<(), Problem> {
    let (size, interval) = match workload {
        Workload::File(size) => (*size, MIN_INTERVAL),
        Workload::Arrivals { size, every, .. } => (*size, *every),
        Workload::OnOff { on, off, .. } => (Bytes::new(1), (*on).min(*off)),
        Workload::Rate(rate) if rate.is_zero() || rate.as_bps() > MAX_RATE_BPS => {
            return Err(out_of_range("rate", rate, "above zero and at most 1Tbit, which no link exceeds"));
        }
        Workload::Endless | Workload::Rate(_) => (Bytes::new(1), MIN_INTERVAL),
    };
    if size.is_zero() {
        return Err(out_of_range("the size of a file", size, "above zero"));
    }
    if interval < MIN_INTERVAL {
        return Err(out_of_range("an interval", interval, "at least 1us"));
    }
    Ok(())
}
