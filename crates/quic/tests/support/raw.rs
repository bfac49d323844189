//! A client that speaks the protocol by hand, byte by byte as `docs/protocol.md` says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use manypath_quic::Identity;
use noq::crypto::rustls::QuicClientConfig;
use noq::{Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use ring::hmac;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A certificate for "localhost" in files of its own, removed when dropped.
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let path = |kind: &str| std::env::temp_dir().join(format!("manypath-{}-{name}-{kind}.pem", std::process::id()));
        let files = Self { cert: path("cert"), key: path("key") };
        std::fs::write(&files.cert, certified.cert.pem()).unwrap();
        std::fs::write(&files.key, certified.signing_key.serialize_pem()).unwrap();
        files
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::Files { cert: self.cert.clone(), key: self.key.clone() }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.cert, &self.key] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// One QUIC connection to a server.
pub(crate) struct Raw {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
}

/// The QUIC and TLS handshake with this protocol's name.
pub(crate) async fn handshake(server: SocketAddr, files: &Files, alpn: &[u8]) -> Result<Connection, ConnectionError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let mut transport = noq::TransportConfig::default();
    transport.datagram_receive_buffer_size(Some(1 << 20));
    let mut config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(SocketAddr::from(super::LOOPBACK)).unwrap();
    endpoint.connect_with(config, server, "localhost").unwrap().await
}

impl Raw {
    pub(crate) async fn connect(server: SocketAddr, files: &Files) -> Self {
        let connection = handshake(server, files, b"manypath/1").await.unwrap();
        connection.handshake_confirmed().await.unwrap();
        let (send, recv) = connection.open_bi().await.unwrap();
        Self { connection, send, recv }
    }

    /// Sends a message: type, length, body.
    pub(crate) async fn tell(&mut self, kind: u8, body: &[u8]) {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        self.send.write_all(&[&[kind], &len[..], body].concat()).await.unwrap();
    }

    /// The next message's type and body.
    pub(crate) async fn hear(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 3];
        self.recv.read_exact(&mut head).await.unwrap();
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        self.recv.read_exact(&mut body).await.unwrap();
        (head[0], body)
    }

    /// Asks for a session.
    pub(crate) async fn ask(&mut self) {
        let window = (16_u64 << 20).to_be_bytes();
        let limits = [&window[..], &window, &256_u32.to_be_bytes(), &8_u32.to_be_bytes()].concat();
        self.tell(1, &[&[0, 1, 0, 0], &limits[..], &[0; 6]].concat()).await;
    }

    /// Opens a session; returns its id.
    pub(crate) async fn hello(&mut self) -> [u8; 16] {
        self.ask().await;
        let (kind, body) = self.hear().await;
        assert_eq!((kind, &body[..4], body.len()), (3, &[0, 1, 0, 0][..], 48));
        body[4..20].try_into().unwrap()
    }

    /// The secret of the session that this connection opened.
    pub(crate) fn secret(&self, session: &[u8; 16]) -> hmac::Key {
        let mut secret = [0; 32];
        self.connection.export_keying_material(&mut secret, b"EXPORTER-manypath-session", session).unwrap();
        hmac::Key::new(hmac::HMAC_SHA256, &secret)
    }

    /// A proof that is valid on this connection.
    pub(crate) fn proof(&self, who: &str, secret: &hmac::Key, session: &[u8; 16], nonce: &[u8; 16]) -> Vec<u8> {
        let mut binding = [0; 32];
        let context = [*session, *nonce].concat();
        self.connection.export_keying_material(&mut binding, b"EXPORTER-manypath-join", &context).unwrap();
        let message = [who.as_bytes(), session, nonce, &binding].concat();
        hmac::sign(secret, &message).as_ref().to_vec()
    }

    /// The code with which the server closes the connection.
    pub(crate) async fn closed_with(&self) -> u64 {
        match self.connection.closed().await {
            ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
            other => panic!("{other}"),
        }
    }
}
