//! Network interfaces as paths: their addresses, and whether they lead out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::DefaultNla;
use serde::Serialize;

use crate::netlink::{self, ADDRESSES, LINKS, Message, ROUTES};
use crate::sysctl;

/// `IFLA_IFNAME` (rtnetlink(7)).
const LINK_NAME: u16 = 3;
/// `IFF_UP` and `IFF_RUNNING` (netdevice(7)).
const IFF_UP_AND_RUNNING: u32 = 0x1 | 0x40;
/// `IFA_ADDRESS` and `IFA_LOCAL`.
const ADDRESS_ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
/// `RTN_UNICAST`, `RTA_DST`, `RTA_OIF`, `RTA_PREFSRC` and `RTA_MULTIPATH`.
const ROUTE_UNICAST: u8 = 1;
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_SOURCE: u16 = 7;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_MULTIPATH: u16 = 9;

/// An address that connections can leave from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Name of the interface.
    pub interface: String,
    /// Its index.
    #[serde(skip)]
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Whether a default route of the address's family leaves by the interface.
    pub default_route: bool,
    /// Whether connections that leave by the interface do so from this address, of all that it has of the family.
    pub preferred: bool,
    /// Whether packets are dropped that arrive here while the way back is another interface (`rp_filter` = 1).
    pub strict_filter: bool,
}

/// Every address of an interface that is up, but loopback and link-local ones: those lead nowhere.
///
/// # Errors
/// If the kernel does not list them.
pub fn paths() -> io::Result<Vec<Path>> {
    let links: BTreeMap<u32, String> = netlink::table(LINKS)?.iter().filter_map(usable_link).collect();
    let routes: BTreeSet<(u8, u32)> = netlink::table(ROUTES)?.iter().flat_map(default_routes).collect();
    let mut found = Vec::new();
    for (family, index, address) in netlink::table(ADDRESSES)?.iter().filter_map(address) {
        let Some(interface) = links.get(&index).filter(|_| leads_somewhere(address)) else { continue };
        found.push(Path {
            default_route: routes.contains(&(family, index)),
            strict_filter: address.is_ipv4() && strict_filter(interface),
            interface: interface.clone(),
            index,
            address,
            preferred: false,
        });
    }
    found.sort_by_key(|path| (path.index, path.address));
    for group in found.chunk_by_mut(|a, b| (a.index, a.address.is_ipv4()) == (b.index, b.address.is_ipv4())) {
        let source = source(group[0].index, group[0].address.is_ipv4());
        let place = group.iter().position(|path| Some(path.address) == source);
        group[place.unwrap_or(0)].preferred = true;
    }
    Ok(found)
}

