//! Partitions that learn: trees that find where the irreducible and the reducible loss differ.
//!
//! Trees are grown once, on items with two labels or more: on their unbiased Brier decomposition, on what acts cost under random weights of
//! classes, and on the losses of measured oracles. They do not depend on a task. The losses of a leaf under a task are estimated later, in `estimate`, from the rows of the leaf. The crate `pointsman-trees` grows and walks trees over
//! plain numbers; this module defines the inputs of trees and the statistics of leaves.

mod assignment;
mod class_weights;
mod divide;
mod honest;
mod honest_forest;
pub(crate) mod inputs;
mod leaf_numbers;
mod leaf_statistics;
mod learn;
mod out_of_bag;
mod parts;
mod refill;
mod rows_in_leaves;
mod scorer;
mod targets;
mod vote_counts;
mod vote_moments;

pub use assignment::Forest;
pub(crate) use honest::{Halves, grow_honest_tree};
pub use honest_forest::HonestForest;
pub use leaf_numbers::LeafNumbers;
pub(crate) use leaf_statistics::LeafStatistics;
pub(crate) use learn::grow_forest;
pub(crate) use out_of_bag::OutOfBagScorer;
pub use parts::ForestParts;
pub use pointsman_trees::{Bootstrap, Node, Trees};
pub(crate) use pointsman_trees::{add_leaf_values, growth_steps};
pub(crate) use refill::refill_trees;
pub(crate) use rows_in_leaves::{RowsInLeaves, TreeLeaves};
pub use scorer::Scorer;
pub use vote_counts::VoteCounts;
pub(crate) use vote_moments::{Shrunk, VoteRun, VoteVectors};
