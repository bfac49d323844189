//! Addresses of files: `manypath://HOST[:PORT]/PATH` and `HOST[:PORT]/PATH`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};

/// The port when none is given.
pub(crate) const DEFAULT_PORT: u16 = 4433;

/// The scheme of a URL.
const SCHEME: &str = "manypath://";

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without the brackets of an IPv6 address.
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// A file on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    /// Relative to the served folder.
    pub(crate) path: String,
}

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseTargetError {
    /// There is no slash, or nothing after it.
    #[error("'{0}' names no file: write HOST:PORT/PATH")]
    NoPath(String),
    /// There is nothing before the slash, or something odd.
    #[error("'{0}' does not start with a server: write HOST:PORT, or [ADDRESS]:PORT for IPv6")]
    BadHost(String),
    /// The port is not a number from 1 to 65535.
    #[error("'{0}' is not a port: it is a number from 1 to 65535")]
    BadPort(String),
    /// The scheme is another protocol's.
    #[error("'{0}' is for another program: an address starts with manypath:// or with the server's name")]
    BadScheme(String),
    /// A percent sign is not followed by two hexadecimal digits, or they make no UTF-8.
    #[error("'{0}' has a percent sign that encodes nothing: write %25 for the sign itself")]
    BadEscape(String),
}

impl FromStr for Host {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let bad = || ParseTargetError::BadHost(text.to_owned());
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (name, rest) = rest.split_once(']').ok_or_else(bad)?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(bad)?) };
            (name, port)
        } else {
            match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(bad()),
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            }
        };
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@')) {
            return Err(bad());
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => {
                let number = port.parse().ok().filter(|port| *port > 0);
                number.ok_or_else(|| ParseTargetError::BadPort(port.to_owned()))?
            }
        };
        Ok(Self { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let (rest, is_url) = match text.strip_prefix(SCHEME) {
            Some(rest) => (rest, true),
            None if text.contains("://") => return Err(ParseTargetError::BadScheme(text.to_owned())),
            None => (text, false),
        };
        let (host, path) = rest.split_once('/').ok_or_else(|| ParseTargetError::NoPath(text.to_owned()))?;
        let host = host.parse()?;
        let path = if is_url { unescaped(path)? } else { path.to_owned() };
        if path.is_empty() {
            return Err(ParseTargetError::NoPath(text.to_owned()));
        }
        Ok(Self { host, path })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

/// Replaces `%41` by `A`.
fn unescaped(text: &str) -> Result<String, ParseTargetError> {
    let bad = || ParseTargetError::BadEscape(text.to_owned());
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_first_chunk::<2>().ok_or_else(bad)?;
        let digit = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = digit(digits[0]).zip(digit(digits[1])).ok_or_else(bad)?;
        out.push(high << 4 | low);
        rest = tail;
    }
    String::from_utf8(out).map_err(|_| bad())
}

/// An IPv4 address that is written as an IPv6 one (`::ffff:192.0.2.1`) is that IPv4 address, and reached from such.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

impl Host {
    /// Asks the resolver: the first address of each family, in its order; at least one.
    pub(crate) async fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((self.name.as_str(), self.port)).await;
        let found = found.with_context(|| format!("cannot find '{}': check the name and the resolver", self.name))?;
        let mut first: Vec<SocketAddr> = Vec::new();
        for address in found.map(canonical) {
            if first.iter().all(|other| other.is_ipv4() != address.is_ipv4()) {
                first.push(address);
            }
        }
        if first.is_empty() {
            bail!("'{}' has no address", self.name);
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(name: &str, port: u16, path: &str) -> Target {
        Target { host: Host { name: name.into(), port }, path: path.into() }
    }

    #[tokio::test]
    async fn an_ipv4_address_written_as_ipv6_is_that_address() {
        let resolved = |text: &'static str| async move { text.parse::<Host>().unwrap().resolve().await.unwrap() };
        assert_eq!(resolved("[::ffff:192.0.2.1]:7").await, ["192.0.2.1:7".parse().unwrap()]);
        let scoped = "[fe80::1%2]:7".parse().unwrap();
        assert_eq!(canonical(scoped), scoped);
    }

    #[test]
    fn addresses_of_files() {
        let cases = [
            ("example.org:7000/a/b.iso", target("example.org", 7000, "a/b.iso")),
            ("10.0.0.1/x", target("10.0.0.1", DEFAULT_PORT, "x")),
            ("[2001:db8::1]:70/x", target("2001:db8::1", 70, "x")),
            ("[::1]/x", target("::1", DEFAULT_PORT, "x")),
            ("manypath://h:1/a%20b%C3%A4", target("h", 1, "a bä")),
            ("h/a%20b", target("h", DEFAULT_PORT, "a%20b")),
            ("h//etc/passwd", target("h", DEFAULT_PORT, "/etc/passwd")),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        use ParseTargetError as E;
        let error = |text: &str| text.parse::<Target>().unwrap_err();
        assert!(matches!(error("example.org"), E::NoPath(_)));
        assert!(matches!(error("example.org/"), E::NoPath(_)));
        assert!(matches!(error("/x"), E::BadHost(_)));
        assert!(matches!(error("::1/x"), E::BadHost(_)));
        assert!(matches!(error("h:/x"), E::BadPort(_)));
        assert!(matches!(error("h:0/x"), E::BadPort(_)));
        assert!(matches!(error("h:65536/x"), E::BadPort(_)));
        assert!(matches!(error("https://h/x"), E::BadScheme(_)));
        assert!(matches!(error("manypath://h/%4"), E::BadEscape(_)));
        assert!(matches!(error("manypath://h/%ff"), E::BadEscape(_)));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_parses_back(text in ".{0,40}") {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.to_string().parse(), Ok(target));
            }
        }
    }
}
