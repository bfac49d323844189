//! What can go wrong between a scenario and its namespaces.

use std::io;

use manypath_core::Bytes;
use manypath_link::ConfigError;

use crate::system::SystemError;

/// Why links between namespaces did not start, or do not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// The scenario has no connection, so there is nothing that would lie between a client and a server.
    #[error("the scenario '{0}' has no connection: add a [[connection]] whose paths the client shall have")]
    NoConnection(String),
    /// More paths than there are addresses for.
    #[error("{0} different paths: at most {most} can be emulated", most = crate::tun::MAX_PATHS)]
    TooManyPaths(usize),
    /// More paths than a Multipath TCP connection can have subflows.
    #[error(
        "the scenario's first connection has {0} paths, and a connection of Multipath TCP has at most {most} subflows: give it \
         fewer paths, or leave Multipath TCP out (--no-mptcp)",
        most = crate::tun::mptcp::MOST + 1
    )]
    TooManySubflows(usize),
    /// A queue in bytes is too short for full packets of a path.
    #[error(
        "the link '{link}': its queue of {queue} never has room for a full packet of {device}, which has {packet}: write queue = \
         \"{packet}\" or more, or queue = \"1packet\""
    )]
    QueueBelowPacket {
        /// Which link.
        link: String,
        /// Its limit.
        queue: Bytes,
        /// The path's device.
        device: String,
        /// The path's MTU, with what is added to it on the links.
        packet: Bytes,
    },
    /// The sources send more packets than can be followed in real time.
    #[error(
        "the sources send {0:.0} packets a second: at most 10 million can be emulated, so give larger packets or lower rates"
    )]
    TooManyPackets(f64),
    /// A link makes no sense.
    #[error("the link '{name}': {reason}")]
    Link {
        /// Which link.
        name: String,
        /// What is wrong with it.
        reason: ConfigError,
    },
    /// The process may not make namespaces and devices.
    #[error(
        "cannot {action}: {reason}; run it as root (sudo), in a container with --cap-add NET_ADMIN --cap-add SYS_ADMIN"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        reason: io::Error,
    },
    /// There are no TUN devices.
    #[error(
        "cannot make a TUN device: {reason}; load the module (modprobe tun), in a container give --device /dev/net/tun"
    )]
    NoTun {
        /// What the system said.
        reason: io::Error,
    },
    /// The kernel cannot do Multipath TCP.
    #[error("the kernel has no Multipath TCP (CONFIG_MPTCP): take a kernel that has it, or leave it out (--no-mptcp)")]
    NoMptcp,
    /// The operating system refused something.
    #[error(transparent)]
    System(SystemError),
    /// The thread of the links is gone: it panicked.
    #[error("the thread of the links is gone")]
    Gone,
}

impl From<SystemError> for TunError {
    fn from(error: SystemError) -> Self {
        let SystemError { action, reason } = error;
        if reason.kind() == io::ErrorKind::PermissionDenied {
            Self::NotPermitted { action, reason }
        } else {
            Self::System(SystemError { action, reason })
        }
    }
}
