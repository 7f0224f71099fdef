//! Buffers of two sizes, kept for the next borrower.
//!
//! Invariant: a kept buffer has its class's size and is all zeros, and no class keeps more than its
//! count. So the pool holds `small_bytes * small_count + large_bytes * large_count` bytes at most.

use crate::buffer::{Buffer, Class};

/// What a [`BufferPool`] lends and keeps.
///
/// Any numbers make a pool: with a count of 0 the buffers of that class come from the heap and go back
/// to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPoolConfig {
    /// Size of a small buffer, in bytes. Default: 4 096, which most requests fit in.
    pub small_bytes: usize,
    /// Small buffers kept, at most. Default: 256, so 1 MiB.
    pub small_count: usize,
    /// Size of a large buffer, in bytes. Default: 65 536.
    pub large_bytes: usize,
    /// Large buffers kept, at most. Default: 16, so 1 MiB.
    pub large_count: usize,
}

impl Default for BufferPoolConfig {
    fn default() -> Self {
        Self {
            small_bytes: 4096,
            small_count: 256,
            large_bytes: 65_536,
            large_count: 16,
        }
    }
}

/// What a [`BufferPool`] has done and holds, from [`BufferPool::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferPoolStats {
    /// The small buffers.
    pub small: ClassStats,
    /// The large buffers.
    pub large: ClassStats,
    /// Lends of more than a large buffer, from the heap.
    pub heap_misses: u64,
    /// Buffers larger than large ones that are lent.
    pub heap_lent: usize,
    /// Bytes of all buffers kept.
    pub retained_bytes: usize,
}

/// What a [`BufferPool`] has done and holds in one class of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassStats {
    /// Lends that were served with a kept buffer.
    pub hits: u64,
    /// Lends that took memory from the heap, since no buffer was there.
    pub misses: u64,
    /// Buffers that are lent. One that is dropped instead of given back stays counted.
    pub lent: usize,
    /// Buffers that wait.
    pub kept: usize,
}

/// Lends buffers in two sizes and keeps those that come back, up to a bound for each.
///
/// For one thread: it has no lock, and a buffer that went to another thread comes back by message. A
/// connection holds a buffer only while unfinished bytes lie in it, so a few are enough for many
/// connections.
///
/// Lending allocates only where no buffer waits, and giving back never does once the pool has held as
/// many before. A buffer that isn't given back is freed when it is dropped; the pool makes another one.
#[derive(Debug)]
pub struct BufferPool {
    small: Shelf,
    large: Shelf,
    heap_misses: u64,
    heap_lent: usize,
}

impl BufferPool {
    /// A pool that holds no buffer yet.
    #[must_use]
    pub fn new(config: BufferPoolConfig) -> Self {
        Self {
            small: Shelf::new(config.small_bytes, config.small_count),
            large: Shelf::new(config.large_bytes, config.large_count),
            heap_misses: 0,
            heap_lent: 0,
        }
    }

    /// An empty buffer with room for `min_capacity` bytes at least: a small or a large one, or, for
    /// more than those hold, one of just that size from the heap.
    ///
    /// # Panics
    /// When `min_capacity` is more than 2³² − 1 bytes.
    pub fn lend(&mut self, min_capacity: usize) -> Buffer {
        if min_capacity <= self.small.bytes {
            self.small.lend(Class::Small)
        } else if min_capacity <= self.large.bytes {
            self.large.lend(Class::Large)
        } else {
            self.heap_misses += 1;
            self.heap_lent += 1;
            Buffer::new(min_capacity, Class::Heap)
        }
    }

    /// Makes room for `n` bytes behind the filled ones of `buffer`: as [`Buffer::reserve`] does, but
    /// where that would grow it, the filled bytes move to a buffer lent from this pool and the old one
    /// is given back.
    ///
    /// # Panics
    /// When filled bytes and room would be more than 2³² − 1 bytes.
    pub fn reserve(&mut self, buffer: &mut Buffer, n: usize) {
        if let Some(capacity) = buffer.growth(n) {
            let mut grown = self.lend(capacity);
            grown.extend_from_slice(buffer.filled());
            self.give_back(std::mem::replace(buffer, grown));
        }
    }

    /// Takes a buffer back, with whatever lies in it: wiped and kept for the next borrower, if it has
    /// the size of a class that has room, else freed.
    ///
    /// Buffers that no pool lent are welcome, and those that hold no memory cost nothing.
    pub fn give_back(&mut self, buffer: Buffer) {
        let lent = match buffer.class() {
            Class::Own => None,
            Class::Small => Some(&mut self.small.stats.lent),
            Class::Large => Some(&mut self.large.stats.lent),
            Class::Heap => Some(&mut self.heap_lent),
        };
        if let Some(lent) = lent {
            // Another pool's buffer isn't among those lent here.
            *lent = lent.saturating_sub(1);
        }
        for shelf in [&mut self.small, &mut self.large] {
            if shelf.has_room_for(&buffer) {
                shelf.kept.push(buffer.into_zeroed());
                return;
            }
        }
    }

    /// Counters and sizes. O(1).
    #[must_use]
    pub fn stats(&self) -> BufferPoolStats {
        BufferPoolStats {
            small: self.small.stats(),
            large: self.large.stats(),
            heap_misses: self.heap_misses,
            heap_lent: self.heap_lent,
            retained_bytes: self.small.retained_bytes() + self.large.retained_bytes(),
        }
    }

    /// Asserts the invariant, looking at each kept byte; for tests.
    ///
    /// # Panics
    /// When it doesn't hold.
    pub fn check(&self) {
        self.small.check();
        self.large.check();
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new(BufferPoolConfig::default())
    }
}

/// The buffers of one size.
#[derive(Debug)]
struct Shelf {
    bytes: usize,
    count_max: usize,
    /// Wiped. The last to come is the first to go, since it is in the caches.
    kept: Vec<Box<[u8]>>,
    stats: ClassStats,
}

impl Shelf {
    fn new(bytes: usize, count_max: usize) -> Self {
        Self {
            bytes,
            count_max,
            kept: Vec::new(),
            stats: ClassStats::default(),
        }
    }

    fn lend(&mut self, class: Class) -> Buffer {
        let kept = self.kept.pop();
        match kept {
            Some(_) => self.stats.hits += 1,
            None => self.stats.misses += 1,
        }
        self.stats.lent += 1;
        match kept {
            Some(bytes) => Buffer::from_zeroed(bytes, class),
            None => Buffer::new(self.bytes, class),
        }
    }

    fn has_room_for(&self, buffer: &Buffer) -> bool {
        buffer.capacity() == self.bytes && self.kept.len() < self.count_max && self.bytes > 0
    }

    fn retained_bytes(&self) -> usize {
        self.kept.len() * self.bytes
    }

    fn stats(&self) -> ClassStats {
        ClassStats {
            kept: self.kept.len(),
            ..self.stats
        }
    }

    fn check(&self) {
        assert!(self.kept.len() <= self.count_max);
        for bytes in &self.kept {
            assert_eq!(bytes.len(), self.bytes);
            assert!(
                bytes.iter().all(|&byte| byte == 0),
                "a kept buffer isn't wiped"
            );
        }
    }
}
