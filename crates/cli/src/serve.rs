//! `serve`: a folder for others to read from, and to write to if they may.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::builder::NonEmptyStringValueParser;
use manypath_quic::{Identity, Server, ServerConfig};

use crate::client::AlgorithmArgs;
use crate::files::store::Store;
use crate::interrupt::Interrupt;
use crate::output;
use crate::schedule_trace::{ScheduleTrace, TraceArgs};
use crate::service::Service;

/// Serve the files of a folder
///
/// Prints the `get` command that fetches from it, with the fingerprint that proves to clients who the server is. Paths in
/// requests cannot leave the folder, symbolic links included.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  manypath serve .\n  manypath serve /srv/files --listen 0.0.0.0:4433 --token SECRET\n  \
                        manypath serve inbox --writable"
)]
pub(crate) struct Args {
    /// The folder
    dir: PathBuf,

    /// Let clients store and replace files
    #[arg(long)]
    writable: bool,

    /// Ask clients for this access token
    #[arg(long, env = "MANYPATH_TOKEN", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    token: Option<String>,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    algorithms: AlgorithmArgs,

    #[command(flatten)]
    trace: TraceArgs,
}

/// All addresses, at the port that `target` assumes.
const DEFAULT_LISTEN: &str = "0.0.0.0:4433";

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is not ADDRESS:PORT: write {DEFAULT_LISTEN}, or [::]:4433 for IPv6"))
}

/// Options of the commands that wait for clients.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ListenArgs {
    /// An address to listen on; repeat it for more; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN, value_parser = parse_listen)]
    listen: Vec<SocketAddr>,

    /// The certificate chain in PEM form; without it a self-signed one is made and kept
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// The private key in PEM form
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Where a self-signed certificate is kept [default: manypath in the user's state folder]
    #[arg(long, value_name = "DIR", conflicts_with = "cert")]
    state: Option<PathBuf>,

    /// Refuse the congestion controllers and schedulers that clients ask for
    #[arg(long)]
    no_choice: bool,
}

impl ListenArgs {
    /// The server's settings, with the algorithms it uses for clients that ask for none.
    pub(crate) fn config(&self, algorithms: &AlgorithmArgs, token: Option<&str>) -> Result<ServerConfig> {
        let identity = match (&self.cert, &self.key, &self.state) {
            (Some(cert), Some(key), _) => Identity::Files { cert: cert.clone(), key: key.clone() },
            (_, _, Some(dir)) => Identity::SelfSigned { dir: dir.clone() },
            _ => Identity::SelfSigned { dir: state_dir()? },
        };
        let mut config = ServerConfig {
            listen: self.listen.clone(),
            identity,
            token: token.map(str::to_owned),
            allow_choice: !self.no_choice,
            ..ServerConfig::default()
        };
        let (cc, sched) = algorithms.chosen()?;
        config.transport.cc = cc.unwrap_or(config.transport.cc);
        config.transport.sched = sched.unwrap_or(config.transport.sched);
        Ok(config)
    }
}

/// What a client command needs besides the address, ready to paste.
pub(crate) fn client_options(server: &Server, token: Option<&str>) -> String {
    format!("--pin {}{}", server.fingerprint(), if token.is_some() { " --token TOKEN" } else { "" })
}

/// Where the XDG base directory specification (0.8) puts state.
fn state_dir() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let base = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    Ok(base.context("there is no home folder to keep the certificate in: say where with --state DIR")?.join("manypath"))
}

/// The addresses by which others may reach a server, for the command to paste.
pub(crate) fn reachable(server: &Server) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for listening in server.local_addrs() {
        let mut address = listening;
        if listening.ip().is_unspecified() {
            match outward_address(listening.is_ipv6()) {
                Some(ip) => address.set_ip(ip),
                None => address.set_ip(if listening.is_ipv6() {
                    Ipv6Addr::LOCALHOST.into()
                } else {
                    Ipv4Addr::LOCALHOST.into()
                }),
            }
        }
        addresses.push(address);
    }
    addresses
}

/// The address that the routing table gives packets to elsewhere. Connecting a UDP socket looks it up and sends nothing;
/// the destinations are those of RFC 5737 and RFC 3849, which nobody has.
fn outward_address(v6: bool) -> Option<IpAddr> {
    let (from, to) = if v6 { ("[::]:0", "[2001:db8::1]:9") } else { ("0.0.0.0:0", "192.0.2.1:9") };
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// `text` for a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '%' | '+' | ',');
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    let cannot = || format!("cannot serve {}", args.dir.display());
    let store = Store::open(&args.dir, args.writable).with_context(cannot)?;
    let example = store.example().unwrap_or_else(|| "FILE".to_owned());
    let token = args.token.as_deref();
    let trace = ScheduleTrace::open(&args.trace)?;
    let mut config = args.listen.config(&args.algorithms, token)?;
    trace.attach(&mut config.transport);
    let server = Server::bind(config).await?;
    let access = if args.writable { "for reading and writing" } else { "for reading" };
    output::note(format_args!("Serving {} {access}. Fetch from it with", args.dir.display()));
    let options = client_options(&server, token);
    for address in reachable(&server) {
        output::line(&format!("manypath get {} {options}", quoted(&format!("{address}/{example}"))))?;
    }
    output::note("Ctrl-C ends it.");
    trace.finish(until_interrupted(&server, &Service::files(store), interrupt).await)
}

/// Serves every client that comes.
pub(crate) async fn until_interrupted(server: &Server, service: &Arc<Service>, interrupt: &Interrupt) -> Result<()> {
    loop {
        tokio::select! {
            () = interrupt.wait() => break,
            connection = server.accept() => match connection {
                Some(connection) => drop(tokio::spawn(Arc::clone(service).serve(connection))),
                None => bail!("a defect of this program ended the server: please report it, with what is written above"),
            },
        }
    }
    server.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_the_shell() {
        assert_eq!(quoted("10.0.0.1:4433/a.iso"), "10.0.0.1:4433/a.iso");
        assert_eq!(quoted("[::1]:1/a"), "'[::1]:1/a'");
        assert_eq!(quoted("h:1/a b"), "'h:1/a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
