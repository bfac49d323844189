//! `serve`: a folder for others to read from, and to write to if they may.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use manypath_quic::{Identity, Server, ServerConfig};
use socket2::SockRef;

use crate::client::{self, AlgorithmArgs, TokenParser};
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
    #[arg(long, env = "MANYPATH_TOKEN", hide_env_values = true, value_parser = TokenParser)]
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
        algorithms.apply(&mut config.transport)?;
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
        if listening.ip().is_unspecified() {
            let own = own_addresses(listening.is_ipv6());
            addresses.extend(own.into_iter().map(|ip| SocketAddr::new(ip, listening.port())));
        } else {
            addresses.push(listening);
        }
    }
    addresses
}

/// The address that the default route gives packets to elsewhere; without one those of all interfaces, which may have
/// neighbours; without any only this host can come.
fn own_addresses(v6: bool) -> Vec<IpAddr> {
    if let Some(address) = outward_address(None, v6) {
        return vec![address];
    }
    let own: BTreeSet<IpAddr> = if v6 {
        global_in(&std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default())
    } else {
        // An interface without an address gives that of another.
        let of_interfaces = client::interfaces().into_iter().filter_map(|name| outward_address(Some(&name), false));
        of_interfaces.filter(|address| !address.is_loopback()).collect()
    };
    if !own.is_empty() {
        return own.into_iter().collect();
    }
    vec![if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }]
}

/// The address that packets to elsewhere get, or those that leave by an interface: for IPv4 Linux takes what has no
/// route for a neighbour then. Connecting a UDP socket looks it up and sends nothing; the destinations are those of RFC
/// 5737 and RFC 3849, which nobody has.
fn outward_address(interface: Option<&str>, v6: bool) -> Option<IpAddr> {
    let (from, to) = if v6 { ("[::]:0", "[2001:db8::1]:9") } else { ("0.0.0.0:0", "192.0.2.1:9") };
    let socket = UdpSocket::bind(from).ok()?;
    if let Some(name) = interface {
        SockRef::from(&socket).bind_device(Some(name.as_bytes())).ok()?;
    }
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// The addresses in `/proc/net/if_inet6` that count everywhere: 32 digits, and in the fourth field the scope, of which
/// 0 is the global one (proc_net(5)).
fn global_in(table: &str) -> BTreeSet<IpAddr> {
    let global = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        (fields.nth(2)? == "00").then(|| Ipv6Addr::from(address).into())
    });
    global.collect()
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
    fn global_addresses_are_read_from_their_table() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\nfd120000000000000000000000000001 2f 40 00 \
                     80      wbc\nfe80000000000000800f0afffeabf399 2f 40 20 80      wbc\nx\n";
        assert_eq!(global_in(table), ["fd12::1".parse().unwrap()].into());
    }

    #[test]
    fn names_are_quoted_for_the_shell() {
        assert_eq!(quoted("10.0.0.1:4433/a.iso"), "10.0.0.1:4433/a.iso");
        assert_eq!(quoted("[::1]:1/a"), "'[::1]:1/a'");
        assert_eq!(quoted("h:1/a b"), "'h:1/a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
