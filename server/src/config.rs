//! The server's settings.

use std::time::Duration;

use pumice_http_parse::Limits;

/// Settings of a server. Values are checked once, by [`Server::new`](crate::Server::new).
///
/// ```
/// let config = pumice::Config { workers: 2, ..pumice::Config::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// Event-loop threads. Default 0: one per core that this process may use.
    pub workers: usize,
    /// Threads for offloaded handlers, over all workers. Default 0: one per core, two at least.
    pub handler_threads: usize,
    /// Requests that may wait for a handler thread, over all workers; one more is answered 503. Default 1 024.
    pub handler_queue_max: usize,
    /// Connections of one worker. At the bound it stops accepting and hands over to workers that have room; when none
    /// has, newcomers wait until a connection closes. Default 65 536.
    pub connections_max: usize,
    /// Requests that one connection may send before it is closed after an answer. Default 0: no bound.
    pub requests_per_connection_max: u32,
    /// Bounds of a request's parts.
    pub limits: Limits,
    /// How long a request's head may take from its first byte on. Default 30 s.
    pub head_timeout: Duration,
    /// How long a request's body may bring no byte. Default 30 s.
    pub body_timeout: Duration,
    /// How long a connection may stay silent between requests. Default 75 s.
    pub idle_timeout: Duration,
    /// How long a peer may take no byte of what it is sent. Default 30 s.
    pub write_timeout: Duration,
    /// How long, after the last answer, a closing connection is read so that the peer can take the answer. Default 5 s.
    pub linger_timeout: Duration,
    /// How long a stopping server waits for what runs. Default 10 s.
    pub stop_timeout: Duration,
    /// Bytes that may wait for a peer before nothing more is made for it. A single answer may be longer. Default 512 KiB.
    pub outbox_bytes_max: usize,
    /// Longest frame of a frame service in bytes. Default 16 MiB.
    pub frame_bytes_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 0,
            handler_threads: 0,
            handler_queue_max: 1_024,
            connections_max: 65_536,
            requests_per_connection_max: 0,
            limits: Limits::default(),
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            linger_timeout: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(10),
            outbox_bytes_max: 512 * 1024,
            frame_bytes_max: 16 * 1024 * 1024,
        }
    }
}

/// A setting that can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting {field} must be {expected}")]
pub struct ConfigError {
    /// The field's name.
    pub field: &'static str,
    /// What it must be.
    pub expected: &'static str,
}

/// Chosen: more threads than this is a mistake in a unit.
const THREADS_MAX: usize = 1_024;

impl Config {
    /// Checks every value and replaces 0 by the number of cores where that is what it means.
    pub(crate) fn resolve(mut self, cores: usize) -> Result<Self, ConfigError> {
        if self.workers == 0 {
            self.workers = cores.max(1);
        }
        if self.handler_threads == 0 {
            self.handler_threads = cores.max(2);
        }
        let timeouts = [
            ("head_timeout", self.head_timeout),
            ("body_timeout", self.body_timeout),
            ("idle_timeout", self.idle_timeout),
            ("write_timeout", self.write_timeout),
            ("linger_timeout", self.linger_timeout),
        ];
        if let Some((field, _)) = timeouts.into_iter().find(|(_, timeout)| timeout.is_zero()) {
            return Err(ConfigError {
                field,
                expected: "more than zero",
            });
        }
        let checks = [
            (self.workers <= THREADS_MAX, "workers", "1024 or less"),
            (
                self.handler_threads <= THREADS_MAX,
                "handler_threads",
                "1024 or less",
            ),
            (
                self.handler_queue_max >= 1,
                "handler_queue_max",
                "1 or more",
            ),
            (self.connections_max >= 1, "connections_max", "1 or more"),
            (
                self.connections_max <= 1 << 24,
                "connections_max",
                "16777216 or less",
            ),
            (
                self.outbox_bytes_max >= 4_096,
                "outbox_bytes_max",
                "4096 or more",
            ),
            (self.frame_bytes_max >= 1, "frame_bytes_max", "1 or more"),
            (
                self.limits.head_bytes_max >= 256,
                "limits.head_bytes_max",
                "256 or more",
            ),
        ];
        match checks.into_iter().find(|(holds, ..)| !holds) {
            Some((_, field, expected)) => Err(ConfigError { field, expected }),
            None => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_workers_means_one_per_core() {
        let config = Config::default()
            .resolve(3)
            .expect("the defaults can be used");
        assert_eq!((config.workers, config.handler_threads), (3, 3));
    }

    #[test]
    fn a_timer_of_zero_is_refused_by_name() {
        let config = Config {
            write_timeout: Duration::ZERO,
            ..Config::default()
        };
        assert_eq!(
            config.resolve(1).err().map(|error| error.field),
            Some("write_timeout")
        );
    }
}
