//! Buffers of a pool, each beside the bytes that its borrower wrote.

use proptest::collection::vec;
use proptest::prelude::*;

use pumice_conn_pool::{Buffer, BufferPool, BufferPoolConfig};

const SMALL: usize = 16;
const LARGE: usize = 64;

#[derive(Clone, Debug)]
enum BufferOp {
    Lend(usize),
    New,
    Extend(usize, usize),
    /// Room asked for, how much of it is written, how much of that is declared.
    Read(usize, usize, usize, usize),
    /// As `Read`, with the room from the pool.
    ReadPooled(usize, usize, usize, usize),
    Consume(usize, usize),
    Compact(usize),
    Clear(usize),
    GiveBack(usize),
    Drop(usize),
}

fn buffer_op() -> impl Strategy<Value = BufferOp> {
    let nth = any::<usize>();
    let part = any::<usize>();
    prop_oneof![
        6 => (0..100_usize).prop_map(BufferOp::Lend),
        1 => Just(BufferOp::New),
        6 => (nth, 0..40_usize).prop_map(|(n, len)| BufferOp::Extend(n, len)),
        3 => (nth, 0..40_usize, part, part).prop_map(|(n, a, b, c)| BufferOp::Read(n, a, b, c)),
        3 => (nth, 0..40_usize, part, part).prop_map(|(n, a, b, c)| BufferOp::ReadPooled(n, a, b, c)),
        5 => (nth, part).prop_map(|(n, part)| BufferOp::Consume(n, part)),
        1 => nth.prop_map(BufferOp::Compact),
        1 => nth.prop_map(BufferOp::Clear),
        4 => nth.prop_map(BufferOp::GiveBack),
        1 => nth.prop_map(BufferOp::Drop),
    ]
}

struct Borrower {
    buffer: Buffer,
    expected: Vec<u8>,
    /// The byte that this borrower writes, so that it is known again elsewhere.
    mark: u8,
    /// The place in `Buffers::lent` where the buffer is counted.
    class: Option<usize>,
}

struct Buffers {
    pool: BufferPool,
    borrowers: Vec<Borrower>,
    next_mark: u8,
    /// Small ones and large ones.
    kept: [usize; 2],
    /// Small, large and larger ones that were lent and not given back.
    lent: [usize; 3],
}

impl Buffers {
    const CONFIG: BufferPoolConfig = BufferPoolConfig {
        small_bytes: SMALL,
        small_count: 2,
        large_bytes: LARGE,
        large_count: 1,
    };

    fn apply(&mut self, op: BufferOp) {
        match op {
            BufferOp::Lend(min) => self.lend(min),
            BufferOp::New => self.add(Buffer::default(), None),
            BufferOp::GiveBack(nth) => {
                if let Some(nth) = nth.checked_rem(self.borrowers.len()) {
                    let Borrower { buffer, class, .. } = self.borrowers.swap_remove(nth);
                    self.count_back(buffer.capacity(), class);
                    self.pool.give_back(buffer);
                }
            }
            BufferOp::Drop(nth) => {
                if let Some(nth) = nth.checked_rem(self.borrowers.len()) {
                    self.borrowers.swap_remove(nth);
                }
            }
            BufferOp::ReadPooled(nth, room, written, declared) => {
                let Some(nth) = nth.checked_rem(self.borrowers.len()) else {
                    return;
                };
                let before = self.borrowers[nth].buffer.capacity();
                self.pool.reserve(&mut self.borrowers[nth].buffer, room);
                let after = self.borrowers[nth].buffer.capacity();
                if before != after {
                    self.count_lend(after);
                    self.count_back(before, self.borrowers[nth].class);
                    self.borrowers[nth].class = Some(class(after));
                }
                read(&mut self.borrowers[nth], room, written, declared);
            }
            BufferOp::Extend(nth, _)
            | BufferOp::Read(nth, ..)
            | BufferOp::Consume(nth, _)
            | BufferOp::Compact(nth)
            | BufferOp::Clear(nth) => {
                if let Some(nth) = nth.checked_rem(self.borrowers.len()) {
                    apply_alone(&mut self.borrowers[nth], op);
                }
            }
        }
    }

