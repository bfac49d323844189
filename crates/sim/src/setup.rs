//! From a scenario to a run: links, hosts, and the first events.

use manypath_cc::CongestionControl;
use manypath_core::{Bytes, Time};
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
    let mut present = Vec::new();
    // Controllers that no registry has may know of each other.
    let mut custom = false;
    for (index, connection) in scenario.connections.iter().enumerate() {
        let times = connection.joins(seed);
        let start = times.first().copied().unwrap_or(connection.start);
        for ((number, path), at) in connection.paths.iter().enumerate().zip(&times) {
            // Paths of a scenario are counted in 32 bits with room.
            let next = u32::try_from(joins.len()).unwrap_or(u32::MAX);
            if *at == Time::ZERO {
                present.push(next);
            } else {
                world.events.schedule(*at, Target::Join(next));
            }
            let init = init(connection, path);
            let name = connection.name.clone();
            joins.push(Join { connection: index, name, path: number, init, late: *at > start });
        }
        // A scenario's connections are counted in 32 bits with room.
        let number = u32::try_from(index).unwrap_or(u32::MAX / 2);
        let mut one = |index, cc| end(connection, index, cc, seed, &mut world.network.routes);
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
    for index in present {
        simulation.join(index)?;
    }
    simulation.baseline = Snapshot::take(&mut simulation);
    Ok(simulation)
}

/// One end of a connection; the even one opens it. `cc` takes the place of the controller that the scenario names.
fn end(
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
        let (sender, receiver) = halves(connection);
        carriers.push(Carrier { sender, receiver, route: routes.add(links), sent: Sent::default(), lost: 0 });
    }
    let mut end = End::new(index, session, carriers, Sizes::of(connection), ecn);
    if let Transport::Tcp { ack_rule: AckRule::Window, .. } = connection.transport {
        end.window = Some(SharedWindow::new(connection.receive_buffer.get()));
    }
    Ok(end)
}

/// A path as sessions hear of it before its handshake.
fn init(connection: &Connection, path: &Path) -> PathInit {
    PathInit {
        max_datagram: connection.packet - connection.overhead,
        cost: path.cost,
        priority: path.priority,
        handshake_rtt: None,
    }
}

/// The halves of a subflow's carrier.
fn halves(connection: &Connection) -> (Sender, Receiver) {
    let (every, max_ack_delay) = (connection.ack_every, connection.max_ack_delay);
    match connection.transport {
        Transport::Quic => {
            (Sender::Quic(quic::Sender::new(max_ack_delay)), Receiver::Quic(quic::Receiver::new(every, max_ack_delay)))
        }
        Transport::Tcp { recovery, min_rto, reinject_after, .. } => {
            let config = tcp::Config { recovery, min_rto, max_ack_delay, reinject_after };
            let receiver = tcp::Receiver::new(every, max_ack_delay, connection.receive_buffer.get());
            (Sender::Tcp(tcp::Sender::new(config)), Receiver::Tcp(receiver))
        }
    }
}
