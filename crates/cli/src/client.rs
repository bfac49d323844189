//! What every client command shares: paths, trust, algorithms, and opening the connection.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use manypath_core::{AlgorithmSpec, Bytes, Duration as Span, ParseUnitError, Priority, Rate};
use manypath_quic::{
    Bind, ClientConfig, Connection, Fingerprint, MAX_TOKEN, PathConfig, PathState, PathTerms, TransportConfig, Trust,
    Wish,
};
use rustix::io::Errno;
use tokio::net::UdpSocket;

use crate::algorithms;
use crate::dial;
use crate::output;
use crate::schedule_trace::ScheduleTrace;
use crate::target::{self, Host};

/// Options of the commands that connect to a server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// A path: an interface, or a local address; every interface with a default route if none is given
    ///
    /// Repeat it for more paths. An interface name binds to the device, which a local address alone does not. `@REMOTE`
    /// (ADDRESS:PORT) reaches the server at another address on this path, `NAME=` in front names it for --cost, --priority
    /// and reports.
    #[arg(long = "path", value_name = "[NAME=]INTERFACE|ADDRESS[@REMOTE]", help_heading = "Paths")]
    paths: Vec<PathArg>,

    /// What a byte costs on a path, relative to the others; 1 if not given
    #[arg(long, value_name = "PATH=COST,...", value_delimiter = ',', help_heading = "Paths")]
    cost: Vec<Assignment<Cost>>,

    /// `normal`, or `backup` for a path to use only when no normal one works
    #[arg(long, value_name = "PATH=PRIORITY,...", value_delimiter = ',', help_heading = "Paths")]
    priority: Vec<Assignment<PriorityArg>>,

    /// The fingerprint of the server's certificate, as `serve` prints it
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "ca", help_heading = "Server")]
    pin: Option<Fingerprint>,

    /// Trust servers with a certificate from an authority in this PEM file
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    ca: Option<PathBuf>,

    /// The access token, if the server wants one
    #[arg(long, env = "MANYPATH_TOKEN", hide_env_values = true, value_parser = TokenParser, help_heading = "Server")]
    token: Option<String>,

    /// Give up when nothing was heard for this long; no server keeps a session without a path for more than 60s
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        value_parser = parse_timeout,
        allow_hyphen_values = true,
        help_heading = "Server"
    )]
    pub(crate) timeout: Duration,
}

/// The algorithms of a transfer, and how much of it may be under way.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AlgorithmArgs {
    /// The congestion controller of whoever sends the data (see `manypath algorithms`)
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]", value_parser = algorithms::parse_cc, help_heading = "Algorithms")]
    pub(crate) cc: Option<AlgorithmSpec>,

    /// The packet scheduler of whoever sends the data; `arrival-order:rescue=on` if not given (with uni-mptcp, `minrtt`)
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]", value_parser = algorithms::parse_sched, help_heading = "Algorithms")]
    pub(crate) sched: Option<AlgorithmSpec>,

    /// Use no more of the costlier of two paths than this rate takes; the client's --cost says which one that is
    ///
    /// The controller is `uni-mptcp`, which tries three weights for 20 s each, takes the one that fits the rate, and corrects
    /// it by what it gives; with `--cc uni-mptcp:correct=off` it tries anew when a path has changed, as its paper has it.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Algorithms")]
    target_rate: Option<Rate>,

    /// The most that this end keeps of what it sends, until it is acknowledged, and of what it receives, until it is read
    ///
    /// No more than that, the lesser of both ends', is under way in the longest round trip of the paths: 16 MiB in 100 ms are
    /// 1.3 Gbit/s. Faster and longer paths need more at both ends, and losses up to twice as much. A server keeps as much for each
    /// client.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "16MiB",
        value_parser = parse_window,
        allow_hyphen_values = true,
        help_heading = "Memory"
    )]
    window: Bytes,
}

/// The controller that knows targets.
const TARGETED: &str = "uni-mptcp";

