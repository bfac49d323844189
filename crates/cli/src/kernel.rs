//! `kernel`: coupled congestion control for the kernel's own Multipath TCP.

mod doctor;
mod load;
mod paths;
mod run;
mod status;
mod target_rate;
mod weights;

use anyhow::Result;

/// Coupled congestion control for the kernel's Multipath TCP, by BPF
///
/// Begin with `doctor`; then `load` a controller, give every uplink a subflow with `paths set`, and `run` any program over
/// all of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel doctor
  manypath kernel load mpcc-latency
  manypath kernel paths set wlan0 wwan0
  manypath kernel run --cc mpcc-latency -- curl -O https://example.org/big.iso")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Doctor(doctor::Args),
    Load(load::Load),
    Unload(load::Unload),
    Set(load::Set),
    Status(status::Args),
    Weights(weights::Args),
    TargetRate(target_rate::Args),
    Paths(paths::Args),
    Run(run::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Doctor(args) => doctor::run(args),
        Command::Load(args) => load::load(args),
        Command::Unload(args) => load::unload(args),
        Command::Set(args) => load::set(args),
        Command::Status(args) => status::run(args),
        Command::Weights(args) => weights::run(args),
        Command::TargetRate(args) => target_rate::run(args),
        Command::Paths(args) => paths::run(args),
        Command::Run(args) => run::run(args),
    }
}
