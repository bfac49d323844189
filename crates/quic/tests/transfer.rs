//! Bytes over real sockets: both ways, many flows, ends and resets, bounded memory.

mod support;

use std::io::ErrorKind;
use std::time::Duration;

use manypath_core::{AlgorithmSpec, Bytes};
use manypath_link::QueueLimit;
use manypath_quic::{CloseReason, FlowError, TransportConfig};
use support::{pair, pair_over, paths_up, pattern, read_all, relay_of, transfer, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn bytes_cross_two_paths_both_ways() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let bytes = pattern(8 << 20, 1);
    let (there, back) = (&bytes[..], &bytes[..4 << 20]);
    tokio::join!(transfer(&pair.client, &pair.server_side, there), transfer(&pair.server_side, &pair.client, back));
    let stats = pair.client.stats();
    assert_eq!(stats.written, Bytes::new(8 << 20));
    assert_eq!(stats.received, Bytes::new(4 << 20));
    assert!(stats.paths.iter().all(|path| path.bytes_sent > Bytes::new(64 << 10)), "{stats:#?}");
    let by_paths: Bytes = stats.paths.iter().map(|path| path.bytes_received).sum();
    assert_eq!(by_paths, stats.received + stats.received_again);
    assert!(stats.paths.iter().map(|path| path.records_received).sum::<u64>() > 4 << 20 >> 11, "{stats:#?}");
}

#[tokio::test]
async fn losses_on_both_paths_cost_time_and_no_bytes() {
    let pair = pair(TransportConfig::default(), &[0.01, 0.01]).await;
    paths_up(&pair.client, 2).await;
    transfer(&pair.server_side, &pair.client, &pattern(8 << 20, 2)).await;
    let stats = pair.server_side.stats();
    assert!(stats.paths.iter().map(|path| path.records_lost).sum::<u64>() > 0, "{stats:#?}");
    assert!(!stats.retransmitted.is_zero(), "{stats:#?}");
}

#[tokio::test]
async fn flows_do_not_mix() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    let echo = tokio::spawn(async move {
        let mut echoes = tokio::task::JoinSet::new();
        while let Some((mut send, mut recv)) = pair.server_side.accept_flow().await {
            echoes.spawn(async move {
                tokio::io::copy(&mut recv, &mut send).await.unwrap();
                // Not `delivered`: the client closes as soon as it has everything, maybe before its acknowledgement is here.
                send.shutdown().await.unwrap();
            });
        }
        echoes.join_all().await;
    });
    let mut flows = tokio::task::JoinSet::new();
    // More than may be open at once.
    for index in 0..300 {
        let client = pair.client.clone();
        flows.spawn(async move {
            let bytes = pattern(usize::try_from(index * 631).unwrap(), index);
            let (mut send, mut recv) = client.open_flow().await.unwrap();
            let write = async {
                send.write_all(&bytes).await.unwrap();
                send.shutdown().await.unwrap();
            };
            let ((), echoed) = tokio::join!(write, read_all(&mut recv));
            assert!(echoed == bytes, "flow {index}: {} of {} bytes, or other ones", echoed.len(), bytes.len());
        });
    }
    within(flows.join_all()).await;
    pair.client.close(0, "");
    within(echo).await.unwrap();
}

