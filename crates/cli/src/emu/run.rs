//! `emu run`, `emu shell` and `emu exec`: programs in the namespaces.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use manypath_emu::tun::{Namespace, TunLinks};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::LinkArgs;
use super::hold::serve;
use super::registry::{self, Name, Registration};
use super::status::{self, Source};
use crate::{Exited, output};

/// How long a program may take to end when asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long a server may take until it listens. Not everything that may be run beside a command does.
const LISTENING: Duration = Duration::from_secs(5);

/// Run a command in the client's namespace, and end the links with it
///
/// The exit code is the command's. `emu status` shows the links meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath emu run -- ping -c 3 10.1.0.2          # over two built-in links\n  \
    manypath emu run two.toml --server 'iperf3 -s -1' -- iperf3 -c 10.1.0.2\n  \
    manypath emu run two.toml --server 'python3 -m http.server' -- mptcpize run curl -O http://10.1.0.2:8000/file")]
pub(super) struct Run {
    #[command(flatten)]
    links: LinkArgs,

    /// Run this, by `sh`, in the server's namespace until the command ends; the command waits until it listens
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Open a shell in the client's namespace, and end the links with it
///
/// The shell is that of the environment variable SHELL. In another terminal, `manypath emu exec --server` enters the server's namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  manypath emu shell two.toml\n  manypath emu shell two.toml --server 'iperf3 -s'")]
pub(super) struct Shell {
    #[command(flatten)]
    links: LinkArgs,

    /// Run this, by `sh`, in the server's namespace until the shell ends
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
}

/// Run a command in a namespace of links that are up
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath emu exec -- ping -c 3 10.2.0.2\n  manypath emu exec --server -- iperf3 -s"
)]
pub(super) struct Exec {
    /// Which links; not needed if only one is up
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,

    /// In the server's namespace; without it in the client's
    #[arg(long)]
    server: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs `emu run`.
pub(super) async fn run(args: Run) -> Result<()> {
    over(&args.links, args.server.as_deref(), command(&args.command)).await
}

/// Runs `emu shell`.
pub(super) async fn shell(args: Shell) -> Result<()> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    over(&args.links, args.server.as_deref(), command(&[shell])).await
}

/// Runs `emu exec`: becomes the command.
pub(super) async fn exec(args: Exec) -> Result<()> {
    let name = registry::choose(args.name.as_ref())?;
    let status = status::parsed(&registry::status(&name).await?)?;
    let path = if args.server { status.server_namespace } else { status.client_namespace };
    let namespace = Namespace::enter(&path)?;
    let mut command = command(&args.command);
    let what = program(&command);
    // It returns only if that fails.
    let error = namespace.run(move || command.exec());
    Err(error).with_context(|| format!("cannot run {what}"))
}

fn command(words: &[OsString]) -> Command {
    // The arguments have at least one word.
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn program(command: &Command) -> String {
    command.get_program().display().to_string()
}

/// Runs a command over the links of a scenario.
async fn over(args: &LinkArgs, server: Option<&str>, command: Command) -> Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (config, scenario) = args.read()?;
    let name = args.name.clone().unwrap_or_else(|| Name::of(&scenario).numbered(std::process::id()));
    let registration = Registration::new(&name)?;
    let _awake = args.keep_awake();
    let links = Arc::new(TunLinks::start(&config)?);
    let source = Source::new(&name, &scenario, &config, &links, true);

    let mut server = server.map(|text| Server::start(&links, text)).transpose()?;
    if let Some(server) = &mut server {
        tokio::select! {
            listens = server.listens(&links) => if !listens? {
                output::note("nothing listens in the server's namespace: the command runs all the same");
            },
            signal = signals.next() => return Err(Exited::by(signal).into()),
            asker = serve(&registration, &source) => {
                drop(asker);
                return Err(Exited::by(Signal::TERM).into());
            }
        }
    }
    let what = program(&command);
    let mut client = Program::start(links.client(), command).with_context(|| format!("cannot run {what}"))?;
    let status = tokio::select! {
        status = client.wait() => status?,
        signal = signals.next() => client.end(signal).await?,
        asker = serve(&registration, &source) => {
            let status = client.end(Signal::TERM).await?;
            drop(asker);
            status
        }
    };
    if let Some(server) = server {
        server.stop().await;
    }
    if status.success() { Ok(()) } else { Err(Exited::from(status).into()) }
}

