//! `pointsman calibrate`: one or several tables become a router.

use std::io::{self, IsTerminal, Write};

use anyhow::bail;
use pointsman::calibrate::{Calibration, Candidate, Choice};
use pointsman::partition::{Factor, SPARSE_BELOW_ROWS};
use pointsman::router::Partial;
use pointsman::{CellId, Partition, Router, Support, Table};
use pointsman_table::{Frame, Need};
use serde::Serialize;

use crate::args::CalibrateArgs;
use crate::interrupt::Writing;
use crate::json;
use crate::plan::{self, Written, shell_quoted};
use crate::progress::Progress;
use crate::render::number::{count, counted, percent};
use crate::render::style::{BOLD, DIM, GOOD};
use crate::render::{self, entry, next_step};
use crate::tables;

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<()> {
    let tables = tables::expanded(&args.tables)?;
    let others = [args.votes.annotations.as_ref(), args.like.as_ref(), args.add_to.as_ref()];
    plan::one_from_stdin(tables.iter().map(Some).chain(others))?;
    let to_stdout = plan::is_stream(&args.output);
    if to_stdout && io::stdout().is_terminal() {
        bail!("a router is not text: give a path instead of -, or redirect standard output");
    }
    if to_stdout && args.json {
        bail!("--json and -o - both write to standard output: give the router a path");
    }
    let inputs: Vec<_> = tables.iter().chain(others.into_iter().flatten()).map(AsRef::as_ref).collect();
    plan::refuse_to_overwrite(&args.output, &inputs)?;
    plan::refuse_to_destroy(&args.output, Written::Router)?;
    let like = args.like.as_deref().map(plan::load_router).transpose()?;
    let own = args.add_to.as_deref().map(plan::load_router).transpose()?;
    let mut options = plan::read_options(&args.reading, Some(&args.votes), Need::Votes);
    options.classes = like.as_ref().or(own.as_ref()).map(|router| router.classes().to_vec());
    let frame = tables::read_frames(&tables, &options)?;
    let table = &frame.table;
    if let Some(like) = like.as_ref().filter(|_| args.part) {
        return write_part(args, like, &frame);
    }
    if let Some(own) = own {
        return add_rows(args, &own, &frame, tables.len());
    }
    let (mut router, choice) = if let Some(like) = &like {
        (Router::calibrate_like(table, like).map_err(|error| plan::of_rows(error, &frame))?, None)
    } else {
        let partition = asked_partition(args)?;
        let progress = Progress::bar("growing trees", Router::steps(&partition).max(1));
        let step = || progress.step();
        let builder = Router::builder().partition(partition).seed(args.seed).progress(&step);
        let Calibration { router, choice, .. } =
            builder.calibrate(table).map_err(|error| plan::of_rows(error, &frame))?;
        (router, choice)
    };
    if args.recalibrate {
        if let [Factor::Forest { .. }] = router.partition().factors() {
            bail!(
                "--recalibrate serves one distribution per cell, and a forest has no such cells: run \
                 pointsman calibrate TABLE --certifiable --recalibrate -o ROUTER"
            );
        }
        router = router.recalibrated();
    }
    save(args, &router)?;
    let learned = Learned::of(&router);
    warn(&router, &learned);
    tables::warn_about_reading(&frame);
    if like.is_none() {
        note_order_of_classes(&frame);
    }
    if like.is_none() && router.partition().factors().iter().any(Factor::learns) {
        note_features_left_out(table, &router);
    }
    if let Some(like) = like.filter(|like| like.partition().factors().iter().any(Factor::learns)) {
        warn_of_repeats(table, &like);
    }
    plan::warn_if_matched_wrongly(table)?;
    plan::warn_about_labels(table, &args.votes)?;
    tables::annotators_in_words(&frame)?.iter().for_each(render::warn);
    if args.json {
        return json::print_with_warnings(&Summary::new(table, &router, &learned, choice.as_ref()));
    }
    print_summary(args, |out| print(out, args, tables.len(), &frame, &router, &learned, choice.as_ref()))
}

