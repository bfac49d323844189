//! Running an unmodified program over Multipath TCP.
//!
//! A small library (`preload/preload.c`) is loaded into the program and turns its TCP sockets into Multipath TCP sockets
//! with the wanted congestion controller. Programs in Go make system calls without the C library: their own library knows
//! `GODEBUG=multipathtcp=1`, and their sockets take the machine's default controller.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use object::read::elf::ProgramHeader as _;
use object::{Object as _, ReadCache, elf};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};

use crate::sysctl;

/// The library, as the build made it.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmanypath_preload.so"));

/// Its file's name. A program keeps the library that it began with: a new version is a new file.
const LIBRARY_NAME: &str = concat!("libmanypath_preload-", env!("CARGO_PKG_VERSION"), ".so");

/// How a program can be brought to use Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// It calls the C library (or is a script, and its interpreter does): the library is loaded into it.
    Dynamic,
    /// It was made by Go: an environment variable tells its own library.
    Go,
    /// It is linked statically: neither reaches it.
    Static,
}

/// What kind of program a file is.
///
/// # Errors
/// If the file cannot be read.
pub fn kind(file: &Path) -> io::Result<Program> {
    let cache = ReadCache::new(File::open(file)?);
    let Ok(program) = object::File::parse(&cache) else { return Ok(Program::Dynamic) };
    if program.section_by_name(".go.buildinfo").is_some() {
        return Ok(Program::Go);
    }
    let has_interpreter = match &program {
        object::File::Elf64(file) => {
            file.elf_program_headers().iter().any(|h| h.p_type(file.endian()) == elf::PT_INTERP)
        }
        object::File::Elf32(file) => {
            file.elf_program_headers().iter().any(|h| h.p_type(file.endian()) == elf::PT_INTERP)
        }
        _ => true,
    };
    Ok(if has_interpreter { Program::Dynamic } else { Program::Static })
}

/// Why a program's sockets cannot be made multipath.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// `net.mptcp.enabled` is 0 or missing.
    #[error("this kernel makes no Multipath TCP sockets ({0}): see `manypath kernel doctor`")]
    NoMultipath(io::Error),
    /// There is no controller of this name.
    #[error("the kernel has no congestion controller '{name}'; it has: {available}. `manypath kernel load` adds ours")]
    NoController {
        /// The name.
        name: String,
        /// What there is.
        available: String,
    },
    /// The controller is kept for root. The setting is a whole list: those that everyone may use already stay in it.
    #[error(
        "only root may use the controller '{name}': run as root, or let everyone: \
         sysctl -w net.ipv4.tcp_allowed_congestion_control='{allowed} {name}'"
    )]
    NotAllowed {
        /// The name.
        name: String,
        /// What everyone may use.
        allowed: String,
    },
    /// The library could not be stored.
    #[error("cannot store the library that is loaded into the program in {folder}: {error}")]
    Library {
        /// Where.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no place for the library.
    #[error("no folder to keep the library in: set HOME or XDG_CACHE_HOME to a path without spaces and colons")]
    NoFolder,
}

/// The kernel's name of the controller that a user calls `name`: its own `reno` before ours.
pub fn controller(name: &str) -> &str {
    let available = sysctl::read(&["net", "ipv4", "tcp_available_congestion_control"]).unwrap_or_default();
    if available.split_whitespace().any(|held| held == name) { name } else { crate::kernel_name(name) }
}

/// Whether sockets take this controller by themselves.
pub fn is_default(controller: &str) -> bool {
    sysctl::read(&["net", "ipv4", "tcp_congestion_control"]).is_some_and(|held| held == controller)
}

/// Checks that this process can make a Multipath TCP socket, and give it the controller.
///
/// # Errors
/// If it cannot: why, and what to do.
pub fn check(controller: Option<&str>) -> Result<(), RunError> {
    let make = |protocol| socket(AddressFamily::INET, SocketType::STREAM, Some(protocol));
    make(ipproto::MPTCP).map_err(|error| RunError::NoMultipath(error.into()))?;
    let Some(name) = controller else { return Ok(()) };
    // A Multipath TCP socket takes any name until it has its first subflow: ask a TCP socket.
    match make(ipproto::TCP).and_then(|tcp| sockopt::set_tcp_congestion(&tcp, name)) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => Err(RunError::NotAllowed {
            name: name.to_owned(),
            allowed: sysctl::read(&["net", "ipv4", "tcp_allowed_congestion_control"]).unwrap_or_default(),
        }),
        Err(_) => Err(RunError::NoController {
            name: name.to_owned(),
            available: sysctl::read(&["net", "ipv4", "tcp_available_congestion_control"]).unwrap_or_default(),
        }),
    }
}

/// The folder for the library: one that every user can read if root keeps it, for programs that change users.
fn library_folder(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, RunError> {
    let cache = || {
        let own = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        own.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")))
    };
    let folder = if is_root { Some(PathBuf::from("/var/cache")) } else { cache() };
    // LD_PRELOAD is a list: its separators cannot be escaped.
    let fits =
        |path: &PathBuf| path.is_absolute() && !path.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':'));
    folder.filter(fits).map(|path| path.join("manypath")).ok_or(RunError::NoFolder)
}

/// Stores the library for this user, and returns its path.
///
/// # Errors
/// If there is no place for it, or it cannot be written.
pub fn install_library() -> Result<PathBuf, RunError> {
    let folder = library_folder(rustix::process::geteuid().is_root(), |name| std::env::var_os(name))?;
    let file = folder.join(LIBRARY_NAME);
    match store(&folder, &file) {
        Ok(()) => Ok(file),
        Err(error) => Err(RunError::Library { folder, error }),
    }
}

