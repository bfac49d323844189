//! A network as theory sees it: capacities, and which links each subflow crosses.
//!
//! Nothing here knows how a scenario is written down ([`scenario`](crate::scenario) does). A [`Network`] is checked once,
//! when it is made; whoever has one need not check it again.

use manypath_core::{Duration, Rate};

/// The most links of a network.
pub const MAX_LINKS: usize = 4096;
/// The most subflows of a network, over all connections: max-min fairness of so many takes minutes.
pub const MAX_SUBFLOWS: usize = 1024;
/// The most links on all routes together.
pub const MAX_HOPS: usize = 1 << 16;
/// The smallest capacity of a link, and the smallest limit of a connection.
pub const MIN_CAPACITY_BPS: f64 = 1.0;
/// The largest capacity of a link, and the largest limit of a connection.
pub const MAX_CAPACITY_BPS: f64 = 1e15;

/// One subflow of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Subflow {
    /// The links it crosses, by index, each once; their order does not matter.
    pub links: Vec<usize>,
    /// Its round-trip time with the queueing delay to be expected. Only the fluid models read it.
    pub rtt: Duration,
}

/// A connection between two hosts. A single-path TCP flow is a connection with one subflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Its subflows; at least one.
    pub subflows: Vec<Subflow>,
    /// What its application offers; `None`: as much as the network takes.
    pub limit: Option<Rate>,
}

impl Connection {
    /// A greedy connection whose subflows cross these links; round-trip times are zero.
    pub fn over<R: AsRef<[usize]>>(routes: &[R]) -> Self {
        let subflow = |route: &R| Subflow { links: route.as_ref().to_vec(), rtt: Duration::ZERO };
        Self { subflows: routes.iter().map(subflow).collect(), limit: None }
    }
}

/// Links and the connections that share them: checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Capacity of each link.
    capacities: Vec<Rate>,
    /// Connections in the caller's order.
    connections: Vec<Connection>,
    /// Number of the first subflow of each connection in a flat list of all, and the length of that list.
    offsets: Vec<usize>,
}

/// Why a description is no network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Without connections there is nothing to allocate.
    #[error("the network has no connections")]
    Empty,
    /// More than this crate is prepared to solve.
    #[error("the network has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The most that is allowed.
        limit: usize,
    },
    /// A capacity outside [`MIN_CAPACITY_BPS`]..=[`MAX_CAPACITY_BPS`], zero for example.
    #[error("link {link} has a capacity of {bps} bit/s; it must be from 1 to 1e15")]
    Capacity {
        /// The link.
        link: usize,
        /// Its capacity in bit/s.
        bps: f64,
    },
    /// A limit outside [`MIN_CAPACITY_BPS`]..=[`MAX_CAPACITY_BPS`].
    #[error("connection {connection} is limited to {bps} bit/s; a limit must be from 1 to 1e15")]
    Limit {
        /// The connection.
        connection: usize,
        /// Its limit in bit/s.
        bps: f64,
    },
    /// A connection without subflows.
    #[error("connection {connection} has no subflows")]
    NoSubflows {
        /// The connection.
        connection: usize,
    },
    /// A subflow that crosses no link has no finite rate.
    #[error("subflow {subflow} of connection {connection} crosses no link")]
    NoLinks {
        /// The connection.
        connection: usize,
        /// The subflow, counted within the connection.
        subflow: usize,
    },
    /// A route over a link that does not exist.
    #[error("subflow {subflow} of connection {connection} crosses link {link}, which does not exist")]
    UnknownLink {
        /// The connection.
        connection: usize,
        /// The subflow, counted within the connection.
        subflow: usize,
        /// The index that is out of range.
        link: usize,
    },
    /// A route that crosses a link twice.
    #[error("subflow {subflow} of connection {connection} crosses link {link} twice")]
    Loop {
        /// The connection.
        connection: usize,
        /// The subflow, counted within the connection.
        subflow: usize,
        /// The link.
        link: usize,
    },
}

