//! The thread of a relay.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};

use manypath_core::Time;
use manypath_link::{Count, Link};

use crate::clients::Clients;
use crate::clock::Clock;
use crate::config::{DirectionName, RelayConfig, RelayError};
use crate::direction::{Direction, Fate, Held, add};
use crate::port::{Inbox, Port};
use crate::priority::{become_realtime, sharpen_timers};
use crate::stats::RelayStats;
use crate::system::{During, thread_cpu};
use crate::wait::{Waiter, Waker};

/// The mark of the socket that clients send to; client sockets have their slot plus one.
const LISTEN: u64 = 0;

/// What the engine is asked by its handle.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send a reading.
    Stats(SyncSender<Reading>),
    /// End.
    Stop,
}

/// A reading, and the sockets whose kernel counters belong to it: reading those takes long, so the asker does.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) stats: RelayStats,
    pub(crate) inodes: Vec<u64>,
}

/// Everything that the thread owns.
#[derive(Debug)]
pub(crate) struct Engine {
    clock: Clock,
    waiter: Waiter,
    target: SocketAddr,
    listen: Port,
    /// Whether the listening socket has several addresses, so that answers must name the right one.
    listens_anywhere: bool,
    clients: Clients,
    forward: Direction,
    backward: Direction,
    inbox: Inbox,
    down: Arc<AtomicBool>,
    commands: Receiver<Command>,
    refused: Count,
    /// Whether real-time priority is wanted; once the thread runs, whether it has it.
    realtime: bool,
}

impl Engine {
    pub(crate) fn new(
        config: &RelayConfig,
        down: Arc<AtomicBool>,
        commands: Receiver<Command>,
    ) -> Result<Self, RelayError> {
        if config.max_clients == 0 {
            return Err(RelayError::NoClients);
        }
        let overhead = header_bytes(config.target.ip());
        let direction = |link, direction: DirectionName| -> Result<Direction, RelayError> {
            let link = Link::new(link, config.seed, &direction.to_string());
            let link = link.map_err(|source| RelayError::Link { direction, source })?;
            Ok(Direction::new(link, overhead, config.memory_limit))
        };
        let forward = direction(&config.forward, DirectionName::Forward)?;
        let backward = direction(&config.backward, DirectionName::Backward)?;
        let clock = Clock::start();
        let waiter = Waiter::exact(clock)?;
        let listen = Port::bind(config.listen).during("open the relay's socket")?;
        waiter.watch(&listen, LISTEN)?;
        Ok(Self {
            clock,
            waiter,
            target: config.target,
            listen,
            listens_anywhere: config.listen.ip().is_unspecified(),
            clients: Clients::new(config.target, config.max_clients, config.client_idle),
            forward,
            backward,
            inbox: Inbox::new(),
            down,
            commands,
            refused: Count::default(),
            realtime: config.realtime,
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waiter.waker()
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr, RelayError> {
        Ok(self.listen.local_addr().during("read the relay's address")?)
    }

    /// Relays until it is told to stop, or its handle is gone.
    pub(crate) fn run(mut self) -> Result<Reading, RelayError> {
        sharpen_timers();
        self.realtime = self.realtime && become_realtime();
        let mut ready = Vec::new();
        loop {
            let next = self.release();
            self.waiter.wait(next, &mut ready)?;
            for mark in &ready {
                self.receive(*mark);
                self.release();
            }
            // Commands come with a wake that no socket reports, or are found when sockets are readable. All of them, since wakes of
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

    /// Sends what is due, and returns when the next datagram will be.
    fn release(&mut self) -> Option<Time> {
        loop {
            let (forward, backward) = (self.forward.next_due(), self.backward.next_due());
            let is_forward = match (forward, backward) {
                (None, None) => return None,
                (Some(forward), Some(backward)) => forward <= backward,
                (forward, None) => forward.is_some(),
                (None, Some(_)) => false,
            };
            let due = if is_forward { forward } else { backward };
            if due > Some(self.clock.now()) {
                return due;
            }
            let direction = if is_forward { &mut self.forward } else { &mut self.backward };
            // It has a due time, so there is one.
            let held = direction.pop()?;
            let fate = self.send(&held, is_forward);
            let direction = if is_forward { &mut self.forward } else { &mut self.backward };
            direction.finish(held, fate);
        }
    }

    fn send(&self, held: &Held, is_forward: bool) -> Fate {
        if self.down.load(Ordering::Relaxed) {
            return Fate::Down;
        }
        let Some(client) = self.clients.get(held.client) else {
            return Fate::Unsendable;
        };
        let result = if is_forward {
            client.upstream.send(self.target, None, held.ecn, &held.payload)
        } else {
            let from = client.local.filter(|_| self.listens_anywhere);
            self.listen.send(client.address, from, held.ecn, &held.payload)
        };
        match result {
            Ok(()) => Fate::Sent(self.clock.now()),
            Err(_) => Fate::Unsendable,
        }
    }

    /// Takes what the socket with this mark has and puts it on its link.
    fn receive(&mut self, mark: u64) {
        let down = self.down.load(Ordering::Relaxed);
        if mark == LISTEN {
            for datagram in self.inbox.receive(&self.listen) {
                if down {
                    self.forward.refuse_down(datagram.payload);
                    continue;
                }
                let now = self.clock.now();
                let waiter = &self.waiter;
                let watch = |upstream: &Port, slot: usize| waiter.watch(upstream, slot as u64 + 1);
                match self.clients.admit(now, datagram.from, datagram.to, watch) {
                    Some(client) => self.forward.accept(now, client, datagram.ecn, datagram.payload),
                    None => add(&mut self.refused, self.forward.wire(datagram.payload)),
                }
            }
            return;
        }
        // Marks come from slots, and nobody has so many that they would not fit.
        let slot = usize::try_from(mark - 1).unwrap_or(usize::MAX);
        let now = self.clock.now();
        // The client may have lost its place to another since the socket was reported.
        let (Some(client), Some(upstream)) = (self.clients.touch(now, slot), self.clients.upstream(slot)) else {
            return;
        };
        for datagram in self.inbox.receive(upstream) {
            if down {
                self.backward.refuse_down(datagram.payload);
            } else {
                self.backward.accept(self.clock.now(), client, datagram.ecn, datagram.payload);
            }
        }
    }

    fn reading(&mut self) -> Reading {
        let now = self.clock.now();
        let stats = RelayStats {
            forward: self.forward.stats(now),
            backward: self.backward.stats(now),
            uptime: now.since(Time::ZERO),
            cpu: thread_cpu(),
            realtime: self.realtime,
            clients: self.clients.iter().count(),
            refused: self.refused,
            kernel_drops: None,
        };
        let ports = self.clients.iter().map(|client| &client.upstream).chain([&self.listen]);
        Reading { stats, inodes: ports.filter_map(Port::inode).collect() }
    }
}

/// Bytes of IP and UDP headers without options.
fn header_bytes(target: IpAddr) -> u64 {
    match target.to_canonical() {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}
