//! The values of the maps, as `bpf/layout.h` lays them out. `docs/kernel-maps.md` says what is in which map.

/// Subflows of a connection that are coupled (`MP_SUBFLOWS`).
pub const MAX_SUBFLOWS: usize = 8;

/// What a subflow lets the others know (`struct mp_member`). The words of type `real` are for the control laws only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Member {
    /// Smoothed round-trip time; zero while the subflow does not count.
    pub rtt: u64,
    /// Congestion window.
    pub window: u64,
    /// When it is idle unless it is heard before, microseconds of the kernel's monotonic clock.
    pub idle_us: u64,
    /// Of the law.
    pub law: [u64; 5],
}

/// The subflows of a connection as their control laws see them (`struct mp_group`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Group {
    /// Bit i: place i is taken. The highest bit: the connection is about to go.
    pub used: u64,
    /// Bit i: the subflow at place i is not idle.
    pub busy: u64,
    /// Of the law.
    pub law: [u64; 6],
    /// By place.
    pub members: [Member; MAX_SUBFLOWS],
}

/// What is known of a subflow (`struct mp_info`), at most 10 ms old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Info {
    /// `AF_INET` (2) or `AF_INET6` (10); zero: there is no such subflow.
    pub family: u16,
    /// Port of this end.
    pub local_port: u16,
    /// Port of the other end.
    pub remote_port: u16,
    /// Unused.
    pub pad: u16,
    /// Address of this end, network order; IPv4 takes the first four bytes.
    pub local: [u8; 16],
    /// Address of the other end.
    pub remote: [u8; 16],
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Bytes of a packet.
    pub mss: u32,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: u32,
    /// Bytes per second: the pacing rate of paced controllers, else window over round-trip time.
    pub rate: u64,
    /// Packets delivered since the subflow began.
    pub delivered: u32,
    /// Packets declared lost since then.
    pub lost: u32,
    /// When this was written, microseconds of the kernel's monotonic clock.
    pub updated_us: u64,
    /// A [`Phase`].
    pub phase: u32,
    /// Weight in millionths.
    pub weight_ppm: u32,
    /// Utility of the last monitor interval in thousandths; zero where there is none.
    pub utility_milli: i64,
    /// Monitor intervals finished.
    pub intervals: u32,
    /// Decisions taken on them.
    pub decisions: u32,
    /// Least round-trip time of the last minutes, microseconds; zero where none is known.
    pub min_rtt_us: u32,
    /// Unused.
    pub pad_rtt: u32,
    /// Unused.
    pub reserved: u64,
}

/// A connection (`struct mp_connection`), value of the map `connections`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Connection {
    /// For the control laws.
    pub group: Group,
    /// For people, by place.
    pub info: [Info; MAX_SUBFLOWS],
}

/// Weights of a connection's subflows (`struct mp_weights`), value of the map `weights`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Weights {
    /// In millionths, by place; zero stands for one.
    pub ppm: [u32; MAX_SUBFLOWS],
}

/// What a subflow is doing (`enum mp_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Slow start.
    SlowStart,
    /// Congestion avoidance; monitoring of `mp-ol`.
    Avoidance,
    /// Recovery from loss.
    Recovery,
    /// Trying both sides of a rate.
    Probing,
    /// Stepping along the gradient.
    Moving,
    /// Online learning of `mp-ol`.
    Learning,
}

/// A place in the map `counters` (`enum mp_counter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    /// Subflows that joined a connection's state.
    Subflows,
    /// Connections that were made.
    Connections,
    /// Connections whose state was freed.
    Freed,
    /// Sockets that are plain TCP.
    Plain,
    /// Subflows in one-path form because the map was full.
    Full,
    /// Subflows in one-path form because eight others were there.
    Crowded,
    /// Subflows in one-path form because their connection was just closing.
    Closing,
    /// Sockets without memory for their own state: they do as Reno.
    NoMemory,
    /// Losses that began a recovery.
    Losses,
    /// Timeouts.
    Timeouts,
    /// Monitor intervals finished.
    Intervals,
    /// Monitor intervals that did not test their rate.
    UnfairIntervals,
}

impl Phase {
    /// The phase of [`Info::phase`]; `None` for a number that no controller writes.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::SlowStart,
            1 => Self::Avoidance,
            2 => Self::Recovery,
            3 => Self::Probing,
            4 => Self::Moving,
            5 => Self::Learning,
            _ => return None,
        })
    }
}

impl Counter {
    /// Every counter with its name in reports, in the order of the map.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Subflows, "subflows"),
        (Self::Connections, "connections"),
        (Self::Freed, "freed"),
        (Self::Plain, "plain"),
        (Self::Full, "full"),
        (Self::Crowded, "crowded"),
        (Self::Closing, "closing"),
        (Self::NoMemory, "no_memory"),
        (Self::Losses, "losses"),
        (Self::Timeouts, "timeouts"),
        (Self::Intervals, "intervals"),
        (Self::UnfairIntervals, "unfair_intervals"),
    ];
}

impl Phase {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow start",
            Self::Avoidance => "avoidance",
            Self::Recovery => "recovery",
            Self::Probing => "probing",
            Self::Moving => "moving",
            Self::Learning => "learning",
        }
    }
}

#[cfg(test)]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::*;

    unsafe extern "C" {
        static mp_layout: [usize; 13];
    }

    #[test]
    fn every_counter_has_a_name() {
        for (place, (counter, _)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place);
        }
        assert_eq!(Counter::ALL.len(), Counter::UnfairIntervals as usize + 1);
    }

    #[test]
    fn the_programs_lay_it_out_alike() {
        let ours = [
            size_of::<Member>(),
            size_of::<Group>(),
            size_of::<Info>(),
            size_of::<Connection>(),
            size_of::<Weights>(),
            offset_of!(Info, cwnd),
            offset_of!(Info, rate),
            offset_of!(Info, updated_us),
            offset_of!(Info, utility_milli),
            offset_of!(Info, reserved),
            MAX_SUBFLOWS,
            Counter::UnfairIntervals as usize,
            Phase::Learning as usize,
        ];
        // SAFETY: an array of thirteen words in bpf/host.c that nothing writes.
        assert_eq!(ours, unsafe { mp_layout });
    }
}
