//! What a server and a client refuse, and that the error says why.

mod support;

use std::time::Duration;

use manypath_core::Duration as Span;
use manypath_quic::{
    BindError, ClientConfig, CloseReason, ConnectError, Fingerprint, PathError, Server, ServerConfig, TransportConfig,
    Trust, connect,
};
use support::raw::{Files, Raw, handshake};
use support::{client_config, paths_up, pattern, server, transfer, within};

async fn refusal(config: ClientConfig) -> PathError {
    match within(connect(config)).await {
        Err(ConnectError::Path { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_wrong_fingerprint() {
    let server = server(ServerConfig::default()).await;
    let expected = Fingerprint([7; 32]);
    let address = server.local_addrs()[0];
    let config = ClientConfig { trust: Trust::Fingerprint(expected), ..client_config(&server, &[address, address]) };
    let error = refusal(config).await;
    let PathError::WrongFingerprint { expected: e, presented: p, .. } = &error else { panic!("{error}") };
    assert_eq!((*e, *p), (expected, server.fingerprint()));
    assert!(error.to_string().contains(&server.fingerprint().to_string()), "{error}");
}

/// What is hopeless is so on every path: the other one comes up when the first has failed for good.
#[tokio::test]
async fn a_wrong_fingerprint_on_one_path() {
    let (right, wrong) = (server(ServerConfig::default()).await, listener(&Files::new("wrong"), b"manypath/1"));
    let late = support::relay(&right, 0.0);
    late.set_down(true);
    let config = client_config(&right, &[wrong.local_addr().unwrap(), late.local_addr()]);
    let later = async {
        assert!(wrong.accept().await.unwrap().await.is_err());
        late.set_down(false);
    };
    let (client, ()) = within(async { tokio::join!(connect(config), later) }).await;
    let paths = client.unwrap().stats().paths;
    assert!(paths[0].last_error.as_ref().is_some_and(|error| error.contains("shows the certificate")), "{paths:#?}");
}

#[tokio::test]
async fn another_congestion_controller() {
    for allow_choice in [true, false] {
        let server = server(ServerConfig { allow_choice, ..ServerConfig::default() }).await;
        let mut config = client_config(&server, &[server.local_addrs()[0]]);
        config.wish.cc = Some("bbr".parse().unwrap());
        let (client, session) = within(async { tokio::join!(connect(config), server.accept()) }).await;
        let (_client, session) = (client.unwrap(), session.unwrap());
        // The server's own, which is CUBIC, is clocked by acknowledgements.
        assert_eq!(session.stats().paths[0].pacing.is_some(), allow_choice);
    }
}

#[tokio::test]
async fn a_wrong_token_and_a_missing_one() {
    let server = server(ServerConfig { token: Some("open sesame".to_owned()), ..ServerConfig::default() }).await;
    let config = || client_config(&server, &[server.local_addrs()[0]]);
    for token in [None, Some(""), Some("open sesam"), Some("open sesame!")] {
        let error = refusal(ClientConfig { token: token.map(str::to_owned), ..config() }).await;
        assert!(matches!(error, PathError::WrongToken { .. }), "{token:?}: {error}");
    }
    within(connect(ClientConfig { token: Some("open sesame".to_owned()), ..config() })).await.unwrap();
}

#[tokio::test]
async fn a_certificate_of_another_authority_or_for_another_name() {
    let (files, others) = (Files::new("authority"), Files::new("others"));
    let server = server(ServerConfig { identity: files.identity(), ..ServerConfig::default() }).await;
    let config = |path: &Files, server_name: &str| ClientConfig {
        trust: Trust::CaFile { path: path.cert.clone(), server_name: server_name.to_owned() },
        ..client_config(&server, &[server.local_addrs()[0]])
    };
    within(connect(config(&files, "localhost"))).await.unwrap();
    for wrong in [config(&others, "localhost"), config(&files, "example.org")] {
        let error = refusal(wrong).await;
        assert!(matches!(error, PathError::Certificate { .. }), "{error}");
    }
}

#[tokio::test]
async fn another_version() {
    let files = Files::new("version");
    let server = server(ServerConfig { identity: files.identity(), ..ServerConfig::default() }).await;
    let error = handshake(server.local_addrs()[0], &files, b"manypath/2").await.unwrap_err();
    // TLS alert 120, no_application_protocol.
    assert!(error.to_string().contains("error 120"), "{error}");
    // By its own word, within the protocol.
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    raw.tell(1, &[&[0, 2][..], &[0; 32]].concat()).await;
    assert_eq!(within(raw.closed_with()).await, 0x02);
    let mut raw = Raw::connect(server.local_addrs()[0], &files).await;
    raw.tell(2, &[&[0, 2][..], &[0; 66]].concat()).await;
    assert_eq!(within(raw.closed_with()).await, 0x02);
}

/// A listener with this protocol's name that is made by hand.
fn listener(files: &Files, alpn: &[u8]) -> noq::Endpoint {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap().with_no_client_auth();
    let chain = rustls::pki_types::pem::PemObject::pem_file_iter(&files.cert).unwrap().map(Result::unwrap).collect();
    let key = rustls::pki_types::pem::PemObject::from_pem_file(&files.key).unwrap();
    let mut tls = builder.with_single_cert(chain, key).unwrap();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = noq::ServerConfig::with_crypto(std::sync::Arc::new(crypto));
    noq::Endpoint::server(config, std::net::SocketAddr::from(support::LOOPBACK)).unwrap()
}

#[tokio::test]
async fn a_server_that_speaks_something_else() {
    let endpoint = listener(&Files::new("something-else"), b"h3");
    let address = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let _ = incoming.await;
        }
    });
    let trust = Trust::Fingerprint(Fingerprint([0; 32]));
    let error = refusal(ClientConfig::new(address, trust)).await;
    assert!(matches!(error, PathError::Version { .. }), "{error}");
}

/// A server that answers HELLO with this version, and JOIN with a proof that is none. Tells the codes that clients close with.
async fn impostor(files: &Files, version: u8) -> (ClientConfig, tokio::sync::mpsc::UnboundedReceiver<u64>) {
    let endpoint = listener(files, b"manypath/1");
    let certificate: rustls::pki_types::CertificateDer<'_> =
        rustls::pki_types::pem::PemObject::from_pem_file(&files.cert).unwrap();
    let trust = Trust::Fingerprint(Fingerprint::of_certificate(&certificate));
    let config = ClientConfig::new(endpoint.local_addr().unwrap(), trust);
    let (told, codes) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let told = told.clone();
            tokio::spawn(async move {
                let connection = incoming.await.unwrap();
                let (mut send, mut recv) = connection.accept_bi().await.unwrap();
                let mut head = [0; 3];
                recv.read_exact(&mut head).await.unwrap();
                let windows = [&[0, 0, 0, 0, 1, 0, 0, 0][..], &[0, 0, 0, 0, 1, 0, 0, 0], &[0, 0, 1, 0]].concat();
                let answer = match head[0] {
                    1 => [&[3, 0, 48, 0, version, 0, 0], &[8; 16][..], &windows, &[0, 0, 0, 8, 0, 0, 0xff, 0]].concat(),
                    _ => [&[4, 0, 32][..], &[0; 32]].concat(),
                };
                send.write_all(&answer).await.unwrap();
                if let noq::ConnectionError::ApplicationClosed(close) = connection.closed().await {
                    let _ = told.send(close.error_code.into_inner());
                }
            });
        }
    });
    (config, codes)
}

