#![doc = include_str!("../README.md")]

mod frame;
#[cfg(feature = "tephra")]
pub mod tephra;

pub use frame::{Decoder, FrameError, Malformed, PREFIX_BYTES, decode, encode};
