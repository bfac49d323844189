//! What a scenario may cost: engines take memory for what is drawn, recorded and on its way.

use core::ops::Range;

use manypath_core::Bytes;
use manypath_link::{MAX_CHANGES, QueueLimit};

use super::{Fault, out_of_range};
use crate::error::Problem;
use crate::model::{Connection, Draw, Link, Scenario, Transport, Workload};

/// The most values of all time series: some gigabytes.
const MAX_VALUES: u64 = 300_000_000;
/// The most packets on their way at once: some gigabytes.
const MAX_FLYING: f64 = 30e6;
/// The most values drawn anew, of all links.
const MAX_DRAWN: u64 = 10_000_000;

/// Values that time series have at each time: of a connection, of a subflow without what its algorithms report, of a link.
const SERIES: (u64, u64, u64) = (10, 24, 9);

/// Checks a scenario. `spans` are the places of its links, `sample` that of the interval of time series.
pub(super) fn check(scenario: &Scenario, spans: &[Range<usize>], sample: Option<&Range<usize>>) -> Result<(), Fault> {
    check_draws(scenario, spans)?;
    check_queues(scenario, spans)?;
    if let Some(span) = sample {
        check_series(scenario).map_err(|problem| (span.clone(), problem))?;
    }
    check_flying(scenario, spans)
}

fn check_draws(scenario: &Scenario, spans: &[Range<usize>]) -> Result<(), Fault> {
    let mut left = MAX_DRAWN;
    for (link, span) in scenario.links.iter().zip(spans) {
        let Some(redraw) = &link.redraw else { continue };
        let draws = scenario.duration.as_nanos() / redraw.every.as_nanos().max(1) + 1;
        if draws > left.min(MAX_CHANGES as u64) {
            let what = format!("link '{}': the number of draws", link.name);
            let range = "at most a million, and ten million of all links: draw less often";
            return Err((span.clone(), out_of_range(&what, draws, range)));
        }
        left -= draws;
    }
    Ok(())
}

/// A queue in bytes that is shorter than a packet drops all that come, for ever.
fn check_queues(scenario: &Scenario, spans: &[Range<usize>]) -> Result<(), Fault> {
    let check = |user: &str, packet: Bytes, route: &[usize]| {
        let short = route.iter().find_map(|index| match scenario.links[*index].config.queue {
            QueueLimit::Bytes(queue) if queue < packet => Some((*index, queue)),
            _ => None,
        });
        let Some((index, queue)) = short else { return Ok(()) };
        let (link, user) = (scenario.links[index].name.clone(), user.to_owned());
        Err((spans[index].clone(), Problem::QueueBelowPacket { link, queue, user, packet }))
    };
    for connection in &scenario.connections {
        let packet = largest_packet(connection);
        let acknowledgement = smallest_acknowledgement(connection);
        connection.paths.iter().try_for_each(|path| {
            check(&connection.name, packet, &path.forward)?;
            check(&connection.name, acknowledgement, &path.backward)
        })?;
    }
    scenario.sources.iter().try_for_each(|source| check(&source.name, source.packet, &source.route))
}

/// What a connection's packets have on the wire: a full one's size, unless all of its files are smaller.
fn largest_packet(connection: &Connection) -> Bytes {
    match connection.workload {
        Workload::File(size) | Workload::Arrivals { size, .. } => {
            connection.packet.min(size + connection.overhead + connection.record_header)
        }
        Workload::Endless | Workload::Rate(_) | Workload::OnOff { .. } => connection.packet,
    }
}

/// What an acknowledgement has at least: over datagrams an ACK frame (RFC 9000 s19.3) and the session's record, as TCP a DSS option
/// (RFC 8684 s3.3).
fn smallest_acknowledgement(connection: &Connection) -> Bytes {
    let carried = match connection.transport {
        Transport::Quic => 6 + 18,
        Transport::Tcp { .. } => 8,
    };
    connection.overhead + Bytes::new(carried)
}

fn check_series(scenario: &Scenario) -> Result<(), Problem> {
    let Some(interval) = scenario.sample else { return Ok(()) };
    let samples = scenario.duration.as_nanos() / interval.as_nanos().max(1);
    // Paths, connections and links are counted in 32 bits with room.
    let subflows = scenario.connections.iter().map(|connection| connection.paths.len() as u64).sum::<u64>();
    let (connection, subflow, link) = SERIES;
    let each = scenario.connections.len() as u64 * connection + subflows * subflow + scenario.links.len() as u64 * link;
    let values = samples.saturating_mul(each);
    if values > MAX_VALUES {
        let range = "at most 300 million: sample less often, or fewer connections";
        return Err(out_of_range("the number of values in time series", values, range));
    }
    Ok(())
}

/// What may be on a link at once: what it holds, or what its users can have there if that is less.
fn check_flying(scenario: &Scenario, spans: &[Range<usize>]) -> Result<(), Fault> {
    let mut users = vec![Users::default(); scenario.links.len()];
    for connection in &scenario.connections {
        let window = connection.send_buffer.min(connection.receive_buffer).as_f64();
        for path in &connection.paths {
            for link in path.forward.iter().chain(&path.backward) {
                users[*link].add(connection.packet, window);
            }
        }
    }
    for source in &scenario.sources {
        let sent = source.rate.as_bps() / 8.0 * scenario.duration.as_secs_f64();
        source.route.iter().for_each(|link| users[*link].add(source.packet, sent));
    }
    let mut all = 0.0;
    for ((link, users), span) in scenario.links.iter().zip(&users).zip(spans) {
        let Some(packet) = users.packet else { continue };
        all += (held(link, packet) / packet.as_f64()).min(users.packets);
        if all > MAX_FLYING {
            let what = format!("link '{}': the number of packets on their way at once", link.name);
            let range = "at most 30 million on all links: a lower rate, a shorter delay or smaller buffers";
            return Err((span.clone(), out_of_range(&what, format!("{all:.0}"), range)));
        }
    }
    Ok(())
}

/// What uses a link.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    /// The smallest packet.
    packet: Option<Bytes>,
    /// The most packets that they can have on it.
    packets: f64,
}

impl Users {
    fn add(&mut self, packet: Bytes, bytes: f64) {
        self.packet = Some(self.packet.map_or(packet, |held| held.min(packet)));
        self.packets += bytes / packet.as_f64();
    }
}

/// The most bytes that fit on a link: its delay at its rate, and its queue.
fn held(link: &Link, packet: Bytes) -> f64 {
    let redraw = link.redraw.as_ref();
    let drawn = |draw: Option<&Draw>| draw.map_or(0.0, highest);
    let rate = link.config.peak_rate().as_bps().max(drawn(redraw.and_then(|redraw| redraw.rate.as_ref())));
    let delay = link.config.longest_delay().as_secs_f64().max(drawn(redraw.and_then(|redraw| redraw.delay.as_ref())));
    let queue = match link.config.queue {
        QueueLimit::Packets(packets) => packet.as_f64() * packets as f64,
        QueueLimit::Bytes(bytes) => bytes.as_f64(),
        QueueLimit::Wait(wait) => rate / 8.0 * wait.as_secs_f64(),
    };
    rate.min(manypath_link::MAX_RATE_BPS) / 8.0 * delay.min(manypath_link::MAX_DELAY.as_secs_f64()) + queue
}

/// The highest value that a draw gives, but for one in a billion.
fn highest(draw: &Draw) -> f64 {
    match draw {
        Draw::Uniform(_, high) => *high,
        Draw::Choice(values) => values.iter().copied().fold(0.0, f64::max),
        Draw::Normal(mean, deviation) => mean + 6.0 * deviation,
    }
}
