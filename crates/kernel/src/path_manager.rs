//! The in-kernel path manager of Multipath TCP, as `ip mptcp` shows it: endpoints and limits.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::DefaultNla;
use rustix::net::netdevice;
use serde::{Serialize, Serializer};

use crate::netlink::{self, Connection};

/// The generic netlink family (linux/mptcp_pm.h).
const FAMILY: &str = "mptcp_pm";

/// Commands (linux/mptcp_pm.h, `MPTCP_PM_CMD_*`).
mod command {
    pub(super) const ADD_ADDRESS: u8 = 1;
    pub(super) const DELETE_ADDRESS: u8 = 2;
    pub(super) const GET_ADDRESS: u8 = 3;
    pub(super) const SET_LIMITS: u8 = 5;
    pub(super) const GET_LIMITS: u8 = 6;
}

/// Attributes of messages (`MPTCP_PM_ATTR_*`).
mod attribute {
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const ACCEPTED_ADDRESSES: u16 = 2;
    pub(super) const SUBFLOWS: u16 = 3;
}

/// Attributes of an endpoint (`MPTCP_PM_ADDR_ATTR_*`).
mod endpoint {
    pub(super) const FAMILY: u16 = 1;
    pub(super) const ID: u16 = 2;
    pub(super) const IPV4: u16 = 3;
    pub(super) const IPV6: u16 = 4;
    pub(super) const PORT: u16 = 5;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const INTERFACE: u16 = 7;
}

/// Address families as the path manager writes them.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The most extra subflows, and endpoints, that the kernel takes (`MPTCP_PM_ADDR_MAX`).
pub const MAX_ENDPOINTS: usize = 8;

/// What an endpoint is for (`MPTCP_PM_ADDR_FLAG_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// The address is announced to the peer, which may open a subflow to it.
    pub const SIGNAL: Self = Self(1);
    /// New subflows leave from the address.
    pub const SUBFLOW: Self = Self(1 << 1);
    /// Its subflows carry data only when no other can.
    pub const BACKUP: Self = Self(1 << 2);
    /// A subflow leaves from the address to every address of the peer.
    pub const FULLMESH: Self = Self(1 << 3);

    /// The names that `ip mptcp` uses.
    const NAMES: [(u32, &'static str); 6] =
        [(0, "signal"), (1, "subflow"), (2, "backup"), (3, "fullmesh"), (4, "implicit"), (5, "laminar")];

    /// Whether all of `other` is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

impl Serialize for Flags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A local address that the path manager uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Given by the kernel; 0 in an endpoint that is yet to be added.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The port that an announced address is reached at, if not that of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The interface that its subflows are bound to, by index.
    #[serde(skip)]
    pub interface: Option<u32>,
    /// What it is for.
    pub flags: Flags,
}

impl Endpoint {
    /// An address that extra subflows leave from, bound to its interface: a source address alone does not choose the
    /// interface that a packet leaves by.
    pub const fn subflow(address: IpAddr, interface: u32) -> Self {
        Self { id: 0, address, port: None, interface: Some(interface), flags: Flags::SUBFLOW }
    }

    /// The name of the interface that it is bound to.
    pub fn interface_name(&self) -> Option<String> {
        interface_name(self.interface?)
    }

    fn encode(&self) -> DefaultNla {
        let number = |kind, value: u32| DefaultNla::new(kind, value.to_ne_bytes().to_vec());
        let short = |kind, value: u16| DefaultNla::new(kind, value.to_ne_bytes().to_vec());
        let mut attributes = match self.address {
            IpAddr::V4(ip) => {
                vec![short(endpoint::FAMILY, AF_INET), DefaultNla::new(endpoint::IPV4, ip.octets().to_vec())]
            }
            IpAddr::V6(ip) => {
                vec![short(endpoint::FAMILY, AF_INET6), DefaultNla::new(endpoint::IPV6, ip.octets().to_vec())]
            }
        };
        if self.id != 0 {
            attributes.push(DefaultNla::new(endpoint::ID, vec![self.id]));
        }
        attributes.extend(self.port.map(|port| short(endpoint::PORT, port)));
        attributes.extend(self.interface.map(|index| number(endpoint::INTERFACE, index)));
        attributes.push(number(endpoint::FLAGS, self.flags.0));
        netlink::nested(attribute::ADDRESS, &attributes)
    }

    /// `None` if there is no address in it.
    fn decode(attributes: &[DefaultNla]) -> Option<Self> {
        let value = |kind| attributes.iter().find_map(|attribute| netlink::value(attribute, kind));
        let number = |kind| Some(u32::from_ne_bytes(value(kind)?.try_into().ok()?));
        let ipv4 = value(endpoint::IPV4).and_then(|ip| <[u8; 4]>::try_from(ip).ok()).map(Ipv4Addr::from);
        let ipv6 = value(endpoint::IPV6).and_then(|ip| <[u8; 16]>::try_from(ip).ok()).map(Ipv6Addr::from);
        let port = value(endpoint::PORT).and_then(|port| port.try_into().ok()).map(u16::from_ne_bytes);
        Some(Self {
            id: value(endpoint::ID).and_then(|id| id.first().copied()).unwrap_or(0),
            address: ipv4.map(IpAddr::from).or(ipv6.map(IpAddr::from))?,
            port: port.filter(|port| *port != 0),
            interface: number(endpoint::INTERFACE).filter(|index| *index != 0),
            flags: Flags(number(endpoint::FLAGS).unwrap_or(0)),
        })
    }
}

/// The name of the interface with this index.
pub(crate) fn interface_name(index: u32) -> Option<String> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    netdevice::index_to_name(any, index).ok()
}

