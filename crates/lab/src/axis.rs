//! Axes of a sweep: named lists of values, each with a label and what it binds.

use std::collections::BTreeMap;

use manypath_core::AlgorithmSpec;
use toml::Spanned;

use crate::error::{Fault, Problem};
use crate::expression::number;
use crate::file::{AxisTable, Part};
use crate::template::{Bindings, Node, Value};

/// An axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name in placeholders and claims.
    pub name: String,
    /// What figures call it.
    pub title: String,
    /// Its values in the order of the file.
    pub values: Vec<AxisValue>,
    /// The values that quick runs take, by index.
    pub quick: Vec<usize>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// What it is called.
    pub label: String,
    /// The label as a number in base units (bytes, seconds, bit/s), where it is one; else its place from zero.
    pub number: f64,
    /// Whether it is run only for the claims' wrong variations.
    pub hidden: bool,
    pub(crate) bindings: Bindings,
    /// What it adds to the scenario.
    pub(crate) scenario: Option<Node>,
}

impl AxisValue {
    /// The algorithms that it binds: controllers and schedulers by the name of their placeholder.
    pub fn bound(&self, name: &str) -> Option<&str> {
        self.bindings.get(name).and_then(Node::as_label)
    }
}

/// What an axis may be of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Values,
    Controllers,
    Schedulers,
}

/// The scheduler that fits a controller when a sweep names none: that of scenarios to those that send by rate; to all others the
/// default of Multipath TCP 0.9x, as MPCC section 7.1 does.
pub fn fitting_scheduler(controller: &str) -> &'static str {
    if manypath_cc::sends_by_rate(controller) { "rate-based" } else { "minrtt-pr" }
}

/// Checks an axis. `values` and `defaults` are the same tables as in `table`, with their places.
pub(crate) fn axis(table: &Spanned<AxisTable>, nodes: &Node) -> Result<Axis, Fault> {
    let at = table.span().start;
    let file = table.get_ref();
    let name = file.name.get_ref().clone();
    let Value::Table(entries) = &nodes.value else {
        return Err((at, Problem::Syntax("an axis is a table".to_owned())));
    };
    let of = match file.of.as_ref().map(|of| (of.span().start, of.get_ref().as_str())) {
        None => Of::Values,
        Some((_, "controllers")) => Of::Controllers,
        Some((_, "schedulers")) => Of::Schedulers,
        Some((at, other)) => {
            return Err((at, Problem::unknown("kind of axis", other, ["controllers", "schedulers"].into_iter())));
        }
    };
    let default = match entries.get("default").map(|node| &node.value) {
        Some(Value::Table(default)) if file.default.is_some() => default.clone(),
        _ => Bindings::new(),
    };
    if file.values.is_some() && file.product.is_some() {
        return Err((at, Problem::Both { what: format!("axis '{name}'"), first: "values", second: "product" }));
    }
    let mut values = match (entries.get("values").map(|node| &node.value), entries.get("product")) {
        (Some(Value::List(nodes)), _) => listed(&name, nodes, of)?,
        (None, Some(product)) => combined(product)?,
        _ => {
            let remedy = "write values = [...], or product = { NAME = [...], ... }";
            return Err((at, Problem::Missing { what: format!("axis '{name}'"), key: "values", remedy }));
        }
    };
    if values.is_empty() {
        let what = format!("the number of values of '{name}'");
        return Err((at, Problem::OutOfRange { what, value: "0".to_owned(), range: "at least 1" }));
    }
    for value in &mut values {
        for (key, node) in &default {
            value.bindings.entry(key.clone()).or_insert_with(|| node.clone());
        }
        if of == Of::Controllers {
            bind_scheduler(&name, value, at)?;
        }
    }
    check_labels(&name, &values, at)?;
    let quick = quick(file, &values)?;
    Ok(Axis { title: file.title.clone().unwrap_or_else(|| name.clone()), name, values, quick })
}

