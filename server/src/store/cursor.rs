//! A read that is carried out in portions, as its client takes them.
//!
//! A cursor keeps what a read is (query, direction, place, what is left of its limit, the watermark it was pinned to).
//! The engine's own iterator holds an open file, a snapshot of the segments and a buffer, so it lives only while the
//! cursor is hot, and a new one is made at the same place when the client comes back. The new one may see more than the
//! old one did, and is cut at the old watermark.

use tephra::read::Reads;
use tephra::{EventRef, Position, Query, ReadHandle};

/// What the taker of an event wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// That is enough for now.
    Pause,
    /// The event at hand was not taken, and none will be.
    Stop,
}

/// What a portion came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// There may be more.
    More,
    /// All that matched up to this watermark has been given.
    End { watermark: Position },
}

/// A read, and how far it has come.
#[derive(Debug)]
pub(crate) struct Cursor {
    query: Query,
    reverse: bool,
    /// Exclusive: the last position given, or where the read starts.
    place: Position,
    /// Events that may still be given.
    remaining: Option<u64>,
    watermark: Option<Position>,
    hot: Hot,
}

/// The engine's iterator, while the cursor is hot.
#[derive(Default)]
struct Hot(Option<Reads>);

impl std::fmt::Debug for Hot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "hot" } else { "parked" })
    }
}

impl Cursor {
    /// A read of what matches `query` after `place` (before it, in reverse), `limit` events at most.
    pub(crate) fn new(query: Query, place: Position, limit: Option<u64>, reverse: bool) -> Self {
        Self {
            query,
            reverse,
            place,
            remaining: limit,
            watermark: None,
            hot: Hot::default(),
        }
    }

    pub(crate) fn query(&self) -> &Query {
        &self.query
    }

    /// The last position given, or where the read starts.
    pub(crate) fn place(&self) -> Position {
        self.place
    }

    /// Lets go of the engine's iterator; the read goes on at the same place.
    pub(crate) fn park(&mut self) {
        self.hot = Hot(None);
    }

    /// Turns a finished forward read into one of what came after its watermark.
    pub(crate) fn continue_after(&mut self, position: Position) {
        debug_assert!(
            !self.reverse && self.remaining.is_none(),
            "only a subscription goes on after its end"
        );
        self.place = position;
        self.watermark = None;
        self.park();
    }

    /// Gives events to `take` until it wants no more or there are none.
    ///
    /// Blocks on the disk, and for as long as the engine scans for the next match.
    ///
    /// # Errors
    /// The log can't be read; nothing more can be given.
    pub(crate) fn portion(
        &mut self,
        reader: &ReadHandle,
        mut take: impl FnMut(Position, EventRef<'_>) -> Flow,
    ) -> Result<Portion, tephra::ReadError> {
        if self.hot.0.is_none() {
            let place = self.place;
            let reads = if self.reverse {
                reader.read_back(&self.query, place, self.remaining)
            } else {
                reader.read(&self.query, place, self.remaining)
            };
            let pinned = *self.watermark.get_or_insert_with(|| reads.watermark());
            // A backward read that starts anew lies below `place` already, which is at most the old watermark but for
            // its very first portion, and that one pins the watermark.
            debug_assert!(!self.reverse || pinned <= reads.watermark());
            self.hot = Hot(Some(reads));
        }
        let (Some(reads), Some(watermark)) = (self.hot.0.as_mut(), self.watermark) else {
            unreachable!("both were set above")
        };
        while let Some(next) = reads.next() {
            let event = next?;
            if event.position > watermark && !self.reverse {
                break;
            }
            let flow = take(event.position, event.event);
            if flow == Flow::Stop {
                break;
            }
            self.place = event.position;
            if let Some(remaining) = &mut self.remaining {
                *remaining -= 1;
            }
            if flow == Flow::Pause {
                return Ok(Portion::More);
            }
        }
        self.park();
        Ok(Portion::End { watermark })
    }
}
