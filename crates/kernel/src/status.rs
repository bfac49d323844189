//! What controllers that are loaded are doing, as reports show it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use crate::layout::{Connection, Info, Phase};

/// A controller that is loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Controller {
    /// Manypath's name.
    pub name: String,
    /// The kernel's.
    pub kernel_name: String,
    /// Whether sockets take it by themselves.
    pub default: bool,
    /// Its parameters, in the registry's notation.
    pub parameters: BTreeMap<String, String>,
    /// What it has counted since it was loaded (docs/kernel-maps.md).
    pub counters: BTreeMap<&'static str, u64>,
    /// Its Multipath TCP connections, of all network namespaces.
    pub connections: Vec<ConnectionStatus>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionStatus {
    /// Its Multipath TCP token at this end, as `ss -M` shows it: eight hexadecimal digits.
    #[serde(serialize_with = "hexadecimal")]
    pub token: u32,
    /// Its subflows.
    pub subflows: Vec<SubflowStatus>,
}

/// A subflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubflowStatus {
    /// Its place in the connection: weights are given in the order of places.
    pub place: usize,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the other end.
    pub remote: SocketAddr,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Bytes of a packet.
    pub mss: u32,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: u32,
    /// Bits per second: the pacing rate of paced controllers, else window over round-trip time.
    pub rate_bps: u64,
    /// Packets delivered.
    pub delivered: u32,
    /// Packets declared lost.
    pub lost: u32,
    /// What the controller is doing.
    pub phase: &'static str,
    /// Weight.
    pub weight: f64,
    /// Utility of the last monitor interval.
    pub utility: f64,
    /// Monitor intervals finished.
    pub intervals: u32,
    /// Decisions taken on them.
    pub decisions: u32,
    /// When this was written: microseconds of the kernel's monotonic clock.
    pub updated_us: u64,
}

/// A token as `ss` writes it.
fn hexadecimal<S: serde::Serializer>(token: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{token:08x}"))
}

impl ConnectionStatus {
    /// The connection as the map has it.
    pub fn new(token: u32, connection: &Connection) -> Self {
        let subflows = connection.info.iter().enumerate().filter_map(|(place, info)| SubflowStatus::new(place, info));
        Self { token, subflows: subflows.collect() }
    }
}

impl SubflowStatus {
    /// `None` for a place without a subflow.
    fn new(place: usize, info: &Info) -> Option<Self> {
        let address = |bytes: &[u8; 16]| match info.family {
            2 => bytes.first_chunk::<4>().map(|four| IpAddr::from(*four)),
            // A socket of both families holds IPv4 addresses as ::ffff:a.b.c.d: they are the same paths.
            10 => Some(IpAddr::from(*bytes).to_canonical()),
            _ => None,
        };
        Some(Self {
            place,
            local: SocketAddr::new(address(&info.local)?, info.local_port),
            remote: SocketAddr::new(address(&info.remote)?, info.remote_port),
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            mss: info.mss,
            srtt_us: info.srtt_us,
            rate_bps: info.rate.saturating_mul(8),
            delivered: info.delivered,
            lost: info.lost,
            phase: Phase::from_number(info.phase).map_or("unknown", Phase::name),
            weight: f64::from(info.weight_ppm) / 1e6,
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            utility: info.utility_milli as f64 / 1e3,
            intervals: info.intervals,
            decisions: info.decisions,
            updated_us: info.updated_us,
        })
    }

    /// Share of the packets that were lost.
    pub fn loss(&self) -> f64 {
        let all = u64::from(self.delivered) + u64::from(self.lost);
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        if all == 0 { 0.0 } else { f64::from(self.lost) / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_without_a_subflow_are_left_out() {
        let mut connection = Connection::default();
        connection.info[1] = Info {
            family: 2,
            local_port: 40000,
            remote_port: 443,
            local: [10, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            remote: [10, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            rate: 1_250_000,
            delivered: 99,
            lost: 1,
            weight_ppm: 200_000,
            ..Info::default()
        };
        let status = ConnectionStatus::new(0xab, &connection);
        assert_eq!(status.subflows.len(), 1);
        let subflow = &status.subflows[0];
        assert_eq!((subflow.place, subflow.local.to_string().as_str()), (1, "10.1.0.1:40000"));
        assert_eq!((subflow.rate_bps, subflow.phase), (10_000_000, "slow start"));
        assert!((subflow.weight - 0.2).abs() < 1e-12 && (subflow.loss() - 0.01).abs() < 1e-12);
    }

    #[test]
    fn an_ipv4_address_is_the_same_on_a_socket_of_both_families() {
        let mut connection = Connection::default();
        let mapped = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, last];
        connection.info[0] =
            Info { family: 10, local: mapped(1), remote: mapped(2), local_port: 443, ..Info::default() };
        let subflow = &ConnectionStatus::new(0xab, &connection).subflows[0];
        assert_eq!((subflow.local.to_string().as_str(), subflow.remote.ip()), ("10.1.0.1:443", [10, 1, 0, 2].into()));
    }
}
