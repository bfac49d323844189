//! Background traffic: packets at a rate, whatever the network does to them.

use manypath_core::Time;
use manypath_link::Ecn;
use manypath_scenario::Source;

use crate::packet::{Head, NOBODY};

/// A source at work.
#[derive(Debug)]
pub(crate) struct Background {
    packet: Head,
    traffic: manypath_scenario::Background,
    pub(crate) sent: u64,
}

impl Background {
    /// `route`: where the source's route begins in the network's table.
    pub(crate) fn new(source: &Source, route: u32, seed: u64) -> Self {
        // Sizes are bounded by the scenario.
        let size = u32::try_from(source.packet.get()).unwrap_or(u32::MAX);
        let packet = Head { to: NOBODY, next: route, subflow: 0, size, ecn: Ecn::NotEct };
        Self { packet, traffic: source.begin(seed), sent: 0 }
    }

    /// A packet for now, if the source is on, and when to ask again; `None`: never.
    pub(crate) fn act(&mut self, now: Time) -> (Option<Head>, Option<Time>) {
        let act = self.traffic.act(now);
        self.sent += u64::from(act.sends);
        (act.sends.then_some(self.packet), act.again)
    }
}
