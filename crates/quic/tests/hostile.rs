//! Peers and strangers that do not follow the protocol.

mod support;

use std::net::UdpSocket;

use bytes::Bytes;
use manypath_core::Duration as Span;
use manypath_quic::{CloseReason, Connection, Server, ServerConfig, connect};
use support::raw::{Files, Raw, handshake};
use support::{LOOPBACK, client_config, pattern, server, transfer, within};

async fn file_server(name: &str) -> (Files, Server) {
    let files = Files::new(name);
    let server =
        server(ServerConfig { identity: files.identity(), max_half_open: 64, ..ServerConfig::default() }).await;
    (files, server)
}

/// That the server serves on.
async fn check_alive(server: &Server) {
    let config = client_config(server, &[server.local_addrs()[0]]);
    let (client, server_side) = within(async { tokio::join!(connect(config), server.accept()) }).await;
    transfer(&client.unwrap(), &server_side.unwrap(), &pattern(100_000, 1)).await;
}

/// Opens a session by hand.
async fn session(server: &Server, files: &Files) -> (Raw, [u8; 16], Connection) {
    let mut raw = Raw::connect(server.local_addrs()[0], files).await;
    let id = within(raw.hello()).await;
    (raw, id, within(server.accept()).await.unwrap())
}

#[tokio::test]
async fn a_session_whose_client_hears_no_welcome_ends() {
    let files = Files::new("welcome");
    let server = server(ServerConfig { identity: files.identity(), max_sessions: 1, ..ServerConfig::default() }).await;
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    raw.recv.stop(0_u32.into()).unwrap();
    raw.ask().await;
    assert_eq!(within(raw.closed_with()).await, 0x08);
    // As soon as it is over.
    within(async {
        while connect(client_config(&server, &[server.local_addrs()[0]])).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_replayed_join_is_refused() {
    let (files, server) = file_server("replay").await;
    let (first, id, _session) = session(&server, &files).await;
    let (secret, nonce) = (first.secret(&id), [9; 16]);
    let mut second = Raw::connect(server.local_addrs()[0], &files).await;
    let join = [&[0, 1, 0, 0][..], &id, &nonce, &second.proof("client", &secret, &id, &nonce)].concat();
    second.tell(2, &join).await;
    let (kind, proof) = within(second.hear()).await;
    assert_eq!((kind, proof), (4, second.proof("server", &secret, &id, &nonce)));
    // The very same bytes on another connection.
    let mut third = Raw::connect(server.local_addrs()[0], &files).await;
    third.tell(2, &join).await;
    assert_eq!(within(third.closed_with()).await, 0x06);
    // And of a session that is not there.
    let mut fourth = Raw::connect(server.local_addrs()[0], &files).await;
    let join = [&[0, 1, 0, 0][..], &[8; 16], &nonce, &[0; 32]].concat();
    fourth.tell(2, &join).await;
    assert_eq!(within(fourth.closed_with()).await, 0x05);
    assert!(first.connection.close_reason().is_none() && second.connection.close_reason().is_none());
    check_alive(&server).await;
}

#[tokio::test]
async fn malformed_records_end_the_session_and_nothing_else() {
    let (files, server) = file_server("records").await;
    let u64s = |values: &[u64]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let far = (1_u64 << 61).to_be_bytes();
    let cases: [(Vec<u8>, u64); 8] = [
        (vec![], 0x09),
        (vec![0x01], 0x09),
        (vec![0x01, 0, 0, 0, 0, 0], 0x09),
        // DATA far beyond the window, and beyond 2^62.
        ([&[0x01, 0][..], &[0; 8], &far, &[0; 8], b"x"].concat(), 0x10),
        ([&[0x01, 0][..], &[0; 8], &[0xff; 8], &[0; 8], b"x"].concat(), 0x09),
        // Data on a flow that only the server opens.
        ([&[0x01, 0, 0, 0, 0, 1][..], &[0; 20], b"x"].concat(), 0x14),
        // Acknowledges what was never sent.
        ([&[0x04, 0][..], &u64s(&[1 << 20, 1 << 30])].concat(), 0x15),
        // Seventeen ranges.
        ([&[0x04, 17][..], &[0; 300]].concat(), 0x09),
    ];
    for (record, code) in cases {
        let (raw, _, session) = session(&server, &files).await;
        raw.connection.send_datagram(Bytes::from(record.clone())).unwrap();
        assert_eq!(within(raw.closed_with()).await, code, "{record:02x?}");
        assert!(matches!(within(session.closed()).await, CloseReason::Protocol(_)));
    }
    check_alive(&server).await;
}

#[tokio::test]
async fn random_records_do_not_panic_and_unknown_ones_are_ignored() {
    let (files, server) = file_server("random-records").await;
    let mut random = pattern(1 << 20, 77).into_iter();
    for _ in 0..40 {
        let (raw, _, _session) = session(&server, &files).await;
        for _ in 0..50 {
            let mut record: Vec<u8> = random.by_ref().take(60).collect();
            record[0] %= 14;
            record.truncate(2 + usize::from(record[1]) % 58);
            if raw.connection.send_datagram(Bytes::from(record)).is_err() {
                break;
            }
        }
    }
    let (raw, _, session) = session(&server, &files).await;
    raw.connection.send_datagram(Bytes::from_static(&[0x7f, 1, 2, 3])).unwrap();
    // PING with an unknown flag is answered all the same.
    raw.connection.send_datagram(Bytes::from_static(&[0x0b, 0x80, 1, 2, 3, 4])).unwrap();
    within(async {
        loop {
            let record = raw.connection.read_datagram().await.unwrap();
            if record[..] == [0x0c, 0, 1, 2, 3, 4] {
                break;
            }
        }
    })
    .await;
    assert_eq!(session.stats().paths.len(), 1);
    check_alive(&server).await;
}

#[tokio::test]
async fn malformed_messages_end_the_connection() {
    let (files, server) = file_server("messages").await;
    let cases: [(u8, Vec<u8>); 6] = [
        (1, vec![]),
        (1, vec![0, 1, 0]),
        (2, vec![0, 1, 0, 0, 1]),
        (3, vec![0; 48]),
        // A token longer than the message.
        (1, [&[0, 1, 0, 0][..], &[0; 24], &[0xff, 0xff], b"abc"].concat()),
        // A window beyond 2^62.
        (1, [&[0, 1, 0, 0][..], &[0xff; 24], &[0, 0]].concat()),
    ];
    for (kind, body) in cases {
        let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
        raw.tell(kind, &body).await;
        assert_eq!(within(raw.closed_with()).await, 0x08, "{kind} {body:02x?}");
    }
    // One that is too long is not waited for.
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    raw.send.write_all(&[99, 0x10, 0x01]).await.unwrap();
    assert_eq!(within(raw.closed_with()).await, 0x08);
    // Unknown messages are skipped.
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    raw.tell(99, b"later").await;
    within(raw.hello()).await;
    let _session = within(server.accept()).await.unwrap();
    // But not a second HELLO.
    raw.tell(1, &[0; 30]).await;
    assert_eq!(within(raw.closed_with()).await, 0x08);
    check_alive(&server).await;
}

#[tokio::test]
async fn who_neither_opens_nor_joins_must_go() {
    let files = Files::new("half-open");
    let handshake_timeout = Span::from_secs(2);
    let server =
        server(ServerConfig { identity: files.identity(), handshake_timeout, ..ServerConfig::default() }).await;
    let idle = Raw::connect(server.local_addrs()[0], &files).await;
    assert_eq!(within(idle.closed_with()).await, 0x07);
    check_alive(&server).await;
}

/// They would be kept until it does, 8 MiB for each connection.
#[tokio::test]
async fn who_sends_records_before_it_opens_or_joins_must_go() {
    let (files, server) = file_server("early").await;
    let stranger = handshake(server.local_addrs()[0], &files, b"manypath/1").await.unwrap();
    stranger.send_datagram(vec![0; 100].into()).unwrap();
    let close = within(stranger.closed()).await;
    assert!(close.to_string().contains("before HELLO or JOIN"), "{close}");
    check_alive(&server).await;
}

/// What a future is worth now.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn there_is_credit_for_the_control_stream_and_for_nothing_else() {
    let (files, server) = file_server("credit").await;
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    // The handshake has told what may be opened and sent.
    assert!(now(raw.connection.open_bi()).await.is_none());
    assert!(now(raw.connection.open_uni()).await.is_none());
    assert_eq!(within(raw.send.write(&[0; 1 << 20])).await.unwrap(), 16 << 10);
}

#[tokio::test]
async fn a_close_is_told_on_the_control_stream_and_heard_there() {
    let (files, server) = file_server("close").await;
    let (mut raw, _, told) = session(&server, &files).await;
    told.close(7, "bye");
    assert_eq!(within(raw.hear()).await, (5, b"\0\0\0\x07bye".to_vec()));
    assert_eq!(within(raw.closed_with()).await, (1 << 32) + 7);
    assert_eq!(within(told.closed()).await, CloseReason::Local { code: 7 });

    let (mut raw, _, heard) = session(&server, &files).await;
    raw.tell(5, b"\0\0\0\x09adieu").await;
    assert_eq!(within(heard.closed()).await, CloseReason::Peer { code: 9, reason: "adieu".to_owned() });
    assert_eq!(within(raw.closed_with()).await, 0);

    // The message may be lost with its carrier's last packets: the code alone says it, too.
    let (raw, _, heard) = session(&server, &files).await;
    raw.connection.close(noq::VarInt::from_u64((1 << 32) + 11).unwrap(), b"ciao");
    assert_eq!(within(heard.closed()).await, CloseReason::Peer { code: 11, reason: "ciao".to_owned() });
}

#[tokio::test]
async fn random_datagrams_to_the_port_change_nothing() {
    let (_files, server) = file_server("datagrams").await;
    let address = server.local_addrs()[0];
    let config = client_config(&server, &[address]);
    let (client, server_side) = within(async { tokio::join!(connect(config), server.accept()) }).await;
    let (client, server_side) = (client.unwrap(), server_side.unwrap());
    let stranger = std::thread::spawn(move || {
        let socket = UdpSocket::bind(std::net::SocketAddr::from(LOOPBACK)).unwrap();
        let random = pattern(1 << 20, 99);
        for start in 0..2000 {
            let len = usize::from(random[start]) * 5;
            let mut datagram = random[start..start + len].to_vec();
            // Long headers of QUIC v1, as often as not.
            if let [first, version @ ..] = &mut datagram[..]
                && version.len() > 4
                && start % 2 == 0
            {
                *first |= 0xc0;
                version[..4].copy_from_slice(&[0, 0, 0, 1]);
            }
            let _ = socket.send_to(&datagram, address);
        }
    });
    transfer(&client, &server_side, &pattern(4 << 20, 2)).await;
    stranger.join().unwrap();
    transfer(&client, &server_side, &pattern(1 << 20, 3)).await;
}
