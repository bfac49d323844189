//! From tables to a [`Scenario`]: names become indices, defaults are filled in, and what makes no sense is refused.

use core::ops::Range;
use std::collections::BTreeMap;
use std::path::Path as FilePath;

use manypath_core::{AlgorithmSpec, Bytes, Duration, Priority, Time};
use manypath_link::{
    Capacity, Change, GilbertElliott, Link as LinkModel, LinkConfig, Loss, MAX_CHANGES, QueueLimit, Red, Trace,
};

use crate::error::Problem;
use crate::file::{ConnectionTable, DrawTable, File, LinkTable, PathTable, RecoveryName, SourceTable, TransportName};
use crate::model::{Connection, Draw, Link, Path, Recovery, Redraw, Scenario, Source, Transport, Workload};
use crate::topologies::{BACK_QUEUE, Topology, back_name, topologies, topology};
use crate::units::{Located, Text, Timing, Written};

/// The longest simulation: ten years.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 86_400);
/// The most connections of a scenario. Each costs some kilobytes.
const MAX_CONNECTIONS: u64 = 100_000;
/// The most samples of a time series.
const MAX_SAMPLES: u64 = 10_000_000;
/// The largest packet: what the IP header's length field can say.
const MAX_PACKET: Bytes = Bytes::new(65_535);
/// The least room for a record in a packet: sessions work with no less.
const MIN_RECORD: Bytes = Bytes::new(300);
/// The largest buffer of a host: 1 TiB.
const MAX_BUFFER: Bytes = Bytes::new(1 << 40);
/// The shortest time between arrivals, changes and the like.
const MIN_INTERVAL: Duration = Duration::from_micros(1);

/// What a QUIC data packet has around its record, bytes: IPv4 20, UDP 8, short header with an 8-byte connection id and a
/// 4-byte packet number 13, tag 16 (RFC 9001 s5.3), DATAGRAM frame with length 3 (RFC 9221 s4).
const QUIC_OVERHEAD: Bytes = Bytes::new(60);
/// What a DATA record of the session adds to its payload, bytes.
const QUIC_RECORD: Bytes = Bytes::new(26);
/// What an MPTCP segment has around its mapping, bytes: IPv4 20, TCP 20, timestamps 12.
const TCP_OVERHEAD: Bytes = Bytes::new(52);
/// A DSS option with 64-bit numbers, bytes (RFC 8684 s3.3).
const TCP_RECORD: Bytes = Bytes::new(26);

/// A problem and where it is.
pub(crate) type Fault = (Range<usize>, Problem);

/// Makes a scenario of a file's tables. `folder` is where relative paths begin.
pub(crate) fn resolve(file: File, name: &str, folder: &FilePath) -> Result<Scenario, Fault> {
    let duration = checked_duration(&file)?;
    let warmup = file.warmup.as_ref().map_or(Duration::ZERO, |warmup| warmup.value.0);
    if let Some(located) = file.warmup.as_ref().filter(|located| located.value.0 >= duration) {
        return Err((located.span.clone(), out_of_range("warmup", located.value.0, "shorter than the duration")));
    }
    if let Some(located) = &file.sample {
        let interval = located.value.0;
        if interval < MIN_INTERVAL || duration.as_nanos() / interval.as_nanos() > MAX_SAMPLES {
            let range = "at least 1us, and at most 10 million samples long";
            return Err((located.span.clone(), out_of_range("sample", interval, range)));
        }
    }
    let base = match &file.topology {
        None => None,
        Some(located) => Some(topology(&located.value).ok_or_else(|| {
            let known = topologies().map(|topology| topology.name).collect::<Vec<_>>().join(", ");
            (located.span.clone(), Problem::UnknownTopology { name: located.value.clone(), known })
        })?),
    };
    let mut names = Names { links: Vec::new(), index: BTreeMap::new() };
    for link in base.iter().flat_map(|topology| &topology.links) {
        // The names of a topology differ.
        names.add(link.clone());
    }
    for table in file.link {
        let span = table.span;
        names.take(table.value, folder).map_err(|problem| (span, problem))?;
    }
    for link in &names.links {
        if let Some(redraw) = &link.redraw
            && duration.as_nanos() / redraw.every.as_nanos() >= MAX_CHANGES as u64
        {
            return Err((0..0, out_of_range("redraw.every", redraw.every, "a millionth of the duration or longer")));
        }
    }
    let mut taken = BTreeMap::new();
    let mut connections = Vec::new();
    for table in file.connection {
        expand(&table, base.as_ref(), &names, &mut taken, &mut connections)?;
    }
    let mut sources = Vec::new();
    for Located { span, value } in file.source {
        let name = value.name.clone();
        if taken.insert(name.clone(), ()).is_some() {
            return Err((span, Problem::SameName(name)));
        }
        sources.push(source(value, &names).map_err(|problem| (span, problem))?);
    }
    if connections.is_empty() && sources.is_empty() {
        return Err((0..0, Problem::Nothing));
    }
    Ok(Scenario {
        name: file.name.unwrap_or_else(|| name.to_owned()),
        duration,
        warmup,
        sample: file.sample.map(|sample| sample.value.0),
        links: names.links,
        connections,
        sources,
    })
}

