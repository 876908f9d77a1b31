//! The arguments of `calibrate` and `merge`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pointsman::Partition;

use super::{TableArgs, VotesArgs};
use crate::suggest::{self, suggest};

#[derive(Debug, Args)]
#[command(after_help = "\
Partitions: auto (the default) chooses pooled, tree, honest-forest:200 or \
forest:200, whichever costs least on rows left out. pooled has cells by \
confidence, and by top class where there are enough rows; their losses are \
shrunk towards those of neighbouring cells. tree, honest-forest:T and forest:T \
(T trees) split rows by the prediction and all features where the votes differ. \
The paper's partitions, with B bins, are top-class:B, confidence:B, level-sets \
and features:x_a=B,x_b=B, joined by * for products.

Examples:
  pointsman calibrate calibration.csv -o router.safetensors
  pointsman calibrate calibration.csv -o router.safetensors --certifiable
  pointsman calibrate calibration.csv -o router.safetensors \\
      --partition top-class:10
  pointsman calibrate today.csv -o today.safetensors --like router.safetensors
  pointsman calibrate all.parquet --where split=0 -o router.safetensors \\
      --partition 'top-class:10*features:x_length=4'
  pointsman calibrate 'parts/*.csv' more.parquet -o router.safetensors
  pointsman calibrate items.csv --annotations labels.csv --normalize \\
      -o router.safetensors
  pointsman calibrate new-items.csv --annotations new-labels.csv \\
      --add-to router.safetensors -o more.safetensors")]
pub(crate) struct CalibrateArgs {
    /// The calibration tables: predictions and several labels per row (- is standard input). Several tables with the same columns count
    /// as one, in any order; patterns such as 'parts/*.csv' may be quoted
    #[arg(value_name = "TABLE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) tables: Vec<PathBuf>,
    /// Where to write the router (- is standard output; the summary then goes to standard error)
    #[arg(short, long, value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Print what was learned as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// How to group inputs into cells
    #[arg(long, value_name = "P", default_value = "auto",
          value_parser = suggest::<Partition>(suggest::PARTITIONS), hide_possible_values = true)]
    pub(crate) partition: Partition,
    /// Let auto choose among partitions with cells only, which certificates and plans need
    #[arg(long)]
    pub(crate) certifiable: bool,
    /// Use the cells or the forest of this router instead of fitting new ones, and serve what it serves. If they were learned from labels
    /// (tree, honest-forest, forest), certificates and expected costs hold only if this table has none of the rows they were learned from
    #[arg(long, value_name = "ROUTER", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["partition", "certifiable", "recalibrate", "seed"])]
    pub(crate) like: Option<PathBuf>,
    /// Add the rows of the table to those of this router, in its cells: for new items from plan. Each cell keeps its share of the
    /// traffic, however many items were labelled in it
    #[arg(long, value_name = "ROUTER", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["partition", "certifiable", "recalibrate", "seed", "like"])]
    pub(crate) add_to: Option<PathBuf>,
    /// What to do with rows of --add-to whose items the router has, as in a full export of the labelling tool: refuse them, skip them, or
    /// count them again
    #[arg(long, value_enum, default_value_t = KnownItems::Refuse, requires = "add_to")]
    pub(crate) known_items: KnownItems,
    /// Write a part of a calibration, to be merged with others, instead of a router
    #[arg(long, requires = "like", conflicts_with = "json")]
    pub(crate) part: bool,
    /// Seed of trees and forests: the same seed and rows give the same router
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Serve each cell's mean label distribution instead of the weak prediction
    #[arg(long)]
    pub(crate) recalibrate: bool,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}

/// What to do with rows of items that a router has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnownItems {
    /// Refuse the table
    Refuse,
    /// Leave these rows out
    Skip,
    /// Add these rows too
    Add,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each part is made on the machine that has the rows, with the cells of one router:
  pointsman calibrate monday.csv --like router.safetensors --part \\
      -o monday.part
  pointsman calibrate tuesday.csv --like router.safetensors --part \\
      -o tuesday.part
  pointsman merge monday.part tuesday.part -o week.safetensors
  pointsman merge '*.part' -o week.safetensors")]
pub(crate) struct MergeArgs {
    /// The parts, in any order (- is standard input); patterns such as '*.part' may be quoted
    #[arg(value_name = "PART", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) parts: Vec<PathBuf>,
    /// Where to write the router (- is standard output; the summary then goes to standard error)
    #[arg(short, long, value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Print a summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
