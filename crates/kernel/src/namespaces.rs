//! The network namespaces of this machine, as far as they can be found: those that a thread is in, and those that `ip netns` lists.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sysctl;

/// The namespace of the thread that asks.
const OWN: &str = "/proc/thread-self/ns/net";
/// Where `ip netns` gives namespaces names.
const NAMED: &str = "/run/netns";

/// What tells a namespace.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Whether this thread is in the first namespace; `None` if the settings that tell are hidden.
pub(crate) fn is_first() -> Option<bool> {
    let has = |setting| sysctl::read(&["net", "core", setting]).is_some();
    // Every namespace has the one setting, only the first has the other (`net_core_table`), with the compiler of BPF that
    // controllers need. /proc/1/ns/net tells nothing to a process that may not read it, and in a container that it is
    // the first.
    has("somaxconn").then(|| has("bpf_jit_enable"))
}

/// What is in a folder.
fn entries(folder: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Every namespace but this thread's, once.
fn others() -> Vec<File> {
    let threads = entries("/proc").flat_map(|process| entries(process.join("task"))).map(|task| task.join("ns/net"));
    let mut seen: BTreeSet<(u64, u64)> = identity(OWN.as_ref()).into_iter().collect();
    let new = entries(NAMED).chain(threads).filter(|path| identity(path).is_some_and(|found| seen.insert(found)));
    // One that is gone meanwhile is none.
    new.filter_map(|path| File::open(path).ok()).collect()
}

/// Does something in each other namespace that this process may enter, and returns what comes of it.
pub(crate) fn in_others<T: Send>(job: impl Fn() -> T + Sync) -> Vec<T> {
    let in_one = |namespace: File| {
        // A thread of its own, which ends there.
        let enter = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
            Some(job())
        };
        thread::scope(|scope| scope.spawn(enter).join().ok().flatten())
    };
    others().into_iter().filter_map(in_one).collect()
}
