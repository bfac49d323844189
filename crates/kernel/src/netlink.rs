//! Netlink: how user space asks the kernel for its tables (`rtnetlink(7)`) and talks to its path manager (generic netlink).
//!
//! Only what that takes: find a family by its name, send one request, collect the answers.

use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable as _, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator, Parseable as _,
};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

/// The family that knows the others (`GENL_ID_CTRL`, linux/genetlink.h), its request and its attributes.
const CONTROL: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;

/// A table of rtnetlink(7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Type of the request.
    request: u16,
    /// Bytes before the attributes.
    header: usize,
}

/// Interfaces: `RTM_GETLINK`, `struct ifinfomsg`.
pub(crate) const LINKS: Table = Table { request: 18, header: 16 };
/// Their addresses: `RTM_GETADDR`, `struct ifaddrmsg`.
pub(crate) const ADDRESSES: Table = Table { request: 22, header: 8 };
/// Routes: `RTM_GETROUTE`, `struct rtmsg`.
pub(crate) const ROUTES: Table = Table { request: 26, header: 12 };

/// The protocol of rtnetlink has the number of no protocol.
const NETLINK_ROUTE: Option<Protocol> = None;

/// Room for one datagram of answers: the kernel fills at most 32 KiB.
const BUFFER: usize = 64 * 1024;

/// A message as it is on the wire. Its type does not tell how long its header is: the numbers of rtnetlink's types and of
/// generic families overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Raw {
    kind: u16,
    payload: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.payload.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.payload);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { kind: header.message_type, payload: payload.to_vec() })
    }
}

/// An answer: a header that depends on the table, then attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) header: Vec<u8>,
    pub(crate) attributes: Vec<DefaultNla>,
}

impl Message {
    fn parse(payload: &[u8], header: usize) -> Result<Self, DecodeError> {
        let (header, rest) = payload
            .split_at_checked(header)
            .ok_or_else(|| DecodeError::from("a netlink message without its header"))?;
        Ok(Self { header: header.to_vec(), attributes: attributes(rest)? })
    }
}

/// The attributes in `bytes`.
pub(crate) fn attributes(bytes: &[u8]) -> Result<Vec<DefaultNla>, DecodeError> {
    NlasIterator::new(bytes).map(|attribute| DefaultNla::parse(&attribute?)).collect()
}

fn encoded(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

/// A netlink socket.
#[derive(Debug)]
struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self { fd, sequence: 0 })
    }

    /// Sends a request of type `kind` and returns the answers, whose headers are as long as the request's.
    fn request(&mut self, kind: u16, header: &[u8], attributes: &[DefaultNla], flags: u16) -> io::Result<Vec<Message>> {
        self.sequence += 1;
        let mut outer = NetlinkHeader::default();
        outer.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        outer.sequence_number = self.sequence;
        let payload = [header, &encoded(attributes)].concat();
        let mut message = NetlinkMessage::new(outer, NetlinkPayload::InnerMessage(Raw { kind, payload }));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(&self.fd, &bytes, SendFlags::empty())?;
        self.answers(header.len())
    }

    /// Reads until the kernel says that it is done: an acknowledgement, or the end of a table.
    fn answers(&self, header: usize) -> io::Result<Vec<Message>> {
        let mut found = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            let (length, _) = recv(&self.fd, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = &buffer[..length];
            while !rest.is_empty() {
                let message = NetlinkMessage::<Raw>::deserialize(rest).map_err(invalid)?;
                let ours = message.header.sequence_number == self.sequence;
                // Messages are aligned to four bytes (NLMSG_ALIGNTO).
                let taken = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
                rest = rest.get(taken..).unwrap_or_default();
                if !ours {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(raw) => {
                        found.push(Message::parse(&raw.payload, header).map_err(invalid)?)
                    }
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(found),
                    NetlinkPayload::Overrun(_) => return Err(invalid("the kernel's answer was cut short")),
                    _ => {}
                }
            }
        }
    }
}

