//! What a link counts.

use manypath_core::{Bytes, Duration};

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, IP and UDP headers included.
    pub bytes: Bytes,
}

impl Count {
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += Bytes::new(u64::from(size));
    }
}

impl core::ops::Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// What waits in the queue, the packet in transmission included.
pub type Backlog = Count;

/// Packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue had no room.
    pub queue_full: Count,
    /// Independent random loss.
    pub random: Count,
    /// Gilbert-Elliott loss.
    pub bursty: Count,
    /// Random early detection.
    pub red: Count,
    /// The link's rate is zero for good before the packet could have left.
    pub dead: Count,
}

impl Drops {
    /// All drops together.
    pub fn total(&self) -> Count {
        self.queue_full + self.random + self.bursty + self.red + self.dead
    }
}

/// A link's counters at one time. Always: `offered = delivered + dropped.total() + backlog`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What was given to the link.
    pub offered: Count,
    /// What has left the queue (it may still be propagating).
    pub delivered: Count,
    /// What was dropped.
    pub dropped: Drops,
    /// What has not left the queue.
    pub backlog: Backlog,
    /// The largest backlog in bytes that an accepted packet has made, itself included.
    pub peak_backlog: Bytes,
    /// Packets that the link marked CE: they were ECN-capable and not marked before.
    pub marked: u64,
    /// Time that accepted packets wait behind others before their own transmission, summed.
    pub queueing_sum: Duration,
    /// The longest such wait.
    pub queueing_max: Duration,
}

impl Counters {
    /// The mean wait of an accepted packet behind others; `None` before the first.
    pub fn queueing_mean(&self) -> Option<Duration> {
        let accepted = self.delivered.packets + self.backlog.packets;
        (accepted > 0).then(|| self.queueing_sum / accepted)
    }
}
