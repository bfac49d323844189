//! What links between namespaces report.

use manypath_core::{Bytes, Duration};
use manypath_link::{Count, Counters};

use crate::stats::SchedulingError;

/// The state of the links at one time. All counts are since their start.
#[derive(Clone, Debug)]
pub struct TunStats {
    /// Time since the links started; their schedules count from then.
    pub uptime: Duration,
    /// CPU time of the links' thread, in user and kernel mode. It includes what the kernel does when a packet is handed to it: the
    /// receiving end of TCP, up to the acknowledgement.
    pub cpu: Duration,
    /// Whether the thread has real-time priority: asked for, and granted by the system.
    pub realtime: bool,
    /// The scenario's links, in its order.
    pub links: Vec<LinkStats>,
    /// The paths.
    pub paths: Vec<PathStats>,
    /// What packets are held in at present.
    pub memory: Bytes,
}

/// A link.
#[derive(Clone, Debug)]
pub struct LinkStats {
    /// Its name in the scenario.
    pub name: String,
    /// What the model did: drops by cause, marks, queueing.
    pub counters: Counters,
}

/// A path.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The device, at both ends.
    pub device: String,
    /// Whether it is cut.
    pub down: bool,
    /// From the client to the server.
    pub forward: RouteStats,
    /// From the server to the client.
    pub backward: RouteStats,
}

/// A path in one direction. Always: `entered = delivered + dropped_* + held` and what its links dropped.
#[derive(Clone, Debug)]
pub struct RouteStats {
    /// What was read from the device at the beginning.
    pub entered: Count,
    /// What was handed to the device at the end.
    pub delivered: Count,
    /// Dropped because the path was cut, on arrival or when due.
    pub dropped_down: Count,
    /// Dropped because [`TunConfig::memory_limit`](crate::tun::TunConfig::memory_limit) was reached.
    pub dropped_memory: Count,
    /// Dropped because it does not begin with a whole IP header.
    pub dropped_malformed: Count,
    /// Dropped when due because the device at the end refused it: it is down or gone.
    pub dropped_refused: Count,
    /// What is on the way at present.
    pub held: Count,
    /// Packets that the kernel dropped before they were read; `None` if it does not tell. The model knows nothing of these: a
    /// number above zero means that the links' thread could not keep up.
    pub kernel_drops: Option<u64>,
    /// How late packets were delivered.
    pub scheduling_error: SchedulingError,
}
