//! Links by name, and routes over them.

use core::ops::Range;
use std::collections::BTreeMap;

use manypath_link::{Capacity, LinkConfig, Loss, QueueLimit};

use super::link::{change_link, check_link, new_link};
use super::traces::Traces;
use super::{both, check_name, out_of_range};
use crate::error::Problem;
use crate::file::LinkTable;
use crate::model::Link;
use crate::topologies::{BACK_QUEUE, back_name};
use crate::units::{Located, Text};

/// The most links of a route: beyond it, it would be a circle or a mistake.
const MAX_ROUTE: usize = 64;

/// The links so far, by name.
pub(super) struct Names {
    pub(super) links: Vec<Link>,
    /// Where each link is described.
    pub(super) spans: Vec<Range<usize>>,
    index: BTreeMap<String, usize>,
    /// Where the file's tables begin, by name.
    tables: BTreeMap<String, usize>,
}

impl Names {
    /// The links of a topology, whose names differ, and the place that asks for it.
    pub(super) fn new(links: Vec<Link>, span: &Range<usize>) -> Self {
        let index = links.iter().enumerate().map(|(index, link)| (link.name.clone(), index)).collect();
        Self { spans: vec![span.clone(); links.len()], links, index, tables: BTreeMap::new() }
    }

    /// A link under its name, in the place of one that has it.
    fn put(&mut self, link: Link, span: &Range<usize>) {
        match self.index.get(&link.name) {
            Some(index) => {
                self.links[*index] = link;
                self.spans[*index] = span.clone();
            }
            None => {
                self.index.insert(link.name.clone(), self.links.len());
                self.links.push(link);
                self.spans.push(span.clone());
            }
        }
    }

    fn find(&self, name: &str) -> Result<usize, Problem> {
        self.index.get(name).copied().ok_or_else(|| {
            let mut known = self.index.keys().take(20).cloned().collect::<Vec<_>>().join(", ");
            if known.is_empty() {
                known = "none: add [[link]] tables or a topology".to_owned();
            }
            Problem::UnknownLink { name: name.to_owned(), known }
        })
    }

    /// Takes a table: a new link, or a change of one that the topology has or that is the way back of another.
    pub(super) fn take(&mut self, table: &Located<LinkTable>, traces: &mut Traces<'_>) -> Result<(), Problem> {
        let Located { span, value: table } = table;
        check_name(&table.name)?;
        if let Some(line) = self.tables.insert(table.name.clone(), span.start) {
            return Err(Problem::SameLink { name: table.name.clone(), line });
        }
        let mut link = match self.index.get(&table.name) {
            Some(index) => self.links[*index].clone(),
            None => new_link(table, &self.links)?,
        };
        change_link(&mut link, table, traces)?;
        check_link(&link)?;
        let back = self.back_of(table, &link)?;
        self.put(link, span);
        if let Some(back) = back {
            self.put(back, span);
        }
        Ok(())
    }

    /// The way back of a link, new or changed.
    fn back_of(&self, table: &LinkTable, there: &Link) -> Result<Option<Link>, Problem> {
        let name = back_name(&table.name);
        if table.one_way {
            return match table.back {
                Some(_) => Err(both(&table.name, "one-way", "back")),
                None if self.index.contains_key(&name) => Err(Problem::TwoWay(table.name.clone())),
                None => Ok(None),
            };
        }
        let mut back = match self.index.get(&name) {
            Some(index) => self.links[*index].clone(),
            None => {
                let rate = there.config.peak_rate();
                let config = LinkConfig::new(rate, there.config.delay, QueueLimit::Packets(BACK_QUEUE));
                Link { name, from: String::new(), to: String::new(), config, redraw: None }
            }
        };
        (back.from, back.to) = (there.to.clone(), there.from.clone());
        // A change of rate or delay is one of the whole link, unless the way back has its own.
        if let Some(Text(rate)) = table.back.as_ref().and_then(|back| back.rate).or(table.rate) {
            back.config.capacity = Capacity::Rate(rate);
        }
        if let Some(Text(delay)) = table.back.as_ref().and_then(|back| back.delay).or(table.delay) {
            back.config.delay = delay;
        }
        if let Some(own) = &table.back {
            back.config.queue = own.queue.map_or(back.config.queue, |queue| queue.0);
            back.config.loss = own.loss.map_or(back.config.loss, |loss| Loss::Random(loss.0));
        }
        check_link(&back)?;
        Ok(Some(back))
    }

    /// A route of names as indices.
    pub(super) fn route(&self, names: &[String]) -> Result<Vec<usize>, Problem> {
        if names.len() > MAX_ROUTE {
            return Err(out_of_range("the number of links of a route", names.len(), "at most 64"));
        }
        let mut route = Vec::new();
        for name in names {
            let index = self.find(name)?;
            if route.contains(&index) {
                return Err(Problem::Cycle(name.clone()));
            }
            route.push(index);
        }
        if route.is_empty() {
            return Err(Problem::EmptyRoute);
        }
        self.check_nodes(&route)?;
        Ok(route)
    }

    /// Links with nodes meet, and no node is passed twice.
    fn check_nodes(&self, route: &[usize]) -> Result<(), Problem> {
        let mut passed: Vec<&str> = Vec::new();
        for pair in route.windows(2) {
            let (first, second) = (&self.links[pair[0]], &self.links[pair[1]]);
            if first.to != second.from {
                return Err(Problem::Broken {
                    first: first.name.clone(),
                    end: first.to.clone(),
                    second: second.name.clone(),
                    begin: second.from.clone(),
                });
            }
        }
        for link in route.iter().map(|index| &self.links[*index]) {
            if !link.from.is_empty() && passed.contains(&link.from.as_str()) {
                return Err(Problem::Cycle(link.from.clone()));
            }
            passed.push(&link.from);
        }
        match route.last().map(|index| self.links[*index].to.as_str()) {
            Some(end) if !end.is_empty() && passed.contains(&end) => Err(Problem::Cycle(end.to_owned())),
            _ => Ok(()),
        }
    }

    /// The way back of a route.
    pub(super) fn route_back(&self, route: &[String]) -> Result<Vec<usize>, Problem> {
        let names: Vec<String> = route.iter().rev().map(|name| back_name(name)).collect();
        if let Some(at) = names.iter().position(|name| !self.index.contains_key(name)) {
            return Err(Problem::NoWayBack(route[route.len() - 1 - at].clone()));
        }
        self.route(&names)
    }
}
