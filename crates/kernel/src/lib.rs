//! Coupled congestion control for the stock kernel's Multipath TCP: the control laws of `manypath-cc` as BPF programs
//! (`bpf/`), one object a controller, embedded in this crate.
//!
//! Without the feature `kernel`, or where clang was missing at build time, [`objects`] is empty.
//!
//! Dependencies: `libbpf-rs` loads the objects (feature `kernel` only; the reference loader, with CO-RE and `struct_ops`);
//! `cc` compiles the programs' arithmetic for the host, for tests, and the library of [`run`]; `memchr` searches the kernel's type information;
//! `netlink-packet-core` encodes netlink messages; `object` reads a program's ELF header; `rustix` makes system calls; `serde` describes what the command
//! line prints as JSON; `tempfile` replaces files as a whole; `thiserror` writes the code of error types; `tracing` takes what libbpf says. Of our
//! own, `manypath-cc` has the parameters and the search for weights, `manypath-core` units and names.

#[cfg(not(feature = "kernel"))]
mod absent;
#[cfg(feature = "kernel")]
mod default;
pub mod doctor;
mod error;
mod file_system;
#[cfg(feature = "kernel")]
mod inspect;
pub mod interfaces;
mod layout;
#[cfg(feature = "kernel")]
mod loader;
#[cfg(feature = "kernel")]
mod maps;
#[cfg(feature = "kernel")]
mod namespaces;
mod netlink;
pub mod path_manager;
pub mod paths;
#[cfg(feature = "kernel")]
mod pins;
mod request;
pub mod run;
pub mod status;
pub mod steering;
mod sysctl;
#[cfg(feature = "kernel")]
mod tunables;

pub use error::Error;
pub use layout::{Connection, Counter, Group, Info, MAX_SUBFLOWS, Member, Phase, Weights};
pub use request::{Loaded, Request, Setting, Unloaded};

/// Controllers in the kernel: loading them, and what they are doing.
pub mod engine {
    #[cfg(not(feature = "kernel"))]
    pub use crate::absent::{clear_weights, load, set, set_weights, status, unload, weighted_connections, weights};
    #[cfg(feature = "kernel")]
    pub use crate::inspect::{clear_weights, set_weights, status, weighted_connections, weights};
    #[cfg(feature = "kernel")]
    pub use crate::loader::{load, set, unload};
}

/// A compiled BPF program object.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The controller's name in Manypath, as in the registry of `manypath-cc`.
    pub name: &'static str,
    /// Its name in the kernel, for `setsockopt(TCP_CONGESTION)`: at most 15 bytes.
    pub kernel_name: &'static str,
    /// The ELF file.
    pub elf: &'static [u8],
}

/// Puts a file into the binary, aligned as ELF wants it.
#[allow(unused_macros, reason = "a build without the programs has no file")]
macro_rules! aligned {
    ($path:expr) => {{
        #[repr(C, align(8))]
        struct Aligned<T: ?Sized>(T);
        static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!($path));
        &FILE.0
    }};
}

/// File names without `.bpf.o`, and the files.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Names of controllers: file, Manypath's, the kernel's.
const NAMES: &[(&str, &str, &str)] = &[
    ("balia", "balia", "mp_balia"),
    ("lia", "lia", "mp_lia"),
    ("mp_ol", "mp-ol", "mp_ol"),
    ("mpcc_latency", "mpcc-latency", "mp_mpcc_lat"),
    ("mpcc_loss", "mpcc-loss", "mp_mpcc_loss"),
    ("olia", "olia", "mp_olia"),
    ("reno", "reno", "mp_reno"),
    ("tccc", "tccc", "mp_tccc"),
    ("uni_mptcp", "uni-mptcp", "mp_uni"),
    ("wvegas", "wvegas", "mp_wvegas"),
];

/// The controllers of this build, in alphabetical order; none if it was built without the programs.
pub fn objects() -> impl Iterator<Item = Object> {
    FILES.iter().filter_map(|(file, elf)| {
        let (_, name, kernel_name) = NAMES.iter().find(|(known, ..)| known == file)?;
        Some(Object { name, kernel_name, elf })
    })
}

/// The kernel's name of the controller that Manypath calls `name`; `name` itself if it is no name of ours.
pub fn kernel_name(name: &str) -> &str {
    NAMES.iter().find(|(_, ours, _)| *ours == name).map_or(name, |(.., kernel_name)| kernel_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_name_that_the_kernel_takes() {
        assert!(cfg!(not(feature = "kernel")) || FILES.is_empty() || objects().count() == FILES.len());
        for object in objects() {
            assert!(object.kernel_name.len() <= 15);
            let text = |name: &str| object.elf.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(text(object.kernel_name), "{} is not in its object", object.kernel_name);
        }
    }
}
