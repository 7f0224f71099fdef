#![doc = include_str!("../README.md")]

mod address;
#[cfg(feature = "store")]
mod api;
mod clock;
mod close;
mod config;
mod conn;
mod executor;
mod handler;
mod metrics;
mod outbox;
mod proto;
mod request;
mod response;
mod server;
mod shared;
mod status;
#[cfg(feature = "store")]
mod store;
mod worker;

pub use address::{Address, AddressError, Endpoint, ListenProtocol};
pub use config::{Config, ConfigError};
pub use handler::{Execution, FrameService, Handler, Inline, Reply};
pub use metrics::Totals;
pub use pumice_event_loop::Peer;
pub use pumice_http_parse::{Limits, Method, Version};
pub use request::Request;
pub use response::{FieldError, Response};
#[cfg(feature = "store")]
pub use server::StoreServeError;
pub use server::{Handle, Server};
#[cfg(feature = "store")]
pub use store::{
    Append, Done, Full, Local, OpenError, Port, ReadAt, Status, Store, StoreConfig,
    StoreConfigError, Token,
};
