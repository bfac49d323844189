//! Background traffic: packets at a rate, whatever the network does to them.

use manypath_core::{Duration, Time};
use manypath_link::Ecn;
use manypath_scenario::Source;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::packet::{Body, NOBODY, Packet};
use crate::random::exponential;

/// A source at work.
#[derive(Debug)]
pub(crate) struct Background {
    packet: Packet,
    gap: Duration,
    poisson: bool,
    on_off: Option<(Duration, Duration)>,
    /// When the present busy time ends.
    busy_until: Time,
    stop: Time,
    random: Xoshiro256PlusPlus,
    pub(crate) sent: u64,
}

impl Background {
    /// `route`: where the source's route begins in the network's table.
    pub(crate) fn new(source: &Source, route: u32, seed: u64) -> Self {
        let mut random = manypath_link::generator(seed, &source.name);
        let busy = source.on_off.map_or(Time::MAX, |(on, _)| source.start + exponential(&mut random, on));
        // Sizes are bounded by the scenario.
        let size = u32::try_from(source.packet.get()).unwrap_or(u32::MAX);
        Self {
            packet: Packet { to: NOBODY, next: route, subflow: 0, size, ecn: Ecn::NotEct, body: Body::Nothing },
            gap: source.packet.time_at(source.rate),
            poisson: source.poisson,
            on_off: source.on_off,
            busy_until: busy,
            stop: source.stop.unwrap_or(Time::MAX),
            random,
            sent: 0,
        }
    }

    /// A packet for now, if the source is on, and when to ask again; `None`: never.
    pub(crate) fn act(&mut self, now: Time) -> (Option<Packet>, Option<Time>) {
        if now >= self.stop {
            return (None, None);
        }
        if now >= self.busy_until {
            let (on, off) = self.on_off.unwrap_or_default();
            let wakes = now + exponential(&mut self.random, off);
            self.busy_until = wakes + exponential(&mut self.random, on);
            return (None, Some(wakes));
        }
        self.sent += 1;
        let gap = if self.poisson { exponential(&mut self.random, self.gap) } else { self.gap };
        (Some(self.packet), Some(now + gap))
    }
}