/// Signals that end a command. A terminal sends Ctrl-C to the command itself, which does with it what it likes.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    from_terminal: bool,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            from_terminal: io::stdin().is_terminal(),
        })
    }

    async fn next(&mut self) -> Signal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => if !self.from_terminal { return Signal::INT },
                _ = self.terminate.recv() => return Signal::TERM,
                _ = self.hang_up.recv() => return Signal::HUP,
            }
        }
    }
}

/// A program that runs in a namespace.
#[derive(Debug)]
struct Program {
    pid: Option<Pid>,
    ended: JoinHandle<io::Result<ExitStatus>>,
}

impl Program {
    fn start(namespace: &Namespace, command: Command) -> io::Result<Self> {
        let mut child: Child = namespace.spawn(command)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self { pid, ended: tokio::task::spawn_blocking(move || child.wait()) })
    }

    async fn wait(&mut self) -> Result<ExitStatus> {
        Ok((&mut self.ended).await.context("the wait for the command broke off")??)
    }

    /// Asks the program to end, and ends it if it does not.
    async fn end(&mut self, how: Signal) -> Result<ExitStatus> {
        self.signal(how);
        if let Ok(status) = timeout(GRACE, self.wait()).await {
            return status;
        }
        self.signal(Signal::KILL);
        self.wait().await
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // It fails if the program has ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// A command in the server's namespace, with all that it starts.
#[derive(Debug)]
struct Server {
    program: Program,
    watchdog: Option<Child>,
}

/// Waits for the end of its input, which this process holds open and its end closes, however it ends; then kills a group.
const WATCHDOG: &str = "read -r _; kill -KILL -$0";

impl Server {
    fn start(links: &TunLinks, text: &str) -> Result<Self> {
        let mut command = Command::new("sh");
        // What it says is not the client's output. The group lets it be ended with what it has started.
        command.args(["-c", text]).stdin(Stdio::null()).stdout(io::stderr()).process_group(0);
        let program = Program::start(links.server(), command).context("cannot run sh")?;
        let mut server = Self { program, watchdog: None };
        if let Some(group) = server.program.pid {
            let mut watchdog = Command::new("sh");
            watchdog.args(["-c", WATCHDOG, &group.as_raw_nonzero().to_string()]);
            watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            server.watchdog = Some(watchdog.spawn().context("cannot run sh")?);
        }
        Ok(server)
    }

    /// Waits until something in the namespace listens, for a while; returns whether it does.
    async fn listens(&mut self, links: &TunLinks) -> Result<bool> {
        let deadline = Instant::now() + LISTENING;
        while !links.server().run(anybody_listens) {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            if let Ok(status) = timeout(Duration::from_millis(10), self.program.wait()).await {
                return Err(anyhow!("the server has ended: {}", status?));
            }
        }
        Ok(true)
    }

    async fn stop(mut self) {
        self.signal(Signal::TERM);
        // Whatever is left after that, of it or of what it has started, had its time.
        let _ = timeout(GRACE, self.program.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.program.pid {
            // It fails if all have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(watchdog) = &mut self.watchdog {
            // It fails if it has ended.
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
    }
}

/// Whether a TCP socket listens in the namespace of the calling thread (state 0A), or a UDP socket is open.
fn anybody_listens() -> bool {
    let rows = |table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
    let state = |row: &str| row.split_ascii_whitespace().nth(3).map(str::to_owned);
    let listens = |table| rows(table).lines().any(|row| state(row).as_deref() == Some("0A"));
    listens("tcp") || listens("tcp6") || ["udp", "udp6"].into_iter().any(|table| rows(table).lines().count() > 1)
}
