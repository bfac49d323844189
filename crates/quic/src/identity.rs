//! Who a server is: its certificate and key, from files or made here, and the fingerprint that clients pin.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::TlsError;
use crate::tls;

/// File names of a self-signed certificate and its key in their directory.
const CERT_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";

/// Where a server's certificate comes from.
#[derive(Clone, Debug)]
pub enum Identity {
    /// PEM files, for a certificate issued by an authority.
    Files {
        /// The certificate chain, the server's own first.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// Made on first start and kept in this directory; clients pin its fingerprint.
    SelfSigned {
        /// The directory; the key file is readable by its owner only.
        dir: PathBuf,
    },
    /// Made on every start and kept nowhere, for tests and demonstrations.
    Ephemeral,
}

/// SHA-256 of a certificate (DER); written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// A text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a fingerprint: 64 hexadecimal digits are needed, as the server prints them")]
pub struct ParseFingerprintError {
    text: String,
}

impl Fingerprint {
    /// The fingerprint of a certificate.
    pub fn of_certificate(der: &[u8]) -> Self {
        let mut digest = [0; 32];
        digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, der).as_ref());
        Self(digest)
    }
}

/// A certificate chain and its key.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// Whether they were made on this machine, and so are no other's.
    pub(crate) is_own: bool,
}

impl Credentials {
    /// What clients pin.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_certificate(self.chain.first().map_or(&[], |certificate| certificate.as_ref()))
    }
}

impl Identity {
    /// Reads or makes the certificate and its key.
    pub(crate) fn load(&self) -> Result<Credentials, TlsError> {
        match self {
            Self::Files { cert, key } => from_files(cert, key),
            Self::SelfSigned { dir } => kept(dir),
            Self::Ephemeral => {
                let certified = rcgen::generate_simple_self_signed(Vec::new())?;
                let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
                Ok(Credentials { chain: vec![certified.cert.into()], key: key.into(), is_own: true })
            }
        }
    }
}

/// The pair in a folder, made if it is not there.
fn kept(dir: &Path) -> Result<Credentials, TlsError> {
    let (cert, key) = (dir.join(CERT_FILE), dir.join(KEY_FILE));
    let within = |source| TlsError::File { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(within)?;
    // Another server may start in the same folder at this moment.
    let held = File::open(dir).map_err(within)?;
    held.lock().map_err(within)?;
    if !cert.exists() || !key.exists() {
        let (cert_pem, key_pem) = generate()?;
        // An old certificate would be used with the new key if this process ended between the two.
        if cert.exists() {
            fs::remove_file(&cert).map_err(within)?;
        }
        write_new(&key, key_pem.as_bytes())?;
        write_new(&cert, cert_pem.as_bytes())?;
    }
    let found = from_files(&cert, &key)?;
    if !tls::belong_together(&found.chain, &found.key) {
        return Err(TlsError::Mismatch { cert, key });
    }
    Ok(Credentials { is_own: true, ..found })
}

fn from_files(cert: &Path, key: &Path) -> Result<Credentials, TlsError> {
    Ok(Credentials { chain: tls::read_certificates(cert)?, key: tls::read_key(key)?, is_own: false })
}

/// A self-signed certificate and its key, as PEM.
fn generate() -> Result<(String, String), rcgen::Error> {
    let certified = rcgen::generate_simple_self_signed(Vec::new())?;
    Ok((certified.cert.pem(), certified.signing_key.serialize_pem()))
}

/// Writes a file that only its owner may read, under a temporary name first: a half-written key is never found.
fn write_new(path: &Path, content: &[u8]) -> Result<(), TlsError> {
    let temporary = path.with_extension("new");
    let write = || -> io::Result<()> {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| TlsError::File { path: path.to_owned(), source })
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let error = || ParseFingerprintError { text: text.to_owned() };
        let digits: Option<Vec<u8>> =
            text.trim().chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(error)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_fingerprint_prints_back_the_same() {
        let fingerprint = Fingerprint::of_certificate(b"certificate");
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(format!(" {fingerprint}\n").parse(), Ok(fingerprint));
        for text in ["", "12", "zz", &"g".repeat(64), &"0".repeat(63), &"ä".repeat(32)] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }

    #[test]
    fn servers_that_start_at_once_in_one_folder_have_one_identity() {
        let dir = std::env::temp_dir().join(format!("manypath-identities-{}", std::process::id()));
        let identity = Identity::SelfSigned { dir: dir.clone() };
        for _ in 0..4 {
            let fingerprints: Vec<_> = std::thread::scope(|scope| {
                let started: Vec<_> = (0..8).map(|_| scope.spawn(|| identity.load().unwrap().fingerprint())).collect();
                started.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(fingerprints.iter().all(|one| *one == fingerprints[0]), "{fingerprints:?}");
            fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn a_certificate_with_a_wrong_key_is_named() {
        let dir = std::env::temp_dir().join(format!("manypath-mismatch-{}", std::process::id()));
        let identity = Identity::SelfSigned { dir: dir.clone() };
        let first = identity.load().unwrap().fingerprint();
        fs::write(dir.join(KEY_FILE), generate().unwrap().1).unwrap();
        let error = identity.load().unwrap_err();
        assert!(matches!(&error, TlsError::Mismatch { key, .. } if *key == dir.join(KEY_FILE)), "{error}");
        // Without its key, the certificate goes, too.
        fs::remove_file(dir.join(KEY_FILE)).unwrap();
        assert_ne!(identity.load().unwrap().fingerprint(), first);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_self_signed_identity_is_kept_and_its_key_is_private() {
        let dir = std::env::temp_dir().join(format!("manypath-identity-{}", std::process::id()));
        let identity = Identity::SelfSigned { dir: dir.clone() };
        // Left by a server that was killed as it wrote its key.
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("key.new"), "half a k").unwrap();
        let first = identity.load().unwrap().fingerprint();
        assert_eq!(identity.load().unwrap().fingerprint(), first);
        assert_eq!(fs::metadata(dir.join(KEY_FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(dir).unwrap();
    }
}
