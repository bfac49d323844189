//! `kernel run`: an unmodified program over Multipath TCP.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use manypath_kernel::run::{self, Program};

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
    let file = find(Path::new(program)).with_context(|| format!("there is no program '{}'", program.display()))?;
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
    command.arg0(program).args(arguments).envs(run::environment(&library, controller, |name| env::var_os(name)));
    Err(command.exec()).with_context(|| format!("cannot run '{}'", program.display()))
}

/// Where the shell would find the program.
fn find(program: &Path) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(is_file);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_file)
}
