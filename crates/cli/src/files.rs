//! The file service: what `serve`, `get`, `put` and `perf` say to each other on a flow (`docs/files.md`), the served
//! directory, and files that arrive piece by piece.

pub(crate) mod arriving;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod patient;
pub(crate) mod store;
pub(crate) mod wire;

use std::fmt;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

impl Hash {
    /// The hash of what `hasher` has read so far.
    pub(crate) fn of(hasher: &Sha256) -> Self {
        Self(hasher.clone().finalize().into())
    }
}

/// Lower-case hexadecimal digits, as `sha256sum` prints them.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs what takes long, and asks whether it is still wanted, where it holds nobody up. Who drops the future wants it no more: a
/// thread cannot be ended, and the program ends after its threads.
pub(crate) async fn while_wanted<T: Send + 'static>(
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, outcome) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let outcome = work(&|| !sender.is_closed());
        // An error says that nobody waits.
        let _ = sender.send(outcome);
    });
    outcome.await.map_err(io::Error::other)
}

/// Hashes the next `length` bytes of `source`, or fewer if it ends before; returns the hasher and how many there were. Fails
/// when that is no longer `wanted`.
pub(crate) fn hash_prefix(source: &mut impl Read, length: u64, wanted: &dyn Fn() -> bool) -> io::Result<(Sha256, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut left = length;
    while left > 0 {
        if !wanted() {
            return Err(io::Error::other("nobody waits for the hash any more"));
        }
        let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = match source.read(&mut buffer[..want]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok((hasher, length - left))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_hash_is_the_one_of_fips_180() {
        let (hasher, read) = hash_prefix(&mut &b"abcdef"[..], 3, &|| true).unwrap();
        assert_eq!(read, 3);
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(&hasher).to_string(), known);
    }

    #[test]
    fn a_short_source_says_how_much_it_had() {
        let (_, read) = hash_prefix(&mut &b"abc"[..], 10, &|| true).unwrap();
        assert_eq!(read, 3);
    }

    #[tokio::test]
    async fn a_hash_that_nobody_waits_for_is_not_finished() {
        let (told, ended) = std::sync::mpsc::channel();
        let endless = while_wanted(move |wanted| {
            told.send(hash_prefix(&mut io::repeat(0), u64::MAX, wanted).is_err()).unwrap();
        });
        tokio::time::timeout(Duration::from_millis(50), endless).await.unwrap_err();
        assert!(ended.recv_timeout(Duration::from_secs(60)).expect("it goes on"));
    }
}