fn checked_duration(file: &File) -> Result<Duration, Fault> {
    let Located { span, value: Text(duration) } = &file.duration;
    if duration.is_zero() || *duration > MAX_DURATION {
        return Err((span.clone(), out_of_range("duration", *duration, "above zero and at most ten years")));
    }
    Ok(*duration)
}

fn out_of_range(what: &str, value: impl ToString, range: &'static str) -> Problem {
    Problem::OutOfRange { what: what.to_owned(), value: value.to_string(), range }
}

fn check_name(name: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !name.is_empty() && name.len() <= 100 && name.chars().all(plain) {
        Ok(())
    } else {
        Err(Problem::BadName(name.chars().take(40).collect()))
    }
}

/// The links so far, by name.
struct Names {
    links: Vec<Link>,
    index: BTreeMap<String, usize>,
}

impl Names {
    fn add(&mut self, link: Link) {
        self.index.insert(link.name.clone(), self.links.len());
        self.links.push(link);
    }

    fn find(&self, name: &str) -> Result<usize, Problem> {
        self.index.get(name).copied().ok_or_else(|| {
            let mut known = self.index.keys().take(20).cloned().collect::<Vec<_>>().join(", ");
            if known.is_empty() {
                known = "none: add [[link]] tables or a topology".to_owned();
            }
            Problem::UnknownLink { name: name.to_owned(), known }
        })
    }

    /// Takes a table: a new link, or a change of one there is.
    fn take(&mut self, table: LinkTable, folder: &FilePath) -> Result<(), Problem> {
        check_name(&table.name)?;
        let known = self.index.get(&table.name).copied();
        let mut link = match known {
            Some(index) => self.links[index].clone(),
            None => new_link(&table)?,
        };
        change_link(&mut link, &table, folder)?;
        check_link(&link)?;
        let back = self.back_of(&table, &link)?;
        match known {
            Some(index) => self.links[index] = link,
            None => self.add(link),
        }
        if let Some(back) = back {
            match self.index.get(&back.name).copied() {
                Some(index) => self.links[index] = back,
                None => self.add(back),
            }
        }
        Ok(())
    }

    /// The way back of a link, new or changed.
    fn back_of(&self, table: &LinkTable, there: &Link) -> Result<Option<Link>, Problem> {
        if table.one_way {
            return match table.back {
                Some(_) => Err(both(&table.name, "one-way", "back")),
                None => Ok(None),
            };
        }
        let name = back_name(&table.name);
        let mut back = match self.index.get(&name) {
            Some(index) => self.links[*index].clone(),
            None => {
                let rate = there.config.peak_rate();
                let config = LinkConfig::new(rate, there.config.delay, QueueLimit::Packets(BACK_QUEUE));
                Link { name, from: there.to.clone(), to: there.from.clone(), config, redraw: None }
            }
        };
        // A change of rate or delay is one of the whole link, unless the way back has its own.
        if let Some(Text(rate)) = table.back.as_ref().and_then(|back| back.rate).or(table.rate) {
            back.config.capacity = Capacity::Rate(rate);
        }
        if let Some(Text(delay)) = table.back.as_ref().and_then(|back| back.delay).or(table.delay) {
            back.config.delay = delay;
        }
        if let Some(own) = &table.back {
            back.config.queue = own.queue.map_or(back.config.queue, |queue| queue.0);
            back.config.loss = own.loss.map_or(back.config.loss, |loss| Loss::Random(loss.0));
        }
        check_link(&back)?;
        Ok(Some(back))
    }

