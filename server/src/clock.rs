//! The time of a turn of the loop: the monotonic `now`, and the `Date` field's text.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// `Sun, 06 Nov 1994 08:49:37 GMT`: the only form that a server may send (RFC 9110 §5.6.7).
pub(crate) const DATE_LEN: usize = 29;

/// Both clocks, read once per wake-up of a worker.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) now: Instant,
    seconds: u64,
    date: [u8; DATE_LEN],
}

impl Clock {
    pub(crate) fn new(now: Instant, wall: SystemTime) -> Self {
        let mut clock = Self {
            now,
            seconds: u64::MAX,
            date: [b' '; DATE_LEN],
        };
        clock.update(now, wall);
        clock
    }

    /// Takes the time of this turn; the text is made anew only when the second has changed.
    ///
    /// A worker calls this at each wake-up, so that the date is never older than the turn that writes it.
    pub(crate) fn update(&mut self, now: Instant, wall: SystemTime) {
        self.now = now;
        // A wall clock before 1970 is shown as 1970: no answer goes without a date.
        let seconds = wall
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        if seconds != self.seconds {
            self.seconds = seconds;
            let text =
                httpdate::fmt_http_date(UNIX_EPOCH + std::time::Duration::from_secs(seconds));
            if let Ok(date) = text.as_bytes().try_into() {
                self.date = date;
            }
        }
    }

    /// The `Date` field's value.
    pub(crate) fn date(&self) -> &[u8; DATE_LEN] {
        &self.date
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_date_follows_the_wall_clock_by_the_second() {
        let start = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let mut clock = Clock::new(Instant::now(), start);
        assert_eq!(clock.date(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        clock.update(Instant::now(), start + Duration::from_millis(999));
        assert_eq!(clock.date(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        clock.update(Instant::now(), start + Duration::from_secs(1));
        assert_eq!(clock.date(), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }
}
