//! An event loop over mio: sockets, listeners, timers and a mailbox from other threads.
#![doc = include_str!("../README.md")]

mod doze;
mod event;
mod event_loop;
mod fault;
mod listen;
mod listeners;
mod mailbox;
mod names;
mod os;
mod platform;
mod ready;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(target_os = "linux")]
mod sys;

pub use event::{Accept, Event, ListenerId, ListenerStats};
pub use event_loop::{EventLoop, LISTENERS_MAX, LoopConfig, TOKEN_MAX};
pub use listen::{BACKLOG_MIN, ListenConfig, ListenError, bind, bind_unix, bind_workers};
pub use mailbox::{Closed, Mailbox, Sender};
pub use os::{Mio, MioListener, MioStream, MioWaker};
pub use platform::{Peer, Platform, Stream, Wake};
pub use ready::Ready;
#[cfg(feature = "sim")]
pub use sim::Sim;
