//! tephra's wire protocol: the messages of package `tephra.v1`, and a server's fast way through them.
//!
//! [`proto`] has the messages as prost generates them, for whoever has time: clients, tests, tools.
//! A server decodes requests with [`decode_request`], which borrows from the frame and builds the
//! engine's own types, and writes its answers with [`EventsFrame`], [`append_ok`] and their
//! like, which put whole frames into the connection's output without a message object between.
//! Both ways give the same bytes and the same verdicts; property tests hold them together.
//!
//! What a request costs: an event of an append is one allocation for its bytes, one for its type and
//! one for each tag, and its payload is copied once. An event of an answer is copied once,
//! from the engine's buffer into the output.

mod append;
mod error;
mod events;
// Every item in it has its comment from the .proto.
mod generated;
mod query;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod wire;

pub use self::append::APPEND_EVENTS_MAX;
pub use self::error::{Invalid, Reason, RequestError, WireFault};
pub use self::events::{EventsFrame, event_fits, put_sequenced, sequenced_len};
pub use self::proto::ErrorCode;
/// The numbers of a server's state, as [`stats`] sends them.
pub use self::proto::StatsResponse as Stats;
pub use self::query::QUERY_TERMS_MAX;
pub use self::request::{Incoming, Received, decode_request};
pub use self::response::{
    ERROR_MESSAGE_BYTES_MAX, append_error, append_ok, caught_up, error, hello_ack, read_end, stats,
};

/// The version of the protocol that Hello and HelloAck name.
pub const PROTOCOL_VERSION: u32 = 1;

/// The messages, as prost generates them.
pub mod proto {
    pub use super::generated::*;
}
