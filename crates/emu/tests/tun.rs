//! Links between namespaces. These tests need root, /dev/net/tun and a kernel with Multipath TCP; without them they say that
//! they are skipped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manypath_emu::tun::{RouteStats, TunConfig, TunError, TunLinks};
use socket2::{Domain, Protocol, Socket, Type};

const PORT: u16 = 5000;

fn config(links: &str, paths: &[&str]) -> TunConfig {
    let path = |route: &&str| format!("[[connection.path]]\nroute = [{route}]\n");
    let paths: String = paths.iter().map(path).collect();
    let text = format!("duration = \"10s\"\n{links}\n[[connection]]\nname = \"c\"\ncc = \"reno\"\n{paths}");
    let scenario = manypath_scenario::parse(&text, "test.toml", Path::new(".")).unwrap();
    TunConfig::from_scenario(&scenario, 7).unwrap()
}

/// Two links of 100 Mbit/s.
fn two_links() -> TunConfig {
    config("topology = \"two-links\"", &["\"link1\"", "\"link2\""])
}

/// `None`, and why on standard error, where the system does not let us.
fn start(config: &TunConfig) -> Option<TunLinks> {
    match TunLinks::start(config) {
        Ok(links) => Some(links),
        Err(error @ (TunError::NotPermitted { .. } | TunError::NoTun { .. } | TunError::NoMptcp)) => {
            assert!(std::env::var_os("MANYPATH_NO_SKIPS").is_none(), "skipped: {error}");
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Serves one connection: reads to its end and returns what came.
fn sink(links: &TunLinks, protocol: Protocol) -> JoinHandle<Vec<u8>> {
    let listener = links.server().run(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).unwrap();
        socket.listen(8).unwrap();
        TcpListener::from(socket)
    });
    thread::spawn(move || {
        let mut data = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut data).unwrap();
        data
    })
}

fn connect(links: &TunLinks, protocol: Protocol, from: Ipv4Addr, to: Ipv4Addr) -> TcpStream {
    links.client().run(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&SocketAddr::from((to, PORT)).into()).unwrap();
        socket.into()
    })
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect()
}

/// Nothing is counted twice or lost from the books.
fn balanced(route: &RouteStats, lost_on_links: u64) {
    let dropped = route.dropped_down.packets
        + route.dropped_memory.packets
        + route.dropped_malformed.packets
        + route.dropped_refused.packets;
    assert_eq!(route.entered.packets, route.delivered.packets + route.held.packets + dropped + lost_on_links);
    assert_eq!(route.kernel_drops, Some(0));
}

#[test]
fn a_source_address_leaves_by_its_own_path() {
    let Some(links) = start(&two_links()) else { return };
    let [first, second] = links.paths() else { panic!("two paths") };
    let (first, second) = (first.clone(), second.clone());
    // From the second path's address to the first path's server: the way of an MPTCP subflow.
    let server = sink(&links, Protocol::TCP);
    let mut stream = connect(&links, Protocol::TCP, second.client, first.server);
    let sent = bytes(300_000);
    stream.write_all(&sent).unwrap();
    drop(stream);
    assert_eq!(server.join().unwrap(), sent);
    let stats = links.stop().unwrap();
    assert_eq!(stats.paths[0].forward.entered.packets + stats.paths[0].backward.entered.packets, 0);
    assert!(stats.paths[1].forward.delivered.bytes.get() > 300_000);
    assert!(stats.paths[1].backward.delivered.packets > 0);
    for path in &stats.paths {
        balanced(&path.forward, 0);
        balanced(&path.backward, 0);
    }
}

#[test]
fn an_mptcp_connection_has_one_subflow_a_path() {
    let Some(links) = start(&config("topology = \"two-links\"", &["\"link1\"", "\"link2\"", "\"link1\""])) else {
        return;
    };
    let server = sink(&links, Protocol::MPTCP);
    let (from, to) = (links.paths()[0].client, links.paths()[0].server);
    let mut stream = connect(&links, Protocol::MPTCP, from, to);
    let sent = bytes(8_000_000);
    stream.write_all(&sent).unwrap();
    // Each subflow is a TCP socket; number 01 is "established" (linux/tcp_states.h).
    let established = || {
        let table = links.client().run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap());
        table.lines().skip(1).filter(|line| line.split_ascii_whitespace().nth(3) == Some("01")).count()
    };
    // The last to join may do so after all is written.
    let written = Instant::now();
    while established() < 3 && written.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(established(), 3);
    drop(stream);
    assert_eq!(server.join().unwrap(), sent);
    let stats = links.stop().unwrap();
    assert!(stats.paths.iter().all(|path| path.forward.delivered.packets > 10), "{stats:?}");
    // The first and the third path are one link.
    let shared = stats.paths[0].forward.entered.packets + stats.paths[2].forward.entered.packets;
    assert_eq!(stats.links[0].counters.offered.packets, shared);
}

