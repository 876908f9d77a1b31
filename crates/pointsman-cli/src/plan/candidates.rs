//! The items of a table that can be labelled.

use std::collections::HashSet;
use std::path::Path;

use anyhow::bail;
use pointsman::Router;
use pointsman_table::{Frame, Need};

use crate::args::{OnlyLabels, PlanArgs};
use crate::render::number::{count, counted};
use crate::render::{self, warn_all};
use crate::{errors, input, words};

/// The items of a table that can be labelled.
#[derive(Debug)]
pub(super) struct Candidates {
    pub(super) frame: Frame,
    /// Whether the items have votes, so that they get more labels; otherwise they are new.
    pub(super) have_votes: bool,
    /// Items without votes here that have labels elsewhere, and are left off.
    pub(super) labelled: usize,
    /// Rows with votes that are not the router's: labels on them would not show in its cells.
    pub(super) not_of_router: usize,
    /// The router's rows that a table with votes does not have.
    pub(super) rows_elsewhere: usize,
    /// The number of annotators, if they are named.
    pub(super) annotators: Option<usize>,
}

impl Candidates {
    pub(super) fn read(args: &PlanArgs, router: &Router, path: &Path) -> anyhow::Result<Self> {
        let mut options = input::read_options(&args.reading, Some(&args.votes), Need::VotesIfAny)?;
        options.classes = Some(router.classes().to_vec());
        // A list of items names them.
        options.need_ids = args.output.is_some();
        let frame = input::read_frame(path, &options)?;
        input::check_classes(router, frame.table.classes(), path)?;
        if !frame.table.has_votes() {
            if words::table::has_items_that_shaped_cells(router, &frame.table) {
                bail!(
                    "{}: has most of the router's items, so it seems to be the table that the router was calibrated on; half of its items \
                     shaped the cells and are not in the router, so that they cannot be distinguished from new ones: add --annotations FILE with \
                     all labels (or columns of votes), or give a table of new items only",
                    path.display()
                );
            }
            warn_all(missing_columns(router, &frame, path));
            return Self::new_items(router, frame, None);
        }
        warn_all(other_labels(router, &frame));
        let labelled = frame.table.rows();
        let common = router.rows_in_common(&frame.table).into_iter().filter(|is_common| *is_common).count();
        let rows_elsewhere = router.rows().rows().saturating_sub(common);
        let unlabelled = frame.joined.as_ref().map_or(0, |joined| joined.not_annotated.count);
        if asks_for_new_items(args.only, Annotated { labelled, unlabelled, common, rows_elsewhere }) {
            if input::is_stream(path) {
                bail!("--items -: a table in which some items have no labels is read twice: give it as a file");
            }
            warn_all(missing_columns(router, &frame, path));
            options = input::read_options(&args.reading, None, Need::Predictions)?;
            options.classes = Some(router.classes().to_vec());
            options.need_ids = args.output.is_some();
            let annotators = frame.annotations.as_ref().map(|annotations| annotations.names().len());
            let candidates = Self::new_items(router, input::read_frame(path, &options)?, frame.ids)?;
            return Ok(Self { annotators, ..candidates });
        }
        warn_all(words::table::reading(&frame));
        let not_of_router = labelled - common;
        let annotators = frame.annotations.as_ref().map(|annotations| annotations.names().len());
        Ok(Self { frame, have_votes: true, labelled: 0, not_of_router, rows_elsewhere, annotators })
    }

