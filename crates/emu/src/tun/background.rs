//! Traffic of the scenario's sources. Its packets load the links and are nothing else, so they need not move on time, only before the
//! next packet of a program enters a link: they are caught up with.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use manypath_core::{Bytes, Duration, Time};
use manypath_link::{Ecn, Link, Verdict};
use manypath_scenario::{Background, Source};

/// The longest that nothing is caught up with, so that never much is at once.
const LONGEST: Duration = Duration::from_millis(20);

/// All sources.
#[derive(Debug)]
pub(super) struct Sources {
    sources: Vec<Sender>,
    /// What comes next of each source and each of its packets: a time, and, so that the order is always the same, a number.
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    caught_up: Time,
}

#[derive(Debug)]
struct Sender {
    traffic: Background,
    route: Vec<usize>,
    packet: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The source with this index is to be asked.
    Ask(usize),
    /// A packet of this source has left so many links of its route.
    Hop(usize, usize),
}

impl Sources {
    pub(super) fn new(sources: &[Source], seed: u64) -> Self {
        let senders = sources.iter().map(|source| Sender {
            traffic: source.begin(seed),
            route: source.route.clone(),
            packet: source.packet,
        });
        let mut all =
            Self { sources: senders.collect(), events: BinaryHeap::new(), sequence: 0, caught_up: Time::ZERO };
        for (index, source) in sources.iter().enumerate() {
            all.push(source.start, Event::Ask(index));
        }
        all
    }

    fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// Does all that happens up to `now`.
    pub(super) fn catch_up(&mut self, now: Time, links: &mut [Link]) {
        while let Some(Reverse((at, _, event))) = self.events.peek().copied()
            && at <= now
        {
            self.events.pop();
            match event {
                Event::Ask(index) => {
                    let act = self.sources[index].traffic.act(at);
                    if act.sends {
                        self.enter(at, index, 0, links);
                    }
                    if let Some(again) = act.again {
                        self.push(again, Event::Ask(index));
                    }
                }
                Event::Hop(index, hops) => self.enter(at, index, hops, links),
            }
        }
        self.caught_up = now;
    }

    fn enter(&mut self, now: Time, index: usize, hops: usize, links: &mut [Link]) {
        let Sender { route, packet, .. } = &self.sources[index];
        let verdict = links[route[hops]].enqueue(now, *packet, Ecn::NotEct);
        if let Verdict::Deliver { at, .. } = verdict
            && hops + 1 < route.len()
        {
            self.push(at, Event::Hop(index, hops + 1));
        }
    }

    /// When to catch up at the latest; `None` if there is nothing any more.
    pub(super) fn deadline(&self) -> Option<Time> {
        let Reverse((next, ..)) = self.events.peek()?;
        Some((*next).max(self.caught_up + LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::Rate;
    use manypath_link::{LinkConfig, QueueLimit};

    use super::*;

    #[test]
    fn packets_pass_all_links_of_their_route_in_whatever_steps_they_are_caught_up_with() {
        let source = Source {
            name: "s".to_owned(),
            route: vec![1, 0],
            rate: Rate::from_mbps(12.0),
            packet: Bytes::new(1500),
            poisson: true,
            on_off: None,
            start: Time::ZERO,
            stop: Some(Time::from_millis(900)),
        };
        let counts = |step: u64| {
            let config = LinkConfig::new(Rate::from_mbps(10.0), Duration::from_millis(3), QueueLimit::Packets(20));
            let mut links = ["a", "b"].map(|name| Link::new(&config, 1, name).unwrap());
            let mut sources = Sources::new(std::slice::from_ref(&source), 1);
            for micros in (0..1_100_000).step_by(usize::try_from(step).unwrap()) {
                sources.catch_up(Time::from_micros(micros), &mut links);
            }
            sources.catch_up(Time::from_millis(1_100), &mut links);
            assert_eq!(sources.deadline(), None);
            links.map(|mut link| link.counters(Time::from_millis(1_200)))
        };
        let [second, first] = counts(1_000_000);
        assert!(first.offered.packets > 700 && first.dropped.queue_full.packets > 0);
        assert_eq!(second.offered, first.delivered);
        assert_eq!(counts(777), [second, first]);
    }
}
