//! The network configuration of the two namespaces.
//!
//! The client's address says which path a packet takes, in both directions. At the server that is an ordinary route to each of
//! the client's addresses. At the client the source address must decide, which takes a routing table and a rule for each path:
//! by itself a source address does not choose the device that a packet leaves by.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::system::{During, SystemError};
use crate::tun::device::Device;
use crate::tun::error::TunError;
use crate::tun::mptcp::PathManager;
use crate::tun::netlink::Netlink;
use crate::tun::plan::PathPlan;

/// The loopback device is the first of every namespace.
const LOOPBACK: u32 = 1;
/// The routing table of the first path; tables below 253 are free.
const FIRST_TABLE: u32 = 101;

/// An end of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Sets up the namespace of the calling thread and returns its devices, one a path.
pub(crate) fn set_up(side: Side, paths: &[PathPlan]) -> Result<Vec<Device>, TunError> {
    set_sysctls()?;
    let mut netlink = Netlink::open(None)?;
    bring_up(&mut netlink, LOOPBACK)?;
    let mut devices = Vec::new();
    for (number, path) in (0..).zip(paths) {
        let device = Device::create(path)?;
        let (local, peer) = match side {
            Side::Client => (path.client, path.server),
            Side::Server => (path.server, path.client),
        };
        add_address(&mut netlink, device.index, local, peer)?;
        if side == Side::Client {
            let table = FIRST_TABLE + number;
            add_default_route(&mut netlink, device.index, table)?;
            add_rule(&mut netlink, local, table)?;
        }
        devices.push(device);
    }
    Ok(devices)
}

/// Lets a Multipath TCP connection take these paths, one subflow on each, if it begins on the first of them. The client opens the
/// subflows; the server lets it.
pub(crate) fn set_up_mptcp(side: Side, paths: &[(PathPlan, u32)]) -> Result<(), TunError> {
    let mut manager = PathManager::open()?;
    let extra = paths.get(1..).unwrap_or_default();
    manager.set_limits(u32::try_from(extra.len()).unwrap_or(u32::MAX))?;
    if side == Side::Client {
        for (path, device) in extra {
            manager.add_subflow(path.client, *device, path.backup)?;
        }
    }
    Ok(())
}

/// No IPv6, whose neighbour discovery would put packets of its own on the links; and no filter of reverse paths, which a
/// namespace may inherit and which has no use here.
fn set_sysctls() -> Result<(), SystemError> {
    let values = [
        ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"),
        ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"),
        ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
        ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
    ];
    for (file, value) in values {
        match fs::write(file, value) {
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.during("set a sysctl of the namespace")?,
        }
    }
    Ok(())
}

fn bring_up(netlink: &mut Netlink, index: u32) -> Result<(), SystemError> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.request(RouteNetlinkMessage::SetLink(message), 0, "bring a device up").map(drop)
}

/// Gives a device its address and the address at the other end of it, which makes a route to that, too.
fn add_address(netlink: &mut Netlink, index: u32, local: Ipv4Addr, peer: Ipv4Addr) -> Result<(), SystemError> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = 32;
    message.header.index = index;
    message.attributes = vec![AddressAttribute::Local(IpAddr::V4(local)), AddressAttribute::Address(IpAddr::V4(peer))];
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    netlink.request(RouteNetlinkMessage::NewAddress(message), flags, "give a device its address").map(drop)
}

fn add_default_route(netlink: &mut Netlink, index: u32, table: u32) -> Result<(), SystemError> {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        protocol: RouteProtocol::Boot,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Table(table), RouteAttribute::Oif(index)];
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    netlink.request(RouteNetlinkMessage::NewRoute(message), flags, "add a route").map(drop)
}

/// Packets from `source` look for their route in `table` first.
fn add_rule(netlink: &mut Netlink, source: Ipv4Addr, table: u32) -> Result<(), SystemError> {
    let mut message = RuleMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.src_len = 32;
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![RuleAttribute::Source(IpAddr::V4(source)), RuleAttribute::Table(table)];
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    netlink.request(RouteNetlinkMessage::NewRule(message), flags, "add a routing rule").map(drop)
}