/// How many extra subflows a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Extra subflows, opened by either side; the first is not counted.
    pub subflows: u32,
    /// Addresses announced by the peer that subflows are opened to.
    pub accepted_addresses: u32,
}

/// A connection to the path manager of this network namespace.
#[derive(Debug)]
pub struct PathManager {
    connection: Connection,
}

impl PathManager {
    /// Connects.
    ///
    /// # Errors
    /// `NotFound` if the kernel has no Multipath TCP.
    pub fn open() -> io::Result<Self> {
        Connection::open(FAMILY).map(|connection| Self { connection })
    }

    /// Lists the endpoints, in the order of their ids.
    ///
    /// # Errors
    /// If the kernel refuses or its answer is not understood.
    pub fn endpoints(&mut self) -> io::Result<Vec<Endpoint>> {
        let mut found = Vec::new();
        for message in self.connection.dump(command::GET_ADDRESS)? {
            for attribute in &message.attributes {
                let Some(bytes) = netlink::value(attribute, attribute::ADDRESS) else { continue };
                let inner = netlink::attributes(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                found.extend(Endpoint::decode(&inner));
            }
        }
        found.sort_by_key(|endpoint| endpoint.id);
        Ok(found)
    }

    /// Adds an endpoint. The kernel chooses its id if it is 0.
    ///
    /// # Errors
    /// `AlreadyExists`; `PermissionDenied` without `CAP_NET_ADMIN`; `InvalidInput` if there are eight already.
    pub fn add(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        self.connection.command(command::ADD_ADDRESS, &[endpoint.encode()]).map(drop)
    }

    /// Deletes an endpoint; its subflows are closed.
    ///
    /// # Errors
    /// `InvalidInput` if there is none with its id.
    pub fn delete(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        self.connection.command(command::DELETE_ADDRESS, &[endpoint.encode()]).map(drop)
    }

    /// The limits.
    ///
    /// # Errors
    /// If the kernel refuses or its answer is not understood.
    pub fn limits(&mut self) -> io::Result<Limits> {
        let answers = self.connection.command(command::GET_LIMITS, &[])?;
        let number = |kind| {
            let mut attributes = answers.iter().flat_map(|answer| &answer.attributes);
            let bytes = attributes.find_map(|attribute| netlink::value(attribute, kind));
            bytes.and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes).unwrap_or(0)
        };
        Ok(Limits { subflows: number(attribute::SUBFLOWS), accepted_addresses: number(attribute::ACCEPTED_ADDRESSES) })
    }

    /// Sets the limits, for connections made from now on.
    ///
    /// # Errors
    /// `InvalidInput` if one is above [`MAX_ENDPOINTS`]; `PermissionDenied` without `CAP_NET_ADMIN`.
    pub fn set_limits(&mut self, limits: Limits) -> io::Result<()> {
        let number = |kind, value: u32| DefaultNla::new(kind, value.to_ne_bytes().to_vec());
        let attributes = [
            number(attribute::ACCEPTED_ADDRESSES, limits.accepted_addresses),
            number(attribute::SUBFLOWS, limits.subflows),
        ];
        self.connection.command(command::SET_LIMITS, &attributes).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_survive_encoding() {
        let all = [
            Endpoint::subflow(IpAddr::from([10, 0, 0, 1]), 3),
            Endpoint {
                id: 7,
                address: IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
                port: Some(443),
                interface: None,
                flags: Flags::SIGNAL,
            },
        ];
        for endpoint in all {
            let bytes = netlink::value(&endpoint.encode(), attribute::ADDRESS).unwrap();
            assert_eq!(Endpoint::decode(&netlink::attributes(&bytes).unwrap()), Some(endpoint));
        }
        assert_eq!(Endpoint::decode(&[]), None);
        // The kernel's way to say that there is none.
        let none = Endpoint { port: Some(0), ..Endpoint::subflow(IpAddr::from([10, 0, 0, 1]), 0) };
        let bytes = netlink::value(&none.encode(), attribute::ADDRESS).unwrap();
        let read = Endpoint::decode(&netlink::attributes(&bytes).unwrap()).unwrap();
        assert_eq!((read.port, read.interface), (None, None));
    }

    #[test]
    fn flags_have_the_names_of_ip_mptcp() {
        assert_eq!(Flags(0b1010).to_string(), "subflow,fullmesh");
        assert!(Flags(0b1010).contains(Flags::FULLMESH) && !Flags(0b1010).contains(Flags::SIGNAL));
    }
}
