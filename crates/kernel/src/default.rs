//! The machine's default controller, which sockets take that ask for none.
//!
//! Every network namespace has its own. Only the first takes one of ours; others inherit the first's when they are made, and keep it.

use std::fs;
use std::io;

use crate::error::Error;
use crate::{namespaces, sysctl};

/// The setting, of this thread's network namespace.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// What it was in the first one before it became one of ours; it goes with the next boot, as the setting does.
const BEFORE: &str = "/run/manypath-default-controller";
/// The controller that every kernel has.
const LAST_RESORT: &str = "reno";

/// The default controller of this network namespace.
pub(crate) fn get() -> String {
    sysctl::read(&["net", "ipv4", "tcp_congestion_control"]).unwrap_or_default()
}

/// Remembers the default controller, if it is not one of ours: one of ours may become it, by this program or by hand, and what was
/// before is to come back.
pub(crate) fn remember(is_ours: impl Fn(&str) -> bool) -> Result<(), Error> {
    let now = get();
    if is_ours(&now) || !namespaces::is_first() {
        return Ok(());
    }
    fs::write(BEFORE, now).map_err(|source| Error::File { path: BEFORE.into(), source })
}

/// Forgets it: none of ours is loaded any more.
pub(crate) fn forget() -> Result<(), Error> {
    match fs::remove_file(BEFORE) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::File { path: BEFORE.into(), source }),
        _ => Ok(()),
    }
}

/// Makes `controller` the default.
pub(crate) fn set(controller: &str) -> Result<(), Error> {
    write(controller)
}

/// Where a default was given back.
#[derive(Debug, Default)]
pub(crate) struct GivenBack {
    /// What it is now, if it was this network namespace's.
    pub(crate) here: Option<String>,
    /// In how many others.
    pub(crate) elsewhere: usize,
}

/// Wherever `controller` is the default, brings back what was before.
pub(crate) fn give_back(controller: &str) -> Result<GivenBack, Error> {
    let before = fs::read_to_string(BEFORE).unwrap_or_default();
    let before = before.trim();
    let change = || -> Result<Option<String>, Error> {
        if get() != controller {
            return Ok(None);
        }
        if before.is_empty() || write(before).is_err() {
            write(LAST_RESORT)?;
        }
        Ok(Some(get()))
    };
    let here = change()?;
    let elsewhere = namespaces::in_others(change).into_iter().filter(|result| matches!(result, Ok(Some(_)))).count();
    Ok(GivenBack { here, elsewhere })
}

fn write(controller: &str) -> Result<(), Error> {
    fs::write(SETTING, controller).map_err(|source| match source.kind() {
        // Other network namespaces than the first take no BPF controller this way.
        io::ErrorKind::PermissionDenied => Error::DefaultElsewhere,
        _ => Error::File { path: SETTING.into(), source },
    })
}
