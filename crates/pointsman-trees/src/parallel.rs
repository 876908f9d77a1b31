//! Work on all threads with the feature `rayon`, on one thread without it.
//!
//! Not part of the public interface: the crates of Pointsman share it. Without the feature, the few methods of rayon that they call do the
//! same work in order, so that results have the same bits.

#[cfg(feature = "rayon")]
pub use rayon::{current_num_threads, join, prelude};

/// Always 1.
#[cfg(not(feature = "rayon"))]
#[must_use]
pub fn current_num_threads() -> usize {
    1
}

/// Does one thing, then the other.
#[cfg(not(feature = "rayon"))]
pub fn join<A, B>(first: impl FnOnce() -> A, second: impl FnOnce() -> B) -> (A, B) {
    (first(), second())
}

/// Rayon's methods by the iterators of the standard library.
#[cfg(not(feature = "rayon"))]
pub mod prelude {
    use std::cmp::Ordering;
    use std::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut, Iter, IterMut};

    pub trait IntoParallelIterator: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    pub trait ParallelIterator: Iterator + Sized {
        fn with_min_len(self, _: usize) -> Self {
            self
        }

        fn map_init<T, R>(
            self,
            init: impl Fn() -> T,
            mut map: impl FnMut(&mut T, Self::Item) -> R,
        ) -> impl Iterator<Item = R> {
            let mut state = init();
            self.map(move |item| map(&mut state, item))
        }

        fn for_each_init<T>(self, init: impl Fn() -> T, mut each: impl FnMut(&mut T, Self::Item)) {
            let mut state = init();
            self.for_each(|item| each(&mut state, item));
        }
    }

    impl<I: Iterator> ParallelIterator for I {}

    pub trait ParallelSlice<T> {
        fn par_iter(&self) -> Iter<'_, T>;
        fn par_iter_mut(&mut self) -> IterMut<'_, T>;
        fn par_chunks(&self, size: usize) -> Chunks<'_, T>;
        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T>;
        fn par_chunks_exact(&self, size: usize) -> ChunksExact<'_, T>;
        fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T>;
        fn par_sort_unstable_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
    }

    impl<T> ParallelSlice<T> for [T] {
        fn par_iter(&self) -> Iter<'_, T> {
            self.iter()
        }

        fn par_iter_mut(&mut self) -> IterMut<'_, T> {
            self.iter_mut()
        }

        fn par_chunks(&self, size: usize) -> Chunks<'_, T> {
            self.chunks(size)
        }

        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T> {
            self.chunks_mut(size)
        }

        fn par_chunks_exact(&self, size: usize) -> ChunksExact<'_, T> {
            self.chunks_exact(size)
        }

        fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T> {
            self.chunks_exact_mut(size)
        }

        fn par_sort_unstable_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering) {
            self.sort_unstable_by(compare);
        }
    }
}