impl AlgorithmArgs {
    /// The controller and scheduler to use or to ask for; `None` where nothing was chosen.
    ///
    /// # Errors
    /// If there is a target rate, and a controller that knows no targets or has another one.
    pub(crate) fn chosen(&self) -> Result<(Option<AlgorithmSpec>, Option<AlgorithmSpec>)> {
        let cc = match self.target_rate {
            None => self.cc.clone().map(algorithms::for_real_paths),
            Some(rate) => Some(self.targeted(rate)?),
        };
        let sched = self.sched.clone().or_else(|| cc.as_ref().map(algorithms::default_sched));
        Ok((cc, sched))
    }

    /// Has a session move its data so. Returns what it asks of the other end.
    pub(crate) fn apply(&self, transport: &mut TransportConfig) -> Result<Wish> {
        let (cc, sched) = self.chosen()?;
        let wish = Wish { cc: cc.clone(), sched: sched.clone() };
        if let Some(cc) = cc {
            transport.cc = cc;
        }
        if let Some(sched) = sched {
            transport.sched = sched;
        }
        transport.send_buffer = self.window;
        transport.receive_window = self.window;
        transport.flow_window = self.window;
        Ok(wish)
    }

    /// The controller with a target.
    fn targeted(&self, rate: Rate) -> Result<AlgorithmSpec> {
        let mut cc = self.cc.clone().unwrap_or_else(|| AlgorithmSpec::named(TARGETED));
        if cc.name != TARGETED {
            bail!("--target-rate needs the controller {TARGETED}: leave out --cc {cc}, or write --cc {TARGETED}");
        }
        if cc.params.iter().any(|(key, _)| key == "target") {
            bail!("--cc {cc} has a target already: leave out --target-rate");
        }
        cc.params.push(("target".to_owned(), rate.to_string()));
        if cc.params.iter().all(|(key, _)| key != "correct") {
            cc.params.push(("correct".to_owned(), "on".to_owned()));
        }
        // A rate of zero, say, is none.
        manypath_cc::create(&cc, 0)?;
        Ok(cc)
    }
}

/// A path as written: `[NAME=]INTERFACE|ADDRESS[@REMOTE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathArg {
    name: String,
    bind: Bind,
    remote: Option<SocketAddr>,
}

impl FromStr for PathArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) => (Some(name), rest),
            None => (None, text),
        };
        let (local, remote) = match rest.split_once('@') {
            Some((local, remote)) => (local, Some(remote)),
            None => (rest, None),
        };
        let name = name.unwrap_or(local);
        if name.is_empty() || local.is_empty() {
            return Err("a path is an interface (wlan0) or a local address (10.0.0.2)".to_owned());
        }
        let bind = match local.parse::<IpAddr>() {
            Ok(address) => Bind::Address(address.to_canonical()),
            Err(_) => Bind::Interface(local.to_owned()),
        };
        let remote = remote.map(|remote| {
            let parsed = remote.parse().map(target::canonical);
            parsed.map_err(|_| format!("'{remote}' is not a remote address: write ADDRESS:PORT"))
        });
        Ok(Self { name: name.to_owned(), bind, remote: remote.transpose()? })
    }
}

/// `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq)]
struct Assignment<T> {
    name: String,
    value: T,
}

impl<T: FromStr<Err = String>> FromStr for Assignment<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("'{text}' assigns nothing: write PATH=VALUE"))?;
        Ok(Self { name: name.to_owned(), value: value.parse()? })
    }
}

/// A cost: finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost(f64);

impl FromStr for Cost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = text.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost >= 0.0);
        value.map(Self).ok_or_else(|| format!("'{text}' is not a cost: it is a number from 0 up"))
    }
}

/// A priority's word.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PriorityArg(Priority);

impl FromStr for PriorityArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "normal" => Ok(Self(Priority::Normal)),
            "backup" => Ok(Self(Priority::Backup)),
            _ => Err(format!("'{text}' is not a priority: write normal or backup")),
        }
    }
}

/// Parses `30ms`, `10s`, `2min`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    parse_span(text).map(Duration::from)
}

/// Reads an access token. What is wrong with one is said without it: it is a secret.
#[derive(Clone, Debug)]
pub(crate) struct TokenParser;

