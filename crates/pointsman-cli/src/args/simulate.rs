//! The arguments of `demo` and `reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
#[command(after_help = "\
Experiments: routing, losses, three-way, correlation, cells, labels, rows, \
functions and theory are the paper's; forest, oracles, budgets and tracks go \
beyond it; numbers simulates how far the numbers of Pointsman are from the truth \
(numbers:TOPIC for one topic); all.

Every experiment writes its numbers to DIR/<experiment>.json and draws them, as \
SVG and PNG, into DIR/figures. The same command continues a run that was stopped.

Examples:
  pointsman reproduce all --quick -o out
  pointsman reproduce three-way --data ~/votes --seeds 3 -o out")]
pub(crate) struct ReproduceArgs {
    /// The experiment, or all
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// The number of training and calibration sets drawn per synthetic world [default: 10, with --quick 2]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// Where the data sets are [default: $POINTSMAN_TEST_DATA, else ../shared/data]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// Where to write results and trained models
    #[arg(short, long, value_name = "DIR", default_value = "pointsman-lab", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Use fewer seeds, halvings and test rows: everything in a few minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write results small enough for a repository, and the page written from them, into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide = true)]
    pub(crate) publish: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The demo marks its folder with a file .pointsman-demo. In a folder without that \
mark it replaces no files.

Example:
  pointsman demo -o /tmp/demo --seed 7")]
pub(crate) struct DemoArgs {
    /// The number of held-out rows
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) rows: u32,
    /// Seed of the simulated data
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where to write the files
    #[arg(short, long, value_name = "DIR", default_value = "pointsman-demo", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Replace files of the same names even if the demo did not write them
    #[arg(long)]
    pub(crate) force: bool,
}