/// Adds the rows of a table to those of a router.
fn add_rows(args: &CalibrateArgs, own: &Router, frame: &Frame, tables: usize) -> anyhow::Result<()> {
    let router = own.with_more_rows(&frame.table).map_err(|error| plan::of_rows(error, frame))?;
    let (given, repeated) = (frame.table.rows(), own.items_in_common(&frame.table));
    if 2 * repeated > given {
        render::warn(format!(
            "{} of the {} to be added have the prediction of a row that the router has: an item that counts twice is no further evidence; \
             for more labels on the same items, calibrate again with all labels",
            count(repeated),
            counted(given, "row", "rows")
        ));
    }
    save(args, &router)?;
    let learned = Learned::of(&router);
    warn(&router, &learned);
    tables::warn_about_reading(frame);
    plan::warn_about_labels(&frame.table, &args.votes)?;
    if args.json {
        return json::print_with_warnings(&Summary::new(&frame.table, &router, &learned, None));
    }
    let rows = format!(
        "{} added to the {} of {}",
        counted(given, "row", "rows"),
        count(own.rows().rows()),
        args.add_to.as_deref().map(shell_quoted).unwrap_or_default()
    );
    print_summary(args, |out| {
        head(out, args, &rows, tables)?;
        let mut out = out;
        describe(&mut out, &router, &learned)?;
        describe_line(
            &mut out,
            "shares",
            "each cell keeps its share of the traffic: its rows, old and new, weigh what the old ones did",
        )?;
        next(out, args)
    })
}

/// Writes the router.
fn save(args: &CalibrateArgs, router: &Router) -> anyhow::Result<()> {
    let writing = Writing::start();
    pointsman_table::save_router(&args.output, router)?;
    Ok(writing.check()?)
}

/// Prints what was learned, on standard error if the router goes to standard output.
fn print_summary(args: &CalibrateArgs, print: impl Fn(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    match (render::is_quiet(), plan::is_stream(&args.output)) {
        (true, _) => Ok(()),
        (false, true) => Ok(print(&mut anstream::stderr().lock())?),
        (false, false) => Ok(print(&mut anstream::stdout().lock())?),
    }
}

/// Writes the rows of a table as a part, in the cells of a router.
fn write_part(args: &CalibrateArgs, like: &Router, frame: &Frame) -> anyhow::Result<()> {
    let mut part = Partial::like(like)?;
    part.add(&frame.table).map_err(|error| plan::of_rows(error, frame))?;
    {
        let writing = Writing::start();
        pointsman_table::save_partial(&args.output, &part)?;
        writing.check()?;
    }
    tables::warn_about_reading(frame);
    plan::warn_about_labels(&frame.table, &args.votes)?;
    if render::is_quiet() || plan::is_stream(&args.output) {
        return Ok(());
    }
    let mut out = anstream::stdout().lock();
    let (path, rows) = (shell_quoted(&args.output), counted(frame.table.rows(), "row", "rows"));
    writeln!(out, "{GOOD}wrote{GOOD:#} {BOLD}{path}{BOLD:#}: {rows} in the cells of {}", like.partition())?;
    let command = format!("pointsman merge {path} … -o router.safetensors");
    Ok(next_step(&mut out, "When all parts are there:", &[command])?)
}

/// The partition asked for: with `--certifiable`, or if centroids are to be served, `auto` keeps to partitions with cells.
fn asked_partition(args: &CalibrateArgs) -> anyhow::Result<Partition> {
    let is_auto = matches!(args.partition.factors(), [Factor::Auto { .. }]);
    if args.certifiable && !is_auto {
        bail!(
            "--certifiable is about what auto chooses, and --partition {} is chosen already: leave one out",
            args.partition
        );
    }
    Ok(if is_auto && (args.certifiable || args.recalibrate) {
        Partition::certifiable()
    } else {
        args.partition.clone()
    })
}

/// What was learned, as scripts read it.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    classes: &'a [String],
    rows: usize,
    partition: String,
    recalibrated: bool,
    labels: Labels,
    cells: usize,
    sparse: usize,
    empty: usize,
    features: FeaturesSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<ChoiceSummary>,
}

/// Which of the table's features decisions depend on, as scripts read it.
#[derive(Debug, Serialize)]
struct FeaturesSummary {
    used: Vec<String>,
    ignored: Vec<String>,
}

impl FeaturesSummary {
    fn of(table: &Table, router: &Router) -> Self {
        let used = router.features_used();
        let ignored = table.feature_names().iter().filter(|name| !used.contains(name)).cloned().collect();
        Self { used, ignored }
    }

    fn in_words(&self) -> String {
        let list = |names: &[String]| names.iter().map(|name| format!("x_{name}")).collect::<Vec<_>>().join(", ");
        match (self.used.is_empty(), self.ignored.is_empty()) {
            (true, _) => format!("none used; ignored: {}", list(&self.ignored)),
            (false, true) => format!("used: {}; none ignored", list(&self.used)),
            (false, false) => format!("used: {}; ignored: {}", list(&self.used), list(&self.ignored)),
        }
    }
}

/// How `auto` chose, as scripts read it: the partition chosen comes first.
#[derive(Debug, Serialize)]
struct ChoiceSummary {
    reason: String,
    rows: usize,
    tasks: usize,
    candidates: Vec<CandidateSummary>,
}

