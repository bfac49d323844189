//! File descriptors of the kernel's that the runtime does not wrap itself.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes a descriptor's readability awaitable. Must be called in the runtime that awaits it.
#[allow(unsafe_code)]
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `AsyncFd` needs the descriptor to stay valid, and the same one, as long as it is registered. An `OwnedFd` always
    // answers with the descriptor that it owns, which is open until it is dropped; `AsyncFd` owns it and drops it only after
    // deregistering. Nobody replaces it: only shared references are handed out.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}
