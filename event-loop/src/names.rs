//! How a token of 64 bits travels through mio, whose tokens are as wide as a pointer.
//!
//! On a 64-bit target the token is handed over as it is. On a 32-bit target cutting it would drop the generation (or
//! the index) of a connection's key and so could name another connection. There the system is given the
//! descriptor's number instead, which always fits, and a table by descriptor keeps the whole token. The table needs
//! no clean-up when a stream is dropped without being deregistered: the system forgets a closed descriptor, and
//! whoever gets its number next writes the entry anew. Events are translated before any of them is handled, so an
//! event whose stream is released by an earlier one of the same batch still carries the old token in full.

use std::os::fd::RawFd;

/// No stream and no listener has this token; the loop's own bounds see to it.
const NOBODY: u64 = u64::MAX;

/// Translates between whole tokens and what mio carries.
#[derive(Debug)]
pub(crate) enum Names {
    /// mio's tokens are wide enough.
    Whole,
    /// Tokens by descriptor. Grows to the largest descriptor in use, at eight bytes each.
    ByDescriptor(Vec<u64>),
}

impl Names {
    /// What this target needs.
    pub(crate) const fn for_target() -> Self {
        if usize::BITS >= u64::BITS {
            Self::Whole
        } else {
            Self::ByDescriptor(Vec::new())
        }
    }

    /// What to hand to mio for `token` on `fd`.
    pub(crate) fn enter(&mut self, fd: RawFd, token: u64) -> mio::Token {
        match self {
            // Nothing is cut: this variant is only chosen where `usize` has 64 bits.
            Self::Whole => mio::Token(token as usize),
            Self::ByDescriptor(tokens) => {
                let at = usize::try_from(fd).expect("an open descriptor is never negative");
                if tokens.len() <= at {
                    tokens.resize(at + 1, NOBODY);
                }
                tokens[at] = token;
                mio::Token(at)
            }
        }
    }

    /// Forgets what was entered for `fd`.
    pub(crate) fn remove(&mut self, fd: RawFd) {
        if let Self::ByDescriptor(tokens) = self
            && let Ok(at) = usize::try_from(fd)
            && let Some(token) = tokens.get_mut(at)
        {
            *token = NOBODY;
        }
    }

    /// The whole token behind what mio reports, if it still names somebody.
    pub(crate) fn resolve(&self, token: mio::Token) -> Option<u64> {
        match self {
            Self::Whole => Some(token.0 as u64),
            Self::ByDescriptor(tokens) => tokens
                .get(token.0)
                .copied()
                .filter(|token| *token != NOBODY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keys that differ only in their upper half, as two generations of one slot do.
    const OLD: u64 = 0x0000_0001_0000_0007;
    const NEW: u64 = 0x0000_0002_0000_0007;

    #[test]
    fn a_table_by_descriptor_cuts_no_token() {
        let mut names = Names::ByDescriptor(Vec::new());
        let old = names.enter(9, OLD);
        let new = names.enter(12, NEW);
        assert!(old.0 <= u32::MAX as usize);
        assert_eq!(names.resolve(old), Some(OLD));
        assert_eq!(names.resolve(new), Some(NEW));
        assert_eq!(names.resolve(mio::Token(10)), None);
        assert_eq!(names.resolve(mio::Token(4_000)), None);
    }

    #[test]
    fn a_removed_descriptor_names_nobody_until_it_is_entered_again() {
        let mut names = Names::ByDescriptor(Vec::new());
        let token = names.enter(9, OLD);
        names.remove(9);
        names.remove(400);
        assert_eq!(names.resolve(token), None);
        assert_eq!(names.enter(9, NEW), token);
        assert_eq!(names.resolve(token), Some(NEW));
    }
}