impl TypedValueParser for TokenParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        let refused = |why: String| Err(clap::Error::raw(ErrorKind::ValueValidation, why).with_cmd(command));
        // An empty one would let everyone in who sends none.
        if text.is_empty() {
            refused("an empty token: leave out --token and MANYPATH_TOKEN to have none\n".to_owned())
        } else if text.len() > MAX_TOKEN {
            refused(format!("--token or MANYPATH_TOKEN is too long: a token has at most {MAX_TOKEN} bytes\n"))
        } else {
            Ok(text)
        }
    }
}

/// How long to wait or to measure: in no time at all nothing happens.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("it takes a moment at least: write 10s".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// The least and the most that an end may keep.
const WINDOWS: RangeInclusive<Bytes> = Bytes::new(64 << 10)..=Bytes::new(1 << 30);

/// Parses `64MiB`.
fn parse_window(text: &str) -> Result<Bytes, String> {
    let window: Bytes = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if WINDOWS.contains(&window) { Ok(window) } else { Err("a window is 64KiB to 1GiB".to_owned()) }
}

/// The same in the units of the core. Who leaves out the unit most likely means seconds, as the defaults do.
pub(crate) fn parse_span(text: &str) -> Result<Span, ParseUnitError> {
    text.parse().map_err(|error| match error {
        ParseUnitError::MissingUnit { text, .. } => {
            let example = format!("{}s", text.trim());
            ParseUnitError::MissingUnit { text, example }
        }
        other => other,
    })
}

impl ClientArgs {
    /// The access token.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// What was said about each path. Without --path the names are those of interfaces, which may come later.
    fn terms(&self) -> Vec<PathTerms> {
        let mut terms: Vec<PathTerms> = Vec::new();
        let mut entry = |name: &str, change: &dyn Fn(&mut PathTerms)| {
            let index = terms.iter().position(|terms| terms.name == name).unwrap_or_else(|| {
                terms.push(PathTerms { name: name.to_owned(), cost: 1.0, priority: Priority::Normal });
                terms.len() - 1
            });
            change(&mut terms[index]);
        };
        self.cost.iter().for_each(|cost| entry(&cost.name, &|terms| terms.cost = cost.value.0));
        self.priority.iter().for_each(|priority| entry(&priority.name, &|terms| terms.priority = priority.value.0));
        terms
    }

    /// The paths of --path, with what was said about each.
    fn paths(&self) -> Result<Vec<PathConfig>> {
        let mut paths: Vec<PathConfig> = Vec::new();
        for arg in &self.paths {
            if paths.iter().any(|path| path.name == arg.name) {
                bail!("two paths are called '{0}': name them, as in --path one={0} --path two={0}", arg.name);
            }
            let mut path = PathConfig::new(arg.name.as_str(), arg.bind.clone());
            path.remote = arg.remote;
            paths.push(path);
        }
        let terms = if paths.is_empty() { Vec::new() } else { self.terms() };
        for terms in terms {
            let Some(path) = paths.iter_mut().find(|path| path.name == terms.name) else {
                bail!("--cost or --priority names '{0}', which is no path: add --path {0}", terms.name);
            };
            (path.cost, path.priority) = (terms.cost, terms.priority);
        }
        Ok(paths)
    }

    /// A target rate is about the costlier of two paths: there must be one.
    fn check_costs(&self, paths: &[PathConfig]) -> Result<()> {
        let differ = match paths {
            [] => self.cost.iter().any(|cost| cost.value != Cost(1.0)),
            [first, rest @ ..] => rest.iter().any(|path| Cost(path.cost) != Cost(first.cost)),
        };
        if !differ {
            bail!(
                "--target-rate is about the costlier of two paths, and none is: write --cost PATH=COST for one of two"
            );
        }
        Ok(())
    }

