//! Partitions that learn: trees that find where the irreducible and the reducible loss differ.
//!
//! Trees are grown once, on the unbiased Brier decomposition of items with two labels or more, and know no task. What a
//! loss makes of them is worked out later from the rows in each leaf, by whoever knows the loss.

mod cuts;
mod grow;
mod honest;
pub(crate) mod inputs;
mod learn;
mod settled;
mod targets;
mod trees;

pub(crate) use honest::{grows, tree};
pub(crate) use learn::{Learned, errors_of_cells, forest, steps};
pub use settled::Forest;
pub(crate) use settled::LeafRows;
pub use trees::{Node, Trees};