/// Costs are shares of what always predicting costs; unknown if there was nothing to compare by.
#[derive(Debug, Serialize)]
struct CandidateSummary {
    partition: String,
    cost: Option<f64>,
    excess: f64,
    standard_error: f64,
}

impl From<&Choice> for ChoiceSummary {
    fn from(choice: &Choice) -> Self {
        let candidate = |it: &Candidate| CandidateSummary {
            partition: it.partition.to_string(),
            cost: it.cost.is_finite().then_some(it.cost),
            excess: it.excess,
            standard_error: it.standard_error,
        };
        let candidates = choice.candidates.iter().map(candidate).collect();
        Self { reason: choice.reason().to_owned(), rows: choice.rows, tasks: choice.tasks, candidates }
    }
}

impl<'a> Summary<'a> {
    /// `table` is the one that the router was made of.
    pub(crate) fn new(table: &Table, router: &'a Router, learned: &Learned, choice: Option<&Choice>) -> Self {
        Self {
            classes: router.classes(),
            rows: router.rows().rows(),
            partition: router.partition().to_string(),
            recalibrated: router.is_recalibrated(),
            labels: learned.labels.into(),
            cells: learned.cells,
            sparse: learned.sparse,
            empty: learned.empty,
            features: FeaturesSummary::of(table, router),
            choice: choice.map(ChoiceSummary::from),
        }
    }
}

/// Labels per row, as scripts read them.
#[derive(Debug, Serialize)]
pub(crate) struct Labels {
    min: u64,
    median: u64,
    max: u64,
}

impl From<[u64; 3]> for Labels {
    fn from([min, median, max]: [u64; 3]) -> Self {
        Self { min, median, max }
    }
}

/// What a router rests on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Learned {
    /// Fewest, median and most labels per row.
    pub(crate) labels: [u64; 3],
    pub(crate) cells: usize,
    pub(crate) sparse: usize,
    pub(crate) empty: usize,
}

impl Learned {
    pub(crate) fn of(router: &Router) -> Self {
        let support = |cell| router.mixture(CellId(cell as u32)).support();
        let cells = router.cells().count();
        let with = |wanted: Support| (0..cells).filter(|&cell| support(cell) == wanted).count();
        Self { labels: labels(router.rows()), cells, sparse: with(Support::Sparse), empty: with(Support::Empty) }
    }

    pub(crate) fn labels_in_words(&self) -> String {
        match self.labels {
            [min, _, max] if min == max => counted(min as usize, "label per row", "labels per row"),
            [min, median, max] => format!("{min} to {max} labels per row, median {median}"),
        }
    }

    pub(crate) fn cells_in_words(&self) -> String {
        let cells = counted(self.cells, "cell", "cells");
        match (self.sparse, self.empty) {
            (0, 0) => format!("{cells}, each with at least {SPARSE_BELOW_ROWS} rows"),
            (sparse, empty) => {
                format!("{cells}: {} sparse (under {SPARSE_BELOW_ROWS} rows), {} empty", count(sparse), count(empty))
            }
        }
    }
}

/// Fewest, median and most labels per row; zeros if there are none.
pub(crate) fn labels(table: &Table) -> [u64; 3] {
    let mut k: Vec<u64> = (0..table.rows()).filter_map(|row| table.votes(row)).map(pointsman::Votes::k).collect();
    k.sort_unstable();
    match k.len() {
        0 => [0; 3],
        n => [k[0], k[n / 2], k[n - 1]],
    }
}

/// Cells that learned from labels are judged by others: warns if a table seems to be the one they learned from, half of which the
/// router keeps.
fn warn_of_repeats(table: &Table, like: &Router) {
    if like.has_seen(table) {
        render::warn(
            "the rows that --like keeps are in this table too: if those that its cells learned from are as well, certificates do not \
             hold; --add-to adds new rows to those that a router keeps",
        );
    }
}

/// Trees never ask for a feature that is constant, or missing in all rows: the router does without it.
fn note_features_left_out(table: &Table, router: &Router) {
    let left = table.feature_names().iter().filter(|name| !router.cells().features().contains(name));
    let names: Vec<String> = left.map(|name| format!("x_{name}")).collect();
    if !names.is_empty() {
        render::warn(format!(
            "{} left out, because the value is the same or missing in all rows",
            if names.len() == 1 {
                format!("feature {} is", names[0])
            } else {
                format!("features {} are", names.join(", "))
            }
        ));
    }
}

/// Classes are matched by name, but some losses go by their order.
fn note_order_of_classes(frame: &Frame) {
    let Some(file) = frame.reordered.first() else { return };
    render::warn(format!(
        "{file}{} its classes in another order than {}, whose order the router takes: {}",
        match frame.reordered.len() {
            1 => " has".to_owned(),
            n => format!(" and {} more have", n - 1),
        },
        frame.file_of(0),
        frame.table.classes().join(", ")
    ));
}

