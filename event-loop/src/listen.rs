//! Opening listening sockets with the options a server wants.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

/// The shortest queue of connections not accepted yet. The system may cut it to its own bound
/// (`net.core.somaxconn` on Linux). Chosen: a burst of a thousand clients finds room while a worker is in one turn.
pub const BACKLOG_MIN: u32 = 1_024;

/// How a TCP listener is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenConfig {
    /// Whether other listeners of the same user may have the same address, each getting its share of the newcomers
    /// (`SO_REUSEPORT`). Default: no. See [`bind_workers`].
    pub reuse_port: bool,
    /// Newcomers that may wait to be accepted; raised to [`BACKLOG_MIN`]. Default: 4 096.
    pub backlog: u32,
    /// For IPv6 addresses: `Some(true)` takes IPv6 clients alone, `Some(false)` takes IPv4 clients too, and `None`
    /// is `Some(false)`, whatever the system's own default is. It makes a difference for `[::]` only. Default:
    /// `None`.
    pub only_v6: Option<bool>,
    /// Whether accepted streams send small writes at once (`TCP_NODELAY`). Default: yes.
    pub nodelay: bool,
    /// Keep-alive of accepted streams: the first probe after this long without traffic, and the time between
    /// probes, in whole seconds. Default: none.
    pub keepalive: Option<(Duration, Duration)>,
    /// On Linux, leaves a newcomer in the system's hands until it has sent something, for this long at most
    /// (rounded up by the system to one of 1, 3, 7, 15 … seconds). Only for protocols in which the client speaks
    /// first: the accepted stream can then be read at once. Default: none.
    pub defer_accept: Option<Duration>,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            reuse_port: false,
            backlog: 4_096,
            only_v6: None,
            nodelay: true,
            keepalive: None,
            defer_accept: None,
        }
    }
}

impl ListenConfig {
    /// Sets what can be set on any listening socket, also on an inherited one. Linux hands all of it on to the
    /// accepted streams.
    pub(crate) fn apply(&self, listener: &TcpListener) -> io::Result<()> {
        let socket = SockRef::from(listener);
        socket.set_tcp_nodelay(self.nodelay)?;
        if let Some((idle, interval)) = self.keepalive {
            let probes = TcpKeepalive::new().with_time(idle).with_interval(interval);
            socket.set_tcp_keepalive(&probes)?;
        }
        #[cfg(target_os = "linux")]
        if let Some(patience) = self.defer_accept {
            // Whole seconds, rounded up: 0 would turn it off.
            let seconds = patience.as_secs() + u64::from(patience.subsec_nanos() > 0);
            let seconds = i32::try_from(seconds.max(1)).unwrap_or(i32::MAX);
            crate::sys::set_defer_accept(listener, seconds)?;
        }
        Ok(())
    }
}

