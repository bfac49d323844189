//! One link: from its table to the model.

use manypath_core::{Duration, Rate, Time};
use manypath_link::{Capacity, Change, GilbertElliott, LinkConfig, Loss, Red};

use super::traces::Traces;
use super::{both, out_of_range};
use crate::error::Problem;
use crate::file::{ChangeTable, DrawTable, LinkTable, RedTable, RedrawTable};
use crate::model::{Draw, Link, Redraw};
use crate::topologies::ways_back;
use crate::units::{Text, Written};

/// The most names that an error lists.
const LISTED: usize = 20;

/// A link that is none of `others`: it must say rate, delay and queue.
pub(super) fn new_link(table: &LinkTable, others: &[Link]) -> Result<Link, Problem> {
    let missing = |key, remedy| {
        let names: Vec<_> =
            others.iter().map(|link| link.name.as_str()).filter(|name| ways_back(name) == 0).take(LISTED).collect();
        Problem::NewLink { name: table.name.clone(), known: names.join(", "), key, remedy }
    };
    if table.rate.is_none() && table.trace.is_none() {
        return Err(missing("rate", "write rate = \"100Mbit\", or trace = \"FILE\""));
    }
    let delay = table.delay.ok_or_else(|| missing("delay", "write delay = \"15ms\""))?.0;
    let queue = table.queue.ok_or_else(|| missing("queue", "write queue = \"250packets\" or \"375kB\""))?.0;
    // Replaced by the table's rate or trace.
    let config = LinkConfig::new(Rate::from_mbps(1.0), delay, queue);
    Ok(Link { name: table.name.clone(), from: String::new(), to: String::new(), config, redraw: None })
}

pub(super) fn change_link(link: &mut Link, table: &LinkTable, traces: &mut Traces<'_>) -> Result<(), Problem> {
    for (node, given) in [(&mut link.from, &table.from), (&mut link.to, &table.to)] {
        if let Some(given) = given {
            node.clone_from(given);
        }
    }
    let config = &mut link.config;
    match (&table.rate, &table.trace) {
        (Some(_), Some(_)) => return Err(both(&table.name, "rate", "trace")),
        (Some(Text(rate)), None) => config.capacity = Capacity::Rate(*rate),
        (None, Some(path)) => config.capacity = Capacity::Trace(traces.read(path)?),
        (None, None) => {}
    }
    config.delay = table.delay.map_or(config.delay, |delay| delay.0);
    config.jitter = table.jitter.map_or(config.jitter, |jitter| jitter.0);
    config.reorder = table.reorder.unwrap_or(config.reorder);
    config.queue = table.queue.map_or(config.queue, |queue| queue.0);
    config.ecn_threshold = table.ecn.map(|threshold| threshold.0).or(config.ecn_threshold);
    if let Some(loss) = loss(table)? {
        config.loss = loss;
    }
    if let Some(table) = &table.red {
        config.red = Some(red(table));
    }
    if let Some(changes) = &table.schedule {
        config.schedule = changes.iter().map(|change| changed(table, change)).collect::<Result<_, _>>()?;
    }
    if let Some(values) = &table.redraw {
        if table.schedule.is_some() {
            return Err(both(&table.name, "schedule", "redraw"));
        }
        link.redraw = Some(redraw(values)?);
    }
    let redrawn = link.redraw.as_ref().is_some_and(|redraw| redraw.loss.is_some());
    if matches!(link.config.loss, Loss::Bursty(_)) && redrawn {
        return Err(both(&table.name, "loss-burst", "redraw.loss"));
    }
    // Also where the one is the topology's and the other a change of it.
    if matches!(link.config.capacity, Capacity::Trace(_))
        && link.redraw.as_ref().is_some_and(|redraw| redraw.rate.is_some())
    {
        return Err(both(&table.name, "trace", "redraw.rate"));
    }
    Ok(())
}

