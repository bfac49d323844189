//! Why the kernel engine cannot do what it was asked to, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::doctor::Check;
use crate::file_system::REVEAL;

/// Why a controller cannot be loaded, unloaded, read or set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The binary was built without the programs.
    #[error(
        "this binary was built without the BPF programs: apt-get install clang libbpf-dev libelf-dev zlib1g-dev, then \
         build with --features kernel"
    )]
    NoPrograms,
    /// Something that the doctor looks at is missing.
    #[error("{}: {}; remedy: {}", .0.name, .0.detail, .0.remedy.as_deref().unwrap_or_default())]
    Unfit(Check),
    /// No controller has this name.
    #[error("there is no controller '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The kernel takes no such name.
    #[error("'{0}' cannot be a controller's name: it has 1 to 15 letters, digits and '_'")]
    Name(String),
    /// It is there already.
    #[error("{0} is loaded already: `manypath kernel set` changes its parameters, `unload` removes it")]
    Loaded(String),
    /// Two controllers are to have one name.
    #[error("{0} is asked for twice; `load --as` gives one of them another name, in a command of its own")]
    Twice(String),
    /// Something else has registered a controller under its name.
    #[error("the kernel has a controller {0} that was not loaded by this command, which leaves it alone")]
    Taken(String),
    /// It is not there.
    #[error("{0} is not loaded: `manypath kernel load` loads it")]
    NotLoaded(String),
    /// The kernel does not take the program.
    #[error(
        "the kernel refuses {name}: {source}. `manypath kernel doctor` says what it lacks, `--log debug` what it said"
    )]
    Refused {
        /// The controller.
        name: String,
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A map in the kernel cannot be read or written.
    #[error("cannot use the map {map} of {controller}: {source}")]
    Map {
        /// The controller.
        controller: String,
        /// The map.
        map: &'static str,
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A map has no room.
    #[error("the map {map} of {controller} is full: unload the controller and load it with more --connections")]
    Full {
        /// The controller.
        controller: String,
        /// The map.
        map: &'static str,
    },
    /// There is no such connection.
    #[error("{controller} has no connection {token:#010x}; `manypath kernel status` lists them")]
    NoConnection {
        /// The controller.
        controller: String,
        /// Its token.
        token: u32,
    },
    /// A parameter is unknown or its value is not one it takes.
    #[error(transparent)]
    Parameter(#[from] manypath_core::SpecError),
    /// A parameter is the simulator's only.
    #[error("{controller} has no parameter '{key}' in the kernel; it has: {known}")]
    NotInKernel {
        /// The controller.
        controller: String,
        /// The parameter.
        key: String,
        /// Those it has.
        known: String,
    },
    /// A parameter is more than the programs have room for.
    #[error("{controller} takes {key}={most} at most in the kernel, not {value}")]
    TooMuch {
        /// The controller.
        controller: String,
        /// The parameter.
        key: String,
        /// What was asked for.
        value: String,
        /// The most that it takes.
        most: u64,
    },
    /// A file of the kernel's cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The BPF file system is hidden.
    #[error(
        "no BPF file system is mounted here, which tells what is loaded, and one of this mount namespace's own would go \
         with it: {REVEAL}"
    )]
    Hidden,
    /// The default controller can be changed in the first network namespace only.
    #[error(
        "the default controller is set in the first network namespace only, and this is another: leave out --default"
    )]
    DefaultElsewhere,
}
