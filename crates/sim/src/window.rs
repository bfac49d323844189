//! Windows of time: ends act one after another, each in a row of events, not event by event.
//!
//! Nothing that is put on a link comes out before the link's delay has passed. So whatever arrives within the least delay of
//! all links from now is on its way already, and what an end does until then concerns no other end. A window gathers these
//! events ([`Inbox`]), lets each end have all of its own in a row, and keeps what they send and schedule ([`Outbox`]) until
//! all have acted. Then that is done in the order in which event after event would have done it (of one event, packets before
//! timers): the outcome is the same, to the bit. Conservative simulators do this to run in parallel (Nicol, "The cost of
//! conservative synchronization in parallel discrete event simulations", J. ACM 40(2), 1993); here it is for the cache, which
//! holds a few connections but not a thousand. docs/decisions/windows.md has the measurements.

use core::cmp::Reverse;
use core::ops::RangeInclusive;
use std::collections::BinaryHeap;

use manypath_core::{Duration, Time, prefetch};

use crate::engine::Simulation;
use crate::error::RunError;
use crate::events::{Key, Target};
use crate::host::{End, World};
use crate::packet::{Body, Head, Packet};

/// How many events for each end a window begins with at most, on average: what the end needs is fetched once for all of them.
const EVENTS_PER_END: u64 = 24;

/// How many events a window begins with at least, if there are so many, and at most: some 200 bytes each.
const EVENTS: RangeInclusive<u64> = 64..=1 << 17;

/// How long the first window lasts at most.
const FIRST: Duration = Duration::from_millis(1);

/// The shortest time.
const MOMENT: Duration = Duration::from_nanos(1);

/// How many events ahead of the one whose packets enter links their packets are fetched.
const AHEAD: usize = 6;

/// No entry.
const NONE: u32 = u32::MAX;

/// What happens to an end or a source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A packet comes.
    Packet(Packet),
    /// A timer may have come.
    Timer,
    /// The application, or the source, acts.
    Application,
}

/// What an event led to.
#[derive(Clone, Copy, Debug)]
struct Deeds {
    /// Packets sent and events scheduled after the window, by their places in the outbox.
    sent: (u32, u32),
    scheduled: (u32, u32),
    /// The first of the events that the actor scheduled for itself within the window.
    own: u32,
}

impl Deeds {
    fn is_idle(&self) -> bool {
        self.sent.0 == self.sent.1 && self.scheduled.0 == self.scheduled.1
    }
}

/// Nothing.
const IDLE: Deeds = Deeds { sent: (0, 0), scheduled: (0, 0), own: NONE };

/// An event of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// One that it began with, by place.
    Entry(u32),
    /// One that an actor scheduled for itself within the window, by place.
    Late(u32),
}

/// An event that a window began with.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    deeds: Deeds,
    /// The next entry of the same actor.
    next: u32,
    /// What is to happen, if it did not when it was gathered.
    what: Option<Happening>,
}

/// An event that an actor scheduled for itself within the window.
#[derive(Clone, Copy, Debug)]
struct Late {
    at: Time,
    deeds: Deeds,
    /// Another one that the same event scheduled.
    sibling: u32,
}

/// An event that the actor has scheduled for itself; the one that was scheduled first comes first of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Own {
    at: Time,
    number: u64,
    /// What it was scheduled by.
    by: Event,
    timer: bool,
}

/// The entries of one actor: a chain.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// The events of a window.
#[derive(Debug)]
struct Inbox {
    /// In the order of time and number.
    entries: Vec<Entry>,
    /// By actor: the ends, then the sources.
    chains: Vec<Chain>,
    /// The actors that have entries, in the order of their first.
    busy: Vec<u32>,
    /// Actor by actor.
    late: Vec<Late>,
    /// Of those the ones whose time comes next, when all is done in order: time, number of what led to it, place.
    due: BinaryHeap<Reverse<(Time, u64, u32)>>,
    due_number: u64,
}

impl Inbox {
    fn new(actors: usize) -> Self {
        let chains = vec![Chain { first: NONE, last: NONE }; actors];
        Self { entries: Vec::new(), chains, busy: Vec::new(), late: Vec::new(), due: BinaryHeap::new(), due_number: 0 }
    }

    /// Adds an event, which is not before those that were added; what comes to [`NOBODY`](crate::packet::NOBODY) is nothing.
    fn add(&mut self, actor: u32, at: Time, what: Happening) {
        let Some(chain) = self.chains.get_mut(actor as usize) else { return };
        let place = count(&self.entries);
        if chain.first == NONE {
            chain.first = place;
            self.busy.push(actor);
        } else {
            self.entries[chain.last as usize].next = place;
        }
        chain.last = place;
        self.entries.push(Entry { at, deeds: IDLE, next: NONE, what: Some(what) });
    }

