//! The mathematics of Pointsman.

mod error;
mod simplex;
mod table;
mod votes;
mod wasserstein;

pub use error::{Error, Result};
pub use simplex::{LabelDist, Peak, Real, SUM_TOLERANCE, top_class};
pub use table::Table;
pub use votes::Votes;
pub use wasserstein::{Cloud, DEFAULT_SPLITS, Distance, W1, distance, w1};
