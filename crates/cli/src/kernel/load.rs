//! `kernel load` and `kernel unload`.

use anyhow::{Result, ensure};
use manypath_core::AlgorithmSpec;
use manypath_kernel::{Request, Setting, engine};

use crate::output::{self, counted};

/// Load congestion controllers into the kernel
///
/// They stay until `unload` or the next boot, and any socket may take them: by TCP_CONGESTION, by `kernel run --cc`, or as
/// the machine's default. All of those named are loaded, or none. MPCC's defaults are not those of `manypath algorithms`;
/// `status` shows what is loaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel load lia
  manypath kernel load mpcc-latency --default
  manypath kernel load uni-mptcp balia
  manypath kernel load mpcc-latency --set latency-weight=12
  manypath kernel load lia --set pacing=off
  manypath kernel load mpcc-latency:latency-weight=12 olia
  manypath kernel load mpcc-latency:latency-weight=12 --as mp_lat12")]
pub(crate) struct Load {
    /// Controllers, by their names in `manypath algorithms`, alone or with parameters
    #[arg(required = true, value_name = "ALG")]
    controllers: Vec<AlgorithmSpec>,

    /// Set a parameter of all of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    set: Vec<Setting>,

    /// Make it the machine's default: sockets take it that ask for none
    #[arg(long)]
    default: bool,

    /// Give it another name in the kernel, so that it can be loaded twice with different parameters
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,

    /// Connections that each can couple at once; further ones are not coupled
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    connections: u32,
}

/// Remove controllers from the kernel
///
/// Subflows that use one go on with it; sockets can no longer ask for it. Servers that have asked for it give it to new
/// connections until they are restarted. If it was the machine's default, the one before is again, in the network
/// namespaces that have inherited it too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath kernel unload lia\n  manypath kernel unload")]
pub(crate) struct Unload {
    /// Controllers, by Manypath's names or the kernel's [default: all that are loaded]
    #[arg(value_name = "ALG")]
    controllers: Vec<String>,
}

/// Change parameters of a controller that is loaded
///
/// Connections that use it take them at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath kernel set mpcc-latency latency-weight=12 theta=0.5")]
pub(crate) struct Set {
    /// Controller, by Manypath's name or the kernel's
    #[arg(value_name = "ALG")]
    controller: String,

    /// Parameters, as in `manypath algorithms`; and `pacing`, on or off, of those with a window
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<Setting>,
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Runs `load`.
pub(crate) fn load(args: &Load) -> Result<()> {
    let one = args.controllers.len() == 1;
    ensure!(one || !args.default, "--default is for one controller: name only one");
    ensure!(one || args.name.is_none(), "--as is for one controller: name only one");
    let request = Request {
        controllers: args.controllers.clone(),
        settings: args.set.clone(),
        name: args.name.clone(),
        connections: Some(args.connections),
        as_default: args.default,
    };
    let loaded = engine::load(&request)?;
    if loaded.mounted {
        output::note("mounted the BPF file system on /sys/fs/bpf");
    }
    for name in loaded.controllers {
        output::line(&format!("{name}{}", if args.default { " (default)" } else { "" }))?;
    }
    Ok(())
}

/// Runs `unload`.
pub(crate) fn unload(args: &Unload) -> Result<()> {
    let unloaded = engine::unload(&args.controllers)?;
    for name in &unloaded.controllers {
        output::line(&format!("removed {name}"))?;
    }
    if let Some(default) = unloaded.default {
        output::line(&format!("the machine's default controller is now {default}"))?;
    }
    if unloaded.namespaces > 0 {
        let namespaces = counted(unloaded.namespaces, "other network namespace", "other network namespaces");
        output::line(&format!("the default controller of {namespaces} is what was before"))?;
    }
    if unloaded.controllers.is_empty() {
        output::line("nothing is loaded")?;
    }
    Ok(())
}

/// Runs `set`.
pub(crate) fn set(args: &Set) -> Result<()> {
    Ok(engine::set(&args.controller, &args.settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_pairs() {
        assert_eq!(parse_setting("a-b=1"), Ok(("a-b".to_owned(), "1".to_owned())));
        for text in ["", "a", "=1", "a="] {
            assert!(parse_setting(text).is_err(), "{text}");
        }
    }
}
