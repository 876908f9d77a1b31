//! The command line as typed.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use pointsman::evaluate::Sweep;
use pointsman::policy::CapSize;
use pointsman::task::Ties;
use pointsman::{Estimator, Loss, Oracle, Partition};
use pointsman_table::{Columns, Delimiter, Filter, Format};

use crate::evaluate::fail_if::Condition;
use crate::render::number::plain;
use crate::suggest::{self, suggest};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const LOSSES: &str = "\
Losses: brier, cross-entropy, spherical, zero-one, fn-fp:fp=1,fn=3, three-part, \
asymmetric:2; any cost matrix in a task file.
Kinds of oracles: bayes (knows the truth; the default); \
panel:m=3,aggregate=mean, plurality or laplace (m experts who label as the \
calibration labels do); measured (the table has its predictions in \
oracle_<name>_<class>).
Prices are in the unit of the loss.";

/// Predict, route or abstain: a cheap classifier, an expensive oracle, and decisions you can trust with money
#[derive(Debug, Parser)]
#[command(name = "pointsman", version, styles = STYLES, max_term_width = 100, after_help = "\
A first look, needing nothing:
  pointsman demo

On your own table of prob_<class> and votes_<class> columns:
  pointsman diagnose calibration.csv --route 0.05 --abstain 0.3
  pointsman calibrate calibration.csv -o router.safetensors
  pointsman show router.safetensors --route 0.05 --abstain 0.3
  pointsman decide router.safetensors queries.csv --route 0.05 --abstain 0.3 \\
      -o decisions.csv
  pointsman evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.3")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print errors only. What is asked for is still written: files, --json, and tables to a pipe or to -o -
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Learn a router from a table of predictions and votes; no loss or price is involved
    Calibrate(CalibrateArgs),
    /// Merge parts of a calibration into a router
    Merge(MergeArgs),
    /// Show a router's cells, and for a task what it does in each and why
    Show(ShowArgs),
    /// Decide every row of a table: predict, route or abstain
    Decide(DecideArgs),
    /// List the cells that need more labels before their action is certain, and what that is worth
    Plan(PlanArgs),
    /// Prove it on held-out rows: costs, regrets, routing curves, calibration error
    Evaluate(EvaluateArgs),
    /// Compare routers or tasks on one held-out table: costs, paired differences, shares
    Compare(CompareArgs),
    /// Find out whether decomposition helps on a table, and whether the table is good enough to show it
    Diagnose(DiagnoseArgs),
    /// Verify a router or a task file and describe it in words
    Check(CheckArgs),
    /// Task files: whether they can be used, and what they mean
    #[command(subcommand)]
    Task(TaskCommand),
    /// Build a small world, calibrate, decide and evaluate in it, explaining each step
    Demo(DemoArgs),
    /// Repeat the paper's experiments (needs a build with the feature lab)
    Reproduce(ReproduceArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  pointsman completions bash > /etc/bash_completion.d/pointsman")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What is wanted: a loss, priced oracles, a price for abstaining.
#[derive(Debug, Args)]
#[command(next_help_heading = "Task")]
pub(crate) struct TaskArgs {
    /// What a wrong answer costs [default: brier]
    #[arg(long, value_name = "L", value_parser = suggest::<Loss>(suggest::LOSSES), hide_possible_values = true)]
    pub(crate) loss: Option<Loss>,
    /// An oracle and what asking it costs; may be given several times
    #[arg(long, value_name = "[NAME=]COST[,KIND]", allow_negative_numbers = true,
          value_parser = suggest::<RouteArg>(suggest::ROUTES), hide_possible_values = true)]
    pub(crate) route: Vec<RouteArg>,
    /// What abstaining costs; left out, Pointsman never abstains
    #[arg(long, value_name = "COST", value_parser = price, allow_negative_numbers = true)]
    pub(crate) abstain: Option<f64>,
    /// Route at most this share of traffic like the calibration rows, as in 0.2 or 20%, by a price that is found. On traffic that
    /// differs the share differs too; decide --cap is a hard limit
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub(crate) budget: Option<f64>,
    /// Route as little as possible to keep the expected loss at this; prices of routes then only rank them
    #[arg(long, value_name = "LOSS", value_parser = price, allow_negative_numbers = true, conflicts_with = "budget")]
    pub(crate) target_loss: Option<f64>,
    /// How the irreducible loss is estimated: auto, shrink, plugin, npmle or dirichlet [default: auto]
    #[arg(long, value_name = "E", value_parser = suggest::<Estimator>(suggest::ESTIMATORS), hide_possible_values = true)]
    pub(crate) estimator: Option<Estimator>,
    /// Which action wins a tie: frugal (never pay) or paper [default: frugal]
    #[arg(long, value_name = "T", value_parser = suggest::<Ties>(suggest::TIES), hide_possible_values = true)]
    pub(crate) ties: Option<Ties>,
    /// Read the task from a TOML file (- is standard input); flags override what it says; compare and show --confidence take several
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) task: Vec<PathBuf>,
}

