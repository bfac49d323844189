//! A server with addresses of both families: which one is taken.

use std::net::SocketAddr;
use std::time::Instant;

use manypath_core::Duration;
use manypath_quic::{Bind, ClientConfig, ConnectError, Connection, PathConfig};

/// How long an address may be silent if there is another: two retransmissions of the first packet (RFC 9002 s6.2.2).
const FIRST_TRY: Duration = Duration::from_millis(3500);

/// The addresses that paths bound to addresses can send to; all if that leaves none.
pub(crate) fn in_reach(servers: Vec<SocketAddr>, paths: &[PathConfig]) -> Vec<SocketAddr> {
    let reached_by = |server: &SocketAddr| {
        paths.iter().all(|path| match path.bind {
            Bind::Address(address) => path.remote.is_some() || address.is_ipv4() == server.is_ipv4(),
            _ => true,
        })
    };
    let reached: Vec<SocketAddr> = servers.iter().copied().filter(reached_by).collect();
    if reached.is_empty() { servers } else { reached }
}

/// Tries the addresses in turn, all but the last for a short time: a name may well have an address of a family that this
/// machine's networks do not carry or the server does not listen on. All together have the time to connect.
pub(crate) async fn connect(config: &ClientConfig, servers: &[SocketAddr]) -> Result<Connection, ConnectError> {
    let begun = Instant::now();
    let left = || config.connect_timeout - Duration::from(begun.elapsed());
    let (&last, others) = servers.split_last().unwrap_or((&config.server, &[]));
    for (tried, &server) in others.iter().enumerate() {
        // Where time is short, those to come have as much of it.
        let connect_timeout = FIRST_TRY.min(left() / (servers.len() - tried) as u64);
        match manypath_quic::connect(ClientConfig { server, connect_timeout, ..config.clone() }).await {
            Err(ConnectError::Timeout { detail, .. }) => {
                tracing::info!(%server, detail, "silent; the next address is tried");
            }
            done => return done,
        }
    }
    let timeout = config.connect_timeout;
    let settings = ClientConfig { server: last, connect_timeout: left(), ..config.clone() };
    manypath_quic::connect(settings).await.map_err(|error| match error {
        ConnectError::Timeout { detail, .. } => ConnectError::Timeout { timeout, detail },
        error => error,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use manypath_quic::{Identity, Server, ServerConfig, Trust};

    use super::*;

    #[tokio::test]
    async fn an_address_that_is_silent_is_followed_by_the_next() {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut settings = ServerConfig::default();
        (settings.identity, settings.listen) = (Identity::Ephemeral, vec![local]);
        let server = Server::bind(settings).await.unwrap();
        let silent = UdpSocket::bind(local).unwrap();
        let config = ClientConfig::new(local, Trust::Fingerprint(server.fingerprint()));
        let addresses = [silent.local_addr().unwrap(), server.local_addrs()[0]];
        let connection = connect(&config, &addresses).await.unwrap();
        connection.close(0, "");

        let hurried = ClientConfig { connect_timeout: Duration::from_secs(2), ..config };
        connect(&hurried, &addresses).await.unwrap().close(0, "");
        let error = connect(&hurried, &[addresses[0]; 2]).await.unwrap_err();
        assert!(error.to_string().contains("within 2s"), "{error}");
    }

    #[test]
    fn paths_with_addresses_want_their_family() {
        let [four, six]: [SocketAddr; 2] = ["127.0.0.1:1", "[::1]:1"].map(|text| text.parse().unwrap());
        let bound = |address: &str| vec![PathConfig::new("a", Bind::Address(address.parse().unwrap()))];
        assert_eq!(in_reach(vec![six, four], &bound("10.0.0.2")), [four]);
        assert_eq!(in_reach(vec![six, four], &bound("fe80::1")), [six]);
        assert_eq!(in_reach(vec![six, four], &[]), [six, four]);
        assert_eq!(in_reach(vec![six], &bound("10.0.0.2")), [six]);
    }
}
