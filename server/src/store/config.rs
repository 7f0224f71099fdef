//! The store's settings.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of the embedded engine and of the wire protocol, with the defaults of tephra-server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Directory of the log and its indexes; made if it isn't there. Default `pumice-data`.
    pub data_dir: PathBuf,
    /// Size of each segment file in bytes, header included. Default 256 MiB.
    pub segment_bytes: usize,
    /// Appends that may wait for the writer, over all workers; each worker owns an equal share. Default 16 384.
    pub queue_capacity: usize,
    /// Most appends in one commit. Default 2 048.
    pub batch_appends_max: usize,
    /// Most bytes in one commit; lowered to what a segment holds. Default 8 MiB.
    pub batch_bytes_max: usize,
    /// How many of the last positions the writer keeps the tags of, which only bounds memory. Default 1 000 000.
    pub tips_window: u64,
    /// How much an index must save over a scan to be used. Default 4.
    pub scan_bias: u32,
    /// Longest frame, in both directions, in bytes. Default 16 MiB; below 352 MiB.
    pub frame_bytes_max: u32,
    /// Most events in one frame of a stream. Default 1 024.
    pub read_batch_events: usize,
    /// A frame of a stream is sent when its events reach this many bytes. Default 512 KiB.
    pub read_batch_bytes: usize,
    /// Threads that carry out reads, over all workers. Default 0: one per core.
    pub read_threads: usize,
    /// Appends of one connection that may be in flight before it is no longer read; as many reads may run, and as many
    /// again wait, before one is refused. Default 256.
    pub inflight_per_connection_max: usize,
    /// Live subscriptions of one connection; one more is refused. Default 64.
    pub subscriptions_per_connection_max: usize,
    /// Connections over all workers; one more is closed at once. 0: no limit. Default 1 024.
    pub connections_max: usize,
    /// How long a frame may stay incomplete from its first byte on. Zero: for ever. Default 30 s.
    pub incomplete_frame_timeout: Duration,
    /// How long a connection may take to say Hello. Zero (the default): on a listener that speaks both protocols
    /// `Config::head_timeout` holds, else for ever.
    pub handshake_timeout: Duration,
    /// How long a connection with nothing in flight may stay silent. Zero (the default): for ever, since clients pool
    /// idle connections.
    pub idle_timeout: Duration,
    /// After how long a silence TCP asks whether the peer is still there. Default 60 s.
    pub keepalive_idle: Duration,
    /// How often it asks then. Default 15 s.
    pub keepalive_interval: Duration,
    /// How often a silent event stream over HTTP gets a comment, which keeps proxies from closing it. Default 15 s.
    pub heartbeat: Duration,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("pumice-data"),
            segment_bytes: 256 * 1024 * 1024,
            queue_capacity: 16_384,
            batch_appends_max: 2_048,
            batch_bytes_max: 8 * 1024 * 1024,
            tips_window: 1_000_000,
            scan_bias: 4,
            frame_bytes_max: 16 * 1024 * 1024,
            read_batch_events: 1_024,
            read_batch_bytes: 512 * 1024,
            read_threads: 0,
            inflight_per_connection_max: 256,
            subscriptions_per_connection_max: 64,
            connections_max: 1_024,
            incomplete_frame_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            keepalive_idle: Duration::from_secs(60),
            keepalive_interval: Duration::from_secs(15),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// A setting that can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store setting {field} must be {expected}")]
pub struct StoreConfigError {
    /// The field's name.
    pub field: &'static str,
    /// What it must be.
    pub expected: &'static str,
}

/// A length prefix that starts like a TLS record would make the protocol ambiguous on a shared port.
pub(crate) const FRAME_BYTES_BOUND: u32 = 0x1600_0000;

impl StoreConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// Names the first field that can't be used.
    pub fn validate(&self) -> Result<(), StoreConfigError> {
        let checks = [
            (self.segment_bytes >= 4_096, "segment_bytes", "4096 or more"),
            (self.queue_capacity >= 1, "queue_capacity", "1 or more"),
            (
                self.batch_appends_max >= 1,
                "batch_appends_max",
                "1 or more",
            ),
            (
                self.batch_bytes_max >= 1_024,
                "batch_bytes_max",
                "1024 or more",
            ),
            (self.scan_bias >= 1, "scan_bias", "1 or more"),
            (
                self.frame_bytes_max >= 1_024,
                "frame_bytes_max",
                "1024 or more",
            ),
            (
                self.frame_bytes_max < FRAME_BYTES_BOUND,
                "frame_bytes_max",
                "below 369098752 (0x16000000)",
            ),
            (
                self.read_batch_events >= 1,
                "read_batch_events",
                "1 or more",
            ),
            (self.read_batch_bytes >= 1, "read_batch_bytes", "1 or more"),
            (
                self.inflight_per_connection_max >= 1,
                "inflight_per_connection_max",
                "1 or more",
            ),
            (!self.heartbeat.is_zero(), "heartbeat", "more than zero"),
        ];
        for (holds, field, expected) in checks {
            if !holds {
                return Err(StoreConfigError { field, expected });
            }
        }
        Ok(())
    }
}
