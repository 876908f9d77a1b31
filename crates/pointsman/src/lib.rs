//! Predict, route or abstain: the mathematics of Pointsman.
//!
//! A classifier's expected loss on a query has two parts: the *irreducible* loss, which remains even for an oracle because labels
//! themselves disagree, and the *reducible* loss, which an oracle would save. From items with several independent labels a [`Router`] learns
//! both, cell by cell, for every proper loss at once. A [`Task`] adds a loss and prices, which gives a [`Policy`] that decides queries in
//! tens of nanoseconds:
//!
//! * predict, at the cost irreducible + reducible,
//! * route to an oracle, at the cost irreducible + its price (or, for a panel of experts and a measured oracle, its own expected loss + its
//!   price),
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
//! let replay = policy.replay(&table)?; // in practice, on held-out rows
//! println!("{:?}", replay.evaluate(&policy)?.mean_cost);
//! # Ok::<(), pointsman::Error>(())
//! ```
//!
//! The crate reads no files and no clock, and all random numbers come from given seeds. The same table gives the same bytes for any order of
//! its rows and any number of threads.
//!
//! # Features
//! Both are on by default.
//! * `rayon`: uses all threads. Without it everything runs on the caller's, with the same results.
//! * `serde`: results can be serialised.

pub mod calibrate;
pub mod certify;
pub mod diagnose;
pub mod error;
pub mod estimate;
pub mod evaluate;
pub mod loss;
pub mod monitor;
pub mod number;
mod numeric;
pub mod oracle;
mod parallel;
pub mod partition;
pub mod policy;
pub mod router;
pub mod table;
pub mod task;
pub mod wasserstein;

pub use calibrate::RouterBuilder;
pub use certify::Certificate;
pub use diagnose::Diagnosis;
pub use error::{Error, Result};
pub use estimate::Decomposition;
pub use evaluate::{Evaluation, Replay};
pub use loss::Loss;
pub use oracle::Oracle;
pub use partition::{CellId, Cells, Partition};
pub use policy::{Action, Decision, Decisions, Policy};
pub use router::{Mixture, Router, Support};
pub use table::{LabelDist, Table, Votes};
pub use task::{Estimator, Limit, Task};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
