use std::net::SocketAddr;

use manypath_core::Bytes;
use manypath_quic::{Bind, ClientConfig, PathConfig, RecvFlow, SendFlow, Server, ServerConfig, Trust, connect};

use super::*;
use crate::files::wire::End;

/// However slow the machine is, nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// A client of a service, and a folder that it serves.
struct Client {
    service: Arc<Service>,
    connection: Connection,
    folder: tempfile::TempDir,
    _server: Server,
}

impl Client {
    /// With a window of ten kilobytes a flow.
    async fn new(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let service = Arc::new(Service::new(Some(Store::open(folder.path(), true).unwrap()), patience));
        let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let server = Server::bind(ServerConfig { listen, ..ServerConfig::default() }).await.unwrap();
        let mut config = ClientConfig::new(server.local_addrs()[0], Trust::Fingerprint(server.fingerprint()));
        config.paths = vec![PathConfig::new("lo", Bind::Any)];
        config.transport.flow_window = Bytes::new(10_000);
        let connection = connect(config).await.unwrap();
        tokio::spawn(Arc::clone(&service).serve(server.accept().await.unwrap()));
        Self { service, connection, folder, _server: server }
    }

    /// Waits until so many requests are being served.
    async fn served(&self, requests: usize) {
        let so = async {
            while self.service.requests.available_permits() != MAX_REQUESTS - requests {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, so).await.expect("not so many requests are served");
    }

    /// Sends a request, and reads the answer's first frame.
    async fn ask(&self, request: &Frame) -> (SendFlow, RecvFlow, Frame) {
        let (mut send, mut receive) = self.connection.open_flow().await.unwrap();
        wire::write(&mut send, request).await.unwrap();
        let answer = next(&mut receive).await.unwrap();
        (send, receive, answer)
    }
}

async fn next(receive: &mut RecvFlow) -> Result<Frame, ReadError> {
    tokio::time::timeout(LIMIT, wire::read(receive)).await.expect("nothing came")
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_given_up() {
    let client = Client::new(Duration::from_secs(1)).await;
    std::fs::write(client.folder.path().join("f"), vec![7; 1_000_000]).unwrap();
    let get = Frame::Get { path: "f".to_owned(), have: 0, hash: Hash([0; 32]), limit_ms: 0 };
    let (_send, mut receive, answer) = client.ask(&get).await;
    assert_eq!(answer, Frame::File { size: 1_000_000, from: 0 });
    assert_eq!(client.service.requests.available_permits(), MAX_REQUESTS - 1);
    client.served(0).await;
    // What was cut off does not end in order.
    let end = loop {
        if let Err(error) = next(&mut receive).await {
            break error;
        }
    };
    assert!(matches!(&end, ReadError::Flow(error) if error.kind() == io::ErrorKind::ConnectionReset), "{end}");
}

#[tokio::test]
async fn a_client_that_pauses_too_long_learns_why_it_is_refused() {
    let client = Client::new(Duration::from_secs(1)).await;
    let (mut send, mut receive, answer) = client.ask(&Frame::Put { path: "f".to_owned(), size: 10 }).await;
    assert!(matches!(answer, Frame::Have { length: 0, .. }), "{answer:?}");
    wire::write(&mut send, &Frame::From { from: 0 }).await.unwrap();
    wire::write_data(&mut send, b"hello").await.unwrap();
    let answer = next(&mut receive).await.unwrap();
    let Frame::Error { refusal: Refusal::BadRequest, message } = answer else { panic!("{answer:?}") };
    assert!(message.contains("nothing has arrived"), "{message}");
    assert_eq!(std::fs::read(client.folder.path().join("f.part")).unwrap(), b"hello");
}

#[tokio::test]
async fn a_client_may_take_the_time_to_hash_its_part() {
    let client = Client::new(Duration::from_millis(200)).await;
    let part = std::fs::File::create(client.folder.path().join("f.part")).unwrap();
    let size = 5 * SLOWEST_HASH;
    part.set_len(size).unwrap();
    let (mut send, mut receive, answer) = client.ask(&Frame::Put { path: "f".to_owned(), size }).await;
    let Frame::Have { length, hash } = answer else { panic!("{answer:?}") };
    assert_eq!(length, size);
    // Longer than the patience, and shorter than hashing takes a slow client.
    tokio::time::sleep(Duration::from_secs(1)).await;
    wire::write(&mut send, &Frame::From { from: size }).await.unwrap();
    wire::write(&mut send, &Frame::End(End { length: size, hash, retransmitted: 0 })).await.unwrap();
    assert_eq!(next(&mut receive).await.unwrap(), Frame::Done { length: size, hash });
}

#[tokio::test]
async fn what_a_client_that_has_left_asked_for_is_not_hashed() {
    let client = Client::new(PATIENCE).await;
    let size = 1 << 40; // hours
    for name in ["f", "g.part"] {
        std::fs::File::create(client.folder.path().join(name)).unwrap().set_len(size).unwrap();
    }
    let get = Frame::Get { path: "f".to_owned(), have: size, hash: Hash([0; 32]), limit_ms: 0 };
    let mut flows = Vec::new();
    for request in [get, Frame::Put { path: "g".to_owned(), size }] {
        let (mut send, receive) = client.connection.open_flow().await.unwrap();
        wire::write(&mut send, &request).await.unwrap();
        flows.push((send, receive));
    }
    client.served(2).await;
    client.connection.close(0, "");
    // That the threads have stopped is seen by the end of this test: its runtime waits for them.
    client.served(0).await;
}

#[tokio::test]
async fn a_client_that_leaves_before_it_sends_leaves_nothing() {
    let client = Client::new(PATIENCE).await;
    let (_send, _receive, answer) = client.ask(&Frame::Put { path: "f".to_owned(), size: 10 }).await;
    assert!(matches!(answer, Frame::Have { length: 0, .. }), "{answer:?}");
    client.connection.close(0, "");
    client.served(0).await;
    assert_eq!(std::fs::read_dir(client.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_large_part_may_take_long_to_hash() {
    // 10 GB at 150 MB/s take 67 s.
    assert!(time_to_hash(10_000_000_000) >= Duration::from_secs(67));
    assert_eq!(time_to_hash(0), Duration::ZERO);
    // No length that fits a frame overflows.
    assert!((PATIENCE + time_to_hash(u64::MAX)).as_secs() > 0);
}
