//! Lexicographic max-min fairness (LMMF), the optimum that MPCC (s4) steers for.
//!
//! Of all feasible allocations it is the one whose sorted vector of connection totals is lexicographically largest: no
//! connection can gain without one that has as much or less losing. A connection counts with the sum of its subflows,
//! however many they are.
//!
//! Progressive filling: raise the totals of all free connections together as far as the links allow (a linear program);
//! freeze those that cannot grow further; repeat with the rest. Which ones cannot grow follows from the prices of the
//! program: the solver ends in the interior of the set of optimal points, where a connection has a positive price if and
//! only if it is at the level in every optimal allocation. One that is missed stops the next round at the same level and is
//! frozen there, so that a weak price costs a round, not accuracy.
//!
//! What the prices say of links keeps the programs small. The connections with a price fill the links with a price, in every
//! allocation that gives them their level, also in later rounds: nobody else has anything there, and where such
//! connections cross no other links, they and those links are settled.
//!
//! The totals are unique. The split over subflows often is not; the one returned is in the middle of the possible ones.

use crate::conic::{Program, SolveError};
use crate::network::{Allocation, Network};

/// A connection is frozen if its share in the price of the level is above this. The shares add up to one, and there are at
/// most 4096 connections: one is always frozen.
const FROZEN_PRICE: f64 = 1e-6;
/// A link is full for good if its price, in the unit of those of connections, is above this. A link that is missed costs
/// time only, so that there is room for the solver's errors.
const FULL_PRICE: f64 = 1e-4;
/// A subflow has nothing if it has no more than this part of what it could carry.
const NOTHING: f64 = 1e-6;
/// What a frozen connection may lose relative to its level in later rounds, so that the solver has room to move.
const SLACK: f64 = 1e-8;

/// The lexicographic max-min fair allocation; relative accuracy about 1e-6, with routes of several
/// hops about 2e-5.
///
/// The cost is one linear program for each level of the totals, at most one for each connection, smaller with each level.
/// Random networks of 100 connections with two or three subflows each on 40 links take about 30 ms where a subflow
/// crosses one link and 0.3 s where it crosses up to three; of 400 on 160 links, 0.8 s and 10 s.
///
/// # Errors
/// If the numerical solver gives up.
pub fn lmmf(network: &Network) -> Result<Allocation, SolveError> {
    let mut filling = Filling::new(network);
    loop {
        let allocation = filling.round()?;
        if filling.levels.iter().all(Option::is_some) {
            return Ok(allocation);
        }
    }
}

/// The state of progressive filling.
struct Filling<'a> {
    /// The network.
    network: &'a Network,
    /// What each subflow could carry alone, in bit/s: the unit of its variable.
    alone: Vec<f64>,
    /// The sum of that over each connection's subflows.
    most: Vec<f64>,
    /// The totals of frozen connections in bit/s.
    levels: Vec<Option<f64>>,
    /// Subflows that still are variables; the others have their rate in `rates`.
    open: Vec<bool>,
    /// Rates in bit/s: of this round for open subflows, for good for the others.
    rates: Vec<f64>,
}

impl<'a> Filling<'a> {
    fn new(network: &'a Network) -> Self {
        let alone = network.alone_bps();
        let connections = network.connections().len();
        let most = (0..connections).map(|index| alone[network.range(index)].iter().sum()).collect();
        let (open, rates) = (vec![true; alone.len()], vec![0.0; alone.len()]);
        Self { network, alone, most, levels: vec![None; connections], open, rates }
    }

