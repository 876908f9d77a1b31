//! Partitions that learn: trees that find where the irreducible and the reducible loss differ.
//!
//! Trees are grown once, on the unbiased Brier decomposition of items with two labels or more, and know no task. What a
//! loss makes of them is worked out later from the rows in each leaf, by whoever knows the loss. Growing and walking trees over plain
//! numbers is the crate `pointsman-trees`'s; here is what trees ask about queries and what labels make of leaves.

mod assignment;
mod divide;
mod honest;
mod honest_forest;
pub(crate) mod inputs;
mod leaf_statistics;
mod learn;
mod scorer;
mod shrunk;
mod targets;

pub use assignment::Forest;
pub(crate) use honest::{Halves, tree};
pub use honest_forest::HonestForest;
pub(crate) use leaf_statistics::LeafStatistics;
pub(crate) use learn::grow_forest;
pub(crate) use pointsman_trees::{BootstrapSample, add_leaf_values, growth_steps};
pub use pointsman_trees::{Node, Trees};
pub use scorer::Scorer;
pub(crate) use shrunk::{PerVoteVector, Run, Shrunk, Sums, unweighted};