impl TaskArgs {
    /// Whether any of them was given.
    pub(crate) fn is_given(&self) -> bool {
        let Self { loss, route, abstain, budget, target_loss, estimator, ties, task } = self;
        loss.is_some()
            || !route.is_empty()
            || abstain.is_some()
            || budget.is_some()
            || target_loss.is_some()
            || estimator.is_some()
            || ties.is_some()
            || !task.is_empty()
    }
}

/// A share as a number or in per cent.
fn share(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%') {
        Some(number) => {
            // Per cent are divided as text, so that 95% is the same number as 0.95.
            let number = number.trim();
            let shift = |number: &str| format!("{number}e-2").parse::<f64>();
            shift(number).map_err(|_| not_a_number(number, "write a share, as in 0.2 or 20%"))
        }
        None => {
            let share =
                text.trim().parse::<f64>().map_err(|_| not_a_number(text, "write a share, as in 0.2 or 20%"))?;
            match share > 1.0 && share <= 100.0 {
                true => Err(format!("a share is from 0 to 1: for {text} % write {} or {text}%", plain(share / 100.0))),
                false => Ok(share),
            }
        }
    }
}

/// How sure something must be, as a number or in per cent.
fn confidence(text: &str) -> Result<f64, String> {
    share(text).map_err(|why| why.replace("a share is from 0 to 1", "a confidence is between 0 and 1"))
}

/// A price, in the unit of the loss.
fn price(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| not_a_number(text, "write a number, as in 0.3"))
}

/// What is said of text that is no number: a decimal comma is named, else what to write.
fn not_a_number(text: &str, write: &str) -> String {
    match decimal_point(text) {
        Some(point) => format!("use a decimal point: {point}"),
        None => write.to_owned(),
    }
}

/// A number with a decimal comma, with a point instead.
fn decimal_point(text: &str) -> Option<String> {
    let point = text.trim().replacen(',', ".", 1);
    (text.contains(',') && point.parse::<f64>().is_ok()).then_some(point)
}

