//! The relay over real sockets. Nothing here asserts how long something took on the wall: the machine may be busy. What is compared
//! are counts, order and bits, and the relay's own clock with its own reports.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use manypath_core::{Bytes, Duration, Rate};
use manypath_emu::{DirectionName, DirectionStats, Relay, RelayConfig, RelayError, RelayStats};
use manypath_link::{Ecn, LinkConfig, Loss, QueueLimit};
use noq_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

/// So long that only a broken relay takes longer.
const PATIENCE: StdDuration = StdDuration::from_secs(20);

fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn link(mbps: f64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(1), QueueLimit::Bytes(Bytes::new(1 << 20)))
}

/// A target, a relay to it, and a client of the relay.
fn setup(forward: LinkConfig, backward: LinkConfig) -> (UdpSocket, Relay, UdpSocket) {
    let target = socket();
    let config = RelayConfig::new(local(), target.local_addr().unwrap(), forward, backward, 1);
    let relay = Relay::start(&config).unwrap();
    let client = socket();
    client.connect(relay.local_addr()).unwrap();
    (target, relay, client)
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 65_536];
    let (length, from) = socket.recv_from(&mut buffer).expect("a datagram comes through");
    (buffer[..length].to_vec(), from)
}

fn wait_for(relay: &Relay, what: &str, condition: impl Fn(&RelayStats) -> bool) -> RelayStats {
    let start = Instant::now();
    loop {
        let stats = relay.stats().unwrap();
        if condition(&stats) {
            return stats;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: {stats:?}");
        thread::sleep(StdDuration::from_millis(1));
    }
}

/// Everything that was read is accounted for.
fn check_books(stats: &DirectionStats) {
    let offered = stats.link.offered + stats.dropped_memory;
    let accepted = stats.link.delivered + stats.link.backlog;
    assert_eq!(offered, accepted + stats.link.dropped.total() + stats.dropped_memory);
    let ended = stats.sent.packets + stats.dropped_unsendable.packets + stats.held.packets;
    assert!(ended <= accepted.packets && ended + stats.dropped_down.packets >= accepted.packets, "{stats:?}");
    assert_eq!(stats.scheduling_error.count(), stats.sent.packets);
}

#[test]
fn datagrams_cross_both_ways_in_order_and_answers_find_their_client() {
    let (target, relay, first) = setup(link(100.0), link(100.0));
    let second = socket();
    second.connect(relay.local_addr()).unwrap();
    for number in 0..50u8 {
        first.send(&[1, number]).unwrap();
        second.send(&[2, number]).unwrap();
    }
    let mut senders = [Vec::new(), Vec::new()];
    let mut numbers = [Vec::new(), Vec::new()];
    for _ in 0..100 {
        let (datagram, from) = receive(&target);
        let who = usize::from(datagram[0]) - 1;
        senders[who].push(from);
        numbers[who].push(datagram[1]);
        target.send_to(&[datagram[0], datagram[1] + 100], from).unwrap();
    }
    for who in 0..2 {
        assert!(numbers[who].is_sorted() && numbers[who].len() == 50);
        assert!(senders[who].iter().all(|from| *from == senders[who][0]), "a client keeps its upstream socket");
    }
    assert_ne!(senders[0][0], senders[1][0]);
    for (socket, who) in [(&first, 1), (&second, 2)] {
        let answers: Vec<_> = (0..50).map(|_| receive(socket).0).collect();
        assert!(answers.iter().all(|answer| answer[0] == who) && answers.is_sorted());
    }
    let stats = relay.stop().unwrap();
    assert_eq!((stats.clients, stats.forward.sent.packets, stats.backward.sent.packets), (2, 100, 100));
    // Two bytes of payload and 28 of headers each.
    assert_eq!(stats.forward.sent.bytes, Bytes::new(100 * 30));
    check_books(&stats.forward);
    check_books(&stats.backward);
}

#[test]
fn empty_and_large_datagrams_cross_over_ipv6() {
    let Ok(target) = UdpSocket::bind("[::1]:0") else { return };
    target.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = RelayConfig::new("[::]:0".parse().unwrap(), target.local_addr().unwrap(), link(100.0), link(100.0), 1);
    let relay = Relay::start(&config).unwrap();
    let client = UdpSocket::bind("[::1]:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Connected, so the answer must come from the address that was asked, though the relay listens on all.
    client.connect((std::net::Ipv6Addr::LOCALHOST, relay.local_addr().port())).unwrap();
    let large = vec![5; 60_000];
    for payload in [&[][..], &large] {
        client.send(payload).unwrap();
        let (datagram, from) = receive(&target);
        assert_eq!(datagram, payload);
        target.send_to(payload, from).unwrap();
        assert_eq!(receive(&client).0, payload);
    }
    // 48 bytes of headers each.
    assert_eq!(relay.stats().unwrap().forward.sent.bytes, Bytes::new(60_000 + 2 * 48));
}

#[test]
fn the_given_rate_is_the_set_rate() {
    let queue = QueueLimit::Bytes(Bytes::new(100_000));
    let (target, relay, client) = setup(LinkConfig { queue, ..link(20.0) }, link(20.0));
    let drain = thread::spawn(move || while receive(&target).0.len() > 1 {});
    // 1.5 times the rate: 1228 wire bytes every 0.33 ms are 30 Mbit/s. Whatever the pace that the machine allows, the relay measures
    // over backlogged periods by its own clock.
    let start = Instant::now();
    let mut sent = 0u32;
    while start.elapsed() < StdDuration::from_secs(2) {
        if start.elapsed() >= sent * StdDuration::from_micros(327) {
            client.send(&[7; 1200]).unwrap();
            sent += 1;
        } else {
            thread::sleep(StdDuration::from_micros(200));
        }
    }
    wait_for(&relay, "the link empties", |stats| stats.forward.held.packets == 0);
    let stats = relay.stats().unwrap();
    let measured = stats.forward.measured;
    let rate = measured.rate().expect("it was overloaded for 2 s").as_mbps();
    // One percent is claimed for a relay that is on time. On a machine that takes the processor away, a period may begin or end late by
    // as much as any datagram was; more than a few of those the claim does not cover.
    let error = &stats.forward.scheduling_error;
    if error.quantile(0.99) <= Duration::from_micros(100) {
        let stalls = 4.0 * error.max().as_secs_f64() / measured.time.as_secs_f64();
        assert!((rate / 20.0 - 1.0).abs() < 0.01 + stalls, "{rate} Mbit/s, {:?}", stats.forward);
    }
    assert!(
        stats.forward.link.dropped.queue_full.packets > 0 && stats.forward.link.peak_backlog <= Bytes::new(100_000)
    );
    check_books(&stats.forward);
    // One byte ends the other side.
    client.send(&[0]).unwrap();
    drain.join().unwrap();
}

#[test]
fn losses_are_the_models_and_are_counted() {
    let (target, relay, client) = setup(LinkConfig { loss: Loss::Random(0.1), ..link(1000.0) }, link(1000.0));
    let done = Arc::new(AtomicBool::new(false));
    let reader = thread::spawn({
        let done = done.clone();
        target.set_read_timeout(Some(StdDuration::from_millis(20))).unwrap();
        move || {
            let (mut numbers, mut buffer) = (Vec::new(), [0; 4]);
            while !done.load(Ordering::Relaxed) {
                if target.recv(&mut buffer).is_ok() {
                    numbers.push(u32::from_be_bytes(buffer));
                }
            }
            numbers
        }
    });
    for number in 0..2000u32 {
        client.send(&number.to_be_bytes()).unwrap();
        if number % 50 == 0 {
            thread::sleep(StdDuration::from_millis(1));
        }
    }
    let offered = 2000;
    let stats = wait_for(&relay, "all are offered", |stats| {
        stats.forward.held.packets == 0
            && stats.forward.link.offered.packets + stats.kernel_drops.unwrap_or(0) == offered
    });
    let lost = stats.forward.link.dropped.random.packets;
    // 10% of 2000: sd 13.4; the seed is fixed, so this never flakes unless the kernel drops.
    assert!((146..=254).contains(&lost), "{lost}");
    assert_eq!(stats.forward.sent.packets + lost + stats.kernel_drops.unwrap_or(0), offered);
    done.store(true, Ordering::Relaxed);
    let received = reader.join().unwrap();
    assert!(received.is_sorted() && received.len() as u64 <= stats.forward.sent.packets);
}

/// Sends one datagram with ECN bits.
fn send_ecn(socket: &UdpSocket, to: SocketAddr, ecn: Ecn) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    let ecn = EcnCodepoint::from_bits(ecn.bits());
    let transmit = Transmit { destination: to, ecn, contents: &[9; 1000], segment_size: None, src_ip: None };
    state.try_send(socket.into(), &transmit).unwrap();
}

/// Receives one datagram with its ECN bits and sender; `socket` gives them once `UdpSocketState` was made for it.
fn receive_ecn(socket: &UdpSocket, state: &UdpSocketState) -> (Ecn, SocketAddr) {
    let mut buffer = vec![0; 1 << 16];
    let mut metas = [RecvMeta::default()];
    let start = Instant::now();
    loop {
        let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
        if state.recv(socket.into(), &mut slices, &mut metas).is_ok() {
            let ecn = metas[0].ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
            return (ecn, metas[0].addr);
        }
        assert!(start.elapsed() < PATIENCE, "a datagram comes through");
        thread::sleep(StdDuration::from_micros(200));
    }
}

#[test]
fn ecn_bits_are_kept_and_set() {
    let all = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    let (target, relay, client) = setup(link(100.0), link(100.0));
    let (at_target, at_client) =
        (UdpSocketState::new((&target).into()).unwrap(), UdpSocketState::new((&client).into()).unwrap());
    for ecn in all {
        send_ecn(&client, relay.local_addr(), ecn);
        let (arrived, from) = receive_ecn(&target, &at_target);
        assert_eq!(arrived, ecn, "forward");
        send_ecn(&target, from, ecn);
        assert_eq!(receive_ecn(&client, &at_client).0, ecn, "backward");
    }
    // 1028 bytes take 822 ms at 10 kbit/s, so the third finds two in the queue even on a slow machine.
    let slow = LinkConfig { ecn_threshold: Some(QueueLimit::Packets(1)), ..link(0.01) };
    let (target, relay, client) = setup(slow, link(1.0));
    let at_target = UdpSocketState::new((&target).into()).unwrap();
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct] {
        send_ecn(&client, relay.local_addr(), ecn);
    }
    let arrived: Vec<_> = (0..4).map(|_| receive_ecn(&target, &at_target).0).collect();
    assert_eq!(arrived, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct]);
    assert_eq!(relay.stop().unwrap().forward.link.marked, 1);
}

