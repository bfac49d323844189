//! The thread of links between namespaces.

use std::cmp::{Ordering as Order, Reverse};
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};

use manypath_core::{Bytes, Time};
use manypath_link::{Count, Ecn, Link, Verdict};
use rustix::io::Errno;

use crate::buffer::{self, memory};
use crate::clock::Clock;
use crate::direction::add;
use crate::priority::{become_realtime, sharpen_timers};
use crate::stats::SchedulingError;
use crate::system::{SystemError, thread_cpu};
use crate::tun::background::Sources;
use crate::tun::error::TunError;
use crate::tun::packet;
use crate::tun::plan::{NamedLink, TunConfig};
use crate::tun::stats::{LinkStats, PathStats, RouteStats, TunStats};
use crate::wait::{Waiter, Waker};

/// The largest IP packet.
const LARGEST: usize = 65_535;
/// Packets read from one device before others have their turn and what is due is delivered.
const BATCH: usize = 16;

/// What the engine is asked by its handle.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send a reading.
    Stats(SyncSender<TunStats>),
    /// End.
    Stop,
}

/// A packet between two links, or on its way out.
#[derive(Debug)]
struct Held {
    /// When it comes out of the link that it is on.
    due: Time,
    /// Order among packets that are due at the same time.
    sequence: u64,
    /// The device that it came from.
    route: usize,
    /// How many links it has entered.
    hops: usize,
    size: Bytes,
    ecn: Ecn,
    octets: Vec<u8>,
}

impl Held {
    const fn order(&self) -> (Time, u64) {
        (self.due, self.sequence)
    }

