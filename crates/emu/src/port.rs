//! A UDP socket that keeps ECN bits, and the buffers to receive into.

use std::fs;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

use manypath_link::Ecn;
use noq_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

/// Asked for on each socket, so that the kernel does not drop before the model does. The kernel gives what
/// `net.core.rmem_max` allows.
const SOCKET_BUFFER: usize = 8 << 20;
/// Messages read per call. Each may be a train of tens of datagrams (generic receive offload), and nothing is sent while they are
/// put on their link, so a few are enough.
const BATCH: usize = 4;
/// The largest message: what the 16-bit length of UDP allows, rounded up.
const MESSAGE: usize = 1 << 16;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// A datagram as it was received.
#[derive(Debug)]
pub(crate) struct Datagram<'a> {
    /// Who sent it.
    pub(crate) from: SocketAddr,
    /// The local address it was sent to, if the kernel says so.
    pub(crate) to: Option<IpAddr>,
    /// Its ECN bits.
    pub(crate) ecn: Ecn,
    /// Its payload.
    pub(crate) payload: &'a [u8],
}

impl Port {
    /// A socket bound to `local`.
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        let state = UdpSocketState::new((&socket).into())?;
        state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        Ok(Self { socket, state })
    }

    /// A socket on a free port that takes datagrams from `target` alone.
    pub(crate) fn connect(target: SocketAddr) -> io::Result<Self> {
        let any = if target.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let port = Self::bind(SocketAddr::new(any, 0))?;
        port.socket.connect(target)?;
        Ok(port)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends one datagram; `from` chooses the local address where the socket has several.
    pub(crate) fn send(&self, to: SocketAddr, from: Option<IpAddr>, ecn: Ecn, payload: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents: payload,
            segment_size: None,
            src_ip: from,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            // The kernel reports an earlier datagram's "port unreachable" in place of sending this one.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.state.try_send((&self.socket).into(), &transmit)
            }
            result => result,
        }
    }

    /// The number by which `/proc/net/udp` knows the socket.
    pub(crate) fn inode(&self) -> Option<u64> {
        let path = format!("/proc/self/fd/{}", self.socket.as_raw_fd());
        fs::metadata(path).ok().map(|metadata| metadata.ino())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for one batch of messages.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH],
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; BATCH * MESSAGE], metas: [RecvMeta::default(); BATCH] }
    }

    /// Reads what `port` has, up to a batch, without waiting. Errors count as nothing to read: they are either "would block" or
    /// a "port unreachable" that belongs to a datagram sent earlier.
    pub(crate) fn receive(&mut self, port: &Port) -> impl Iterator<Item = Datagram<'_>> {
        let mut chunks = self.bytes.chunks_exact_mut(MESSAGE);
        // `bytes` has exactly BATCH chunks, so the default (an empty slice) is never taken.
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = port.state.recv((&port.socket).into(), &mut slices, &mut self.metas).unwrap_or(0);
        let messages = self.bytes.chunks_exact(MESSAGE).zip(&self.metas).take(received);
        messages.flat_map(|(bytes, meta)| {
            let stride = meta.stride.max(1);
            // An empty datagram is one datagram, too.
            let datagrams = meta.len.div_ceil(stride).max(1);
            let message = &bytes[..meta.len.min(MESSAGE)];
            (0..datagrams).map(move |index| Datagram {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8)),
                payload: &message[(index * stride).min(message.len())..((index + 1) * stride).min(message.len())],
            })
        })
    }
}

/// What the kernel dropped at the sockets with these inodes, for want of buffer space; `None` if it does not tell.
pub(crate) fn kernel_drops(inodes: &[u64]) -> Option<u64> {
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"].map(fs::read_to_string);
    if tables.iter().all(Result::is_err) {
        return None;
    }
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    Some(lines.filter_map(socket_drops).filter(|(inode, _)| inodes.contains(inode)).map(|(_, drops)| drops).sum())
}

/// Inode and drops of a line of `/proc/net/udp` (proc_pid_net(5)): the tenth and the thirteenth column.
fn socket_drops(line: &str) -> Option<(u64, u64)> {
    let mut columns = line.split_ascii_whitespace().skip(9);
    let inode = columns.next()?.parse().ok()?;
    let drops = columns.nth(2)?.parse().ok()?;
    Some((inode, drops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read_by_column() {
        let line =
            "  512: 0100007F:A1B2 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 42242 2 0 17";
        assert_eq!(socket_drops(line), Some((42_242, 17)));
        assert_eq!(socket_drops("sl local_address"), None);
    }

    #[test]
    fn a_socket_that_nobody_reads_has_drops() {
        let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let inode = port.inode().unwrap();
        assert_eq!(kernel_drops(&[inode]), Some(0));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        // More than the largest buffer that an unprivileged program gets, so the kernel has to drop.
        for _ in 0..20_000 {
            sender.send_to(&[0; 1000], port.local_addr().unwrap()).unwrap();
        }
        assert!(kernel_drops(&[inode]).unwrap() > 0);
    }
}
