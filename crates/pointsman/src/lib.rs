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

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
