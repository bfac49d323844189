//! `lmmf` and `equilibrium`: what connections get from a network.
//!
//! Arguments `links` (rates) and `connections` (tables with `name` and `paths`; a path is a table with `links`, a list of
//! indices, and for `equilibrium` its `rtt`). For `equilibrium` each connection has its `law`, and there are `packet` and,
//! for the response, `gamma` (the speed of the links' prices). Quantities: `total.NAME` and `subflow.NAME.N` in bit/s,
//! `load.N` of each link; `slowest`, the largest real part of the eigenvalues in 1/s, where `gamma` is given.

use manypath_core::Duration;
use manypath_theory::fluid::System;
use manypath_theory::{Allocation, Connection, Network, Subflow};

use super::arguments::Arguments;
use super::law::named;
use crate::engine::EngineError;
use crate::quantities::Quantities;

fn failed(error: &dyn core::fmt::Display) -> EngineError {
    EngineError(error.to_string())
}

pub(super) fn lmmf(arguments: &Arguments) -> Result<Quantities, EngineError> {
    arguments.only(&["model", "links", "connections"])?;
    let (network, names) = network(arguments)?;
    let allocation = manypath_theory::lmmf(&network).map_err(|error| failed(&error))?;
    let mut found = Quantities::default();
    add(&mut found, &network, &names, &allocation);
    Ok(found)
}

pub(super) fn equilibrium(arguments: &Arguments) -> Result<Quantities, EngineError> {
    arguments.only(&["model", "links", "connections", "packet", "gamma"])?;
    let (network, names) = network(arguments)?;
    let laws = arguments.tables("connections")?;
    let laws = laws.iter().zip(network.connections());
    let laws = laws.map(|(table, connection)| named(table.text("law")?, connection.subflows.len()));
    let laws = laws.collect::<Result<Vec<_>, _>>()?;
    let system = System::new(&network, laws, arguments.size("packet")?).map_err(|error| failed(&error))?;
    let rest = system.equilibrium().map_err(|error| failed(&error))?;
    let mut found = Quantities::default();
    for (index, name) in names.iter().enumerate() {
        for (number, rate) in rest.subflows(index).iter().enumerate() {
            found.set(&format!("subflow.{name}.{number}"), rate.as_bps());
        }
        found.set(&format!("total.{name}"), rest.totals()[index].as_bps());
    }
    if arguments.has("gamma") {
        let response = system.response(&rest, arguments.number("gamma")?).map_err(|error| failed(&error))?;
        found.set("slowest", response.slowest());
    }
    Ok(found)
}

fn add(found: &mut Quantities, network: &Network, names: &[String], allocation: &Allocation) {
    for ((index, name), total) in names.iter().enumerate().zip(allocation.totals()) {
        found.set(&format!("total.{name}"), total.as_bps());
        for (number, rate) in allocation.subflows(index).iter().enumerate() {
            found.set(&format!("subflow.{name}.{number}"), rate.as_bps());
        }
    }
    for (index, load) in allocation.loads(network).into_iter().enumerate() {
        found.set(&format!("load.{index}"), load.as_bps());
    }
}

/// The network and the names of its connections.
fn network(arguments: &Arguments) -> Result<(Network, Vec<String>), EngineError> {
    let capacities = arguments.labels("links")?.into_iter().map(|text| text.parse().map_err(|error| failed(&error)));
    let capacities = capacities.collect::<Result<Vec<_>, _>>()?;
    let (mut names, mut connections) = (Vec::<String>::new(), Vec::new());
    for table in arguments.tables("connections")? {
        table.only(&["name", "paths", "law"])?;
        let name = table.text("name")?.to_owned();
        if names.contains(&name) {
            return Err(EngineError(format!("two connections are called '{name}': names must differ")));
        }
        names.push(name);
        let subflows = table.tables("paths")?.iter().map(subflow).collect::<Result<_, _>>()?;
        connections.push(Connection { subflows, limit: None });
    }
    let network = Network::new(capacities, connections).map_err(|error| failed(&error))?;
    Ok((network, names))
}

fn subflow(table: &Arguments) -> Result<Subflow, EngineError> {
    table.only(&["links", "rtt"])?;
    let link = |text: &str| text.parse().map_err(|_| EngineError(format!("'{text}' is no index of a link")));
    let links = table.labels("links")?.into_iter().map(link).collect::<Result<_, _>>()?;
    let rtt = if table.has("rtt") { table.span("rtt")? } else { Duration::ZERO };
    Ok(Subflow { links, rtt })
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;
    use crate::engine::{Engine as _, Input};
    use crate::models::Theory;
    use crate::template::Node;

    #[test]
    fn what_would_not_count_is_refused() {
        let ask = |text: &str| {
            let node = Node::table(0, DeTable::parse(text).unwrap().get_ref());
            Theory.run(&Input::Theory(Arguments(node)), 1).map_err(|error| error.to_string())
        };
        let two = "model = \"lmmf\"\nlinks = [\"10Mbit\"]\nconnections = [{ name = \"a\", paths = [{ links = [0] }] }, \
                   { name = \"b\", paths = [{ links = [0] }] }]\n";
        assert_eq!(ask(two).unwrap().0.len(), 5);
        let error = ask(&two.replace("\"b\"", "\"a\"")).unwrap_err();
        assert_eq!(error, "two connections are called 'a': names must differ");
        let error = ask(&format!("{two}gama = 1\n")).unwrap_err();
        assert_eq!(error, "the model has no 'gama'; it has model, links, connections");
        for (good, wrong) in [("name =", "laws = 1, name ="), ("links = [0]", "links = [0], rt = 1")] {
            assert!(ask(&two.replace(good, wrong)).unwrap_err().starts_with("the model has no '"), "{wrong}");
        }
    }
}