fn store(folder: &Path, file: &Path) -> io::Result<()> {
    if fs::read(file).is_ok_and(|held| held == LIBRARY) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    // Others may run programs at the same time: they see the whole file or none.
    let new = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(new.path(), LIBRARY)?;
    fs::set_permissions(new.path(), Permissions::from_mode(0o755))?;
    new.persist(file)?;
    Ok(())
}

/// Environment variables that make a program use Multipath TCP, besides those it has; without a value, one that it is not
/// to have. Those that `run` has set already, for a program that runs it again, do not add up.
pub fn environment(
    library: &Path,
    controller: Option<&str>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, Option<OsString>)> {
    let joined = |name, separators, value| Some(join(&variable(name).unwrap_or_default(), separators, value));
    vec![
        ("LD_PRELOAD", joined("LD_PRELOAD", b": ", library.as_os_str())),
        ("GODEBUG", joined("GODEBUG", b",", OsStr::new("multipathtcp=1"))),
        ("MANYPATH_CC", controller.map(OsString::from)),
    ]
}

/// A list with a value at its end, which is there once.
fn join(list: &OsStr, separators: &[u8], value: &OsStr) -> OsString {
    let held = list.as_bytes().split(|byte| separators.contains(byte));
    let others = held.filter(|one| !one.is_empty() && *one != value.as_bytes());
    OsString::from_vec(others.chain([value.as_bytes()]).collect::<Vec<_>>().join(&separators[0]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn held(name: &str) -> Option<OsString> {
        match name {
            "GODEBUG" => Some("netdns=go".into()),
            "HOME" => Some("/home/ada".into()),
            _ => None,
        }
    }

    #[test]
    fn the_environment_is_added_to() {
        let found = environment(Path::new("/x/l.so"), Some("mp_lia"), held);
        let expected = [("LD_PRELOAD", "/x/l.so"), ("GODEBUG", "netdns=go,multipathtcp=1"), ("MANYPATH_CC", "mp_lia")];
        assert_eq!(found, expected.map(|(name, value)| (name, Some(OsString::from(value)))));
        assert_eq!(environment(Path::new("/x"), None, |_| Some("a".into()))[0].1.as_deref(), Some(OsStr::new("a:/x")));
    }

    #[test]
    fn run_within_run_is_as_run_alone() {
        let outer = environment(Path::new("/x/l.so"), Some("mp_lia"), held);
        let variable = |name: &str| outer.iter().find(|(set, _)| *set == name)?.1.clone();
        let alone = environment(Path::new("/x/l.so"), None, held);
        assert_eq!(environment(Path::new("/x/l.so"), None, variable), alone);
        assert!(alone.contains(&("MANYPATH_CC", None)));
        // The separators of lists: ld.so(8).
        assert_eq!(join(OsStr::new("/x a:/x:b"), b": ", OsStr::new("/x")), "a:b:/x");
    }

    #[test]
    fn the_library_is_kept_where_it_can_be_named() {
        assert_eq!(library_folder(true, held).unwrap(), Path::new("/var/cache/manypath"));
        assert_eq!(library_folder(false, held).unwrap(), Path::new("/home/ada/.cache/manypath"));
        let of = |cache: &'static str, home: &'static str| {
            let variable = move |name: &str| Some(if name == "XDG_CACHE_HOME" { cache } else { home }.into());
            library_folder(false, variable).ok()
        };
        assert_eq!(of("/x/cache", "/home/ada").unwrap(), Path::new("/x/cache/manypath"));
        assert_eq!(of("cache", "/home/ada").unwrap(), Path::new("/home/ada/.cache/manypath"));
        assert_eq!(of("cache", "home/ada"), None);
        assert_eq!(of("/a:b", "/home/ada"), None);
        assert!(matches!(library_folder(false, |_| Some("/a b".into())), Err(RunError::NoFolder)));
        assert!(matches!(library_folder(false, |_| None), Err(RunError::NoFolder)));
    }

    #[test]
    fn a_stored_library_is_replaced_when_it_differs() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("manypath");
        let file = inner.join("l.so");
        store(&inner, &file).unwrap();
        fs::write(&file, "old").unwrap();
        store(&inner, &file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), LIBRARY);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
        // Other users' programs load it, too, and keep the very file that is right.
        let metadata = || fs::metadata(&file).unwrap();
        assert_eq!(metadata().permissions().mode() & 0o777, 0o755);
        let before = metadata().ino();
        store(&inner, &file).unwrap();
        assert_eq!(metadata().ino(), before);
    }

    #[test]
    fn what_everyone_may_use_stays_so() {
        let error = RunError::NotAllowed { name: "mp_lia".into(), allowed: "reno cubic".into() };
        assert!(error.to_string().ends_with("='reno cubic mp_lia'"), "{error}");
    }

    #[test]
    fn programs_are_told_apart() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(kind(&own).unwrap(), Program::Dynamic);
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(kind(&script).unwrap(), Program::Dynamic);
        // A program of nothing but its header: no interpreter is named in it.
        let alone = folder.path().join("static");
        let header = [
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
            &[2, 0, 62, 0, 1, 0, 0, 0],
            &[0; 28],
            &[64, 0, 56, 0, 0, 0, 64, 0, 0, 0, 0, 0],
        ];
        fs::write(&alone, header.concat()).unwrap();
        assert_eq!(kind(&alone).unwrap(), Program::Static);
        assert!(kind(&folder.path().join("none")).is_err());
    }
}
