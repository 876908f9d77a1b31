//! Predict, route or abstain: the mathematics of Pointsman.
//!
//! A classifier's expected loss on a query has two parts: what nobody can know, since the labels themselves disagree
//! (*irreducible*), and what an oracle would save (*reducible*). From items that carry several independent labels a
//! [`Router`] learns both, cell by cell, for every proper loss at once. A [`Task`] adds a loss and prices; the
//! [`Policy`] that comes out decides queries in tens of nanoseconds:
//!
//! * predict, at the cost irreducible + reducible,
//! * route to an oracle, at the cost irreducible + its price (or, for a panel of experts and an oracle whose answers were
//!   measured, what that one loses + its price),
//! * or abstain, at a price.
//!
//! ```
//! use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
//!
//! let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.4, 0.6])?
//!     .with_votes(vec![5, 0, 2, 3, 0, 5, 1, 4])?;
//! let router = Router::calibrate(&table, &Partition::top_class(10))?;
//! let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.30)?;
//! let policy = router.policy(&task)?;
//! let decision = policy.decide(&[0.2, 0.8])?;
//! println!("{} {:?}", decision.action(), decision.costs());
//!
//! let replay = policy.replay(&table)?; // held-out rows, in earnest
//! println!("{:?}", replay.evaluate(&policy)?.mean_cost);
//! # Ok::<(), pointsman::Error>(())
//! ```
//!
//! Nothing here reads a file, a clock or a random number that was not asked for with a seed. The same table gives the
//! same bytes, whatever the order of its rows and the number of threads.

mod annotators;
mod auto;
mod ballots;
mod certificate;
mod diagnose;
mod e_process;
mod error;
mod estimate;
mod evaluate;
mod forest;
mod linear;
mod loss;
mod mix;
pub mod number;
mod oracle;
mod partition;
mod peaks;
mod policy;
mod predictions;
mod router;
mod simplex;
mod table;
mod task;
mod traffic;
mod votes;
mod wasserstein;

pub use annotators::{Annotations, Annotator, AnnotatorCheck, AnnotatorStatistics, NamedLabel, Suspicion};
pub use auto::{Candidate, Choice};
pub use certificate::{
    AllLosses, CellCertificate, CellJudgement, CellPlan, Certificate, CoarserCells, CoarserPartition, FirstCells,
    Interval, ItemToLabel, Judgement, Plan, Purchase, Together,
};
pub use diagnose::{
    Advice, Agreement, AtLimit, Bounds, ChangedCell, ClassMatch, Compared, ConfidenceBin, DIAGNOSIS_STEPS, Diagnosis,
    Enough, Estimate, FlaggedAnnotators, LeftOut, Mismatch, Recommendation, Sensitivity, Stopping, Unanimity,
    WeakModel, Worth, diagnose, diagnose_annotated, halves,
};
pub use e_process::EProcess;
pub use error::{Error, Result, printable};
pub use estimate::{Decomposition, Estimator};
pub use evaluate::{
    CalibrationError, CellError, CellLosses, CellSummary, Comparison, Correlations, Difference, Evaluation, GridRoute,
    HeldOutCell, Mean, MixtureHistogram, Named, PolicyCost, PriceGrid, Replay, RouteSummary, RoutingCurve, Saving,
    Sweep, SweepAxis, SweepPoint, TaskSummary, action_name, compare_policies, ranking_name, rule_name,
};
pub use forest::{Forest, HonestForest, Node, Scorer, Trees};
pub use loss::{CostMatrix, LOG_FLOOR, Loss, MAX_COST, NeverChosen};
pub use oracle::{Aggregate, MAX_EXPERTS, Oracle};
pub use partition::{Axis, CellId, Cells, Edges, Factor, MAX_CELLS, Partition};
pub use policy::{
    Action, Bid, CapRule, CapSize, CapUse, CappedSummary, Caps, Decision, Decisions, Flip, Level, MAX_CAPS, Policy,
    Promise, Reason, Surcharge, Tally, TallySummary, Verdict,
};
pub use router::{Cap, Mixture, Partial, Router, SPARSE, Support};
pub use simplex::{LabelDist, Peak, Real, SUM_TOLERANCE, top_class};
pub use table::{MAX_CLASSES, Table};
pub use task::{Limit, MAX_ROUTES, Route, Task, Ties};
pub use traffic::{MovedShare, TRAFFIC_DOUBT, TRAFFIC_TOLERANCE, Traffic, TrafficShift, share_limits};
pub use votes::Votes;
pub use wasserstein::{Cloud, DEFAULT_SPLITS, Distance, W1, distance, w1};