/// Why a listener can't be opened: inside the [`io::Error`] that [`bind`] and the others return.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The system refuses the address.
    #[error("cannot listen on {addr}: {source}")]
    Tcp {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The address is an IPv6 one and this host has no IPv6.
    #[error("cannot listen on {addr}: this host has no IPv6; use an IPv4 address such as 0.0.0.0")]
    NoIpv6 {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The system refuses the path, or something that isn't an abandoned socket lies there.
    #[error("cannot listen on {path}: {source}")]
    Unix {
        /// The path asked for.
        path: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// Opens a TCP listener: non-blocking, close-on-exec, and with `SO_REUSEADDR`, so that a restart isn't held up by
/// connections of the process before. Port 0 takes a free one.
///
/// # Errors
/// An [`io::Error`] of the system's kind around a [`ListenError`] that names the address.
pub fn bind(addr: SocketAddr, config: &ListenConfig) -> io::Result<TcpListener> {
    open(addr, config).map_err(|source| explain(addr, source))
}

/// Says in words what an address can't be used for.
fn explain(addr: SocketAddr, source: io::Error) -> io::Error {
    let kind = source.kind();
    let is_local = addr.ip().is_unspecified() || addr.ip().is_loopback();
    let lacks_ipv6 = source.raw_os_error() == Some(EAFNOSUPPORT)
        || is_local && kind == io::ErrorKind::AddrNotAvailable;
    let error = if addr.is_ipv6() && lacks_ipv6 {
        ListenError::NoIpv6 { addr, source }
    } else {
        ListenError::Tcp { addr, source }
    };
    io::Error::new(kind, error)
}

/// "Address family not supported": std has no kind for it.
#[cfg(target_os = "linux")]
const EAFNOSUPPORT: i32 = 97;
#[cfg(not(target_os = "linux"))]
const EAFNOSUPPORT: i32 = 47;

fn open(addr: SocketAddr, config: &ListenConfig) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if config.reuse_port {
        socket.set_reuse_port(true)?;
    }
    if addr.is_ipv6() {
        socket.set_only_v6(config.only_v6.unwrap_or(false))?;
    }
    socket.bind(&SockAddr::from(addr))?;
    let backlog = config.backlog.max(BACKLOG_MIN);
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    let listener = TcpListener::from(socket);
    config.apply(&listener)?;
    Ok(listener)
}

/// Opens one listener per worker on one address, so that the system shares the newcomers out.
///
/// With `SO_REUSEPORT` each has a queue of its own. Since any process of the same user could join such an address
/// unnoticed, it is first opened once without: somebody else's listener there is an error. Where the system lacks
/// the option, all are the same socket. `config.reuse_port` is ignored, and port 0 takes one free port for all.
///
/// # Errors
/// As for [`bind`].
///
/// # Panics
/// If `workers` is 0.
pub fn bind_workers(
    addr: SocketAddr,
    config: &ListenConfig,
    workers: usize,
) -> io::Result<Vec<TcpListener>> {
    assert!(workers > 0, "at least one worker listens");
    let alone = ListenConfig {
        reuse_port: false,
        ..config.clone()
    };
    let shared = ListenConfig {
        reuse_port: true,
        ..config.clone()
    };
    if workers == 1 {
        return Ok(vec![bind(addr, &alone)?]);
    }
    if addr.port() != 0 {
        drop(bind(addr, &alone)?);
    }
    let mut listeners = Vec::with_capacity(workers);
    let Ok(first) = bind(addr, &shared) else {
        let first = bind(addr, &alone)?;
        for _ in 1..workers {
            listeners.push(first.try_clone()?);
        }
        listeners.push(first);
        return Ok(listeners);
    };
    let addr = first.local_addr()?;
    listeners.push(first);
    for _ in 1..workers {
        listeners.push(bind(addr, &shared)?);
    }
    Ok(listeners)
}

/// Opens a Unix listener at `path`, with the file permissions `mode` (such as `0o660`): non-blocking and
/// close-on-exec. Nobody can connect before the permissions are set.
///
/// A socket file that an earlier process left behind, to which nobody listens, is replaced; anything else at `path`
/// stays. The file isn't removed when the listener is dropped.
///
/// # Errors
/// `AddrInUse` when somebody listens there, `AlreadyExists` when it isn't a socket; else as the system says. Each
/// around a [`ListenError`] that names the path.
pub fn bind_unix(path: impl AsRef<Path>, mode: u32) -> io::Result<UnixListener> {
    let path = path.as_ref();
    open_unix(path, mode).map_err(|source| {
        io::Error::new(
            source.kind(),
            ListenError::Unix {
                path: path.display().to_string(),
                source,
            },
        )
    })
}

fn open_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    remove_abandoned(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before `listen`: until then each connect is refused, so there is no moment with wider permissions.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(i32::try_from(ListenConfig::default().backlog).unwrap_or(i32::MAX))?;
    Ok(UnixListener::from(std::os::fd::OwnedFd::from(socket)))
}

/// Removes the socket file at `path` if nobody listens to it.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !kind.is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something other than a socket is there",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Somebody listens, or may: a full queue and a lack of permission say so too.
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_ipv6_is_said_to_be_one() {
        let any: SocketAddr = "[::]:80".parse().unwrap();
        let loopback: SocketAddr = "[::1]:80".parse().unwrap();
        // With the protocol switched off, and in a network namespace that has no address yet.
        let errors = [
            (any, io::Error::from_raw_os_error(EAFNOSUPPORT)),
            (loopback, io::ErrorKind::AddrNotAvailable.into()),
        ];
        for (addr, error) in errors {
            let text = explain(addr, error).to_string();
            let expected = format!(
                "cannot listen on {addr}: this host has no IPv6; use an IPv4 address such as 0.0.0.0"
            );
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn an_address_of_another_host_is_not_blamed_on_ipv6() {
        let addr: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        let error = explain(addr, io::ErrorKind::AddrNotAvailable.into());
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        let text = error.to_string();
        assert!(
            text.starts_with("cannot listen on [2001:db8::1]:80: "),
            "{text}"
        );
        assert!(!text.contains("no IPv6"), "{text}");
        let source = error.get_ref().and_then(|error| error.source());
        assert!(source.is_some(), "the system's own error is kept");
    }
}
