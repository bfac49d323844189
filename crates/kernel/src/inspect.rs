//! Reading what controllers are doing, and writing weights.

use crate::default;
use crate::error::Error;
use crate::layout::{Counter, MAX_SUBFLOWS, Weights};
use crate::loader::{self, Instance};
use crate::maps::{PinnedMap, ZERO};
use crate::status::{ConnectionStatus, Controller};
use crate::{pins, tunables};

/// The controller that reads weights.
const WEIGHTED: &str = "uni-mptcp";
/// A weight of one, as the map has it.
const ONE: f64 = 1e6;

/// The controllers that are loaded, in alphabetical order.
///
/// # Errors
/// If the kernel does not let this process look.
pub fn status() -> Result<Vec<Controller>, Error> {
    loader::fit()?;
    loader::hear();
    // What another process loads or unloads meanwhile is seen whole or not at all.
    let _lock = pins::look()?;
    let default = default::get();
    loader::instances()?.iter().map(|instance| controller(instance, &default)).collect()
}

fn controller(instance: &Instance, default: &str) -> Result<Controller, Error> {
    let name = &instance.name;
    // Before the counters: an event is counted before it is shown, so that no counter is behind what is shown.
    let connections = connections(name)?;
    let counters = PinnedMap::open(name, pins::COUNTERS)?;
    let counters = Counter::ALL.iter().map(|(counter, label)| Ok((*label, counters.counter(*counter)?)));
    Ok(Controller {
        name: instance.object.name.to_owned(),
        kernel_name: name.clone(),
        default: default == name,
        parameters: tunables::get(instance)?.into_iter().collect(),
        counters: counters.collect::<Result<_, Error>>()?,
        connections,
    })
}

fn connections(name: &str) -> Result<Vec<ConnectionStatus>, Error> {
    let held = PinnedMap::open(name, pins::CONNECTIONS)?.connections()?;
    Ok(held.iter().map(|(token, held)| ConnectionStatus::new(*token, held)).collect())
}

/// Writes weights of a connection's subflows, by place; those not given are 1. Without a token they are for all connections
/// that have none of their own.
///
/// # Errors
/// If `uni-mptcp` is not loaded, or there is no such connection.
pub fn set_weights(token: Option<u32>, weights: &[f64]) -> Result<(), Error> {
    let mut value = Weights::default();
    for (place, weight) in weights.iter().take(MAX_SUBFLOWS).enumerate() {
        // Zero stands for one: the least weight is a millionth.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let ppm = (weight * ONE).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        value.ppm[place] = ppm;
    }
    let bytes: Vec<u8> = value.ppm.iter().flat_map(|ppm| ppm.to_ne_bytes()).collect();
    let _lock = pins::look()?;
    for name in weighted(token)? {
        let weights = PinnedMap::open(&name, pins::WEIGHTS)?;
        weights.put(&key(token), &bytes)?;
        if let Some(token) = token
            && !has(&name, token)?
        {
            // The connection has ended since it was looked for, perhaps before it had weights to take along.
            weights.delete(&key(Some(token)))?;
            return Err(no_connection(token));
        }
    }
    Ok(())
}

/// Forgets the weights of a connection, or those for all.
///
/// # Errors
/// As [`set_weights`].
pub fn clear_weights(token: Option<u32>) -> Result<(), Error> {
    let _lock = pins::look()?;
    for name in weighted(token)? {
        PinnedMap::open(&name, pins::WEIGHTS)?.delete(&key(token))?;
    }
    Ok(())
}

/// The weights that hold for a connection, by place.
///
/// # Errors
/// As [`set_weights`].
pub fn weights(token: u32) -> Result<[f64; MAX_SUBFLOWS], Error> {
    let _lock = pins::look()?;
    let mut held = Weights::default();
    for name in weighted(Some(token))? {
        let map = PinnedMap::open(&name, pins::WEIGHTS)?;
        held = map.weights(token)?.or(map.weights(0)?).unwrap_or_default();
    }
    Ok(held.ppm.map(|ppm| if ppm == 0 { 1.0 } else { f64::from(ppm) / ONE }))
}

/// The connections of the controllers that read weights.
///
/// # Errors
/// If none is loaded.
pub fn weighted_connections() -> Result<Vec<ConnectionStatus>, Error> {
    let _lock = pins::look()?;
    let mut found = Vec::new();
    for name in weighted(None)? {
        found.extend(connections(&name)?);
    }
    Ok(found)
}

/// The key of a connection's weights; token zero stands for all.
fn key(token: Option<u32>) -> [u8; 4] {
    token.map_or(ZERO, u32::to_ne_bytes)
}

/// Names of the loaded controllers that read weights; of the one that has the connection, if one is asked for.
fn weighted(token: Option<u32>) -> Result<Vec<String>, Error> {
    loader::fit()?;
    let instances = loader::instances()?.into_iter().filter(|instance| instance.object.name == WEIGHTED);
    let names: Vec<String> = instances.map(|instance| instance.name).collect();
    if names.is_empty() {
        return Err(Error::NotLoaded(WEIGHTED.to_owned()));
    }
    let Some(token) = token else { return Ok(names) };
    for name in &names {
        if has(name, token)? {
            return Ok(vec![name.clone()]);
        }
    }
    Err(no_connection(token))
}

/// Whether a controller has a connection.
fn has(name: &str, token: u32) -> Result<bool, Error> {
    Ok(PinnedMap::open(name, pins::CONNECTIONS)?.connection(token)?.is_some())
}

fn no_connection(token: u32) -> Error {
    Error::NoConnection { controller: WEIGHTED.to_owned(), token }
}
