//! A panic on the network thread ends sessions with an error: nobody waits for ever. These panics are made here, by tracers.

mod support;

use std::sync::Arc;

use manypath_quic::{CloseReason, Connection, ServerConfig, Traced, Tracer, TracerSource, TransportConfig, connect};
use support::{client_config, server, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Panics at a scheduler's first decision.
#[derive(Debug)]
struct Faulty;

impl Tracer for Faulty {
    fn on_decision(&mut self, _: &Traced) {
        panic!("made by the test");
    }
}

impl TracerSource for Faulty {
    fn tracer(&self) -> Box<dyn Tracer> {
        Box::new(Self)
    }
}

fn faulty() -> TransportConfig {
    TransportConfig { tracers: Some(Arc::new(Faulty)), ..TransportConfig::default() }
}

async fn write(connection: &Connection) {
    let (mut send, mut recv) = connection.open_flow().await.unwrap();
    send.write_all(b"question").await.unwrap();
    // Waits for an answer that nobody gives.
    let error = within(recv.read_u8()).await.unwrap_err();
    assert!(error.to_string().contains("a defect"), "{error}");
}

fn is_defect(reason: &CloseReason) -> bool {
    matches!(reason, CloseReason::Defect(what) if what == "made by the test")
}

#[tokio::test]
async fn of_a_client() {
    let server = server(ServerConfig::default()).await;
    let mut config = client_config(&server, &server.local_addrs());
    config.transport = faulty();
    let client = within(connect(config)).await.unwrap();
    write(&client).await;
    let reason = within(client.closed()).await;
    assert!(is_defect(&reason), "{reason}");
    assert!(client.open_flow().await.is_err());
    client.close(0, "");
    let _ = client.stats();
    within(server.shutdown()).await;
}

#[tokio::test]
async fn of_a_server() {
    let server = server(ServerConfig { transport: faulty(), ..ServerConfig::default() }).await;
    let config = client_config(&server, &server.local_addrs());
    let (client, session) = within(async { tokio::join!(connect(config), server.accept()) }).await;
    let (client, session) = (client.unwrap(), session.unwrap());
    write(&session).await;
    let reason = within(session.closed()).await;
    assert!(is_defect(&reason), "{reason}");
    assert!(within(server.accept()).await.is_none());
    within(server.shutdown()).await;
    drop((client, session));
}
