//! Where controllers that are loaded are kept: a folder each in the BPF file system, with its maps pinned in it.
//!
//! A controller lives as long as it is registered; the pins are how later commands find its maps.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::error::Error;
use crate::file_system::{self, MOUNT_POINT, Seen};

/// Our folder in it.
const FOLDER: &str = "/sys/fs/bpf/manypath";

/// Names of pins: those of the maps, without the dots that the file system forbids.
pub(crate) const CONTROLLER: &str = "controller";
pub(crate) const CONNECTIONS: &str = "connections";
pub(crate) const WEIGHTS: &str = "weights";
pub(crate) const COUNTERS: &str = "counters";
pub(crate) const TUNABLES: &str = "tunables";

/// Keeps other commands from changing the folder while it lives. With it goes the folder, if no controller is in it.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it unlocks")] OwnedFd);

impl Drop for Lock {
    fn drop(&mut self) {
        // Fails while something is in it, as it should.
        let _ = fs::remove_dir(FOLDER);
    }
}

/// Mounts the file system if it is missing, makes our folder, and waits for its lock. Says whether it was mounted.
pub(crate) fn prepare() -> Result<(Lock, bool), Error> {
    let mounted = mount_missing()?;
    loop {
        let lock = lock().map_err(|source| Error::File { path: FOLDER.into(), source })?;
        if let Some(lock) = lock {
            return Ok((lock, mounted));
        }
    }
}

/// Mounts the file system if it is missing, and says whether it was.
fn mount_missing() -> Result<bool, Error> {
    match file_system::look().map_err(not_mounted)? {
        Seen::Mounted => return Ok(false),
        Seen::Hidden => return Err(Error::Hidden),
        Seen::Missing => {}
    }
    // Of two that find it missing the second would mount another one over what the first has loaded.
    let place = open(MOUNT_POINT, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let place = place.map_err(|error| not_mounted(error.into()))?;
    flock(&place, FlockOperation::LockExclusive).map_err(|error| not_mounted(error.into()))?;
    if file_system::look().map_err(not_mounted)? == Seen::Mounted {
        return Ok(false);
    }
    mount("bpf", MOUNT_POINT, "bpf", MountFlags::empty(), None).map_err(|error| not_mounted(error.into()))?;
    Ok(true)
}

/// Waits until no other command changes the folder, and keeps it so while what it returns lives; `None` if there is no folder, so
/// that nothing is loaded. Where the folder would be hidden, that is not known.
pub(crate) fn look() -> Result<Option<OwnedFd>, Error> {
    while Path::new(FOLDER).exists() {
        let folder = wait(FlockOperation::LockShared).map_err(|source| Error::File { path: FOLDER.into(), source })?;
        if folder.is_some() {
            return Ok(folder);
        }
    }
    match file_system::look().map_err(not_mounted)? {
        Seen::Hidden => Err(Error::Hidden),
        Seen::Mounted | Seen::Missing => Ok(None),
    }
}

fn not_mounted(source: io::Error) -> Error {
    Error::File { path: MOUNT_POINT.into(), source }
}

/// Waits for the lock; `None` if who held it removed the folder.
fn lock() -> io::Result<Option<Lock>> {
    match fs::create_dir(FOLDER) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    Ok(wait(FlockOperation::LockExclusive)?.map(Lock))
}

/// Opens the folder and waits for a lock of it; `None` if there is none, or who held it removed the folder.
fn wait(operation: FlockOperation) -> io::Result<Option<OwnedFd>> {
    let folder = match open(FOLDER, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        folder => folder?,
    };
    flock(&folder, operation)?;
    let is_there = stat(FOLDER).is_ok_and(|there| fstat(&folder).is_ok_and(|held| held.st_ino == there.st_ino));
    Ok(is_there.then_some(folder))
}

/// A controller's folder.
pub(crate) fn folder(kernel_name: &str) -> PathBuf {
    Path::new(FOLDER).join(kernel_name)
}

/// A pin of a controller.
pub(crate) fn pin(kernel_name: &str, name: &str) -> PathBuf {
    folder(kernel_name).join(name)
}

/// Kernel names of the controllers that have a folder, in alphabetical order.
pub(crate) fn list() -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::File { path: FOLDER.into(), source }),
    };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Makes a controller's folder.
pub(crate) fn make(kernel_name: &str) -> Result<(), Error> {
    let path = folder(kernel_name);
    fs::create_dir(&path).map_err(|source| Error::File { path, source })
}

/// Removes a controller's folder with its pins, if there is one.
pub(crate) fn remove(kernel_name: &str) -> Result<(), Error> {
    let path = folder(kernel_name);
    match fs::remove_dir_all(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::File { path, source }),
        _ => Ok(()),
    }
}
