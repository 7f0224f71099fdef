//! The event store behind the workers: the traits they know it by, and what carries out their reads.
//!
//! [`Store`] and [`Port`] are the only door: one node on the embedded engine ([`Local`]) and, later, several nodes over
//! a replicated log are the same server. This folder is the only one that names the engine's types, besides the codecs
//! of the wire protocol and of the HTTP API.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use tephra::{AppendCondition, AppendError, Event, Position, ReadHandle};

mod config;
pub(crate) mod cursor;
pub(crate) mod format;
mod local;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod tail;

pub use config::{StoreConfig, StoreConfigError};
pub use local::{Local, OpenError};

/// What a worker calls an append of its own by, until its [`Done`] comes.
pub type Token = u64;

/// Events to append as one, and the condition under which.
#[derive(Clone, Debug)]
pub struct Append {
    /// The events, in order.
    pub events: Vec<Event>,
    /// What must not be in the store.
    pub condition: Option<AppendCondition>,
}

/// The port can take no append now; this is the append back. Stop reading its connection until a [`Done`] frees room.
#[derive(Debug)]
pub struct Full(pub Append);

/// Up to where a node is to hold the log before a read starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// This position or a later one.
    AtLeast(Position),
    /// What any node had acknowledged when this was asked.
    Latest,
}

/// How something that was asked of a [`Port`] ended.
#[derive(Clone, Debug)]
pub enum Done {
    /// The events are durable, at these positions.
    Appended {
        /// The first event's position.
        first: Position,
        /// The last event's position.
        last: Position,
    },
    /// The store refused the append, with the facts; it is not in the store.
    Refused(AppendError),
    /// The append is certainly not in the store, now or later: it may be sent again.
    NotAppended,
    /// The append may be in the store, now or later. The text says why nobody knows.
    Unknown(String),
    /// This node holds what [`Port::reach`] asked for.
    Reached,
}

/// A store's condition, for health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The last durable position; positions start at 1 and are dense, so this is also the number of events.
    pub tip: Position,
    /// Whether appends are carried out.
    pub is_writable: bool,
}

/// An event store, as workers know it.
pub trait Store: Debug + Send + Sync + 'static {
    /// A port for one worker. `wake` may be called from any thread, must not block, and only posts "poll me" to that
    /// worker's mailbox.
    fn port(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Box<dyn Port>;

    /// Reads of what this node holds, on the caller's thread.
    fn reader(&self) -> ReadHandle;

    /// Whether the store works.
    fn status(&self) -> Status;

    /// Stops the store. Blocks until everything it took is durable or `deadline` has passed.
    fn shutdown(&self, deadline: Instant);
}

/// One worker's way to append.
pub trait Port: Debug + Send {
    /// Submits an append. Never blocks. Unless it is [`Full`], exactly one [`Done`] with this token comes out of
    /// [`Port::poll_done`]; not necessarily in the order of the appends.
    ///
    /// # Errors
    /// [`Full`] gives the append back.
    fn append(&mut self, append: Append, token: Token) -> Result<(), Full>;

    /// Asks to be told by [`Done::Reached`] when this node holds `at`, or by [`Done::NotAppended`] that it didn't come to
    /// that before `deadline`. On one node it is so at once.
    fn reach(&mut self, at: ReadAt, deadline: Instant, token: Token);

    /// Moves everything that is done to `out`. Called after each turn of the worker that used the port, when the port
    /// woke its worker, and once a second while anything is in flight, so that a port may notice that nothing will come
    /// any more.
    fn poll_done(&mut self, out: &mut Vec<(Token, Done)>);
}
