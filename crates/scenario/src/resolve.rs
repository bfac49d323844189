//! From tables to a [`Scenario`]: names become indices, defaults are filled in, and what makes no sense is refused.

mod bounds;
mod connection;
mod link;
mod names;
mod source;
mod traces;

use core::ops::Range;
use std::path::Path as FilePath;

use crate::error::Problem;
use crate::file::File;
use crate::model::Scenario;
use crate::topologies::{topologies, topology, ways_back};
use crate::units::{Located, Text};
use manypath_core::{Bytes, Duration};

use connection::Connections;
use names::Names;
use source::source;
use traces::Traces;

/// The longest simulation: ten years.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 86_400);
/// The most samples of a time series.
const MAX_SAMPLES: u64 = 10_000_000;
/// The largest packet: what the IP header's length field can say.
const MAX_PACKET: Bytes = Bytes::new(65_535);
/// The shortest time between arrivals, changes and the like.
const MIN_INTERVAL: Duration = Duration::from_micros(1);

/// The longest name of a scenario, characters.
const MAX_TITLE: usize = 200;

/// A problem and where it is.
pub(crate) type Fault = (Range<usize>, Problem);

/// Makes a scenario of a file's tables. `folder` is where relative paths begin.
pub(crate) fn resolve(file: File, name: &str, folder: &FilePath) -> Result<Scenario, Fault> {
    let duration = checked_duration(&file)?;
    let warmup = file.warmup.as_ref().map_or(Duration::ZERO, |warmup| warmup.value.0);
    if let Some(located) = file.warmup.as_ref().filter(|located| located.value.0 >= duration) {
        return Err((located.span.clone(), out_of_range("warmup", located.value.0, "shorter than the duration")));
    }
    if let Some(located) = &file.sample {
        let interval = located.value.0;
        if interval < MIN_INTERVAL || duration.as_nanos() / interval.as_nanos() > MAX_SAMPLES {
            let range = "at least 1us, and at most 10 million samples long";
            return Err((located.span.clone(), out_of_range("sample", interval, range)));
        }
    }
    let base = match &file.topology {
        None => None,
        Some(located) => Some(topology(&located.value).ok_or_else(|| {
            let known = topologies().map(|topology| topology.name).collect::<Vec<_>>().join(", ");
            (located.span.clone(), Problem::UnknownTopology { name: located.value.clone(), known })
        })?),
    };
    let asked = file.topology.as_ref().map_or(0..0, |located| located.span.clone());
    let mut names = Names::new(base.as_ref().map_or_else(Vec::new, |topology| topology.links.clone()), &asked);
    let mut traces = Traces::new(folder);
    // A way back with a table of its own comes after its link, which would change it too, wherever the file has them.
    let mut tables: Vec<_> = file.link.iter().collect();
    tables.sort_by_key(|table| ways_back(&table.value.name));
    for table in tables {
        names.take(table, &mut traces).map_err(|problem| (table.span.clone(), problem))?;
    }
    let mut connections = Connections::default();
    for table in &file.connection {
        connections.take(table, base.as_ref(), &names)?;
    }
    let Connections { all: connections, names: mut taken, .. } = connections;
    let mut sources = Vec::new();
    for Located { span, value } in file.source {
        let name = value.name.clone();
        if !taken.insert(name.clone()) {
            return Err((span, Problem::SameName(name)));
        }
        sources.push(source(value, &names).map_err(|problem| (span, problem))?);
    }
    if connections.is_empty() && sources.is_empty() {
        return Err((0..0, Problem::Nothing));
    }
    let scenario = Scenario {
        name: title(file.name.as_ref(), name)?,
        duration,
        warmup,
        sample: file.sample.as_ref().map(|sample| sample.value.0),
        links: names.links,
        connections,
        sources,
    };
    bounds::check(&scenario, &names.spans, file.sample.as_ref().map(|located| &located.span))?;
    Ok(scenario)
}

/// What the scenario is called.
fn title(given: Option<&Located<String>>, usual: &str) -> Result<String, Fault> {
    let Some(Located { span, value }) = given else { return Ok(usual.to_owned()) };
    if value.trim().is_empty() || value.chars().count() > MAX_TITLE || value.chars().any(char::is_control) {
        return Err((span.clone(), Problem::BadTitle));
    }
    Ok(value.clone())
}

fn checked_duration(file: &File) -> Result<Duration, Fault> {
    let Located { span, value: Text(duration) } = &file.duration;
    if duration.is_zero() || *duration > MAX_DURATION {
        return Err((span.clone(), out_of_range("duration", *duration, "above zero and at most ten years")));
    }
    Ok(*duration)
}

fn out_of_range(what: &str, value: impl ToString, range: &'static str) -> Problem {
    Problem::OutOfRange { what: what.to_owned(), value: value.to_string(), range }
}

fn check_name(name: &str) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::Missing { what: "it".to_owned(), key: "name", remedy: "write name = \"wifi\", say" });
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if name.len() <= 100 && name.chars().all(plain) {
        Ok(())
    } else {
        Err(Problem::BadName(name.chars().take(40).collect()))
    }
}

fn both(what: &str, first: &'static str, second: &'static str) -> Problem {
    Problem::Both { what: format!("'{what}'"), first, second }
}
