//! What a stream can do without blocking, as a set of five bits.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// What a stream can do without blocking.
///
/// The bits are *hints to try*: a read after [`READABLE`](Self::READABLE) may still say `WouldBlock`. What they
/// promise is the other direction: a change is told once (edge-triggered), so a bit that can't be used now has to
/// be kept by whoever got it.
///
/// A set that comes from the loop is closed under two rules, so that code which only looks at the first two bits
/// never misses an end: [`READ_CLOSED`](Self::READ_CLOSED) comes with `READABLE`, and
/// [`WRITE_CLOSED`](Self::WRITE_CLOSED) and [`ERROR`](Self::ERROR) come with both (the next call says at once what
/// happened).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ready(u8);

impl Ready {
    /// Nothing.
    pub const EMPTY: Self = Self(0);
    /// A read gives bytes, the end of the stream or an error.
    pub const READABLE: Self = Self(1);
    /// A write takes bytes or gives an error.
    pub const WRITABLE: Self = Self(1 << 1);
    /// The peer will send no more: read on until `Ok(0)`, also after a read shorter than the buffer.
    pub const READ_CLOSED: Self = Self(1 << 2);
    /// Nothing more can be sent: the connection is gone in that direction.
    pub const WRITE_CLOSED: Self = Self(1 << 3);
    /// The socket has an error to give.
    pub const ERROR: Self = Self(1 << 4);
    /// All five.
    pub const ALL: Self = Self(0b1_1111);

    /// Adds what is in `other`.
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes out what is in `other`.
    pub const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Whether all of `other` is in here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in here.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether [`READABLE`](Self::READABLE) is in here.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.contains(Self::READABLE)
    }

    /// Whether [`WRITABLE`](Self::WRITABLE) is in here.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.contains(Self::WRITABLE)
    }

    /// Whether [`READ_CLOSED`](Self::READ_CLOSED) is in here.
    #[must_use]
    pub const fn is_read_closed(self) -> bool {
        self.contains(Self::READ_CLOSED)
    }

    /// Whether [`WRITE_CLOSED`](Self::WRITE_CLOSED) is in here.
    #[must_use]
    pub const fn is_write_closed(self) -> bool {
        self.contains(Self::WRITE_CLOSED)
    }

    /// Whether [`ERROR`](Self::ERROR) is in here.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.contains(Self::ERROR)
    }

    /// Whether nothing is in here.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set closed under the two rules of the type: what a platform hands to the loop.
    #[must_use]
    pub const fn normalised(mut self) -> Self {
        if self.is_read_closed() {
            self.insert(Self::READABLE);
        }
        if self.is_write_closed() || self.is_error() {
            self.insert(Self::READABLE);
            self.insert(Self::WRITABLE);
        }
        self
    }
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Self) {
        self.insert(other);
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::READABLE, "READABLE"),
            (Self::WRITABLE, "WRITABLE"),
            (Self::READ_CLOSED, "READ_CLOSED"),
            (Self::WRITE_CLOSED, "WRITE_CLOSED"),
            (Self::ERROR, "ERROR"),
        ];
        let mut first = true;
        f.write_str("Ready(")?;
        for (bit, name) in names {
            if self.contains(bit) {
                if !first {
                    f.write_str(" | ")?;
                }
                f.write_str(name)?;
                first = false;
            }
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_or_an_error_is_always_worth_a_read() {
        assert!(Ready::READ_CLOSED.normalised().is_readable());
        assert!(!Ready::READ_CLOSED.normalised().is_writable());
        for gone in [Ready::WRITE_CLOSED, Ready::ERROR] {
            assert!(gone.normalised().is_readable());
            assert!(gone.normalised().is_writable());
        }
        assert_eq!(Ready::EMPTY.normalised(), Ready::EMPTY);
    }

    #[test]
    fn debug_names_what_is_in_the_set() {
        let set = Ready::READABLE | Ready::ERROR;
        assert_eq!(format!("{set:?}"), "Ready(READABLE | ERROR)");
        assert_eq!(format!("{:?}", Ready::EMPTY), "Ready()");
    }
}