impl Network {
    /// Links with these capacities, shared by these connections.
    ///
    /// # Errors
    /// If the description is empty, contradicts itself, or is larger than this crate solves.
    pub fn new(capacities: Vec<Rate>, connections: Vec<Connection>) -> Result<Self, NetworkError> {
        let too_large = |what, limit| NetworkError::TooLarge { what, limit };
        let in_range = |rate: Rate| (MIN_CAPACITY_BPS..=MAX_CAPACITY_BPS).contains(&rate.as_bps());
        if connections.is_empty() {
            return Err(NetworkError::Empty);
        }
        if capacities.len() > MAX_LINKS {
            return Err(too_large("links", MAX_LINKS));
        }
        if let Some(link) = capacities.iter().position(|&capacity| !in_range(capacity)) {
            return Err(NetworkError::Capacity { link, bps: capacities[link].as_bps() });
        }
        let (mut offsets, mut subflows, mut hops) = (vec![0], 0, 0);
        for (index, connection) in connections.iter().enumerate() {
            if connection.subflows.is_empty() {
                return Err(NetworkError::NoSubflows { connection: index });
            }
            if let Some(limit) = connection.limit.filter(|&limit| !in_range(limit)) {
                return Err(NetworkError::Limit { connection: index, bps: limit.as_bps() });
            }
            subflows += connection.subflows.len();
            if subflows > MAX_SUBFLOWS {
                return Err(too_large("subflows", MAX_SUBFLOWS));
            }
            hops += connection.subflows.iter().map(|subflow| subflow.links.len()).sum::<usize>();
            if hops > MAX_HOPS {
                return Err(too_large("links on all routes together", MAX_HOPS));
            }
            for (number, subflow) in connection.subflows.iter().enumerate() {
                check_route(&subflow.links, capacities.len(), index, number)?;
            }
            offsets.push(subflows);
        }
        Ok(Self { capacities, connections, offsets })
    }

    /// The capacity of each link.
    pub fn capacities(&self) -> &[Rate] {
        &self.capacities
    }

    /// The connections, in the order in which they were given.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// The number of subflows of all connections.
    pub fn subflow_count(&self) -> usize {
        self.offsets[self.connections.len()]
    }

    /// All subflows, each with its connection's index, in the order of connections.
    pub(crate) fn subflows(&self) -> impl Iterator<Item = (usize, &Subflow)> {
        self.connections
            .iter()
            .enumerate()
            .flat_map(|(index, connection)| connection.subflows.iter().map(move |subflow| (index, subflow)))
    }

    /// The numbers of a connection's subflows in [`Self::subflows`].
    pub(crate) fn range(&self, connection: usize) -> core::ops::Range<usize> {
        self.offsets[connection]..self.offsets[connection + 1]
    }

    /// What each subflow could carry if it were alone, in bit/s.
    pub(crate) fn alone_bps(&self) -> Vec<f64> {
        let alone = |(index, subflow): (usize, &Subflow)| {
            let limit = self.connections[index].limit.map_or(f64::INFINITY, Rate::as_bps);
            subflow.links.iter().fold(limit, |least, &link| least.min(self.capacities[link].as_bps()))
        };
        self.subflows().map(alone).collect()
    }

    /// The load of each link in bit/s, from the rates of all subflows in bit/s.
    pub(crate) fn loads_bps(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for ((_, subflow), rate) in self.subflows().zip(rates) {
            for &link in &subflow.links {
                loads[link] += rate;
            }
        }
        loads
    }
}

/// Checks one route against the number of links.
fn check_route(route: &[usize], links: usize, connection: usize, subflow: usize) -> Result<(), NetworkError> {
    if route.is_empty() {
        return Err(NetworkError::NoLinks { connection, subflow });
    }
    let mut sorted = route.to_vec();
    sorted.sort_unstable();
    if let Some(&link) = sorted.last().filter(|&&link| link >= links) {
        return Err(NetworkError::UnknownLink { connection, subflow, link });
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(NetworkError::Loop { connection, subflow, link: pair[0] }),
        None => Ok(()),
    }
}

/// A rate for each subflow of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// By connection, then by subflow.
    rates: Vec<Vec<Rate>>,
}

impl Allocation {
    /// The rates of all subflows in bit/s, sorted into the network's connections.
    pub(crate) fn from_bps(network: &Network, rates: &[f64]) -> Self {
        let connection = |index| rates[network.range(index)].iter().map(|&bps| Rate::from_bps(bps)).collect();
        Self { rates: (0..network.connections.len()).map(connection).collect() }
    }