    /// Waits until nothing has been heard from the server for --timeout, on any path; returns that as an error.
    pub(crate) async fn unheard(&self, connection: &Connection) -> anyhow::Error {
        // Of listening, not of the clock: it goes on while this process stands still.
        let mut silence = Duration::ZERO;
        while silence < self.timeout {
            tokio::time::sleep(LISTENING).await;
            let is_heard = connection.stats().paths.iter().any(|path| path.state == PathState::Active);
            silence = if is_heard { Duration::ZERO } else { silence + LISTENING };
        }
        let span = self.timeout;
        anyhow!("nothing was heard from the server for {span:?}: check that it runs and that a path to it works")
    }

    /// Opens a connection to `host` that sends with the given algorithms and asks the server to send with them.
    pub(crate) async fn connect(
        &self,
        host: &Host,
        algorithms: &AlgorithmArgs,
        trace: &ScheduleTrace,
    ) -> Result<Connection> {
        let trust = match (&self.pin, &self.ca) {
            (Some(pin), _) => Trust::Fingerprint(*pin),
            (None, Some(path)) => Trust::CaFile { path: path.clone(), server_name: host.name.clone() },
            (None, None) => bail!(
                "how to trust {host} is not said: give --pin FINGERPRINT as `manypath serve` printed it, or --ca FILE"
            ),
        };
        let paths = self.paths()?;
        if algorithms.target_rate.is_some() {
            self.check_costs(&paths)?;
        }
        let servers = dial::in_reach(host.resolve().await?, &paths);
        let mut config = ClientConfig::new(servers[0], trust);
        check_places(&paths, config.server).await?;
        config.terms = self.terms();
        if paths.is_empty() {
            check_terms(&config.terms).await;
        }
        config.paths = paths;
        config.token = self.token.clone();
        let patience = Span::from_secs_f64(self.timeout.as_secs_f64());
        config.connect_timeout = config.connect_timeout.min(patience);
        config.transport.linger = patience;
        config.wish = algorithms.apply(&mut config.transport)?;
        trace.attach(&mut config.transport);
        dial::connect(&config, &servers).await.with_context(|| format!("cannot connect to {host}"))
    }
}

/// Fails if no path can come up: the transport would wait for an interface or an address to appear until it gives the
/// server up. Beside a path that can come up it may wait, and says so: a modem may be plugged in later, and a name may
/// be misspelt.
async fn check_places(paths: &[PathConfig], server: SocketAddr) -> Result<()> {
    let mut absent = Vec::new();
    for path in paths {
        let remote = path.remote.unwrap_or(server);
        absent.extend(match &path.bind {
            Bind::Interface(name) => is_absent(name).await.then(|| format!("no interface is called '{name}'")),
            Bind::Address(address) if address.is_ipv4() != remote.is_ipv4() => bail!(
                "path {}: {address} and the server's {} are of different families: write --path {address}@REMOTE with \
                 an address of the server's of that family, or leave the path out",
                path.name,
                remote.ip()
            ),
            Bind::Address(address) => UdpSocket::bind((*address, 0)).await.err().and_then(|error| {
                let is_absent = error.kind() == io::ErrorKind::AddrNotAvailable;
                is_absent.then(|| format!("no interface has the address {address}"))
            }),
            Bind::Any => None,
        });
    }
    if absent.is_empty() {
        return Ok(());
    }
    let told = format!("{}; the interfaces are {}", absent.join(", "), interfaces().join(", "));
    if absent.len() == paths.len() {
        bail!("{told}");
    }
    output::note(format_args!("Note: {told}. Such a path is used as soon as it can be."));
    Ok(())
}

/// Says which names of --cost and --priority are those of no interface, where no path is named: they may be misspelt.
async fn check_terms(terms: &[PathTerms]) {
    for PathTerms { name, .. } in terms {
        if is_absent(name).await {
            let there = interfaces().join(", ");
            output::note(format_args!(
                "Note: --cost or --priority names '{name}', and no interface is called that yet; there are {there}."
            ));
        }
    }
}

/// Whether there is no such interface. It is asked as the transport will ask: the kernel knows some by other names, too.
async fn is_absent(interface: &str) -> bool {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await;
    let bound = socket.and_then(|socket| socket.bind_device(Some(interface.as_bytes())));
    // What else stands in the way is for the transport to say.
    bound.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NODEV))
}

