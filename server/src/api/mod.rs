//! The HTTP API's values: JSON and query strings in, tephra's types out, and events and errors back as JSON.
//!
//! Everything here is a function of its arguments: bytes come in, values go out, and a refusal is an
//! [`error::ApiError`] that already knows its status, its code and what the client should write instead. Routing,
//! headers, content negotiation and the store are the callers' business.
//!
//! What a request says is read strictly: an unknown or repeated field or parameter, a number that isn't exactly a
//! `u64`, a name that tephra wouldn't take are all answered 400 with the field's path (`events[3].tags[0]`), because a
//! misspelt `failIfEventsMatch` that is silently skipped is an append without its guard.

pub(crate) mod append;
pub(crate) mod encode;
pub(crate) mod error;
mod escape;
mod json;
#[cfg(test)]
mod laws;
pub(crate) mod params;
pub(crate) mod query;