fn check_labels(name: &str, values: &[AxisValue], at: usize) -> Result<(), Fault> {
    let mut seen = BTreeMap::new();
    for value in values {
        let label = &value.label;
        let at = value.bindings.get(name).map_or(at, |node| node.at);
        if label.is_empty() || label.contains(['[', ']', ',', '|', '{', '}']) || label.len() > 100 {
            let what = "a label".to_owned();
            let range = "1 to 100 characters, none of []{},|";
            return Err((at, Problem::OutOfRange { what, value: label.chars().take(40).collect(), range }));
        }
        if seen.insert(label, ()).is_some() {
            return Err((at, Problem::Twice { what: "the label", name: label.clone() }));
        }
    }
    Ok(())
}

/// Values written one by one.
fn listed(name: &str, nodes: &[Node], of: Of) -> Result<Vec<AxisValue>, Fault> {
    let mut values = Vec::new();
    for node in nodes {
        if of != Of::Values && node.as_label() == Some("all") {
            let known: Vec<&str> = match of {
                Of::Controllers => manypath_cc::algorithms().iter().map(|algorithm| algorithm.name).collect(),
                _ => manypath_sched::algorithms().iter().map(|algorithm| algorithm.name).collect(),
            };
            let held: Vec<String> = values.iter().map(|value: &AxisValue| value.label.clone()).collect();
            let others = known.into_iter().filter(|algorithm| !held.iter().any(|label| label == algorithm));
            for other in others {
                values.push(one(name, &Node::text(node.at, other))?);
            }
            continue;
        }
        values.push(one(name, node)?);
    }
    for (index, value) in values.iter_mut().enumerate() {
        value.number = number(&value.label).unwrap_or(index as f64);
        let Some(text) = value.bindings.get(name).and_then(|node| Some((node.at, node.as_label()?.to_owned()))) else {
            continue;
        };
        check_algorithm(&text.1, of).map_err(|problem| (text.0, problem))?;
    }
    Ok(values)
}

fn check_algorithm(text: &str, of: Of) -> Result<(), Problem> {
    match of {
        Of::Values => Ok(()),
        Of::Controllers => Ok(manypath_cc::create(&text.parse()?, 0).map(drop)?),
        Of::Schedulers => Ok(manypath_sched::create(&text.parse()?).map(drop)?),
    }
}

fn one(name: &str, node: &Node) -> Result<AxisValue, Fault> {
    let mut value =
        AxisValue { label: String::new(), number: 0.0, hidden: false, bindings: Bindings::new(), scenario: None };
    match &node.value {
        Value::Text(text) | Value::Plain(text) => value.label.clone_from(text),
        Value::List(_) => {
            return Err((node.at, Problem::Syntax("a value is a text, a number, or a table with a label".to_owned())));
        }
        Value::Table(entries) => {
            for (key, node) in entries {
                match key.as_str() {
                    "label" => value.label = label(node)?,
                    "hidden" => value.hidden = node.as_label() == Some("true"),
                    "scenario" => value.scenario = Some(node.clone()),
                    _ => {
                        value.bindings.insert(key.clone(), node.clone());
                    }
                }
            }
            if value.label.is_empty() {
                let bound = value.bindings.get(name).and_then(Node::as_label);
                value.label = bound.map(str::to_owned).ok_or_else(|| {
                    let what = "a value that is a table".to_owned();
                    let remedy = "write label = \"...\"";
                    (node.at, Problem::Missing { what, key: "label", remedy })
                })?;
            }
        }
    }
    if !value.bindings.contains_key(name) {
        let bound = match &node.value {
            Value::Plain(_) => node.clone(),
            _ => Node::text(node.at, &value.label),
        };
        value.bindings.insert(name.to_owned(), bound);
    }
    Ok(value)
}

fn label(node: &Node) -> Result<String, Fault> {
    let label = node.as_label().map(str::to_owned);
    label.ok_or_else(|| (node.at, Problem::Syntax("a label is a text".to_owned())))
}