#[tokio::test]
async fn a_server_of_another_version() {
    let (config, _) = impostor(&Files::new("newer"), 2).await;
    let error = refusal(config).await;
    assert!(matches!(error, PathError::Version { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_cannot_prove_that_the_session_is_its_own() {
    let (mut config, mut codes) = impostor(&Files::new("impostor"), 1).await;
    let path = |name: &str| manypath_quic::PathConfig::new(name, manypath_quic::Bind::Any);
    config.paths = ["one", "other"].map(path).to_vec();
    let client = within(connect(config)).await.unwrap();
    assert_eq!(within(codes.recv()).await, Some(0x06));
    within(async {
        while !client.stats().paths.iter().any(|path| {
            path.last_error.as_ref().is_some_and(|error| error.contains("its proof of the session is wrong"))
        }) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(client.stats().paths.iter().filter(|path| path.id.is_some()).count(), 1);
}

#[tokio::test]
async fn nobody_at_the_address() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = ClientConfig {
        connect_timeout: Span::from_millis(500),
        ..ClientConfig::new(silent.local_addr().unwrap(), Trust::Fingerprint(Fingerprint([0; 32])))
    };
    let error = within(connect(config)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
}

#[tokio::test]
async fn more_sessions_than_allowed() {
    let server = server(ServerConfig { max_sessions: 1, ..ServerConfig::default() }).await;
    let config = || client_config(&server, &[server.local_addrs()[0]]);
    let first = within(connect(config())).await.unwrap();
    let hurried = ClientConfig { connect_timeout: Span::from_secs(3), ..config() };
    let begun = std::time::Instant::now();
    let error = within(connect(hurried)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("is full: the server has as many sessions as it takes"), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    // Who has more time comes in when there is room.
    let leaving = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        first.close(0, "");
    };
    let (second, ()) = within(async { tokio::join!(connect(config()), leaving) }).await;
    assert_eq!(second.unwrap().stats().paths[0].last_error, None);
}

/// Sessions that came and went while nobody accepted are let go of, those that are open are not.
#[tokio::test]
async fn sessions_that_nobody_accepts() {
    let server = server(ServerConfig { max_sessions: 2, ..ServerConfig::default() }).await;
    let config = || client_config(&server, &[server.local_addrs()[0]]);
    let open = within(connect(config())).await.unwrap();
    for _ in 0..5 {
        let brief = within(connect(config())).await.unwrap();
        brief.close(0, "");
        within(brief.closed()).await;
    }
    let accepted = within(server.accept()).await.unwrap();
    transfer(&open, &accepted, &pattern(10_000, 1)).await;
    let mut waiting = 0;
    while let Ok(over) = tokio::time::timeout(Duration::from_millis(300), server.accept()).await {
        let reason = within(over.unwrap().closed()).await;
        assert!(matches!(reason, CloseReason::Peer { code: 0, .. }), "{reason}");
        waiting += 1;
    }
    assert!((1..=2).contains(&waiting), "{waiting}");
}

/// From another address a client comes in, and from this one when the strangers' time is up.
#[tokio::test]
async fn strangers_at_one_address_keep_nobody_else_out() {
    let files = Files::new("strangers");
    let config = ServerConfig {
        identity: files.identity(),
        max_half_open: 8,
        handshake_timeout: Span::from_secs(4),
        ..ServerConfig::default()
    };
    let server = server(config).await;
    let address = server.local_addrs()[0];
    let mut strangers = Vec::new();
    while let Ok(stranger) = handshake(address, &files, b"manypath/1").await {
        strangers.push(stranger);
        assert!(strangers.len() <= 2, "more than a quarter of the places");
    }
    assert_eq!(strangers.len(), 2);
    let from = |last: u8| {
        let mut config = client_config(&server, &[address]);
        config.paths[0].bind = manypath_quic::Bind::Address([127, 0, 0, last].into());
        config
    };
    within(connect(from(2))).await.unwrap();
    assert!(strangers.iter().all(|stranger| stranger.close_reason().is_none()), "too slow to tell");
    within(connect(from(1))).await.unwrap();
}

#[tokio::test]
async fn more_paths_than_allowed() {
    let server = server(ServerConfig { max_paths_per_session: 2, ..ServerConfig::default() }).await;
    let address = server.local_addrs()[0];
    let config = client_config(&server, &[address, address, address]);
    let (client, server_side) = within(async { tokio::join!(connect(config), server.accept()) }).await;
    let (client, server_side) = (client.unwrap(), server_side.unwrap());
    paths_up(&client, 2).await;
    within(async {
        while !client.stats().paths.iter().any(|path| path.last_error.is_some()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(server_side.stats().paths.len(), 2);
    transfer(&client, &server_side, &pattern(1 << 20, 1)).await;
}

#[tokio::test]
async fn a_session_that_lasts_too_long() {
    let config = ServerConfig { session_lifetime: Span::from_secs(1), ..ServerConfig::default() };
    let server = server(config).await;
    let client = within(connect(client_config(&server, &[server.local_addrs()[0]]))).await.unwrap();
    let reason = within(client.closed()).await;
    assert!(matches!(reason, manypath_quic::CloseReason::Server(_)), "{reason}");
}

#[tokio::test]
async fn settings_that_make_no_sense() {
    let server = server(ServerConfig::default()).await;
    let address = server.local_addrs()[0];
    let mut config = client_config(&server, &[address, address]);
    config.paths[1].name = config.paths[0].name.clone();
    assert!(matches!(connect(config).await, Err(ConnectError::DuplicateName(_))));
    let transport = TransportConfig { cc: "warp".parse().unwrap(), ..TransportConfig::default() };
    let config = ClientConfig { transport: transport.clone(), ..client_config(&server, &[address]) };
    assert!(matches!(connect(config).await, Err(ConnectError::Algorithm(_))));
    let error = Server::bind(ServerConfig { transport, ..ServerConfig::default() }).await.unwrap_err();
    assert!(matches!(error, BindError::Algorithm(_)), "{error}");
    let error = Server::bind(ServerConfig { listen: vec![address], ..ServerConfig::default() }).await.unwrap_err();
    assert!(matches!(error, BindError::Socket { .. }), "{error}");
    let mut config = client_config(&server, &[address]);
    config.paths[0].bind = manypath_quic::Bind::Interface("no-such-if0".to_owned());
    config.connect_timeout = Span::from_millis(500);
    let error = connect(config).await.unwrap_err();
    assert!(error.to_string().contains("no-such-if0"), "{error}");
}
