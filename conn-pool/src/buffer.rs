//! Bytes that came in and wait to be used up.
//!
//! ```text
//!  0          start           end           touched       capacity
//!  │ consumed   │   filled     │    spare ─────┼─────────────│
//! ```
//!
//! Invariant: `start <= end <= touched <= capacity`, and the bytes from `touched` on are zero. Where
//! nothing is filled, `start` and `end` are 0.

use std::fmt;

/// What a buffer was lent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not lent.
    #[default]
    Own,
    Small,
    Large,
    /// Larger than the large ones.
    Heap,
}

/// A buffer of bytes that is filled at its end and consumed from its start.
///
/// A new one is empty and holds no memory, so that it can lie in an idle connection: 32 bytes in all.
/// It is lent with memory by [`BufferPool::lend`](crate::BufferPool::lend), or grows by itself. It can
/// hold 2³² − 1 bytes; whoever fills it on a peer's behalf has a lower limit.
///
/// Nobody meets the bytes of another connection in it. The memory is zeroed when it is allocated and
/// stays initialised, and what a borrower wrote is wiped when the buffer is given back to the pool. So
/// behind the filled bytes, in [`Buffer::spare`], there are zeros or what the same borrower wrote
/// there before, and [`Buffer::fill`] can't declare anything else.
///
/// # Panics
/// [`Buffer::consume`] and [`Buffer::fill`] of more than there is, and growing past 2³² − 1 bytes.
#[derive(Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: u32,
    end: u32,
    /// How far something else than zeros may lie.
    touched: u32,
    class: Class,
}

const _: () = assert!(size_of::<Buffer>() <= 32);

impl Buffer {
    /// The bytes that were filled and not consumed.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }

    /// How many bytes were filled and not consumed.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether all bytes that were filled are consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many bytes of memory the buffer holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the first `n` filled bytes away, without moving the others.
    ///
    /// # Panics
    /// When fewer than `n` bytes are filled.
    pub fn consume(&mut self, n: usize) {
        assert!(
            n <= self.len(),
            "{n} of {} filled bytes consumed",
            self.len()
        );
        self.start += position(n);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets all filled bytes; keeps the memory.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Puts `bytes` behind the filled ones. Grows where there is no room, as [`Buffer::reserve`] does.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        let end = self.end as usize;
        self.bytes[end..end + bytes.len()].copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// The room behind the filled bytes, initialised, to read into; [`Buffer::fill`] then declares what
    /// was read. As long as [`Buffer::reserve`] made it or longer, and empty where there is none.
    ///
    /// From the first call on, giving the buffer back to a pool wipes all of it instead of what was
    /// filled, since nobody knows how much of the room is written to.
    pub fn spare(&mut self) -> &mut [u8] {
        self.touched = position(self.bytes.len());
        &mut self.bytes[self.end as usize..]
    }

    /// Declares the first `n` bytes of [`Buffer::spare`] filled.
    ///
    /// # Panics
    /// When there is less room than that.
    pub fn fill(&mut self, n: usize) {
        let room = self.room();
        assert!(n <= room, "{n} of {room} spare bytes filled");
        self.end += position(n);
        self.touched = self.touched.max(self.end);
    }

    /// Makes room for `n` bytes behind the filled ones.
    ///
    /// Moves the filled bytes to the front where that is enough and a quarter of the buffer or more is
    /// consumed; otherwise the buffer grows, to twice its size at least. So however the bytes come and
    /// go, each is copied a bounded number of times on average. A buffer lent by a pool leaves its
    /// class by growing, so that the pool can't keep it:
    /// [`BufferPool::reserve`](crate::BufferPool::reserve) takes a larger one from the pool instead.
    ///
    /// # Panics
    /// When filled bytes and room would be more than 2³² − 1 bytes.
    pub fn reserve(&mut self, n: usize) {
        if let Some(capacity) = self.growth(n) {
            let mut grown = Self::new(capacity, self.class);
            grown.extend_from_slice(self.filled());
            *self = grown;
        }
    }

    /// Moves the filled bytes to the front, so that all the room is behind them.
    pub fn compact(&mut self) {
        self.bytes
            .copy_within(self.start as usize..self.end as usize, 0);
        self.end -= self.start;
        self.start = 0;
    }

    /// Asserts the invariant; for tests.
    ///
    /// # Panics
    /// When it doesn't hold.
    pub fn check(&self) {
        assert!(self.start <= self.end);
        assert!(self.end <= self.touched);
        assert!(self.touched as usize <= self.bytes.len());
        let rest = &self.bytes[self.touched as usize..];
        assert!(
            rest.iter().all(|&byte| byte == 0),
            "untouched bytes aren't zero"
        );
        assert!(self.start < self.end || self.end == 0);
    }

    /// An empty buffer with zeroed memory.
    pub(crate) fn new(capacity: usize, class: Class) -> Self {
        // Before it is allocated.
        assert!(
            u32::try_from(capacity).is_ok(),
            "{capacity} bytes are too many"
        );
        Self::from_zeroed(vec![0; capacity].into_boxed_slice(), class)
    }

    /// An empty buffer with memory that `into_zeroed` gave.
    pub(crate) fn from_zeroed(bytes: Box<[u8]>, class: Class) -> Self {
        Self {
            bytes,
            class,
            ..Self::default()
        }
    }

    /// The memory, wiped.
    pub(crate) fn into_zeroed(mut self) -> Box<[u8]> {
        self.bytes[..self.touched as usize].fill(0);
        self.bytes
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// Makes room for `n` bytes by moving, or says how large a buffer it takes instead.
    pub(crate) fn growth(&mut self, n: usize) -> Option<usize> {
        let capacity = self.capacity();
        if n <= self.room() {
            return None;
        }
        let needed = self.len().checked_add(n).expect("a length in memory");
        if needed <= capacity && self.start as usize >= capacity / 4 {
            self.compact();
            return None;
        }
        Some(needed.max(capacity.saturating_mul(2).min(u32::MAX as usize)))
    }

    fn room(&self) -> usize {
        self.bytes.len() - self.end as usize
    }
}

impl fmt::Debug for Buffer {
    /// Without the bytes: they are a peer's, and may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

/// A length or a place within a buffer, none of which is longer than `u32::MAX`.
fn position(n: usize) -> u32 {
    u32::try_from(n).expect("`new` checks the length")
}
