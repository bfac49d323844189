//! A build without BPF programs: every request says so.

use crate::error::Error;
use crate::layout::MAX_SUBFLOWS;
use crate::request::{Loaded, Request, Setting, Unloaded};
use crate::status::{ConnectionStatus, Controller};

/// Loads controllers.
///
/// # Errors
/// Always.
pub const fn load(_: &Request) -> Result<Loaded, Error> {
    Err(Error::NoPrograms)
}

/// Unloads controllers.
///
/// # Errors
/// Always.
pub const fn unload(_: &[String]) -> Result<Unloaded, Error> {
    Err(Error::NoPrograms)
}

/// Changes parameters.
///
/// # Errors
/// Always.
pub const fn set(_: &str, _: &[Setting]) -> Result<(), Error> {
    Err(Error::NoPrograms)
}

/// The controllers that are loaded.
///
/// # Errors
/// Always.
pub const fn status() -> Result<Vec<Controller>, Error> {
    Err(Error::NoPrograms)
}

/// Writes weights.
///
/// # Errors
/// Always.
pub const fn set_weights(_: Option<u32>, _: &[f64]) -> Result<(), Error> {
    Err(Error::NoPrograms)
}

/// Forgets weights.
///
/// # Errors
/// Always.
pub const fn clear_weights(_: Option<u32>) -> Result<(), Error> {
    Err(Error::NoPrograms)
}

/// Reads weights.
///
/// # Errors
/// Always.
pub const fn weights(_: u32) -> Result<[f64; MAX_SUBFLOWS], Error> {
    Err(Error::NoPrograms)
}

/// The connections of the controller that reads weights.
///
/// # Errors
/// Always.
pub const fn weighted_connections() -> Result<Vec<ConnectionStatus>, Error> {
    Err(Error::NoPrograms)
}
