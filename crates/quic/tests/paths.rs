//! Paths that die, come back, are added and removed.

mod support;

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use manypath_core::Bytes;
use manypath_quic::{
    Bind, ClientConfig, Connection, PathChangeError, PathConfig, PathState, Server, ServerConfig, TransportConfig,
};
use support::{Pair, pair, paths_up, pattern, relay, transfer, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes a path has carried from the client.
fn carried(connection: &Connection, path: usize) -> Bytes {
    connection.stats().paths[path].bytes_sent
}

/// Sends the bytes while `meanwhile` goes on, which is told the number of bytes read so far.
async fn transfer_while<F: Future<Output = ()>>(
    pair: &Pair,
    bytes: &[u8],
    meanwhile: impl FnOnce(tokio::sync::watch::Receiver<usize>) -> F,
) {
    let (progress, seen) = tokio::sync::watch::channel(0);
    let (mut send, _recv) = pair.client.open_flow().await.unwrap();
    let write = async {
        send.write_all(bytes).await.unwrap();
        send.shutdown().await.unwrap();
    };
    let read = async {
        let (_send, mut recv) = pair.server_side.accept_flow().await.unwrap();
        let mut received = Vec::new();
        while recv.read_buf(&mut received).await.unwrap() > 0 {
            progress.send_replace(received.len());
        }
        assert!(received == bytes, "{} of {} bytes, or other ones", received.len(), bytes.len());
    };
    within(async { tokio::join!(write, read, meanwhile(seen)) }).await;
}

/// Waits until more than this was read.
async fn passed(seen: &mut tokio::sync::watch::Receiver<usize>, bytes: usize) {
    seen.wait_for(|read| *read > bytes).await.unwrap();
}

#[tokio::test]
async fn a_path_dies_in_mid_transfer_and_comes_back() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let bytes = pattern(96 << 20, 5);
    let (client, relays) = (pair.client.clone(), &pair.relays);
    transfer_while(&pair, &bytes, |mut seen| async move {
        passed(&mut seen, 8 << 20).await;
        relays[0].set_down(true);
        while client.stats().paths[0].state != PathState::Failed {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The other one goes on alone.
        let here = *seen.borrow();
        passed(&mut seen, here + (8 << 20)).await;
        relays[0].set_down(false);
        while client.stats().paths[0].state != PathState::Active {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let before = carried(&client, 0);
        while carried(&client, 0) < before + Bytes::new(1 << 20) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_path_that_stays_silent_is_given_a_new_connection() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let path = || pair.client.stats().paths[0].clone();
    let carry = async |seed| transfer(&pair.client, &pair.server_side, &pattern(2 << 20, seed)).await;
    carry(21).await;
    pair.relays[0].set_down(true);
    // Its end learns of the silence by what it sends.
    within(async {
        while path().state != PathState::Failed {
            carry(22).await;
        }
        while path().state != PathState::Connecting {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // The old one is gone; the new one may get its port again.
    assert_eq!((path().id, path().local), (None, None));
    // The other path does not mind.
    carry(23).await;
    pair.relays[0].set_down(false);
    paths_up(&pair.client, 2).await;
    let back = path();
    within(async {
        while path().bytes_sent == back.bytes_sent {
            carry(24).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_transfer_goes_on_after_all_paths_were_down() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let bytes = pattern(16 << 20, 6);
    let relays = &pair.relays;
    transfer_while(&pair, &bytes, |mut seen| async move {
        passed(&mut seen, 2 << 20).await;
        relays.iter().for_each(|relay| relay.set_down(true));
        tokio::time::sleep(Duration::from_secs(3)).await;
        relays.iter().for_each(|relay| relay.set_down(false));
    })
    .await;
}

#[tokio::test]
async fn the_session_opens_on_the_path_that_works() {
    let server = support::server(manypath_quic::ServerConfig::default()).await;
    let (dead, alive) = (relay(&server, 0.0), relay(&server, 0.0));
    dead.set_down(true);
    let config = support::client_config(&server, &[dead.local_addr(), alive.local_addr()]);
    let (client, server_side) = within(async { tokio::join!(manypath_quic::connect(config), server.accept()) }).await;
    let (client, server_side) = (client.unwrap(), server_side.unwrap());
    transfer(&client, &server_side, &pattern(1 << 20, 7)).await;
    assert_eq!(client.stats().paths[0].state, PathState::Connecting);
    dead.set_down(false);
    paths_up(&client, 2).await;
    transfer(&client, &server_side, &pattern(1 << 20, 8)).await;
}

#[tokio::test]
async fn a_connection_given_up_before_it_is_there_is_not_opened_later() {
    let server = support::server(manypath_quic::ServerConfig::default()).await;
    let relay = relay(&server, 0.0);
    relay.set_down(true);
    let config = || support::client_config(&server, &[relay.local_addr()]);
    // By now it has sent its first packet, and would send it again.
    let given_up = tokio::time::timeout(Duration::from_millis(300), manypath_quic::connect(config()));
    assert!(given_up.await.is_err());
    relay.set_down(false);
    assert!(tokio::time::timeout(Duration::from_secs(3), server.accept()).await.is_err());
    let (client, server_side) = within(async { tokio::join!(manypath_quic::connect(config()), server.accept()) }).await;
    transfer(&client.unwrap(), &server_side.unwrap(), &pattern(1 << 20, 25)).await;
}

#[tokio::test]
async fn the_server_hears_of_a_connection_given_up_while_it_opened() {
    let server = support::server(manypath_quic::ServerConfig::default()).await;
    let slow = support::relay_of(&server, |link| link.delay = manypath_core::Duration::from_millis(50));
    // Over the slow one the client has no answer yet when the server has the session, else it is chance.
    for through in [slow.local_addr(), server.local_addrs()[0]].into_iter().cycle().take(20) {
        let config = support::client_config(&server, &[through]);
        let given_up = async {
            tokio::select! {
                biased;
                session = server.accept() => session.unwrap(),
                client = manypath_quic::connect(config) => {
                    drop(client.unwrap());
                    server.accept().await.unwrap()
                }
            }
        };
        let session = within(given_up).await;
        let reason = within(session.closed()).await;
        assert!(matches!(reason, manypath_quic::CloseReason::Peer { code: 0, .. }), "{reason}");
    }
}

/// A router between a client and this server, which takes another port for it whenever it is told to, as after a restart or an idle
/// time. Who does not know the new port is not let in.
async fn nat(server: SocketAddr, mut forget: tokio::sync::mpsc::Receiver<()>) -> SocketAddr {
    let inside = tokio::net::UdpSocket::bind(SocketAddr::from(support::LOOPBACK)).await.unwrap();
    let address = inside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut out, mut back, mut client) = ([0; 2048], [0; 2048], address);
        // The port before is held until there is the next: it is another.
        let mut outside;
        loop {
            outside = tokio::net::UdpSocket::bind(SocketAddr::from(support::LOOPBACK)).await.unwrap();
            loop {
                tokio::select! {
                    Ok((len, from)) = inside.recv_from(&mut out) => {
                        client = from;
                        let _ = outside.send_to(&out[..len], server).await;
                    }
                    Ok(len) = outside.recv(&mut back) => drop(inside.send_to(&back[..len], client).await),
                    told = forget.recv() => match told {
                        Some(()) => break,
                        None => return,
                    },
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_path_goes_on_from_the_port_that_a_router_gives_it_next() {
    let server = support::server(ServerConfig::default()).await;
    let (forget, told) = tokio::sync::mpsc::channel(1);
    let router = nat(server.local_addrs()[0], told).await;
    let config = support::client_config(&server, &[router]);
    let (client, server_side) = within(async { tokio::join!(manypath_quic::connect(config), server.accept()) }).await;
    let (client, server_side) = (client.unwrap(), server_side.unwrap());
    let (first, mut remote) = (client.stats().paths[0].clone(), server_side.stats().paths[0].remote);
    // Up and down, in turn.
    let mut pair = Pair { client: client.clone(), server_side: server_side.clone(), server, relays: Vec::new() };
    for seed in 30..34 {
        let forget = &forget;
        transfer_while(&pair, &pattern(16 << 20, seed), |mut seen| async move {
            passed(&mut seen, 4 << 20).await;
            forget.send(()).await.unwrap();
        })
        .await;
        std::mem::swap(&mut pair.client, &mut pair.server_side);
        let moved = server_side.stats().paths[0].remote;
        assert_ne!(moved, std::mem::replace(&mut remote, moved));
    }
    // By the same carrier.
    let path = client.stats().paths[0].clone();
    assert_eq!((path.id, path.local, path.last_error), (first.id, first.local, None));
}

#[tokio::test]
async fn paths_may_be_of_both_address_families_or_of_ipv6_alone() {
    let listen = vec![support::LOOPBACK.into(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    let server = match Server::bind(ServerConfig { listen, ..ServerConfig::default() }).await {
        Ok(server) => server,
        Err(error) => {
            assert!(std::env::var_os("MANYPATH_NO_SKIPS").is_none(), "skipped: {error}");
            return eprintln!("skipped: {error}");
        }
    };
    let addresses = server.local_addrs();
    assert!(addresses[0].is_ipv4() && addresses[1].is_ipv6(), "{addresses:?}");
    for through in [&addresses[..], &addresses[1..]] {
        let config = ClientConfig { server: through[0], ..support::client_config(&server, through) };
        let (client, server_side) =
            within(async { tokio::join!(manypath_quic::connect(config), server.accept()) }).await;
        let (client, server_side) = (client.unwrap(), server_side.unwrap());
        paths_up(&client, through.len()).await;
        // Until each has carried something.
        within(async {
            while client.stats().paths.iter().any(|path| path.bytes_sent.is_zero()) {
                transfer(&client, &server_side, &pattern(1 << 20, 26)).await;
            }
        })
        .await;
        let remotes: Vec<SocketAddr> = client.stats().paths.iter().map(|path| path.remote).collect();
        assert_eq!(remotes, through);
    }
}

#[tokio::test]
async fn a_session_without_any_path_resumes_when_one_joins() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let bytes = pattern(16 << 20, 9);
    let (client, other) = (pair.client.clone(), pair.relays[1].local_addr());
    transfer_while(&pair, &bytes, |mut seen| async move {
        passed(&mut seen, 2 << 20).await;
        client.remove_path("path0").unwrap();
        client.remove_path("path1").unwrap();
        assert!(client.stats().paths.iter().all(|path| path.state == PathState::Removed));
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.add_path(PathConfig { remote: Some(other), ..PathConfig::new("again", Bind::Any) }).unwrap();
    })
    .await;
}

#[tokio::test]
async fn paths_are_added_and_removed_by_name() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let path = |name: &str| PathConfig { cost: 2.5, ..PathConfig::new(name, Bind::Any) };
    assert_eq!(pair.client.add_path(path("path1")), Err(PathChangeError::DuplicateName("path1".to_owned())));
    assert_eq!(pair.client.remove_path("path7"), Err(PathChangeError::UnknownName("path7".to_owned())));
    assert_eq!(pair.server_side.add_path(path("x")), Err(PathChangeError::NotClient));
    pair.client.add_path(path("direct")).unwrap();
    paths_up(&pair.client, 3).await;
    // The server hears of the cost.
    within(async {
        while !pair.server_side.stats().paths.iter().any(|path| (path.cost - 2.5).abs() < 1e-9) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    pair.client.remove_path("path0").unwrap();
    within(async {
        while pair.server_side.stats().paths.len() != 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    transfer(&pair.client, &pair.server_side, &pattern(1 << 20, 10)).await;
}

#[tokio::test]
async fn what_a_path_carried_is_known_when_it_is_gone_and_counts_on_when_it_is_back() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let carry = async |seed| transfer(&pair.client, &pair.server_side, &pattern(2 << 20, seed)).await;
    carry(11).await;
    let (before, relay) = (pair.client.stats().paths[0].clone(), pair.relays[0].local_addr());
    assert!(before.bytes_sent > Bytes::ZERO && before.records_sent > 0);
    pair.client.remove_path("path0").unwrap();
    carry(12).await;
    let gone = pair.client.stats().paths;
    assert_eq!(gone.iter().map(|path| path.name.as_str()).collect::<Vec<_>>(), ["path0", "path1"]);
    assert_eq!((gone[0].state, gone[0].id, gone[0].srtt), (PathState::Removed, None, None));
    assert_eq!((gone[0].bytes_sent, gone[0].records_sent), (before.bytes_sent, before.records_sent));
    assert_eq!(pair.client.remove_path("path0"), Err(PathChangeError::UnknownName("path0".to_owned())));

    pair.client.add_path(PathConfig { remote: Some(relay), ..PathConfig::new("path0", Bind::Any) }).unwrap();
    paths_up(&pair.client, 2).await;
    let back = pair.client.stats().paths;
    assert_eq!((back.len(), back[0].state), (2, PathState::Active));
    assert_eq!(back[0].bytes_sent, before.bytes_sent);
    carry(13).await;
    let stats = pair.client.stats();
    let after = stats.paths;
    assert!(after[0].bytes_sent > before.bytes_sent);
    assert_eq!(after[0].bytes_sent + after[1].bytes_sent, Bytes::new(3 * (2 << 20)) + stats.retransmitted);

    pair.client.close(0, "");
    within(pair.client.closed()).await;
    let closed = pair.client.stats().paths;
    assert_eq!((closed[0].bytes_sent, closed[1].bytes_sent), (after[0].bytes_sent, after[1].bytes_sent));
}

#[tokio::test]
async fn a_session_ends_when_it_has_no_path_for_too_long() {
    let transport = TransportConfig { linger: manypath_core::Duration::from_millis(300), ..TransportConfig::default() };
    let pair = pair(transport, &[0.0]).await;
    pair.client.remove_path("path0").unwrap();
    let (client, server) = within(async { tokio::join!(pair.client.closed(), pair.server_side.closed()) }).await;
    assert!(matches!(client, manypath_quic::CloseReason::NoPath { .. }), "{client}");
    assert!(matches!(server, manypath_quic::CloseReason::NoPath { .. }), "{server}");
}

#[tokio::test]
async fn a_session_that_has_a_path_left_does_not_end() {
    let linger = manypath_core::Duration::from_millis(300);
    let pair = pair(TransportConfig { linger, ..TransportConfig::default() }, &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    pair.client.remove_path("path0").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    transfer(&pair.client, &pair.server_side, &pattern(1 << 20, 14)).await;
}

#[tokio::test]
async fn a_path_that_has_failed_makes_room_for_another() {
    let server = support::server(manypath_quic::ServerConfig {
        max_paths_per_session: 2,
        ..manypath_quic::ServerConfig::default()
    })
    .await;
    // Alike, so that both carry data and their ends learn of silence by it.
    let (good, lame) = (relay(&server, 0.0), relay(&server, 0.0));
    let config = support::client_config(&server, &[good.local_addr()]);
    let (client, server_side) = within(async { tokio::join!(manypath_quic::connect(config), server.accept()) }).await;
    let (client, server_side) = (client.unwrap(), server_side.unwrap());
    let path = |name: &str, remote| PathConfig { remote: Some(remote), ..PathConfig::new(name, Bind::Any) };
    client.add_path(path("lame", lame.local_addr())).unwrap();
    paths_up(&client, 2).await;
    let kept = server_side.stats().paths[0].name.clone();
    lame.set_down(true);
    // Until both ends know.
    within(async {
        let fails = |connection: &Connection| connection.stats().paths[1].state != PathState::Active;
        while !fails(&client) || !fails(&server_side) {
            transfer(&client, &server_side, &pattern(4 << 20, 15)).await;
            transfer(&server_side, &client, &pattern(4 << 20, 16)).await;
        }
    })
    .await;
    let carried = carried(&client, 1);
    client.add_path(path("new", good.local_addr())).unwrap();
    paths_up(&client, 2).await;
    within(async {
        while client.stats().paths[2].id.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let stats = client.stats();
    assert_eq!((stats.paths[1].id, stats.paths[1].bytes_sent), (None, carried));
    transfer(&client, &server_side, &pattern(1 << 20, 17)).await;
    let paths = server_side.stats().paths;
    assert_eq!((paths.len(), &paths[0].name), (2, &kept), "{paths:#?}");
}
