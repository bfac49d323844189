//! A network with a control law for each connection.

use manypath_core::{Bytes, Duration, Rate};

use super::algorithm::{Algorithm, State};
use crate::network::Network;

/// The most subflows and links together: matrices are dense.
pub const MAX_STATES: usize = 512;
/// The smallest window in packets (RFC 6356 s3: with several subflows the threshold may be one segment).
pub const MIN_WINDOW: f64 = 1.0;

/// Why there is no fluid model, or no answer from it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FluidError {
    /// A connection without subflows.
    #[error("there are no subflows")]
    Empty,
    /// A packet of zero bytes.
    #[error("the packet size is zero")]
    PacketSize,
    /// A round-trip time or a rate is zero.
    #[error("subflow {subflow} of connection {connection} has a rate or a round-trip time of zero")]
    Standstill {
        /// The connection.
        connection: usize,
        /// The subflow, counted within the connection.
        subflow: usize,
    },
    /// As many laws as connections are needed.
    #[error("{algorithms} algorithms for {connections} connections")]
    Algorithms {
        /// Laws given.
        algorithms: usize,
        /// Connections of the network.
        connections: usize,
    },
    /// A parameter of a law is out of range, or there is not one weight for each subflow.
    #[error(
        "the algorithm of connection {connection} has a parameter that is not from 1e-6 to 1e6, or not one weight a subflow"
    )]
    Parameter {
        /// The connection.
        connection: usize,
    },
    /// A limited connection does not follow its law.
    #[error("connection {connection} is limited by its application; fluid models are of greedy connections")]
    Limited {
        /// The connection.
        connection: usize,
    },
    /// A loss probability that is none, or not one for each subflow.
    #[error("loss must be one probability a subflow, from 0 to below 1, and positive where there are no links")]
    Loss,
    /// More than this crate is prepared to solve.
    #[error("a fluid model may have 512 subflows and links, this one has {states}")]
    TooLarge {
        /// Subflows and links.
        states: usize,
    },
    /// The equilibrium was not found: there is none (links that not even the smallest windows fit), or the search got stuck.
    #[error("no equilibrium was found; the largest relative error left is {residual:e}")]
    NoEquilibrium {
        /// What is left of the largest of the equations, relative.
        residual: f64,
    },
    /// The speed of the links' prices must be positive and finite.
    #[error("gamma is {gamma}; it must be positive and finite")]
    Gamma {
        /// The value given.
        gamma: f64,
    },
    /// The eigenvalue iteration did not end.
    #[error("the eigenvalues were not found")]
    NoEigenvalues,
    /// An interval or a time to integrate over is zero, or there would be too many samples.
    #[error("the time and the interval of samples must be positive, with at most 100000 samples")]
    Interval,
    /// A start that is not of this system.
    #[error("the start has other subflows or links than the system")]
    Start,
    /// The step control gave up.
    #[error("the integration stopped at {seconds} s: the system changes too fast")]
    Stiff {
        /// How far it came, in seconds.
        seconds: f64,
    },
}

/// Connections with their laws, and the links they share.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The law of each connection.
    pub(super) algorithms: Vec<Algorithm>,
    /// The subflows of each connection, as a range of all.
    pub(super) ranges: Vec<core::ops::Range<usize>>,
    /// Round-trip times in seconds, by subflow.
    pub(super) rtts: Vec<f64>,
    /// Links of each subflow.
    pub(super) routes: Vec<Vec<usize>>,
    /// Loss besides the links' prices, by subflow.
    pub(super) loss: Vec<f64>,
    /// Capacities in packets per second, by link.
    pub(super) capacities: Vec<f64>,
    /// Bytes of a packet.
    pub(super) packet: f64,
}

impl System {
    /// A network whose connections follow these laws and send packets of `packet` bytes.
    ///
    /// # Errors
    /// If laws do not fit the network, or it has connections without round-trip time or with a limit.
    pub fn new(network: &Network, algorithms: Vec<Algorithm>, packet: Bytes) -> Result<Self, FluidError> {
        let connections = network.connections();
        if algorithms.len() != connections.len() {
            return Err(FluidError::Algorithms { algorithms: algorithms.len(), connections: connections.len() });
        }
        if packet.is_zero() {
            return Err(FluidError::PacketSize);
        }
        let states = network.subflow_count() + network.capacities().len();
        if states > MAX_STATES {
            return Err(FluidError::TooLarge { states });
        }
        for (connection, (description, algorithm)) in connections.iter().zip(&algorithms).enumerate() {
            if description.limit.is_some() {
                return Err(FluidError::Limited { connection });
            }
            if let Some(subflow) = description.subflows.iter().position(|subflow| subflow.rtt.is_zero()) {
                return Err(FluidError::Standstill { connection, subflow });
            }
            algorithm.check(connection, description.subflows.len())?;
        }
        let per_second = |rate: &Rate| rate.as_bytes_per_sec() / packet.as_f64();
        Ok(Self {
            algorithms,
            ranges: (0..connections.len()).map(|index| network.range(index)).collect(),
            rtts: network.subflows().map(|(_, subflow)| subflow.rtt.as_secs_f64()).collect(),
            routes: network.subflows().map(|(_, subflow)| subflow.links.clone()).collect(),
            loss: vec![0.0; network.subflow_count()],
            capacities: network.capacities().iter().map(per_second).collect(),
            packet: packet.as_f64(),
        })
    }

