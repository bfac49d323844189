//! The maps of controllers that are loaded, by their pins.

use std::collections::BTreeMap;

use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle};

use crate::error::Error;
use crate::layout::{Connection, Counter, Weights};
use crate::pins;

/// Key of the only entry of `tunables` and of a `struct_ops` map, and of the weights of all connections that have none.
pub(crate) const ZERO: [u8; 4] = [0; 4];

/// How often a map is walked through at most, while entries come and go.
const MOST_WALKS: usize = 16;

/// Values of maps: structures of whole numbers, without padding, for which any bytes are a value.
///
/// # Safety
/// The type must be `repr(C)` and hold nothing but whole numbers and arrays and structures of them.
unsafe trait FromMap: Sized {
    /// The value that a map gave; `None` if it is of another size.
    fn from_map(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are as many bytes as the type has, any bytes are a value of it (the trait's contract), and reading
        // unaligned asks nothing of where they are.
        (bytes.len() == size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: `repr(C)`, of `Group` and `Info`, which are `repr(C)` and of whole numbers.
unsafe impl FromMap for Connection {}
// SAFETY: `repr(C)`, an array of whole numbers.
unsafe impl FromMap for Weights {}

/// A map of a controller.
#[derive(Debug)]
pub(crate) struct PinnedMap {
    controller: String,
    name: &'static str,
    handle: MapHandle,
}

impl PinnedMap {
    /// Opens a map of a controller by its pin.
    pub(crate) fn open(kernel_name: &str, name: &'static str) -> Result<Self, Error> {
        let path = pins::pin(kernel_name, name);
        if !path.exists() {
            return Err(Error::NotLoaded(kernel_name.to_owned()));
        }
        match MapHandle::from_pinned_path(&path) {
            Ok(handle) => Ok(Self { controller: kernel_name.to_owned(), name, handle }),
            Err(error) => Err(Error::Map { controller: kernel_name.to_owned(), map: name, source: error.into() }),
        }
    }

    /// Whether a controller has a map of this name.
    pub(crate) fn exists(kernel_name: &str, name: &str) -> bool {
        pins::pin(kernel_name, name).exists()
    }

    /// Whether the object calls the map so; the kernel keeps fifteen bytes of it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.handle.name() == name
    }

    fn failed(&self, error: libbpf_rs::Error) -> Error {
        let controller = self.controller.clone();
        match error.kind() {
            ErrorKind::TooBig => Error::Full { controller, map: self.name },
            _ => Error::Map { controller, map: self.name, source: error.into() },
        }
    }

    /// The kernel's number of the map.
    pub(crate) fn id(&self) -> Result<u32, Error> {
        self.handle.info().map(|info| info.info.id).map_err(|error| self.failed(error))
    }

    /// The bytes of an entry.
    pub(crate) fn bytes(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.handle.lookup(key, MapFlags::ANY).map_err(|error| self.failed(error))
    }

    /// Writes an entry.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.handle.update(key, value, MapFlags::ANY).map_err(|error| self.failed(error))
    }

    /// Deletes an entry; there may be none.
    pub(crate) fn delete(&self, key: &[u8]) -> Result<(), Error> {
        match self.handle.delete(key) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// Entries of `connections`, by token. Those that come or go meanwhile may be missing.
    pub(crate) fn connections(&self) -> Result<BTreeMap<u32, Connection>, Error> {
        let mut found = BTreeMap::new();
        // Where the entry that was found last is gone, the kernel begins again: with what was seen, perhaps for ever.
        let most = self.handle.max_entries() as usize * MOST_WALKS;
        for key in self.handle.keys().take(most) {
            let Ok(token) = key.as_slice().try_into().map(u32::from_ne_bytes) else { continue };
            let connection = self.bytes(&key)?.and_then(|bytes| Connection::from_map(&bytes));
            found.extend(connection.map(|connection| (token, connection)));
        }
        Ok(found)
    }

    /// The entry of `connections` for a token.
    pub(crate) fn connection(&self, token: u32) -> Result<Option<Connection>, Error> {
        Ok(self.bytes(&token.to_ne_bytes())?.and_then(|bytes| Connection::from_map(&bytes)))
    }

    /// The entry of `weights` for a token, or for all connections.
    pub(crate) fn weights(&self, token: u32) -> Result<Option<Weights>, Error> {
        Ok(self.bytes(&token.to_ne_bytes())?.and_then(|bytes| Weights::from_map(&bytes)))
    }

    /// A counter, summed over the processors.
    pub(crate) fn counter(&self, counter: Counter) -> Result<u64, Error> {
        let key = (counter as u32).to_ne_bytes();
        let values = self.handle.lookup_percpu(&key, MapFlags::ANY).map_err(|error| self.failed(error))?;
        Ok(values
            .unwrap_or_default()
            .iter()
            .filter_map(|value| Some(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?)))
            .sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_whole_or_not_at_all() {
        let mut bytes = vec![0; size_of::<Weights>()];
        bytes[4..8].copy_from_slice(&200_000_u32.to_ne_bytes());
        assert_eq!(Weights::from_map(&bytes).unwrap().ppm[1], 200_000);
        assert_eq!(Weights::from_map(&bytes[1..]), None);
    }
}
