//! Requests to the kernel's network configuration, one at a time, in the namespace of the calling thread.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use crate::system::{During, SystemError};

/// Room for the kernel's answers: it fills at most 32 KiB.
const ANSWER: usize = 1 << 16;

/// A connection to the kernel.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A connection for `protocol`: one of the constants of `rustix::net::netlink`, or `None` for devices, addresses and routes
    /// (`NETLINK_ROUTE` is number 0).
    pub(crate) fn open(protocol: Option<Protocol>) -> Result<Self, SystemError> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol);
        let socket = socket.during("open a netlink socket")?;
        bind(&socket, &SocketAddrNetlink::new(0, 0)).during("open a netlink socket")?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request and returns the answers, without the final acknowledgement.
    pub(crate) fn request<T>(&mut self, payload: T, flags: u16, action: &'static str) -> Result<Vec<T>, SystemError>
    where
        T: NetlinkSerializable + NetlinkDeserializable + Debug,
    {
        let mut request = NetlinkMessage::new(Default::default(), NetlinkPayload::InnerMessage(payload));
        self.sequence += 1;
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        send(&self.socket, &bytes, SendFlags::empty()).during(action)?;
        self.answers().during(action)
    }

    /// Reads up to the acknowledgement.
    fn answers<T: NetlinkDeserializable + Debug>(&self) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        let mut buffer = vec![0; ANSWER];
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = &buffer[..length];
            while !rest.is_empty() {
                let answer = NetlinkMessage::<T>::deserialize(rest).map_err(io::Error::other)?;
                // Messages are aligned to four octets (netlink(7), NLMSG_ALIGN).
                let taken = usize::try_from(answer.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
                rest = rest.get(taken..).unwrap_or_default();
                match answer.payload {
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(found),
                    NetlinkPayload::InnerMessage(message) => found.push(message),
                    _ => {}
                }
            }
        }
    }
}
