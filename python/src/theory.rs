//! What connections should get.

use core::ops::Deref;

use manypath_core::Rate;
use manypath_output::{Table as GivenTable, Values};
use manypath_theory::num::{Utility, maximise};
use manypath_theory::scenario::Reading;
use manypath_theory::{Allocation as Rates, Connection, Network as CoreNetwork};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{TheoryError, raise};
use crate::quantity::GivenRate;
use crate::scenario::Scenario;
use crate::table::Table;

/// A network as theory sees it: capacities, and connections whose subflows cross links.
///
/// `links` are rates; `connections` lists for each connection its subflows, each a list of links by index from zero;
/// `limits` is what each connection's application offers, `None` for as much as the network takes.
#[pyclass(frozen, module = "manypath.theory")]
#[derive(Debug)]
pub(crate) struct Network {
    network: CoreNetwork,
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (links, connections, limits=None))]
    fn new(
        links: Vec<GivenRate>,
        connections: Vec<Vec<Vec<usize>>>,
        limits: Option<Vec<Option<GivenRate>>>,
    ) -> PyResult<Self> {
        let capacities = links.iter().map(GivenRate::rate).collect::<PyResult<Vec<Rate>>>()?;
        let limits = limits.unwrap_or_else(|| connections.iter().map(|_| None).collect());
        if limits.len() != connections.len() {
            let said = format!("{} limits for {} connections", limits.len(), connections.len());
            return Err(PyValueError::new_err(said));
        }
        let connections = connections.iter().zip(&limits).map(|(routes, limit)| {
            let limit = limit.as_ref().map(GivenRate::rate).transpose()?;
            Ok(Connection { limit, ..Connection::over(routes) })
        });
        let connections = connections.collect::<PyResult<_>>()?;
        Ok(Self { network: CoreNetwork::new(capacities, connections).map_err(raise::<TheoryError>)? })
    }

    fn __repr__(&self) -> String {
        let (links, connections) = (self.network.capacities().len(), self.network.connections().len());
        format!("<Network of {links} links and {connections} connections>")
    }
}