/// What can be done with a task file.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Check a task file and explain it in words: loss, acts, routes, prices, limits, estimator
    Check(CheckArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A router is loaded only if its checksum, every size, every range and every sum \
are right. The exit code is 2 if a file cannot be used, with the line of a task \
that is at fault, or if a task cannot decide predictions over the classes given. \
For check, files that end in .toml are tasks; for task check, all are.

Examples:
  pointsman check router.safetensors
  pointsman check triage.toml --classes cat,dog,owl
  pointsman task check triage.toml --json")]
pub(crate) struct CheckArgs {
    /// The router or the task file, as --task takes it (- is standard input)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The classes of the predictions, in the router's order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) classes: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `[NAME=]COST[,KIND]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RouteArg {
    pub(crate) name: String,
    pub(crate) cost: f64,
    /// The kind of oracle, if it was said.
    pub(crate) oracle: Option<Oracle>,
}

impl FromStr for RouteArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (priced, kind) = text.split_once(',').map_or((text, None), |(priced, kind)| (priced, Some(kind)));
        let (name, cost) = priced.split_once('=').unwrap_or(("oracle", priced));
        if let Some(point) = kind.and_then(|kind| decimal_point(&format!("{cost},{kind}"))) {
            let name = if priced.contains('=') { format!("{name}=") } else { String::new() };
            bail!("{text:?} is not a price: use a decimal point, {name}{point}");
        }
        let Ok(cost) = cost.trim().parse() else {
            bail!("{:?} is not a price: write [NAME=]COST[,KIND], as in expert=0.05", cost.trim());
        };
        Ok(Self { name: name.trim().to_owned(), cost, oracle: kind.map(|kind| kind.trim().parse()).transpose()? })
    }
}

/// `NAME=N` or `NAME=P%`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CapArg {
    pub(crate) name: String,
    pub(crate) size: CapSize,
}

impl FromStr for CapArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, size)) = text.rsplit_once('=') else {
            bail!("{text:?} is not a cap: write NAME=N or NAME=P%, as in expert=500 or expert=5%");
        };
        Ok(Self { name: name.trim().to_owned(), size: size.parse()? })
    }
}

/// How to read a table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct TableArgs {
    /// Keep the rows whose column has this value; may be given several times
    #[arg(long = "where", value_name = "COL=VALUE")]
    pub(crate) filters: Vec<Filter>,
    /// The table's format: csv, tsv, jsonl, parquet, arrow or npz [default: by extension or content]. Text may be compressed: .gz, .zst
    #[arg(long, value_name = "FORMAT", value_parser = suggest::<Format>(suggest::FORMATS), hide_possible_values = true)]
    pub(crate) format: Option<Format>,
    /// What separates the columns of CSV: comma, semicolon, tab, pipe or any one character [default: comma, in .tsv tab]
    #[arg(long, value_name = "CHAR", value_parser = suggest::<Delimiter>(suggest::DELIMITERS), hide_possible_values = true)]
    pub(crate) delimiter: Option<Delimiter>,
    /// Other names for columns, as in probs=p_,votes=v_,id=uid. Keys: probs, votes, labels, features, oracles, truth, id, weight,
    /// classes; label, annotator and date in --annotations. Features go by a prefix or by whole names, each given by itself:
    /// features=words,features=age
    #[arg(long, value_name = "KEY=NAME,…")]
    pub(crate) columns: Option<Columns>,
    /// Divide probabilities that do not sum to one by their sum, for rounded numbers and percentages; the sums found are reported
    #[arg(long)]
    pub(crate) normalize: bool,
}

/// Where the votes come from, if not from the table's own columns.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct VotesArgs {
    /// Take the votes from a long table id,label[,annotator], its rows in the order of labelling, or sorted by --columns date=NAME;
    /// diagnose tests annotators that are named. What has an id in both tables is joined; ids without a counterpart are reported
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) annotations: Option<PathBuf>,
    /// Refuse annotations unless every id is in both tables, and once only in the table
    #[arg(long, requires = "annotations")]
    pub(crate) strict: bool,
    /// Keep only the first K labels of every row, in the order of the file: for labels that were collected until
    /// annotators agreed
    #[arg(long, value_name = "K", value_parser = first_labels)]
    pub(crate) first_labels: Option<NonZeroU32>,
    /// Leave out every label of this annotator; may be given several times. Rows that nobody else labelled are left out too
    #[arg(long, value_name = "NAME", requires = "annotations")]
    pub(crate) without: Vec<String>,
}

