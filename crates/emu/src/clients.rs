//! The clients behind a relay: one upstream socket each, in bounded number.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use manypath_core::{Duration, Time};

use crate::port::Port;
use crate::system::SystemError;

/// A place in the table together with how often it was given away before, so that datagrams for a client that is gone do not
/// reach its successor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientKey {
    pub(crate) slot: usize,
    generation: u64,
}

/// A client address.
#[derive(Debug)]
pub(crate) struct Client {
    /// Where it sends from.
    pub(crate) address: SocketAddr,
    /// The address of ours it sends to, for the answers to come from.
    pub(crate) local: Option<IpAddr>,
    /// Its socket towards the target.
    pub(crate) upstream: Port,
    last_seen: Time,
    generation: u64,
}

/// All clients.
#[derive(Debug)]
pub(crate) struct Clients {
    target: SocketAddr,
    idle: Duration,
    slots: Vec<Option<Client>>,
    by_address: HashMap<SocketAddr, usize>,
    generation: u64,
}

impl Clients {
    pub(crate) fn new(target: SocketAddr, most: usize, idle: Duration) -> Self {
        let slots = std::iter::repeat_with(|| None).take(most).collect();
        Self { target, idle, slots, by_address: HashMap::new(), generation: 0 }
    }

    /// The client with `address`, which has just sent something. A new one is taken in if there is a place or another is idle,
    /// and if `watch` accepts its socket; `None` if not.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        address: SocketAddr,
        local: Option<IpAddr>,
        watch: impl FnOnce(&Port, usize) -> Result<(), SystemError>,
    ) -> Option<ClientKey> {
        if let Some(slot) = self.by_address.get(&address) {
            let client = self.slots[*slot].as_mut()?;
            client.last_seen = now;
            client.local = local;
            return Some(ClientKey { slot: *slot, generation: client.generation });
        }
        let slot = self.free_slot(now)?;
        let upstream = Port::connect(self.target).ok()?;
        watch(&upstream, slot).ok()?;
        self.generation += 1;
        let client = Client { address, local, upstream, last_seen: now, generation: self.generation };
        self.slots[slot] = Some(client);
        self.by_address.insert(address, slot);
        Some(ClientKey { slot, generation: self.generation })
    }

    /// A place that nobody has, or that nobody has used for long: the one unused longest.
    fn free_slot(&mut self, now: Time) -> Option<usize> {
        let oldest = |slot: &usize| self.slots[*slot].as_ref().map(|client| client.last_seen);
        let slot = (0..self.slots.len()).min_by_key(oldest)?;
        if let Some(client) = &self.slots[slot] {
            if now.since(client.last_seen) < self.idle {
                return None;
            }
            self.by_address.remove(&client.address);
            self.slots[slot] = None;
        }
        Some(slot)
    }

    /// The key of the client in `slot`, for which something has come from the target.
    pub(crate) fn touch(&mut self, now: Time, slot: usize) -> Option<ClientKey> {
        let client = self.slots.get_mut(slot)?.as_mut()?;
        client.last_seen = now;
        Some(ClientKey { slot, generation: client.generation })
    }

    /// The socket towards the target of the client in `slot`.
    pub(crate) fn upstream(&self, slot: usize) -> Option<&Port> {
        self.slots.get(slot)?.as_ref().map(|client| &client.upstream)
    }

    /// The client, if it is still there.
    pub(crate) fn get(&self, key: ClientKey) -> Option<&Client> {
        self.slots[key.slot].as_ref().filter(|client| client.generation == key.generation)
    }

    /// All that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn admit(clients: &mut Clients, secs: u64, port: u16) -> Option<ClientKey> {
        clients.admit(Time::from_millis(secs * 1000), address(port), None, |_, _| Ok(()))
    }

    #[test]
    fn places_are_bounded_and_idle_ones_given_away() {
        let mut clients = Clients::new(address(9), 2, Duration::from_secs(10));
        let first = admit(&mut clients, 0, 1).unwrap();
        let second = admit(&mut clients, 5, 2).unwrap();
        assert_eq!(admit(&mut clients, 6, 1), Some(first), "the same address keeps its place");
        assert_eq!(admit(&mut clients, 14, 3), None, "nobody is idle");
        let third = admit(&mut clients, 15, 3).unwrap();
        assert_eq!(third.slot, second.slot, "the second has been idle for 10 s");
        assert!(clients.get(second).is_none() && clients.get(first).is_some());
        assert_eq!(clients.get(third).unwrap().address, address(3));
        assert_eq!(admit(&mut clients, 15, 2), None, "it lost its place");
        assert_eq!(clients.touch(Time::from_millis(20_000), second.slot), Some(third));
        assert_eq!(clients.iter().count(), 2);
        assert_eq!(admit(&mut clients, 26, 4).unwrap().slot, first.slot);
        assert_eq!(admit(&mut clients, 29, 5), None, "an answer has come for the third within 10 s");
    }

    #[test]
    fn answers_come_from_the_address_that_was_written_to_last() {
        let mut clients = Clients::new(address(9), 1, Duration::from_secs(10));
        for local in [1, 2] {
            let local = Some(IpAddr::from([127, 0, 0, local]));
            let key = clients.admit(Time::ZERO, address(1), local, |_, _| Ok(())).unwrap();
            assert_eq!(clients.get(key).unwrap().local, local);
        }
    }
}