fn warn(router: &Router, learned: &Learned) {
    if learned.labels[2] == 1 {
        render::warn(
            "one label per item: noise and model error cannot be separated, so route costs are only bounded and some \
             decisions stay undetermined; a second label on some items would identify the Brier split exactly and \
             cross-entropy to ±0.04 nats (binary)",
        );
    }
    if learned.sparse + learned.empty > 0 && !is_forest(router) && !is_pooled(router) {
        let share = (learned.sparse + learned.empty) as f64 / learned.cells as f64;
        render::warn(format!(
            "{} of the cells have fewer than {SPARSE_BELOW_ROWS} calibration rows: use fewer bins or more rows (an empty cell \
             falls back to the rows of the same confidence)",
            percent(share)
        ));
    }
}

/// Whether cells with few rows are drawn towards others.
fn is_pooled(router: &Router) -> bool {
    matches!(router.partition().factors(), [Factor::Pooled])
}

/// Whether costs do not rest on cells.
fn is_forest(router: &Router) -> bool {
    matches!(router.partition().factors(), [Factor::Forest { .. }])
}

fn print(
    mut out: &mut dyn Write,
    args: &CalibrateArgs,
    tables: usize,
    frame: &Frame,
    router: &Router,
    learned: &Learned,
    choice: Option<&Choice>,
) -> io::Result<()> {
    let (table, unused) = (&frame.table, &frame.unused_numeric);
    let kept = router.rows().rows();
    // Honest trees keep the rows that they were not grown on.
    let given = table.rows();
    let rows = match given.saturating_sub(kept) {
        0 => counted(kept, "row", "rows"),
        others => {
            format!("{}: {} estimate, {} shaped the cells", counted(given, "row", "rows"), count(kept), count(others))
        }
    };
    head(out, args, &rows, tables)?;
    describe(&mut out, router, learned)?;
    if let Some(choice) = choice {
        let rule = "pooled cells, unless another partition costs less by more than half a standard error";
        describe_line(&mut out, "chosen", &format!("{}; the rule: {rule}", choice.reason()))?;
    }
    if !table.feature_names().is_empty() {
        let words = FeaturesSummary::of(table, router).in_words();
        describe_line(&mut out, "features", &words)?;
    } else if !unused.is_empty() {
        let names = unused.join(", ");
        let words = format!(
            "none; columns of numbers that are not used: {names} (--columns features=NAME takes one, features=PREFIX several)"
        );
        describe_line(&mut out, "features", &words)?;
    }
    if is_forest(router) {
        let text =
            "certificates and plans need cells that a forest does not have: calibrate with --certifiable for them";
        describe_line(&mut out, "note", text)?;
    }
    next(out, args)
}

/// What was learned, from which rows.
fn head(out: &mut dyn Write, args: &CalibrateArgs, rows: &str, tables: usize) -> io::Result<()> {
    let path = shell_quoted(&args.output);
    let files = match tables {
        1 => String::new(),
        n => format!(" in {}", counted(n, "table", "tables")),
    };
    writeln!(out, "{GOOD}learned{GOOD:#} {BOLD}{path}{BOLD:#} from {rows}{files}")
}

/// What to do with a router.
fn next(out: &mut dyn Write, args: &CalibrateArgs) -> io::Result<()> {
    let command = format!("pointsman show {} --route 0.05 --abstain 0.3", shell_quoted(&args.output));
    next_step(out, "Next, see what it would do at your prices:", &[command])
}

/// What a router has, and what that is.
pub(crate) fn describe_line(out: impl Write, name: &str, text: &str) -> io::Result<()> {
    const TEXT_FROM: usize = 13;
    entry(out, TEXT_FROM, &format!("{DIM}{name}{DIM:#}"), &render::printable(text))
}

/// A router in a few lines.
pub(crate) fn describe(out: &mut impl Write, router: &Router, learned: &Learned) -> io::Result<()> {
    let mut line = |name: &str, text: String| describe_line(&mut *out, name, &text);
    let classes = router.classes();
    let shown = classes.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if classes.len() > 12 { ", …" } else { "" };
    line("classes", format!("{} ({shown}{more})", count(classes.len())))?;
    line("labels", learned.labels_in_words())?;
    line("partition", router.partition().to_string())?;
    let own = if is_forest(router) { "; costs are each query's own, not its cell's" } else { "" };
    line("cells", learned.cells_in_words() + own)?;
    let served = if router.is_recalibrated() { "each cell's mean label distribution" } else { "the weak prediction" };
    line("serves", served.to_owned())
}
