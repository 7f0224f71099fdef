//! The one socket option that neither mio, socket2 nor rustix offers: `TCP_DEFER_ACCEPT`.
//!
//! It takes a third off the cost of a short connection: the worker is woken once, for a request, instead of once for
//! a newcomer and once for what it says. This is the only file of the workspace with `unsafe` code.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `IPPROTO_TCP`, from the protocol's number in RFC 9293.
const LEVEL_TCP: c_int = 6;
/// `TCP_DEFER_ACCEPT` in Linux's `tcp.h`, the same on every architecture.
const DEFER_ACCEPT: c_int = 9;

unsafe extern "C" {
    fn setsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *const c_void,
        value_bytes: u32,
    ) -> c_int;
}

/// Leaves newcomers with the system until they have sent something, for about `seconds` at most; 0 turns it off.
pub(crate) fn set_defer_accept(socket: &impl AsFd, seconds: c_int) -> io::Result<()> {
    let value: *const c_int = &raw const seconds;
    // SAFETY: the descriptor is open, since it is borrowed for this call; `value` points to a `c_int` that lives
    // until the call is over, and the length given is that of a `c_int`. The system only reads from it.
    let result = unsafe {
        setsockopt(
            socket.as_fd().as_raw_fd(),
            LEVEL_TCP,
            DEFER_ACCEPT,
            value.cast(),
            size_of::<c_int>() as u32,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