fn first_labels(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "keep a whole number of labels, at least 1 and better 2 or more".into())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Partitions: auto (the default) takes pooled, tree, honest-forest:200 or \
forest:200, whichever costs least on rows left out. pooled has cells by \
confidence, and by top class where there are enough rows, whose losses are \
shrunk towards those of neighbours. tree, honest-forest:T and forest:T learn \
from the votes which rows differ, by the prediction and every feature. The \
paper's are top-class:B, confidence:B, level-sets, features:x_a=B,x_b=B, joined \
by * for products.

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
    /// Keep auto to partitions with cells: what certificates, plans and calibration in parts need
    #[arg(long)]
    pub(crate) certifiable: bool,
    /// Use the cells of this router instead of fitting new ones, and serve what it serves. If they learned from labels (tree,
    /// honest-forest), the rows they learned from must not be in this table, or certificates do not hold
    #[arg(long, value_name = "ROUTER", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["partition", "certifiable", "recalibrate", "seed"])]
    pub(crate) like: Option<PathBuf>,
    /// Add the rows of the table to those that this router keeps, in its cells: for new items that plan asked for. Each cell keeps
    /// its share of the traffic, however many items were labelled in it
    #[arg(long, value_name = "ROUTER", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["partition", "certifiable", "recalibrate", "seed", "like"])]
    pub(crate) add_to: Option<PathBuf>,
    /// Write a part of a calibration, to be merged with others, instead of a router
    #[arg(long, requires = "like", conflicts_with = "json")]
    pub(crate) part: bool,
    /// The seed of partitions that learn: the same seed and rows give the same router
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

#[derive(Debug, Args)]
#[command(after_help = format!("{LOSSES}

Examples:
  pointsman show router.safetensors
  pointsman show router.safetensors --loss zero-one --route expert=0.05 \\
      --sort margin
  pointsman show router.safetensors --route one=0.02,panel:m=1 \\
      --route three=0.06,panel:m=3
  pointsman show router.safetensors --route expert=0.05 --confidence 0.95
  pointsman show router.safetensors --task triage.toml --task audit.toml \\
      --confidence 0.95
  pointsman show router.safetensors --route expert=0.05 --explain 3"))]
pub(crate) struct ShowArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The order of the cells
    #[arg(long, value_name = "KEY", default_value = "cell")]
    pub(crate) sort: SortKey,
    /// Show intervals that hold with this confidence, as in 0.95 or 95%, and which actions are certain
    #[arg(long, value_name = "C", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
    /// Explain one cell, by number: its rows, all costs, the runner-up and which price would change its action
    #[arg(long, value_name = "CELL")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
}

/// What cells are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// Their number
    Cell,
    /// Their calibration rows, most first
    Rows,
    /// How clear the decision is, least first
    Margin,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{LOSSES}

Columns written: those of the table, then cell, support, action, label, irreducible, reducible, \
cost_predict, cost_route_<name>, cost_abstain, reason, next_best; act for losses with acts of their \
own; certain (true or false) with --confidence; capped (the action a cap did not allow) with --cap. \
Unknown numbers are left empty. A column of the table that has the name of one of these is written \
as input_<name>. With --keep id only id comes before them, with --keep none nothing does.

Reasons: easy (the model is good enough), hard (an oracle would help), ambiguous (nobody can know: \
the labels disagree), sparse (too few calibration rows to say), degraded (a cap forced the next-best \
action). next_best is the cheapest action not taken; where a cap forced an action, the one wanted.

A budget is a price: it routes the share asked for of traffic like the calibration rows, and more or \
less of other traffic. A cap counts the queries of this table and is never exceeded.

Written to a file, decisions appear whole or not at all; standard output is a stream: rows before \
a bad one are there, and the exit code says so.

Examples:
  pointsman decide router.safetensors queries.parquet --route 0.05 \\
      --abstain 0.3 -o out.parquet
  cat queries.csv | pointsman decide router.safetensors - --route 0.05 | \\
      grep -v ,predict,
  pointsman decide router.safetensors queries.csv --route expert=0.05 \\
      --cap expert=500 -o out.csv
  pointsman decide router.safetensors queries.csv --route 0.05 --abstain 0.3 \\
      --explain 17"))]