    fn memory(&self) -> Bytes {
        memory(self.octets.capacity())
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Order {
        self.order().cmp(&other.order())
    }
}

/// A device, and the way of what is sent into it. The two ends of a path are neighbours, the client's first: `route ^ 1` is the
/// other end.
#[derive(Debug)]
struct Route {
    device: OwnedFd,
    links: Vec<usize>,
    stats: RouteStats,
}

/// Everything that the thread owns.
#[derive(Debug)]
pub(crate) struct Engine {
    clock: Clock,
    waiter: Waiter,
    /// Names of links and of paths' devices.
    names: Vec<String>,
    devices: Vec<String>,
    links: Vec<Link>,
    sources: Sources,
    routes: Vec<Route>,
    heap: BinaryHeap<Reverse<Held>>,
    sequence: u64,
    overhead: Bytes,
    memory: Bytes,
    memory_limit: Bytes,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    inbox: Vec<u8>,
    /// Which paths are cut.
    down: Arc<[AtomicBool]>,
    commands: Receiver<Command>,
    /// Whether real-time priority is wanted; once the thread runs, whether it has it.
    realtime: bool,
}

impl Engine {
    pub(crate) fn new(
        config: &TunConfig,
        devices: Vec<[OwnedFd; 2]>,
        down: Arc<[AtomicBool]>,
        commands: Receiver<Command>,
    ) -> Result<Self, TunError> {
        let link = |named: &NamedLink| {
            let made = Link::new(&named.config, config.seed, &named.name);
            made.map_err(|reason| TunError::Link { name: named.name.clone(), reason })
        };
        let links = config.links.iter().map(link).collect::<Result<_, _>>()?;
        let clock = Clock::start();
        // Spinning would be a third of the processor time of two full links of 100 Mbit/s, and take some 30 us from the median delay,
        // nothing from the 99th percentile.
        let waiter = Waiter::thrifty(clock)?;
        let mut routes = Vec::new();
        for (path, [client, server]) in config.paths.iter().zip(devices) {
            for (device, links) in [(client, &path.forward), (server, &path.backward)] {
                waiter.watch(&device, routes.len() as u64)?;
                routes.push(Route { device, links: links.clone(), stats: RouteStats::new() });
            }
        }
        Ok(Self {
            clock,
            waiter,
            names: config.links.iter().map(|link| link.name.clone()).collect(),
            devices: config.paths.iter().map(|path| path.device.clone()).collect(),
            links,
            sources: Sources::new(&config.sources, config.seed),
            routes,
            heap: BinaryHeap::new(),
            sequence: 0,
            overhead: config.overhead,
            memory: Bytes::ZERO,
            memory_limit: config.memory_limit,
            spare: Vec::new(),
            inbox: vec![0; LARGEST],
            down,
            commands,
            realtime: config.realtime,
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waiter.waker()
    }

    /// Carries packets until it is told to stop, or its handle is gone.
    pub(crate) fn run(mut self) -> Result<TunStats, SystemError> {
        sharpen_timers();
        self.realtime = self.realtime && become_realtime();
        let mut ready = Vec::new();
        loop {
            let next = self.release();
            let deadline = [next, self.sources.deadline()].into_iter().flatten().min();
            self.waiter.wait(deadline, &mut ready)?;
            for mark in &ready {
                // Marks are indices of routes.
                self.receive(usize::try_from(*mark).unwrap_or(usize::MAX));
                self.release();
            }
            // Commands come with a wake that no device reports, or are found when devices are readable. All of them, since wakes of
            // several askers are one.
            loop {
                match self.commands.try_recv() {
                    Ok(Command::Stats(reply)) => {
                        let reading = self.reading();
                        // An asker that has gone away needs no answer.
                        let _ = reply.try_send(reading);
                    }
                    Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(self.reading()),
                    Err(TryRecvError::Empty) => break,
                }
            }
        }
    }

    /// Takes what a device has and puts it on its way.
    fn receive(&mut self, route: usize) {
        for _ in 0..BATCH {
            match rustix::io::read(&self.routes[route].device, &mut self.inbox) {
                Ok(length) => self.enter(route, length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Somebody in the namespace has deleted the device: it would be reported for ever.
                Err(_) => return self.waiter.unwatch(&self.routes[route].device),
            }
        }
    }

    /// Puts the first octets of the inbox on the first link of a route.
    fn enter(&mut self, route: usize, length: usize) {
        let size = Bytes::new(length as u64) + self.overhead;
        let down = self.is_down(route);
        let stats = &mut self.routes[route].stats;
        add(&mut stats.entered, size);
        let Some(ecn) = packet::ecn(&self.inbox[..length]) else {
            return add(&mut stats.dropped_malformed, size);
        };
        if down {
            return add(&mut stats.dropped_down, size);
        }
        // As much as a buffer that is used again may have.
        if self.memory + memory(2 * length) > self.memory_limit {
            return add(&mut stats.dropped_memory, size);
        }
        let octets = buffer::filled(self.spare.pop(), &self.inbox[..length]);
        let held = Held { due: self.clock.now(), sequence: 0, route, hops: 0, size, ecn, octets };
        self.memory += held.memory();
        add(&mut stats.held, size);
        self.forward(held);
    }

    /// Puts a packet, which is due, on its next link.
    fn forward(&mut self, mut held: Held) {
        self.sources.catch_up(held.due, &mut self.links);
        let link = self.routes[held.route].links[held.hops];
        match self.links[link].enqueue(held.due, held.size, held.ecn) {
            Verdict::Deliver { at, ecn, .. } => {
                self.sequence += 1;
                held = Held { due: at, sequence: self.sequence, hops: held.hops + 1, ecn, ..held };
                self.heap.push(Reverse(held));
            }
            Verdict::Drop(_) => self.forget(held),
        }
    }

    /// Moves on what is due, and returns when the next packet will be.
    fn release(&mut self) -> Option<Time> {
        loop {
            let due = self.heap.peek().map(|Reverse(held)| held.due);
            let now = self.clock.now();
            if due.is_none_or(|due| due > now) {
                self.sources.catch_up(now, &mut self.links);
                return due;
            }
            let Reverse(held) = self.heap.pop()?;
            if held.hops < self.routes[held.route].links.len() {
                self.forward(held);
            } else {
                self.deliver(held);
            }
        }
    }

    fn deliver(&mut self, mut held: Held) {
        let down = self.is_down(held.route);
        if held.ecn == Ecn::Ce {
            packet::mark_ce(&mut held.octets);
        }
        let sent = !down && rustix::io::write(&self.routes[held.route ^ 1].device, &held.octets).is_ok();
        let stats = &mut self.routes[held.route].stats;
        if sent {
            add(&mut stats.delivered, held.size);
            stats.scheduling_error.record(held.due, self.clock.now());
        } else {
            add(if down { &mut stats.dropped_down } else { &mut stats.dropped_refused }, held.size);
        }
        self.forget(held);
    }

    /// Takes a packet off the books and keeps its buffer.
    fn forget(&mut self, held: Held) {
        let count = &mut self.routes[held.route].stats.held;
        *count = Count { packets: count.packets - 1, bytes: count.bytes - held.size };
        self.memory -= held.memory();
        if buffer::is_reused(held.octets.capacity()) {
            self.spare.push(held.octets);
        }
    }

    fn is_down(&self, route: usize) -> bool {
        self.down[route / 2].load(Ordering::Relaxed)
    }

    fn reading(&mut self) -> TunStats {
        let now = self.clock.now();
        let links = self.names.iter().zip(&mut self.links);
        let links = links.map(|(name, link)| LinkStats { name: name.clone(), counters: link.counters(now) }).collect();
        let paths = self.routes.chunks_exact(2).zip(&self.devices).zip(self.down.iter());
        let paths = paths.map(|((ends, device), down)| PathStats {
            device: device.clone(),
            down: down.load(Ordering::Relaxed),
            forward: ends[0].stats.clone(),
            backward: ends[1].stats.clone(),
        });
        TunStats {
            uptime: now.since(Time::ZERO),
            cpu: thread_cpu(),
            realtime: self.realtime,
            links,
            paths: paths.collect(),
            memory: self.memory,
        }
    }
}

impl RouteStats {
    fn new() -> Self {
        Self {
            entered: Count::default(),
            delivered: Count::default(),
            dropped_down: Count::default(),
            dropped_memory: Count::default(),
            dropped_malformed: Count::default(),
            dropped_refused: Count::default(),
            held: Count::default(),
            kernel_drops: None,
            scheduling_error: SchedulingError::new(),
        }
    }
}
