//! Packets lost, by cause.

use core::ops::Sub;

use manypath_link::{DropCause, Drops};

/// Packets lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Causes {
    pub(crate) queue_full: u64,
    /// Independent or in bursts.
    pub(crate) random: u64,
    /// By random early detection.
    pub(crate) early: u64,
    /// On a link that was dead for good.
    pub(crate) dead: u64,
}

impl Causes {
    pub(crate) fn add(&mut self, cause: DropCause) {
        *match cause {
            DropCause::QueueFull => &mut self.queue_full,
            DropCause::Random | DropCause::Bursty => &mut self.random,
            DropCause::Red => &mut self.early,
            DropCause::Dead => &mut self.dead,
        } += 1;
    }
}

impl From<&Drops> for Causes {
    fn from(drops: &Drops) -> Self {
        Self {
            queue_full: drops.queue_full.packets,
            random: (drops.random + drops.bursty).packets,
            early: drops.red.packets,
            dead: drops.dead.packets,
        }
    }
}

impl Sub for Causes {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            queue_full: self.queue_full - earlier.queue_full,
            random: self.random - earlier.random,
            early: self.early - earlier.early,
            dead: self.dead - earlier.dead,
        }
    }
}
