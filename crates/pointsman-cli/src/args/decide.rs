//! The arguments of `decide` and `plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pointsman_table::Format;

use super::task::TASK_HELP;
use super::values::{CapArg, confidence, label_count, label_price, labels_per_item, query_count};
use super::{TableArgs, TaskArgs, VotesArgs};
use crate::suggest::{self, suggest};

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

Columns written: those of the table, then cell, support, action, label, irreducible, reducible, \
cost_predict, cost_route_<name>, cost_abstain, reason, next_best; act for losses with acts of their \
own; certain (true or false) with --confidence; capped (the action a cap did not allow) with --cap. \
label and act are what predicting would answer, also on rows that are routed or abstained on; \
reducible is never below 0. Unknown numbers are left empty. A column of the table with one of these names is written as \
input_<name>. With --keep id only the column of ids comes before them, with --keep none nothing \
does.

Reasons: easy (the model is good enough), hard (an oracle would help), ambiguous (the labels \
themselves disagree), sparse (too few calibration rows to say), degraded (a cap or a limit forced the \
next-best action). next_best is the cheapest action not taken; where a cap or a limit forced an \
action, the one it did not allow.

A budget acts as a price: it routes the given share of traffic like the calibration rows, and may \
route another share of other traffic. A cap counts the queries of this table and is never exceeded.

A policy, written by pointsman compile, has a task: the flags of a task change its prices, routes \
and ties, but not its loss, estimator and kinds of oracles, which need the calibration rows; so do \
--confidence, --explain and warnings about unusual queries.

A file of decisions is written whole or not at all. Standard output is a stream: rows before a bad \
row are written, and the exit code is then not zero.

Examples:
  pointsman decide router.safetensors queries.parquet --route 0.05 \\
      --abstain 0.3 -o out.parquet
  cat queries.csv | pointsman decide router.safetensors - --route 0.05 | \\
      grep -v ,predict,
  pointsman decide router.safetensors queries.csv --route expert=0.05 \\
      --cap expert=500 -o out.csv
  pointsman decide router.safetensors queries.csv --route 0.05 --abstain 0.3 \\
      --explain 17
  pointsman decide policy.safetensors queries.csv -o out.csv"))]
pub(crate) struct DecideArgs {
    /// The router, or a policy compiled from it (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The queries: predictions, and the features the router needs (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// Where to write the decisions (- is standard output); without it a terminal shows the first rows only. The summary goes to
    /// standard error in any case, unless --json prints it
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The format of the decisions [default: by extension, csv on standard output]
    #[arg(long, value_name = "FORMAT", value_parser = suggest::<Format>(suggest::FORMATS), hide_possible_values = true)]
    pub(crate) output_format: Option<Format>,
    /// The columns of the table to write before those of the decisions
    #[arg(long, value_name = "COLUMNS", default_value = "all")]
    pub(crate) keep: Keep,
    /// Rows per batch
    #[arg(long, value_name = "N", default_value_t = 65_536, hide = true,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) batch_rows: u32,
    /// Add a column with whether each action is certain with this confidence, as in 0.95 or 95%
    #[arg(long, value_name = "C", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
    /// Send at most N queries of this table, or P per cent of them, to a route: those for which it saves most. The other queries take
    /// their next-best action. May be given for several routes
    #[arg(long, value_name = "NAME=N|NAME=P%")]
    pub(crate) cap: Vec<CapArg>,
    /// Never use this route of the task or policy, as while its oracle is away. May be given several times. The policy file of a
    /// forest under a limit cannot find its price without a route: --cap NAME=0 closes the route there
    #[arg(long, value_name = "NAME")]
    pub(crate) without_route: Vec<String>,
    /// Explain the decisions on these queries instead of writing all decisions: by id or, if no id is a number, by row number from 1;
    /// may be given several times. Ids may contain commas
    #[arg(long, value_name = "ID[,ID…]", conflicts_with_all = ["output", "output_format"])]
    pub(crate) explain: Vec<String>,
    /// Print a summary as JSON: shares, expected cost, reasons, warnings; with --explain, the explanation. Decisions are then
    /// written only with -o
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
}

/// Which columns of a table are written beside its decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// No columns
    None,
    /// The ids, if there are any
    Id,
    /// All columns
    All,
}

/// The labels that a plan recommends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlyLabels {
    /// Labels on items that the router does not have
    NewItems,
    /// More labels on items that the router has
    PresentItems,
}

impl OnlyLabels {
    /// As one types it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NewItems => "new-items",
            Self::PresentItems => "present-items",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

Numbers are forecasts, not promises: the recommended labels make a cell certain \
in about three of four cases. Worth is what they are expected to save per \
thousand queries like the calibration rows.

If the table of --items has votes, its items get more labels; without votes its \
items are new. Each list has its part of what is recommended, so that both \
together are bought once; --only recommends labels of one kind. Items that have labels, in --annotations or in the router, are \
not listed as new.

Examples:
  pointsman plan router.safetensors --route expert=0.05 --abstain 0.3
  pointsman plan router.safetensors --task task.toml --label-price 0.1 \\
      --traffic 1000000 --items calibration.csv -o to-label.csv
  pointsman plan more.safetensors --task task.toml --items pool.csv \\
      --annotations new-labels.csv -o to-label.csv
  pointsman plan router.safetensors --task task.toml --confidence 0.9 --json"))]
pub(crate) struct PlanArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The confidence with which a certain action is the best of its cell
    #[arg(long, value_name = "C", default_value_t = 0.95, value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: f64,
    /// What one label costs, in the unit of the loss, as the task's prices; to plan in money, use a cost matrix ("Choosing prices" in the book)
    #[arg(long, value_name = "X", value_parser = label_price, allow_negative_numbers = true)]
    pub(crate) label_price: Option<f64>,
    /// The number of queries within which labels must pay for themselves, as in 1000000 or 1M
    #[arg(long, value_name = "N", value_parser = query_count, allow_negative_numbers = true)]
    pub(crate) traffic: Option<f64>,
    /// The largest number of labels to buy, as in 5000 or 5k: plan names those that are expected to save most
    #[arg(long, value_name = "N", value_parser = label_count)]
    pub(crate) max_labels: Option<usize>,
    /// The most to spend on labels, in the unit of --label-price, which it needs: as --max-labels
    #[arg(long, value_name = "X", value_parser = label_price, allow_negative_numbers = true,
          conflicts_with = "max_labels")]
    pub(crate) spend: Option<f64>,
    /// The largest number of labels that one item may get in all, a new one too [default: the number of annotators if --annotations names them,
    /// otherwise any]
    #[arg(long, value_name = "N", value_parser = labels_per_item)]
    pub(crate) max_labels_per_item: Option<usize>,
    /// Recommend no other labels than these [default: new items and more labels on the router's items, in each cell the cheaper ones]
    #[arg(long, value_name = "WHICH")]
    pub(crate) only: Option<OnlyLabels>,
    /// Items that can be labelled, with ids: the calibration table for more labels per item, or a table without votes for new items
    #[arg(long, value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) items: Option<PathBuf>,
    /// Write the items to label, best first: id, cell, labels to add, worth (csv, jsonl, parquet, arrow, npz; needs --items)
    #[arg(short, long, value_name = "ITEMS", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}
