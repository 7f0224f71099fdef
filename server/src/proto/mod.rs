//! The protocols of a connection, free of sockets, clocks and threads: bytes and `now` in, bytes and steps out.

pub(crate) mod detect;
pub(crate) mod frames;
pub(crate) mod http;