/// All combinations of the axes in a table; the first key varies slowest.
fn combined(product: &Node) -> Result<Vec<AxisValue>, Fault> {
    let wrong = || (product.at, Problem::Syntax("product is a table of lists".to_owned()));
    let Value::Table(entries) = &product.value else { return Err(wrong()) };
    let mut values: Vec<AxisValue> = Vec::new();
    for (name, node) in entries {
        let Value::List(nodes) = &node.value else { return Err(wrong()) };
        let more = nodes.iter().map(|node| one(name, node)).collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            values = more;
            continue;
        }
        let total = values.len() * more.len();
        if total > crate::experiment::MAX_CASES {
            return Err((product.at, Problem::TooManyCases(total)));
        }
        let pair = |(first, second): (&AxisValue, &AxisValue)| {
            let mut both = first.clone();
            both.label = format!("{} {}", first.label, second.label);
            both.bindings.extend(second.bindings.clone());
            both.hidden |= second.hidden;
            match (&mut both.scenario, &second.scenario) {
                (Some(held), Some(more)) => held.merge(more),
                (held @ None, Some(more)) => *held = Some(more.clone()),
                (_, None) => {}
            }
            both
        };
        values = values.iter().flat_map(|first| more.iter().map(move |second| pair((first, second)))).collect();
    }
    values.iter_mut().enumerate().for_each(|(index, value)| value.number = index as f64);
    Ok(values)
}

/// A controller brings the scheduler that fits it, unless the value says another.
fn bind_scheduler(name: &str, value: &mut AxisValue, at: usize) -> Result<(), Fault> {
    if value.bindings.contains_key("scheduler") {
        return Ok(());
    }
    let controller = value.bound(name).unwrap_or_default().to_owned();
    let spec: AlgorithmSpec = controller.parse().map_err(|error| (at, Problem::Algorithm(error)))?;
    value.bindings.insert("scheduler".to_owned(), Node::text(at, fitting_scheduler(&spec.name)));
    Ok(())
}

/// Which values quick runs take.
fn quick(file: &AxisTable, values: &[AxisValue]) -> Result<Vec<usize>, Fault> {
    match file.quick.as_ref().map(|part| (part.span().start, part.get_ref())) {
        None => Ok((0..values.len()).collect()),
        Some((at, Part::Some(labels))) => {
            let find = |label: &String| {
                let known = values.iter().map(|value| value.label.as_str());
                let at = (at, Problem::unknown("value", label, known));
                values.iter().position(|value| value.label == *label).ok_or(at)
            };
            Ok(with_hidden(labels.iter().map(find).collect::<Result<_, _>>()?, values))
        }
        Some((at, Part::Count(count))) => {
            if *count == 0 {
                let what = "quick".to_owned();
                return Err((at, Problem::OutOfRange { what, value: "0".to_owned(), range: "at least 1" }));
            }
            Ok(with_hidden(spread(values.len(), *count), values))
        }
    }
}

/// What only wrong variations need is always there.
fn with_hidden(mut found: Vec<usize>, values: &[AxisValue]) -> Vec<usize> {
    found.extend((0..values.len()).filter(|index| values[*index].hidden));
    found.sort_unstable();
    found.dedup();
    found
}

/// `count` of `total` indices, spread by multiples of the golden ratio, so that no pattern of the order shows through.
fn spread(total: usize, count: usize) -> Vec<usize> {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut order: Vec<usize> = (0..total).collect();
    order.sort_by_key(|index| (*index as u64 + 1).wrapping_mul(GOLDEN));
    order.truncate(count);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_has_a_scheduler_that_exists() {
        for algorithm in manypath_cc::algorithms() {
            let scheduler = AlgorithmSpec::named(fitting_scheduler(algorithm.name));
            assert!(manypath_sched::create(&scheduler).is_ok(), "{}", algorithm.name);
        }
    }

    #[test]
    fn a_part_is_spread_over_all() {
        let part = spread(576, 48);
        assert_eq!(part.len(), 48);
        assert!(part.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] < 50), "{part:?}");
        assert_eq!(spread(3, 10), [0, 1, 2]);
    }
}
