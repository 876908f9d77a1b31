//! The paper's experiments: synthetic worlds, a weak model, baselines and data sets.
//!
//! An [`Experiment`] is a list of parts, one per problem (a world or a data set) and seed. [`reproduce`] measures the
//! parts and writes each as soon as it is done, so that an interrupted run can be continued. The output is one JSON
//! file per experiment with every number of its figures, as mean and standard deviation over the seeds.
//!
//! | experiment | question |
//! |---|---|
//! | `routing` | does ranking by reducible loss beat ranking by total uncertainty? (Benefit 1) |
//! | `losses` | does one router serve losses it has never seen? (Benefit 2) |
//! | `three-way` | how much does abstaining save in addition to routing? (Benefit 3) |
//! | `correlation` | do reducible and total loss go together, so that decomposition does not matter? |
//! | `cells` | how many cells? |
//! | `labels` | how many labels per item, and which estimator when they are few? |
//! | `rows` | how many calibration rows? |
//! | `forest` | do learned partitions beat the paper's cells, and supervised routers on their own loss? |
//! | `oracles` | what do panels lose, and which size pays? |
//! | `budgets` | do budgets and target losses hold on test rows? |
//! | `functions` | what are the true functions of the synthetic worlds, and what do weak models predict? |
//! | `theory` | how tight are the bounds of the theorem, the partition lemma and the panels? |
//! | `tracks` | a weak model, a strong one that was measured, and people: who should answer? |
//!
//! Losses and costs are computed by the core crate; this crate draws, trains, ranks and counts.
//!
//! ```no_run
//! use pointsman_lab::{Experiment, Settings, Silent, reproduce};
//! let settings = Settings::quick("out");
//! reproduce(&[Experiment::Routing], &settings, &Silent)?;
//! # Ok::<(), pointsman_lab::Error>(())
//! ```

mod aggregate;
mod baselines;
mod datasets;
mod error;
mod experiments;
mod figures;
mod network;
mod numbers;
mod paper;
mod problem;
mod publish;
mod random;
mod run;
mod settings;
mod subsample;
mod worlds;

pub use baselines::Supervised;
pub use datasets::{DATA_VARIABLE, DataFolder, Dataset};
pub use error::{Error, Result};
pub use figures::draw;
pub use network::{Network, Training};
pub use numbers::{NUMBERS, load_numbers, measure_numbers, missing_numbers, numbers_page, numbers_topics};
pub use paper::{
    Claim, Reading, Verdict, beyond_page, claims, paper_page, shown_figures, tracks_headline, tracks_page,
};
pub use problem::{Problem, Source};
pub use publish::{pages, publish, write_pages};
pub use run::{Outcome, load_results, reproduce};
pub use settings::{Experiment, Monitor, Settings, Silent};
pub use worlds::{Draw, World};
