//! Which interfaces lead out: those with a default route, as the kernel tells, and when that changes.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use tokio::io::unix::AsyncFd;

use crate::fd;

/// Multicast groups of NETLINK_ROUTE (rtnetlink(7)): links, IPv4 addresses and routes, IPv6 addresses and routes.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Hears when interfaces, addresses or routes change.
#[derive(Debug)]
pub(crate) struct Changes {
    socket: AsyncFd<OwnedFd>,
}

impl Changes {
    /// Subscribes. Must be called in the runtime that awaits it.
    pub(crate) fn subscribe() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Self { socket: fd::readable(socket)? })
    }

    /// Waits for a change. What changed is read from the kernel's tables: the messages are only a sign.
    pub(crate) async fn changed(&self) -> io::Result<()> {
        loop {
            let mut ready = self.socket.readable().await?;
            let mut any = false;
            let mut message = [0_u8; 8192];
            loop {
                match recv(self.socket.get_ref(), &mut message, RecvFlags::empty()) {
                    // Overflow means that messages were missed: a change all the same.
                    Ok(_) | Err(rustix::io::Errno::NOBUFS) => any = true,
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            ready.clear_ready();
            if any {
                return Ok(());
            }
        }
    }
}

/// The interfaces with a default route for addresses like `server`, in the kernel's order.
pub(crate) fn with_default_route(server: IpAddr) -> Vec<String> {
    let (table, parse): (_, fn(&str) -> Option<&str>) = match server {
        IpAddr::V4(_) => ("/proc/net/route", default_v4),
        IpAddr::V6(_) => ("/proc/net/ipv6_route", default_v6),
    };
    let table = std::fs::read_to_string(table).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for name in table.lines().filter_map(parse) {
        if !names.iter().any(|held| held == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// RTF_UP and RTF_REJECT of a route's flags.
fn usable(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 0x1 != 0 && flags & 0x200 == 0)
}

/// `/proc/net/route`: interface, destination, gateway, flags, three counters, mask.
fn default_v4(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let is_default = *fields.get(1)? == "00000000" && *fields.get(7)? == "00000000";
    (is_default && usable(fields.get(3)?)).then(|| fields[0])
}

/// `/proc/net/ipv6_route`: destination, its length, source, its length, next hop, three counters, flags, interface.
fn default_v6(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let is_default = fields.first()?.chars().all(|c| c == '0') && *fields.get(1)? == "00";
    let name = *fields.get(9)?;
    (is_default && usable(fields.get(8)?) && name != "lo").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_found() {
        assert_eq!(default_v4("eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0"), Some("eth0"));
        assert_eq!(default_v4("eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0"), None);
        // Half of all addresses, a route that is down, and one that refuses.
        assert_eq!(default_v4("eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000080\t0\t0\t0"), None);
        assert_eq!(default_v4("eth0\t00000000\t0102A8C0\t0002\t0\t0\t100\t00000000\t0\t0\t0"), None);
        assert_eq!(default_v4("*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0"), None);
        assert_eq!(default_v4("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask"), None);
        assert_eq!(default_v4(""), None);
        let zero = "0".repeat(32);
        let v6 = |flags, name| format!("{zero} 00 {zero} 00 {zero} 00000400 00000001 00000000 {flags} {name}");
        assert_eq!(default_v6(&v6("00000003", "wlan0")), Some("wlan0"));
        assert_eq!(default_v6(&v6("00200200", "lo")), None);
        assert_eq!(default_v6(&v6("00000003", "lo")), None);
        assert_eq!(default_v6(&v6("00000003", "wlan0").replacen(" 00 ", " 01 ", 1)), None);
        assert_eq!(default_v6(&v6("00000003", "wlan0").replacen('0', "2", 1)), None);
        assert_eq!(default_v6("x"), None);
    }
}
