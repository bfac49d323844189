//! The BPF file system, which keeps what is loaded: whether it is mounted here, and whether it is the machine's that is missing.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Where it is mounted, by custom.
pub(crate) const MOUNT_POINT: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC` (linux/magic.h).
const MAGIC: rustix::fs::FsWord = 0xcafe_4a11;
/// What `/proc/PID/ns/pid` says of the machine's own processes: `PID_NS_INIT_INO` (linux/nsfs.h).
const FIRST_PROCESSES: &str = "pid:[4026531836]";

/// What helps where it is hidden.
pub(crate) const REVEAL: &str = "run this command outside of `ip netns exec` (`nsenter --net=/run/netns/NAME` enters the \
     network namespace only); give a container the machine's (`--volume /sys/fs/bpf:/sys/fs/bpf`)";

/// What this thread sees of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is mounted.
    Mounted,
    /// It is not.
    Missing,
    /// It is not here, among mounts that are not the machine's: what is loaded cannot be known.
    Hidden,
}

/// Looks. Where nobody may read which the machine's own mounts are, as in some virtual machines, these are taken for them.
pub(crate) fn look() -> io::Result<Seen> {
    Ok(match rustix::fs::statfs(MOUNT_POINT) {
        Ok(found) if found.f_type == MAGIC => Seen::Mounted,
        Ok(_) | Err(Errno::NOENT) if is_first_mount_namespace() == Some(false) => Seen::Hidden,
        Ok(_) | Err(Errno::NOENT) => Seen::Missing,
        Err(error) => return Err(error.into()),
    })
}

/// Whether this thread sees the machine's own mounts; `None` if it may not know.
fn is_first_mount_namespace() -> Option<bool> {
    let of = |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}"));
    match (of("thread-self", "mnt"), of("1", "mnt"), of("1", "pid")) {
        // A container's first process has the container's mounts.
        (Ok(own), Ok(first), Ok(processes)) => Some(own == first && processes == Path::new(FIRST_PROCESSES)),
        _ if fs::read_to_string("/proc/thread-self/mounts").ok()?.lines().any(is_of_ip_netns) => Some(false),
        _ => None,
    }
}

/// Whether a line of `/proc/thread-self/mounts` is the `/sys` that `ip netns exec` mounts: it bears the network namespace's
/// name.
fn is_of_ip_netns(line: &str) -> bool {
    let mut fields = line.split(' ');
    match (fields.next(), fields.next(), fields.next()) {
        (Some(name), Some("/sys"), Some("sysfs")) => Path::new("/run/netns").join(name).exists(),
        _ => false,
    }
}
