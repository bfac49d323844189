//! `emu up`, and the process in the background that holds the links.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use manypath_emu::tun::TunLinks;
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::signal::unix::{SignalKind, signal};

use super::LinkArgs;
use super::registry::{self, Name, Registration, Request};
use super::status::Source;
use crate::{Exited, output};

/// Start the links of a scenario and keep them up in the background
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath emu up two.toml\n  manypath emu up two.toml --name lab --set link.link1.loss=1%"
)]
pub(super) struct Up {
    #[command(flatten)]
    links: LinkArgs,
}

/// What `up` starts; it ends with the links.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(super) struct Hold {
    #[command(flatten)]
    links: LinkArgs,
}

/// Starts a process of its own that holds the links, and waits until they are up.
pub(super) async fn up(args: &Up) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let mut command = Command::new(program);
    command.args(["emu", "hold"]).args(args.links.words()).stdout(Stdio::piped());
    let mut holder = command.spawn().context("cannot start a process in the background")?;
    let mut name = String::new();
    if let Some(pipe) = holder.stdout.take() {
        BufReader::new(pipe).read_line(&mut name).context("cannot hear from the process in the background")?;
    }
    let Ok(name) = name.trim().parse::<Name>() else {
        // It has said on standard error why.
        let status = holder.wait().context("cannot wait for the process in the background")?;
        return Err(Exited::from(status).into());
    };
    let status = registry::status(&name).await?;
    output::text(&super::status::table(&status)?)?;
    output::line(&format!(
        "enter with `manypath emu exec --name {name} -- COMMAND`, end with `manypath emu down --name {name}`"
    ))?;
    Ok(())
}

/// Holds links until told to end.
pub(super) async fn run(args: &Hold) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let (config, scenario) = args.links.read()?;
    let name = args.links.name.clone().unwrap_or_else(|| Name::of(&scenario));
    let registration = Registration::new(&name)?;
    let _awake = args.links.keep_awake();
    let links = Arc::new(TunLinks::start(&config)?);
    let source = Source::new(&name, &scenario, &config, &links, false);
    // From here on nobody waits or listens.
    output::line(&name.to_string())?;
    detach().context("cannot leave the terminal")?;
    let asker = tokio::select! {
        asker = serve(&registration, &source) => Some(asker),
        _ = terminate.recv() => None,
    };
    drop((source, links, registration));
    // The asker sees the end of its connection when all is gone.
    drop(asker);
    Ok(())
}

/// Answers requests until one asks for the end; returns who did.
pub(super) async fn serve(registration: &Registration, source: &Source) -> tokio::net::UnixStream {
    loop {
        match registration.next().await {
            (Request::Status, stream) => match source.status() {
                Ok(text) => registry::answer(stream, &text).await,
                // The links have failed; who asks sees that there is no answer.
                Err(_) => drop(stream),
            },
            (Request::Stop, stream) => return stream,
        }
    }
}

/// Leaves the terminal, its session, and the folder that the process was started from.
fn detach() -> io::Result<()> {
    // Refused to the leader of a group of processes, as a shell makes one of a command that it is given by hand.
    let _ = setsid();
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    std::env::set_current_dir("/")
}