    /// A route of names as indices.
    fn route(&self, names: &[String]) -> Result<Vec<usize>, Problem> {
        let mut route = Vec::new();
        for name in names {
            let index = self.find(name)?;
            if route.contains(&index) {
                return Err(Problem::Cycle(name.clone()));
            }
            route.push(index);
        }
        if route.is_empty() {
            return Err(Problem::EmptyRoute);
        }
        self.check_nodes(&route)?;
        Ok(route)
    }

    /// Links with nodes meet, and no node is passed twice.
    fn check_nodes(&self, route: &[usize]) -> Result<(), Problem> {
        let mut passed: Vec<&str> = Vec::new();
        for pair in route.windows(2) {
            let (first, second) = (&self.links[pair[0]], &self.links[pair[1]]);
            if first.to != second.from {
                return Err(Problem::Broken {
                    first: first.name.clone(),
                    end: first.to.clone(),
                    second: second.name.clone(),
                    begin: second.from.clone(),
                });
            }
        }
        for link in route.iter().map(|index| &self.links[*index]) {
            if !link.from.is_empty() && passed.contains(&link.from.as_str()) {
                return Err(Problem::Cycle(link.from.clone()));
            }
            passed.push(&link.from);
        }
        match route.last().map(|index| self.links[*index].to.as_str()) {
            Some(end) if !end.is_empty() && passed.contains(&end) => Err(Problem::Cycle(end.to_owned())),
            _ => Ok(()),
        }
    }

    /// The way back of a route.
    fn route_back(&self, route: &[String]) -> Result<Vec<usize>, Problem> {
        let names: Vec<String> = route.iter().rev().map(|name| back_name(name)).collect();
        if let Some(at) = names.iter().position(|name| !self.index.contains_key(name)) {
            return Err(Problem::NoWayBack(route[route.len() - 1 - at].clone()));
        }
        self.route(&names)
    }
}

fn both(what: &str, first: &'static str, second: &'static str) -> Problem {
    Problem::Both { what: format!("'{what}'"), first, second }
}

/// A link that the topology does not have: it must say rate, delay and queue.
fn new_link(table: &LinkTable) -> Result<Link, Problem> {
    let missing = |key, remedy| Problem::Missing { what: format!("link '{}'", table.name), key, remedy };
    if table.rate.is_none() && table.trace.is_none() {
        return Err(missing("rate", "write rate = \"100Mbit\", or trace = \"FILE\""));
    }
    let delay = table.delay.ok_or_else(|| missing("delay", "write delay = \"15ms\""))?.0;
    let queue = table.queue.ok_or_else(|| missing("queue", "write queue = \"250packets\" or \"375kB\""))?.0;
    // Replaced by the table's rate or trace.
    let config = LinkConfig::new(manypath_core::Rate::from_mbps(1.0), delay, queue);
    let (from, to) = (table.from.clone().unwrap_or_default(), table.to.clone().unwrap_or_default());
    Ok(Link { name: table.name.clone(), from, to, config, redraw: None })
}

