//! From a scenario to a run: links, hosts, and the first events.

use manypath_cc::CongestionControl;
use manypath_core::{Bytes, Duration, Time};
use manypath_link::Link;
use manypath_scenario::{AckRule, Connection, Path, Scenario, Transport};
use manypath_session::{Carriage, Config, PathInit, PeerLimits, Role, Session};
use rand_core::Rng;

use crate::Controllers;
use crate::application::Writer;
use crate::carrier::{Carrier, Receiver, Sender, Sent};
use crate::causes::Causes;
use crate::engine::{Join, Simulation};
use crate::error::RunError;
use crate::events::Target;
use crate::files::FileLog;
use crate::host::{End, World};
use crate::meter::Meter;
use crate::network::{Network, Routes};
use crate::recorder::Recorder;
use crate::shared_window::SharedWindow;
use crate::sizes::Sizes;
use crate::snapshot::Snapshot;
use crate::source::Background;
use crate::window::Windows;
use crate::{quic, tcp};

/// How many files one connection may have under way.
const MAX_FLOWS: u32 = 4096;

/// A flow's window that never holds anything up: the connection's counts, as in TCP. One of the same size would open by
/// quarters, so that less than the buffer was in flight.
const UNBOUNDED: Bytes = Bytes::new(1 << 60);

/// A run at its beginning.
pub(crate) fn simulation(
    scenario: &Scenario,
    seed: u64,
    controllers: &mut Controllers<'_>,
) -> Result<Simulation, RunError> {
    let links = scenario.links.iter().map(|link| {
        let config = link.drawn(scenario.duration, seed);
        Link::new(&config, seed, &link.name).map_err(|source| RunError::Link { link: link.name.clone(), source })
    });
    let mut world = World::new(Network::new(links.collect::<Result<_, _>>()?), Time::ZERO + scenario.warmup);
    let measured = scenario.sample.is_some();
    let mut ends = Vec::new();
    let mut joins = Vec::new();
    // Controllers that no registry has may know of each other.
    let mut custom = false;
    for (index, connection) in scenario.connections.iter().enumerate() {
        let times = connection.joins(seed);
        let start = times.first().copied().unwrap_or(connection.start);
        // Those that are there from the start, and those that come.
        let present = times.partition_point(|at| *at == start);
        for (path, at) in connection.paths.iter().zip(&times).skip(present) {
            // Paths of a scenario are counted in 32 bits with room.
            world.events.schedule(*at, Target::Join(u32::try_from(joins.len()).unwrap_or(u32::MAX)));
            joins.push(Join {
                connection: index,
                name: connection.name.clone(),
                init: init(scenario, connection, path),
            });
        }
        // A scenario's connections are counted in 32 bits with room.
        let number = u32::try_from(index).unwrap_or(u32::MAX / 2);
        let mut one = |index, cc| {
            let mut end = end(scenario, connection, index, cc, seed, &mut world.network.routes)?;
            add_paths(scenario, &mut end.session, connection, start, present)?;
            Ok::<_, RunError>(end)
        };
        let controller = controllers(connection);
        custom |= controller.is_some();
        let mut sender = one(number * 2, controller)?;
        sender.writer = Some(Writer::new(connection, start, seed, measured));
        ends.push(sender);
        ends.push(one(number * 2 + 1, None)?);
        world.events.schedule(start, Target::Application(number));
        if measured {
            world.meters.push(Meter::new(connection.paths.len()));
        }
        world.files.push(FileLog::default());
        world.drops.push(vec![Causes::default(); connection.paths.len()].into());
    }
    let mut sources = Vec::new();
    for (index, source) in scenario.sources.iter().enumerate() {
        let route = world.network.routes.add(&source.route);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        sources.push(Background::new(index, source, route, seed));
        world.events.schedule(source.start, Target::Source(index));
    }
    if !scenario.warmup.is_zero() {
        world.events.schedule(Time::ZERO + scenario.warmup, Target::WarmedUp);
    }
    let recorder = scenario.sample.map(|interval| {
        world.events.schedule(Time::ZERO + interval, Target::Sample);
        Recorder::new(interval, scenario, seed)
    });
    let windows = Windows::new(ends.len(), sources.len(), world.network.least_delay());
    let mut simulation =
        Simulation { world, ends, sources, joins, steps: 0, baseline: Snapshot::default(), recorder, windows };
    if custom {
        simulation.windows.forbid();
    }
    simulation.baseline = Snapshot::take(&mut simulation);
    Ok(simulation)
}

