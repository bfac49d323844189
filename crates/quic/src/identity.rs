//! Who a server is: its certificate and key, from files or made here, and the fingerprint that clients pin.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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
