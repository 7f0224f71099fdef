//! Why a command failed, in one line for a person.

use std::fmt;

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The sentence that is shown when a command fails; nobody tells kinds of failure apart.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure that says `reason`.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
