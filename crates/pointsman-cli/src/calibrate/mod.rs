//! `pointsman calibrate`: one or several tables become a router.

mod human;
pub(crate) mod json;
mod warnings;

use anyhow::bail;
use pointsman::calibrate::Calibration;
use pointsman::partition::Factor;
use pointsman::router::Partial;
use pointsman::{Partition, Router};
use pointsman_table::{Frame, Need};

use crate::args::{CalibrateArgs, KnownItems};
use crate::flags::shell_quoted;
use crate::input;
use crate::interrupt::Writing;
use crate::json::print_with_warnings;
use crate::output::{check_router, print_beside, save_router};
use crate::progress::Progress;
use crate::render::number::counted;
use crate::render::style::{BOLD, GOOD};
use crate::render::{self, next_step, paragraph, warn_all};
use crate::stats::{RouterStats, is_forest};
use crate::{errors, words};
use json::RouterSummary;

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<()> {
    let tables = input::expand_patterns(&args.tables)?;
    let others = [args.votes.annotations.as_ref(), args.like.as_ref(), args.add_to.as_ref()];
    input::check_streams(tables.iter().map(Some).chain(others))?;
    let inputs: Vec<_> = tables.iter().chain(others.into_iter().flatten()).map(AsRef::as_ref).collect();
    check_router(&args.output, args.json, &inputs)?;
    let like = args.like.as_deref().map(input::load_router).transpose()?;
    let added_to = args.add_to.as_deref().map(input::load_router).transpose()?;
    let mut options = input::read_options(&args.reading, Some(&args.votes), Need::Votes)?;
    options.classes = like.as_ref().or(added_to.as_ref()).map(|router| router.classes().to_vec());
    let frame = input::read_frames(&tables, &options)?;
    match (&like, &added_to) {
        (Some(like), _) if args.part => write_part(args, like, &frame),
        (_, Some(router)) => add_rows(args, router, frame, tables.len()),
        _ => fit(args, like.as_ref(), &frame, tables.len()),
    }
}

/// Calibrates a router, in the cells of another one if there is one.
fn fit(args: &CalibrateArgs, like: Option<&Router>, frame: &Frame, tables: usize) -> anyhow::Result<()> {
    let table = &frame.table;
    let (router, choice, served) = match like {
        Some(like) => (Router::calibrate_like(table, like).map_err(|error| errors::in_rows(error, frame))?, None, None),
        None => {
            let Calibration { router, choice, served, .. } = fit_cells(args, frame)?;
            (router, choice, served)
        }
    };
    save_router(&args.output, &router)?;
    let stats = RouterStats::new(&router);
    warn_all(warnings::weak_estimates(&router, &stats));
    warn_all(served.and_then(|served| warnings::worse_served(&served, router.partition())));
    warn_all(words::table::reading(frame));
    match like {
        // A forest filled with exactly its own rows is the same forest.
        Some(like) if is_forest(like) && router == *like => {}
        Some(like) => warn_all(warnings::rows_of_like(table, like)),
        None => {
            warn_all(warnings::class_order(frame));
            warn_all(warnings::constant_features(table, &router));
        }
    }
    warn_all(words::table::mismatch(table)?);
    // The command of a plan names the partition: if auto chose one, no plan asked for these labels.
    let planned = Some(&router).filter(|_| choice.is_none());
    warn_all(words::table::labels(frame, &args.votes, planned)?);
    warn_all(words::table::annotators(frame)?);
    if args.json {
        return print_with_warnings(&RouterSummary::new(table, &router, &stats, choice.as_ref()));
    }
    print_beside(&args.output, |out| human::print_router(out, args, tables, frame, &router, choice.as_ref()))
}

/// Fits cells, and a router in them.
fn fit_cells(args: &CalibrateArgs, frame: &Frame) -> anyhow::Result<Calibration> {
    let partition = partition(args)?;
    let progress = Progress::bar("growing trees", Router::steps(&partition).max(1));
    let step = || progress.step();
    let builder = Router::builder().partition(partition).seed(args.seed).recalibrated(args.recalibrate).progress(&step);
    builder.calibrate(&frame.table).map_err(|error| errors::in_rows(error, frame))
}