    /// Adds what an actor scheduled for itself: it happens when what led to it is done.
    fn add_late(&mut self, own: Own, deeds: Deeds) {
        let place = count(&self.late);
        let led_to = match own.by {
            Event::Entry(by) => &mut self.entries[by as usize].deeds.own,
            Event::Late(by) => &mut self.late[by as usize].deeds.own,
        };
        let sibling = core::mem::replace(led_to, place);
        self.late.push(Late { at: own.at, deeds, sibling });
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.late.clear();
        for actor in self.busy.drain(..) {
            self.chains[actor as usize] = Chain { first: NONE, last: NONE };
        }
    }
}

/// How many there are; a window's events are far fewer than 2^32.
#[allow(clippy::cast_possible_truncation)]
const fn count<T>(all: &[T]) -> u32 {
    all.len() as u32
}

/// What is done in a window, and the events that the actor has scheduled for itself.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Until when all act; what they schedule for themselves for an earlier time is theirs alone.
    closes: Time,
    /// What is happening.
    event: Event,
    /// What the actor has scheduled for itself within the window and is still to come.
    own: BinaryHeap<Reverse<Own>>,
    own_number: u64,
    sent: Vec<Packet>,
    scheduled: Vec<(Time, Target)>,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self {
            closes: Time::ZERO,
            event: Event::Entry(NONE),
            own: BinaryHeap::new(),
            own_number: 0,
            sent: Vec::new(),
            scheduled: Vec::new(),
        }
    }

    /// Takes a packet; what it carries is for the caller to write.
    #[inline]
    pub(crate) fn send(&mut self, head: &Head) -> &mut Body {
        &mut self.sent.push_mut(Packet { head: *head, body: Body::Nothing }).body
    }

    /// Takes an event that an actor schedules for itself.
    pub(crate) fn schedule(&mut self, at: Time, target: Target) {
        if at >= self.closes {
            self.scheduled.push((at, target));
            return;
        }
        self.own_number += 1;
        let timer = matches!(target, Target::Timer(_));
        self.own.push(Reverse(Own { at, number: self.own_number, by: self.event, timer }));
    }

    /// Takes out the next event that the actor has scheduled for itself, if it comes before `next`.
    fn own(&mut self, next: Time) -> Option<Own> {
        let Reverse(first) = *self.own.peek()?;
        if first.at >= next {
            return None;
        }
        self.own.pop();
        Some(first)
    }

    /// What was sent and scheduled after an earlier look, which found `before`.
    fn since(&self, before: Deeds) -> Deeds {
        let sent = (before.sent.1, count(&self.sent));
        Deeds { sent, scheduled: (before.scheduled.1, count(&self.scheduled)), ..IDLE }
    }
}

/// Windows, and how large they may be.
#[derive(Debug)]
pub(crate) struct Windows {
    inbox: Inbox,
    /// What enters a link now comes out this much later at least.
    lookahead: Duration,
    /// How many events a window begins with at most.
    room: u64,
    /// How long the next window lasts at most.
    length: Duration,
}

impl Windows {
    pub(crate) fn new(ends: usize, sources: usize, lookahead: Duration) -> Self {
        let room = (ends as u64 * EVENTS_PER_END).clamp(*EVENTS.start(), *EVENTS.end());
        Self { inbox: Inbox::new(ends + sources), lookahead, room, length: FIRST.min(lookahead) }
    }

    /// Has everything happen event after event, for those who look at several connections.
    pub(crate) fn forbid(&mut self) {
        (self.lookahead, self.length, self.room) = (Duration::ZERO, Duration::ZERO, 1);
    }

    /// Bounds the next window after one with so many events: an actor may do any number of things by itself.
    fn adapt(&mut self, events: u64) {
        let length = if events > 2 * self.room { self.length / 2 } else { self.length * 2 };
        self.length = length.clamp(self.lookahead.min(MOMENT), self.lookahead);
    }
}

impl Simulation {
    /// A window of events that begins with `first`.
    pub(crate) fn window(&mut self, first: Key, until: Time) -> Result<(), RunError> {
        let steps = self.steps;
        let limit = (first.at() + self.windows.length.max(MOMENT)).min(until + MOMENT);
        // Without lookahead nobody has events of their own.
        self.world.outbox.closes = self.gather(limit)?.min(first.at() + self.windows.length);
        for place in 0..self.windows.inbox.busy.len() {
            let busy = &self.windows.inbox.busy;
            let ahead = |places| busy.get(place + places).and_then(|actor| self.ends.get(*actor as usize));
            ahead(3).into_iter().for_each(prefetch);
            ahead(2).into_iter().for_each(End::prefetch);
            ahead(1).into_iter().for_each(End::prefetch_paths);
            self.act(busy[place])?;
        }
        self.world.carry_out(&mut self.windows.inbox);
        self.windows.adapt(self.steps - steps);
        Ok(())
    }

