//! The machine's default controller, which sockets take that ask for none.

use std::fs;
use std::io;

use crate::error::Error;
use crate::sysctl;

/// The setting, of the first network namespace; others take their default from it when they are made.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// What the setting was before it became one of ours; it goes with the next boot, as the setting does.
const BEFORE: &str = "/run/manypath-default-controller";
/// The controller that every kernel has.
const LAST_RESORT: &str = "reno";

/// The default controller of this network namespace.
pub(crate) fn get() -> String {
    sysctl::read(&["net", "ipv4", "tcp_congestion_control"]).unwrap_or_default()
}

/// Makes `controller` the default, and remembers the one before if it is not one of ours.
pub(crate) fn set(controller: &str, is_ours: impl Fn(&str) -> bool) -> Result<(), Error> {
    let before = get();
    // Of two of ours, one after the other, what was before both is to come back.
    if is_ours(&before) {
        return write(controller);
    }
    // First of all: what cannot be given back is not taken.
    fs::write(BEFORE, &before).map_err(|source| Error::File { path: BEFORE.into(), source })?;
    write(controller).inspect_err(|_| {
        // There is an error to tell already.
        let _ = fs::remove_file(BEFORE);
    })
}

/// If `controller` is the default, brings back what was before, and returns it.
pub(crate) fn give_back(controller: &str) -> Result<Option<String>, Error> {
    if get() != controller {
        return Ok(None);
    }
    let before = fs::read_to_string(BEFORE).unwrap_or_default();
    let before = before.trim();
    let back = if !before.is_empty() && write(before).is_ok() {
        before
    } else {
        write(LAST_RESORT)?;
        LAST_RESORT
    };
    match fs::remove_file(BEFORE) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::File { path: BEFORE.into(), source }),
        _ => Ok(Some(back.to_owned())),
    }
}

fn write(controller: &str) -> Result<(), Error> {
    fs::write(SETTING, controller).map_err(|source| match source.kind() {
        // Other network namespaces than the first take no BPF controller this way.
        io::ErrorKind::PermissionDenied => Error::DefaultElsewhere,
        _ => Error::File { path: SETTING.into(), source },
    })
}