    fn lend(&mut self, min: usize) {
        let before = self.pool.stats();
        let mut buffer = self.pool.lend(min);
        let after = self.pool.stats();
        assert!(buffer.capacity() >= min);
        assert!(buffer.is_empty());
        assert!(
            buffer.spare().iter().all(|&byte| byte == 0),
            "another borrower's byte"
        );
        let hits = after.small.hits + after.large.hits - before.small.hits - before.large.hits;
        assert_eq!(hits == 1, self.count_lend(buffer.capacity()));
        let class = class(buffer.capacity());
        self.add(buffer, Some(class));
    }

    fn add(&mut self, buffer: Buffer, class: Option<usize>) {
        self.next_mark = self.next_mark.checked_add(1).unwrap_or(1);
        let mark = self.next_mark;
        let expected = Vec::new();
        self.borrowers.push(Borrower {
            buffer,
            expected,
            mark,
            class,
        });
    }

    /// A buffer of this size was lent: whether it was a kept one.
    fn count_lend(&mut self, capacity: usize) -> bool {
        let class = class(capacity);
        self.lent[class] += 1;
        let Some(kept) = self.kept.get_mut(class) else {
            return false;
        };
        let is_hit = *kept > 0;
        *kept = kept.saturating_sub(1);
        is_hit
    }

    fn count_back(&mut self, capacity: usize, lent_as: Option<usize>) {
        if let Some(class) = lent_as {
            self.lent[class] -= 1;
        }
        let counts = [Self::CONFIG.small_count, Self::CONFIG.large_count];
        let class = class(capacity);
        if let Some(kept) = self.kept.get_mut(class) {
            *kept = (*kept + 1).min(counts[class]);
        }
    }

    fn check(&self) {
        self.pool.check();
        let stats = self.pool.stats();
        assert_eq!([stats.small.kept, stats.large.kept], self.kept);
        assert_eq!(
            [stats.small.lent, stats.large.lent, stats.heap_lent],
            self.lent
        );
        assert_eq!(
            stats.retained_bytes,
            self.kept[0] * SMALL + self.kept[1] * LARGE
        );
        for Borrower {
            buffer, expected, ..
        } in &self.borrowers
        {
            buffer.check();
            assert_eq!(buffer.filled(), expected);
            assert_eq!(buffer.len(), expected.len());
            assert_eq!(buffer.is_empty(), expected.is_empty());
        }
    }
}

/// 0 for a small buffer, 1 for a large one, 2 for any other size.
fn class(capacity: usize) -> usize {
    [SMALL, LARGE]
        .iter()
        .position(|&bytes| bytes == capacity)
        .unwrap_or(2)
}

fn apply_alone(borrower: &mut Borrower, op: BufferOp) {
    let Borrower {
        buffer,
        expected,
        mark,
        ..
    } = borrower;
    match op {
        BufferOp::Extend(_, len) => {
            let bytes = vec![*mark; len];
            buffer.extend_from_slice(&bytes);
            expected.extend_from_slice(&bytes);
        }
        BufferOp::Read(_, room, written, declared) => {
            buffer.reserve(room);
            read(borrower, room, written, declared);
        }
        BufferOp::Consume(_, part) => {
            let n = part % (expected.len() + 1);
            buffer.consume(n);
            expected.drain(..n);
        }
        BufferOp::Compact(_) => {
            let capacity = buffer.capacity();
            buffer.compact();
            assert_eq!(buffer.spare().len(), capacity - expected.len());
        }
        _ => {
            buffer.clear();
            expected.clear();
        }
    }
}

/// Writes into the room as a socket would, perhaps more than it says, and declares a part.
fn read(borrower: &mut Borrower, room: usize, written: usize, declared: usize) {
    let Borrower {
        buffer,
        expected,
        mark,
        ..
    } = borrower;
    let spare = buffer.spare();
    assert!(spare.len() >= room);
    assert!(
        spare.iter().all(|byte| [0, *mark].contains(byte)),
        "another borrower's byte"
    );
    let written = written % (spare.len() + 1);
    spare[..written].fill(*mark);
    let declared = declared % (written + 1);
    buffer.fill(declared);
    expected.resize(expected.len() + declared, *mark);
}

proptest! {
    #[test]
    fn a_buffer_is_its_borrowers_bytes_and_no_others(ops in vec(buffer_op(), 0..100)) {
        let mut buffers = Buffers {
            pool: BufferPool::new(Buffers::CONFIG),
            borrowers: Vec::new(),
            next_mark: 0,
            kept: [0; 2],
            lent: [0; 3],
        };
        for op in ops {
            buffers.apply(op);
            buffers.check();
        }
    }
}
