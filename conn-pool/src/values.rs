//! Where a pool's values are: in chunks, by the numbers of their slots.
//!
//! A chunk is allocated for the first value in it and freed after the last one. So a value never moves,
//! growing copies none, and the place of a value follows from its number alone: reading it doesn't wait
//! for the slot to come into the cache. One chunk that became empty is kept aside, or a pool that has
//! one value more and one less in turn would allocate each time.

/// How many values are in a chunk: enough that its 32 bytes of bookkeeping don't count, and few enough
/// that a last value in use doesn't hold much.
const CHUNK_LEN: usize = 64;

#[derive(Debug)]
pub(crate) struct Values<T> {
    chunks: Vec<Chunk<T>>,
    spare: Vec<Option<T>>,
}

/// Invariant: `places` is `CHUNK_LEN` long at most and has memory for as many, or, where none of them
/// is filled, no memory.
#[derive(Debug)]
struct Chunk<T> {
    places: Vec<Option<T>>,
    filled: usize,
}

impl<T> Values<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, place) = split(index);
        self.chunks.get(chunk)?.places.get(place)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (chunk, place) = split(index);
        self.chunks.get_mut(chunk)?.places.get_mut(place)?.as_mut()
    }

    /// Puts a value where there is none. `index` is at most one more than the highest one yet.
    pub(crate) fn put(&mut self, index: u32, value: T) {
        let (chunk, place) = split(index);
        if chunk == self.chunks.len() {
            self.chunks.push(Chunk {
                places: Vec::new(),
                filled: 0,
            });
        }
        let Chunk { places, filled } = &mut self.chunks[chunk];
        if places.capacity() == 0 {
            *places = std::mem::take(&mut self.spare);
            places.reserve_exact(CHUNK_LEN - places.len());
        }
        if places.len() <= place {
            places.resize_with(place + 1, || None);
        }
        places[place] = Some(value);
        *filled += 1;
    }

    /// Takes the value away, which is there.
    pub(crate) fn take(&mut self, index: u32) -> Option<T> {
        let (chunk, place) = split(index);
        let Chunk { places, filled } = self.chunks.get_mut(chunk)?;
        let value = places.get_mut(place)?.take()?;
        *filled -= 1;
        if *filled == 0 {
            self.spare = std::mem::take(places);
        }
        Some(value)
    }

    /// How many values there is memory for.
    pub(crate) fn places(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.places.capacity());
        chunks.sum::<usize>() + self.spare.capacity()
    }

    /// Asserts the invariant; for tests.
    pub(crate) fn check(&self) {
        for Chunk { places, filled } in &self.chunks {
            assert_eq!(places.iter().flatten().count(), *filled);
            assert!(places.len() <= CHUNK_LEN);
            assert_eq!(places.capacity() > 0, *filled > 0);
        }
        assert!(self.spare.iter().all(Option::is_none));
    }
}

const fn split(index: u32) -> (usize, usize) {
    (index as usize / CHUNK_LEN, index as usize % CHUNK_LEN)
}
