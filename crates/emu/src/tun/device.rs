//! TUN devices, made in the namespace of the calling thread.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use tun_rs::DeviceBuilder;

use crate::tun::error::TunError;
use crate::tun::plan::PathPlan;

/// Packets that the kernel holds for the thread of the links until it reads them. Only a thread that does not get the processor
/// lets it fill: 10,000 packets are 100 ms at 1.2 Gbit/s.
const QUEUE: u32 = 10_000;

/// A device, up, without addresses.
#[derive(Debug)]
pub(crate) struct Device {
    /// The queue of packets; the device vanishes when it is closed, however the process ends.
    pub(crate) queue: OwnedFd,
    /// Its number in its namespace.
    pub(crate) index: u32,
}

impl Device {
    /// The device of a path.
    pub(crate) fn create(path: &PathPlan) -> Result<Self, TunError> {
        let built = DeviceBuilder::new().name(&path.device).mtu(path.mtu).tx_queue_len(QUEUE).build_sync();
        let device = built.and_then(|device| {
            device.set_nonblocking(true)?;
            // The descriptor is all that is needed from here on.
            Ok(Self { queue: device.as_fd().try_clone_to_owned()?, index: device.if_index()? })
        });
        device.map_err(|reason| match reason.kind() {
            io::ErrorKind::PermissionDenied => TunError::NotPermitted { action: "make a TUN device", reason },
            _ => TunError::NoTun { reason },
        })
    }
}
