//! Links and the packets on them.

use std::collections::{BTreeMap, VecDeque};

use manypath_core::{Bytes, Duration, Time};
use manypath_link::{DropCause, Link, Verdict};

use crate::events::{Events, Key, Target};
use crate::flight::InFlight;
use crate::packet::{Head, Packet};

/// A link with the packets that it will deliver, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) link: Link,
    flying: VecDeque<InFlight>,
    /// Packets taken out at the far end.
    pub(crate) arrived: u64,
}

/// The end of a route.
const ARRIVED: u32 = u32::MAX;

/// All routes in one table, so that a packet's next link is found without a look at its connection.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The links of each route one after another, then [`ARRIVED`].
    table: Vec<u32>,
    /// Where each route begins: equal ones are kept once.
    known: BTreeMap<Vec<usize>, u32>,
}

impl Routes {
    /// Where the route over these links begins in the table.
    pub(crate) fn add(&mut self, links: &[usize]) -> u32 {
        if let Some(start) = self.known.get(links) {
            return *start;
        }
        // The scenario bounds paths and links far below 2^32.
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let start = index(self.table.len());
        self.table.extend(links.iter().map(|link| index(*link)));
        self.table.push(ARRIVED);
        self.known.insert(links.to_vec(), start);
        start
    }
}

/// All links.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) wires: Vec<Wire>,
    pub(crate) routes: Routes,
}

impl Network {
    pub(crate) fn new(links: Vec<Link>) -> Self {
        let wires = links.into_iter().map(|link| Wire { link, flying: VecDeque::new(), arrived: 0 });
        Self { wires: wires.collect(), routes: Routes::default() }
    }

    /// The least time from entering a link to coming out of it, of all links.
    pub(crate) fn least_delay(&self) -> Duration {
        self.wires.iter().map(|wire| wire.link.least_delay()).min().unwrap_or(Duration::ZERO)
    }

    /// What a route takes a packet of no size that enters now.
    pub(crate) fn transit(&self, mut now: Time, route: u32) -> Duration {
        let start = now;
        for index in self.routes.table[route as usize..].iter().take_while(|index| **index != ARRIVED) {
            now += self.wires[*index as usize].link.transit(now);
        }
        now.since(start)
    }

    /// Whether a packet has left the last link of its route.
    #[inline]
    pub(crate) fn has_arrived(&self, packet: &Packet) -> bool {
        self.routes.table[packet.head.next as usize] == ARRIVED
    }

    /// Gives a packet to the next link of its route; the error says why it will not come out.
    pub(crate) fn send(&mut self, now: Time, packet: &Packet, events: &mut Events) -> Result<(), DropCause> {
        let index = self.routes.table[packet.head.next as usize];
        let wire = &mut self.wires[index as usize];
        match wire.link.enqueue(now, Bytes::new(u64::from(packet.head.size)), packet.head.ecn) {
            Verdict::Deliver { at, ecn, .. } => {
                let key = events.key(at, Target::Link(index));
                let head = Head { next: packet.head.next + 1, ecn, ..packet.head };
                wire.insert(InFlight::new(key, head, packet.body), key, index, events);
                Ok(())
            }
            Verdict::Drop(cause) => Err(cause),
        }
    }

    /// The packet that arrives next on a link, where there is one.
    #[inline]
    pub(crate) fn arriving(&self, index: u32) -> Option<Packet> {
        self.wires[index as usize].flying.front().map(InFlight::packet)
    }

    /// Takes out the packet that arrives next on a link.
    #[inline]
    pub(crate) fn take(&mut self, index: u32, events: &mut Events) {
        let wire = &mut self.wires[index as usize];
        if wire.flying.pop_front().is_some() {
            wire.arrived += 1;
        }
        events.set_arrival(index, wire.flying.front().map(|next| next.key(index)));
    }
}

impl Wire {
    /// Packets between the entrance and the far end.
    pub(crate) fn flying(&self) -> usize {
        self.flying.len()
    }

    /// Takes in a packet; `key` is that of its arrival.
    #[inline]
    fn insert(&mut self, packet: InFlight, key: Key, index: u32, events: &mut Events) {
        match self.flying.back() {
            Some(last) if last.at() > key.at() => return self.overtake(packet, key, index, events),
            Some(_) => {}
            None => events.set_arrival(index, Some(key)),
        }
        self.flying.push_back(packet);
    }

    /// A packet that overtakes others (a link whose jitter may reorder) is inserted in its place.
    #[cold]
    fn overtake(&mut self, packet: InFlight, key: Key, index: u32, events: &mut Events) {
        let place = self.flying.partition_point(|held| held.at() <= key.at());
        if place == 0 {
            events.set_arrival(index, Some(key));
        }
        self.flying.insert(place, packet);
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::Rate;
    use manypath_link::{Change, Ecn, LinkConfig, QueueLimit};

    use super::*;
    use crate::packet::Body;

    /// Four packets wait for a second in all on the first link; the second's delay is another by the time that one comes to it.
    #[test]
    fn a_handshake_waits_behind_what_waits_now() {
        let config = LinkConfig::new(Rate::from_mbps(0.032), Duration::from_millis(10), QueueLimit::Packets(9));
        let mut later = config.clone();
        let [delay, jitter] = [30, 8].map(|millis| Some(Duration::from_millis(millis)));
        later.schedule.push(Change { at: Time::from_millis(1500), delay, jitter, ..Change::default() });
        let link = |config, name| Link::new(config, 1, name).unwrap();
        let mut network = Network::new(vec![link(&config, "a"), link(&later, "b")]);
        let route = network.routes.add(&[0, 1]);
        assert_eq!(network.transit(Time::ZERO, route), Duration::from_millis(20));
        for _ in 0..4 {
            network.wires[0].link.enqueue(Time::from_millis(200), Bytes::new(1000), Ecn::NotEct);
        }
        assert_eq!(network.transit(Time::from_millis(700), route), Duration::from_millis(500 + 20));
        assert_eq!(network.transit(Time::from_millis(200), route), Duration::from_millis(1000 + 20));
        assert_eq!(network.transit(Time::from_millis(1495), route), Duration::from_millis(10 + 30 + 4));
    }

    #[test]
    fn a_packet_that_overtakes_comes_before_those_of_a_later_time_only() {
        let config = LinkConfig::new(Rate::from_mbps(1.0), Duration::from_millis(1), QueueLimit::Packets(9));
        let mut network = Network::new(vec![Link::new(&config, 1, "a").unwrap()]);
        let mut events = Events::new(1);
        let mut first = Vec::new();
        for (millis, size) in [(5, 1), (9, 2), (5, 3), (3, 4), (9, 5)] {
            let key = events.key(Time::from_millis(millis), Target::Link(0));
            let head = Head { to: 0, next: 0, subflow: 0, size, ecn: Ecn::NotEct };
            network.wires[0].insert(InFlight::new(key, head, Body::Nothing), key, 0, &mut events);
            first.push(events.next(Time::MAX).unwrap().at().as_nanos() / 1_000_000);
        }
        assert_eq!(first, [5, 5, 5, 3, 3], "when the next one comes");
        let mut sizes = Vec::new();
        while let Some(packet) = network.arriving(0) {
            sizes.push(packet.head.size);
            network.take(0, &mut events);
        }
        assert_eq!((sizes, network.wires[0].arrived), (vec![4, 1, 3, 2, 5], 5));
        assert!(events.next(Time::MAX).is_none());
    }
}