#[test]
fn packets_of_any_size_fill_a_queue_in_bytes() {
    let link = "[[link]]\nname = \"a\"\nrate = \"100Mbit\"\ndelay = \"1ms\"\nqueue = \"1MB\"\nback = { queue = \"10kB\" }\n\
                schedule = [{ at = \"500ms\", rate = \"100kbit\" }]\n";
    let Some(links) = start(&config(link, &["\"a\""])) else { return };
    let to = SocketAddr::from((links.paths()[0].server, 9));
    let socket = links.client().run(|| std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    let send = |count: usize, payload: usize| {
        // What the other side says of the port is an error of the next packet.
        (0..count).for_each(|_| drop(socket.send_to(&bytes(payload), to)));
    };
    // Large packets first, whose buffers are used again; 900 kB, so that they fit even if all come at once.
    send(600, 1472);
    thread::sleep(std::time::Duration::from_millis(600));
    // 21,000 small ones fill it; a device that is read late drops some before.
    for _ in 0..100 {
        send(1_000, 20);
        thread::sleep(std::time::Duration::from_millis(2));
        if links.stats().unwrap().links[0].counters.dropped.queue_full.packets > 0 {
            break;
        }
    }
    let stats = links.stop().unwrap();
    let queue = &stats.links[0].counters;
    assert_eq!(stats.paths[0].forward.dropped_memory.packets, 0);
    assert!(queue.dropped.queue_full.packets > 0, "{queue:?}");
    assert!(queue.peak_backlog.get() > 999_900, "{queue:?}");
}

#[test]
fn sources_and_values_drawn_anew_load_the_links_as_in_the_simulator() {
    let source = "[[source]]\nname = \"s\"\nroute = [\"link1\"]\nrate = \"12Mbit\"\n";
    let redraw = "[[link]]\nname = \"link1\"\nredraw = { every = \"50ms\", loss = { between = [\"10%\", \"20%\"] } }\n";
    let config = config(&format!("topology = \"two-links\"\n{redraw}{source}"), &["\"link1\"", "\"link2\""]);
    let Some(links) = start(&config) else { return };
    thread::sleep(std::time::Duration::from_secs(1));
    let stats = links.stop().unwrap();
    // A packet every millisecond from the start on; the last ones may not have been caught up with, longer so on a busy machine.
    let (sent, gone) = (stats.links[0].counters.offered.packets, stats.uptime.as_millis());
    assert!(sent <= gone + 1 && sent + 300 >= gone, "{sent} packets in {gone} ms");
    // Of some 1000 packets 15% are lost: between 2% and 40% is beyond ten standard deviations.
    let lost = stats.links[0].counters.dropped.random.packets;
    assert!((sent / 50..sent * 2 / 5).contains(&lost), "{lost} of {sent}");
    assert_eq!(stats.links[2].counters.offered.packets, 0);
}

#[test]
fn without_mptcp_there_are_no_endpoints() {
    let mut plain = two_links();
    plain.mptcp = false;
    let Some(links) = start(&plain) else { return };
    let server = sink(&links, Protocol::MPTCP);
    let mut stream = connect(&links, Protocol::MPTCP, links.paths()[0].client, links.paths()[0].server);
    stream.write_all(&bytes(1_000_000)).unwrap();
    drop(stream);
    assert_eq!(server.join().unwrap().len(), 1_000_000);
    assert_eq!(links.stop().unwrap().paths[1].forward.entered.packets, 0);
}

#[test]
fn a_program_in_a_namespace_dies_with_it() {
    let Some(links) = start(&two_links()) else { return };
    let mut sleeper = Command::new("sleep");
    sleeper.arg("1000").stdin(Stdio::null());
    let mut child = links.client().spawn(sleeper).unwrap();
    let path = format!("/proc/{}/ns/net", child.id());
    assert_eq!(std::fs::read_link(path).unwrap(), std::fs::read_link(links.client().path()).unwrap());
    assert_ne!(std::fs::read_link(links.server().path()).unwrap(), std::fs::read_link(links.client().path()).unwrap());
    drop(links);
    assert!(!child.wait().unwrap().success());
}