    /// Takes the events before `limit`, as many as there is room for; returns when the window closes.
    fn gather(&mut self, limit: Time) -> Result<Time, RunError> {
        let begins = self.steps;
        self.world.outbox.closes = Time::ZERO;
        let mut deeds = IDLE;
        while let Some(key) = self.world.events.next(limit) {
            let (at, alone) = (key.at(), key.target().concerns_many());
            let full = self.steps - begins == self.windows.room;
            if at == limit || full || alone && self.steps > begins {
                return Ok(at);
            }
            self.steps += 1;
            self.gather_one(key)?;
            deeds = self.world.outbox.since(deeds);
            if !deeds.is_idle() {
                self.windows.inbox.entries.push(Entry { at, deeds, next: NONE, what: None });
            }
            if alone {
                return Ok(at);
            }
        }
        Ok(limit)
    }

    /// Takes an event for whom it concerns; has it happen if that is nobody, or many.
    fn gather_one(&mut self, key: Key) -> Result<(), RunError> {
        let Self { world, windows: Windows { inbox, .. }, .. } = self;
        if let Target::Link(index) = key.target() {
            let packet = world.network.arriving(index);
            world.network.take(index, &mut world.events);
            match packet {
                Some(packet) if world.network.has_arrived(&packet) => {
                    inbox.add(packet.head.to, key.at(), Happening::Packet(packet));
                }
                Some(packet) => *world.outbox.send(&packet.head) = packet.body,
                None => {}
            }
            return Ok(());
        }
        world.events.take();
        world.now = key.at();
        match key.target() {
            Target::Timer(end) => inbox.add(end, key.at(), Happening::Timer),
            Target::Application(connection) => inbox.add(connection * 2, key.at(), Happening::Application),
            Target::Source(index) => inbox.add(count(&self.ends) + index, key.at(), Happening::Application),
            Target::Join(index) => self.join(index)?,
            Target::Sample => self.sample(),
            Target::WarmedUp => self.warmed_up(),
            Target::Link(_) => {}
        }
        Ok(())
    }

    /// Has an end or a source act as long as the window is open.
    fn act(&mut self, actor: u32) -> Result<(), RunError> {
        let Self { world, ends, sources, windows: Windows { inbox, .. }, steps, .. } = self;
        let mut happen = |what: &Happening, world: &mut World| match ends.get_mut(actor as usize) {
            Some(end) => end.on(what, world),
            None => {
                sources[actor as usize - ends.len()].send(world);
                Ok(())
            }
        };
        let mut deeds = world.outbox.since(IDLE);
        let mut place = inbox.chains[actor as usize].first;
        loop {
            // What was scheduled within the window comes after what it began with.
            let next = inbox.entries.get(place as usize).map_or(world.outbox.closes, |entry| entry.at);
            if let Some(own) = world.outbox.own(next) {
                *steps += 1;
                world.now = own.at;
                world.outbox.event = Event::Late(count(&inbox.late));
                happen(if own.timer { &Happening::Timer } else { &Happening::Application }, world)?;
                deeds = world.outbox.since(deeds);
                inbox.add_late(own, deeds);
                continue;
            }
            let Some(&Entry { at, next, what: Some(what), .. }) = inbox.entries.get(place as usize) else {
                return Ok(());
            };
            inbox.entries.get(next as usize).into_iter().for_each(prefetch);
            world.now = at;
            world.outbox.event = Event::Entry(place);
            happen(&what, world)?;
            deeds = world.outbox.since(deeds);
            inbox.entries[place as usize].deeds = deeds;
            place = next;
        }
    }
}

impl World {
    /// Does what was sent and scheduled in a window, in the order of what led to it.
    fn carry_out(&mut self, inbox: &mut Inbox) {
        for place in 0..inbox.entries.len() {
            if let Some(ahead) = inbox.entries.get(place + AHEAD) {
                self.outbox.sent.get(ahead.deeds.sent.0 as usize).into_iter().for_each(prefetch);
            }
            let Entry { at, deeds, .. } = inbox.entries[place];
            self.carry_out_late(at, inbox);
            self.carry_out_one(at, &deeds, inbox);
        }
        self.carry_out_late(Time::MAX, inbox);
        self.outbox.sent.clear();
        self.outbox.scheduled.clear();
        inbox.clear();
    }

    /// Those events' deeds that ends scheduled for themselves for before a time.
    fn carry_out_late(&mut self, before: Time, inbox: &mut Inbox) {
        while let Some(&Reverse((at, _, place))) = inbox.due.peek()
            && at < before
        {
            inbox.due.pop();
            let deeds = inbox.late[place as usize].deeds;
            self.carry_out_one(at, &deeds, inbox);
        }
    }