    /// One connection whose subflows have these round-trip times and loss probabilities, whatever it sends: no links.
    ///
    /// # Errors
    /// If a time is zero, a probability is not between 0 and 1, or the law does not fit.
    pub fn at_loss(algorithm: Algorithm, subflows: &[(Duration, f64)], packet: Bytes) -> Result<Self, FluidError> {
        if subflows.is_empty() {
            return Err(FluidError::Empty);
        }
        if packet.is_zero() {
            return Err(FluidError::PacketSize);
        }
        if subflows.len() > MAX_STATES {
            return Err(FluidError::TooLarge { states: subflows.len() });
        }
        if let Some(subflow) = subflows.iter().position(|(rtt, _)| rtt.is_zero()) {
            return Err(FluidError::Standstill { connection: 0, subflow });
        }
        algorithm.check(0, subflows.len())?;
        let system = Self {
            algorithms: vec![algorithm],
            ranges: core::iter::once(0..subflows.len()).collect(),
            rtts: subflows.iter().map(|(rtt, _)| rtt.as_secs_f64()).collect(),
            routes: vec![Vec::new(); subflows.len()],
            loss: vec![0.0; subflows.len()],
            capacities: Vec::new(),
            packet: packet.as_f64(),
        };
        system.with_loss(&subflows.iter().map(|(_, loss)| *loss).collect::<Vec<_>>())
    }

    /// The same with loss that does not come from congestion: a probability for each subflow, connection after connection.
    ///
    /// # Errors
    /// If there is not one probability from 0 to below 1 for each subflow.
    pub fn with_loss(mut self, loss: &[f64]) -> Result<Self, FluidError> {
        let fits = |(loss, route): (&f64, &Vec<usize>)| (0.0..1.0).contains(loss) && (*loss > 0.0 || !route.is_empty());
        if loss.len() != self.routes.len() || !loss.iter().zip(&self.routes).all(fits) {
            return Err(FluidError::Loss);
        }
        self.loss = loss.to_vec();
        Ok(self)
    }

    /// The number of subflows.
    pub(super) fn subflows(&self) -> usize {
        self.rtts.len()
    }

    /// A connection's part of the rates of all subflows.
    pub(super) fn state(&self, connection: usize, rates: &[f64]) -> State {
        let range = self.ranges[connection].clone();
        State { rates: rates[range.clone()].to_vec(), rtts: self.rtts[range].to_vec() }
    }

    /// Something about each connection's subflows, put together for all.
    pub(super) fn by_subflow(&self, rates: &[f64], law: impl Fn(&Algorithm, &State) -> Vec<f64>) -> Vec<f64> {
        let connections = self.algorithms.iter().enumerate();
        connections.flat_map(|(index, algorithm)| law(algorithm, &self.state(index, rates))).collect()
    }

    /// The loss of each subflow at these prices of the links (spec: q_r, p_r).
    pub(super) fn losses(&self, prices: &[f64]) -> Vec<f64> {
        let loss = |(route, loss): (&Vec<usize>, &f64)| loss + route.iter().map(|&link| prices[link]).sum::<f64>();
        self.routes.iter().zip(&self.loss).map(loss).collect()
    }

    /// The load of each link in packets per second (spec: y_l).
    pub(super) fn loads(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for (route, rate) in self.routes.iter().zip(rates) {
            for &link in route {
                loads[link] += rate;
            }
        }
        loads
    }

    /// The smallest rate of each subflow in packets per second.
    pub(super) fn floors(&self) -> Vec<f64> {
        self.rtts.iter().map(|rtt| MIN_WINDOW / rtt).collect()
    }

    /// Rates in packets per second as rates, by connection.
    pub(super) fn to_rates(&self, rates: &[f64]) -> Vec<Vec<Rate>> {
        let rate = |x: &f64| Rate::from_bps(x * self.packet * 8.0);
        self.ranges.iter().map(|range| rates[range.clone()].iter().map(rate).collect()).collect()
    }
}