/// What is asked about: a network, or a scenario.
#[derive(Debug, FromPyObject)]
pub(crate) enum Asked<'py> {
    Network(PyRef<'py, Network>),
    Scenario(PyRef<'py, Scenario>),
}

/// A network with the names that its parts have.
struct Named {
    network: CoreNetwork,
    connections: Vec<String>,
    links: Vec<String>,
    /// For each connection, which of its paths the subflows are.
    paths: Vec<Vec<usize>>,
    /// What share of a packet is payload, where that is known.
    payload: Vec<f64>,
    /// What was simplified.
    notes: Vec<String>,
    /// What is read of a scenario besides.
    reading: Option<Reading>,
}

impl Named {
    fn new(asked: &Asked<'_>) -> PyResult<Self> {
        let numbered = |count: usize| (0..count).map(|number| number.to_string()).collect();
        match asked {
            Asked::Network(given) => {
                let network = given.network.clone();
                let each = network.connections();
                Ok(Self {
                    connections: numbered(each.len()),
                    links: numbered(network.capacities().len()),
                    paths: each.iter().map(|connection| (0..connection.subflows.len()).collect()).collect(),
                    payload: vec![1.0; each.len()],
                    notes: Vec::new(),
                    reading: None,
                    network,
                })
            }
            Asked::Scenario(scenario) => {
                let checked = scenario.checked().deref();
                let reading = Reading::new(checked, 0.0).map_err(raise::<TheoryError>)?;
                let each = &reading.connections;
                Ok(Self {
                    connections: each.iter().map(|described| described.name.clone()).collect(),
                    links: reading.links.iter().map(|&link| checked.links[link].name.clone()).collect(),
                    paths: each.iter().map(|described| described.paths.clone()).collect(),
                    payload: each.iter().map(|described| described.payload).collect(),
                    notes: reading.notes.clone(),
                    network: reading.network.clone(),
                    reading: Some(reading),
                })
            }
        }
    }
}

/// Who gets how much.
#[pyclass(frozen, get_all, module = "manypath.theory")]
#[derive(Debug)]
pub(crate) struct Allocation {
    /// By connection: `rate_bps` counts whole packets, `goodput_bps` the payload in them.
    connections: Py<Table>,
    /// By subflow. Often other splits are as good.
    subflows: Py<Table>,
    /// By link: capacity, load, and where a utility is maximised, the price.
    links: Py<Table>,
    /// What was simplified of a scenario.
    notes: Vec<String>,
}

impl Allocation {
    fn new(py: Python<'_>, named: &Named, rates: &Rates, prices: Option<Vec<f64>>) -> PyResult<Self> {
        let totals = rates.totals();
        let connections = GivenTable::new("connections", "One row a connection.")
            .with("connection", "Name of the connection.", Values::Text(named.connections.clone()))
            .with("rate_bps", "Whole packets, bit/s.", bps(&totals))
            .with("goodput_bps", "The payload in them, bit/s.", bps(&payload(&totals, &named.payload)));
        let (mut name, mut path, mut rate) = (Vec::new(), Vec::new(), Vec::new());
        for (index, connection) in named.connections.iter().enumerate() {
            for (number, subflow) in named.paths[index].iter().zip(rates.subflows(index)) {
                name.push(connection.clone());
                path.push(*number as u64);
                rate.push(*subflow);
            }
        }
        let subflows = GivenTable::new("subflows", "One row a subflow.")
            .with("connection", "Name of the connection.", Values::Text(name))
            .with("path", "Number of its path, from 0.", Values::Whole(path))
            .with("rate_bps", "Whole packets, bit/s.", bps(&rate));
        let mut links = GivenTable::new("links", "One row a link that data crosses.")
            .with("link", "Name of the link.", Values::Text(named.links.clone()))
            .with("capacity_bps", "What it carries, bit/s.", bps(named.network.capacities()))
            .with("load_bps", "What crosses it, bit/s.", bps(&rates.loads(&named.network)));
        if let Some(prices) = prices {
            links = links.with("price", "Utility gained per Mbit/s of capacity added.", Values::Real(prices));
        }
        let table = |given| Py::new(py, Table::new(py, given)?);
        Ok(Self {
            connections: table(connections)?,
            subflows: table(subflows)?,
            links: table(links)?,
            notes: named.notes.clone(),
        })
    }
}

#[pymethods]
impl Allocation {
    fn __repr__(&self) -> String {
        format!("<Allocation for {} connections>", self.connections.get().rows())
    }
}

fn bps(rates: &[Rate]) -> Values {
    Values::Real(rates.iter().map(|rate| rate.as_bps()).collect())
}

fn payload(rates: &[Rate], share: &[f64]) -> Vec<Rate> {
    rates.iter().zip(share).map(|(rate, share)| *rate * *share).collect()
}

/// The lexicographic max-min fair allocation of a network or a scenario, which MPCC steers for (s4).
#[pyfunction]
pub(crate) fn lmmf(py: Python<'_>, asked: Asked<'_>) -> PyResult<Allocation> {
    let named = Named::new(&asked)?;
    let rates = py.detach(|| manypath_theory::lmmf(&named.network)).map_err(raise::<TheoryError>)?;
    Allocation::new(py, &named, &rates, None)
}

/// The allocation that maximises the sum of alpha-fair utilities of a network or a scenario, and the links' prices; with
/// alpha 1 proportional fairness. The paths of a `uni-mptcp` connection have its weights (Uni-MPTCP, equations 14 and 15).
///
/// `weights` are those of the connections, `subflow_weights` those of their subflows' rates (Uni-MPTCP's omega).
#[pyfunction]
#[pyo3(signature = (asked, alpha=1.0, *, weights=None, subflow_weights=None))]
pub(crate) fn num(
    py: Python<'_>,
    asked: Asked<'_>,
    alpha: f64,
    weights: Option<Vec<f64>>,
    subflow_weights: Option<Vec<Vec<f64>>>,
) -> PyResult<Allocation> {
    let named = Named::new(&asked)?;
    let plain = |count: usize| Utility { alpha, ..Utility::proportional(count) };
    let mut utilities: Vec<Utility> = match &named.reading {
        Some(reading) => reading.utilities(alpha),
        None => named.paths.iter().map(|paths| plain(paths.len())).collect(),
    };
    if let Some(weights) = weights {
        one_each("weights", weights.len(), utilities.len())?;
        utilities.iter_mut().zip(weights).for_each(|(utility, weight)| utility.weight = weight);
    }
    if let Some(weights) = subflow_weights {
        one_each("subflow_weights", weights.len(), utilities.len())?;
        utilities.iter_mut().zip(weights).for_each(|(utility, weights)| utility.subflow_weights = weights);
    }
    let optimum = py.detach(|| maximise(&named.network, &utilities)).map_err(raise::<TheoryError>)?;
    Allocation::new(py, &named, &optimum.allocation, Some(optimum.prices))
}

fn one_each(what: &str, given: usize, connections: usize) -> PyResult<()> {
    if given == connections {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{given} {what} for {connections} connections")))
}