fn change_link(link: &mut Link, table: &LinkTable, folder: &FilePath) -> Result<(), Problem> {
    let config = &mut link.config;
    match (&table.rate, &table.trace) {
        (Some(_), Some(_)) => return Err(both(&table.name, "rate", "trace")),
        (Some(Text(rate)), None) => config.capacity = Capacity::Rate(*rate),
        (None, Some(path)) => config.capacity = Capacity::Trace(read_trace(folder, path)?),
        (None, None) => {}
    }
    config.delay = table.delay.map_or(config.delay, |delay| delay.0);
    config.jitter = table.jitter.map_or(config.jitter, |jitter| jitter.0);
    config.reorder = table.reorder.unwrap_or(config.reorder);
    config.queue = table.queue.map_or(config.queue, |queue| queue.0);
    config.ecn_threshold = table.ecn.map(|threshold| threshold.0).or(config.ecn_threshold);
    if let Some(Text(loss)) = table.loss {
        config.loss = match table.loss_burst {
            None => Loss::Random(loss),
            Some(burst) if (1.0..=1e9).contains(&burst) && loss < 1.0 => {
                Loss::Bursty(GilbertElliott::simple(loss, burst))
            }
            Some(burst) => return Err(out_of_range("loss-burst", burst, "at least 1, with a loss below 100%")),
        };
    } else if table.loss_burst.is_some() {
        let remedy = "write loss = \"1%\": the mean share of packets lost";
        return Err(Problem::Missing { what: format!("link '{}'", table.name), key: "loss", remedy });
    }
    if let Some(red) = &table.red {
        config.red = Some(Red {
            min: red.min.0,
            max: red.max.0,
            max_probability: red.max_probability.0,
            weight: red.weight,
            gentle: red.gentle,
            ecn: red.ecn,
        });
    }
    if let Some(schedule) = &table.schedule {
        config.schedule = schedule
            .iter()
            .map(|change| Change {
                at: Time::ZERO + change.at.0,
                rate: change.rate.map(|rate| rate.0),
                delay: change.delay.map(|delay| delay.0),
                jitter: change.jitter.map(|jitter| jitter.0),
                loss: change.loss.map(|loss| Loss::Random(loss.0)),
            })
            .collect();
    }
    if let Some(redraw) = &table.redraw {
        if table.schedule.is_some() {
            return Err(both(&table.name, "schedule", "redraw"));
        }
        if redraw.every.0 < Duration::from_millis(1) {
            return Err(out_of_range("redraw.every", redraw.every.0, "at least 1ms"));
        }
        let rate = redraw.rate.as_ref().map(|table| draw(table, |rate| rate.as_bps())).transpose()?;
        let delay = redraw.delay.as_ref().map(|table| draw(table, |delay| delay.as_secs_f64())).transpose()?;
        let loss = redraw.loss.as_ref().map(|table| draw(table, |loss| *loss)).transpose()?;
        link.redraw = Some(Redraw { every: redraw.every.0, rate, delay, loss });
    }
    Ok(())
}

fn draw<W: Written>(table: &DrawTable<W>, number: impl Fn(&W::Value) -> f64) -> Result<Draw, Problem> {
    let number = |text: &Text<W>| number(&text.0);
    match (&table.between, &table.one_of, &table.mean, &table.deviation) {
        (Some([low, high]), None, None, None) if number(low) <= number(high) => {
            Ok(Draw::Uniform(number(low), number(high)))
        }
        (None, Some(values), None, None) if !values.is_empty() => Ok(Draw::Choice(values.iter().map(number).collect())),
        (None, None, Some(mean), Some(deviation)) => Ok(Draw::Normal(number(mean), number(deviation))),
        _ => Err(Problem::Missing {
            what: "a drawn value".to_owned(),
            key: "between",
            remedy: "write between = [LOW, HIGH], or one-of = [...], or mean with deviation",
        }),
    }
}

fn read_trace(folder: &FilePath, path: &str) -> Result<Trace, Problem> {
    let text = std::fs::read_to_string(folder.join(path))
        .map_err(|error| Problem::TraceFile { path: path.to_owned(), reason: error.to_string() })?;
    text.parse().map_err(|source| Problem::Trace { path: path.to_owned(), source })
}

fn check_link(link: &Link) -> Result<(), Problem> {
    let problem = |source| Problem::Link { name: link.name.clone(), source };
    LinkModel::new(&link.config, 0, &link.name).map(drop).map_err(problem)
}

