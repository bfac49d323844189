//! `emu`: links in real time between two network namespaces, for any program.

mod check;
mod down;
mod hold;
mod registry;
mod run;
mod status;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use manypath_core::Bytes;
use manypath_emu::Awake;
use manypath_emu::tun::TunConfig;
use manypath_scenario::{Document, Override};

use self::registry::Name;
use crate::sim::parse_seed;

/// Emulate the links of a scenario in real time, between two network namespaces, for any program
///
/// The paths of the scenario's connections lie between a client's and a server's namespace. Path N is the device `pathN` on both
/// sides, with the addresses 10.N.0.1 (client) and 10.N.0.2 (server); the client's address decides the path of a packet. A
/// Multipath TCP connection from the client's first path opens one subflow on each path of the scenario's first connection.
/// What the scenario says of controllers, schedulers and workloads is for the simulator: here programs bring their own. Its sources load
/// the links. Needs root.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath emu run two.toml --server 'iperf3 -s -1' -- iperf3 -c 10.1.0.2\n  \
    manypath emu shell two.toml\n  manypath emu up two.toml && manypath emu exec -- ping -c 3 10.2.0.2\n  \
    manypath emu status --json\n  manypath emu down --all")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Up(hold::Up),
    Run(run::Run),
    Shell(run::Shell),
    Exec(run::Exec),
    Status(status::Args),
    Down(down::Args),
    Check(check::Args),
    Hold(hold::Hold),
}

/// Which links.
#[derive(Clone, Debug, clap::Args)]
struct LinkArgs {
    /// The scenario; `-` reads standard input, and without it the built-in one is taken: two links
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,

    /// What `status`, `exec` and `down` call the links; after the scenario without it
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,

    /// Seed of the links' randomness: losses and jitter
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = parse_seed)]
    seed: u64,

    /// Replace a value of the file: KEY, link.NAME.KEY, connection.NAME.KEY; without NAME in all of them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// What a packet has on the links besides its IP packet, as 38B for Ethernet
    #[arg(long, value_name = "SIZE", default_value_t = Bytes::ZERO, value_parser = parse_overhead)]
    overhead: Bytes,

    /// Set no endpoints and limits of Multipath TCP
    #[arg(long)]
    no_mptcp: bool,

    /// Keep all processors awake, for links that are in time on a virtual machine with little to do; they look busy then
    #[arg(long)]
    awake: bool,
}

/// The most that a packet has besides itself: framing, tunnels and cells add less than a packet of the usual size.
const MAX_OVERHEAD: Bytes = Bytes::new(1500);

fn parse_overhead(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: manypath_core::ParseUnitError| error.to_string())?;
    if size > MAX_OVERHEAD {
        return Err(format!("a packet's overhead is at most {MAX_OVERHEAD}: write 38B for Ethernet, 0B for none"));
    }
    Ok(size)
}

impl LinkArgs {
    /// The links, and the name of their scenario.
    fn read(&self) -> Result<(TunConfig, String)> {
        let document = self.scenario.as_deref().map_or_else(|| Ok(Document::built_in()), Document::read)?;
        let scenario = document.parse(&self.set)?;
        let mut config = TunConfig::from_scenario(&scenario, self.seed)?;
        config.overhead = self.overhead;
        config.mptcp = !self.no_mptcp;
        Ok((config, scenario.name))
    }

    /// What keeps processors awake, if that was asked for.
    fn keep_awake(&self) -> Option<Awake> {
        self.awake.then(Awake::keep)
    }

    /// The same as words of a command line.
    fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.push(format!("--{name}={value}").into());
        self.name.iter().for_each(|name| option("name", name.to_string()));
        self.set.iter().for_each(|set| option("set", set.to_string()));
        option("seed", self.seed.to_string());
        option("overhead", self.overhead.to_string());
        if self.no_mptcp {
            words.push("--no-mptcp".into());
        }
        if self.awake {
            words.push("--awake".into());
        }
        if let Some(file) = &self.scenario {
            words.extend(["--".into(), file.into()]);
        }
        words
    }
}

/// Runs the command. It has signals of its own to listen to.
pub(crate) async fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Up(args) => hold::up(&args).await,
        Command::Run(args) => run::run(args).await,
        Command::Shell(args) => run::shell(args).await,
        Command::Exec(args) => run::exec(args).await,
        Command::Status(args) => status::run(&args).await,
        Command::Down(args) => down::run(&args).await,
        Command::Check(args) => check::run(args).await,
        Command::Hold(args) => hold::run(&args).await,
    }
}
