//! Counters at one time, so that summaries can leave out what came before.

use manypath_core::{Bytes, Time};
use manypath_link::Counters;
use manypath_session::Totals;

use crate::carrier::Sent;
use crate::causes::Causes;
use crate::engine::Simulation;

/// Counters of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) packets: u64,
    pub(crate) read: Bytes,
    pub(crate) totals: Totals,
    pub(crate) received_again: Bytes,
    pub(crate) subflows: Vec<SubflowCounts>,
}

/// Counters of one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubflowCounts {
    pub(crate) sent: Sent,
    pub(crate) lost: u64,
    pub(crate) delivered: Bytes,
    pub(crate) dropped: Causes,
}

/// All counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) connections: Vec<ConnectionCounts>,
    pub(crate) links: Vec<Counters>,
}

impl Snapshot {
    pub(crate) fn take(simulation: &mut Simulation) -> Self {
        let at = simulation.world.now;
        let connections = simulation.ends.chunks(2).zip(&simulation.world.drops).map(|(pair, drops)| {
            let [sender, receiver] = pair else { return ConnectionCounts::default() };
            let views = &sender.session.view().subflows;
            let subflows = sender.carriers.iter().zip(drops).enumerate().map(|(number, (carrier, dropped))| {
                // A subflow that has not joined yet has delivered nothing.
                let delivered = views.get(number).map_or(Bytes::ZERO, |view| view.delivered);
                SubflowCounts { sent: carrier.sent, lost: carrier.lost, delivered, dropped: *dropped }
            });
            let again = receiver.carriers.iter().map(|carrier| carrier.receiver.received_again()).sum();
            ConnectionCounts {
                packets: receiver.reader.packets,
                read: receiver.reader.read,
                totals: sender.session.totals(),
                received_again: receiver.session.totals().received_again + Bytes::new(again),
                subflows: subflows.collect(),
            }
        });
        let connections = connections.collect();
        let links = simulation.world.network.wires.iter_mut().map(|wire| wire.link.counters(at)).collect();
        Self { at, connections, links }
    }
}