/// Makes the connections of a table.
fn expand(
    table: &Located<ConnectionTable>,
    base: Option<&Topology>,
    names: &Names,
    taken: &mut BTreeMap<String, ()>,
    connections: &mut Vec<Connection>,
) -> Result<(), Fault> {
    let here = |problem| (table.span.clone(), problem);
    let count = u64::from(table.value.count.unwrap_or(1));
    if count == 0 || count + connections.len() as u64 > MAX_CONNECTIONS {
        return Err(here(out_of_range("count", count, "1 to 100000, all connections together")));
    }
    check_name(&table.value.name).map_err(here)?;
    let prototype = connection(table, base, names)?;
    for number in 1..=count {
        let name = match table.value.count {
            None => prototype.name.clone(),
            Some(_) => format!("{}-{number}", prototype.name),
        };
        if taken.insert(name.clone(), ()).is_some() {
            return Err(here(Problem::SameName(name)));
        }
        connections.push(Connection { name, ..prototype.clone() });
    }
    Ok(())
}

fn connection(located: &Located<ConnectionTable>, base: Option<&Topology>, names: &Names) -> Result<Connection, Fault> {
    let table = &located.value;
    let here = |problem| (located.span.clone(), problem);
    let what = || format!("connection '{}'", table.name);
    let paths = paths(located, base, names)?;
    let workload = workload(table).map_err(here)?;
    let tcp = table.transport == TransportName::Tcp;
    let transport = if tcp {
        let recovery = match table.recovery {
            RecoveryName::Sack => Recovery::Sack,
            RecoveryName::NewReno => Recovery::NewReno,
        };
        Transport::Tcp { recovery, min_rto: table.min_rto.map_or(Duration::from_millis(200), |rto| rto.0) }
    } else {
        Transport::Quic
    };
    let packet = table.packet.map_or(Bytes::new(1500), |packet| packet.0);
    let overhead = table.overhead.map_or(if tcp { TCP_OVERHEAD } else { QUIC_OVERHEAD }, |overhead| overhead.0);
    let record_header = if tcp { TCP_RECORD } else { QUIC_RECORD };
    let least = overhead + MIN_RECORD;
    if packet > MAX_PACKET || packet < least {
        let value = format!("{packet} with {overhead} of overhead");
        return Err(here(out_of_range("packet", value, "at most 65535B, and 300B above the overhead")));
    }
    let send_buffer = table.send_buffer.map_or(Bytes::new(16 << 20), |buffer| buffer.0);
    let receive_buffer = table.receive_buffer.map_or(Bytes::new(16 << 20), |buffer| buffer.0);
    for (key, buffer) in [("send-buffer", send_buffer), ("receive-buffer", receive_buffer)] {
        if buffer < packet * 2 || buffer > MAX_BUFFER {
            return Err(here(out_of_range(key, buffer, "at least two packets and at most 1TiB")));
        }
    }
    let initial_window = table.initial_window.unwrap_or(10);
    if !(1..=10_000).contains(&initial_window) {
        return Err(here(out_of_range("initial-window", initial_window, "1 to 10000 packets")));
    }
    let ack_every = table.ack_every.unwrap_or(2);
    if !(1..=1000).contains(&ack_every) {
        return Err(here(out_of_range("ack-every", ack_every, "1 to 1000 packets")));
    }
    let start = table.start.map_or(Duration::ZERO, |start| start.0);
    if let Some(Text(stop)) = table.stop
        && stop <= start
    {
        return Err(here(out_of_range("stop", stop, "later than the start")));
    }
    let max_ack_delay = table.max_ack_delay.map_or(Duration::from_millis(25), |delay| delay.0);
    if max_ack_delay > Duration::from_secs(10) {
        return Err(here(out_of_range("max-ack-delay", max_ack_delay, "at most 10s")));
    }
    let needed = |key, remedy| Problem::Missing { what: what(), key, remedy };
    let algorithm =
        |given: &Option<Located<Text<crate::units::AnAlgorithm>>>| given.as_ref().map(|spec| spec.value.0.clone());
    Ok(Connection {
        name: table.name.clone(),
        cc: algorithm(&table.cc).ok_or_else(|| here(needed("cc", "write cc = \"lia\" or another controller")))?,
        scheduler: algorithm(&table.scheduler).unwrap_or_else(|| AlgorithmSpec::named("minrtt")),
        transport,
        paths,
        workload,
        start: Time::ZERO + start,
        stop: table.stop.map(|stop| Time::ZERO + stop.0),
        packet,
        overhead,
        record_header,
        send_buffer,
        receive_buffer,
        initial_window,
        ack_every,
        max_ack_delay,
        pacing_burst: table.pacing_burst.map_or(Duration::ZERO, |burst| burst.0),
        ecn: table.ecn,
    })
}