/// Reads a table of rtnetlink, for all address families.
pub(crate) fn table(table: Table) -> io::Result<Vec<Message>> {
    Socket::open(NETLINK_ROUTE)?.request(table.request, &vec![0; table.header], &[], NLM_F_DUMP)
}

/// What the kernel says of the route to one destination (`RTM_GETROUTE`).
pub(crate) fn route(header: &[u8], attributes: &[DefaultNla]) -> io::Result<Vec<Message>> {
    debug_assert_eq!(header.len(), ROUTES.header);
    Socket::open(NETLINK_ROUTE)?.request(ROUTES.request, header, attributes, 0)
}

/// A socket that talks to one family of generic netlink.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    family: u16,
}

impl Connection {
    /// Connects to the family `name`. `NotFound`: this kernel does not have it.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let mut connection = Self { socket: Socket::open(Some(netlink::GENERIC))?, family: CONTROL };
        let name = DefaultNla::new(CONTROL_FAMILY_NAME, [name.as_bytes(), &[0]].concat());
        let answers = connection.command(CONTROL_GET_FAMILY, &[name])?;
        let id = answers.iter().flat_map(|answer| &answer.attributes).find_map(|attribute| {
            let bytes = value(attribute, CONTROL_FAMILY_ID)?;
            Some(u16::from_ne_bytes(bytes.try_into().ok()?))
        });
        connection.family = id.ok_or(io::ErrorKind::NotFound)?;
        Ok(connection)
    }

    /// Sends a command and returns the answers; the kernel's refusal is the error.
    pub(crate) fn command(&mut self, command: u8, attributes: &[DefaultNla]) -> io::Result<Vec<Message>> {
        self.request(command, attributes, 0)
    }

    /// Asks for all entries of a table.
    pub(crate) fn dump(&mut self, command: u8) -> io::Result<Vec<Message>> {
        self.request(command, &[], NLM_F_DUMP)
    }

    fn request(&mut self, command: u8, attributes: &[DefaultNla], flags: u16) -> io::Result<Vec<Message>> {
        // struct genlmsghdr: command, version, two reserved bytes.
        self.socket.request(self.family, &[command, 1, 0, 0], attributes, flags)
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The value of `attribute`, if it is of this kind.
pub(crate) fn value(attribute: &DefaultNla, kind: u16) -> Option<Vec<u8>> {
    use netlink_packet_core::{NLA_TYPE_MASK, Nla as _};
    (attribute.kind() & NLA_TYPE_MASK == kind).then(|| {
        let mut bytes = vec![0; attribute.value_len()];
        attribute.emit_value(&mut bytes);
        bytes
    })
}

/// The attributes as bytes, to be nested in another.
pub(crate) fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind | netlink_packet_core::NLA_F_NESTED, encoded(attributes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_the_wire() {
        let inner = [DefaultNla::new(2, vec![7]), DefaultNla::new(3, vec![10, 0, 0, 1])];
        let outer = [nested(1, &inner), DefaultNla::new(5, vec![])];
        let bytes = [&[3, 1, 0, 0], encoded(&outer).as_slice()].concat();
        let back = Message::parse(&bytes, 4).unwrap();
        assert_eq!((back.header.as_slice(), back.attributes.as_slice()), ([3, 1, 0, 0].as_slice(), outer.as_slice()));
        assert_eq!(attributes(&value(&back.attributes[0], 1).unwrap()).unwrap(), inner);
    }

    #[test]
    fn cut_messages_are_errors() {
        assert!(Message::parse(&[1, 2], 4).is_err());
        // An attribute that claims 200 bytes.
        assert!(Message::parse(&[1, 1, 0, 0, 200, 0, 1, 0], 4).is_err());
    }

    #[test]
    fn families_are_found_by_name() {
        // The control family knows itself, on every kernel.
        assert_eq!(Connection::open("nlctrl").unwrap().family, CONTROL);
        assert_eq!(Connection::open("no_such_family").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
