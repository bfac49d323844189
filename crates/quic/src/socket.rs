//! UDP sockets, bound as a path or a listener wants.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Bind;

/// What the system is asked for; it gives what it allows. A burst at a gigabit per second for 20 ms, in kernel accounting.
const BUFFER: usize = 4 << 20;

/// A socket for one path to `remote`.
pub(crate) fn path(bind: &Bind, remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = match bind {
        Bind::Any | Bind::Interface(_) => any,
        Bind::Address(address) => *address,
    };
    if address.is_ipv4() != remote.is_ipv4() {
        let text = format!("{address} and the server's {} are of different families", remote.ip());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let socket = new(remote)?;
    if let Bind::Interface(name) = bind {
        // An address alone does not choose the way out, the device does.
        socket.bind_device(Some(name.as_bytes()))?;
    }
    socket.bind(&SocketAddr::new(address, 0).into())?;
    Ok(socket.into())
}

/// The address that packets of a path to `remote` would leave from now, or why they cannot leave, which QUIC does not
/// tell. Connecting a UDP socket looks it up and sends nothing.
pub(crate) fn source(bind: &Bind, remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = path(bind, remote)?;
    socket.connect(remote)?;
    #[cfg(target_os = "linux")]
    takes_quic(&socket, remote)?;
    socket.local_addr().map(|address| address.ip())
}

/// RFC 9000 s14: a path that does not take datagrams of 1200 bytes cannot be used, and what is too large for it never leaves.
#[cfg(target_os = "linux")]
fn takes_quic(connected: &UdpSocket, remote: SocketAddr) -> io::Result<()> {
    use rustix::net::sockopt;

    // The datagram with the headers of UDP and IP.
    let (mtu, least) = match remote {
        SocketAddr::V4(_) => (sockopt::ip_mtu(connected)?, 1200 + 8 + 20),
        SocketAddr::V6(_) => (sockopt::ipv6_mtu(connected)?, 1200 + 8 + 40),
    };
    if mtu < least {
        let text = format!("packets have at most {mtu} bytes there (MTU), QUIC needs {least}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// A socket that listens. One of IPv6 leaves IPv4 to another if that is to have the same port, `beside_ipv4`; else it takes
/// both, as `net.ipv6.bindv6only` says.
pub(crate) fn listener(address: SocketAddr, beside_ipv4: bool) -> io::Result<UdpSocket> {
    let socket = new(address)?;
    if address.is_ipv6() && beside_ipv4 {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn new(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // Small buffers cost speed, not correctness.
    for result in [socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER)] {
        if let Err(error) = result {
            tracing::debug!(%error, "socket buffer");
        }
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_family_is_named() {
        let remote = SocketAddr::from(([127, 0, 0, 1], 4433));
        let error = path(&Bind::Address(Ipv6Addr::LOCALHOST.into()), remote).unwrap_err();
        assert_eq!(error.to_string(), "::1 and the server's 127.0.0.1 are of different families");
        assert_eq!(source(&Bind::Any, remote).unwrap(), Ipv4Addr::LOCALHOST);
    }
}