/// The loss that a table asks for, if it does.
fn loss(table: &LinkTable) -> Result<Option<Loss>, Problem> {
    match (table.loss, table.loss_burst) {
        (None, None) => Ok(None),
        (Some(Text(loss)), burst) => in_bursts(loss, burst).map(Some),
        (None, Some(_)) => {
            let remedy = "write loss = \"1%\": the mean share of packets lost";
            Err(Problem::Missing { what: format!("link '{}'", table.name), key: "loss", remedy })
        }
    }
}

/// This loss, in bursts of so many packets.
fn in_bursts(loss: f64, burst: Option<f64>) -> Result<Loss, Problem> {
    let Some(burst) = burst else { return Ok(Loss::Random(loss)) };
    // At least one packet passes between two bursts.
    if !(1.0..=1e9).contains(&burst) || loss >= 1.0 || burst < loss / (1.0 - loss) {
        let range = "at least 1 and at least loss / (1 - loss), which is below 100%";
        return Err(out_of_range("loss-burst", burst, range));
    }
    Ok(Loss::Bursty(GilbertElliott::simple(loss, burst)))
}

fn red(table: &RedTable) -> Red {
    Red {
        min: table.min.0,
        max: table.max.0,
        max_probability: table.max_probability.0,
        weight: table.weight,
        gentle: table.gentle,
        ecn: table.ecn,
    }
}

/// A change of a link's schedule.
fn changed(link: &LinkTable, table: &ChangeTable) -> Result<Change, Problem> {
    let change = Change {
        at: Time::ZERO + table.at.0,
        rate: table.rate.map(|rate| rate.0),
        delay: table.delay.map(|delay| delay.0),
        jitter: table.jitter.map(|jitter| jitter.0),
        loss: table.loss.map(|loss| in_bursts(loss.0, link.loss_burst)).transpose()?,
    };
    if change == (Change { at: change.at, ..Change::default() }) {
        let remedy = "write what changes: rate, delay, jitter or loss";
        return Err(Problem::Missing {
            what: format!("a change in the schedule of '{}'", link.name),
            key: "rate",
            remedy,
        });
    }
    Ok(change)
}

fn redraw(table: &RedrawTable) -> Result<Redraw, Problem> {
    if table.every.0 < Duration::from_millis(1) {
        return Err(out_of_range("redraw.every", table.every.0, "at least 1ms"));
    }
    let rate = table.rate.as_ref().map(|table| draw(table, |rate| rate.as_bps())).transpose()?;
    let delay = table.delay.as_ref().map(|table| draw(table, |delay| delay.as_secs_f64())).transpose()?;
    let loss = table.loss.as_ref().map(|table| draw(table, |loss| *loss)).transpose()?;
    if rate.is_none() && delay.is_none() && loss.is_none() {
        let remedy = "write what is drawn: rate, delay or loss";
        return Err(Problem::Missing { what: "redraw".to_owned(), key: "rate", remedy });
    }
    Ok(Redraw { every: table.every.0, rate, delay, loss })
}

fn draw<W: Written>(table: &DrawTable<W>, number: impl Fn(&W::Value) -> f64) -> Result<Draw, Problem> {
    let number = |text: &Text<W>| number(&text.0);
    match (&table.between, &table.one_of, &table.mean, &table.deviation) {
        (Some([low, high]), None, None, None) if number(low) <= number(high) => {
            Ok(Draw::Uniform(number(low), number(high)))
        }
        (None, Some(values), None, None) if !values.is_empty() => Ok(Draw::Choice(values.iter().map(number).collect())),
        (None, None, Some(mean), Some(deviation)) => Ok(Draw::Normal(number(mean), number(deviation))),
        _ => Err(Problem::Missing {
            what: "a drawn value".to_owned(),
            key: "between",
            remedy: "write between = [LOW, HIGH], or one-of = [...], or mean with deviation",
        }),
    }
}

pub(super) fn check_link(link: &Link) -> Result<(), Problem> {
    let problem = |source| Problem::Link { name: link.name.clone(), source };
    link.config.validate().map_err(problem)
}
