//! Proof that a joining carrier belongs to a session (`docs/protocol.md`, section 3.2).

use std::fmt;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Names a session on its server; not secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) [u8; 16]);

/// HMAC-SHA256 keyed with the session's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof(pub(crate) [u8; 32]);

/// What both ends of a session share: exported from the TLS connection that opened it.
#[derive(Clone)]
pub(crate) struct Secret {
    session: SessionId,
    key: hmac::Key,
}

/// Whose proof it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prover {
    Client,
    Server,
}

/// The system gave no random numbers, or TLS no keying material.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no keying material or random numbers are available")]
pub(crate) struct NoKey;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret of {:?}", self.session)
    }
}

impl Secret {
    /// Derives the secret of a session from its first carrier.
    pub(crate) fn of_first_carrier(carrier: &noq::Connection, session: SessionId) -> Result<Self, NoKey> {
        let mut key = [0; 32];
        carrier.export_keying_material(&mut key, b"EXPORTER-manypath-session", &session.0).map_err(|_| NoKey)?;
        Ok(Self { session, key: hmac::Key::new(hmac::HMAC_SHA256, &key) })
    }

    /// The session.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Proves that whoever speaks on `carrier` holds the secret.
    pub(crate) fn prove(&self, prover: Prover, carrier: &noq::Connection, nonce: &[u8; 16]) -> Result<Proof, NoKey> {
        let message = self.message(prover, &binding(carrier, self.session, nonce)?, nonce);
        let mut proof = Proof([0; 32]);
        proof.0.copy_from_slice(hmac::sign(&self.key, &message).as_ref());
        Ok(proof)
    }

    /// Checks a proof, in constant time.
    pub(crate) fn verify(&self, prover: Prover, carrier: &noq::Connection, nonce: &[u8; 16], proof: &Proof) -> bool {
        let Ok(binding) = binding(carrier, self.session, nonce) else { return false };
        hmac::verify(&self.key, &self.message(prover, &binding, nonce), &proof.0).is_ok()
    }

    fn message(&self, prover: Prover, binding: &[u8; 32], nonce: &[u8; 16]) -> Vec<u8> {
        let prover: &[u8] = match prover {
            Prover::Client => b"client",
            Prover::Server => b"server",
        };
        [prover, &self.session.0, nonce, binding].concat()
    }
}

/// What only the two ends of this very TLS connection know.
fn binding(carrier: &noq::Connection, session: SessionId, nonce: &[u8; 16]) -> Result<[u8; 32], NoKey> {
    let mut binding = [0; 32];
    let context = [session.0, *nonce].concat();
    carrier.export_keying_material(&mut binding, b"EXPORTER-manypath-join", &context).map_err(|_| NoKey)?;
    Ok(binding)
}

/// Random bytes from the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoKey> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoKey)?;
    Ok(bytes)
}

/// Whether two texts are equal, in a time that does not tell where they differ.
pub(crate) fn equal(ours: &[u8], theirs: &[u8]) -> Result<bool, NoKey> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()?);
    Ok(hmac::verify(&key, theirs, hmac::sign(&key, ours).as_ref()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_compares_whole_texts() {
        assert!(equal(b"token", b"token").unwrap());
        assert!(!equal(b"token", b"toke").unwrap());
        assert!(!equal(b"token", b"tokem").unwrap());
        assert!(!equal(b"token", b"").unwrap());
    }
}
