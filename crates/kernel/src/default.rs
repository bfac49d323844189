//! The machine's default controller, which sockets take that ask for none.
//!
//! Every network namespace has its own. It is set in the first only; others inherit the first's when they are made, and
//! keep it.

use std::fs::{self, File};
use std::io::{self, Write as _};

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

/// That the default controller may be set here. The kernel lets other network namespaces than the first take one of ours,
/// too; but what was the default there is not remembered.
pub(crate) fn allowed() -> Result<(), Error> {
    if namespaces::is_first() == Some(false) { Err(Error::DefaultElsewhere) } else { Ok(()) }
}

/// Remembers the default controller, if it is not one of ours: one of ours may become it, by this program or by hand, and what was
/// before is to come back.
pub(crate) fn remember(is_ours: impl Fn(&str) -> bool) -> Result<(), Error> {
    let now = get();
    let is_first = namespaces::is_first();
    if now.is_empty() || is_ours(&now) || is_first == Some(false) {
        return Ok(());
    }
    // Where it may be another namespace's, what is remembered already is not overwritten.
    let remembered = if is_first.is_some() { fs::write(BEFORE, now) } else { write_new(&now) };
    remembered.map_err(|source| Error::File { path: BEFORE.into(), source })
}

/// Remembers it if nothing is remembered.
fn write_new(now: &str) -> io::Result<()> {
    match File::create_new(BEFORE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        file => file?.write_all(now.as_bytes()),
    }
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
    fs::write(SETTING, controller).map_err(|source| Error::File { path: SETTING.into(), source })
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
        if before.is_empty() || set(before).is_err() {
            set(LAST_RESORT)?;
        }
        Ok(Some(get()))
    };
    let here = change()?;
    let elsewhere = namespaces::in_others(change).into_iter().filter(|result| matches!(result, Ok(Some(_)))).count();
    Ok(GivenBack { here, elsewhere })
}