/// One end of a connection; the even one opens it. `cc` takes the place of the controller that the scenario names.
fn end(
    scenario: &Scenario,
    connection: &Connection,
    index: u32,
    cc: Option<Box<dyn CongestionControl>>,
    seed: u64,
    routes: &mut Routes,
) -> Result<End, RunError> {
    let algorithm = |source| RunError::Algorithm { connection: connection.name.clone(), source };
    let role = if index.is_multiple_of(2) { Role::Client } else { Role::Server };
    // The receiver's carrier counts packets and takes the session's acknowledgement along; the session need not count too.
    let records_per_ack = if role == Role::Client { connection.ack_every } else { u32::MAX };
    let defaults = Config::new(role);
    let carriage = match connection.transport {
        Transport::Quic => Carriage::Datagrams,
        Transport::Tcp { .. } => Carriage::Streams,
    };
    let config = Config {
        carriage,
        record_header: connection.record_header,
        send_buffer: connection.send_buffer,
        receive_window: connection.receive_buffer,
        flow_window: UNBOUNDED,
        max_flows: MAX_FLOWS,
        records_per_ack,
        max_ack_delay: connection.max_ack_delay,
        pacing_burst: connection.pacing_burst,
        pace_windows: connection.pace_windows,
        initial_window_packets: connection.initial_window,
        initial_ssthresh_packets: connection.initial_ssthresh,
        max_paths: manypath_session::MAX_PATHS,
        peer: PeerLimits { receive_window: connection.receive_buffer, flow_window: UNBOUNDED, max_flows: MAX_FLOWS },
        ..defaults
    };
    // The controller's randomness is named after the connection, as links' is after the link.
    let cc_seed = manypath_link::generator(seed, &format!("{}/cc", connection.name)).next_u64();
    let cc = match cc {
        Some(cc) => cc,
        None => manypath_cc::create(&connection.cc, cc_seed).map_err(algorithm)?,
    };
    let scheduler = manypath_sched::create(&crate::scheduler(connection)).map_err(algorithm)?;
    // RFC 3168 s5: the codepoint says that the sender reacts.
    let ecn = connection.ecn && cc.answers_marks();
    let session = Session::new(config, cc, scheduler);
    let mut carriers = Vec::new();
    for path in &connection.paths {
        let links = if role == Role::Client { &path.forward } else { &path.backward };
        let (sender, receiver) = halves(connection, handshake_rtt(scenario, path));
        carriers.push(Carrier { sender, receiver, route: routes.add(links), sent: Sent::default(), lost: 0 });
    }
    let mut end = End::new(index, session, carriers, Sizes::of(connection), ecn);
    if let Transport::Tcp { ack_rule: AckRule::Window, .. } = connection.transport {
        end.window = Some(SharedWindow::new(connection.receive_buffer.get()));
    }
    Ok(end)
}

/// Gives an end the paths that are there from the start.
fn add_paths(
    scenario: &Scenario,
    session: &mut Session,
    connection: &Connection,
    start: Time,
    count: usize,
) -> Result<(), RunError> {
    for path in &connection.paths[..count] {
        let added = session.add_path(start, init(scenario, connection, path));
        added.map_err(|source| RunError::Path { connection: connection.name.clone(), source })?;
    }
    Ok(())
}

/// What the handshake of a path measures where nothing queues.
fn handshake_rtt(scenario: &Scenario, path: &Path) -> Duration {
    let links = path.forward.iter().chain(&path.backward);
    links.map(|&link| scenario.links[link].config.delay).fold(Duration::ZERO, |sum, delay| sum + delay)
}

/// A path as sessions hear of it.
fn init(scenario: &Scenario, connection: &Connection, path: &Path) -> PathInit {
    PathInit {
        max_datagram: connection.packet - connection.overhead,
        cost: path.cost,
        priority: path.priority,
        handshake_rtt: Some(handshake_rtt(scenario, path)),
    }
}

/// The halves of a subflow's carrier.
fn halves(connection: &Connection, handshake_rtt: Duration) -> (Sender, Receiver) {
    let (every, max_ack_delay) = (connection.ack_every, connection.max_ack_delay);
    match connection.transport {
        Transport::Quic => {
            (Sender::Quic(quic::Sender::new(max_ack_delay)), Receiver::Quic(quic::Receiver::new(every, max_ack_delay)))
        }
        Transport::Tcp { recovery, min_rto, reinject_after, .. } => {
            let config = tcp::Config { recovery, min_rto, max_ack_delay, handshake_rtt, reinject_after };
            let receiver = tcp::Receiver::new(every, max_ack_delay, connection.receive_buffer.get());
            (Sender::Tcp(tcp::Sender::new(config)), Receiver::Tcp(receiver))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_goes_there_and_back() {
        let text = "duration = \"1s\"\n[[link]]\nname = \"a\"\nrate = \"1Mbit\"\nqueue = \"9packets\"\ndelay = \"10ms\"\n\
                    back = { delay = \"25ms\" }\n[[link]]\nname = \"b\"\nrate = \"1Mbit\"\nqueue = \"9packets\"\n\
                    delay = \"3ms\"\n[[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{ route = [\"a\", \"b\"] }]\n";
        let scenario = manypath_scenario::parse(text, "setup.toml", std::path::Path::new(".")).unwrap();
        let found = handshake_rtt(&scenario, &scenario.connections[0].paths[0]);
        assert_eq!(found, Duration::from_millis(10 + 3 + 3 + 25));
    }
}
