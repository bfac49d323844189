//! Two namespaces with links between them, controllers under names of this process' own, and transfers that are verified.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::print_stdout, reason = "each test binary uses its own part")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use manypath_core::AlgorithmSpec;
use manypath_emu::tun::{Namespace, TunConfig, TunLinks};
use manypath_kernel::status::{ConnectionStatus, Controller};
use manypath_kernel::{Error, Request, engine};
use sha2::{Digest as _, Sha256};
use socket2::{Domain, Protocol, Socket, Type};

const PORT: u16 = 5000;

/// Whether this machine cannot run these tests, and why, printed. Where `tools/test.sh` lets nothing be skipped, that is a failure.
pub fn is_hindered() -> bool {
    is_skipped(obstacle())
}

/// The same of a program that a test needs besides.
pub fn lacks(program: &str) -> bool {
    let absent = Command::new(program).arg("-V").output().is_err();
    is_skipped(absent.then(|| format!("{program} is not installed")))
}

fn is_skipped(why: Option<String>) -> bool {
    if let Some(why) = why {
        assert!(std::env::var_os("MANYPATH_NO_SKIPS").is_none(), "skipped: {why}");
        println!("skipped: {why}");
        return true;
    }
    false
}

fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("loading BPF programs takes root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    match engine::status() {
        Err(error @ (Error::NoPrograms | Error::Unfit(_))) => Some(error.to_string()),
        _ => None,
    }
}

/// Two links of 50 Mbit/s and 20 ms.
pub fn two_links() -> TunLinks {
    links(["120KB", "120KB"], FAST, "", false)
}

/// Two links that hold as many packets, of which the first drops a window that grows for long and the second nothing. They are slow:
/// ten packets of queue are 24 ms, so that a machine that is away for some milliseconds does not fill it.
pub fn shallow_and_deep_link() -> TunLinks {
    links(["15KB", "4MB"], SLOW, "", false)
}

/// Two such links, of which the second is used only when the first is dead; the first has `more` in its table.
pub fn link_and_backup(more: &str) -> TunLinks {
    links(["120KB", "120KB"], FAST, more, true)
}

/// One link, described by its table.
pub fn one_link(table: &str) -> TunLinks {
    TunLinks::start(&separate(&[table])).unwrap()
}

/// A link of 50 Mbit/s and 20 ms, and the one described by the table.
pub fn fast_link_and(slow: &str) -> TunLinks {
    let fast = format!("{FAST}\nqueue = \"120KB\"");
    TunLinks::start(&separate(&[&fast, slow])).unwrap()
}

const FAST: &str = "rate = \"50Mbit\"\ndelay = \"10ms\"";
const SLOW: &str = "rate = \"5Mbit\"\ndelay = \"100ms\"";

fn links([first, second]: [&str; 2], speed: &str, more: &str, backup: bool) -> TunLinks {
    let first = format!("{speed}\nqueue = \"{first}\"\n{more}");
    let second = format!("{speed}\nqueue = \"{second}\"");
    let mut config = separate(&[&first, &second]);
    config.paths[1].backup = backup;
    TunLinks::start(&config).unwrap()
}

/// A path for each link, described by its table.
fn separate(tables: &[&str]) -> TunConfig {
    let links = (1..).zip(tables).map(|(at, table)| format!("[[link]]\nname = \"link{at}\"\n{table}\n"));
    let paths = (1..=tables.len()).map(|at| format!("[[connection.path]]\nroute = [\"link{at}\"]\n"));
    let (links, paths) = (links.collect::<String>(), paths.collect::<String>());
    let text = format!("duration = \"10s\"\n{links}[[connection]]\nname = \"c\"\ncc = \"reno\"\n{paths}");
    let scenario = manypath_scenario::parse(&text, "test.toml", Path::new(".")).unwrap();
    TunConfig::from_scenario(&scenario, 7).unwrap()
}

