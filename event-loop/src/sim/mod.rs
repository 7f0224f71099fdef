//! A deterministic world in memory: sockets, listeners, a clock and wake-ups, driven from one seed.
//!
//! Whatever runs on an [`EventLoop`](crate::EventLoop) that is generic over its [`Platform`](crate::Platform) runs
//! in it unchanged, without a network, a sleep or a descriptor. The world cuts reads and writes anywhere, says
//! `WouldBlock` at any call, delays and reorders readiness, makes events for nothing and for streams that are gone,
//! and still keeps what an edge-triggered system promises, so that a stream which hangs in it may hang for real.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use pumice_event_loop::sim::{Flow, World, seeds};
//! use pumice_event_loop::{Accept, Event, EventLoop, Platform, Stream};
//!
//! /// The code under test: counts the bytes a client sends and, at the end, answers with their number.
//! fn serve_one<P: Platform>(event_loop: &mut EventLoop<P>) -> std::io::Result<()> {
//!     let mut conn = None;
//!     let mut count = 0;
//!     loop {
//!         event_loop.poll(None)?;
//!         for event in event_loop.events().to_vec() {
//!             if let Event::Listener { id } = event
//!                 && let Accept::Stream(mut stream) = event_loop.accept(id)?
//!             {
//!                 event_loop.register(&mut stream, 1)?;
//!                 conn = Some(stream);
//!             }
//!         }
//!         let Some(stream) = &mut conn else { continue };
//!         let mut buf = [0; 16];
//!         while let Ok(len) = stream.read(&mut buf) {
//!             count += len;
//!             if len == 0 {
//!                 // One byte can't be cut, but it can be refused: then an event says when to try again.
//!                 if stream.write(&[count as u8]).is_ok() {
//!                     return Ok(());
//!                 }
//!                 break;
//!             }
//!         }
//!     }
//! }
//!
//! for seed in seeds(20) {
//!     let world = World::new(seed);
//!     let addr = "10.0.0.1:80".parse().unwrap();
//!     let mut event_loop = EventLoop::with_platform(world.platform()).unwrap();
//!     event_loop.listen(world.listener(addr)).unwrap();
//!
//!     let mut client = world.connect(addr).unwrap();
//!     client.send(b"forty bytes, cut by the world as it likes").unwrap();
//!     client.finish();
//!     serve_one(&mut event_loop).unwrap();
//!
//!     world.settle();
//!     let mut answer = Vec::new();
//!     assert_eq!(client.receive(&mut answer).unwrap(), Flow::Ended);
//!     assert_eq!(answer, [41]);
//! }
//! ```
//!
//! What it doesn't have: lost or repeated segments (TCP hides them), addresses in use, and errors of options.

mod calls;
mod client;
mod faults;
mod link;
mod network;
mod pipe;
mod platform;
mod rng;
mod world;

pub use client::{Client, Flow};
pub use faults::Faults;
pub use platform::{Sim, SimListener, SimStream, SimWaker};
pub use rng::Rng;
pub use world::{Clock, SEED_VARIABLE, World, seeds};
