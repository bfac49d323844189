//! Identifiers. Each is a type of its own, so that one is never passed for another.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A subflow: one path's share of a connection. Given by the session, small, and used again only after its state is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId(pub u32);

/// A flow: one ordered byte stream within a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// The number of a data packet on its subflow: contiguous from zero in the order of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

/// A data sequence number (DSN): a position in the byte order of a connection (RFC 8684 s3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSeq(pub u64);

impl SubflowId {
    /// The id as an index into per-subflow tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl DataSeq {
    /// The start of the sequence space.
    pub const ZERO: Self = Self(0);
}

impl Add<u64> for DataSeq {
    type Output = Self;
    fn add(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }
}

impl AddAssign<u64> for DataSeq {
    fn add_assign(&mut self, bytes: u64) {
        *self = *self + bytes;
    }
}

/// The bytes from `earlier` to `self`, or zero if `earlier` is later.
impl Sub for DataSeq {
    type Output = u64;
    fn sub(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for SubflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subflow {}", self.0)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {}", self.0)
    }
}
