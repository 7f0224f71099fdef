//! Where a server listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on: TCP, or a Unix socket.
///
/// Written `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/run/app.sock`. Port 0 takes a free one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// What can't be listened on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot listen on {text:?}: write HOST:PORT, [IPV6]:PORT or unix:PATH, with http:// or frames:// before it for one protocol only, \
     and a host that can be looked up"
)]
pub struct AddressError {
    /// What was given.
    pub text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    /// Names are looked up, which may block; the first address that a name has is taken.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || AddressError {
            text: text.to_owned(),
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(fail())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        if let Ok(addr) = text.parse() {
            return Ok(Self::Tcp(addr));
        }
        let mut found = text.to_socket_addrs().map_err(|_| fail())?;
        found.next().map(Self::Tcp).ok_or_else(fail)
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Self {
        Self::Tcp(addr)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What a listener of a store takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenProtocol {
    /// Both; a connection's first byte tells which.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http,
    /// The wire protocol only.
    Frames,
}

/// An address and what is spoken there: `127.0.0.1:9000` takes both protocols, `http://…` and `frames://…` one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// What.
    pub protocol: ListenProtocol,
}

impl FromStr for Endpoint {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (protocol, address) = if let Some(rest) = text.strip_prefix("http://") {
            (ListenProtocol::Http, rest)
        } else if let Some(rest) = text.strip_prefix("frames://") {
            (ListenProtocol::Frames, rest)
        } else {
            (ListenProtocol::Auto, text)
        };
        let address = address.parse().map_err(|_| AddressError {
            text: text.to_owned(),
        })?;
        Ok(Self { address, protocol })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_written_as_it_is_read() {
        let tcp: SocketAddr = "127.0.0.1:9000".parse().expect("an address");
        let cases = [
            ("127.0.0.1:9000", ListenProtocol::Auto, Address::Tcp(tcp)),
            (
                "http://127.0.0.1:9000",
                ListenProtocol::Http,
                Address::Tcp(tcp),
            ),
            (
                "frames://127.0.0.1:9000",
                ListenProtocol::Frames,
                Address::Tcp(tcp),
            ),
            (
                "unix:/run/p.sock",
                ListenProtocol::Auto,
                Address::Unix("/run/p.sock".into()),
            ),
        ];
        for (text, protocol, address) in cases {
            assert_eq!(text.parse(), Ok(Endpoint { address, protocol }), "{text}");
        }
        for text in [
            "",
            "9000",
            "unix:",
            "127.0.0.1",
            "https://127.0.0.1:1",
            "http://",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