    /// One event's deeds.
    fn carry_out_one(&mut self, at: Time, deeds: &Deeds, inbox: &mut Inbox) {
        let range = |(from, to): (u32, u32)| from as usize..to as usize;
        self.now = at;
        for place in range(deeds.sent) {
            let packet = self.outbox.sent[place];
            self.forward(&packet);
        }
        for place in range(deeds.scheduled) {
            let (at, target) = self.outbox.scheduled[place];
            self.events.schedule(at, target);
        }
        inbox.due_number += 1;
        let mut place = deeds.own;
        while let Some(Late { at, sibling, .. }) = inbox.late.get(place as usize) {
            inbox.due.push(Reverse((*at, inbox.due_number, place)));
            place = *sibling;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use manypath_scenario::{Document, Scenario};
    use manypath_session::{Traced, Tracer};

    use super::*;

    /// Many connections of many kinds that start at the same moment or join later, beside files and sources whose packets leave at
    /// the same nanoseconds.
    const MANY: &str = r#"
duration = "2s"
warmup = "500ms"
topology = "two-links"
[[link]]
name = "link2"
loss = "0.5%"
jitter = "3ms"
reorder = true
[[connection]]
name = "paced"
role = "mp"
cc = "mpcc-latency"
count = 12
[[connection]]
name = "tcp"
role = "mp"
cc = "lia"
transport = "tcp"
count = 12
[[connection]]
name = "bbr"
role = "mp"
cc = "bbr"
join-after = "300ms"
count = 4
[[connection]]
name = "files"
role = "mp"
cc = "cubic"
transport = "tcp"
arrivals = { size = "20kB", every = "10ms" }
[[connection]]
name = "rate"
role = "mp"
cc = "vegas"
rate = "1200kbit"
[[source]]
name = "one"
route = ["link1"]
rate = "12Mbit"
packet = "1500B"
[[source]]
name = "other"
route = ["link1", "link2"]
rate = "6Mbit"
packet = "1500B"
"#;

    /// A source alone, which has a round number of packets.
    const ALONE: &str = r#"
duration = "1s"
topology = "two-links"
[[source]]
name = "alone"
route = ["link1"]
rate = "12Mbit"
packet = "1500B"
"#;

    /// The report of a run whose windows have as many events as they may, or one.
    fn report(scenario: &Scenario, one_by_one: bool) -> String {
        let mut simulation = crate::setup::simulation(scenario, 7, &mut |_| None).unwrap();
        if one_by_one {
            simulation.windows.forbid();
        }
        let until = Time::ZERO + scenario.duration;
        while simulation.run_until(until, 1 << 20).unwrap() {}
        crate::report::summary::report(scenario, 7, simulation).to_json()
    }

    #[test]
    fn the_outcome_is_that_of_event_after_event() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let mut scenarios: Vec<_> =
            files.iter().map(|path| Document::read(path).unwrap().parse(&[]).unwrap()).collect();
        let parse = |text| manypath_scenario::parse(text, "test", Path::new(".")).unwrap();
        scenarios.extend([parse(MANY), parse(MANY), parse(ALONE)]);
        for link in &mut scenarios[files.len()].links {
            link.config.delay = Duration::ZERO;
        }
        for scenario in &mut scenarios {
            scenario.duration = scenario.duration.min(Duration::from_secs(4));
            scenario.warmup = scenario.warmup.min(Duration::from_secs(1));
            scenario.sample = Some(Duration::from_millis(130));
            assert!(report(scenario, true) == report(scenario, false), "{}", scenario.name);
        }
    }

    /// Keeps when decisions were taken, of all connections together.
    #[derive(Clone, Debug, Default)]
    struct Times(Arc<Mutex<Vec<Time>>>);

    impl Tracer for Times {
        fn on_decision(&mut self, decision: &Traced) {
            self.0.lock().unwrap().push(decision.at);
        }
    }

    impl crate::Observer for Times {
        fn on_progress(&mut self, _now: Time) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn tracer(&mut self, _connection: usize) -> Option<Box<dyn Tracer>> {
            Some(Box::new(self.clone()))
        }
    }

    #[test]
    fn decisions_of_all_connections_are_traced_in_the_order_of_time() {
        let mut scenario = manypath_scenario::parse(MANY, "many", Path::new(".")).unwrap();
        scenario.duration = Duration::from_millis(500);
        let mut times = Times::default();
        crate::run_observed(&scenario, 1, &mut times).unwrap();
        let times = times.0.lock().unwrap();
        assert!(times.len() > 1_000 && times.is_sorted());
    }
}
