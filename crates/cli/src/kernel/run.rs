//! `kernel run`: an unmodified program over Multipath TCP.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use manypath_kernel::run::{self, Program};
use rustix::fs::{Access, access};

/// Run a program whose TCP connections shall use all paths
///
/// A small library is loaded into the program and makes its TCP sockets Multipath TCP sockets. Which paths they use is set
/// by `manypath kernel paths`; the other end must speak Multipath TCP too, else the connection is plain TCP. The program
/// replaces this one: its exit code is its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel run -- curl -O https://example.org/big.iso
  manypath kernel run --cc mpcc-latency -- iperf3 -c 192.0.2.7
  manypath kernel run --cc cubic -- python3 client.py")]
pub(crate) struct Args {
    /// Congestion controller: one of ours that is loaded (`lia`, `mp_lia`), or one of the kernel's [default: the machine's]
    #[arg(long, value_name = "ALG")]
    cc: Option<String>,

    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (program, arguments) = args.command.split_first().context("no command")?;
    let file = find(Path::new(program), env::var_os("PATH"))
        .with_context(|| format!("there is no program '{}'", program.display()))?;
    let controller = args.cc.as_deref().map(run::controller);
    run::check(controller)?;
    match run::kind(&file).with_context(|| format!("cannot read {}", file.display()))? {
        Program::Dynamic => {}
        Program::Go if controller.is_some_and(|name| !run::is_default(name)) => bail!(
            "{} is a Go program: it makes its own system calls, and takes the machine's default controller only. Use \
             `manypath kernel load --default`, or leave out --cc",
            program.display()
        ),
        Program::Go => {}
        Program::Static => bail!(
            "{} is linked statically: no library can be loaded into it. Use a dynamically linked build of it",
            program.display()
        ),
    }
    let library = run::install_library()?;
    let mut command = Command::new(&file);
    command.arg0(program).args(arguments);
    for (name, value) in run::environment(&library, controller, |name| env::var_os(name)) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Err(command.exec()).with_context(|| format!("cannot run '{}'", program.display()))
}

/// Where the shell would find the program, given the value of PATH.
fn find(program: &Path, folders: Option<OsString>) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(|path| path.is_file());
    }
    let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    env::split_paths(&folders?).map(|folder| folder.join(program)).find(is_program)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_a_file_that_can_be_executed() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["empty", "data", "programs"].map(|name| place.path().join(name));
        let [_, data, program] = folders.clone().map(|folder| folder.join("tool"));
        for (file, mode) in [(&data, 0o644), (&program, 0o755)] {
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
        }
        let path = env::join_paths(folders).unwrap();
        assert_eq!(find(Path::new("tool"), Some(path.clone())), Some(program));
        assert_eq!(find(Path::new("other"), Some(path)), None);
        // The kernel says why it cannot be executed.
        assert_eq!(find(&data, None), Some(data.clone()));
    }
}