#[tokio::test]
async fn one_direction_ends_before_the_other() {
    let pair = pair(TransportConfig::default(), &[0.0]).await;
    let (mut send, mut recv) = pair.client.open_flow().await.unwrap();
    send.write_all(b"question").await.unwrap();
    send.shutdown().await.unwrap();
    let (mut answer, mut question) = within(pair.server_side.accept_flow()).await.unwrap();
    assert_eq!(read_all(&mut question).await, b"question");
    answer.write_all(b"answer").await.unwrap();
    answer.shutdown().await.unwrap();
    assert_eq!(read_all(&mut recv).await, b"answer");
    assert_eq!(send.write_all(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_reset_reaches_the_reader_and_a_stop_the_writer() {
    let pair = pair(TransportConfig::default(), &[0.0]).await;
    let (mut send, mut recv) = pair.client.open_flow().await.unwrap();
    send.write_all(b"half a sen").await.unwrap();
    let (mut answer, mut question) = within(pair.server_side.accept_flow()).await.unwrap();
    within(question.read_exact(&mut [0; 10])).await.unwrap();
    send.reset(7);
    let error = within(question.read_u8()).await.unwrap_err();
    assert_eq!(error.get_ref().and_then(|error| error.downcast_ref()), Some(&FlowError::Reset { code: 7 }));
    recv.stop(9);
    let error = within(async {
        loop {
            if let Err(error) = answer.write_all(&[1; 1000]).await {
                return error;
            }
        }
    })
    .await;
    let flushed = within(answer.flush()).await.unwrap_err();
    for error in [error, flushed] {
        assert_eq!(error.get_ref().and_then(|error| error.downcast_ref()), Some(&FlowError::Stopped { code: 9 }));
    }
    // The connection lives on.
    transfer(&pair.client, &pair.server_side, b"next").await;
}

#[tokio::test]
async fn a_reader_that_stops_reading_bounds_memory_at_both_ends() {
    let (buffer, window) = (1 << 20, 512 << 10);
    let transport = TransportConfig {
        send_buffer: Bytes::new(buffer),
        receive_window: Bytes::new(window),
        flow_window: Bytes::new(window),
        ..TransportConfig::default()
    };
    let pair = pair(transport, &[0.0, 0.0]).await;
    let bytes = pattern(8 << 20, 3);
    let expected = bytes.clone();
    let (mut send, _recv) = pair.client.open_flow().await.unwrap();
    let writer = tokio::spawn(async move {
        send.write_all(&bytes).await.unwrap();
        send.shutdown().await.unwrap();
        send.delivered().await.unwrap();
    });
    let (_send, mut recv) = within(pair.server_side.accept_flow()).await.unwrap();
    // Until nothing moves any more.
    let mut written = Bytes::MAX;
    within(async {
        while pair.client.stats().written != written {
            written = pair.client.stats().written;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
    // Buffers are in chunks of 32 KiB, a few of them spare.
    let slack = 8 * (32 << 10);
    let (here, there) = (pair.client.stats(), pair.server_side.stats());
    assert!(here.written <= Bytes::new(buffer + window), "{here:#?}");
    assert!(here.send_memory <= Bytes::new(buffer + slack), "{here:#?}");
    assert!(there.receive_memory <= Bytes::new(window + slack), "{there:#?}");
    assert!(read_all(&mut recv).await == expected);
    within(writer).await.unwrap();
}

#[tokio::test]
async fn closing_tells_the_peer_and_ends_every_wait() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    paths_up(&pair.client, 2).await;
    let (_send, mut recv) = pair.client.open_flow().await.unwrap();
    let server_side = pair.server_side.clone();
    let accept = tokio::spawn(async move { server_side.accept_flow().await.is_none() });
    pair.server_side.close(42, "enough");
    let error = within(recv.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    let reason = within(pair.client.closed()).await;
    assert_eq!(reason, CloseReason::Peer { code: 42, reason: "enough".to_owned() });
    assert!(within(accept).await.unwrap());
    assert_eq!(within(pair.server_side.closed()).await, CloseReason::Local { code: 42 });
}

#[tokio::test]
async fn a_dropped_connection_delivers_what_was_finished() {
    let pair = pair(TransportConfig::default(), &[0.0, 0.0]).await;
    let bytes = pattern(1 << 20, 4);
    let (mut send, recv) = pair.client.open_flow().await.unwrap();
    send.write_all(&bytes).await.unwrap();
    send.shutdown().await.unwrap();
    drop((send, recv, pair.client));
    let (_send, mut recv) = within(pair.server_side.accept_flow()).await.unwrap();
    assert!(read_all(&mut recv).await == bytes);
    assert!(matches!(within(pair.server_side.closed()).await, CloseReason::Peer { code: 0, .. }));
}

#[tokio::test]
async fn shutting_the_server_down_tells_its_clients() {
    let pair = pair(TransportConfig::default(), &[0.0]).await;
    let ((), reason) = within(async { tokio::join!(pair.server.shutdown(), pair.client.closed()) }).await;
    assert_eq!(reason, CloseReason::Server("the server shut down".to_owned()));
    assert!(pair.server.accept().await.is_none());
}

#[tokio::test]
async fn only_packets_of_controllers_that_answer_marks_are_marked() {
    for cc in ["reno", "bbr"] {
        let transport = TransportConfig { cc: AlgorithmSpec::named(cc), ..TransportConfig::default() };
        let marking = |server: &_| vec![relay_of(server, |link| link.ecn_threshold = Some(QueueLimit::Packets(5)))];
        let pair = pair_over(transport, marking).await;
        let marks = || {
            let stats = pair.relays[0].stats().unwrap();
            (stats.forward.link.marked, stats.backward.link.marked)
        };
        // Both ends send data, and each is the other's receiver.
        let (bytes, before) = (pattern(4 << 20, 3), marks());
        tokio::join!(
            transfer(&pair.client, &pair.server_side, &bytes),
            transfer(&pair.server_side, &pair.client, &bytes)
        );
        let after = marks();
        let marked = (after.0 > before.0, after.1 > before.1);
        assert_eq!(marked, (cc == "reno", cc == "reno"), "{cc}: {before:?} {after:?}");
    }
}