pub(crate) struct DecideArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The queries: predictions, and the features the router needs (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// Where to write the decisions (- is standard output); left out on a terminal: the first rows only
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The format of the decisions [default: by extension, csv on standard output]
    #[arg(long, value_name = "FORMAT", value_parser = suggest::<Format>(suggest::FORMATS), hide_possible_values = true)]
    pub(crate) output_format: Option<Format>,
    /// The columns of the table that are written before those of the decisions
    #[arg(long, value_name = "COLUMNS", default_value = "all")]
    pub(crate) keep: Keep,
    /// Rows decided at a time
    #[arg(long, value_name = "N", default_value_t = 65_536, hide = true,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) batch_rows: u32,
    /// Add a column that says whether each action is certain with this confidence, as in 0.95 or 95%
    #[arg(long, value_name = "C", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
    /// Send at most so many queries of this table to a route, or so many per cent of them: the cap is kept exactly and spent where
    /// it saves most; other queries take their next-best action. May be given for several routes
    #[arg(long, value_name = "NAME=N|NAME=P%")]
    pub(crate) cap: Vec<CapArg>,
    /// Explain the decisions on these queries instead of writing them all: by id or, where no id is a number, by row counted
    /// from one; may be given several times. An id that contains a comma is taken whole if there is one
    #[arg(long, value_name = "ID[,ID…]", conflicts_with_all = ["output", "output_format"])]
    pub(crate) explain: Vec<String>,
    /// Print a summary as JSON: shares, expected cost, reasons, warnings; with --explain, the explanation. Decisions are then
    /// written only where -o says
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
    /// None
    None,
    /// The ids, if there are any
    Id,
    /// All, as they are
    All,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{LOSSES}

Figures are forecasts, not promises: the labels asked for make a cell certain in \
about three of four cases. Worth is what they are expected to save per thousand \
queries like the calibration rows.

Items with votes in --items get more labels; items of a table without votes are \
new ones.

Examples:
  pointsman plan router.safetensors --route expert=0.05 --abstain 0.3
  pointsman plan router.safetensors --task task.toml --label-price 0.1 \\
      --traffic 1000000 --items calibration.csv -o to-label.csv
  pointsman plan router.safetensors --task task.toml --confidence 0.9 --json"))]
pub(crate) struct PlanArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// How sure an action must be to be called certain
    #[arg(long, value_name = "C", default_value_t = 0.95, value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: f64,
    /// What one label costs, in the unit of the task's prices
    #[arg(long, value_name = "X", value_parser = not_negative, allow_negative_numbers = true)]
    pub(crate) label_price: Option<f64>,
    /// How many queries the labels are to pay for themselves on, as in 1000000 or 1M
    #[arg(long, value_name = "N", value_parser = queries, allow_negative_numbers = true)]
    pub(crate) traffic: Option<f64>,
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

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=f64::MAX).contains(&x) => Ok(x),
        _ => Err(not_a_number(text, &format!("{text} is not a number from zero on"))),
    }
}