/// The names of this host's interfaces.
pub(crate) fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    named_in(&table).map(str::to_owned).collect()
}

/// The names in `/proc/net/dev`: each stands before a colon, and the headings have none.
fn named_in(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim())
}

/// How often to ask whether a path is heard.
const LISTENING: Duration = Duration::from_millis(100);

/// How long to wait until the server knows that the connection is closed.
const GOODBYE: Duration = Duration::from_secs(1);

/// Closes the connection and gives the farewell time to leave.
pub(crate) async fn goodbye(connection: &Connection) {
    connection.close(0, "done");
    // If the farewell is lost the server's own timeout does the same, later.
    let _ = tokio::time::timeout(GOODBYE, connection.closed()).await;
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        algorithms: AlgorithmArgs,
    }

    fn parse(args: &[&str]) -> Cli {
        Cli::try_parse_from([&["x"], args].concat()).unwrap()
    }

    #[test]
    fn paths_have_names_costs_and_priorities() {
        let cli = parse(&[
            "--path=wlan0",
            "--path=lte=10.0.0.2@192.0.2.1:70",
            "--cost=wlan0=0.1,lte=10",
            "--priority=lte=backup",
        ]);
        let paths = cli.client.paths().unwrap();
        assert_eq!(paths[0].bind, Bind::Interface("wlan0".into()));
        assert!((paths[0].cost - 0.1).abs() < 1e-12);
        assert_eq!(paths[1].name, "lte");
        assert_eq!(paths[1].bind, Bind::Address([10, 0, 0, 2].into()));
        assert_eq!(paths[1].remote, Some("192.0.2.1:70".parse().unwrap()));
        assert_eq!((paths[0].priority, paths[1].priority), (Priority::Normal, Priority::Backup));
    }

    #[test]
    fn an_ipv4_address_written_as_ipv6_is_that_address() {
        let path = "::ffff:10.0.0.2@[::ffff:192.0.2.1]:70".parse::<PathArg>().unwrap();
        assert_eq!(path.bind, Bind::Address([10, 0, 0, 2].into()));
        assert_eq!(path.remote, Some("192.0.2.1:70".parse().unwrap()));
        assert_eq!(path.name, "::ffff:10.0.0.2", "as it was written");
    }

    #[test]
    fn without_paths_the_names_are_those_of_interfaces() {
        let client = parse(&["--cost=wlan0=0.1,wwan0=10", "--priority=wwan0=backup"]).client;
        assert_eq!(client.paths().unwrap(), []);
        let expected = [("wlan0", 0.1, Priority::Normal), ("wwan0", 10.0, Priority::Backup)];
        let expected = expected.map(|(name, cost, priority)| PathTerms { name: name.to_owned(), cost, priority });
        assert_eq!(client.terms(), expected);
    }

    #[test]
    fn mistakes_about_paths_say_what_to_do() {
        let error = |args: &[&str]| parse(args).client.paths().unwrap_err().to_string();
        assert!(error(&["--path=wlan0", "--priority=wwan0=backup"]).contains("add --path wwan0"));
        assert!(error(&["--path=wlan0", "--cost=wwan0=1"]).contains("add --path wwan0"));
        assert!(error(&["--path=a@192.0.2.1:1", "--path=a@192.0.2.1:2"]).contains("--path one="));
        for bad in [
            "--path=",
            "--path=a@b",
            "--cost=a",
            "--cost=a=-1",
            "--cost=a=NaN",
            "--priority=a=b",
            "--timeout=5",
            "--timeout=0s",
        ] {
            assert!(Cli::try_parse_from(["x", bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn interfaces_are_read_from_their_table() {
        let table = "Inter-|   Receive                       |  Transmit\n face |bytes    packets |bytes    packets\n    \
                     lo:   4240       60     4240       60\nenp0s31f6:       0        0        0        0\n";
        assert_eq!(named_in(table).collect::<Vec<_>>(), ["lo", "enp0s31f6"]);
    }

    #[test]
    fn a_duration_without_a_unit_is_taken_to_be_of_seconds() {
        let said = |text| parse_duration(text).unwrap_err().to_string();
        assert_eq!(said("5"), "'5' has no unit: write 5s");
        assert_eq!(said(" 0.5 "), "' 0.5 ' has no unit: write 0.5s");
        assert!(said("5m").contains("unknown unit"));
    }

    #[test]
    fn the_scheduler_follows_the_controller_unless_chosen() {
        let names = |args: &[&str]| {
            let (cc, sched) = parse(args).algorithms.chosen().unwrap();
            (cc.map(|cc| cc.name), sched.map(|sched| sched.name))
        };
        assert_eq!(names(&[]), (None, None));
        assert_eq!(names(&["--cc=cubic"]), (Some("cubic".into()), Some("arrival-order".into())));
        assert_eq!(names(&["--cc=uni-mptcp"]).1.as_deref(), Some("minrtt"));
        assert_eq!(names(&["--cc=cubic", "--sched=round-robin"]).1.as_deref(), Some("round-robin"));
    }

    #[test]
    fn a_window_is_of_all_that_this_end_keeps() {
        let windows = |args: &[&str]| {
            let mut transport = TransportConfig::default();
            parse(args).algorithms.apply(&mut transport).unwrap();
            [transport.send_buffer, transport.receive_window, transport.flow_window].map(Bytes::get)
        };
        assert_eq!(windows(&["--window=64MiB"]), [64 << 20; 3]);
        let default = TransportConfig::default();
        assert_eq!(windows(&[]), [default.send_buffer, default.receive_window, default.flow_window].map(Bytes::get));
        for (bad, why) in [("63KiB", "64KiB to 1GiB"), ("2GiB", "64KiB to 1GiB"), ("16", "no unit"), ("-1MB", "range")]
        {
            let said = Cli::try_parse_from(["x", "--window", bad]).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn mpcc_tolerates_chance_losses_and_brakes_unless_chosen() {
        let cc = |args: &[&str]| parse(args).algorithms.chosen().unwrap().0.unwrap().to_string();
        assert_eq!(
            cc(&["--cc=mpcc-loss:omega=0.1"]),
            "mpcc-loss:omega=0.1,slow-start=tolerant,brake=lasting,queue=heeded,bursts=heeded,low=near,min-rate=0.05"
        );
        assert_eq!(
            cc(&["--cc=mpcc-latency:slow-start=paper"]),
            "mpcc-latency:slow-start=paper,brake=lasting,queue=heeded,bursts=heeded,low=near,min-rate=0.05"
        );
        assert_eq!(
            cc(&["--cc=mpcc-loss:brake=held"]),
            "mpcc-loss:brake=held,slow-start=tolerant,queue=heeded,bursts=heeded,low=near,min-rate=0.05"
        );
        assert_eq!(cc(&["--cc=mpcc-connection"]), "mpcc-connection");
        assert_eq!(cc(&["--cc=vivace"]), "vivace");
    }

    #[test]
    fn a_target_rate_is_a_parameter_of_the_controller_that_knows_targets() {
        let cc = |args: &[&str]| parse(args).algorithms.chosen().map(|(cc, _)| cc.unwrap().to_string());
        assert_eq!(cc(&["--target-rate=2.5Mbit"]).unwrap(), "uni-mptcp:target=2.5Mbit,correct=on");
        let of_the_paper = ["--cc=uni-mptcp:correct=off,period=300s", "--target-rate=2500kbit"];
        assert_eq!(cc(&of_the_paper).unwrap(), "uni-mptcp:correct=off,period=300s,target=2.5Mbit");
        let said = |args: &[&str]| cc(args).unwrap_err().to_string();
        assert!(said(&["--cc=cubic", "--target-rate=1Mbit"]).contains("leave out --cc cubic"));
        assert!(said(&["--cc=uni-mptcp:target=1Mbit", "--target-rate=1Mbit"]).contains("has a target already"));
        assert!(said(&["--target-rate=0Mbit"]).contains("target takes a rate"));
        assert!(Cli::try_parse_from(["x", "--target-rate=3"]).is_err());
    }
}
