//! The mathematics of Pointsman.

mod error;
mod estimate;
mod evaluate;
mod loss;
mod oracle;
mod partition;
mod policy;
mod router;
mod simplex;
mod table;
mod task;
mod votes;
mod wasserstein;

pub use error::{Error, Result};
pub use estimate::{Decomposition, Estimator};
pub use evaluate::{
    CalibrationError, CellError, Evaluation, Named, Replay, RouteSummary, Sweep, SweepAxis, SweepPoint, TaskSummary,
};
pub use loss::{LOG_FLOOR, Loss};
pub use oracle::Oracle;
pub use partition::{Axis, CellId, Cells, Edges, Factor, MAX_CELLS, Partition};
pub use policy::{Action, Decision, Level, Policy, Tally, TallySummary, Verdict};
pub use router::{Mixture, Router, SPARSE, Support};
pub use simplex::{LabelDist, Peak, Real, SUM_TOLERANCE, top_class};
pub use table::{MAX_CLASSES, Table};
pub use task::{MAX_ROUTES, Route, Task, Ties};
pub use votes::Votes;
pub use wasserstein::{Cloud, DEFAULT_SPLITS, Distance, W1, distance, w1};