fn paths(located: &Located<ConnectionTable>, base: Option<&Topology>, names: &Names) -> Result<Vec<Path>, Fault> {
    let table = &located.value;
    let here = |problem| (located.span.clone(), problem);
    if let Some(role) = &table.role {
        if !table.path.is_empty() {
            return Err(here(both(&table.name, "role", "path")));
        }
        let known = base.map(|topology| topology.roles.as_slice()).unwrap_or_default();
        let found = known.iter().find(|held| held.name == role.value).ok_or_else(|| {
            let known = known.iter().map(|role| role.name.as_str()).take(20).collect::<Vec<_>>().join(", ");
            (role.span.clone(), Problem::UnknownRole { name: role.value.clone(), known })
        })?;
        let tables = found.paths.iter().map(|route| PathTable { route: route.clone(), ..PathTable::default() });
        return tables.map(|path| one_path(&path, names).map_err(here)).collect();
    }
    if table.path.is_empty() {
        let remedy = "add [[connection.path]] with route = [\"LINK\"], or role = \"NAME\" of the topology";
        return Err(here(Problem::Missing { what: format!("connection '{}'", table.name), key: "path", remedy }));
    }
    if table.path.len() > 64 {
        return Err(here(out_of_range("the number of paths", table.path.len(), "at most 64")));
    }
    let each = table.path.iter();
    each.map(|path| one_path(&path.value, names).map_err(|problem| (path.span.clone(), problem))).collect()
}

fn one_path(table: &PathTable, names: &Names) -> Result<Path, Problem> {
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
    Ok(Path { forward, backward, cost, priority })
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
    let (size, interval) = match &workload {
        Workload::File(size) => (*size, MIN_INTERVAL),
        Workload::Arrivals { size, every, .. } => (*size, *every),
        Workload::OnOff { on, off, .. } => (Bytes::new(1), (*on).min(*off)),
        Workload::Rate(rate) if rate.is_zero() => return Err(out_of_range("rate", rate, "above zero")),
        Workload::Endless | Workload::Rate(_) => (Bytes::new(1), MIN_INTERVAL),
    };
    if size.is_zero() {
        return Err(out_of_range("the size of a file", size, "above zero"));
    }
    if interval < MIN_INTERVAL {
        return Err(out_of_range("an interval", interval, "at least 1us"));
    }
    Ok(workload)
}

fn source(table: SourceTable, names: &Names) -> Result<Source, Problem> {
    check_name(&table.name)?;
    let route = names.route(&table.route)?;
    let packet = table.packet.map_or(Bytes::new(1500), |packet| packet.0);
    if packet.is_zero() || packet > MAX_PACKET {
        return Err(out_of_range("packet", packet, "1B to 65535B"));
    }
    let rate = table.rate.0;
    if rate.is_zero() || packet.time_at(rate) < Duration::from_nanos(1) {
        return Err(out_of_range("rate", rate, "above zero, and at most one packet a nanosecond"));
    }
    let on_off = table.on_off.map(|times| (times.on.0, times.off.0));
    if let Some((on, off)) = on_off.filter(|(on, off)| (*on).min(*off) < MIN_INTERVAL) {
        return Err(out_of_range("an interval", on.min(off), "at least 1us"));
    }
    let start = Time::ZERO + table.start.map_or(Duration::ZERO, |start| start.0);
    let stop = table.stop.map(|stop| Time::ZERO + stop.0);
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        return Err(out_of_range("stop", stop.since(Time::ZERO), "later than the start"));
    }
    Ok(Source { name: table.name, route, rate, packet, poisson: table.timing == Timing::Poisson, on_off, start, stop })
}
