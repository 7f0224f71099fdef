//! Whose fault a failed accept is, which decides what follows.

use std::io;

/// Whose fault a failed accept is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nobody waits.
    Empty,
    /// A signal's: once more.
    Signal,
    /// The newcomer's, or its network's: on to the next one.
    Newcomer,
    /// The process or the system has run out of something: rest.
    Exhausted,
    /// The listener's: told to the caller.
    Listener,
}

/// No descriptor left in the system. The same number on Linux, macOS and the BSDs; std has no stable kind for it.
const ENFILE: i32 = 23;
/// No descriptor left in the process. The same number everywhere, too.
pub(crate) const EMFILE: i32 = 24;
#[cfg(target_os = "linux")]
const ENOBUFS: i32 = 105;
#[cfg(not(target_os = "linux"))]
const ENOBUFS: i32 = 55;
/// Errors of a newcomer's network that Linux's accept passes on and std has no kind for: ENONET, EPROTO,
/// ENOPROTOOPT, EHOSTDOWN.
#[cfg(target_os = "linux")]
const PASSED_ON: [i32; 4] = [64, 71, 92, 112];
/// EPROTO on FreeBSD and on macOS.
#[cfg(not(target_os = "linux"))]
const PASSED_ON: [i32; 2] = [92, 100];

impl Fault {
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(ENFILE | EMFILE | ENOBUFS) => return Self::Exhausted,
            Some(code) if PASSED_ON.contains(&code) => return Self::Newcomer,
            _ => {}
        }
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Empty,
            io::ErrorKind::Interrupted => Self::Signal,
            io::ErrorKind::OutOfMemory => Self::Exhausted,
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            // A firewall's rule on Linux.
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TimedOut => Self::Newcomer,
            _ => Self::Listener,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_accept_has_its_consequence() {
        let kinds = [
            (io::ErrorKind::WouldBlock, Fault::Empty),
            (io::ErrorKind::ConnectionAborted, Fault::Newcomer),
            (io::ErrorKind::Interrupted, Fault::Signal),
            (io::ErrorKind::OutOfMemory, Fault::Exhausted),
            (io::ErrorKind::InvalidInput, Fault::Listener),
        ];
        for (kind, fault) in kinds {
            assert_eq!(Fault::of(&io::Error::from(kind)), fault, "{kind}");
        }
        for code in [ENFILE, EMFILE, ENOBUFS] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(Fault::of(&error), Fault::Exhausted, "{error}");
        }
        for code in PASSED_ON {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(Fault::of(&error), Fault::Newcomer, "{error}");
        }
    }
}
