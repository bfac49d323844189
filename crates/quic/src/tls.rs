//! TLS 1.3 settings of both ends.

use std::path::PathBuf;

use crate::identity::Fingerprint;

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
