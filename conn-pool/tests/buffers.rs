//! What buffers and their pool promise, one promise at a time.

use pumice_conn_pool::{Buffer, BufferPool, BufferPoolConfig};

const CONFIG: BufferPoolConfig = BufferPoolConfig {
    small_bytes: 100,
    small_count: 2,
    large_bytes: 1000,
    large_count: 1,
};

fn pool() -> BufferPool {
    BufferPool::new(CONFIG)
}

#[test]
fn a_new_buffer_holds_no_memory() {
    let buffer = Buffer::default();
    assert!(buffer.is_empty());
    assert_eq!(buffer.capacity(), 0);
    assert!(size_of::<Buffer>() <= 32);
}

#[test]
fn bytes_come_out_in_the_order_they_came_in() {
    let mut buffer = Buffer::default();
    buffer.extend_from_slice(b"GET / ");
    buffer.consume(4);
    buffer.reserve(5);
    buffer.spare()[..5].copy_from_slice(b"HTTP/");
    buffer.fill(5);
    assert_eq!(buffer.filled(), b"/ HTTP/");
    buffer.consume(7);
    assert_eq!(buffer.filled(), b"");
}

#[test]
fn the_class_is_the_smallest_with_enough_room() {
    let mut pool = pool();
    for (min, capacity) in [
        (0, 100),
        (100, 100),
        (101, 1000),
        (1000, 1000),
        (1001, 1001),
    ] {
        assert_eq!(pool.lend(min).capacity(), capacity, "for {min}");
    }
}

#[test]
fn a_buffer_that_comes_back_is_lent_again() {
    let mut pool = pool();
    let buffer = pool.lend(10);
    pool.give_back(buffer);
    assert_eq!(pool.stats().retained_bytes, 100);
    let _buffer = pool.lend(10);
    let stats = pool.stats().small;
    assert_eq!(
        (stats.hits, stats.misses, stats.lent, stats.kept),
        (1, 1, 1, 0)
    );
}

#[test]
fn buffers_beyond_the_count_are_lent_and_not_kept() {
    let mut pool = pool();
    let buffers = [(); 3].map(|()| pool.lend(10));
    assert_eq!((pool.stats().small.misses, pool.stats().small.lent), (3, 3));
    for buffer in buffers {
        pool.give_back(buffer);
    }
    let stats = pool.stats();
    assert_eq!((stats.small.kept, stats.small.lent), (2, 0));
    assert_eq!(stats.retained_bytes, 200);
}

#[test]
fn more_than_a_large_buffer_comes_from_the_heap_and_goes_back_to_it() {
    let mut pool = pool();
    let buffer = pool.lend(1001);
    assert_eq!((pool.stats().heap_misses, pool.stats().heap_lent), (1, 1));
    pool.give_back(buffer);
    assert_eq!(
        (pool.stats().heap_lent, pool.stats().retained_bytes),
        (0, 0)
    );
}

#[test]
fn a_buffer_that_grows_in_the_pool_leaves_its_old_memory_there() {
    let mut pool = pool();
    let mut buffer = pool.lend(10);
    buffer.extend_from_slice(&[7; 90]);
    pool.reserve(&mut buffer, 100);
    assert_eq!(buffer.filled(), [7; 90]);
    assert_eq!(buffer.capacity(), 1000);
    let stats = pool.stats();
    assert_eq!(
        (stats.small.lent, stats.small.kept, stats.large.lent),
        (0, 1, 1)
    );
    pool.check();
}

#[test]
fn a_buffer_of_one_s_own_may_be_given_back() {
    let mut pool = pool();
    let mut buffer = Buffer::default();
    buffer.extend_from_slice(&[1; 100]);
    pool.give_back(buffer);
    pool.give_back(Buffer::default());
    let stats = pool.stats();
    assert_eq!(
        (stats.small.lent, stats.small.kept, stats.retained_bytes),
        (0, 1, 100)
    );
    pool.check();
}

#[test]
fn a_buffer_that_is_dropped_stays_counted_and_is_replaced() {
    let mut pool = pool();
    drop(pool.lend(10));
    assert_eq!(pool.stats().small.lent, 1);
    assert_eq!(pool.lend(10).capacity(), 100);
}

#[test]
fn the_next_borrower_meets_zeros_whatever_was_declared() {
    let mut pool = pool();
    let mut buffer = pool.lend(10);
    buffer.extend_from_slice(b"password");
    buffer.consume(8);
    // Written by a reader that declares less than it wrote.
    buffer.spare().fill(b'x');
    buffer.fill(1);
    pool.give_back(buffer);

    let mut buffer = pool.lend(10);
    assert_eq!(buffer.filled(), b"");
    // Declared without having been written.
    buffer.fill(100);
    assert_eq!(buffer.filled(), [0; 100]);
}

#[test]
fn the_debug_text_shows_no_bytes() {
    let mut buffer = Buffer::default();
    buffer.extend_from_slice(b"7777");
    assert!(!format!("{buffer:?}").contains('7'));
    assert!(!format!("{buffer:?}").contains("55"));
}

#[test]
fn a_buffer_with_little_consumed_grows_and_with_much_consumed_moves() {
    for (consumed, capacity) in [(24, 200), (25, 100)] {
        let mut buffer = pool().lend(100);
        buffer.extend_from_slice(&[1; 100]);
        buffer.consume(consumed);
        buffer.reserve(1);
        assert_eq!(buffer.capacity(), capacity, "{consumed} consumed");
    }
}

#[test]
fn a_buffer_stays_small_while_bytes_go_through_it() {
    let mut buffer = Buffer::default();
    for _ in 0..10_000 {
        buffer.extend_from_slice(&[1; 100]);
        while buffer.len() > 150 {
            buffer.consume(1);
        }
    }
    assert!(buffer.capacity() <= 800, "{} bytes", buffer.capacity());
    buffer.check();
}

#[test]
fn compacting_gives_all_the_room_to_the_spare_bytes() {
    let mut buffer = pool().lend(100);
    buffer.extend_from_slice(&[1; 100]);
    buffer.consume(10);
    assert_eq!(buffer.spare().len(), 0);
    buffer.compact();
    assert_eq!(buffer.spare().len(), 10);
    assert_eq!(buffer.filled(), [1; 90]);
}

#[test]
fn a_pool_of_nothing_lends_from_the_heap() {
    let nothing = BufferPoolConfig {
        small_bytes: 0,
        small_count: 0,
        large_bytes: 0,
        large_count: 0,
    };
    let mut pool = BufferPool::new(nothing);
    for min in [0, 10] {
        let mut buffer = pool.lend(min);
        buffer.extend_from_slice(b"bytes");
        assert_eq!(buffer.filled(), b"bytes");
        pool.give_back(buffer);
    }
    assert_eq!(pool.stats().retained_bytes, 0);
    pool.check();
}

#[test]
#[should_panic = "3 of 2 filled bytes consumed"]
fn more_than_is_filled_cannot_be_consumed() {
    let mut buffer = Buffer::default();
    buffer.extend_from_slice(b"ab");
    buffer.consume(3);
}

#[test]
#[should_panic = "101 of 100 spare bytes filled"]
fn more_than_is_spare_cannot_be_filled() {
    pool().lend(1).fill(101);
}

#[test]
#[cfg(target_pointer_width = "64")]
#[should_panic = "4294967296 bytes are too many"]
fn a_buffer_of_four_gibibytes_is_refused() {
    pool().lend(1 << 32);
}
