//! Work on all threads with the feature `rayon`, on one thread without it.

pub(crate) use pointsman_trees::parallel::{current_num_threads, join, prelude};