/// A number of queries: 1000000, 1,000,000, 1_000_000, 250k or 1M.
fn queries(text: &str) -> Result<f64, String> {
    let refuse = || format!("{text} is not a number of queries from zero on: write 1000000, 1,000,000, 250k or 1M");
    let (number, unit) = match text.trim().strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.trim().strip_suffix(['m', 'M']).map_or((text.trim(), 1.0), |number| (number, 1e6)),
    };
    let mut groups = number.split([',', '_']);
    let is_grouped = groups.next().is_some_and(|first| (1..=3).contains(&first.len()))
        && groups.all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()));
    let plain = if is_grouped { number.replace([',', '_'], "") } else { number.to_owned() };
    match plain.parse::<f64>() {
        Ok(n) if (0.0..=f64::MAX).contains(&(n * unit)) => Ok(n * unit),
        _ => Err(refuse()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = format!("{LOSSES}

Truth is the mean of a row's labels, or true_<class> columns if there are any.

Conditions of --fail-if compare estimates, corrected for few labels, not ends of \
intervals: saving is against always predicting, routing or abstaining or the \
best confidence threshold, whichever is cheapest; regret is against the best \
action per cell or, for a forest, the best possible per query; drift holds if \
shares of cells have moved (at most once in twenty by chance).

Examples:
  pointsman evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.3
  pointsman evaluate router.safetensors all.npz --where split=1 \\
      --loss zero-one --route expert=0.1 --sweep route:expert=0:0.3:0.05 --json
  pointsman evaluate router.safetensors today.csv --route 0.05 \\
      --fail-if 'saving<0' --fail-if drift"))]
pub(crate) struct EvaluateArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The held-out table: predictions, and votes or known truth (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// Try a price at many values: abstain=FROM:TO:STEP, route=… or route:NAME=…; may be given several times
    #[arg(long, value_name = "SWEEP")]
    pub(crate) sweep: Vec<Sweep>,
    /// Exit with code 3 if a condition holds: saving<X (a share of the cost of the best simple rule, or X%), cost>X, regret>X or drift;
    /// may be given several times
    #[arg(long, value_name = "COND")]
    pub(crate) fail_if: Vec<Condition>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write report.html, report.json and figures/ into this directory
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Seed of the random splits behind the calibration error's floor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Leave out the calibration error, the slowest part
    #[arg(long)]
    pub(crate) no_calibration_error: bool,
    /// Caps are for decide: here they are answered in words
    #[arg(long, value_name = "NAME=N|NAME=P%", hide = true)]
    pub(crate) cap: Vec<String>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}

#[derive(Debug, Args)]
#[command(override_usage = "pointsman compare [OPTIONS] <ROUTER>... <TABLE> [TASK.toml]...", after_help = format!("{LOSSES}

Files that end in .toml are tasks, wherever they stand, as are those of --task; \
of the other files the last is the table and all before it are routers. Every \
router is judged under every task; flags such as --route override what every \
task file says. The first policy, or --baseline, is what others are compared \
with, row by row: below zero is cheaper. Policies under another loss than the \
baseline's have no difference, since their costs are in another unit; shares \
can always be compared.

Examples:
  pointsman compare old.safetensors new.safetensors heldout.csv \\
      --route 0.05 --abstain 0.3
  pointsman compare router.safetensors heldout.csv cheap.toml dear.toml \\
      --baseline dear.toml
  pointsman compare router.safetensors all.parquet --task a.toml \\
      --task b.toml --where split=1"))]
pub(crate) struct CompareArgs {
    /// The routers, then one held-out table with votes or known truth; task files (.toml) anywhere (- is standard input)
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The router or task file that the others are compared with, or both as in old+cheap [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
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

#[derive(Debug, Args)]
#[command(after_help = format!("{LOSSES}

The table is halved ten times by content; routers of one half are judged on the \
other, both ways round. Without prices the order of routing is judged, with them \
the cost per query. -o writes a page: the verdict, a reliability diagram, gains \
with intervals, annotators, and what to do next.

Examples:
  pointsman diagnose calibration.csv
  pointsman diagnose items.csv --annotations labels.csv --without ann7
  pointsman diagnose all.npz --loss zero-one --route expert=0.05 \\
      --abstain 0.3 -o diagnosis"))]
pub(crate) struct DiagnoseArgs {
    /// The table: predictions and several labels per row (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// How to group inputs into cells; auto is what calibrate takes, chosen anew by each half of the rows
    #[arg(long, value_name = "P", default_value = "auto",
          value_parser = suggest::<Partition>(suggest::PARTITIONS), hide_possible_values = true)]
    pub(crate) partition: Partition,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write diagnosis.html, diagnosis.json, and the report of one half judged on the other (report.html) into this directory
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Experiments: routing, losses, three-way, correlation, cells, labels, rows, \
functions and theory are the paper's; forest, oracles, budgets and tracks go \
beyond it; numbers simulates how far the numbers of Pointsman are from the truth \
(numbers:TOPIC for one topic); all.

Every experiment writes its numbers to DIR/<experiment>.json and draws them, as \
SVG and PNG, into DIR/figures. A run that was stopped continues where it was \
when the same command is given again.

Examples:
  pointsman reproduce all --quick -o out
  pointsman reproduce three-way --data ~/votes --seeds 3 -o out")]
pub(crate) struct ReproduceArgs {
    /// The experiment, or all
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// Training and calibration sets drawn of every synthetic world [default: 10, with --quick 2]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// Where the data sets are [default: $POINTSMAN_DATA, else ../shared/data]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// Where results and trained models go
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
The folder is marked by a file .pointsman-demo. Without it, files of the same \
names are taken for yours and left alone.

Example:
  pointsman demo -o /tmp/demo --seed 7")]
pub(crate) struct DemoArgs {
    /// Held-out rows
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) rows: u32,
    /// Seed of the world
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the files go
    #[arg(short, long, value_name = "DIR", default_value = "pointsman-demo", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Replace files of the same names even if the demo did not write them
    #[arg(long)]
    pub(crate) force: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use pointsman::oracle::Aggregate;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn shares_prices_and_counts_are_read_as_people_write_them() {
        for (text, value) in [("0.2", 0.2), ("20%", 0.2), ("95%", 0.95), ("99.9 %", 0.999), ("1", 1.0)] {
            assert_eq!(share(text), Ok(value), "{text}");
        }
        assert_eq!(share("20"), Err("a share is from 0 to 1: for 20 % write 0.2 or 20%".to_owned()));
        assert_eq!(share("0,2"), Err("use a decimal point: 0.2".to_owned()));
        assert_eq!(price("0,4"), Err("use a decimal point: 0.4".to_owned()));
        for (text, value) in
            [("1M", 1e6), ("250k", 2.5e5), ("1,000,000", 1e6), ("1_000", 1e3), ("1.5M", 1.5e6), ("7", 7.0)]
        {
            assert_eq!(queries(text), Ok(value), "{text}");
        }
        for text in ["", "many", "1,00", "-1", "1,5", "M", "inf"] {
            assert!(queries(text).is_err(), "{text}");
        }
    }

    #[test]
    fn routes_have_defaults() {
        let route: RouteArg = "0.05".parse().unwrap();
        assert_eq!((route.name.as_str(), route.cost, route.oracle), ("oracle", 0.05, None));
        let route: RouteArg = "expert=0.1,bayes".parse().unwrap();
        assert_eq!((route.name.as_str(), route.cost, route.oracle), ("expert", 0.1, Some(Oracle::Bayes)));
        let route: RouteArg = "jury=0.1,panel:m=3,aggregate=laplace,smoothing=0.5".parse().unwrap();
        let oracle = Oracle::panel(3, Aggregate::Laplace(0.5)).unwrap();
        assert_eq!((route.name.as_str(), route.cost, route.oracle), ("jury", 0.1, Some(oracle)));
        let route: RouteArg = "0.1,panel:m=3".parse().unwrap();
        assert_eq!((route.name.as_str(), route.oracle), ("oracle", Oracle::panel(3, Aggregate::Mean).ok()));
        assert_eq!("gpt=1,measured".parse::<RouteArg>().unwrap().oracle, Some(Oracle::Measured));
        for (text, point) in [("llm=0,05", "llm=0.05"), ("0,05", "0.05")] {
            assert!(
                text.parse::<RouteArg>().unwrap_err().to_string().contains(&format!("use a decimal point, {point}"))
            );
        }
        for text in ["", "expert=", "a=b=1", "0.1,panel:m=0", "0.1,panel", "0.1,", "0.1,measured,bayes"] {
            assert!(text.parse::<RouteArg>().is_err(), "{text}");
        }
    }
}
