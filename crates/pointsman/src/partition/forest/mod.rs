//! Partitions that learn: trees that find where the irreducible and the reducible loss differ.
//!
//! Trees are grown once, on the unbiased Brier decomposition of items with two labels or more, and know no task. What a
//! loss makes of them is worked out later from the rows in each leaf, by whoever knows the loss.

mod blocks;
mod crown;
mod cuts;
mod divide;
mod grow;
mod honest;
mod honest_forest;
pub(crate) mod inputs;
mod learn;
mod scorer;
mod settled;
mod shrunk;
mod targets;
mod trees;

pub(crate) use blocks::{add_leaf, add_up};
pub(crate) use honest::{Halves, tree};
pub use honest_forest::HonestForest;
pub(crate) use learn::{Bag, forest, steps};
pub use scorer::Scorer;
pub use settled::Forest;
pub(crate) use settled::LeafRows;
pub(crate) use shrunk::{PerBallot, Run, Shrunk, Sums, unweighted};
pub use trees::{Node, Trees};
