//! What the tests share: one rig per platform, and an echo server that is written for either.

#![allow(dead_code, unused_imports)] // Each test binary uses its part.

mod echo;
mod rigs;

pub(crate) use echo::{Echo, token_of};
pub(crate) use rigs::{Client, MioRig, Rig, SimRig, State, UnixRig};