#[test]
fn a_cut_link_drops_everything_and_a_mended_one_nothing() {
    // A second of delay, so that what is sent before the cut is still on its way.
    let (target, relay, client) = setup(LinkConfig { delay: Duration::from_secs(1), ..link(100.0) }, link(100.0));
    client.send(b"on its way").unwrap();
    wait_for(&relay, "it is on the link", |stats| stats.forward.held.packets == 1);
    relay.set_down(true);
    assert!(relay.is_down());
    client.send(b"into the void").unwrap();
    wait_for(&relay, "both are dropped", |stats| stats.forward.dropped_down.packets == 2);
    relay.set_down(false);
    client.send(b"back").unwrap();
    assert_eq!(receive(&target).0, b"back");
    let stats = relay.stop().unwrap();
    assert_eq!((stats.forward.sent.packets, stats.forward.held.packets), (1, 0));
}

#[test]
fn memory_is_bounded_whatever_the_link() {
    let target = socket();
    // 10 s of delay at 1 Gbit/s would hold over a gigabyte; 64 KiB are given.
    let long = LinkConfig { delay: Duration::from_secs(10), ..link(1000.0) };
    let mut config = RelayConfig::new(local(), target.local_addr().unwrap(), long.clone(), long, 1);
    assert!(config.memory_limit <= manypath_emu::MEMORY_CEILING);
    config.memory_limit = Bytes::new(64 * 1024);
    let relay = Relay::start(&config).unwrap();
    let client = socket();
    client.connect(relay.local_addr()).unwrap();
    // 1000 + 128 bytes each: 58 fit.
    for _ in 0..100 {
        client.send(&[3; 1000]).unwrap();
    }
    let stats = wait_for(&relay, "all are read", |stats| stats.forward.dropped_memory.packets >= 42);
    assert_eq!((stats.forward.held.packets, stats.forward.dropped_memory.packets), (58, 42));
    check_books(&stats.forward);
}

