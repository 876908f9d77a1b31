//! Regression forests over plain numbers: binning, growing, and finding the leaves of one row or of many.
//!
//! A [`TrainingSet`] holds rows of inputs with several targets, a weight and a key each. It grows [`Trees`]: binary trees that divide the rows
//! where the targets differ. A node's split is the one that explains most of the squared deviations of all targets together,
//!
//! gain = Σ_t (S_t,left² / W_left + S_t,right² / W_right − S_t² / W),
//!
//! with S_t the weighted sum of target t and W the sum of the weights. Inputs may be missing: a split sends NaN to the side where it explains
//! more, and may also separate missing values from all others.
//!
//! Trees give the leaf of a row and nothing else. The caller keeps one or more values per leaf and averages them over the trees, so one forest
//! can serve many purposes.
//!
//! ```
//! use pointsman_trees::{Bootstrap, TrainingSet, add_leaf_values};
//!
//! // 400 rows of two inputs; the target is a step of the first.
//! let inputs: Vec<f64> = (0..400).flat_map(|i| [f64::from(i % 20), f64::from(i * 7 % 31)]).collect();
//! let target = |row: usize| if inputs[2 * row] < 10.0 { -1.0 } else { 1.0 };
//! let (targets, keys): (Vec<[f64; 1]>, Vec<u32>) = (0..400).map(|row| ([target(row)], row as u32)).unzip();
//!
//! let training = TrainingSet::new(inputs.clone(), 2, targets, vec![1.0; 400], keys, |_| true)?;
//! let trees = training.grow_forest(10, Bootstrap::new(42, 400), &|| ())?;
//!
//! // One value per leaf: the mean target of the rows in it.
//! let (mut sums, mut counts) = (vec![0.0; trees.leaves()], vec![0.0; trees.leaves()]);
//! for (row, inputs) in inputs.chunks_exact(2).enumerate() {
//!     trees.leaves_of_row(inputs, |leaf| {
//!         sums[leaf as usize] += target(row);
//!         counts[leaf as usize] += 1.0;
//!     });
//! }
//! let means: Vec<f64> = sums.iter().zip(&counts).map(|(sum, n)| sum / n).collect();
//!
//! // One row, then many; the bits are the same.
//! let mut one = [0.0];
//! trees.leaves_of_row(&[3.0, 5.0], |leaf| add_leaf_values(&means, leaf, &mut one));
//! assert!(one[0] / 10.0 < -0.9);
//! let rows = [3.0, 5.0, 15.0, 5.0];
//! let inputs_of_rows = |range: std::ops::Range<usize>| rows[2 * range.start..2 * range.end].to_vec();
//! let many = trees.sum_leaf_values(&means, 2, inputs_of_rows, |_, sums| sums.to_vec()).concat();
//! assert!(many[0] == one[0] && many[1] / 10.0 > 0.9);
//!
//! // The seed determines the rows on which tree 0 was grown.
//! assert!((0..400).filter(|&key| Bootstrap::new(42, 400).sample(0).contains(key)).count() > 200);
//! # Ok::<(), pointsman_trees::Error>(())
//! ```
//!
//! # Walks
//! [`Trees::leaf_of_row`] is the reference: one row, one tree, floats compared node by node. [`Trees::leaves_of_row`] (one row, all trees) and
//! [`Trees::leaves_of_rows`] (many rows, one tree) compare 16-bit codes and walk in lockstep; a test holds them to the reference on random
//! forests. Design note 016, on tree evaluation, has the measured speed-up of each technique.
//!
//! # Determinism
//! The same rows, seed and number of trees give the same nodes for any number of threads. Sums are in the order of rows and of trees.
//!
//! # Features
//! `rayon` (on by default) uses all threads; without it everything runs on the caller's, with the same results.

mod bins;
mod bootstrap;
mod choose;
mod error;
mod grow;
mod hash;
mod histogram;
#[doc(hidden)]
pub mod parallel;
mod prune;
mod refill;
mod sums;
#[cfg(test)]
mod tests;
mod thresholds;
mod training;
mod trees;
mod walk;

pub use bins::threshold_between;
pub use bootstrap::{Bootstrap, BootstrapSample};
pub use error::{Error, Result};
pub use grow::{GrownTree, GrowthRule};
pub use sums::add_leaf_values;
pub use training::{LEAF_SIZES, TrainingSet, growth_steps, join_trees};
pub use trees::{MAX_DEPTH, MAX_INPUTS, Node, Trees};
pub use walk::EncodedRows;
