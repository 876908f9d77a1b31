//! The bootstrap samples on which trees are grown.

use crate::error::{Error, Result};
use crate::hash::{draw, unit};

/// The share of the rows that a tree is grown on, unless that is more than [`MAX_ROWS_PER_TREE`].
const SHARE_OF_ROWS: f64 = 0.6;

/// The number of rows that trees of a large table are grown on. Splits need tens of thousands of rows; more only take more time.
const MAX_ROWS_PER_TREE: usize = 60_000;

/// The largest number of rows from which the samples of a forest are drawn.
const MAX_ROWS_TO_DRAW_FROM: usize = 1 << 18;

/// How the bootstrap samples of a forest are drawn: each row with the same probability, without replacement.
///
/// Rows are drawn by a hash of seed, tree and the row's key. A sample need not be stored: the seed determines which rows are in the sample and
/// which are out of bag.
///
/// ```
/// use pointsman_trees::Bootstrap;
/// let sample = Bootstrap::new(7, 1000).sample(0);
/// let rows = (0..1000).filter(|&key| sample.contains(key)).count();
/// assert!((550..650).contains(&rows));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    seed: u64,
    share: f64,
    keys: u32,
}

/// The bootstrap sample of one tree.
#[derive(Debug, Clone, Copy)]
pub struct BootstrapSample {
    /// The samples of the forest, with the seed of this tree.
    of_tree: Bootstrap,
}

impl Bootstrap {
    /// The samples of a table with this number of rows: six in ten per tree, or 60,000 of a large table. The keys of the rows are 0, 1, 2 and
    /// so on, in random order.
    #[must_use]
    pub fn new(seed: u64, rows: usize) -> Self {
        let drawn_from = rows.clamp(1, MAX_ROWS_TO_DRAW_FROM);
        let keys = if rows > MAX_ROWS_TO_DRAW_FROM { MAX_ROWS_TO_DRAW_FROM as u32 } else { u32::MAX };
        Self { seed, share: SHARE_OF_ROWS.min(MAX_ROWS_PER_TREE as f64 / drawn_from as f64), keys }
    }

    /// Samples of the rows with keys below `keys`, each with probability `share`.
    ///
    /// # Errors
    /// If the share is not in (0, 1].
    pub fn from_parts(seed: u64, share: f64, keys: u32) -> Result<Self> {
        if share > 0.0 && share <= 1.0 { Ok(Self { seed, share, keys }) } else { Err(Error::Share { share }) }
    }

    /// The seed.
    #[must_use]
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// The probability with which a row is drawn.
    #[must_use]
    pub fn share(self) -> f64 {
        self.share
    }

    /// Rows with this key or above are never drawn.
    #[must_use]
    pub fn keys(self) -> u32 {
        self.keys
    }

    /// The sample of the tree with this number.
    #[must_use]
    pub fn sample(self, tree: usize) -> BootstrapSample {
        BootstrapSample { of_tree: Self { seed: draw(self.seed, tree as u64), ..self } }
    }
}

impl BootstrapSample {
    /// Whether the row with this key is in the sample; if not, it is out of bag.
    #[inline]
    #[must_use]
    pub fn contains(self, key: u32) -> bool {
        let Bootstrap { seed, share, keys } = self.of_tree;
        key < keys && unit(draw(seed, u64::from(key))) < share
    }

    /// The seed by which the tree draws the inputs that are tried at each split.
    pub(crate) fn tree_seed(self) -> u64 {
        self.of_tree.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_large_tables_are_bounded() {
        for rows in [1_000, 100_000, 250_000, 1_000_000] {
            let bootstrap = Bootstrap::new(3, rows);
            let drawn: Vec<u32> = (0..rows as u32).filter(|&key| bootstrap.sample(1).contains(key)).collect();
            let expected = (0.6 * rows as f64).min(60_000.0);
            assert!((drawn.len() as f64 / expected - 1.0).abs() < 0.1, "{} of {rows} rows", drawn.len());
            assert!(drawn.iter().all(|&key| (key as usize) < MAX_ROWS_TO_DRAW_FROM));
            assert_eq!(Bootstrap::from_parts(3, bootstrap.share(), bootstrap.keys()), Ok(bootstrap));
        }
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(matches!(Bootstrap::from_parts(0, share, 9), Err(Error::Share { .. })));
        }
    }
}