    /// The open subflows of a connection.
    fn open_in(&self, connection: usize) -> impl Iterator<Item = usize> + '_ {
        self.network.range(connection).filter(|&subflow| self.open[subflow])
    }

    /// Raises the free connections as far as possible and freezes those that are stuck; gives the allocation.
    fn round(&mut self) -> Result<Allocation, SolveError> {
        let mut columns = vec![None; self.open.len()];
        let open = (0..self.open.len()).filter(|&subflow| self.open[subflow]);
        let level = open.enumerate().map(|(column, subflow)| columns[subflow] = Some(column)).count();
        let free: Vec<usize> = (0..self.levels.len()).filter(|&index| self.levels[index].is_none()).collect();
        // The level's unit is an upper bound of it, so that the variable is at most one.
        let unit = free.iter().fold(f64::INFINITY, |least, &index| least.min(self.most[index]));
        let mut program = Program::new(level + 1);
        program.maximise(level, 1.0);
        let (links, _) = add_links(&mut program, self.network, &self.alone, &columns);
        // A connection's total divided by `unit`, negated.
        let less_total = |connection: usize, unit: f64| -> Vec<(usize, f64)> {
            let term = |subflow: usize| Some((columns[subflow]?, -self.alone[subflow] / unit));
            self.network.range(connection).filter_map(term).collect()
        };
        let mut rows: Vec<Option<(usize, f64)>> = vec![None; self.levels.len()];
        for (connection, total) in self.levels.iter().enumerate() {
            let terms = total.map(|total| less_total(connection, total)).unwrap_or_default();
            if let Some(total) = total.filter(|_| !terms.is_empty()) {
                rows[connection] = Some((program.at_most(&terms, SLACK - 1.0), total));
            }
        }
        for &connection in &free {
            let most = self.most[connection];
            let mut terms = less_total(connection, most);
            terms.push((level, unit / most));
            rows[connection] = Some((program.at_most(&terms, 0.0), most));
        }
        let point = program.solve()?;
        let price = |row: usize, size: f64| point.duals[row] * unit / size;
        // The gradient of the level is zero: the prices of the free connections add up to one.
        let prices: Vec<f64> = rows.iter().map(|row| row.map_or(0.0, |(row, size)| price(row, size))).collect();
        let capacities = self.network.capacities().iter().map(|capacity| capacity.as_bps());
        let full: Vec<bool> =
            links.into_iter().zip(capacities).map(|(row, capacity)| price(row, capacity) > FULL_PRICE).collect();
        for &connection in free.iter().filter(|&&connection| prices[connection] > FROZEN_PRICE) {
            self.levels[connection] = Some(point.values[level] * unit);
        }
        for (subflow, column) in columns.iter().enumerate() {
            if let Some(column) = *column {
                self.rates[subflow] = point.values[column] * self.alone[subflow];
            }
        }
        self.clear(&full, &prices);
        self.settle(&full, &prices);
        let allocation = Allocation::fitted(self.network, &self.rates);
        // No level is above what this allocation, which fits, gives: so the next round has an allocation too.
        for (frozen, total) in self.levels.iter_mut().zip(allocation.totals()) {
            *frozen = frozen.map(|level| level.min(total.as_bps()));
        }
        Ok(allocation)
    }

    /// Closes the subflows over full links of connections without a price: they have nothing.
    fn clear(&mut self, full: &[bool], prices: &[f64]) {
        for (number, (connection, subflow)) in self.network.subflows().enumerate() {
            let nothing = self.rates[number] <= NOTHING * self.alone[number];
            let over_full = subflow.links.iter().any(|&link| full[link]);
            if self.open[number] && nothing && over_full && prices[connection] <= FROZEN_PRICE {
                self.open[number] = false;
                self.rates[number] = 0.0;
            }
        }
    }

    /// Closes the subflows of connections that only share full links with one another, at the rates that they have.
    fn settle(&mut self, full: &[bool], prices: &[f64]) {
        let links: Vec<&[usize]> = self.network.subflows().map(|(_, subflow)| subflow.links.as_slice()).collect();
        // What leads outside, from link to connection and back.
        let mut inner = full.to_vec();
        let mut leads_out: Vec<bool> = prices.iter().map(|price| *price <= FROZEN_PRICE).collect();
        loop {
            let mut changed = false;
            for (connection, leads_out) in leads_out.iter_mut().enumerate() {
                let leaves = self.open_in(connection).any(|subflow| links[subflow].iter().any(|&link| !inner[link]));
                *leads_out |= leaves;
                for subflow in self.open_in(connection).filter(|_| *leads_out) {
                    for &link in links[subflow] {
                        changed |= core::mem::replace(&mut inner[link], false);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        for connection in (0..leads_out.len()).filter(|&connection| !leads_out[connection]) {
            for subflow in self.network.range(connection) {
                self.open[subflow] = false;
            }
        }
    }
}

/// Adds what every allocation obeys: capacities, limits, no negative rates. A subflow is the variable that `columns` says, in
/// units of `alone`, or none; gives the rows of the links and of the limited connections.
pub(crate) fn add_links(
    program: &mut Program,
    network: &Network,
    alone: &[f64],
    columns: &[Option<usize>],
) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut crossing: Vec<Vec<(usize, f64)>> = vec![Vec::new(); network.capacities().len()];
    for (number, (_, subflow)) in network.subflows().enumerate() {
        let Some(column) = columns[number] else { continue };
        program.nonnegative(column);
        for &link in &subflow.links {
            crossing[link].push((column, alone[number] / network.capacities()[link].as_bps()));
        }
    }
    let links = crossing.iter().map(|terms| program.at_most(terms, 1.0)).collect();
    let limit = |(index, connection): (usize, &crate::network::Connection)| {
        let limit = connection.limit?.as_bps();
        let term = |number: usize| Some((columns[number]?, alone[number] / limit));
        let terms: Vec<(usize, f64)> = network.range(index).filter_map(term).collect();
        Some(program.at_most(&terms, 1.0))
    };
    (links, network.connections().iter().enumerate().map(limit).collect())
}
