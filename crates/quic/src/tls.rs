//! TLS 1.3 settings of both ends.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, KeyLogFile, RootCertStore, SignatureScheme};

use crate::error::{PathError, TlsError};
use crate::identity::{Credentials, Fingerprint};
use crate::message::{printable, readable};

/// The protocol and its version (RFC 7301).
pub(crate) const ALPN: &str = "manypath/1";

/// The name in the client's hello when a fingerprint is pinned: names mean nothing then.
const PINNED_NAME: &str = "manypath.invalid";

/// How a server proves to a client who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its certificate is exactly this one; names and dates do not matter.
    Fingerprint(Fingerprint),
    /// Its certificate is issued, directly or through a chain, by one of the authorities in a PEM file.
    CaFile {
        /// The file.
        path: PathBuf,
        /// The name the certificate must be for.
        server_name: String,
    },
}

/// Whether a certificate is of this key. What cannot be used at all is refused later, with the reason.
pub(crate) fn belong_together(chain: &[CertificateDer<'static>], key: &PrivateKeyDer<'static>) -> bool {
    let pair = CertifiedKey::from_der(chain.to_vec(), key.clone_key(), &provider::default_provider());
    !matches!(pair, Err(rustls::Error::InconsistentKeys(_)))
}

/// What a client needs to dial, and what it learns when a certificate is refused.
#[derive(Clone)]
pub(crate) struct ClientTls {
    pub(crate) crypto: Arc<QuicClientConfig>,
    pub(crate) server_name: String,
    pinned: Option<Arc<Pinned>>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientTls for {}", self.server_name)
    }
}

/// The settings of a server with these credentials.
pub(crate) fn server(credentials: Credentials) -> Result<QuicServerConfig, TlsError> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(credentials.chain, credentials.key)?;
    config.alpn_protocols = vec![ALPN.as_bytes().to_vec()];
    // Sessions are not resumed: every carrier has keys of its own, and 0-RTT could be replayed.
    config.send_tls13_tickets = 0;
    config.key_log = Arc::new(KeyLogFile::new());
    QuicServerConfig::try_from(config).map_err(|error| TlsError::Refused(rustls::Error::General(error.to_string())))
}

/// The settings of a client with this trust.
pub(crate) fn client(trust: &Trust) -> Result<ClientTls, TlsError> {
    let provider = Arc::new(provider::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let (mut config, server_name, pinned) = match trust {
        Trust::Fingerprint(fingerprint) => {
            let pinned = Arc::new(Pinned::new(*fingerprint, &provider));
            let verifier: Arc<dyn ServerCertVerifier> = Arc::clone(&pinned) as _;
            let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
            (config, PINNED_NAME.to_owned(), Some(pinned))
        }
        Trust::CaFile { path, server_name } => {
            ServerName::try_from(server_name.as_str()).map_err(|_| TlsError::ServerName(server_name.clone()))?;
            let mut roots = RootCertStore::empty();
            for certificate in read_certificates(path)? {
                roots.add(certificate)?;
            }
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            (builder.with_webpki_verifier(verifier).with_no_client_auth(), server_name.clone(), None)
        }
    };
    config.alpn_protocols = vec![ALPN.as_bytes().to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.key_log = Arc::new(KeyLogFile::new());
    let crypto = QuicClientConfig::try_from(config)
        .map_err(|error| TlsError::Refused(rustls::Error::General(error.to_string())))?;
    Ok(ClientTls { crypto: Arc::new(crypto), server_name, pinned })
}

impl ClientTls {
    /// Why a server was refused, given how the connection failed; `None` if it was not for TLS.
    pub(crate) fn refusal(&self, remote: SocketAddr, error: &noq::ConnectionError) -> Option<PathError> {
        let (code, reason) = match error {
            noq::ConnectionError::TransportError(error) => (error.code, printable(&error.reason)),
            noq::ConnectionError::ConnectionClosed(close) => (close.error_code, readable(&close.reason)),
            _ => return None,
        };
        // RFC 9001 s4.8: TLS alerts are 0x100 and the alert's number.
        let alert = u64::from(code).checked_sub(0x100).filter(|alert| *alert < 0x100)?;
        if alert == u64::from(u8::from(rustls::AlertDescription::NoApplicationProtocol)) {
            return Some(PathError::Version { remote, ours: ALPN });
        }
        if let Some(pinned) = &self.pinned
            && let Some(presented) = pinned.presented().filter(|presented| *presented != pinned.expected)
        {
            return Some(PathError::WrongFingerprint { remote, expected: pinned.expected, presented });
        }
        Some(PathError::Certificate { remote, reason })
    }
}

/// Reads the certificates of a PEM file.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })?;
    let none = || TlsError::Pem { path: path.to_owned(), what: "certificate" };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| none())?;
    if chain.is_empty() { Err(none()) } else { Ok(chain) }
}

/// Reads the private key of a PEM file.
pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let pem = std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| TlsError::Pem { path: path.to_owned(), what: "private key" })
}

/// Accepts one certificate. The handshake's signature is checked as always: showing a certificate is not owning it.
#[derive(Debug)]
struct Pinned {
    expected: Fingerprint,
    /// What the server showed last, for the error message.
    presented: Mutex<Option<Fingerprint>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(expected: Fingerprint, provider: &CryptoProvider) -> Self {
        Self { expected, presented: Mutex::new(None), algorithms: provider.signature_verification_algorithms }
    }

    fn presented(&self) -> Option<Fingerprint> {
        *self.presented.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Fingerprint::of_certificate(end_entity);
        *self.presented.lock().unwrap_or_else(PoisonError::into_inner) = Some(presented);
        if presented == self.expected {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
