//! Background traffic: packets at a rate, whatever the network does to them.

use manypath_link::Ecn;
use manypath_scenario::Source;

use crate::events::Target;
use crate::host::World;
use crate::packet::{Body, Head, NOBODY};

/// A source at work.
#[derive(Debug)]
pub(crate) struct Background {
    index: u32,
    packet: Head,
    traffic: manypath_scenario::Background,
    pub(crate) sent: u64,
}

impl Background {
    /// `route`: where the source's route begins in the network's table.
    pub(crate) fn new(index: u32, source: &Source, route: u32, seed: u64) -> Self {
        // Sizes are bounded by the scenario.
        let size = u32::try_from(source.packet.get()).unwrap_or(u32::MAX);
        let packet = Head { to: NOBODY, next: route, subflow: 0, size, ecn: Ecn::NotEct };
        Self { index, packet, traffic: source.begin(seed), sent: 0 }
    }

    /// Sends a packet now, if it is on, and says when to ask again.
    pub(crate) fn send(&mut self, world: &mut World) {
        let act = self.traffic.act(world.now);
        self.sent += u64::from(act.sends);
        if act.sends {
            world.send(&self.packet, Body::Nothing);
        }
        if let Some(again) = act.again {
            world.outbox.schedule(again, Target::Source(self.index));
        }
    }
}