/// A controller in the kernel, unloaded when dropped.
pub struct Loaded {
    pub name: String,
}

impl Loaded {
    pub fn new(spec: &str) -> Self {
        Self::with(spec, |_| {})
    }

    /// With changes to what is asked for.
    pub fn with(spec: &str, change: impl FnOnce(&mut Request)) -> Self {
        let controllers = vec![spec.parse::<AlgorithmSpec>().unwrap()];
        let mut request = Request { controllers, name: Some(unique_name()), ..Request::default() };
        change(&mut request);
        let loaded = engine::load(&request).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(loaded.controllers.len(), 1);
        Self { name: loaded.controllers[0].clone() }
    }

    pub fn status(&self) -> Option<Controller> {
        engine::status().unwrap().into_iter().find(|controller| controller.kernel_name == self.name)
    }

    /// Its connection with a subflow from or to this local address.
    pub fn connection_at(&self, local: SocketAddr) -> Option<ConnectionStatus> {
        let connections = self.status()?.connections;
        connections.into_iter().find(|connection| connection.subflows.iter().any(|subflow| subflow.local == local))
    }

    /// A counter.
    pub fn counter(&self, name: &str) -> u64 {
        self.status().unwrap().counters[name]
    }

    pub fn pin(&self, map: &str) -> PathBuf {
        Path::new("/sys/fs/bpf/manypath").join(&self.name).join(map)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // A test may have unloaded it.
        let _ = engine::unload(std::slice::from_ref(&self.name));
    }
}

/// A name that no other test and no user has.
pub fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id() % 10_000_000, COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A Multipath TCP connection between the namespaces, under a controller at both ends.
pub struct Pair {
    pub client: Socket,
    pub server: Socket,
    /// Further subflows come in by the port that the first came in by, while it listens.
    _listener: Socket,
}

impl Pair {
    /// From the client's first address to the server's.
    pub fn connect(links: &TunLinks, controller: &str) -> Self {
        Self::of(links, controller, [Protocol::MPTCP; 2])
    }

    /// With sockets of these protocols at the client and at the server.
    pub fn of(links: &TunLinks, controller: &str, protocols: [Protocol; 2]) -> Self {
        let listener = open(links.server(), controller, protocols[1]);
        listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).unwrap();
        listener.listen(8).unwrap();
        let path = &links.paths()[0];
        let client = open(links.client(), controller, protocols[0]);
        client.bind(&SocketAddr::from((path.client, 0)).into()).unwrap();
        client.connect(&SocketAddr::from((path.server, PORT)).into()).unwrap();
        let server = listener.accept().unwrap().0;
        Self { client, server, _listener: listener }
    }

    /// Address and port of the client's and of the server's end.
    pub fn ends(&self) -> [SocketAddr; 2] {
        [&self.client, &self.server].map(|socket| socket.local_addr().unwrap().as_socket().unwrap())
    }

    /// Sends bytes from the client to the server (or back, if `down`) and compares their SHA-256.
    pub fn transfer(&self, bytes: usize, down: bool) {
        let (from, to) = if down { (&self.server, &self.client) } else { (&self.client, &self.server) };
        let data = pattern(bytes);
        let sent = Sha256::digest(&data);
        let mut received = vec![0; bytes];
        thread::scope(|scope| {
            scope.spawn(|| { from }.write_all(&data).unwrap());
            { to }.read_exact(&mut received).unwrap();
        });
        assert_eq!(Sha256::digest(&received), sent, "bytes changed on the way");
    }
}

/// A socket in a namespace that asks for a controller.
fn open(namespace: &Namespace, controller: &str, protocol: Protocol) -> Socket {
    let controller = controller.to_owned();
    namespace.run(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_tcp_congestion(controller.as_bytes()).unwrap();
        socket
    })
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31) + at / 251).to_le_bytes()[0]).collect()
}

/// Waits for what comes some time, and says what did not.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("did not come: {what}");
}
