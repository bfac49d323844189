//! Connections that have neither opened nor joined a session: no more than so many at once, and of one source no more than a
//! share of them, so that a single client without the token keeps nobody else out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A source may have one in so many of the places.
const SHARE: usize = 4;

/// The places of a server.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Of each source that has any.
    by_source: HashMap<IpAddr, usize>,
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    of: Arc<HalfOpen>,
    source: IpAddr,
    /// More than half of all places, or of the source's share, are taken.
    pub(crate) is_tight: bool,
}

impl HalfOpen {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place for a connection from this address, if one is left.
    pub(crate) fn take(self: &Arc<Self>, remote: IpAddr) -> Option<Place> {
        let (source, share) = (source(remote), self.most.div_ceil(SHARE));
        let taken = &mut *self.taken();
        let own = taken.by_source.get(&source).copied().unwrap_or(0);
        if taken.all >= self.most || own >= share {
            return None;
        }
        taken.all += 1;
        taken.by_source.insert(source, own + 1);
        let is_tight = |most: usize, taken: usize| most - taken < most / 2;
        let is_tight = is_tight(self.most, taken.all) || is_tight(share, own + 1);
        Some(Place { of: Arc::clone(self), source, is_tight })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let taken = &mut *self.of.taken();
        taken.all -= 1;
        if let Some(own) = taken.by_source.get_mut(&self.source) {
            *own -= 1;
            if *own == 0 {
                taken.by_source.remove(&self.source);
            }
        }
    }
}

/// What one client has for sure: an IPv4 address, or the network of an IPv6 interface (RFC 4291 s2.5.4), which has 64 bits.
fn source(remote: IpAddr) -> IpAddr {
    match remote.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(places: &Arc<HalfOpen>, remote: &str, wanted: usize) -> Vec<Place> {
        (0..wanted).filter_map(|_| places.take(remote.parse().unwrap())).collect()
    }

    #[test]
    fn a_source_has_its_share_and_leaves_the_rest() {
        let places = HalfOpen::new(16);
        let first = taken(&places, "192.0.2.1", 20);
        assert_eq!(first.len(), 4); // 16 / 4
        assert_eq!(taken(&places, "::ffff:192.0.2.1", 20).len(), 0);
        let others: Vec<_> = ["192.0.2.2", "192.0.2.3", "192.0.2.4"].map(|remote| taken(&places, remote, 20)).into();
        assert_eq!(others.iter().map(Vec::len).sum::<usize>(), 12);
        assert_eq!(taken(&places, "192.0.2.5", 1).len(), 0);
        drop(first);
        assert_eq!(taken(&places, "192.0.2.1", 20).len(), 4);
        drop(others);
        let taken = places.taken();
        assert_eq!((taken.all, taken.by_source.len()), (0, 0));
    }

    #[test]
    fn an_ipv6_network_is_one_source() {
        let places = HalfOpen::new(16);
        let _first = taken(&places, "2001:db8:0:1::1", 3);
        assert_eq!(taken(&places, "2001:db8:0:1:ffff::2", 20).len(), 1);
        assert_eq!(taken(&places, "2001:db8:0:2::1", 20).len(), 4);
    }

    #[test]
    fn it_is_tight_when_more_than_half_is_taken() {
        // Shares of 4: tight from the third on. In all it is tight from the ninth on.
        let places = HalfOpen::new(16);
        let sources = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|remote| taken(&places, remote, 4));
        let tight = sources.each_ref().map(|places| places.iter().map(|place| place.is_tight).collect::<Vec<_>>());
        assert_eq!(tight[..2], [[false, false, true, true], [false, false, true, true]]);
        assert_eq!(tight[2], [true; 4]);
        assert!(!HalfOpen::new(1).take(Ipv6Addr::LOCALHOST.into()).unwrap().is_tight);
    }
}