    /// As [`Self::from_bps`], for a solver's answer that may exceed a capacity or a limit in the last digits: subflows
    /// over such a link are reduced until everything fits.
    pub(crate) fn fitted(network: &Network, rates: &[f64]) -> Self {
        let rates: Vec<f64> = rates.iter().map(|rate| rate.max(0.0)).collect();
        let loads = network.loads_bps(&rates);
        let over: Vec<f64> =
            network.capacities.iter().zip(&loads).map(|(capacity, load)| (load / capacity.as_bps()).max(1.0)).collect();
        let total = |index: usize| rates[network.range(index)].iter().sum::<f64>();
        let limit = |index: usize| network.connections[index].limit.map_or(1.0, |limit| total(index) / limit.as_bps());
        let fit = |((index, subflow), rate): ((usize, &Subflow), &f64)| {
            let factor = subflow.links.iter().fold(limit(index).max(1.0), |most, &link| most.max(over[link]));
            rate / factor
        };
        let fitted: Vec<f64> = network.subflows().zip(&rates).map(fit).collect();
        Self::from_bps(network, &fitted)
    }

    /// The rates of a connection's subflows; empty if there is no such connection.
    pub fn subflows(&self, connection: usize) -> &[Rate] {
        self.rates.get(connection).map_or(&[], Vec::as_slice)
    }

    /// The total rate of each connection.
    pub fn totals(&self) -> Vec<Rate> {
        self.rates.iter().map(|subflows| subflows.iter().copied().sum()).collect()
    }

    /// The load of each link of `network`, for which the allocation was made.
    pub fn loads(&self, network: &Network) -> Vec<Rate> {
        let flat: Vec<f64> = self.rates.iter().flatten().map(|rate| rate.as_bps()).collect();
        network.loads_bps(&flat).into_iter().map(Rate::from_bps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(rates: &[f64]) -> Vec<Rate> {
        rates.iter().map(|&rate| Rate::from_mbps(rate)).collect()
    }

    #[test]
    fn descriptions_that_are_no_network_are_refused() {
        let one = || vec![Connection::over(&[[0]])];
        assert_eq!(Network::new(mbps(&[1.0]), vec![]), Err(NetworkError::Empty));
        assert!(matches!(Network::new(mbps(&[0.0]), one()), Err(NetworkError::Capacity { link: 0, .. })));
        assert!(matches!(Network::new(mbps(&[f64::NAN]), one()), Err(NetworkError::Capacity { link: 0, .. })));
        assert!(matches!(Network::new(mbps(&[f64::INFINITY]), one()), Err(NetworkError::Capacity { .. })));
        assert!(matches!(Network::new(vec![], one()), Err(NetworkError::UnknownLink { link: 0, .. })));
        let none: [[usize; 0]; 0] = [];
        let nowhere = vec![Connection::over(&none)];
        assert_eq!(Network::new(mbps(&[1.0]), nowhere), Err(NetworkError::NoSubflows { connection: 0 }));
        let empty: [[usize; 0]; 1] = [[]];
        let result = Network::new(mbps(&[1.0]), vec![Connection::over(&empty)]);
        assert_eq!(result, Err(NetworkError::NoLinks { connection: 0, subflow: 0 }));
        let result = Network::new(mbps(&[1.0]), vec![Connection::over(&[[0, 0]])]);
        assert_eq!(result, Err(NetworkError::Loop { connection: 0, subflow: 0, link: 0 }));
        let limited = Connection { limit: Some(Rate::ZERO), ..Connection::over(&[[0]]) };
        assert!(matches!(Network::new(mbps(&[1.0]), vec![limited]), Err(NetworkError::Limit { .. })));
    }

    #[test]
    fn size_is_bounded() {
        let links = |count| vec![Rate::from_mbps(1.0); count];
        let many = vec![Connection::over(&[[0]]); MAX_SUBFLOWS + 1];
        assert!(matches!(Network::new(links(1), many), Err(NetworkError::TooLarge { what: "subflows", .. })));
        let one = vec![Connection::over(&[[0]])];
        assert!(matches!(Network::new(links(MAX_LINKS + 1), one), Err(NetworkError::TooLarge { .. })));
        let route: Vec<usize> = (0..MAX_LINKS).collect();
        let long = vec![Connection::over(&[route]); 17];
        assert!(matches!(Network::new(links(MAX_LINKS), long), Err(NetworkError::TooLarge { .. })));
    }

    #[test]
    fn a_rounding_error_above_capacity_is_taken_away() {
        let network = Network::new(mbps(&[1.0, 2.0]), vec![Connection::over(&[[0], [1]])]).unwrap();
        let allocation = Allocation::fitted(&network, &[1e6 * (1.0 + 1e-9), -1e-3]);
        assert_eq!(allocation.subflows(0), &mbps(&[1.0, 0.0]));
        assert_eq!(allocation.subflows(7), &[]);
    }
}