#[test]
fn several_may_ask_at_once() {
    let relay = Arc::new(setup(link(100.0), link(100.0)).1);
    let (done, answers) = std::sync::mpsc::channel();
    for _ in 0..8 {
        let (relay, done) = (relay.clone(), done.clone());
        thread::spawn(move || done.send((0..500).all(|_| relay.stats().is_ok())));
    }
    for _ in 0..8 {
        // Nothing comes over the links that would wake the relay for an asker whose wake went with another's.
        assert!(answers.recv_timeout(PATIENCE).expect("each asker has its answers"));
    }
}

#[test]
fn clients_are_bounded() {
    let target = socket();
    let mut config = RelayConfig::new(local(), target.local_addr().unwrap(), link(100.0), link(100.0), 1);
    config.max_clients = 2;
    let relay = Relay::start(&config).unwrap();
    for _ in 0..3 {
        let client = socket();
        client.send_to(b"hello", relay.local_addr()).unwrap();
    }
    let stats =
        wait_for(&relay, "all three are seen", |stats| stats.refused.packets == 1 && stats.forward.sent.packets == 2);
    assert_eq!(stats.clients, 2);
}

#[test]
fn a_target_that_is_away_is_no_end() {
    let (target, relay, client) = setup(link(100.0), link(100.0));
    let address = target.local_addr().unwrap();
    drop(target);
    for _ in 0..3 {
        client.send(b"nobody there").unwrap();
        thread::sleep(StdDuration::from_millis(5));
    }
    wait_for(&relay, "they are gone", |stats| {
        stats.forward.link.offered.packets == 3 && stats.forward.held.packets == 0
    });
    let target = UdpSocket::bind(address).unwrap();
    target.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send(b"back").unwrap();
    assert_eq!(receive(&target).0, b"back");
    relay.stop().unwrap();
}

