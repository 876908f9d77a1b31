//! The bootstrap samples on which trees are grown.

use crate::hash::{draw, unit};

/// The share of the rows that a tree is grown on.
const SHARE_OF_ROWS: f64 = 0.6;

/// The bootstrap sample of one tree: each row with probability 0.6, without replacement.
///
/// Rows are drawn by a hash of seed, tree and the row's key. A sample need not be stored: the seed determines which rows are in the sample and
/// which are out of bag.
///
/// ```
/// use pointsman_trees::BootstrapSample;
/// let sample = BootstrapSample::new(7, 0);
/// let rows = (0..1000).filter(|&key| sample.contains(key)).count();
/// assert!((550..650).contains(&rows));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BootstrapSample {
    seed: u64,
}

impl BootstrapSample {
    /// The sample of the tree with this number, of a forest with this seed.
    #[must_use]
    pub fn new(forest_seed: u64, tree: usize) -> Self {
        Self { seed: draw(forest_seed, tree as u64) }
    }

    /// Whether the row with this key is in the sample; if not, it is out of bag.
    #[inline]
    #[must_use]
    pub fn contains(self, key: u32) -> bool {
        unit(draw(self.seed, u64::from(key))) < SHARE_OF_ROWS
    }

    /// The seed by which the tree draws the inputs that are tried at each split.
    pub(crate) fn tree_seed(self) -> u64 {
        self.seed
    }
}