/// The address from which the kernel leaves by an interface: it looks at routes, at subnets, at which address is secondary, deprecated or
/// temporary.
fn source(interface: u32, ipv4: bool) -> Option<IpAddr> {
    // Somewhere far away: addresses of documentation (RFC 5737, RFC 3849).
    let (family, far) = if ipv4 {
        (2, Ipv4Addr::new(192, 0, 2, 1).octets().to_vec())
    } else {
        (10, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets().to_vec())
    };
    // struct rtmsg: see default_routes().
    let header = [family, if ipv4 { 32 } else { 128 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let by = DefaultNla::new(ROUTE_INTERFACE, interface.to_ne_bytes().to_vec());
    // There may be no route.
    let answers = netlink::route(&header, &[DefaultNla::new(ROUTE_DESTINATION, far), by]).ok()?;
    let mut attributes = answers.iter().flat_map(|answer| &answer.attributes);
    ip(&attributes.find_map(|attribute| netlink::value(attribute, ROUTE_SOURCE))?)
}

/// An address as netlink has it.
fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let ipv4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    ipv4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Index and name of an interface that is up and has a carrier.
fn usable_link(message: &Message) -> Option<(u32, String)> {
    // struct ifinfomsg: family, padding, type, index, flags, change.
    let index = u32_at(&message.header, 4)?;
    let flags = u32_at(&message.header, 8)?;
    let name = message.attributes.iter().find_map(|attribute| netlink::value(attribute, LINK_NAME))?;
    let name = CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?.to_owned();
    (flags & IFF_UP_AND_RUNNING == IFF_UP_AND_RUNNING).then_some((index, name))
}

/// Family, interface and address.
fn address(message: &Message) -> Option<(u8, u32, IpAddr)> {
    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    let index = u32_at(&message.header, 4)?;
    let of = |kind| message.attributes.iter().find_map(|attribute| netlink::value(attribute, kind));
    // On a point-to-point link the one is the peer's address and the other ours; IPv6 has the first only.
    let bytes = of(ADDRESS_LOCAL).or_else(|| of(ADDRESS_ADDRESS))?;
    Some((message.header[0], index, ip(&bytes)?))
}

/// Family and interface of the default routes in a message, whatever their table: hosts with several uplinks often keep a
/// table for each.
fn default_routes(message: &Message) -> Vec<(u8, u32)> {
    // struct rtmsg: family, destination length, source length, TOS, table, protocol, scope, type, flags.
    let &[family, destination, _, _, _, _, _, kind, ..] = message.header.as_slice() else { return Vec::new() };
    if destination != 0 || kind != ROUTE_UNICAST {
        return Vec::new();
    }
    let of = |kind| message.attributes.iter().find_map(move |attribute| netlink::value(attribute, kind));
    let mut indexes: Vec<u32> = of(ROUTE_INTERFACE).and_then(|bytes| u32_at(&bytes, 0)).into_iter().collect();
    let hops = of(ROUTE_MULTIPATH).unwrap_or_default();
    let mut hops = hops.as_slice();
    // struct rtnexthop: length, flags, hops, index; then attributes.
    while let (Some(length), Some(index)) = (u16_at(hops, 0), u32_at(hops, 4)) {
        indexes.push(index);
        hops = hops.get(usize::from(length.max(8)).next_multiple_of(4)..).unwrap_or_default();
    }
    indexes.into_iter().map(|index| (family, index)).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn leads_somewhere(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local() && ip != Ipv6Addr::UNSPECIFIED,
    }
}

/// The stricter of the setting for all interfaces and the interface's own counts (Linux, ip-sysctl).
fn strict_filter(interface: &str) -> bool {
    let setting = |name| sysctl::number(&["net", "ipv4", "conf", name, "rp_filter"]).unwrap_or(0);
    setting("all").max(setting(interface)) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_what_it_has() {
        // Every machine has a loopback interface with 127.0.0.1, which is no path.
        assert!(netlink::table(LINKS).unwrap().iter().any(|link| u32_at(&link.header, 4) == Some(1)));
        assert!(netlink::table(ADDRESSES).unwrap().iter().filter_map(address).any(|(.., ip)| ip.is_loopback()));
        assert!(paths().unwrap().iter().all(|path| !path.address.is_loopback()));
    }

    #[test]
    fn routes_over_several_hops_lead_out_by_each() {
        let hop = |index: u8| [8, 0, 0, 0, index, 0, 0, 0];
        let multipath = DefaultNla::new(ROUTE_MULTIPATH, [hop(3), hop(4)].concat());
        let message = |destination, attribute| Message {
            header: vec![2, destination, 0, 0, 254, 3, 0, ROUTE_UNICAST, 0, 0, 0, 0],
            attributes: vec![attribute],
        };
        assert_eq!(default_routes(&message(0, multipath.clone())), [(2, 3), (2, 4)]);
        assert_eq!(default_routes(&message(24, multipath)), []);
        assert_eq!(default_routes(&message(0, DefaultNla::new(ROUTE_INTERFACE, vec![5, 0, 0, 0]))), [(2, 5)]);
        // One that refuses packets (RTN_UNREACHABLE) leads nowhere.
        let mut unreachable = message(0, DefaultNla::new(ROUTE_INTERFACE, vec![5, 0, 0, 0]));
        unreachable.header[7] = 7;
        assert_eq!(default_routes(&unreachable), []);
        // The next hop begins at a multiple of four bytes (RTNH_ALIGNTO).
        let odd = [&[9, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0][..], &hop(4)].concat();
        assert_eq!(default_routes(&message(0, DefaultNla::new(ROUTE_MULTIPATH, odd))), [(2, 3), (2, 4)]);
        // A hop that claims to be shorter than its header ends no later than one that does not.
        assert_eq!(default_routes(&message(0, DefaultNla::new(ROUTE_MULTIPATH, vec![0; 16]))).len(), 2);
    }

    #[test]
    fn an_interface_is_usable_when_it_is_up_and_has_a_carrier() {
        let link = |flags: u8| Message {
            header: vec![0, 0, 0, 0, 5, 0, 0, 0, flags, 0, 0, 0, 0, 0, 0, 0],
            attributes: vec![DefaultNla::new(LINK_NAME, b"wlan0\0".to_vec())],
        };
        assert_eq!(usable_link(&link(0x41)), Some((5, "wlan0".to_owned())));
        assert_eq!((usable_link(&link(0x1)), usable_link(&link(0x40))), (None, None));
    }

    #[test]
    fn of_a_link_to_one_neighbour_the_own_address_is_taken() {
        let told = |attributes| address(&Message { header: vec![2, 32, 0, 0, 5, 0, 0, 0], attributes });
        let peers = DefaultNla::new(ADDRESS_ADDRESS, vec![10, 0, 0, 2]);
        let own = DefaultNla::new(ADDRESS_LOCAL, vec![10, 0, 0, 1]);
        assert_eq!(told(vec![peers.clone(), own]), Some((2, 5, [10, 0, 0, 1].into())));
        assert_eq!(told(vec![peers]), Some((2, 5, [10, 0, 0, 2].into())));
    }

    #[test]
    fn only_addresses_that_lead_somewhere_count() {
        for (text, leads) in [
            ("0.0.0.0", false),
            ("::", false),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("10.0.0.1", true),
            ("fe80::1", false),
            ("2001:db8::1", true),
        ] {
            assert_eq!(leads_somewhere(text.parse().unwrap()), leads, "{text}");
        }
    }
}