#[test]
fn a_relay_ends_cleanly_and_gives_its_port_back() {
    let (_target, relay, client) = setup(LinkConfig { delay: Duration::from_secs(60), ..link(100.0) }, link(100.0));
    let address = relay.local_addr();
    client.send(b"never arrives").unwrap();
    wait_for(&relay, "it is on the link", |stats| stats.forward.held.packets == 1);
    drop(relay);
    UdpSocket::bind(address).expect("the socket is closed");
}

#[test]
fn impossible_relays_are_refused() {
    let target = socket().local_addr().unwrap();
    let config = RelayConfig::new(local(), target, link(1.0), link(1.0), 1);
    let zero = LinkConfig::new(Rate::ZERO, Duration::ZERO, QueueLimit::Packets(1));
    let refused = |config| Relay::start(&config).unwrap_err();
    assert!(matches!(refused(RelayConfig { max_clients: 0, ..config.clone() }), RelayError::NoClients));
    assert!(matches!(
        refused(RelayConfig { backward: zero, ..config.clone() }),
        RelayError::Link { direction: DirectionName::Backward, .. }
    ));
    let taken = socket();
    let error = refused(RelayConfig { listen: taken.local_addr().unwrap(), ..config });
    assert!(error.to_string().starts_with("cannot open the relay's socket: "), "{error}");
}