    /// The items of a table without votes that have no labels elsewhere: neither by their ids nor in the router.
    fn new_items(router: &Router, mut frame: Frame, labelled: Option<Vec<String>>) -> anyhow::Result<Self> {
        warn_all(words::table::reading(&frame));
        // Errors name rows as they are in the file, so they come before rows are left out.
        router.find_cells(&frame.table).map_err(|error| errors::in_rows(error, &frame))?;
        leave_out_copies(&mut frame);
        let all = frame.table.rows();
        if let (Some(labelled), Some(ids)) = (labelled, &frame.ids) {
            let labelled: HashSet<String> = labelled.into_iter().collect();
            let keep: Vec<bool> = ids.iter().map(|id| !labelled.contains(id)).collect();
            frame.keep_rows(|row| keep[row]);
        }
        let annotated = all - frame.table.rows();
        if annotated > 0 {
            let items = counted(annotated, "item has", "items have");
            render::warn(format!(
                "{items} labels in --annotations: new items are listed from the other {}",
                count(all - annotated)
            ));
        }
        match router.items_seen(&frame.table) {
            Some(seen) => frame.keep_rows(|row| !seen[row]),
            None => warn_all(repeated_predictions(router, &frame)),
        }
        let known = all - annotated - frame.table.rows();
        if known > 0 {
            let items = counted(known, "item has", "items have");
            render::warn(format!(
                "{items} the prediction of a calibration row and {} left off the list, so that nobody pays for labels that the router has",
                if known == 1 { "is" } else { "are" }
            ));
        }
        let labelled = annotated + known;
        Ok(Self { frame, have_votes: false, labelled, not_of_router: 0, rows_elsewhere: 0, annotators: None })
    }
}

/// The numbers of rows of a table, some of which have labels, and of those of the router that it does not have.
struct Annotated {
    labelled: usize,
    unlabelled: usize,
    /// The labelled rows that are the router's.
    common: usize,
    rows_elsewhere: usize,
}

/// Whether a table in which some items have labels is asked for new items. A calibration table has the router's rows, or most of them if rows
/// were added later, and few of its items have no labels.
fn asks_for_new_items(only: Option<OnlyLabels>, rows: Annotated) -> bool {
    let Annotated { labelled, unlabelled, common, rows_elsewhere } = rows;
    let is_calibration_table = unlabelled <= labelled && (rows_elsewhere == 0 || common > unlabelled);
    match only {
        Some(OnlyLabels::PresentItems) => false,
        Some(OnlyLabels::NewItems) => unlabelled > 0,
        None => unlabelled > 0 && !is_calibration_table,
    }
}

/// Leaves out all rows but the first of each id: an item is labelled once.
fn leave_out_copies(frame: &mut Frame) {
    let Some(ids) = &frame.ids else { return };
    let mut seen = HashSet::new();
    let keep: Vec<bool> = ids.iter().map(|id| seen.insert(id.as_str())).collect();
    let copies = keep.iter().filter(|kept| !**kept).count();
    if copies > 0 {
        frame.keep_rows(|row| keep[row]);
        let rows = counted(copies, "row has", "rows have");
        render::warn(format!("{rows} the id of an earlier row: each item is listed once"));
    }
}

/// A warning that items which the router has carry other labels here: they were read with other flags, or have changed.
fn other_labels(router: &Router, frame: &Frame) -> Option<String> {
    /// A smaller part may be items whose predictions agree by chance.
    const MIN_PART: f64 = 0.05;
    let seen = router.items_seen(&frame.table)?;
    let same = router.rows_in_common(&frame.table);
    let items = seen.iter().filter(|seen| **seen).count();
    let differ = seen.iter().zip(&same).filter(|(seen, same)| **seen && !**same).count();
    (differ > 0 && differ as f64 >= MIN_PART * items as f64).then(|| {
        format!(
            "{} of the {} that the router has carry other labels here than in the router: give the flags that it was calibrated with, \
             such as --without NAME for annotators left out, --first-labels or --ignore-label; or labels were added since",
            count(differ),
            counted(items, "item", "items")
        )
    })
}

/// A warning that new items lack columns without which `--add-to` refuses them, once their labels are paid for.
fn missing_columns(router: &Router, frame: &Frame, path: &Path) -> Option<String> {
    words::table::columns_missing(router, &frame.table).map(|columns| {
        format!(
            "{}: has no {columns}, which the router's rows have: calibrate --add-to needs them beside the labels, so add them before \
             labels are bought",
            path.display()
        )
    })
}

/// A warning that new items have the prediction of a calibration row, where predictions repeat too often to say which.
fn repeated_predictions(router: &Router, frame: &Frame) -> Option<String> {
    let (known, all) = (router.items_in_common(&frame.table), frame.table.rows());
    (2 * known > all).then(|| {
        format!(
            "{} of the {} to choose from have the prediction of a calibration row: these items have labels, which --annotations or \
             columns of votes would give, and more labels on them are worth less than new items",
            count(known),
            counted(all, "item", "items")
        )
    })
}
