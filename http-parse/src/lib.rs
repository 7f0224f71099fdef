//! A strict, resumable HTTP/1.1 request parser that knows nothing of sockets.
#![doc = include_str!("../README.md")]

mod body;
mod bytes;
mod error;
mod framing;
mod head;
mod known;
mod limits;
mod method;
mod parser;
mod query;
mod target;

pub use crate::{
    body::{BodyDecoder, Decoded},
    error::Error,
    framing::Framing,
    head::{Head, RequestHead},
    known::Known,
    limits::Limits,
    method::{Method, Version},
    parser::HeadParser,
    query::{QueryPairs, percent_decode, percent_decode_strict},
};

#[cfg(test)]
mod tests;