/// The partition: `auto` is limited to partitions with cells for `--certifiable`.
fn partition(args: &CalibrateArgs) -> anyhow::Result<Partition> {
    let is_auto = matches!(args.partition.factors(), [Factor::Auto { .. }]);
    if args.certifiable && !is_auto {
        bail!(
            "--certifiable limits what auto chooses, and --partition {} leaves nothing to choose: leave one out",
            args.partition
        );
    }
    if args.recalibrate && matches!(args.partition.factors(), [Factor::Forest { .. }]) {
        bail!(
            "--recalibrate serves one distribution per cell, and a forest has no such cells: run \
             pointsman calibrate TABLE --certifiable --recalibrate -o ROUTER"
        );
    }
    Ok(if args.certifiable { Partition::certifiable() } else { args.partition.clone() })
}

/// Adds the rows of a table to those of a router.
fn add_rows(args: &CalibrateArgs, before: &Router, mut frame: Frame, tables: usize) -> anyhow::Result<()> {
    if let Some(columns) = words::table::columns_missing(before, &frame.table) {
        let router = args.add_to.as_deref().map(shell_quoted).unwrap_or_default();
        let reason = format!("has no {columns}, which the rows of {router} have: add what is missing to the table");
        return Err(pointsman_table::Error::File { file: frame.file_of(0).to_owned(), reason }.into());
    }
    match args.known_items {
        KnownItems::Refuse if before.calibration_rows_in(&frame.table) > 0 => bail!(
            "{}; --known-items skip leaves out the items that the router has, add counts them again",
            warnings::repeated_rows(&frame.table, before).unwrap_or_default()
        ),
        KnownItems::Skip => warn_all(leave_out_known(before, &mut frame)?),
        KnownItems::Refuse | KnownItems::Add => warn_all(warnings::repeated_rows(&frame.table, before)),
    }
    let frame = &frame;
    let router = before.with_more_rows(&frame.table).map_err(|error| errors::in_rows(error, frame))?;
    save_router(&args.output, &router)?;
    let stats = RouterStats::new(&router);
    warn_all(warnings::weak_estimates(&router, &stats));
    warn_all(words::table::reading(frame));
    warn_all(warnings::added_with_one_label(&frame.table));
    warn_all(words::table::labels(frame, &args.votes, Some(before))?);
    warn_all(words::table::annotators(frame)?);
    if args.json {
        return print_with_warnings(&RouterSummary::new(&frame.table, &router, &stats, None));
    }
    print_beside(&args.output, |out| human::print_added(out, args, tables, frame.table.rows(), [before, &router]))
}

/// Leaves out the rows of items that a router has; the result says how many.
fn leave_out_known(router: &Router, frame: &mut Frame) -> anyhow::Result<Option<String>> {
    let Some(seen) = router.items_seen(&frame.table) else {
        bail!(
            "--known-items skip: predictions repeat too often to say which items the router has; leave them out of the table or of \
             --annotations"
        );
    };
    if words::table::has_items_that_shaped_cells(router, &frame.table) {
        bail!(
            "--known-items skip: the table has most of the router's items, so it seems to contain the one that the router was calibrated \
             on; half of those items shaped the cells and are not in the router, so that they cannot be distinguished from new ones, and with them \
             certificates would not hold: give only the new items, in a file of their own or by --where"
        );
    }
    let known = seen.iter().filter(|seen| **seen).count();
    if known == seen.len() {
        bail!("--known-items skip: the router has all items of the table, and none are new");
    }
    frame.keep_rows(|row| !seen[row]);
    let rows = counted(known, "row has", "rows have");
    Ok((known > 0).then(|| format!("{rows} the prediction of a row that the router has and were left out")))
}

/// Writes the rows of a table as a part, in the cells of a router.
fn write_part(args: &CalibrateArgs, like: &Router, frame: &Frame) -> anyhow::Result<()> {
    let mut part = Partial::like(like)?;
    part.add(&frame.table).map_err(|error| errors::in_rows(error, frame))?;
    {
        let writing = Writing::start();
        pointsman_table::save_partial(&args.output, &part)?;
        writing.check()?;
    }
    warn_all(words::table::reading(frame));
    warn_all(words::table::labels(frame, &args.votes, Some(like))?);
    // Parts of the rows on which a forest was grown belong into it.
    warn_all(warnings::rows_of_like(&frame.table, like).filter(|_| !is_forest(like)));
    if input::is_stream(&args.output) {
        return Ok(());
    }
    let mut out = render::stdout();
    let (path, rows) = (shell_quoted(&args.output), counted(frame.table.rows(), "row", "rows"));
    let cells = like.partition();
    paragraph(&mut out, 0, &format!("{GOOD}wrote{GOOD:#} {BOLD}{path}{BOLD:#}: {rows} in the cells of {cells}"))?;
    let command = format!("pointsman merge {path} … -o router.safetensors");
    Ok(next_step(&mut out, "When all parts are there:", &[command])?)
}
