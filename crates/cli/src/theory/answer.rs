//! An answer of theory, whatever the question was, in the shape in which it is printed.

use anyhow::Result;
use manypath_core::Rate;
use manypath_scenario::Scenario;
use manypath_theory::num::maximise;
use manypath_theory::scenario::Reading;
use serde::Serialize;

use crate::output::rounded;

/// Rates by connection and subflow, and what a link asks.
pub(super) struct Answer {
    /// The question, in a few words.
    title: String,
    rates: Vec<Vec<Rate>>,
    /// The price of each link of the network, and its unit.
    prices: Option<(Vec<f64>, &'static str)>,
    /// What was simplified beyond the reading.
    notes: Vec<String>,
}

/// An answer with the names of the scenario.
#[derive(Debug, Serialize)]
pub(super) struct AnswerReport {
    pub(super) scenario: String,
    pub(super) question: String,
    /// What was simplified.
    pub(super) notes: Vec<String>,
    pub(super) connections: Vec<ConnectionRow>,
    pub(super) links: Vec<LinkRow>,
    /// The unit of the links' prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price_unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct ConnectionRow {
    pub(super) name: String,
    pub(super) cc: String,
    /// Whole packets.
    pub(super) rate_bps: f64,
    /// The payload in them.
    pub(super) goodput_bps: f64,
    pub(super) paths: Vec<PathRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct PathRow {
    /// The path's number in the scenario.
    pub(super) path: usize,
    pub(super) links: Vec<String>,
    pub(super) rate_bps: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct LinkRow {
    pub(super) name: String,
    pub(super) capacity_bps: f64,
    pub(super) load_bps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<f64>,
}

/// Lexicographic max-min fairness.
pub(super) fn lmmf(reading: &Reading) -> Result<Answer> {
    let allocation = manypath_theory::lmmf(&reading.network)?;
    let rates = (0..reading.connections.len()).map(|index| allocation.subflows(index).to_vec()).collect();
    Ok(Answer { title: "lexicographic max-min fairness".to_owned(), rates, prices: None, notes: Vec::new() })
}

/// Utility maximisation.
pub(super) fn num(reading: &Reading, alpha: f64) -> Result<Answer> {
    let optimum = maximise(&reading.network, &reading.utilities(alpha))?;
    let rates = (0..reading.connections.len()).map(|index| optimum.allocation.subflows(index).to_vec()).collect();
    let prices = Some((optimum.prices, "utility per Mbit/s"));
    Ok(Answer { title: format!("largest utility, alpha {alpha}"), rates, prices, notes: Vec::new() })
}

/// The equilibrium of the fluid models.
pub(super) fn fluid(reading: &Reading) -> Result<Answer> {
    let equilibrium = reading.system()?.equilibrium()?;
    let rates = (0..reading.connections.len()).map(|index| equilibrium.subflows(index).to_vec()).collect();
    let prices = Some((equilibrium.prices().to_vec(), "loss probability"));
    Ok(Answer { title: "equilibrium of the fluid models".to_owned(), rates, prices, notes: reading.unmodelled() })
}

impl Answer {
    /// The answer with the names of the scenario that was read.
    pub(super) fn report(&self, scenario: &Scenario, reading: &Reading) -> AnswerReport {
        let name = |&link: &usize| scenario.links[link].name.clone();
        let bps = |rate: Rate| rounded(rate.as_bps(), 0);
        let connection = |(index, rates): (usize, &Vec<Rate>)| {
            let described = &reading.connections[index];
            let total: Rate = rates.iter().copied().sum();
            let forward = |path: usize| &scenario.connections[index].paths[path].forward;
            let path = |(&path, rate): (&usize, &Rate)| PathRow {
                path,
                links: forward(path).iter().map(name).collect(),
                rate_bps: bps(*rate),
            };
            ConnectionRow {
                name: described.name.clone(),
                cc: described.cc.to_string(),
                rate_bps: bps(total),
                goodput_bps: bps(total * described.payload),
                paths: described.paths.iter().zip(rates).map(path).collect(),
            }
        };
        let price = |number: usize| self.prices.as_ref().map(|(prices, _)| prices[number]);
        let link = |(number, index): (usize, &usize)| LinkRow {
            name: name(index),
            capacity_bps: bps(reading.network.capacities()[number]),
            load_bps: bps(self.load(reading, number)),
            price: price(number),
        };
        AnswerReport {
            scenario: scenario.name.clone(),
            question: self.title.clone(),
            notes: [reading.notes.as_slice(), &self.notes].concat(),
            connections: self.rates.iter().enumerate().map(connection).collect(),
            links: reading.links.iter().enumerate().map(link).collect(),
            price_unit: self.prices.as_ref().map(|(_, unit)| *unit),
        }
    }

    /// What crosses a link of the network.
    fn load(&self, reading: &Reading, link: usize) -> Rate {
        let connections = reading.network.connections().iter().zip(&self.rates);
        let subflows = connections.flat_map(|(connection, rates)| connection.subflows.iter().zip(rates));
        subflows.filter(|(subflow, _)| subflow.links.contains(&link)).map(|(_, rate)| *rate).sum()
    }
}
