//! The in-kernel path manager of Multipath TCP in the namespace of the calling thread: endpoints and limits, what `ip mptcp`
//! sets (linux/mptcp.h).

use std::io;
use std::net::Ipv4Addr;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable as _, NLA_F_NESTED, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
    Nla, NlasIterator, Parseable as _,
};

use crate::system::SystemError;
use crate::tun::error::TunError;
use crate::tun::netlink::Netlink;

/// The family that knows the others (linux/genetlink.h): its number, its request, and the attributes of that.
const CONTROL: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
/// The path manager's name with its final zero, and its commands.
const FAMILY: &[u8] = b"mptcp_pm\0";
const ADD_ADDRESS: u8 = 1;
const SET_LIMITS: u8 = 5;
/// Attributes of its messages.
const ADDRESS: u16 = 1;
const ACCEPTED_ADDRESSES: u16 = 2;
const SUBFLOWS: u16 = 3;
/// Attributes of an address.
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_IPV4: u16 = 3;
const ADDRESS_FLAGS: u16 = 6;
const ADDRESS_DEVICE: u16 = 7;
/// New subflows leave from the address; they carry data only when no other can.
const FLAG_SUBFLOW: u32 = 2;
const FLAG_BACKUP: u32 = 4;

const AF_INET: u16 = 2;

/// The most extra subflows of a connection, and the most endpoints, that the kernel takes (net/mptcp, `MPTCP_PM_ADDR_MAX`).
pub(crate) const MOST: u32 = 8;

/// The path manager.
#[derive(Debug)]
pub(crate) struct PathManager {
    netlink: Netlink,
    family: u16,
}

impl PathManager {
    pub(crate) fn open() -> Result<Self, TunError> {
        let mut netlink = Netlink::open(Some(rustix::net::netlink::GENERIC))?;
        let name = DefaultNla::new(CONTROL_FAMILY_NAME, FAMILY.to_vec());
        let request = Message { family: CONTROL, command: CONTROL_GET_FAMILY, attributes: vec![name] };
        let answers = match netlink.request(request, 0, "find the path manager of Multipath TCP") {
            Err(error) if error.reason.kind() == io::ErrorKind::NotFound => return Err(TunError::NoMptcp),
            result => result?,
        };
        let found = answers.iter().flat_map(|answer| &answer.attributes).find(|held| held.kind() == CONTROL_FAMILY_ID);
        let mut id = [0; 2];
        found.filter(|held| held.value_len() == id.len()).ok_or(TunError::NoMptcp)?.emit_value(&mut id);
        Ok(Self { netlink, family: u16::from_ne_bytes(id) })
    }

    /// Lets a connection open a subflow from `address`, by the device with this index.
    pub(crate) fn add_subflow(&mut self, address: Ipv4Addr, device: u32, backup: bool) -> Result<(), SystemError> {
        let flags = FLAG_SUBFLOW | if backup { FLAG_BACKUP } else { 0 };
        let attributes = [
            DefaultNla::new(ADDRESS_FAMILY, AF_INET.to_ne_bytes().to_vec()),
            DefaultNla::new(ADDRESS_IPV4, address.octets().to_vec()),
            number(ADDRESS_DEVICE, device),
            number(ADDRESS_FLAGS, flags),
        ];
        let mut nested = vec![0; attributes.as_slice().buffer_len()];
        attributes.as_slice().emit(&mut nested);
        let attributes = vec![DefaultNla::new(ADDRESS | NLA_F_NESTED, nested)];
        self.command(ADD_ADDRESS, attributes, "add an endpoint of Multipath TCP")
    }

    /// Sets how many subflows a connection may have besides its first.
    pub(crate) fn set_limits(&mut self, subflows: u32) -> Result<(), SystemError> {
        let attributes = vec![number(ACCEPTED_ADDRESSES, 0), number(SUBFLOWS, subflows)];
        self.command(SET_LIMITS, attributes, "set the limits of Multipath TCP")
    }

    fn command(&mut self, command: u8, attributes: Vec<DefaultNla>, action: &'static str) -> Result<(), SystemError> {
        let message = Message { family: self.family, command, attributes };
        self.netlink.request(message, 0, action).map(drop)
    }
}

fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// A message of generic netlink: `struct genlmsghdr` and attributes.
#[derive(Debug)]
struct Message {
    family: u16,
    command: u8,
    attributes: Vec<DefaultNla>,
}

/// Command, version and two reserved octets.
const HEADER: usize = 4;

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        HEADER + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..HEADER].copy_from_slice(&[self.command, 1, 0, 0]);
        self.attributes.as_slice().emit(&mut buffer[HEADER..]);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let Some((head, rest)) = payload.split_at_checked(HEADER) else {
            return Err(DecodeError::from("a generic netlink message without its header"));
        };
        let attributes = NlasIterator::new(rest).map(|attribute| DefaultNla::parse(&attribute?));
        Ok(Self { family: header.message_type, command: head[0], attributes: attributes.collect::<Result<_, _>>()? })
    }
}
